//! Bad luck of the kind nobody plans for: full disks, learning that falls apart, worlds
//! that explode, readers that go away. The program says so and loses nothing.

use crate::common::{Place, assert_same_bits, metrics, text};
use crate::support::disk;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

#[test]
fn a_log_that_is_full_loses_records_but_no_bytes_of_the_others() {
    let place = Place::new();
    // Checkpoints of this task take less than 128 KiB, 300 iterations of metrics more.
    let out = place.limited(
        "-f 128",
        "train pole.toml --quiet --out a runner.max_iterations=300 log.curve=false",
    );
    let err = text(&out);
    assert_eq!(out.status.code(), Some(0), "{err}");
    assert_eq!(err.matches("cannot write metrics").count(), 1, "{err}");
    let run = place.path("a");
    let whole = metrics(&run);
    assert!((10..300).contains(&whole.len()), "{}", whole.len());
    // The log opens again where it ended: no half line hides what follows.
    place.ok(&["train", "--resume", "a", "--quiet", "runner.max_iterations=301"]);
    let lines = metrics(&run);
    assert_eq!(lines.len(), whole.len() + 1);
    assert_eq!(lines.last().unwrap()["iteration"], 301);
}

#[test]
fn metrics_that_are_gone_are_told_and_a_stack_that_is_too_small_is_refused() {
    let place = Place::new();
    let run = place.train("a", 3, &[]);
    std::fs::remove_file(run.join("metrics.jsonl")).unwrap();
    let out = place.run(&["train", "--resume", "a", "--quiet", "runner.max_iterations=4"]);
    let said = std::fs::read_to_string(run.join("log.txt")).unwrap();
    assert!(out.status.success(), "{}", text(&out));
    assert!(said.contains("what was logged of iterations up to 3 is lost"), "{said}");
    assert_eq!(metrics(&run).len(), 1);
    let out = place.limited("-s 256", "train pole.toml --quiet --out b");
    let err = text(&out);
    assert_eq!(out.status.code(), Some(1), "{err}");
    assert!(err.contains("256 KiB") && err.contains("ulimit -s 8192"), "{err}");
}

#[test]
fn a_checkpoint_that_cannot_be_written_stops_nothing_and_the_last_is_rescued() {
    let place = Place::new();
    let out = place.limited(
        "-f 8",
        "train pole.toml --quiet --out a runner.max_iterations=4 runner.save_interval=1 log.curve=false",
    );
    let err = text(&out);
    assert_eq!(out.status.code(), Some(1), "{err}");
    assert!(err.contains("the run goes on"), "{err}");
    assert!(err.contains("cannot write the checkpoint"), "{err}");
    // Since there are reports, the last line names both.
    assert!(err.contains("the log a/log.txt"), "{err}");
    assert_eq!(metrics(&place.path("a")).len(), 4, "all iterations were done");
    // No torn file is left behind.
    let left = std::fs::read_dir(place.path("a/checkpoints")).unwrap().count();
    assert_eq!(left, 0);
    let again = place.fails(2, &["train", "--resume", "a"]);
    assert!(again.contains("has no checkpoint"), "{again}");
    let again = place.fails(2, &["train", "pole.toml", "--out", "a"]);
    assert!(again.contains("remove the folder"), "{again}");
}

