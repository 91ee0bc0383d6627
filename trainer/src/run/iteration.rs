//! One iteration: a rollout, an update, and everything that follows from them. It
//! counts whole or not at all: until it is committed, all of it can be taken back.

use super::counters::Counters;
use super::error::RunError;
use super::parts::Parts;
use super::trouble::Trouble;
use super::{Evaluation, Run};
use crate::drill::Phase;
use crate::learner::UpdateStats;
use ostler_collector::transfer::host_number;
use ostler_collector::{Collector, Rollout};
use std::time::Instant;
use tch::Kind;

/// Evaluations within `--max-time`, where iterations are too many to bring as many.
const EVALUATIONS_IN_TIME: u32 = 20;

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
        let most = self.config().runner.max_iterations;
        let done = self.pace.done(self.counters.iteration, most);
        parts.learner.set_progress(done)?;
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
        let mut mended = match &trouble {
            Some(trouble) => self.roll_back(parts, trouble),
            None => self.passed_probation(parts),
        };
        let evaluation = match trouble {
            None => self.evaluate_if_due(parts),
            Some(_) => Ok(None),
        };
        let shown = evaluation.as_ref().ok().and_then(Option::as_ref);
        if let Some(evaluation) = shown {
            let followed = self.follow_evaluation(parts, evaluation);
            mended = mended.and(followed);
        }
        self.judge(shown);
        let per_step = reward_per_step(parts.collector.rollout());
        // Whatever went wrong since, the iteration was done and is on record.
        self.log(parts, &update, took, shown, per_step);
        self.measure_schedules();
        mended?;
        evaluation?;
        let stats = parts.collector.stats();
        self.watch
            .look(self.counters.iteration, &update, stats, samples);
        self.save_if_due(parts)?;
        self.after_first();
        Ok(())
    }

    fn passed_probation(&mut self, parts: &Parts) -> Result<(), RunError> {
        Ok(self.health.passed_probation(|| parts.learner.weights())?)
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

    /// Back to the last good weights, or where the return has fallen to those of the best
    /// evaluation, with a lower learning rate.
    ///
    /// # Errors
    /// That was done too often.
    fn roll_back(&mut self, parts: &mut Parts, trouble: &Trouble) -> Result<(), RunError> {
        let mut which = "the last good weights";
        if let Trouble::ReturnDrop { .. } = trouble {
            // Whatever stood its probation since is part of the fall.
            self.health.trust(self.evaluations.weights());
            which = "the weights of the best evaluation";
        }
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
            "iteration {iteration}: {what}; back to {which}, learning rate times {scale} (roll-back {number} in a row, guard.max_roll_backs = {most}). What usually mends it: {remedy}"
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
        if let Err(e) = self.save(parts) {
            tracing::warn!("{e}");
        }
        Err(error)
    }

    /// Whether the policy is to be evaluated now: at every multiple of
    /// `runner.eval_interval` and after the last iteration; and in between, at a distance
    /// that keeps its share of the time small, where the training's return says that the
    /// goal is reached, or where `--max-time` has gone on by a twentieth.
    fn evaluation_due(&self) -> bool {
        let (n, runner) = (self.counters.iteration, &self.config().runner);
        if self.evaluator.is_none() {
            return false;
        }
        if n.is_multiple_of(runner.eval_interval().max(1)) || n == runner.max_iterations {
            return true;
        }
        let last = self.evaluations.record().last.map_or(0, |s| s.iteration);
        let apart = self.config().eval_spacing(self.spec.max_episode_steps);
        let goal = runner.stop_at_return;
        let in_sight = || goal != 0.0 && self.settled_return().is_some_and(|r| r >= goal);
        let late = || {
            let part = self.max_time.map(|t| t / EVALUATIONS_IN_TIME);
            part.is_some_and(|part| self.evaluated.elapsed() >= part)
        };
        n.saturating_sub(last) >= apart && (in_sight() || late())
    }

    fn evaluate_if_due(&mut self, parts: &mut Parts) -> Result<Option<Evaluation>, RunError> {
        if !self.evaluation_due() {
            return Ok(None);
        }
        let episodes = self.config().runner.eval_episodes();
        let Some(evaluator) = &mut self.evaluator else {
            return Ok(None);
        };
        self.drill.enter(Phase::Evaluate, self.counters.iteration);
        let evaluated = evaluator.evaluate(parts.learner.policy_mut(), episodes);
        let evaluation = self.drill.leave(Phase::Evaluate, evaluated)?;
        self.evaluated = Instant::now();
        self.evaluation_s += evaluation.seconds;
        Ok(Some(evaluation))
    }

    /// Notes an evaluation, and rolls back where it has fallen too far below the best.
    /// That of weights that are under suspicion is logged and nothing else.
    ///
    /// # Errors
    /// No memory for the weights, or too many roll-backs.
    fn follow_evaluation(
        &mut self,
        parts: &mut Parts,
        evaluation: &Evaluation,
    ) -> Result<(), RunError> {
        if self.health.doubtful() {
            return Ok(());
        }
        let limit = self.config().guard.max_return_drop;
        let keep = limit > 0.0 && self.evaluations.is_best(evaluation);
        let weights = keep.then(|| parts.learner.weights()).transpose()?;
        self.evaluations
            .add(self.counters.iteration, evaluation, weights);
        match self.evaluations.judge(limit) {
            Some(trouble) => self.roll_back(parts, &trouble),
            None => Ok(()),
        }
    }

    /// The mean return of the last training episodes, once there are as many as it is
    /// meant to be over, and not the short ones alone.
    pub(super) fn settled_return(&self) -> Option<f64> {
        let settled = self.counters.window.full() && !self.short_episodes_only();
        settled.then(|| self.counters.window.means().0)
    }

    /// Whether no environment can have finished an episode of full length yet: those that
    /// have ended are the short ones.
    pub(super) fn short_episodes_only(&self) -> bool {
        let steps = self.config().runner.num_steps_per_env as u64;
        self.counters.iteration.saturating_mul(steps) < u64::from(self.spec.max_episode_steps)
    }

    /// Decides whether `runner.stop_at_return` is reached: by evaluation where there
    /// is one, else by the last hundred training episodes.
    fn judge(&mut self, evaluation: Option<&Evaluation>) {
        let goal = self.config().runner.stop_at_return;
        if goal == 0.0 {
            return;
        }
        let value = match (&self.evaluator, evaluation) {
            (Some(_), evaluation) => evaluation.map(|e| e.returns.mean),
            (None, _) => self.settled_return(),
        };
        if value.is_some_and(|value| value >= goal) {
            self.reached = value;
        }
    }
}

/// Mean reward of the valid steps of a rollout, over all rows; `None` where none is valid,
/// or no memory is left to count them.
fn reward_per_step(rollout: &Rollout) -> Option<f64> {
    let mean = || -> Result<f64, tch::TchError> {
        let rewards = rollout.reward.f_mul(&rollout.valid)?.f_sum(Kind::Double)?;
        let steps = rollout.valid.f_sum(Kind::Double)?;
        // The one number that comes from the device; NaN where no step is valid.
        host_number(&rewards.f_div(&steps)?)
    };
    mean().ok().filter(|mean| mean.is_finite())
}
