//! Runs and files of strangers, by the real program: other things than files are refused at
//! once, forged numbers are refused before they are used, and a run that only begins can be
//! stopped.

use crate::common::forge::resealed;
use crate::common::process::{is_ostler, kill, parent_of, trainer_of, wait};
use crate::common::{Place, TASK, newest, text};
use safetensors::tensor::{Dtype, SafeTensors, TensorView};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

/// Runs a command that may neither wait for ever nor take all memory: of these two the
/// test would end, not the machine.
fn run(place: &Place, args: &[&str]) -> Output {
    let script = "ulimit -t 60 -v 8000000; exec timeout -s KILL 120 \"$0\" \"$@\"";
    Command::new("bash")
        .args(["-c", script, env!("CARGO_BIN_EXE_ostler")])
        .args(args)
        .current_dir(place.path(""))
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

/// It is refused, as wrong use or as a failure, with these words.
fn refused(place: &Place, args: &[&str], words: &[&str]) {
    let out = run(place, args);
    let said = text(&out);
    let code = out.status.code();
    assert!(matches!(code, Some(1 | 2)), "{args:?}: {:?}\n{said}", out.status);
    assert!(!said.contains("panicked"), "{args:?}: {said}");
    let found = words.iter().any(|word| said.contains(word));
    assert!(found, "{args:?}: {said} lacks one of {words:?}");
}

fn pipe(path: &Path) {
    let _ = std::fs::remove_file(path);
    assert!(Command::new("mkfifo").arg(path).status().unwrap().success());
}

const NO_FILE: &[&str] = &["not a file", "is not a run", "it has no"];

#[test]
fn a_configuration_that_is_no_file_is_refused_at_once() {
    let place = Place::new();
    pipe(&place.path("pipe.toml"));
    let _socket = std::os::unix::net::UnixListener::bind(place.path("socket.toml")).unwrap();
    for file in ["pipe.toml", "/dev/zero", "socket.toml", "/dev/stdin"] {
        // Standard input is /dev/null here.
        refused(&place, &["train", file], NO_FILE);
        refused(&place, &["check", file], NO_FILE);
    }
    refused(&place, &["train", "pipe.toml"], &["write it to a file"]);
    refused(&place, &["train", "robots"], &["it is a folder"]);
    // Listing goes on with the others.
    let out = run(&place, &["envs", "--dir", "."]);
    let said = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(out.status.success(), "{said}");
    assert!(said.contains("a small cart-pole"), "{said}");
    let line = said.lines().find(|l| l.contains("pipe.toml")).unwrap();
    assert!(line.contains("unusable: "), "{said}");
}

#[test]
fn what_is_no_file_in_a_run_is_refused_at_once() {
    let place = Place::new();
    let broken = (17..33).map(|s| format!("nan qpos[0] share=0.5 step={s}"));
    let mut args: Vec<String> =
        ["train", "pole.toml", "--quiet", "--out", "a"].map(String::from).to_vec();
    broken.for_each(|fault| args.extend(["--inject".into(), fault]));
    let args: Vec<&str> = args.iter().map(String::as_str).collect();
    place.run(&args);
    let reports = std::fs::read_dir(place.path("a/failure")).unwrap();
    let report = reports.map(|e| e.unwrap().path()).find(|p| p.join("start.safetensors").exists());
    let report = report.unwrap().join("");
    let report = report.strip_prefix(place.path("")).unwrap().to_owned();
    let report = report.to_str().unwrap().trim_end_matches('/').to_string();
    place.train("b", 2, &[]);
    let checkpoint = newest(&place.path("b"));
    let checkpoint = checkpoint.strip_prefix(place.path("")).unwrap();
    let more = "runner.max_iterations=5";
    let resume: &[&str] = &["train", "--resume", "b", "--quiet", more];
    let eval: &[&str] = &["eval", "b", "--episodes", "2"];
    let plot: &[&str] = &["plot", "b", "--png", "x.png"];
    let replay: &[&str] = &["replay", &report];
    let auto: &[&str] = &["train", "pole.toml", "--resume", "auto", "--out", "b", more];
    for (file, commands) in [
        ("b/config.toml".to_string(), &[resume, eval, auto][..]),
        ("b/metrics.jsonl".into(), &[resume, plot]),
        ("b/events.out.tfevents.0.ostler".into(), &[resume]),
        ("b/log.txt".into(), &[resume]),
        ("b/.lock".into(), &[resume]),
        (checkpoint.to_str().unwrap().into(), &[resume, eval]),
        (format!("{report}/report.json"), &[replay]),
        (format!("{report}/start.safetensors"), &[replay]),
        (format!("{report}/config.toml"), &[replay]),
    ] {
        let (path, kept) = (place.path(&file), place.path("kept"));
        std::fs::rename(&path, &kept).unwrap();
        for folder in [false, true] {
            match folder {
                true => std::fs::create_dir(&path).unwrap(),
                false => pipe(&path),
            }
            for command in commands {
                refused(
                    &place,
                    command,
                    &[
                        "not a file",
                        "directory",
                        "no config.toml",
                        "no metrics",
                        "cannot",
                        "already holds a run",
                        "no such",
                    ],
                );
            }
            match folder {
                true => std::fs::remove_dir(&path).unwrap(),
                false => std::fs::remove_file(&path).unwrap(),
            }
        }
        std::fs::rename(&kept, &path).unwrap();
    }
    // The file is named, not its folder alone.
    for name in ["metrics.jsonl", "log.txt"] {
        let (path, kept) = (place.path(&format!("b/{name}")), place.path("kept"));
        std::fs::rename(&path, &kept).unwrap();
        pipe(&path);
        refused(&place, resume, &[&format!("{name}: it is a device, a pipe")]);
        std::fs::rename(&kept, &path).unwrap();
    }
    // A report of more environments than its run had.
    let start = place.path(&format!("{report}/start.safetensors"));
    let whole = std::fs::read(&start).unwrap();
    let actions = vec![0; 4 * 100_000];
    let actions = TensorView::new(Dtype::F32, vec![1, 100_000, 1], &actions).unwrap();
    let environments = SafeTensors::deserialize(&whole).unwrap();
    let environments = environments.tensor("environments").unwrap();
    let parts = [("actions", actions), ("environments", environments)];
    std::fs::write(&start, safetensors::serialize(parts, None).unwrap()).unwrap();
    refused(&place, replay, &["it is of 100000 environments, its run had 8"]);
    // A file that a run only keeps is no reason to refuse it; the run looks there for the goal
    // that another reached.
    pipe(&place.path("b/meta.json"));
    pipe(&place.path("b/curve.png"));
    let goal = "runner.stop_at_return=1000";
    let again = [auto, &["--quiet", goal]].concat();
    let out = run(&place, &again);
    assert!(out.status.success(), "{}", text(&out));
    assert!(place.path("b/meta.json").is_file() && place.path("b/curve.png").is_file());
    assert_eq!(crate::common::metrics(&place.path("b")).len(), 5);
}

/// Changes the JSON of a checkpoint and puts its checksum right.
fn forge(file: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let bytes = std::fs::read(file).unwrap();
    let (_, header) = SafeTensors::read_metadata(&bytes).unwrap();
    let json = &header.metadata().as_ref().unwrap()["ostler"];
    let mut json: serde_json::Value = serde_json::from_str(json).unwrap();
    change(&mut json);
    let forged = resealed(&bytes, &json.to_string());
    std::fs::write(file, forged).unwrap();
}

#[test]
fn a_checkpoint_of_more_environments_than_its_run_had_is_refused() {
    let place = Place::new();
    let run = place.train("a", 2, &["runner.keep_checkpoints=1"]);
    let file = newest(&run);
    let whole = std::fs::read(&file).unwrap();
    let resume = ["train", "--resume", "a", "--quiet", "runner.max_iterations=3"];
    // Forging itself is no damage.
    forge(&file, |_| ());
    place.ok(&resume);
    let file = newest(&run);
    let resume = ["train", "--resume", "a", "--quiet", "runner.max_iterations=9"];
    for (number, words) in [
        (9_u64, "it is of 9 environments, but its run had 8 at the most"),
        (100_000_000, "of 100000000 environments"),
        (u64::MAX, "of 18446744073709551615 environments"),
        (0, "its environments cannot be"),
    ] {
        forge(&file, |json| json["task"]["num_envs"] = number.into());
        refused(&place, &resume, &[words]);
    }
    assert!(whole.len() > 1000);
}

#[test]
fn networks_that_a_checkpoint_cannot_hold_are_refused_before_they_are_made() {
    let place = Place::new();
    let run = place.train("a", 1, &[]);
    let config = run.join("config.toml");
    let text = std::fs::read_to_string(&config).unwrap();
    for key in ["actor", "critic"] {
        let (head, tail) = text.split_once(&format!("[{key}]")).unwrap();
        let (before, after) = tail.split_once("hidden_dims = [").unwrap();
        let (_, after) = after.split_once(']').unwrap();
        let wide = format!("{head}[{key}]{before}hidden_dims = [4096, 4096]{after}");
        std::fs::write(&config, wide).unwrap();
        let words = format!("{key}.hidden_dims = [4096, 4096]");
        refused(&place, &["eval", "a", "--episodes", "2"], &[&words]);
    }
}

/// A commit of 2^62 transitions, which one signal would not end.
#[test]
fn a_forged_memory_is_set_aside_and_said() {
    let (head, tail) = TASK.split_once("[runner]").unwrap();
    let more = "
[replay]
capacity = 300
storage = \"memmap\"
[sac]
batch_size = 32
num_updates = 1
learning_starts = 200
[runner]
algorithm = \"sac\"";
    let place = Place::with(&format!("{head}{more}{tail}"));
    let trained = place.train("a", 3, &[]);
    let rows = std::fs::File::options().write(true).open(trained.join("replay/rows.bin")).unwrap();
    for sequence in [1_000_000_u64, 1_000_001] {
        let numbers = [sequence, 0, 1 << 62, 1 << 62];
        let bytes: Vec<u8> = numbers.iter().flat_map(|n| n.to_le_bytes()).collect();
        let check = crc32c::crc32c(&bytes).to_le_bytes();
        let slot = 8192 + 512 * (sequence % 2);
        rows.write_all_at(&[&bytes[..], &check].concat(), slot).unwrap();
    }
    let resume = ["train", "--resume", "a", "--quiet", "runner.max_iterations=5"];
    // It was refused, which made the run unresumable for ever.
    let out = run(&place, &resume);
    let said = text(&out);
    assert_eq!(out.status.code(), Some(0), "{said}");
    for words in [
        "both its commits are damaged",
        "the replay buffer begins empty",
        "does not repeat bit for bit",
    ] {
        assert!(said.contains(words), "{words}\n{said}");
    }
    assert!(place.path("a/replay/rows.damaged").is_file());
}

/// Whether a process takes a signal itself.
fn takes(pid: i32, signal: i32) -> Option<()> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let caught = status.lines().find_map(|l| l.strip_prefix("SigCgt:"))?;
    let caught = u64::from_str_radix(caught.trim(), 16).ok()?;
    (caught >> (signal - 1) & 1 == 1).then_some(())
}

