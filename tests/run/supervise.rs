//! The process that watches over a run: real children, real signals.

use crate::common::process::{kill, parent_of, trainer_of, wait};
use crate::common::{Place, assert_same_bits, metrics, newest, text};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

pub(crate) fn start(place: &Place, more: &[&str]) -> Child {
    let args = ["train", "pole.toml", "--out", "a", "runner.save_interval=1"];
    place
        .ostler(&[&args, more].concat())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap()
}

fn id(child: &Child) -> i32 {
    child.id() as i32
}

/// Iterations of which `run` has a record.
pub(crate) fn done(run: &Path) -> usize {
    std::fs::read_to_string(run.join("metrics.jsonl")).map_or(0, |t| t.lines().count())
}

fn checkpoints(run: &Path) -> usize {
    std::fs::read_dir(run.join("checkpoints")).map_or(0, |d| {
        d.filter(|e| {
            let name = e.as_ref().unwrap().file_name();
            name.to_str().unwrap().starts_with("iter_")
        })
        .count()
    })
}

/// Waits until the run goes beyond iteration `n` and can be resumed; its process.
fn beyond(place: &Place, child: &Child, n: usize) -> i32 {
    let run = place.path("a");
    wait("iterations", || (done(&run) > n && checkpoints(&run) > 0).then_some(()));
    wait("the training process", || trainer_of(id(child)))
}

pub(crate) fn finish(child: Child) -> Output {
    child.wait_with_output().unwrap()
}

/// Slow enough to be killed in the middle, short enough to end.
const MIDDLE: [&str; 2] = ["runner.max_iterations=60", "env.num_envs=128"];

#[test]
fn a_training_that_is_killed_ends_with_the_bits_of_one_that_was_not() {
    let place = Place::new();
    let child = start(&place, &MIDDLE);
    let mut before = 0;
    for _ in 0..2 {
        let trainer = beyond(&place, &child, before + 1);
        kill(trainer, libc::SIGKILL);
        before = done(&place.path("a"));
        wait("its end", || parent_of(trainer).is_none().then_some(()));
    }
    let out = finish(child);
    let err = text(&out);
    assert_eq!(out.status.code(), Some(0), "{err}");
    assert_eq!(
        err.matches("the training process died of SIGKILL; the run goes on from").count(),
        2,
        "{err}"
    );
    let log = std::fs::read_to_string(place.path("a/log.txt")).unwrap();
    assert!(log.contains("supervisor: the training process died of SIGKILL"), "{log}");
    let whole = place.train("whole", 60, &["env.num_envs=128"]);
    assert_same_bits(&whole, &place.path("a"));
    // Every iteration once, none twice.
    let iterations = |run: &Path| -> Vec<u64> {
        let all = metrics(run);
        all.iter().map(|m| m["iteration"].as_u64().unwrap()).collect()
    };
    assert_eq!(iterations(&place.path("a")), iterations(&whole));
}

#[test]
fn nothing_is_left_when_the_supervisor_is_killed() {
    let place = Place::new();
    let child = start(&place, &["runner.max_iterations=1000000"]);
    let trainer = beyond(&place, &child, 1);
    let mut child = child;
    kill(id(&child), libc::SIGKILL);
    // Not its output: a run that is left would hold the pipe open.
    assert_eq!(child.wait().unwrap().signal(), Some(libc::SIGKILL));
    wait("the end of the training process", || parent_of(trainer).is_none().then_some(()));
    // Neither lock nor process is in the way of the next one.
    let n = format!("runner.max_iterations={}", done(&place.path("a")) + 1);
    place.ok(&["train", "--resume", "a", "--quiet", &n]);
}

#[test]
fn signals_to_the_supervisor_save_and_stop_the_training() {
    // Under `nohup` SIGHUP is ignored, and a run that inherits that goes on.
    // SAFETY: signal takes two numbers; nothing here handles SIGHUP.
    unsafe { libc::signal(libc::SIGHUP, libc::SIG_DFL) };
    for signal in [libc::SIGTERM, libc::SIGINT, libc::SIGHUP] {
        let place = Place::new();
        let child = start(&place, &["runner.max_iterations=1000000"]);
        let trainer = beyond(&place, &child, 1);
        kill(id(&child), signal);
        let out = finish(child);
        assert_eq!(out.status.code(), Some(130), "{}", text(&out));
        assert!(parent_of(trainer).is_none());
        let run = place.path("a");
        let last = format!("iter_{:08}.safetensors", done(&run));
        assert!(newest(&run).ends_with(last));
        assert!(!text(&out).contains("goes on from"), "{}", text(&out));
    }
}

