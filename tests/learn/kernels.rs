//! Runs with a kernel compiled for their robot: which one a run has is on record, and
//! going on means going on with exactly that one.

use crate::common::forked::Forked as _;
use crate::common::{Place, assert_same_bits, metrics, text};
use crate::support::need::Need;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::{Duration, Instant};

/// `ostler ARGS` with a cache of its own in the folder.
fn ostler(place: &Place, args: &[&str]) -> Command {
    let mut command = place.ostler(args);
    command.env("OSTLER_CACHE", place.path("cache")).env_remove("OSTLER_CXX");
    command
}

fn ok(command: &mut Command) -> Output {
    let out = command.forked().unwrap();
    assert!(out.status.success(), "{command:?}\n{}", text(&out));
    out
}

/// The kernel in a run's resolved configuration.
fn kernel(run: &Path) -> String {
    let config = std::fs::read_to_string(run.join("config.toml")).unwrap();
    let line = config.lines().find_map(|l| l.strip_prefix("kernel = "));
    line.unwrap().trim_matches('"').to_string()
}

/// Kernels are specialised for processors with AVX2 alone.
fn specialises() -> bool {
    let can = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
    let found = can.then_some(()).ok_or("the processor lacks them");
    Need::Avx2.or_skip(found).is_some()
}

#[test]
fn a_killed_run_goes_on_with_the_bits_of_its_own_kernel() {
    if !specialises() {
        return;
    }
    let place = Place::new();
    let forever = [
        "train",
        "pole.toml",
        "--out",
        "parts",
        "sim.specialize=wait",
        "runner.save_interval=1",
        "runner.max_iterations=1000000",
    ];
    let mut child =
        ostler(&place, &forever).stdout(Stdio::null()).stderr(Stdio::piped()).spawn().unwrap();
    let parts = place.path("parts");
    let clock = Instant::now();
    while std::fs::read_to_string(parts.join("metrics.jsonl")).map_or(0, |t| t.lines().count()) < 3
    {
        assert!(child.try_wait().unwrap().is_none(), "ended early");
        assert!(clock.elapsed() < Duration::from_secs(600), "no iterations");
        std::thread::sleep(Duration::from_millis(20));
    }
    child.kill().unwrap();
    let said = text(&child.wait_with_output().unwrap());
    assert!(said.contains("compiling a kernel for this robot"), "{said}");
    let own = kernel(&parts);
    let (set, hash) = own.split_once('-').unwrap();
    assert!(["avx2", "avx512"].contains(&set), "{own}");
    assert!(place.path("cache/kernels").join(hash).is_dir(), "{own}");
    let log = std::fs::read_to_string(parts.join("log.txt")).unwrap();
    assert!(log.contains(&own), "{log}");

    // The kernel is the run's, whatever the file it began with would choose now.
    let done = metrics(&parts).len() + 2;
    let n = format!("runner.max_iterations={done}");
    let resume = ["train", "pole.toml", "--resume", "parts", "--quiet", &n];
    let resume = [&resume[..], &["runner.save_interval=1"]].concat();
    ok(&mut ostler(&place, &resume));
    assert_eq!(kernel(&parts), own);
    let whole = ["train", "parts/config.toml", "--out", "whole", "--quiet"];
    ok(&mut ostler(&place, &whole));
    assert_eq!(kernel(&place.path("whole")), own);
    assert_same_bits(&place.path("whole"), &parts);

    // Without its kernel, and without what compiles it, the run is refused.
    std::fs::remove_dir_all(place.path("cache")).unwrap();
    let n = format!("runner.max_iterations={}", done + 1);
    let resume = ["train", "--resume", "parts", "--quiet", &n];
    let out = ostler(&place, &resume).env("OSTLER_CXX", "/nowhere/g++").forked().unwrap();
    let said = text(&out);
    assert_eq!(out.status.code(), Some(2), "{said}");
    for expected in [&own, "not in the cache", "/nowhere/g++", "--init-from"] {
        assert!(said.contains(expected), "{expected:?} not in\n{said}");
    }
    // It is judged all the same, and that is said.
    let eval = ["eval", "parts", "--episodes", "2", "--json"];
    let out = ok(ostler(&place, &eval).env("OSTLER_CXX", "/nowhere/g++"));
    assert!(text(&out).contains("is not to be had here"), "{}", text(&out));
    let json: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert!(json["kernel"].as_str().unwrap().starts_with("generic-"));

    // With a compiler the same one comes back.
    ok(&mut ostler(&place, &resume));
    assert_eq!(kernel(&parts), own);
    let n = format!("runner.max_iterations={}", done + 1);
    let whole = ["train", "--resume", "whole", "--quiet", &n];
    ok(&mut ostler(&place, &whole));
    assert_same_bits(&place.path("whole"), &parts);

    // For another time step it is not a kernel at all.
    let other = ["train", "parts/config.toml", "--out", "c", "sim.dt=0.01"];
    let out = ostler(&place, &other).forked().unwrap();
    let said = text(&out);
    assert_eq!(out.status.code(), Some(2), "{said}");
    assert!(said.contains("another robot, time step or solver"), "{said}");
    assert!(said.contains("sim.kernel = \"auto\""), "{said}");
}

