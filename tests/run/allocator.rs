//! After `torch::init`, freed tensors stay with the process: no storm of page
//! faults when the next minibatch asks for the same sizes again.

use crate::support::alone;
use tch::{Device, Kind, Tensor};

/// Set in the processes that count: "init", or "default" for glibc's own ways.
const MODE: &str = "OSTLER_TEST_PAGE_FAULTS";

#[test]
fn freed_tensors_stay_with_the_process() {
    let (kept, default) = (faults_in_child("init"), faults_in_child("default"));
    println!("page faults of eight 64 MiB tensors: {kept}, with glibc's defaults {default}");
    assert!(kept * 10 < default, "{kept}, {default}");
}

/// The thresholds are the process's, so each way gets one of its own. They hold for the main
/// thread's heap, which tests get where there is no other.
fn faults_in_child(mode: &str) -> i64 {
    let mut command = alone::command(&[], "allocator::child_counts_page_faults");
    let one = ("GLIBC_TUNABLES", "glibc.malloc.arena_max=1");
    let output = command.env(MODE, mode).env(one.0, one.1).output().unwrap();
    let said = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{output:?}");
    let count = said.lines().find_map(|line| line.strip_prefix("page faults: "));
    count.unwrap_or_else(|| panic!("{said}")).parse().unwrap()
}

#[test]
#[ignore = "only run by another test"]
fn child_counts_page_faults() {
    if std::env::var(MODE).unwrap() == "init" {
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
    // On a line of its own, behind what the harness has begun to say.
    println!("\npage faults: {}", page_faults() - before);
}

/// Page faults of this process that needed no disk.
fn page_faults() -> i64 {
    // SAFETY: all-zero bytes are a valid rusage.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // SAFETY: the pointer is to a live rusage, which is only written.
    unsafe { libc::getrusage(libc::RUSAGE_SELF, &raw mut usage) };
    usage.ru_minflt
}
