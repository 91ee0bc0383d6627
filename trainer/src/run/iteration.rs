//! One iteration: a rollout, an update, and everything that follows from them. It
//! counts whole or not at all: until it is committed, all of it can be taken back.

use super::counters::Counters;
use super::error::RunError;
use super::parts::Parts;
use super::trouble::Trouble;
use super::{Evaluation, Run};
use crate::drill::Phase;
use crate::learner::UpdateStats;
use ostler_collector::Collector;
use std::time::Instant;

impl Run {
    /// One iteration, or the warm-up before the first.
    ///
    /// # Errors
    /// Out of memory, which fewer environments mend; or something that nothing does.
    pub(super) fn iterate(&mut self, parts: &mut Parts) -> Result<(), RunError> {
        self.committed = true;
        self.follow_schedules(parts)?;
        let iteration = self.counters.iteration + 1;
        self.drill.enter(Phase::Keep, iteration);
        let captured = parts.capture(&mut self.start);
        self.drill.leave(Phase::Keep, captured)?;
        self.committed = false;
        if self.counters.env_steps == 0 && parts.learner.wants_warm_up() {
            return self.warm_up(parts);
        }
        let clock = Instant::now();
        let done = self.counters.iteration as f64 / self.config().runner.max_iterations as f64;
        parts.learner.set_progress(done.min(1.0))?;
        self.drill.enter(Phase::Collect, iteration);
        let collected = parts
            .collector
            .collect(parts.learner.policy_mut())
            .map(|_| ());
        self.drill.leave(Phase::Collect, collected)?;
        let samples = self.loaded.config.samples();
        let stats = parts.collector.stats();
        let judged = self
            .health
            .judge_collection(stats.broken(), &stats.faults, samples);
        let (update, trouble) = match judged {
            // Thrown away: nothing is learnt from what a broken policy did.
            Some(trouble) => (UpdateStats::none(), Some(trouble)),
            None => {
                self.drill.enter(Phase::Update, iteration);
                let update = self.update(parts);
                let update = self.drill.leave(Phase::Update, update)?;
                let trouble = self.health.judge_update(&update);
                (update, trouble)
            }
        };
        self.counters.iteration += 1;
        self.counters.env_steps += samples;
        self.counters.window.add(parts.collector.stats());
        self.committed = true;
        let took = clock.elapsed();
        let mended = match &trouble {
            Some(trouble) => self.roll_back(parts, trouble),
            None => self.stood(parts),
        };
        let evaluation = match trouble {
            None => self.evaluate_if_due(parts),
            Some(_) => Ok(None),
        };
        let shown = evaluation.as_ref().ok().and_then(Option::as_ref);
        self.judge(shown);
        // Whatever went wrong since, the iteration was done and is on record.
        self.log(parts, &update, took, shown);
        self.measure_schedules();
        mended?;
        let evaluation = evaluation?;
        let stats = parts.collector.stats();
        self.watch
            .look(self.counters.iteration, &update, stats, samples);
        self.save_if_due(parts, evaluation.as_ref())?;
        self.after_first();
        Ok(())
    }

    fn stood(&mut self, parts: &Parts) -> Result<(), RunError> {
        Ok(self.health.stood(|| parts.learner.weights())?)
    }

    /// A fresh normaliser would ruin the first updates: a fresh run with one first
    /// collects a rollout for its statistics alone. Its steps count.
    fn warm_up(&mut self, parts: &mut Parts) -> Result<(), RunError> {
        parts.collector.collect(parts.learner.policy_mut())?;
        parts.learner.warm_up(parts.collector.rollout())?;
        // Collected ahead without what was just learnt about observations.
        parts.collector.forget_ahead()?;
        self.counters = Counters {
            env_steps: self.loaded.config.samples(),
            ..self.counters.clone()
        };
        self.counters.window.add(parts.collector.stats());
        self.committed = true;
        Ok(())
    }

    fn update(&self, parts: &mut Parts) -> Result<UpdateStats, RunError> {
        let threads = self.config().learner_threads();
        let update = || parts.learner.update(parts.collector.rollout());
        Ok(crate::torch::with_threads(threads, update)?)
    }

    /// Back to the last good weights, with a lower learning rate.
    ///
    /// # Errors
    /// That was done too often.
    fn roll_back(&mut self, parts: &mut Parts, trouble: &Trouble) -> Result<(), RunError> {
        let config = &self.loaded.config.guard;
        let (iteration, scale) = (self.counters.iteration, config.roll_back_lr);
        let more = self.health.roll_back();
        let (what, remedy) = (trouble.to_string(), trouble.remedy());
        self.report(Some(parts), trouble.name(), &what, remedy);
        parts.learner.roll_back(self.health.good(), scale)?;
        // Nothing of what the policy that is not believed did meanwhile.
        parts.collector.forget_ahead()?;
        let record = self.health.record();
        let (number, most) = (record.roll_backs, self.config().guard.max_roll_backs);
        tracing::warn!(
            trouble = trouble.name(),
            "iteration {iteration}: {what}; back to the last good weights, learning rate times {scale} (roll-back {number} in a row, guard.max_roll_backs = {most}). What usually mends it: {remedy}"
        );
        if more {
            return Ok(());
        }
        let error = RunError::GaveUp {
            roll_backs: record.roll_backs - 1,
            trouble: what,
            remedy,
        };
        // The good weights are worth keeping, whatever the run is.
        if let Err(e) = self.save(parts, None) {
            tracing::warn!("{e}");
        }
        Err(error)
    }

    fn evaluate_if_due(&mut self, parts: &mut Parts) -> Result<Option<Evaluation>, RunError> {
        let runner = &self.loaded.config.runner;
        match &mut self.evaluator {
            Some(evaluator) if self.counters.iteration.is_multiple_of(runner.eval_interval) => {
                self.drill.enter(Phase::Evaluate, self.counters.iteration);
                let evaluated =
                    evaluator.evaluate(parts.learner.policy_mut(), runner.eval_episodes);
                Ok(Some(self.drill.leave(Phase::Evaluate, evaluated)?))
            }
            _ => Ok(None),
        }
    }

    /// Decides whether `runner.stop_at_return` is reached: by evaluation where there
    /// is one, else by the last hundred training episodes.
    fn judge(&mut self, evaluation: Option<&Evaluation>) {
        let goal = self.config().runner.stop_at_return;
        if goal == 0.0 {
            return;
        }
        let value = match (&self.evaluator, evaluation) {
            (Some(_), Some(e)) if e.episodes > 0 => e.mean_return,
            (None, _) if self.counters.window.full() => self.counters.window.means().0,
            _ => return,
        };
        if value >= goal {
            self.reached = Some(value);
        }
    }
}