/// A compiler that takes longer than anybody waits.
fn slow_compiler(place: &Place) -> std::path::PathBuf {
    let slow = place.path("slow-g++");
    let script = "#!/bin/sh\ncase \"$*\" in *--version*) echo slow 1.0;; *) sleep 1000;; esac\n";
    std::fs::write(&slow, script).unwrap();
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    std::fs::set_permissions(&slow, mode).unwrap();
    slow
}

#[test]
fn a_run_that_ends_first_stops_the_compilation_beside_it() {
    if !specialises() {
        return;
    }
    let place = Place::new();
    let slow = slow_compiler(&place);
    let train =
        ["train", "pole.toml", "--out", "a", "sim.specialize=auto", "runner.max_iterations=2"];
    let out = ok(ostler(&place, &train).env("OSTLER_CXX", &slow));
    let said = text(&out);
    assert!(said.contains("is being compiled for the next run"), "{said}");
    assert!(kernel(&place.path("a")).starts_with("generic-"));
    assert_eq!(metrics(&place.path("a")).len(), 2);
    let left: Vec<_> = std::fs::read_dir(place.path("cache/kernels"))
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .filter(|name| !name.ends_with(".lock"))
        .collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn ctrl_c_gives_up_a_compilation_that_a_run_waits_for() {
    if !specialises() {
        return;
    }
    let place = Place::new();
    let slow = slow_compiler(&place);
    let train = ["train", "pole.toml", "--out", "a", "sim.specialize=wait"];
    let mut child =
        ostler(&place, &train).env("OSTLER_CXX", &slow).stderr(Stdio::piped()).spawn().unwrap();
    let building = || {
        let entries = std::fs::read_dir(place.path("cache/kernels"));
        entries.is_ok_and(|mut all| {
            all.any(|e| e.unwrap().file_name().to_string_lossy().starts_with("building-"))
        })
    };
    // Mistakes that can be seen before compiling are reported first.
    let wrong = [&train[..], &["task.reward.alive.expr=joint_pos(slid)"]].concat();
    let out = ostler(&place, &wrong).env("OSTLER_CXX", &slow).forked().unwrap();
    assert_eq!(out.status.code(), Some(2), "{}", text(&out));
    let clock = Instant::now();
    while !building() {
        assert!(child.try_wait().unwrap().is_none(), "ended early");
        assert!(clock.elapsed() < Duration::from_secs(120), "no compilation");
        std::thread::sleep(Duration::from_millis(20));
    }
    // SAFETY: kill takes two numbers; the child is ours and not yet waited for.
    unsafe { libc::kill(child.id() as i32, libc::SIGINT) };
    let out = child.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130), "{}", text(&out));
    assert!(text(&out).contains("nothing was started"), "{}", text(&out));
    assert!(!place.path("a").exists());
    assert!(!building(), "cleaned up");
}