#[test]
fn a_signal_for_both_processes_counts_once() {
    // As from a terminal or from SLURM: both get it, and one passes it on.
    let place = Place::new();
    let more = [
        // Only an orderly end writes a checkpoint.
        "runner.save_interval=0",
        "runner.max_iterations=1000000",
        // Long iterations: a second wish would end the run in the middle of one.
        "env.num_envs=2048",
        "runner.num_steps_per_env=64",
    ];
    let child = start(&place, &more);
    let run = place.path("a");
    let trainer = wait("the training process", || trainer_of(id(&child)));
    wait("iterations", || (done(&run) > 0).then_some(()));
    kill(trainer, libc::SIGTERM);
    std::thread::sleep(Duration::from_millis(30));
    kill(id(&child), libc::SIGTERM);
    let out = finish(child);
    let err = text(&out);
    assert_eq!(out.status.code(), Some(130), "{err}");
    assert_eq!(err.matches("once more stops at once").count(), 1, "{err}");
    assert_eq!(checkpoints(&run), 1, "saved: {err}");
}

#[test]
fn a_training_that_keeps_dying_is_given_up() {
    let place = Place::new();
    let args = ["runner.max_iterations=1000000", "runner.max_restarts=1"];
    let child = start(&place, &[&args[..], &["runner.save_interval=0"]].concat());
    for _ in 0..2 {
        let trainer = wait("a training process", || trainer_of(id(&child)));
        // It says first where it is.
        wait("its folder", || place.path("a/log.txt").exists().then_some(()));
        // Rust's own handler lets one that nothing caused pass.
        wait("its end", || {
            kill(trainer, libc::SIGSEGV);
            parent_of(trainer).is_none().then_some(())
        });
    }
    let out = finish(child);
    let err = text(&out);
    assert_eq!(out.status.code(), Some(1), "{err}");
    assert!(
        err.contains("died of SIGSEGV; the run had no checkpoint yet and starts anew"),
        "{err}"
    );
    let last = "runner.max_restarts = 1 restart brought no new checkpoint";
    assert!(err.contains(last), "{err}");
    let log = std::fs::read_to_string(place.path("a/log.txt")).unwrap();
    assert!(log.contains(last), "{log}");
}

#[test]
fn a_run_without_a_checkpoint_starts_anew_in_its_folder() {
    let place = Place::new();
    // The first evaluation is the best so far, and would be a checkpoint.
    let none = ["runner.save_interval=0", "runner.eval_interval=0"];
    let child = start(&place, &[&MIDDLE[..], &none].concat());
    let run = place.path("a");
    wait("iterations", || (done(&run) > 2).then_some(()));
    assert_eq!(checkpoints(&run), 0);
    kill(trainer_of(id(&child)).unwrap(), libc::SIGABRT);
    let out = finish(child);
    assert_eq!(out.status.code(), Some(0), "{}", text(&out));
    let said = "died of SIGABRT; the run had no checkpoint yet and starts anew";
    assert!(text(&out).contains(said), "{}", text(&out));
    assert_eq!(metrics(&run).len(), 60);
    let whole = place.train("whole", 60, &["env.num_envs=128", "runner.save_interval=0"]);
    assert_same_bits(&whole, &run);
}

#[test]
fn other_deaths_are_died_too_and_codes_pass() {
    let place = Place::new();
    place.fails(2, &["train", "pole.toml", "env.num_envs=0"]);
    place.fails(2, &["train", "pole.toml", "task.reward.alive.expr=nothing"]);
    let child = start(&place, &["runner.max_iterations=1000000"]);
    let trainer = beyond(&place, &child, 1);
    // Not one that is restarted, and the run does not handle it.
    kill(trainer, libc::SIGALRM);
    let out = finish(child);
    assert_eq!(out.status.signal(), Some(libc::SIGALRM), "{}", text(&out));
}

