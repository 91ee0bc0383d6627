//! Reports of workers, and replacements for those that report nothing any more.

use super::{Begin, Flight, Report, ReportKind, Workers};
use crate::CollectError;
use crate::env::Environments;
use std::sync::atomic::Ordering::Relaxed;
use std::sync::mpsc::RecvTimeoutError;
use std::time::{Duration, Instant};

/// Building environments may take so many times as long as a step before it counts as
/// hanging: a kernel may have to be compiled.
const BUILDING: u32 = 10;

/// Replacements of one worker for one rollout: the first goes on where the rollout
/// began, the next with new episodes.
const MOST_REPLACEMENTS: u32 = 2;

impl<E: Environments + Send + 'static> Workers<E> {
    /// Waits until the next rollout is made by all, or cut.
    pub(crate) fn wait_for(&mut self, flight: &Flight<'_>) -> Result<(), CollectError> {
        let wanted = self.options.preemptive_threshold * self.all.len() as f64;
        self.look_again();
        loop {
            let done = self.all.iter().filter(|m| !m.done.is_empty()).count();
            if done == self.all.len() {
                return Ok(());
            }
            if done as f64 >= wanted {
                for member in &self.all {
                    member.signals.cut.store(flight.next + 1, Relaxed);
                }
            }
            self.listen(Some(flight))?;
            crate::go_on()?;
        }
    }

    /// The deadlines begin now.
    pub(super) fn look_again(&mut self) {
        let now = Instant::now();
        for member in &mut self.all {
            member.seen = (member.signals.progress.load(Relaxed), now);
        }
    }

    /// Takes in one report, or looks for workers that hang. `flight`: the rollout that they
    /// collect; none while states are given to them.
    pub(super) fn listen(&mut self, flight: Option<&Flight<'_>>) -> Result<(), CollectError> {
        let timeout = self.options.worker_timeout;
        let pause = (timeout / 8).clamp(Duration::from_millis(1), Duration::from_secs(1));
        match self.reports.recv_timeout(pause) {
            Ok(report) => self.take_in(report, flight.map(|f| f.next)),
            Err(RecvTimeoutError::Timeout) => self.look_for_hangs(flight),
            // This end keeps a sender itself.
            Err(RecvTimeoutError::Disconnected) => Ok(()),
        }
    }

    fn take_in(&mut self, report: Report, next: Option<u64>) -> Result<(), CollectError> {
        let member = &mut self.all[report.worker];
        if report.generation != member.generation {
            // From one that was given up, and got on after all.
            return Ok(());
        }
        match report.what {
            ReportKind::Ready { spec, state } => {
                member.ready = true;
                // The state of one that was replaced is known, and the same or newer.
                if self.spec.is_none() || member.state.blob.is_empty() {
                    member.state = state;
                }
                self.spec.get_or_insert(*spec);
            }
            ReportKind::Done(number, package) => {
                member.replaced = 0;
                match next {
                    Some(next) if number >= next => member.done.push_back(package),
                    // It was dropped.
                    _ => member.free.push(package),
                }
            }
            ReportKind::Returned(package) => member.free.push(package),
            ReportKind::Restored(result) => {
                member.placing = false;
                let (taken, state) = result?;
                member.placed = Some((taken, state));
            }
            ReportKind::Restarted { message } => {
                self.restarts += 1;
                let envs = member.shard.envs();
                tracing::warn!(
                    worker = report.worker,
                    "worker {} (environments {envs:?}) panicked and is started again: {message}",
                    report.worker
                );
            }
            ReportKind::Failed(number, e) if next.is_some_and(|next| number >= next) => {
                return Err(e);
            }
            // Of a rollout that was dropped.
            ReportKind::Failed(..) => {}
            ReportKind::Refused(e) => return Err(e),
            ReportKind::Dead(e) => {
                member.ended = true;
                return Err(e);
            }
        }
        Ok(())
    }

    fn look_for_hangs(&mut self, flight: Option<&Flight<'_>>) -> Result<(), CollectError> {
        let now = Instant::now();
        for worker in 0..self.all.len() {
            let member = &mut self.all[worker];
            let late = match flight {
                Some(_) => member.done.is_empty(),
                None => member.placing || !member.ready,
            };
            let progress = member.signals.progress.load(Relaxed);
            if !late || progress != member.seen.0 {
                member.seen = (progress, now);
                continue;
            }
            let patience = match member.signals.building.load(Relaxed) {
                true => self.options.worker_timeout * BUILDING,
                false => self.options.worker_timeout,
            };
            let waited = now.duration_since(member.seen.1);
            if waited > patience {
                self.replace(worker, waited, flight)?;
            }
        }
        Ok(())
    }

    /// Leaves a worker that hangs behind and has another go on in its place.
    fn replace(
        &mut self,
        worker: usize,
        waited: Duration,
        flight: Option<&Flight<'_>>,
    ) -> Result<(), CollectError> {
        self.hangs += 1;
        let member = &mut self.all[worker];
        let envs = member.shard.envs();
        tracing::warn!(
            worker,
            "worker {worker} (environments {envs:?}) has made no step for {:.1} s and is replaced (collector.worker_timeout_s)",
            waited.as_secs_f64()
        );
        member.signals.quit.store(true, Relaxed);
        member.generation += 1;
        member.replaced += 1;
        let (shard, replaced) = (member.shard, member.replaced);
        self.abandoned.extend(member.thread.take());
        let (Some(flight), true) = (flight, replaced <= MOST_REPLACEMENTS) else {
            return Err(CollectError::Worker {
                worker,
                envs: shard.envs(),
                why: format!(
                    "makes no step within {:.1} s, and neither do {replaced} others in its place; is collector.worker_timeout_s too short?",
                    self.options.worker_timeout.as_secs_f64()
                ),
            });
        };
        let state = match member.done.back() {
            Some(package) => package.state.clone(),
            None => member.state.clone(),
        };
        let begin = match replaced {
            1 => Begin::From(state),
            _ => Begin::Anew(state),
        };
        let made = member.done.len();
        self.start(worker, flight.policy, begin)?;
        for (i, weights) in flight.weights.iter().enumerate().skip(made) {
            self.order_of(worker, flight.next + i as u64, weights)?;
        }
        Ok(())
    }
}