/// A run with so many environments that it begins for a while.
fn beginning(place: &Place, more: &[&str]) -> Child {
    std::fs::create_dir(place.path("tmp")).unwrap();
    let args = ["train", "pole.toml", "--out", "a"];
    place
        .ostler(&[&args, more].concat())
        .env("TMPDIR", place.path("tmp"))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn left(folder: PathBuf) -> Vec<std::ffi::OsString> {
    let all = std::fs::read_dir(folder).unwrap();
    all.map(|e| e.unwrap().file_name()).collect()
}

#[test]
fn one_signal_ends_a_run_that_only_begins_and_nothing_is_left() {
    for (supervise, signal) in [(false, libc::SIGTERM), (true, libc::SIGINT)] {
        let place = Place::new();
        let supervise_it = format!("runner.supervise={supervise}");
        let more = ["env.num_envs=100000", &supervise_it];
        let child = beginning(&place, &more);
        let pid = child.id() as i32;
        let trainer = match supervise {
            true => wait("the training process", || trainer_of(pid)),
            false => pid,
        };
        wait("its handlers", || takes(trainer, signal));
        // Its environments are being made: behind all places where it looks for a signal
        // itself, before its folder.
        let size = || std::fs::read_to_string(format!("/proc/{trainer}/statm")).ok();
        let pages = || size()?.split(' ').nth(1)?.parse::<u64>().ok();
        wait("its environments", || (pages()? > 64_000).then_some(()));
        kill(pid, signal);
        let out = child.wait_with_output().unwrap();
        assert_eq!(out.status.code(), Some(130), "{}", text(&out));
        assert!(text(&out).contains("nothing was started"), "{}", text(&out));
        assert!(!place.path("a").exists());
        assert!(left(place.path("tmp")).is_empty());
    }
}

#[test]
fn one_signal_ends_the_trainings_that_measure_too() {
    let place = Place::new();
    let child = beginning(&place, &["env.num_envs=auto", "runner.num_steps_per_env=200"]);
    let pid = child.id() as i32;
    let small = wait("a small training", || trainer_of(pid).filter(|p| is_ostler(*p)));
    assert_eq!(left(place.path("tmp")).len(), 1);
    kill(pid, libc::SIGTERM);
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130), "{}", text(&out));
    assert!(text(&out).contains("stopped by a signal"), "{}", text(&out));
    assert_eq!(parent_of(small), None, "it lives on");
    assert!(left(place.path("tmp")).is_empty() && !place.path("a").exists());
}
