//! Memory of a run, by trying: the same program trains the same configuration for
//! two iterations with few environments, twice, and the kernel tells how large it was.
//!
//! Everything is in it: checkpoints, evaluation, copies to go back to, libtorch's own
//! allocations. The rest is a straight line.

use crate::supervise::process::{self, End, Signals};
use ostler_learn::config::{Override, pass_on};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Samples of the smaller of the two runs.
const SAMPLES: usize = 16_384;
/// How many times as many environments the larger one has.
const FACTOR: usize = 4;
/// Of more than this nothing is shown (bytes).
const MAX_SAID: u64 = 16 << 20;
/// Longer than this is no start.
const PATIENCE: Duration = Duration::from_secs(120);

/// Largest resident size over the number of environments: a straight line.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Line {
    /// Without any environment (bytes).
    pub base: f64,
    /// For each environment (bytes).
    pub each: f64,
}

/// Why nothing was measured.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ProbeError {
    /// A folder or the process cannot be had.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The run did not end well.
    #[error("a run with {num_envs} environments ended with {how}: {said}")]
    Ended {
        /// Environments.
        num_envs: usize,
        /// Code or signal.
        how: String,
        /// Its last line.
        said: String,
    },
    /// Even with few environments a rollout is no small thing.
    #[error("rollouts of {0} steps are too long to be tried at the start")]
    Long(usize),
    /// It takes too long.
    #[error("a run with {0} environments took longer than two minutes")]
    Slow(usize),
    /// A signal asked for the end.
    #[error("a signal came")]
    Stopped,
    /// More environments were not larger.
    #[error("its size does not follow the number of environments")]
    Shapeless,
}

impl Line {
    /// Through two points.
    ///
    /// # Errors
    /// More environments took no more memory.
    pub(crate) fn through(a: (usize, u64), b: (usize, u64)) -> Result<Self, ProbeError> {
        let each = (b.1 as f64 - a.1 as f64) / (b.0 as f64 - a.0 as f64);
        match each.is_finite() && each > 0.0 {
            true => Ok(Self { base: a.1 as f64 - each * a.0 as f64, each }),
            false => Err(ProbeError::Shapeless),
        }
    }

    /// Largest resident size with `num_envs` environments (bytes).
    pub(crate) fn at(&self, num_envs: usize) -> u64 {
        (self.base + self.each * num_envs as f64).max(0.0) as u64
    }
}

/// The numbers of environments of the two runs, where rollouts have `steps` steps.
pub(crate) fn sizes(steps: usize) -> (usize, usize) {
    let few = (SAMPLES / steps.max(1)).next_multiple_of(16).max(16);
    (few, FACTOR * few)
}

/// Measures a configuration whose rollouts have `steps` steps, until a signal comes or
/// `asked` tells of one.
///
/// # Errors
/// One of the two runs did not end well; a signal came.
pub(crate) fn measure(
    path: &Path,
    overrides: &[Override],
    steps: usize,
    asked: &dyn Fn() -> bool,
) -> Result<Line, ProbeError> {
    let (few, more) = sizes(steps);
    if more.saturating_mul(steps) > 8 * SAMPLES {
        return Err(ProbeError::Long(steps));
    }
    let point = |n| peak(path, overrides, n, asked).map(|bytes| (n, bytes));
    Line::through(point(few)?, point(more)?)
}

/// The largest resident size of two iterations with `num_envs` environments (bytes).
fn peak(
    path: &Path,
    overrides: &[Override],
    num_envs: usize,
    asked: &dyn Fn() -> bool,
) -> Result<u64, ProbeError> {
    // Before a run has handlers of its own, a signal would end this process, but not the
    // other, nor remove the folder. It is heard again when both are gone.
    let signals = RestoredSignals(Signals::take()?);
    let place = ostler_sim::files::scratch("probe")?;
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("train").arg(path).arg("--quiet");
    command.arg("--out").arg(place.path().join("run"));
    pass_on(&mut command);
    let own = [
        format!("env.num_envs={num_envs}"),
        "runner.max_iterations=2".into(),
        "ppo.num_learning_epochs=1".into(),
        "runner.stop_at_return=0".into(),
        "runner.supervise=false".into(),
        "sim.specialize=\"off\"".into(),
        "log.curve=false".into(),
        "log.tensorboard=false".into(),
        "log.wandb.mode=\"disabled\"".into(),
        "memory.disk_warn_mib=0".into(),
        "memory.disk_act_mib=0".into(),
        // The number is the one that is asked for, and nothing goes wrong on order.
        "curriculum=[]".into(),
        "back_off.changes=[]".into(),
        "fault.inject=[]".into(),
    ];
    let given = overrides.iter().map(|o| o.text.clone());
    for text in given.chain(own) {
        command.arg("--set").arg(text);
    }
    let said = place.path().join("said");
    process::die_with_this(&mut command);
    command
        // A Ctrl-C is for this process, which ends the other and says why.
        .process_group(0)
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(ostler_sim::files::create(&said)?);
    let pid = command.spawn()?.id() as i32;
    let (ended, slow, stopped) = watched(pid, &signals.0, asked)?;
    let how = match ended.end {
        _ if stopped => return Err(ProbeError::Stopped),
        _ if slow => return Err(ProbeError::Slow(num_envs)),
        End::Code(0) => return Ok(ended.peak),
        End::Code(code) => format!("code {code}"),
        End::Signal(signal) => process::signal_name(signal),
    };
    let said = ostler_sim::files::read(&said, MAX_SAID).unwrap_or_default();
    let said = String::from_utf8_lossy(&said);
    let said = said.lines().rfind(|l| !l.trim().is_empty());
    Err(ProbeError::Ended { num_envs, how, said: said.unwrap_or("nothing").trim().into() })
}

/// Signals whose earlier handlers are restored when this is dropped.
struct RestoredSignals(Signals);

impl Drop for RestoredSignals {
    fn drop(&mut self) {
        self.0.restore();
    }
}

/// Waits for a child, which is killed when a signal comes or it takes too long: how it
/// ended, whether it was slow, whether a signal came.
fn watched(
    pid: i32,
    signals: &Signals,
    asked: &dyn Fn() -> bool,
) -> std::io::Result<(process::Ended, bool, bool)> {
    let clock = Instant::now();
    let (mut slow, mut stopped) = (false, false);
    loop {
        let ended = process::try_wait(pid)?;
        while let Some(signal) = signals.next() {
            stopped |= [libc::SIGINT, libc::SIGTERM, libc::SIGHUP].contains(&signal);
        }
        stopped |= asked();
        if let Some(ended) = ended {
            return Ok((ended, slow, stopped));
        }
        slow = slow || clock.elapsed() > PATIENCE;
        if slow || stopped {
            process::send(pid, libc::SIGKILL);
        }
        std::thread::sleep(Duration::from_millis(2));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn two_points_make_a_line() {
        let line = Line::through((10, 2000), (30, 4000)).unwrap();
        assert_eq!((line.base, line.each), (1000.0, 100.0));
        assert_eq!(line.at(1000), 101_000);
        assert!(Line::through((10, 2000), (30, 2000)).is_err());
        assert!(Line::through((10, 2000), (10, 3000)).is_err());
    }
}