#[test]
fn a_rescued_checkpoint_goes_on() {
    let place = Place::new();
    // A file lies where the folder of checkpoints was: a fault of this folder alone.
    let mut child = place
        .ostler(&["train", "pole.toml", "--quiet", "--out", "a", "runner.max_iterations=1000000"])
        .env("TMPDIR", place.0.path())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let log = place.path("a/metrics.jsonl");
    while std::fs::read_to_string(&log).map_or(0, |t| t.lines().count()) < 3 {
        assert!(child.try_wait().unwrap().is_none(), "ended early");
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    std::fs::remove_dir_all(place.path("a/checkpoints")).unwrap();
    std::fs::write(place.path("a/checkpoints"), "").unwrap();
    // SAFETY: kill takes two numbers; the child is ours and not yet waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGTERM) };
    let out = child.wait_with_output().unwrap();
    let err = text(&out);
    assert_eq!(out.status.code(), Some(1), "{err}");
    let rescued = err
        .lines()
        .find_map(|l| l.strip_prefix("the last checkpoint is "))
        .and_then(|l| l.split(" instead").next())
        .map(PathBuf::from)
        .unwrap();
    let home = place.path("a/checkpoints");
    std::fs::remove_file(&home).unwrap();
    std::fs::create_dir(&home).unwrap();
    std::fs::rename(&rescued, home.join(rescued.file_name().unwrap())).unwrap();
    let done = metrics(&place.path("a")).len();
    let n = format!("runner.max_iterations={}", done + 1);
    place.ok(&["train", "--resume", "a", "--quiet", &n]);
    assert_eq!(metrics(&place.path("a")).len(), done + 1);
}

#[test]
fn learning_that_falls_apart_is_said_and_ends_the_training() {
    let place = Place::new();
    let err = place.fails(
        1,
        &[
            "train",
            "pole.toml",
            "--out",
            "a",
            "runner.max_iterations=100",
            "ppo.learning_rate=1e30",
            "ppo.schedule=fixed",
        ],
    );
    assert!(err.contains("minibatches were skipped"), "{err}");
    // It goes back to the weights it began with, again and again.
    assert!(err.contains("rolled back 5 times and failed again"), "{err}");
    assert!(err.contains("lower ppo.learning_rate"), "{err}");
    assert!(!err.contains('\u{1b}'), "no colours in a pipe\n{err}");
    assert!((10..30).contains(&metrics(&place.path("a")).len()));
}

#[test]
fn worlds_that_break_are_counted_and_said_once() {
    let place = Place::new();
    let out = place.run(&["train", "pole.toml", "--quiet", "--out", "a", "sim.max_speed=1e-3"]);
    let err = text(&out);
    assert_eq!(out.status.code(), Some(0), "{err}");
    assert_eq!(err.matches("environments broke").count(), 1, "{err}");
    assert!(err.contains("speed"), "{err}");
    let broken = metrics(&place.path("a"))[0]["Guard/speed"].as_f64();
    assert!(broken.unwrap() > 1.0);
}

#[test]
fn more_memory_than_there_is_is_refused_before_it_is_taken() {
    let place = Place::new();
    let err = place.fails(
        2,
        &[
            "train",
            "pole.toml",
            "env.num_envs=1024",
            "runner.num_steps_per_env=1048576",
            // Else the run goes on with fewer environments: tests/run/back_off.rs.
            "back_off.factor=1",
        ],
    );
    assert!(err.contains("MiB are free"), "{err}");
    let err =
        place.fails(2, &["train", "pole.toml", "actor.hidden_dims=[65536,65536,65536,65536]"]);
    assert!(err.contains("MiB are free"), "{err}");
    assert!(!place.path("runs").exists(), "nothing is left behind");
}

/// Below every limit with which a run does its iterations, by two mebibytes.
#[test]
fn a_picture_for_which_there_is_no_memory_costs_the_picture_alone() {
    let place = Place::new();
    let run = |kib: u64, more: &str| {
        let _ = std::fs::remove_dir_all(place.path("a"));
        let args =
            format!("train pole.toml --out a runner.supervise=false sim.specialize=off {more}");
        place.limited(&format!("-d {kib}"), &args)
    };
    let enough = |kib: u64| run(kib, "log.curve=false").status.success();
    let (mut low, mut high) = (16 << 10, 512 << 10);
    assert!(enough(high));
    while high - low > 1024 {
        let middle = (low + high) / 2;
        match enough(middle) {
            true => high = middle,
            false => low = middle,
        }
    }
    let mut without = 0;
    for kib in (high + 2048..).step_by(2048).take(16) {
        // Not with each the reserve finds room, with which others do.
        if !enough(kib) {
            continue;
        }
        let out = run(kib, "log.curve=true");
        let err = text(&out);
        assert_eq!(out.status.code(), Some(0), "{kib} KiB\n{err}");
        assert_eq!(metrics(&place.path("a")).len(), 3, "{kib} KiB");
        let drawn = place.path("a/curve.png").exists();
        assert_eq!(
            err.matches("no learning curve").count(),
            usize::from(!drawn),
            "{kib} KiB\n{err}"
        );
        assert!(drawn || err.contains("ostler plot a draws it"), "{err}");
        without += u64::from(!drawn);
    }
    assert!((1..16).contains(&without), "some limits are in between: {without}");
}

/// One bit of any file of a run: it goes on, from an older checkpoint where there is one, or says
/// which file it cannot do without; and it says what it lost.
#[test]
fn one_bit_of_any_file_of_a_run_ends_in_no_run_that_cannot_go_on() {
    let place = Place::new();
    let run = place.train("a", 3, &["runner.save_interval=1", "log.curve=false"]);
    let files: Vec<PathBuf> = walk(&run);
    assert!(files.len() > 8, "{files:?}");
    // xorshift64: Marsaglia 2003.
    let mut state = 0x9e37_79b9_7f4a_7c15_u64;
    let mut random = |below: usize| {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        (state % below.max(1) as u64) as usize
    };
    for file in files {
        let name = file.strip_prefix(&run).unwrap().to_str().unwrap().to_string();
        let whole = std::fs::read(&file).unwrap();
        // One bit, and a part that is lost.
        for cut in [false, true] {
            let _ = std::fs::remove_dir_all(place.path("b"));
            let copied =
                Command::new("cp").args(["-a", "a", "b"]).current_dir(place.0.path()).status();
            assert!(copied.unwrap().success());
            let mut bytes = whole.clone();
            match cut {
                true => bytes.truncate(random(whole.len())),
                false if bytes.is_empty() => continue,
                false => bytes[random(whole.len())] ^= 1 << random(7),
            }
            std::fs::write(place.path("b").join(&name), bytes).unwrap();
            let out = place.run(&[
                "train",
                "--resume",
                "b",
                "runner.max_iterations=4",
                "log.curve=false",
            ]);
            let err = text(&out);
            let what = format!("{name}, cut: {cut}\n{err}");
            assert!(!err.contains("panicked"), "{what}");
            match out.status.code() {
                Some(0) => {}
                Some(2) => {
                    assert!(name.starts_with("robot") && err.contains("the original"), "{what}")
                }
                _ => panic!("{what}"),
            }
            if name.contains("iter_00000003") {
                assert!(err.contains("an earlier one is taken"), "{what}");
            }
            if name.starts_with("robot") && out.status.success() {
                assert!(
                    err.contains("are not those that the newest checkpoint was trained"),
                    "{what}"
                );
            }
            if name == "meta.json" && cut {
                assert!(err.contains("meta.damaged"), "{what}");
            }
        }
    }
}

/// The same for the configuration, whose every bit may be another number.
#[test]
fn a_configuration_that_was_changed_is_said_and_one_that_is_damaged_comes_back() {
    let place = Place::new();
    let run = place.train("a", 1, &[]);
    let own = run.join("config.toml");
    let whole = std::fs::read_to_string(&own).unwrap();
    let resume = |n: u64| {
        let n = format!("runner.max_iterations={n}");
        let out = place.run(&["train", "--resume", "a", &n]);
        assert_eq!(out.status.code(), Some(0), "{}", text(&out));
        text(&out)
    };
    assert!(!resume(2).contains("checkpoint was trained with"));
    let now = std::fs::read_to_string(&own).unwrap();
    std::fs::write(&own, now.replace("gamma = 0.99\n", "gamma = 0.98\n")).unwrap();
    let err = resume(3);
    assert!(
        err.contains("config.toml is not what the newest checkpoint was trained with"),
        "{err}"
    );
    assert!(err.contains("ppo.gamma: was 0.99, is 0.98"), "{err}");
    for damaged in [whole.replace("gamma", "gamla"), whole[..1000].into(), String::new()] {
        std::fs::write(&own, &damaged).unwrap();
        let n = metrics(&run).len() as u64 + 1;
        let err = resume(n);
        assert!(err.contains("the newest checkpoint's is in its place"), "{err}");
        let aside = std::fs::read_to_string(run.join("config.damaged")).unwrap();
        assert_eq!(aside, damaged);
    }
}

/// Regular files below a folder.
fn walk(folder: &Path) -> Vec<PathBuf> {
    let mut all: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    all.sort();
    all.into_iter().flat_map(|path| if path.is_dir() { walk(&path) } else { vec![path] }).collect()
}

#[test]
fn readers_that_go_away_stop_nothing() {
    let place = Place::new();
    let program = env!("CARGO_BIN_EXE_ostler");
    for command in [
        "check pole.toml",
        "envs --dir .",
        "train pole.toml --out a",
        "eval a --episodes 2 --json",
        "play a --episodes 2",
        "bench pole.toml --seconds 0.05",
    ] {
        let script = format!("set -o pipefail; '{program}' {command} 2>err | true; cat err >&2");
        let out = Command::new("bash")
            .args(["-c", &script])
            .current_dir(place.0.path())
            .output()
            .unwrap();
        let err = text(&out);
        assert!(!err.contains("panicked"), "{command}\n{err}");
        assert!(!err.contains("Broken pipe"), "{command}\n{err}");
    }
    assert_eq!(metrics(&place.path("a")).len(), 3);
}

#[test]
fn a_folder_with_other_things_keeps_them() {
    let place = Place::new();
    std::fs::create_dir(place.path("a")).unwrap();
    std::fs::write(place.path("a/notes.txt"), "mine").unwrap();
    place.train("a", 1, &[]);
    let notes = std::fs::read_to_string(place.path("a/notes.txt")).unwrap();
    assert_eq!(notes, "mine");
    std::fs::create_dir(place.path("b")).unwrap();
    std::fs::write(place.path("b/metrics.jsonl"), "mine").unwrap();
    let err = place.fails(2, &["train", "pole.toml", "--out", "b"]);
    assert!(err.contains("metrics.jsonl that this run would overwrite"), "{err}");
    let kept = std::fs::read_to_string(place.path("b/metrics.jsonl")).unwrap();
    assert_eq!(kept, "mine");
    let err = place.fails(2, &["train", "pole.toml", "--out", "pole.toml"]);
    assert!(err.contains("a file is in the way"), "{err}");
}

#[test]
fn every_session_of_a_run_is_on_record() {
    let place = Place::new();
    let run = place.path("a");
    let train = ["train", "pole.toml", "--quiet", "--out", "a", "--seed", "9"];
    // Not by the fork server: a process's own words are on record.
    let out = place.ostler(&train).arg("runner.max_iterations=1").output().unwrap();
    assert!(out.status.success(), "{}", text(&out));
    for n in ["runner.max_iterations=2", "runner.max_iterations=3"] {
        place.ok(&["train", "--resume", "a", "--quiet", n]);
    }
    let read = std::fs::read(run.join("meta.json")).unwrap();
    let meta: serde_json::Value = serde_json::from_slice(&read).unwrap();
    assert_eq!(meta["libtorch"].as_str().unwrap().split('.').count(), 3);
    assert_eq!(meta["resumed_at_iteration"], 2);
    let earlier = meta["earlier_sessions"].as_array().unwrap();
    assert_eq!(earlier.len(), 2);
    let first = earlier[0]["command_line"].as_array().unwrap();
    assert!(first.iter().any(|a| a == "--seed"), "{first:?}");
    assert_eq!(earlier[1]["resumed_at_iteration"], 1);
}

/// Runs a script in which `small` is a file system of its own of so many KiB, gone when
/// the script ends; `$OSTLER` is the program. `None` after saying that the calling test
/// is skipped, where nothing can be mounted.
fn with_small_disk(place: &Place, kib: u32, script: &str) -> Option<Output> {
    let unshare = disk::unshare()?;
    let small = place.path("small");
    std::fs::create_dir(&small).unwrap();
    let mount = format!("mount -t tmpfs -o size={kib}k tmpfs '{}'", small.display());
    let script = format!("{mount} || exit 7; {script}");
    let mut command = Command::new(unshare[0]);
    command.args(&unshare[1..]).args(["bash", "-c", &script]);
    command.current_dir(place.0.path());
    command.env("OSTLER", env!("CARGO_BIN_EXE_ostler"));
    Some(command.env("TMPDIR", place.0.path()).output().unwrap())
}

#[test]
fn a_disk_that_another_program_fills_ends_the_run_before_it_is_full() {
    let place = Place::new();
    // 64 MiB, of which another program takes 40 once there are checkpoints.
    let script = "$OSTLER train pole.toml --quiet --out small/a runner.max_iterations=1000000 \
        runner.save_interval=1 memory.disk_warn_mib=40 memory.disk_act_mib=32 \
        memory.interval_s=0.05 memory.act_after_s=0.2 & \
        until [ -e small/a/checkpoints/iter_00000003.safetensors ]; do sleep 0.05; done; \
        head -c 40M /dev/zero > small/ballast; wait $!; code=$?; \
        cp -r small/a kept; exit $code";
    let Some(out) = with_small_disk(&place, 64 << 10, script) else {
        return;
    };
    let err = text(&out);
    assert_eq!(out.status.code(), Some(74), "{err}");
    assert!(err.contains("--resume small/a"), "{err}");
    let run = place.path("kept");
    let done = metrics(&run).last().unwrap()["iteration"].as_u64().unwrap();
    let n = format!("runner.max_iterations={}", done + 2);
    place.ok(&["train", "--resume", "kept", "--quiet", &n]);
    assert_same_bits(&place.train("whole", done + 2, &[]), &run);
}

#[test]
fn a_disk_that_is_full_costs_records_and_no_training() {
    let place = Place::new();
    // Two checkpoints and some lines fit. The watch would end the run before the disk is
    // full: it never acts here.
    let script = "$OSTLER train pole.toml --quiet --out small/a log.curve=false memory.disk_act_mib=0 \
        runner.max_iterations=300 runner.save_interval=20; code=$?; \
        cp -r small/a kept; exit $code";
    let Some(out) = with_small_disk(&place, 200, script) else {
        return;
    };
    let err = text(&out);
    assert_eq!(out.status.code(), Some(1), "{err}");
    assert!(err.contains("No space left on device"), "{err}");
    assert!(err.contains("the training goes on"), "{err}");
    // The last one is elsewhere and whole, those on the disk are whole.
    let rescued = err.split("the last checkpoint is ").nth(1).unwrap();
    let rescued = rescued.split(" instead").next().unwrap();
    assert!(rescued.ends_with("iter_00000300.safetensors"), "{rescued}");
    place.ok(&["train", "--resume", "kept", "--quiet", "runner.max_iterations=301"]);
    std::fs::rename(rescued, place.path("kept/checkpoints/iter_00000300.safetensors")).unwrap();
    place.train("whole", 301, &["log.curve=false"]);
    place.ok(&[
        "train",
        "--resume",
        "kept/checkpoints/iter_00000300.safetensors",
        "--quiet",
        "runner.max_iterations=301",
    ]);
    assert_same_bits(&place.path("whole"), &place.path("kept"));
}
