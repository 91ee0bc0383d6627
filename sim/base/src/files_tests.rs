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
    rustix::fs::mkfifoat(rustix::fs::CWD, path, rustix::fs::Mode::RWXU).unwrap();
}

#[test]
fn links_and_second_names_are_not_written_through() {
    let bait = Bait::new();
    let refused = |path: &Path, why: &str| {
        for opened in [append(path), update(path)] {
            let e = opened.unwrap_err();
            assert_eq!(e.kind(), ErrorKind::InvalidInput, "{e}");
            assert!(e.to_string().contains(why), "{e}");
        }
    };
    // One at a time: the link's target has one name so far.
    refused(&bait.link("log.txt"), "it is a link");
    std::fs::hard_link(bait.path("other"), bait.path("second")).unwrap();
    refused(&bait.path("second"), "a hard link");
    bait.names();
    append(&bait.path("new")).unwrap().write_all(b"a").unwrap();
    append(&bait.path("new")).unwrap().write_all(b"b").unwrap();
    assert_eq!(read(&bait.path("new"), 9).unwrap(), b"ab");
}

#[test]
fn a_link_is_replaced_and_not_followed() {
    let bait = Bait::new();
    let link = bait.link("config.toml");
    // Names that a writer with a fixed temporary name would open.
    for name in ["config.tmp", "config.toml.tmp", ".config.toml.tmp", ".new-.tmp"] {
        bait.link(name);
    }
    replace(&link, SHARED, b"mine").unwrap();
    assert!(!link.is_symlink());
    assert_eq!(read(&link, 9).unwrap(), b"mine");
    assert_eq!(bait.names().len(), 6);
    // Nor by the second way to put a file in a place.
    let link = bait.link("best");
    replace_by_link(&bait.path("config.toml"), &link).unwrap();
    assert!(!link.is_symlink());
    assert_eq!(bait.names().len(), 7);
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
fn what_a_user_names_is_replaced_and_keeps_its_permissions() {
    let bait = Bait::new();
    let link = bait.link("page.html");
    output(&link, b"page").unwrap();
    assert!(!link.is_symlink());
    let mode = |path: &Path| path.metadata().unwrap().mode() & 0o7777;
    std::fs::write(bait.path("plain"), "").unwrap();
    assert_eq!(mode(&link), mode(&bait.path("plain")));
    // A second name does not change with it.
    std::fs::hard_link(bait.path("other"), bait.path("second")).unwrap();
    output(&bait.path("second"), b"page").unwrap();
    // A page that nobody else may read stays one; no right to be somebody else is given on.
    std::fs::set_permissions(&link, Permissions::from_mode(0o4700)).unwrap();
    output(&link, b"newer").unwrap();
    assert_eq!(mode(&link), 0o700);
    assert_eq!(read(&link, 9).unwrap(), b"newer");
    // One that is not finished leaves the old one and nothing else.
    NewFile::output(&link).unwrap().write_all(b"half").unwrap();
    assert_eq!(read(&link, 9).unwrap(), b"newer");
    assert_eq!(bait.names(), ["other", "page.html", "plain", "second"]);
}

#[test]
fn a_device_or_a_pipe_that_a_user_names_is_written_into() {
    let bait = Bait::new();
    output(Path::new("/dev/null"), b"page").unwrap();
    assert!(!Path::new("/dev/null").metadata().unwrap().is_file());
    let path = bait.path("pipe");
    pipe(&path);
    let reader = path.clone();
    let reader = std::thread::spawn(move || std::fs::read(reader).unwrap());
    output(&path, b"page").unwrap();
    assert_eq!(reader.join().unwrap(), b"page");
    // An open file of this process, as a shell's `>(...)` and redirections name it.
    let file = create(&bait.path("open")).unwrap();
    let name = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    output(Path::new(&name), b"page").unwrap();
    assert_eq!(read(&bait.path("open"), 9).unwrap(), b"page");
    // A link to a pipe is somebody's, and replaced.
    symlink(&path, bait.path("link")).unwrap();
    output(&bait.path("link"), b"page").unwrap();
    assert!(bait.path("link").symlink_metadata().unwrap().is_file());
    assert_eq!(bait.names(), ["link", "open", "other", "pipe"]);
}

#[test]
fn a_folder_of_ours_is_no_link() {
    let bait = Bait::new();
    own_folder(&bait.path("a/b")).unwrap();
    own_folder(&bait.path("a/b")).unwrap();
    for target in ["a", "nowhere"] {
        let link = bait.path("link");
        let _ = std::fs::remove_file(&link);
        symlink(bait.path(target), &link).unwrap();
        let e = own_folder(&link).unwrap_err();
        assert!(e.to_string().contains("it is a link"), "{e}");
    }
    assert_eq!(bait.names(), ["a", "link", "other"]);
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
    // From another file system there is no second name, but a copy.
    let other = Path::new("/proc/self/cmdline");
    replace_by_link(other, &bait.path("best")).unwrap();
    let copied = read(&bait.path("best"), 1 << 20).unwrap();
    assert_eq!(copied, read(other, 1 << 20).unwrap());
    assert!(!copied.is_empty() && bait.names().len() == 4);
}

/// The result of work that must not wait for ever.
fn at_once<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> T {
    let (send, receive) = std::sync::mpsc::channel();
    std::thread::spawn(move || send.send(what()));
    let generous = std::time::Duration::from_secs(60);
    receive.recv_timeout(generous).expect("it waits")
}

#[test]
fn opening_a_pipe_does_not_wait_for_its_other_end() {
    let bait = Bait::new();
    let path = bait.path("pipe");
    pipe(&path);
    for way in [open, append, update] {
        let path = path.clone();
        assert!(at_once(move || way(&path)).is_err());
    }
}

#[test]
fn pipes_devices_and_folders_are_not_read() {
    let bait = Bait::new();
    pipe(&bait.path("pipe"));
    symlink("/dev/zero", bait.path("zero")).unwrap();
    symlink(bait.path("pipe"), bait.path("to_pipe")).unwrap();
    for name in ["pipe", "zero", "to_pipe", "."] {
        let path = bait.path(name);
        let e = at_once(move || read(&path, 100)).unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput, "{name}: {e}");
    }
    assert_eq!(read(&bait.link("link"), 100).unwrap(), b"precious");
    // To be appended to, a pipe has no reader; to be updated, it opens as a device does.
    let pipe = bait.path("pipe");
    let e = at_once(move || append(&pipe)).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::InvalidInput, "{e}");
    let null = Path::new("/dev/null");
    for opened in [update(&bait.path("pipe")), update(null), append(null)] {
        let e = opened.unwrap_err();
        assert_eq!(e.kind(), ErrorKind::InvalidInput, "{e}");
    }
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
    // One that has no end.
    let endless = at_most(7, std::io::repeat(1), &mut Vec::new());
    assert!(!endless.unwrap());
    // One that is larger than all memory, of which nothing is on the disk.
    let huge = File::create(bait.path("huge")).unwrap();
    huge.set_len(1 << 43).unwrap();
    let e = read(&bait.path("huge"), 7).unwrap_err();
    assert_eq!(e.kind(), ErrorKind::FileTooLarge, "{e}");
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
