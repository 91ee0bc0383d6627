//! Back to weights that are believed, after an iteration or an evaluation that is not.

use super::error::RunError;
use super::evaluate::Evaluation;
use super::guards::Trouble;
use super::parts::Parts;
use super::{Run, failure};

impl Run {
    /// Goes back to good weights where there is `trouble`; else this iteration counts
    /// towards the probation of the present ones.
    ///
    /// # Errors
    /// That was done too often, or there is no memory for the weights.
    pub(super) fn judge(
        &mut self,
        parts: &mut Parts,
        trouble: Option<&Trouble>,
    ) -> Result<(), RunError> {
        match trouble {
            Some(trouble) => self.roll_back(parts, trouble),
            None => {
                let weights = || parts.learner.weights();
                Ok(self.guards.health.passed_probation(weights)?)
            }
        }
    }

    /// Notes an evaluation, and rolls back where it has fallen too far below the best.
    /// That of weights that are under suspicion is logged and nothing else.
    ///
    /// # Errors
    /// No memory for the weights, or too many roll-backs.
    pub(super) fn judge_evaluation(
        &mut self,
        parts: &mut Parts,
        evaluation: &Evaluation,
    ) -> Result<(), RunError> {
        if self.guards.health.doubtful() {
            return Ok(());
        }
        let limit = self.config().guard.max_return_drop;
        let learner = self.config().runner.algorithm;
        let history = &mut self.evaluations.history;
        history.enter(&self.schedules.stage);
        let keep = limit > 0.0 && history.is_best(evaluation);
        let weights = keep.then(|| parts.learner.weights()).transpose()?;
        history.add(self.counters.iteration, evaluation, weights);
        match history.judge(limit, learner) {
            Some(trouble) => self.roll_back(parts, &trouble),
            None => Ok(()),
        }
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
            self.guards.health.trust(self.evaluations.history.weights());
            which = "the weights of the best evaluation";
        }
        let guard = &self.setup.config().guard;
        let learner = self.setup.config().runner.algorithm;
        let (iteration, scale, most) =
            (self.counters.iteration, guard.roll_back_lr, guard.max_roll_backs);
        let more = self.guards.health.roll_back();
        let (what, remedy) = (trouble.to_string(), trouble.remedy(learner));
        self.report_failure(Some(parts), trouble.name(), &what, &remedy);
        parts.learner.roll_back(self.guards.health.good(), scale)?;
        // Nothing of what the policy that is not believed did meanwhile.
        parts.collector.forget_ahead()?;
        let number = self.guards.health.record().roll_backs;
        tracing::warn!(
            trouble = trouble.name(),
            "iteration {iteration}: {what}; back to {which}, learning rate times {scale} (roll-back {number} in a row, guard.max_roll_backs = {most}). What usually mends it: {remedy}"
        );
        if more {
            return Ok(());
        }
        let error = RunError::GaveUp { roll_backs: number - 1, trouble: what, remedy };
        // The good weights are worth keeping, whatever the run is.
        if let Err(e) = self.save(parts) {
            tracing::warn!("{e}");
        }
        Err(error)
    }

    /// Writes a report about the iteration that was just judged. A report that cannot
    /// be written is a warning: the run has other troubles.
    pub(super) fn report_failure(
        &self,
        parts: Option<&Parts>,
        kind: &str,
        what: &str,
        remedy: &str,
    ) {
        let case = failure::Case { dir: self.store.dir(), run: self.standing(), parts };
        case.report(kind, what, remedy);
    }
}
