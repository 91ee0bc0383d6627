//! Processes of a run, seen from outside.

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

/// Nothing that is waited for takes so long.
const LONG: Duration = Duration::from_secs(60);

/// Waits until there is an answer; fails when it takes too long.
pub fn wait<T>(what: &str, mut until: impl FnMut() -> Option<T>) -> T {
    let clock = Instant::now();
    loop {
        if let Some(value) = until() {
            return value;
        }
        assert!(clock.elapsed() < LONG, "waited for {what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub fn kill(pid: i32, signal: i32) {
    // SAFETY: kill takes two numbers; all processes here are ours.
    unsafe { libc::kill(pid, signal) };
}

/// Parent of a process; `None` when it is gone or nothing but its exit code is left.
pub fn parent_of(pid: i32) -> Option<i32> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name, in brackets, may hold anything.
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let (state, parent) = (fields.next()?, fields.next()?);
    (state != "Z").then_some(parent.parse().ok()?)
}

/// A run asks git and compilers for things, too.
pub fn is_ostler(pid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).is_ok_and(|name| name.trim() == "ostler")
}

/// The process that trains for `supervisor`.
pub fn trainer_of(supervisor: i32) -> Option<i32> {
    let all = std::fs::read_dir("/proc").unwrap();
    let mut pids = all.filter_map(|e| e.ok()?.file_name().to_str()?.parse::<i32>().ok());
    pids.find(|&pid| parent_of(pid) == Some(supervisor) && is_ostler(pid))
}

/// Names in a folder; none where there is no folder.
pub fn names(folder: impl AsRef<Path>) -> BTreeSet<String> {
    let all = std::fs::read_dir(folder).into_iter().flatten().flatten();
    all.filter_map(|e| e.file_name().into_string().ok()).collect()
}

/// Files in /dev/shm, and segments of System V, that processes have left; those that others on
/// this machine leave meanwhile are not ours.
pub fn left_in_shm(before: &BTreeSet<String>, pids: &[i32]) -> Vec<String> {
    let of = |n: &str, pid: &i32| {
        let mut numbers = n.split(|c: char| !c.is_ascii_digit());
        numbers.any(|number| number == pid.to_string())
    };
    let ours = |n: &String| n.contains("ostler") || pids.iter().any(|pid| of(n, pid));
    let now = names("/dev/shm");
    let mut left: Vec<String> = now.difference(before).filter(|n| ours(n)).cloned().collect();
    // key shmid perms size cpid lpid ...
    let segments = std::fs::read_to_string("/proc/sysvipc/shm").unwrap_or_default();
    let by = |line: &&str| {
        let mut users = line.split_whitespace().skip(4).take(2);
        users.any(|user| pids.iter().any(|pid| user == pid.to_string()))
    };
    left.extend(segments.lines().filter(by).map(str::to_owned));
    left
}

/// Processes, zombies aside, that work in a folder or hold a file below it, with what
/// they hold.
pub fn holders(folder: &Path) -> Vec<String> {
    let folder = folder.canonicalize().unwrap();
    let mut found = Vec::new();
    for pid in names("/proc").iter().filter_map(|n| n.parse::<i32>().ok()) {
        if parent_of(pid).is_none() {
            continue;
        }
        let process = Path::new("/proc").join(pid.to_string());
        let files = names(process.join("fd"));
        let files = files.iter().map(|fd| process.join("fd").join(fd));
        for link in files.chain([process.join("cwd"), process.join("exe")]) {
            let to = std::fs::read_link(&link).unwrap_or_default();
            if to.starts_with(&folder) {
                found.push(format!("{} -> {}", link.display(), to.display()));
            }
        }
    }
    found
}
