//! This process and the system it runs on.

use rustix::process::{Resource, getrlimit};
use serde::Serialize;
use std::path::Path;

/// Memory of this process (bytes), from `/proc/self/status`, and its limits.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Process {
    /// Resident.
    pub resident: u64,
    /// Resident and of no file: only this process can free it.
    pub anonymous: u64,
    /// Largest resident size so far.
    pub peak: u64,
    /// Address space in use, and its limit (`RLIMIT_AS`).
    pub address_space: (u64, Option<u64>),
    /// Private writable memory in use, and its limit (`RLIMIT_DATA`).
    pub data: (u64, Option<u64>),
}

/// Memory of the system (bytes), from `/proc/meminfo`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct System {
    /// All there is.
    pub total: u64,
    /// Memory that a new program could take without swapping.
    pub available: u64,
}

impl Process {
    /// As it is now; `root` is "/" but in tests. `None` where the system does not say.
    pub fn now(root: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(root.join("proc/self/status")).ok()?;
        let kib = |key: &str| kib(&text, key).unwrap_or(0);
        Some(Self {
            resident: self::kib(&text, "VmRSS")?,
            anonymous: kib("RssAnon"),
            peak: kib("VmHWM"),
            address_space: (kib("VmSize"), getrlimit(Resource::As).current),
            data: (kib("VmData"), getrlimit(Resource::Data).current),
        })
    }

    /// Memory that the limits of this process leave (bytes).
    pub fn free(&self) -> Option<u64> {
        let left = |(used, limit): (u64, Option<u64>)| Some(limit?.saturating_sub(used));
        [left(self.address_space), left(self.data)].into_iter().flatten().min()
    }
}

impl System {
    /// As it is now; `root` is "/" but in tests. `None` where the system does not say.
    pub fn now(root: &Path) -> Option<Self> {
        let text = std::fs::read_to_string(root.join("proc/meminfo")).ok()?;
        Some(Self { total: kib(&text, "MemTotal")?, available: kib(&text, "MemAvailable")? })
    }
}

/// Least stack of the main thread (bytes). Half of it is enough for `train` as released, a quarter
/// ends in an overflow, which no message can come from.
const STACK: u64 = 1 << 20;

/// A sentence where the main thread's stack is limited to less than the program needs.
pub fn lacks_stack() -> Option<String> {
    let limit = getrlimit(Resource::Stack).current.filter(|limit| *limit < STACK)?;
    Some(format!(
        "the stack is limited to {} KiB, and the program needs {}: `ulimit -s 8192` in this shell",
        limit >> 10,
        STACK >> 10
    ))
}

/// Bytes of a line `key:   123 kB`.
fn kib(text: &str, key: &str) -> Option<u64> {
    let mut lines = text.lines();
    let rest = lines.find_map(|l| l.strip_prefix(key)?.strip_prefix(':'))?;
    let number = rest.split_whitespace().next()?.parse::<u64>().ok()?;
    number.checked_mul(1024)
}

/// Resident memory of this process (MiB); NaN where the system does not say.
pub fn resident_mib() -> f64 {
    let pages = || {
        let text = std::fs::read_to_string("/proc/self/statm").ok()?;
        text.split_whitespace().nth(1)?.parse::<f64>().ok()
    };
    // SAFETY: sysconf reads a constant of the system.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) } as f64;
    pages().map_or(f64::NAN, |p| p * page / f64::from(1 << 20))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn this_process_and_system_are_known() {
        let root = Path::new("/");
        let p = Process::now(root).unwrap();
        assert!(p.resident >= p.anonymous && p.peak >= p.anonymous && p.anonymous > 0);
        assert!(p.address_space.0 > p.resident && p.data.0 > 0);
        let s = System::now(root).unwrap();
        assert!(s.total > s.available && s.available > 0);
    }

    #[test]
    fn nonsense_is_unknown() {
        let dir = tempfile::tempdir().unwrap();
        assert!(Process::now(dir.path()).is_none() && System::now(dir.path()).is_none());
        std::fs::create_dir_all(dir.path().join("proc/self")).unwrap();
        for text in ["", "VmRSS", "VmRSS:", "VmRSS: x kB", "VmRSS: 99999999999999999999 kB"] {
            std::fs::write(dir.path().join("proc/self/status"), text).unwrap();
            assert!(Process::now(dir.path()).is_none(), "{text}");
        }
        let text =
            "MemTotal: 24683888 kB\nMemFree: 1 kB\nMemAvailable:   18446744073709551615 kB\n";
        std::fs::write(dir.path().join("proc/meminfo"), text).unwrap();
        assert!(System::now(dir.path()).is_none());
    }

    #[test]
    fn the_tighter_limit_of_the_process_counts() {
        let p =
            Process { address_space: (10, Some(100)), data: (7, Some(20)), ..Process::default() };
        assert_eq!(p.free(), Some(13));
        assert_eq!(Process::default().free(), None);
    }
}
