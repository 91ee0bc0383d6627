use super::*;
use std::os::unix::fs::symlink;

/// A folder with a file `other`, which nothing here may change.
struct Bait(tempfile::TempDir);

impl Bait {
    fn new() -> Self {
        let bait = Self(tempfile::tempdir().unwrap());
        std::fs::write(bait.path("other"), "precious").unwrap();
        bait
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn link(&self, name: &str) -> PathBuf {
        symlink(self.path("other"), self.path(name)).unwrap();
        self.path(name)
    }

    /// The names in the folder, after a check that `other` is as it was.
    fn names(&self) -> Vec<String> {
        let other = std::fs::read_to_string(self.path("other")).unwrap();
        assert_eq!(other, "precious");
        let entries = std::fs::read_dir(self.0.path()).unwrap();
        let name = |e: Result<std::fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
        let mut names: Vec<_> = entries.map(name).collect();
        names.sort();
        names
    }
}

fn pipe(path: &Path) {
    let made = std::process::Command::new("mkfifo").arg(path).status();
    assert!(made.unwrap().success());
}

#[test]
fn links_and_second_names_are_not_written_through() {
    let bait = Bait::new();
    let link = bait.link("log.txt");
    std::fs::hard_link(bait.path("other"), bait.path("second")).unwrap();
    for path in [&link, &bait.path("second")] {
        for opened in [append(path), update(path)] {
            let e = opened.unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidInput, "{e}");
        }
    }
    let why = append(&link).unwrap_err().to_string();
    assert!(why.contains("link"), "{why}");
    bait.names();
    append(&bait.path("new")).unwrap().write_all(b"a").unwrap();
    append(&bait.path("new")).unwrap().write_all(b"b").unwrap();
    assert_eq!(read(&bait.path("new"), 9).unwrap(), b"ab");
}

#[test]
fn a_link_is_replaced_and_not_followed() {
    let bait = Bait::new();
    let link = bait.link("config.toml");
    // What a fixed temporary name would open.
    for name in ["config.tmp", "config.toml.tmp", ".config.toml.tmp"] {
        bait.link(name);
    }
    replace(&link, SHARED, b"mine").unwrap();
    assert!(!link.is_symlink());
    assert_eq!(read(&link, 9).unwrap(), b"mine");
    assert_eq!(bait.names().len(), 5);
}

#[test]
fn a_file_that_could_not_be_written_leaves_the_old_one_and_nothing_else() {
    let bait = Bait::new();
    let path = bait.path("f");
    replace(&path, SHARED, b"old").unwrap();
    let failed = replace_with(&path, SHARED, |file| {
        file.write_all(b"half")?;
        Err(Error::other("the disk is full"))
    });
    assert_eq!(failed.unwrap_err().to_string(), "the disk is full");
    assert_eq!(read(&path, 9).unwrap(), b"old");
    assert_eq!(bait.names(), ["f", "other"]);
}

#[test]
fn permissions_are_those_asked_for_under_the_mask() {
    let bait = Bait::new();
    let mode = |name: &str| bait.path(name).metadata().unwrap().mode() & 0o777;
    replace(&bait.path("private"), PRIVATE, b"").unwrap();
    replace(&bait.path("shared"), SHARED, b"").unwrap();
    std::fs::write(bait.path("plain"), "").unwrap();
    assert_eq!(mode("private"), 0o600);
    assert_eq!(mode("shared"), mode("plain"));
    let scratch = scratch("test").unwrap();
    assert_eq!(scratch.path().metadata().unwrap().mode() & 0o777, 0o700);
}

#[test]
fn a_second_name_takes_the_place_of_the_one_before() {
    let bait = Bait::new();
    for text in ["one", "two"] {
        let original = bait.path(text);
        std::fs::write(&original, text).unwrap();
        replace_by_link(&original, &bait.path("best")).unwrap();
        assert_eq!(read_text(&bait.path("best"), 9).unwrap(), text);
    }
    assert_eq!(bait.names(), ["best", "one", "other", "two"]);
    assert!(replace_by_link(&bait.path("none"), &bait.path("best")).is_err());
}

#[test]
fn pipes_devices_and_folders_are_not_read() {
    let bait = Bait::new();
    pipe(&bait.path("pipe"));
    symlink("/dev/zero", bait.path("zero")).unwrap();
    symlink(bait.path("pipe"), bait.path("to_pipe")).unwrap();
    for name in ["pipe", "zero", "to_pipe", "."] {
        let e = read(&bait.path(name), 100).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput, "{name}: {e}");
    }
    assert_eq!(read(&bait.link("link"), 100).unwrap(), b"precious");
    let e = append(&bait.path("pipe")).unwrap_err();
    assert!(e.raw_os_error() == Some(libc::ENXIO) || e.kind() == ErrorKind::InvalidInput);
}

#[test]
fn no_more_is_read_than_was_asked_for() {
    let bait = Bait::new();
    assert_eq!(read(&bait.path("other"), 8).unwrap(), b"precious");
    let e = read(&bait.path("other"), 7).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::FileTooLarge);
    // A file without a length of its own.
    let e = read(Path::new("/proc/self/status"), 7).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::FileTooLarge);
    std::fs::write(bait.path("bytes"), [0xff]).unwrap();
    let e = read_text(&bait.path("bytes"), 9).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidData);
}

#[test]
fn links_are_found_in_folders_within_folders() {
    let bait = Bait::new();
    std::fs::create_dir_all(bait.path("a/b/c")).unwrap();
    assert_eq!(link_below(bait.0.path(), 9), None);
    bait.link("a/b/c/link");
    assert_eq!(link_below(bait.0.path(), 9), Some(bait.path("a/b/c/link")));
    assert_eq!(link_below(bait.0.path(), 1), None);
}

#[test]
fn leftovers_go_and_all_else_stays() {
    let bait = Bait::new();
    let new = temporary().tempfile_in(bait.0.path()).unwrap();
    assert!(is_leftover(new.path().file_name().unwrap()));
    new.keep().unwrap();
    std::fs::write(bait.path("mine.tmp"), "").unwrap();
    remove_leftovers(bait.0.path());
    assert_eq!(bait.names(), ["mine.tmp", "other"]);
}
