use super::*;
use std::os::unix::fs::symlink;

/// A folder with a file `precious` that no run may change.
struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Self {
        let place = Self(tempfile::tempdir().unwrap());
        std::fs::write(place.path("precious"), "mine").unwrap();
        std::fs::create_dir(place.path("run")).unwrap();
        place
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn unharmed(&self) {
        let text = std::fs::read_to_string(self.path("precious")).unwrap();
        assert_eq!(text, "mine");
    }

    fn config(&self) -> Config {
        let mut config = Config { name: "walk".into(), ..Config::default() };
        config.log.dir = self.path("runs").display().to_string();
        config
    }
}

fn refusal(result: Result<RunDir, RunError>) -> String {
    result.expect_err("it was accepted").to_string()
}

#[test]
fn a_run_with_links_in_it_is_not_opened() {
    for name in ["config.tmp", "log.txt", ".lock", "checkpoints", "robot/walk.xml"] {
        let place = Place::new();
        std::fs::create_dir(place.path("run/robot")).unwrap();
        symlink(place.path("precious"), place.path("run").join(name)).unwrap();
        let why = refusal(RunDir::open(&place.path("run")));
        assert!(why.contains(name) && why.contains("link"), "{why}");
        place.unharmed();
    }
    let place = Place::new();
    RunDir::open(&place.path("run")).unwrap();
    // The way there may be one, as `latest` is.
    symlink("run", place.path("latest")).unwrap();
    RunDir::open(&place.path("latest")).unwrap();
}

#[test]
fn a_new_run_does_not_write_through_links_that_lie_where_it_goes() {
    for name in [
        "log.txt",
        "metrics.jsonl",
        "meta.json",
        "robot",
        "checkpoints",
        "failure",
        "failure/iter_00000001_faults",
        "replay",
        "replay/rows.bin",
        ".lock",
    ] {
        for target in ["precious", "nowhere"] {
            let place = Place::new();
            let link = place.path("run").join(name);
            std::fs::create_dir_all(link.parent().unwrap()).unwrap();
            symlink(place.path(target), link).unwrap();
            refusal(RunDir::create(&place.config(), Some(&place.path("run"))));
            place.unharmed();
            assert!(!place.path("nowhere").exists(), "{name}");
        }
    }
}

#[test]
fn a_start_that_fails_leaves_what_was_there() {
    let place = Place::new();
    let config = place.config();
    let make = |out: Option<&Path>| {
        let dir = RunDir::create(&config, out).unwrap();
        std::fs::write(dir.path().join("config.tmp"), "half").unwrap();
        std::fs::write(dir.checkpoints().join("x"), "").unwrap();
        dir
    };
    // Of a folder of its own nothing, and nothing leads there.
    let own = make(None).path().to_owned();
    assert!(!own.exists() && !place.path("runs/walk/latest").exists());
    let out = place.path("out");
    drop(make(Some(&out)));
    assert!(!out.exists());
    // Another's things stay, as do those of a run that was refused.
    std::fs::create_dir(&out).unwrap();
    std::fs::write(out.join("notes"), "").unwrap();
    let names = || {
        let mut names: Vec<_> =
            std::fs::read_dir(&out).unwrap().map(|e| e.unwrap().file_name()).collect();
        names.sort();
        names
    };
    drop(make(Some(&out)));
    assert_eq!(names(), ["notes"]);
    std::fs::write(out.join("config.toml"), "").unwrap();
    refusal(RunDir::create(&config, Some(&out)));
    assert_eq!(names(), ["config.toml", "notes"]);
    std::fs::remove_file(out.join("config.toml")).unwrap();
    // A run that has begun stays.
    let mut dir = make(Some(&out));
    dir.begun(&config);
    drop(dir);
    assert_eq!(names(), [".lock", "checkpoints", "config.tmp", "notes"]);
}

#[test]
fn what_is_called_latest_is_replaced_only_where_it_is_a_link_to_a_run() {
    let place = Place::new();
    let (latest, config) = (place.path("runs/walk/latest"), place.config());
    for _ in 0..2 {
        let mut dir = RunDir::create(&config, None).unwrap();
        dir.begun(&config);
        let newest = dir.path().file_name().unwrap().to_owned();
        assert_eq!(std::fs::read_link(&latest).unwrap(), Path::new(&newest));
    }
    std::fs::remove_file(&latest).unwrap();
    std::fs::write(&latest, "a file").unwrap();
    RunDir::create(&config, None).unwrap().begun(&config);
    assert_eq!(std::fs::read_to_string(&latest).unwrap(), "a file");

    std::fs::remove_file(&latest).unwrap();
    symlink(place.path("precious"), &latest).unwrap();
    RunDir::create(&config, None).unwrap().begun(&config);
    assert_eq!(std::fs::read_link(&latest).unwrap(), place.path("precious"));
}
