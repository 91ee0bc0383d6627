//! Drills: faults on order, by `--inject` and `[fault] inject`, to see what a run
//! does about them. Off unless asked for, loud when asked for.
//!
//! [`parse`] reads one fault; environments and learner get theirs when they are built,
//! [`RunDrill`] carries out those of the run itself.

mod poison;
mod slow;
mod text;

pub use slow::Delay;
pub use text::{EXAMPLES, parse};

use crate::learner::UpdateFault;
use ostler_collector::peers::delay_sums;
use ostler_machine::memory::limit_free_space;
use ostler_machine::torch::{FailAllocation, fail_allocation};
use ostler_sim::env::Injection;
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tch::{Device, Kind, TchError, Tensor};

/// One fault.
#[derive(Debug, Clone, PartialEq)]
pub enum Drill {
    /// In environments.
    Env(Injection),
    /// In updates.
    Update(UpdateFault),
    /// In the run.
    Run(RunFault),
}

/// A part of an iteration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Phase {
    /// The state at the iteration's start is kept.
    Keep,
    /// Policy and environments fill a rollout.
    Collect,
    /// The policy learns from it.
    Update,
    /// The policy is evaluated.
    Evaluate,
    /// A checkpoint is written.
    Save,
    /// The number of environments changes.
    Resize,
}

impl Phase {
    /// All of them.
    pub const ALL: [Self; 6] =
        [Self::Keep, Self::Collect, Self::Update, Self::Evaluate, Self::Save, Self::Resize];

    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Collect => "collect",
            Self::Update => "update",
            Self::Evaluate => "evaluate",
            Self::Save => "save",
            Self::Resize => "resize",
        }
    }
}

/// Faults of a run itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Act {
    /// SIGKILL.
    Kill,
    /// An abort, as C++ and Rust do where nothing else is left.
    Abort,
    /// So many allocations of tensors succeed, the next fails.
    FailAllocation {
        /// How many succeed. Where the phase makes no more, one at its end fails.
        after: u64,
    },
    /// Files cannot be written for want of space.
    FullDisk,
    /// The watch sees so much free space at the most.
    LowDisk {
        /// How much (MiB).
        mib: u64,
    },
    /// Writing takes so much longer (ms).
    SlowDisk {
        /// How much.
        ms: u64,
    },
    /// Sums of several processes take so much longer (us).
    SlowSums {
        /// How much.
        us: u64,
    },
    /// The phase takes longer, by a share of the processor time that it needs.
    Slow {
        /// How much (%).
        percent: u32,
        /// With what.
        by: Delay,
    },
}

/// A fault of the run itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunFault {
    /// Where.
    pub phase: Phase,
    /// In which iterations, the first is 1.
    pub iterations: RangeInclusive<u64>,
    /// In which of several processes.
    pub process: usize,
    /// What.
    pub act: Act,
}

/// Whether writes are to fail, and how long they wait (ms).
static FULL_DISK: AtomicBool = AtomicBool::new(false);
static SLOW_DISK: AtomicU64 = AtomicU64::new(0);

/// A drill's error of a file's write, before it.
///
/// # Errors
/// The disk is to be full.
pub fn before_write() -> std::io::Result<()> {
    let wait = SLOW_DISK.load(Ordering::Relaxed);
    if wait > 0 {
        std::thread::sleep(Duration::from_millis(wait));
    }
    match FULL_DISK.load(Ordering::Relaxed) {
        true => Err(std::io::Error::from_raw_os_error(libc::ENOSPC)),
        false => Ok(()),
    }
}

/// Carries out the faults of the run itself.
#[derive(Debug, Default)]
pub struct RunDrill {
    /// With whether each was carried out.
    faults: Vec<(RunFault, bool)>,
    /// The last iteration that a process of this run, which died, had begun: kills and
    /// allocation failures up to it were carried out.
    done_through: u64,
    /// One is to fail in the phase that goes on: how many had failed before.
    armed: Option<u64>,
    /// The phase that goes on is to take longer.
    slow: Option<slow::Slow>,
}

impl RunDrill {
    /// The faults of the run itself among `drills` that are process `rank`'s. `done_through`: the
    /// last iteration that a process of this run which died had begun; 0 where none did.
    pub fn new(drills: Vec<Drill>, rank: usize, done_through: u64) -> Self {
        let own = drills.into_iter().filter_map(|drill| match drill {
            Drill::Run(fault) if fault.process == rank => Some((fault, false)),
            Drill::Run(_) | Drill::Env(_) | Drill::Update(_) => None,
        });
        Self { faults: own.collect(), done_through, armed: None, slow: None }
    }

    /// A phase of the iteration begins. Kills and allocation failures come once each; a
    /// phase is slow in every iteration.
    pub fn enter(&mut self, phase: Phase, iteration: u64) {
        if self.faults.is_empty() {
            return;
        }
        for (fault, done) in &mut self.faults {
            if fault.phase != phase {
                continue;
            }
            let due = fault.iterations.contains(&iteration);
            match fault.act {
                Act::FullDisk => FULL_DISK.store(due, Ordering::Relaxed),
                Act::LowDisk { mib } => {
                    limit_free_space(if due { mib } else { u64::MAX });
                }
                Act::SlowDisk { ms } => {
                    SLOW_DISK.store(if due { ms } else { 0 }, Ordering::Relaxed);
                }
                Act::SlowSums { us } => {
                    delay_sums(Duration::from_micros(if due { us } else { 0 }));
                }
                Act::Slow { percent, by } => {
                    if due {
                        self.slow = Some(slow::Slow::begin(percent, by));
                    }
                }
                _ if !due || *done || iteration <= self.done_through => {}
                Act::Kill => {
                    tracing::warn!(iteration, phase = phase.name(), "drill: killed");
                    // SAFETY: kill and getpid take and give numbers.
                    unsafe { libc::kill(libc::getpid(), libc::SIGKILL) };
                }
                Act::Abort => {
                    tracing::warn!(iteration, phase = phase.name(), "drill: abort");
                    std::process::abort();
                }
                Act::FailAllocation { after } => {
                    *done = true;
                    tracing::warn!(
                        iteration,
                        phase = phase.name(),
                        "drill: allocation {after} fails"
                    );
                    match fail_allocation(FailAllocation::After(after)) {
                        Ok(refused) => self.armed = Some(refused),
                        Err(e) => tracing::warn!("drill: {e}"),
                    }
                }
            }
        }
    }

    /// The phase is over and came to `done`. What was armed for it alone is disarmed; an
    /// allocation that was to fail, and for which the phase made too few, fails now.
    ///
    /// # Errors
    /// Those of `done`, and the allocation's.
    pub fn leave<T, E: From<TchError>>(
        &mut self,
        phase: Phase,
        done: Result<T, E>,
    ) -> Result<T, E> {
        if let Some(slow) = self.slow.take() {
            slow.end();
        }
        let Some(refused) = self.armed.take() else {
            return done;
        };
        let disarmed = fail_allocation(FailAllocation::Never);
        let (Ok(_), Ok(now)) = (&done, &disarmed) else {
            return done;
        };
        if *now > refused {
            let phase = phase.name();
            tracing::warn!(phase, "drill: the phase went on although an allocation failed");
            return done;
        }
        let armed = fail_allocation(FailAllocation::After(0));
        let made = Tensor::f_zeros([1], (Kind::Float, Device::Cpu));
        if let Err(e) = fail_allocation(FailAllocation::Never) {
            tracing::warn!("drill: {e}");
        }
        match (armed, made) {
            (Ok(_), Err(e)) => Err(e.into()),
            _ => done,
        }
    }
}
