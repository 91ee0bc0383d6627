//! One worker: its own environments, its own copy of the policy, its own thread.

mod make;

use super::package::{
    Change, Newest, Order, Package, Report, ReportKind, Shard, Signals, State, Weights,
};
use super::{AsyncOptions, Factory};
use crate::env::Environments;
use crate::policy::{Noise, Widths};
use crate::steps::Stepper;
use crate::{CollectError, Replica, panic_text};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::{Receiver, Sender};

/// Where a worker's environments begin.
pub(super) enum Begin {
    /// With first episodes.
    Fresh {
        /// At random ages.
        spread: bool,
    },
    /// Where the worker before was at a rollout's start.
    From(State),
    /// With new episodes, at its clock and step.
    Anew(State),
}

/// All that a worker is made of.
pub(super) struct Worker<E: Environments + Send + 'static> {
    pub shard: Shard,
    pub generation: u32,
    pub factory: Arc<Factory<E>>,
    pub options: AsyncOptions,
    pub widths: Widths,
    pub noise: (i64, Noise),
    pub seed: u64,
    pub replica: Box<dyn Replica>,
    pub signals: Arc<Signals>,
    pub newest: Arc<Newest>,
    pub change: Option<Change<E>>,
    pub reports: Sender<Report>,
    pub orders: Receiver<Order<E>>,
}

/// Why something was not done.
enum JobFailure {
    Panic(String),
    Error(CollectError),
}

impl From<CollectError> for JobFailure {
    fn from(e: CollectError) -> Self {
        Self::Error(e)
    }
}

/// Calls `f`; a panic becomes its message.
fn guarded<T>(f: impl FnOnce() -> Result<T, CollectError>) -> Result<T, JobFailure> {
    // Every caller discards the state after a panic.
    match catch_unwind(AssertUnwindSafe(f)) {
        Ok(result) => Ok(result?),
        Err(payload) => Err(JobFailure::Panic(
            panic_text(&*payload).unwrap_or_else(|| "a panic without a message".into()),
        )),
    }
}

impl<E: Environments + Send + 'static> Worker<E> {
    /// Works until nobody gives orders any more.
    pub(crate) fn run(mut self, begin: Begin) {
        // Many workers share the cores. The setting is that of this thread alone.
        tch::set_num_threads(1);
        let built = self.built(&begin);
        let (mut stepper, mut start) = match built {
            Ok(built) => built,
            Err(e) => return self.report(ReportKind::Dead(e)),
        };
        self.report(ReportKind::Ready {
            spec: Box::new(stepper.env.spec().clone()),
            state: start.clone(),
        });
        let mut lost = 0;
        while let Ok(order) = self.orders.recv() {
            if self.signals.quit.load(Relaxed) {
                return;
            }
            self.signals.progress.fetch_add(1, Relaxed);
            let done = match order {
                Order::Collect { number, weights, package } => {
                    self.make(&mut stepper, &mut start, number, weights, package, &mut lost)
                }
                Order::Restore { blob, from, spread } => {
                    let restored = self.restore(&mut stepper, &mut start, &blob, from, spread);
                    self.report(ReportKind::Restored(restored));
                    Ok(())
                }
                Order::Change(change) => {
                    let changed = change(&mut stepper.env).map_err(CollectError::from);
                    self.change = Some(change);
                    changed.or_else(|e| {
                        self.report(ReportKind::Refused(e));
                        Ok(())
                    })
                }
            };
            if let Err(e) = done {
                return self.report(ReportKind::Dead(e));
            }
        }
    }

    fn report(&self, what: ReportKind) {
        // Nobody listens when all of it comes to an end.
        let _ = self.reports.send(Report {
            worker: self.shard.worker,
            generation: self.generation,
            what,
        });
    }

    fn dead(&self, why: String) -> CollectError {
        CollectError::Worker { worker: self.shard.worker, envs: self.shard.envs(), why }
    }

    /// Environments as they are to begin, and that state. New episodes where the state
    /// cannot be gone back to.
    fn built(&self, begin: &Begin) -> Result<(Stepper<E>, State), CollectError> {
        let from = |state: &State| match guarded(|| self.build(Some(&state.blob))) {
            Ok(stepper) => Ok(stepper),
            Err(_) => self.build_anew(state),
        };
        let built = guarded(|| match begin {
            Begin::Fresh { spread } => {
                let mut stepper = self.build(None)?;
                stepper.reset(*spread)?;
                Ok(stepper)
            }
            Begin::From(state) => from(state),
            Begin::Anew(state) => self.build_anew(state),
        });
        let stepper = match built {
            Ok(stepper) => stepper,
            Err(JobFailure::Error(e)) => return Err(e),
            Err(JobFailure::Panic(why)) => {
                return Err(self.dead(format!("panicked as its environments were built: {why}")));
            }
        };
        let start = self.start_of(&stepper)?;
        Ok((stepper, start))
    }

    fn start_of(&self, stepper: &Stepper<E>) -> Result<State, CollectError> {
        let mut blob = Vec::new();
        stepper.write_head(&mut blob)?;
        stepper.env.capture(&mut blob)?;
        Ok(State { blob: Arc::new(blob), clock: stepper.env.clock() })
    }

    /// New environments, in a state if one is given.
    fn build(&self, blob: Option<&[u8]>) -> Result<Stepper<E>, CollectError> {
        self.signals.building.store(true, Relaxed);
        let built = (self.factory)(self.shard);
        self.signals.building.store(false, Relaxed);
        self.signals.progress.fetch_add(1, Relaxed);
        let mut env = built?;
        if let Some(change) = &self.change {
            change(&mut env)?;
        }
        let first = self.shard.first as u32;
        let stepping = self.options.stepping;
        let mut stepper =
            Stepper::new(Box::new(env), self.widths, self.noise, self.seed, first, stepping)?;
        if let Some(blob) = blob {
            stepper.restore_range(blob, 0, false)?;
        }
        Ok(stepper)
    }

    /// New environments with new episodes, at the step and the clock of a state.
    fn build_anew(&self, state: &State) -> Result<Stepper<E>, CollectError> {
        let mut stepper = self.build(None)?;
        // The reset counts as one.
        let passed = state.clock.saturating_sub(stepper.env.clock() + 1);
        stepper.env.skip(passed);
        stepper.reset(false)?;
        stepper.take_step(&state.blob)?;
        Ok(stepper)
    }

    fn restore(
        &self,
        stepper: &mut Stepper<E>,
        start: &mut State,
        blob: &[u8],
        from: usize,
        spread: bool,
    ) -> Result<(usize, State), CollectError> {
        let taken = match guarded(|| stepper.restore_range(blob, from, spread)) {
            Ok(taken) => taken,
            Err(JobFailure::Error(e)) => return Err(e),
            Err(JobFailure::Panic(why)) => {
                return Err(self.dead(format!("panicked as it took over a state: {why}")));
            }
        };
        *start = self.start_of(stepper)?;
        Ok((taken, start.clone()))
    }
}
