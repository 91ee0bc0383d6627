//! The device that the program takes on machines of every kind, the message where
//! it cannot have one, and that it leaves GPUs alone where nobody asked for one.

mod doctor;
mod learner;
mod machine;

use crate::common::process::{kill, trainer_of, wait};
use crate::common::text;
use machine::{CudaPart, Machine};
use std::process::Stdio;

/// Why there is no GPU: a machine, and words of the reason and of the remedy.
fn reasons() -> Vec<(Machine, &'static [&'static str])> {
    let with = |variables: &[(&'static str, &str)]| Machine::with_driver(variables);
    vec![
        (Machine::without_driver(), &["no NVIDIA driver (", "libcuda.so.1", "install one"]),
        (
            with(&[("FAKE_VERSION", "12040")]).libtorch(CudaPart::Hollow),
            &["too old, it does CUDA 12.4", "built for CUDA 13.0", "580 or newer", "for CUDA 12"],
        ),
        (
            with(&[("CUDA_VISIBLE_DEVICES", "")]).libtorch(CudaPart::Hollow),
            &["no GPU is visible", "CUDA_VISIBLE_DEVICES=\"\" hides", "unset it"],
        ),
        (
            with(&[("FAKE_DEVICES", "0")]).libtorch(CudaPart::Hollow),
            &["no GPU is visible", "the driver finds none", "nvidia-smi"],
        ),
        (
            with(&[("FAKE_FAIL", "cuInit=802")]).libtorch(CudaPart::Hollow),
            &["cuInit says CUDA_ERROR_SYSTEM_NOT_READY (802)", "nvidia-fabricmanager"],
        ),
        (with(&[]).libtorch(CudaPart::None), &["computes on the processor only", "set LIBTORCH"]),
        (with(&[]).libtorch(CudaPart::Incomplete), &["needs libneeded.so.9", "--fetch-only"]),
        (with(&[]).libtorch(CudaPart::Hollow), &["finds 0 GPUs where the driver has 1"]),
    ]
}

#[test]
fn every_reason_why_there_is_no_gpu_is_told_from_the_others_in_one_line() {
    for (machine, words) in reasons() {
        for command in ["train", "check"] {
            let out =
                machine.ostler(&[command, "pole.toml", "--device", "cuda:0"]).output().unwrap();
            let said = text(&out);
            assert_eq!(out.status.code(), Some(2), "{said}");
            let why = said
                .strip_prefix("error: device \"cuda:0\" cannot be used: ")
                .unwrap_or_else(|| panic!("{said}"));
            assert_eq!(why.trim_end().lines().count(), 1, "{said}");
            for word in words {
                assert!(why.contains(word), "{word:?} not in\n{said}");
            }
            assert!(why.contains("--device cpu"), "{said}");
        }
        assert!(!machine.place.path("runs").exists(), "nothing was begun");
    }
}

#[test]
fn auto_is_the_processor_where_there_is_no_gpu_and_says_why() {
    for (machine, words) in reasons() {
        let out = machine.ostler(&["check", "pole.toml"]).output().unwrap();
        let said = String::from_utf8_lossy(&out.stdout);
        assert!(out.status.success(), "{}", text(&out));
        assert!(said.contains("\ndevice = \"cpu\"\n"), "{said}");
        let mut lines = said.lines();
        let line = lines.find(|l| l.starts_with("note: device \"auto\" is cpu: "));
        let line = line.unwrap_or_else(|| panic!("{said}"));
        // What most machines lack is no fault: every run would print how to mend it.
        let words = match line.contains("no NVIDIA driver") {
            true => &["`ostler doctor` says more"],
            false => words,
        };
        for word in words {
            assert!(line.contains(word), "{word:?} not in\n{line}");
        }
    }
}

#[test]
fn a_training_with_auto_goes_on_without_a_gpu_and_records_the_processor() {
    let machine = Machine::with_driver(&[("FAKE_DEVICES", "0")]).libtorch(CudaPart::Hollow);
    let args = ["train", "pole.toml", "--out", "a", "--device", "auto"];
    let out = machine.ostler(&args).output().unwrap();
    let said = text(&out);
    assert!(out.status.success(), "{said}");
    let line = "device \"auto\" is cpu: no GPU is visible";
    assert_eq!(said.matches(line).count(), 1, "{said}");
    let config = std::fs::read_to_string(machine.place.path("a/config.toml")).unwrap();
    for line in ["device = \"cpu\"", "[sim]\nbackend = \"native\"\ndevice = \"cpu\""] {
        assert!(config.contains(line), "{line:?} not in\n{config}");
    }
}

#[test]
fn a_gpu_with_a_number_that_is_not_there_is_refused_with_those_that_are() {
    let machine = Machine::with_driver(&[("FAKE_DEVICES", "2")]).libtorch(CudaPart::Hollow);
    let args = ["train", "pole.toml", "--device", "cuda:2"];
    let out = machine.ostler(&args).output().unwrap();
    let said = text(&out);
    assert_eq!(out.status.code(), Some(2), "{said}");
    let words = "there is no GPU 2, 2 are visible: take one of \"cuda:0\" to \"cuda:1\"";
    assert!(said.contains(words), "{said}");
}

/// Files and maps of NVIDIA's that a run has open: the process that trains and the one that
/// watches over it.
fn nvidia(machine: &Machine, device: &str, more: &[&str]) -> Vec<String> {
    let args = [
        "train",
        "pole.toml",
        "--quiet",
        "--out",
        "a",
        "--device",
        device,
        "runner.max_iterations=1000000",
    ];
    let args = [&args[..], more].concat();
    let mut child =
        machine.ostler(&args).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let supervisor = child.id() as i32;
    let metrics = machine.place.path("a/metrics.jsonl");
    wait("iterations", || {
        let text = std::fs::read_to_string(&metrics).ok()?;
        (text.lines().count() > 3).then_some(())
    });
    let trainer = wait("the training process", || trainer_of(supervisor));
    let mut seen = Vec::new();
    for pid in [supervisor, trainer] {
        let maps = std::fs::read_to_string(format!("/proc/{pid}/maps")).unwrap();
        let files = maps.lines().filter_map(|l| l.split_whitespace().nth(5));
        seen.extend(files.map(str::to_string));
        for fd in std::fs::read_dir(format!("/proc/{pid}/fd")).unwrap() {
            let target = fd.ok().and_then(|fd| std::fs::read_link(fd.path()).ok());
            seen.extend(target.map(|t| t.display().to_string()));
        }
    }
    kill(supervisor, libc::SIGTERM);
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(seen.iter().any(|f| f.contains("libtorch_cpu")), "{seen:?}");
    let parts = ["libcuda.so", "libtorch_cuda", "/dev/nvidia", "libnvidia-ml"];
    seen.retain(|file| parts.iter().any(|part| file.contains(part)));
    seen.sort();
    seen.dedup();
    seen
}

/// Failure F5: a trainer for the processor that initialises CUDA all the same.
#[test]
fn f5_a_training_on_the_processor_maps_nothing_of_cuda() {
    let none: Vec<String> = Vec::new();
    // The driver is there for the taking.
    let machine = Machine::with_driver(&[]).libtorch(CudaPart::Hollow);
    assert_eq!(nvidia(&machine, "cpu", &[]), none);
    let machine = Machine::without_driver();
    assert_eq!(nvidia(&machine, "auto", &[]), none);
}

/// Failure F5: workers that each initialise CUDA, until a GPU is full at 64 of them.
#[test]
fn two_hundred_and_fifty_six_workers_map_nothing_of_cuda_and_say_what_memory_they_take() {
    let machine = Machine::with_driver(&[]).libtorch(CudaPart::Hollow);
    let crew = [
        "env.num_envs=256",
        "collector.kind=async",
        "collector.workers=256",
        "runner.num_steps_per_env=4",
    ];
    let none: Vec<String> = Vec::new();
    assert_eq!(nvidia(&machine, "cpu", &crew), none);
    let log = std::fs::read_to_string(machine.place.path("a/log.txt")).unwrap();
    let line = log.lines().find(|l| l.contains("256 workers collect, "));
    let line = line.unwrap_or_else(|| panic!("{log}"));
    let mib = line.split("256 workers collect, ").nth(1).unwrap();
    let mib: f64 = mib.split(' ').next().unwrap().parse().unwrap();
    // Stated, and bounded: a stack, a few buffers, one small robot.
    assert!(mib < 8.0, "{line}");
    assert!(log.contains("over-subscribes"), "{log}");
}

/// Failure F7: `CUDA_VISIBLE_DEVICES=""` as the only way to keep CUDA asleep.
#[test]
fn f7_hiding_every_gpu_works_and_is_not_needed() {
    let none: Vec<String> = Vec::new();
    for hidden in [&[][..], &[("CUDA_VISIBLE_DEVICES", "")]] {
        let machine = Machine::with_driver(hidden).libtorch(CudaPart::Hollow);
        assert_eq!(nvidia(&machine, "cpu", &[]), none, "{hidden:?}");
    }
}

/// That the tests above can fail: who asks for a GPU does map the driver.
#[test]
fn a_training_that_looks_for_a_gpu_maps_the_driver() {
    let machine = Machine::with_driver(&[]).libtorch(CudaPart::Hollow);
    let seen = nvidia(&machine, "auto", &[]);
    for part in ["libcuda.so.1", "libtorch_cuda.so"] {
        assert!(seen.iter().any(|f| f.ends_with(part)), "{part}: {seen:?}");
    }
}