#[test]
fn without_supervision_there_is_one_process() {
    let place = Place::new();
    let args = ["runner.max_iterations=1000000", "runner.supervise=false"];
    let child = start(&place, &args);
    wait("iterations", || (done(&place.path("a")) > 1).then_some(()));
    assert_eq!(trainer_of(id(&child)), None);
    kill(id(&child), libc::SIGKILL);
    assert_eq!(finish(child).status.signal(), Some(libc::SIGKILL));
}

#[test]
fn a_checkpoint_on_demand_and_the_run_goes_on() {
    let place = Place::new();
    let args = ["runner.max_iterations=1000000", "runner.save_interval=0"];
    let child = start(&place, &args);
    let run = place.path("a");
    wait("iterations", || (done(&run) > 1).then_some(()));
    assert_eq!(checkpoints(&run), 0);
    kill(id(&child), libc::SIGUSR1);
    let clock = Instant::now();
    wait("a checkpoint", || (checkpoints(&run) == 1).then_some(()));
    // After a minute there is one anyway.
    assert!(clock.elapsed() < Duration::from_secs(40));
    let before = done(&run);
    wait("more iterations", || (done(&run) > before + 1).then_some(()));
    kill(id(&child), libc::SIGTERM);
    assert_eq!(finish(child).status.code(), Some(130));
}

/// With AVX-512 some of oneDNN's products have the stack pointer in the heap: a handler that
/// interrupted one wrote its frame over whatever lies there.
#[test]
fn signals_do_not_interrupt_computations() {
    let place = Place::new();
    let args = ["runner.supervise=false", "runner.max_iterations=300"];
    let layers = ["actor.hidden_dims=[64, 64]", "critic.hidden_dims=[64, 64]"];
    let sizes = ["env.num_envs=16", "runner.save_interval=0"];
    let args = [&args[..], &layers, &sizes].concat();
    let mut child = start(&place, &args);
    let run = place.path("a");
    wait("iterations", || (done(&run) > 1).then_some(()));
    let mut sent = 0;
    while done(&run) < 290 && child.try_wait().unwrap().is_none() {
        kill(id(&child), libc::SIGUSR1);
        sent += 1;
        std::thread::sleep(Duration::from_millis(1));
    }
    let out = finish(child);
    assert!(out.status.success() && sent > 100, "{sent}: {out:?}");
    let whole = place.train("whole", 300, &args[2..]);
    assert_same_bits(&whole, &run);
}

#[test]
fn resume_auto_finds_the_newest_run_that_is_not_finished() {
    let place = Place::new();
    let auto = |more: &[&str]| {
        let args = ["train", "pole.toml", "--resume", "auto"];
        let out = place.run(&[&args, more].concat());
        assert_eq!(out.status.code(), Some(0), "{}", text(&out));
        text(&out)
    };
    let err = auto(&["runner.max_iterations=2"]);
    assert!(err.contains("a new run begins") && err.contains("none yet"), "{err}");
    let runs = || {
        let all = std::fs::read_dir(place.path("runs/pole")).unwrap();
        all.filter(|e| e.as_ref().unwrap().file_name() != "latest").count()
    };
    assert_eq!(runs(), 1);
    // Finished as it is, unfinished with a later end.
    let err = auto(&["runner.max_iterations=4"]);
    assert!(err.contains("going on with runs/pole/") && err.contains("iteration 2"), "{err}");
    assert_eq!(runs(), 1);
    let err = auto(&["runner.max_iterations=4"]);
    assert!(err.contains("it is finished, at iteration 4"), "{err}");
    assert_eq!(runs(), 2);
    // Another configuration is another run.
    let err = auto(&["runner.max_iterations=5", "ppo.gamma=0.9"]);
    assert!(err.contains("another configuration"), "{err}");
    assert_eq!(runs(), 3);
    // In a folder of its own: the same line in every job.
    let args = ["--out", "here", "runner.max_iterations=2"];
    let err = auto(&args);
    assert!(err.contains("a new run begins"), "{err}");
    let args = ["--out", "here", "runner.max_iterations=3"];
    let err = auto(&args);
    assert!(err.contains("going on with here from iteration 2"), "{err}");
    assert_eq!(metrics(&place.path("here")).len(), 3);
    // And once more, when all is done: that is no failure of the job.
    let err = auto(&args);
    assert!(err.contains("nothing is left to do in here"), "{err}");
    place.fails(2, &["train", "--resume", "auto"]);
    // Killed before its first checkpoint: the line is not refused for ever.
    for time in 0..2 {
        std::fs::remove_dir_all(place.path("here/checkpoints")).unwrap();
        let err = auto(&args);
        assert!(err.contains("here starts anew"), "{time}: {err}");
        assert_eq!(metrics(&place.path("here")).len(), 3);
    }
    // Before its configuration was written, too.
    let early = place.path("early");
    std::fs::create_dir_all(early.join("robot")).unwrap();
    std::fs::write(early.join(".lock"), "").unwrap();
    let args = ["--out", "early", "runner.max_iterations=1"];
    let err = auto(&args);
    assert!(err.contains("early starts anew"), "{err}");
    // Files that do not belong to a run stay as they are.
    let mine = place.path("mine");
    std::fs::create_dir_all(mine.join("robot")).unwrap();
    std::fs::write(mine.join("robot/notes.txt"), "").unwrap();
    let args = ["train", "pole.toml", "--resume", "auto", "--out", "mine"];
    let err = place.fails(2, &args);
    assert!(err.contains("would overwrite"), "{err}");
}

