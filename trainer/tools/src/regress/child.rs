//! One child process: its end, its size, its time.

use super::verdict::Exit;
pub use ostler_run::supervise::process::{self, End};
use ostler_sim::files;
use std::io::Result;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

/// Time between two looks at the child.
const LOOK: Duration = Duration::from_millis(10);
/// A child that is asked to stop has so long to save.
const GRACE: Duration = Duration::from_secs(30);
/// The last lines of a child's output are among so many bytes.
const TAIL: u64 = 1 << 20;

/// Whether the runner was asked to stop.
#[derive(Debug, Clone, Default)]
pub struct Stop(Arc<AtomicBool>);

impl Stop {
    /// SIGINT, SIGTERM and SIGHUP ask for the end; a second one ends at once.
    ///
    /// # Errors
    /// The system refuses the handlers.
    pub fn install() -> Result<Self> {
        use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
        let stop = Self::default();
        for signal in [SIGINT, SIGTERM, SIGHUP] {
            // In this order: the first signal finds the flag down.
            let code = ostler_run::run::error::INTERRUPTED;
            signal_hook::flag::register_conditional_shutdown(signal, code, stop.0.clone())?;
            signal_hook::flag::register(signal, stop.0.clone())?;
        }
        Ok(stop)
    }

    /// Whether it was asked for.
    pub fn asked(&self) -> bool {
        self.0.load(Ordering::SeqCst)
    }
}

/// How a child ended.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// By itself or not.
    pub exit: Exit,
    /// It was killed because it took too long.
    pub too_long: bool,
    /// It was ended because the runner was.
    pub stopped: bool,
    /// It ran so long (s).
    pub seconds: f64,
    /// Its largest resident size (MiB), looked up every 10 ms; none where the system
    /// does not say.
    pub peak_mib: Option<f64>,
    /// The same with all that it started (MiB).
    pub peak_with_children_mib: f64,
}

/// Runs `command` to its end, its output going into the new file `said`. After `limit` it is
/// killed, with all that it started. It does not outlive this process.
///
/// # Errors
/// It cannot be started or waited for, or `said` cannot be written.
pub fn run(command: &mut Command, said: &Path, limit: Duration, stop: &Stop) -> Result<Ended> {
    files::replace(said, files::SHARED, b"")?;
    let file = files::append(said)?;
    command
        .stdin(Stdio::null())
        .stdout(file.try_clone()?)
        .stderr(file)
        // A Ctrl-C is for the runner, which passes on what it decides.
        .process_group(0);
    process::die_with_this(command);
    let clock = Instant::now();
    let pid = command.spawn()?.id() as i32;
    let (mut peak, mut too_long) = (None, false);
    let mut stopped: Option<Instant> = None;
    let ended = loop {
        if let Some(ended) = process::try_wait(pid)? {
            break ended;
        }
        peak = high_water(pid).max(peak);
        if stop.asked() && stopped.is_none() && !too_long {
            stopped = Some(Instant::now());
            process::send(pid, libc::SIGTERM);
        }
        let patience = stopped.is_some_and(|since| since.elapsed() > GRACE);
        if patience || (clock.elapsed() > limit && !too_long) {
            too_long = stopped.is_none();
            // All of its group: compilers, too.
            process::send(-pid, libc::SIGKILL);
        }
        std::thread::sleep(LOOK);
    };
    let mib = f64::from(1 << 20);
    Ok(Ended {
        exit: match ended.end {
            End::Code(code) => Exit::Code(code),
            End::Signal(signal) => Exit::Signal(process::signal_name(signal)),
        },
        too_long,
        stopped: stopped.is_some(),
        seconds: clock.elapsed().as_secs_f64(),
        peak_mib: peak.map(|kib| kib as f64 / 1024.0),
        peak_with_children_mib: ended.peak as f64 / mib,
    })
}

/// Largest resident size so far (KiB); none once the process has ended.
fn high_water(pid: i32) -> Option<u64> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let line = text.lines().find_map(|l| l.strip_prefix("VmHWM:"))?;
    line.split_whitespace().next()?.parse().ok()
}

/// The last lines of a child's output.
pub fn tail(said: &Path, lines: usize) -> Vec<String> {
    let (bytes, _) = files::end_of(said, TAIL).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes);
    let mut last: Vec<String> = text
        .lines()
        .rev()
        .filter(|l| !l.trim().is_empty())
        .take(lines)
        .map(str::to_string)
        .collect();
    last.reverse();
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sh(script: &str, limit: Duration, stop: &Stop) -> Ended {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", script]);
        run(&mut command, &dir.path().join("said"), limit, stop).unwrap()
    }

    const LONG: Duration = Duration::from_secs(60);

    #[test]
    fn codes_and_signals_are_told_apart() {
        let stop = Stop::default();
        assert_eq!(sh("exit 7", LONG, &stop).exit, Exit::Code(7));
        let killed = sh("kill -SEGV $$", LONG, &stop);
        assert_eq!(killed.exit, Exit::Signal("SIGSEGV".into()));
        assert!(!killed.too_long && !killed.stopped);
        assert!(killed.peak_with_children_mib > 0.0);
    }

    #[test]
    fn what_a_child_says_goes_through_no_link() {
        let dir = tempfile::tempdir().unwrap();
        let (said, other) = (dir.path().join("said"), dir.path().join("other"));
        std::fs::write(&other, "precious").unwrap();
        std::os::unix::fs::symlink(&other, &said).unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "echo one; echo two >&2"]);
        run(&mut command, &said, LONG, &Stop::default()).unwrap();
        assert_eq!(std::fs::read_to_string(&other).unwrap(), "precious");
        assert_eq!(tail(&said, 9), ["one", "two"]);
    }

    #[test]
    fn what_takes_too_long_is_killed_with_all_that_it_started() {
        let dir = tempfile::tempdir().unwrap();
        let mut command = Command::new("sh");
        command.args(["-c", "sleep 1000 & echo $!; wait"]);
        let said = dir.path().join("said");
        let stop = Stop::default();
        let limit = Duration::from_millis(300);
        let ended = run(&mut command, &said, limit, &stop).unwrap();
        assert!(ended.too_long);
        assert_eq!(ended.exit, Exit::Signal("SIGKILL".into()));
        let pid: i32 = tail(&said, 1)[0].trim().parse().unwrap();
        let gone = || match std::fs::read_to_string(format!("/proc/{pid}/stat")) {
            Ok(stat) => stat.contains(") Z "),
            Err(_) => true,
        };
        for _ in 0..1000 {
            if gone() {
                return;
            }
            std::thread::sleep(LOOK);
        }
        panic!("the grandchild lives on");
    }

    #[test]
    fn a_stop_is_passed_on() {
        let stop = Stop::default();
        stop.0.store(true, Ordering::SeqCst);
        let ended = sh("sleep 1000", LONG, &stop);
        assert!(ended.stopped && !ended.too_long);
        assert_eq!(ended.exit, Exit::Signal("SIGTERM".into()));
    }
}
