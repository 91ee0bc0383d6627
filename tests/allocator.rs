//! After `torch::init`, freed tensors stay with the process: no storm of page
//! faults when the next minibatch asks for the same sizes again.

#![allow(clippy::unwrap_used, reason = "a test says what failed by panicking")]

use std::process::{Command, ExitCode};
use tch::{Device, Kind, Tensor};

/// Set in the processes that count: "init", or "default" for glibc's own ways.
const MODE: &str = "OSTLER_TEST_PAGE_FAULTS";

fn main() -> ExitCode {
    if let Ok(mode) = std::env::var(MODE) {
        println!("{}", faults_of_large_tensors(mode == "init"));
        return ExitCode::SUCCESS;
    }
    let (kept, default) = (faults_in_child("init"), faults_in_child("default"));
    println!("page faults of eight 64 MiB tensors: {kept}, with glibc's defaults {default}");
    let ok = kept * 10 < default;
    let (word, passed) = if ok { ("ok", 1) } else { ("FAILED", 0) };
    println!("test result: {word}. {passed} passed; {} failed; 0 ignored", 1 - passed);
    ExitCode::from(u8::from(!ok))
}

/// The thresholds are the process's, so each way gets one of its own.
fn faults_in_child(mode: &str) -> i64 {
    let program = std::env::current_exe().unwrap();
    let output = Command::new(program).env(MODE, mode).output().unwrap();
    assert!(output.status.success(), "{output:?}");
    String::from_utf8(output.stdout).unwrap().trim().parse().unwrap()
}

fn faults_of_large_tensors(init: bool) -> i64 {
    if init {
        let setup = ostler_trainer::torch::init(1).unwrap();
        assert!(setup.allocator_tuned);
    } else {
        tch::set_num_threads(1);
    }
    // Beyond what glibc's own adaptation of its threshold reaches (32 MiB).
    let fill = || drop(Tensor::ones([16 << 20], (Kind::Float, Device::Cpu)));
    // glibc first sets a few fragments aside, each of which costs a new place.
    for _ in 0..16 {
        fill();
    }
    let before = page_faults();
    for _ in 0..8 {
        fill();
    }
    page_faults() - before
}

/// Page faults of this process that needed no disk.
fn page_faults() -> i64 {
    // SAFETY: all-zero bytes are a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live rusage, which is only written.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    usage.ru_minflt
}