#[test]
fn resume_auto_passes_over_runs_of_others_and_says_so() {
    let place = Place::new();
    place.ok(&["train", "pole.toml", "--quiet", "runner.max_iterations=2"]);
    let run = place.path("runs/pole/latest").canonicalize().unwrap();
    let theirs =
        [&run, &run.join("config.toml")].map(|p| std::os::unix::fs::chown(p, Some(12_345), None));
    let [Ok(()), Ok(())] = theirs else {
        eprintln!("only root can give files away: nothing is tested");
        return;
    };
    let more = "runner.max_iterations=3";
    let out = place.run(&["train", "pole.toml", "--resume", "auto", more]);
    let err = text(&out);
    assert_eq!(out.status.code(), Some(0), "{err}");
    let said = "belongs to another user (uid 12345)";
    assert!(err.contains("passed over: ") && err.contains(said), "{err}");
    assert!(err.contains("a new run begins"), "{err}");
    assert_eq!(metrics(&run).len(), 2);
    // In a folder of its own there is no other.
    let run = run.to_str().unwrap();
    let args = ["train", "pole.toml", "--resume", "auto", more, "--out", run];
    let err = place.fails(2, &args);
    assert!(err.contains(said) && err.contains("--resume /"), "{err}");
    place.ok(&["train", "--quiet", "--resume", run, more]);
}

/// A training that goes on for ever in `a`, with some iterations and a checkpoint.
fn endless(place: &Place) -> Child {
    let child = start(place, &["runner.max_iterations=100000000"]);
    beyond(place, &child, 1);
    child
}

#[test]
fn a_run_whose_lock_is_anothers_stops_and_writes_nothing_more() {
    let place = Place::new();
    let (run, child) = (place.path("a"), endless(&place));
    // As another process makes it that found none.
    std::fs::write(run.join("lock"), "").unwrap();
    std::fs::rename(run.join("lock"), run.join(".lock")).unwrap();
    let out = finish(child);
    let err = text(&out);
    assert_eq!(out.status.code(), Some(1), "{err}");
    assert!(err.contains("a is no longer this run's"), "{err}");
    // The last line may be one that was written before.
    let names = crate::common::process::names(&run);
    assert!(!names.contains("failure") && !names.contains("curve.png"), "{names:?}");
    let said = std::fs::read_to_string(run.join("log.txt")).unwrap();
    assert!(!said.contains("no longer this run's"), "{said}");
    let done = metrics(&run).len() as u64;
    let n = format!("runner.max_iterations={}", done + 1);
    place.ok(&["train", "--resume", "a", "--quiet", &n]);
}

