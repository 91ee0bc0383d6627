//! How a worker makes one rollout, whatever happens.

use super::{JobFailure, Newest, Package, ReportKind, Signals, State, Weights, Worker, guarded};
use crate::env::Environments;
use crate::steps::{Actor, Look, Outcome, Stepper};
use crate::{Act, CollectError, Replica};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, PoisonError};
use tch::{TchError, Tensor};

/// Rollouts in a row that a worker may lose before it counts as beyond help.
const MOST_LOST: u32 = 3;

impl<E: Environments + Send + 'static> Worker<E> {
    /// Makes one rollout, whatever it takes: from the state at its start; after a panic
    /// once more; after another with new episodes; after a third not at all, and then
    /// all of it is masked.
    pub(super) fn make(
        &mut self,
        stepper: &mut Stepper<E>,
        start: &mut State,
        number: u64,
        weights: Arc<Weights>,
        mut package: Box<Package>,
        lost: &mut u32,
    ) -> Result<(), CollectError> {
        let mut tries = 0;
        loop {
            let mut weights = weights.clone();
            let made = guarded(|| self.try_once(stepper, number, &mut weights, &mut package));
            let message = match made {
                Ok(true) => {
                    *lost = 0;
                    break;
                }
                Ok(false) => {
                    self.report(ReportKind::Returned(package));
                    return Ok(());
                }
                Err(JobFailure::Error(e)) => {
                    self.report(ReportKind::Failed(number, e));
                    self.report(ReportKind::Returned(package));
                    return Ok(());
                }
                Err(JobFailure::Panic(message)) => message,
            };
            tries += 1;
            self.report(ReportKind::Restarted { message });
            let again = match tries {
                1 => guarded(|| self.build(Some(&start.blob))),
                _ => guarded(|| self.build_anew(start)),
            };
            // A drop that panics must not end the thread.
            let old = match again {
                Ok(new) => std::mem::replace(stepper, new),
                // The next try is with new episodes.
                Err(_) if tries == 1 => continue,
                Err(JobFailure::Error(e)) => return Err(e),
                Err(JobFailure::Panic(why)) => {
                    return Err(self.dead(format!("panicked as it was built again: {why}")));
                }
            };
            let _ = guarded(|| {
                drop(old);
                Ok(())
            });
            if tries == 3 {
                *lost += 1;
                if *lost >= MOST_LOST {
                    return Err(self.dead(format!(
                        "has panicked in {MOST_LOST} rollouts in a row, with new episodes, too"
                    )));
                }
                self.miss(stepper, &mut package)?;
                break;
            }
        }
        // The state after this rollout is that before the next.
        *start = self.start_of(stepper)?;
        package.state = start.clone();
        self.report(ReportKind::Done(number, package));
        Ok(())
    }

    /// Lets a rollout pass.
    fn miss(&self, stepper: &mut Stepper<E>, package: &mut Package) -> Result<(), CollectError> {
        let steps = package.buffers.rollout.steps as u64;
        stepper.miss(&mut package.buffers)?;
        // The others' clocks count the reset that they began with, too.
        stepper.env.skip(steps + u64::from(stepper.begins_anew()));
        stepper.step += steps;
        stepper.take_stats(&mut package.stats);
        package.made = 0;
        package.acted = 0;
        Ok(())
    }

    /// Whether the rollout was made; nobody wants it otherwise.
    fn try_once(
        &mut self,
        stepper: &mut Stepper<E>,
        number: u64,
        weights: &mut Arc<Weights>,
        package: &mut Package,
    ) -> Result<bool, CollectError> {
        let mut actor = Watching {
            replica: &mut *self.replica,
            signals: &self.signals,
            newest: &self.newest,
            refresh: self.options.refresh_interval,
            number,
            weights,
            taken: false,
            acted: 0,
        };
        let Outcome { steps, times } = stepper.run(&mut package.buffers, &mut actor)?;
        package.acted = actor.acted;
        package.made = steps;
        package.times = times;
        let missing = package.buffers.rollout.steps as u64 - steps as u64;
        if missing > 0 {
            if self.signals.dropped.load(Relaxed) > number || self.signals.quit.load(Relaxed) {
                return Ok(false);
            }
            // The draws of the next step are again those of the other shards.
            stepper.env.skip(missing);
            stepper.step += missing;
        }
        stepper.take_stats(&mut package.stats);
        Ok(true)
    }
}

/// A copy of a policy that looks up between steps.
struct Watching<'a> {
    replica: &'a mut dyn Replica,
    signals: &'a Signals,
    newest: &'a Newest,
    refresh: usize,
    number: u64,
    weights: &'a mut Arc<Weights>,
    /// Whether the replica has these weights.
    taken: bool,
    acted: u64,
}

impl Actor for Watching<'_> {
    fn look(&mut self, t: usize) -> Result<Look, CollectError> {
        let s = self.signals;
        s.progress.fetch_add(1, Relaxed);
        if self.refresh > 0 && t.is_multiple_of(self.refresh) {
            let newest = self.newest.lock().unwrap_or_else(PoisonError::into_inner);
            if newest.number > self.weights.number {
                *self.weights = newest.clone();
                self.taken = false;
            }
        }
        let unwanted = s.dropped.load(Relaxed) > self.number || s.quit.load(Relaxed);
        // One step is made in any case, so that a masked one has numbers to repeat.
        let go_on = !unwanted && (t == 0 || s.cut.load(Relaxed) <= self.number);
        if go_on {
            if !self.taken {
                self.replica.take(&self.weights.weights)?;
                self.taken = true;
            }
            self.acted += self.weights.number;
        }
        Ok(Look { version: self.weights.version, go_on })
    }

    fn act(&mut self, obs: &Tensor, noise: &Tensor, out: &Act<'_>) -> Result<(), TchError> {
        self.replica.act(obs, noise, out)
    }

    fn bounds(&self) -> &[f32] {
        self.replica.bounds()
    }
}