#[test]
fn a_lock_or_a_folder_that_is_deleted_is_made_again() {
    let place = Place::new();
    let (run, child) = (place.path("a"), endless(&place));
    std::fs::remove_file(run.join(".lock")).unwrap();
    wait("a lock", || run.join(".lock").exists().then_some(()));
    // Nobody else gets in.
    let err = place.fails(2, &["train", "--resume", "a"]);
    assert!(err.contains("is in use by another process"), "{err}");
    // The run may write into it meanwhile.
    wait("its end", || std::fs::remove_dir_all(&run).ok());
    wait("a checkpoint", || (checkpoints(&run) > 0).then_some(()));
    kill(id(&child), libc::SIGTERM);
    let out = finish(child);
    let err = text(&out);
    assert_eq!(out.status.code(), Some(130), "{err}");
    assert!(err.contains(".lock vanished and is made again"), "{err}");
    assert!(run.join("config.toml").exists());
    // With all that was in them.
    for name in ["log.txt", "meta.json"] {
        assert!(err.contains(&format!("{name} vanished from")), "{err}");
    }
    let log = std::fs::read_to_string(run.join("log.txt")).unwrap();
    assert!(log.contains(".lock vanished") && log.contains("meta.json vanished"), "{log}");
    let meta = std::fs::read_to_string(run.join("meta.json")).unwrap();
    assert!(meta.contains("command_line"), "{meta}");
}

#[test]
fn a_folder_that_is_moved_gets_the_last_checkpoint_and_the_run_stops() {
    let place = Place::new();
    let (run, child) = (place.path("a"), endless(&place));
    std::fs::rename(&run, place.path("b")).unwrap();
    let out = finish(child);
    let err = text(&out);
    assert_eq!(out.status.code(), Some(1), "{err}");
    assert!(err.contains("a was moved to ") && err.contains("/b while it was trained"), "{err}");
    assert!(!run.exists(), "nothing is made at its old path");
    let done = metrics(&place.path("b")).len() as u64;
    assert_eq!(
        newest(&place.path("b")),
        place.path("b").join(format!("checkpoints/iter_{done:08}.safetensors"))
    );
    let n = format!("runner.max_iterations={}", done + 1);
    place.ok(&["train", "--resume", "b", "--quiet", &n]);
    // A link to where it is now is as good as the path.
    let child = start(&place, &["runner.max_iterations=100000000"]);
    beyond(&place, &child, 1);
    std::fs::rename(&run, place.path("c")).unwrap();
    std::os::unix::fs::symlink("c", &run).unwrap();
    std::thread::sleep(Duration::from_millis(300));
    kill(id(&child), libc::SIGTERM);
    let code = finish(child).status.code();
    assert!(code == Some(130) || code == Some(1), "{code:?}");
}

#[test]
fn a_run_that_is_done_is_not_started_again_when_its_process_dies() {
    let place = Place::new();
    // Something behind the last checkpoint that takes long: a client that says nothing.
    let client = place.path("client.sh");
    std::fs::write(&client, "#!/bin/sh\nexec sleep 1000\n").unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&client, mode).unwrap();
    let child = start(&place, &["--allow-native", "log.wandb={ python = \"./client.sh\" }"]);
    let drawn = place.path("a/curve.png");
    wait("the picture", || drawn.exists().then_some(()));
    let trainer = wait("the training process", || trainer_of(id(&child)));
    kill(trainer, libc::SIGABRT);
    let out = finish(child);
    let err = text(&out);
    assert_eq!(out.status.code(), Some(0), "{err}");
    assert!(
        err.contains("the run is done and saved, but the training process died of SIGABRT"),
        "{err}"
    );
    assert!(err.contains("ostler plot") && !err.contains("the run goes on"), "{err}");
    assert_eq!(metrics(&place.path("a")).len(), 3);
    let log = std::fs::read_to_string(place.path("a/log.txt")).unwrap();
    assert!(log.contains("the run is done and saved"), "{log}");
}

#[test]
fn a_run_that_reached_its_goal_is_finished_for_resume_auto() {
    let place = Place::new();
    let args = ["train", "pole.toml", "--resume", "auto", "runner.stop_at_return=1"];
    let args = [&args[..], &["runner.max_iterations=1000"]].concat();
    place.ok(&args);
    let out = place.run(&args);
    assert!(text(&out).contains("it reached its goal"), "{}", text(&out));
}

/// Time and signals stay right through a program that becomes this one.
#[test]
fn signals_reach_the_training_through_exec() {
    let place = Place::new();
    let ostler = env!("CARGO_BIN_EXE_ostler");
    let line = format!(
        "exec {ostler} train pole.toml --out a runner.save_interval=1 runner.max_iterations=1000000"
    );
    let child = Command::new("sh")
        .args(["-c", &line])
        .current_dir(place.0.path())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    beyond(&place, &child, 1);
    kill(id(&child), libc::SIGTERM);
    assert_eq!(finish(child).status.code(), Some(130));
}
