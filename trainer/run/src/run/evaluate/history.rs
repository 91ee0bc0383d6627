//! The evaluations that a run has made: which was the best, whether the return has fallen
//! since.
//!
//! Everything here is a function of the evaluations' numbers and part of checkpoints, so
//! that a resumed run decides as the whole one would have.

use super::evaluator::Evaluation;
use crate::run::guards::Trouble;
use ostler_learn::config::curriculum::Stage;
use ostler_learn::learner::NamedTensors;
use ostler_learn::learner::registry::Algorithm;
use serde::{Deserialize, Serialize};

/// A share of what was gained, in words.
pub(in crate::run) fn share_lost(drop: f64) -> String {
    match drop > 1.0 {
        true => "all that was gained since the first evaluation, and more,".into(),
        false => format!("{:.0} % of what was gained since the first evaluation", 100.0 * drop),
    }
}

/// A fall that is worth a warning, as a share of what was gained.
const WARN_DROP: f64 = 1.0 / 3.0;
/// Evaluations before the first that is judged.
const ENOUGH: u64 = 3;
/// Standard errors that two means must be apart to count as different.
const APART: f64 = 3.0;

/// The mean return of one evaluation.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
pub struct Score {
    /// The iteration after which it was made.
    pub iteration: u64,
    /// Mean return over its episodes.
    pub mean: f64,
    /// Standard error of the mean.
    pub error: f64,
}

impl Score {
    /// Whether this mean is lower by more than chance explains.
    fn is_below(&self, other: &Self) -> bool {
        other.mean - self.mean > APART * self.error.hypot(other.error)
    }
}

/// Its part of a checkpoint, besides the best weights.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Evaluations with a finite mean.
    pub count: u64,
    /// The curriculum's numbers in all of them: with others the record begins anew.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stage: Stage,
    /// The first of them.
    pub first: Option<Score>,
    /// The best.
    pub best: Option<Score>,
    /// The last.
    pub last: Option<Score>,
    /// The run began with the weights of another one.
    pub from_weights: bool,
    /// The curriculum had moved before them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub moved: bool,
    /// It was said that the return has fallen, and it has not risen since.
    pub said: bool,
}

impl Record {
    /// Whether a checkpoint can hold it: iterations up to `iteration`, finite numbers.
    pub fn plausible(&self, iteration: u64) -> bool {
        let mut all = [self.first, self.best, self.last].into_iter().flatten();
        all.all(|s| s.iteration <= iteration && s.mean.is_finite() && s.error >= 0.0)
    }

    /// How much of what was gained the last evaluation has lost:
    ///
    /// `(best - last) / (best - first)`
    ///
    /// 0 at the best, 1 where it is no better than the first evaluation, whatever the sign
    /// and the origin of returns. A run that began with another one's weights had gained
    /// something before its first evaluation: there the divisor is the best return's
    /// distance from 0, if that is more.
    ///
    /// `None` where nothing can be said: before the fourth evaluation, and as long as the
    /// divisor, or the fall, is within three standard errors.
    pub fn drop(&self) -> Option<f64> {
        let (first, best, last) = (self.first?, self.best?, self.last?);
        if self.count <= ENOUGH {
            return None;
        }
        let learnt = first.is_below(&best).then_some(best.mean - first.mean);
        let given = self.from_weights.then_some(best.mean.abs());
        let gained = learnt.into_iter().chain(given).fold(0.0, f64::max);
        match gained > 0.0 {
            true if last.is_below(&best) => Some((best.mean - last.mean) / gained),
            true => Some(0.0),
            false => None,
        }
    }
}

/// Which evaluation was the best, and how far the return has fallen since.
#[derive(Debug, Default)]
pub struct History {
    record: Record,
    /// Weights and normalisers of the best evaluation, where the policy may go back to
    /// them.
    weights: NamedTensors,
}

impl History {
    /// None yet; `from_weights`: the run begins with the weights of another one.
    pub fn new(from_weights: bool) -> Self {
        let record = Record { from_weights, ..Record::default() };
        Self { record, weights: Vec::new() }
    }

    /// As a checkpoint has them.
    pub fn restore(&mut self, record: Record, weights: NamedTensors) {
        self.record = record;
        self.weights = weights;
    }

    /// Its part of a checkpoint.
    pub fn save(&self) -> (&Record, &NamedTensors) {
        (&self.record, &self.weights)
    }

    /// The numbers.
    pub fn record(&self) -> &Record {
        &self.record
    }

    /// Weights of the best evaluation; none where they were not kept.
    pub fn weights(&self) -> &NamedTensors {
        &self.weights
    }

    /// Before an evaluation at these numbers of a curriculum. Returns at others are not
    /// comparable: which is the best, and what was lost, are told anew. Said the first time.
    pub fn enter(&mut self, stage: &Stage) {
        if self.record.stage == *stage {
            return;
        }
        let before = std::mem::take(&mut self.record);
        self.weights.clear();
        self.record = Record {
            stage: stage.clone(),
            from_weights: before.from_weights,
            moved: before.last.is_some(),
            ..Record::default()
        };
        if self.record.moved && !before.moved {
            tracing::info!(
                "evaluations follow the curriculum, which has moved since the last one: \
                 checkpoints/best.safetensors is the best since it moved last"
            );
        }
    }

    /// Whether `evaluation` is better than all before.
    pub fn is_best(&self, evaluation: &Evaluation) -> bool {
        let mean = evaluation.returns.mean;
        mean.is_finite() && self.record.best.is_none_or(|b| mean > b.mean)
    }

    /// Takes an evaluation made after `iteration`; `weights` are those it was made of, if
    /// they are kept and it [is the best](Self::is_best).
    pub fn add(&mut self, iteration: u64, evaluation: &Evaluation, weights: Option<NamedTensors>) {
        let score = Score {
            iteration,
            mean: evaluation.returns.mean,
            error: evaluation.returns.standard_error(),
        };
        if !score.mean.is_finite() {
            return;
        }
        if self.is_best(evaluation) {
            self.record.best = Some(score);
            self.weights = weights.unwrap_or_default();
        }
        let r = &mut self.record;
        r.count += 1;
        r.first.get_or_insert(score);
        r.last = Some(score);
        if r.drop().is_some_and(|d| d < WARN_DROP / 2.0) {
            r.said = false;
        }
    }

    /// Trouble where the last evaluation has lost more than `limit` of what was gained (0:
    /// never). A smaller fall is said, once, with what usually keeps `learner` from it.
    pub fn judge(&mut self, limit: f64, learner: Algorithm) -> Option<Trouble> {
        let drop = self.record.drop()?;
        let (best, last) = (self.record.best?, self.record.last?);
        if limit > 0.0 && drop > limit && !self.weights.is_empty() {
            self.record.said = false;
            return Some(Trouble::ReturnDrop {
                last: last.mean,
                best: best.mean,
                best_iteration: best.iteration,
                drop,
                limit,
            });
        }
        if drop >= WARN_DROP && !self.record.said {
            self.record.said = true;
            tracing::warn!(
                "iteration {}: the evaluated return fell to {:.2}, from {:.2} at iteration {}: \
                 {} is lost. checkpoints/best.safetensors has the best \
                 policy; guard.max_return_drop = 0.5 goes back to it when more than half is lost; \
                 what usually prevents it: {}",
                last.iteration,
                last.mean,
                best.mean,
                best.iteration,
                share_lost(drop),
                learner.steadier()
            );
        }
        None
    }

    /// A sentence where the last evaluation is far below the best.
    pub fn fallen(&self) -> Option<String> {
        let (best, last) = (self.record.best?, self.record.last?);
        let fallen = self.record.drop()? >= WARN_DROP;
        fallen.then(|| {
            format!(
                "the evaluated return fell from {:.2} (iteration {}) to {:.2}",
                best.mean, best.iteration, last.mean
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stats::Episodes;
    use tch::Tensor;

    fn evaluation(mean: f64, std: f64) -> Evaluation {
        Evaluation {
            returns: Episodes { n: 65, mean, std, ci95: 0.0, quantile_5: mean },
            ..Evaluation::default()
        }
    }

    /// After evaluations with these means, the standard error of each being 1.
    fn after(from_weights: bool, means: &[f64]) -> History {
        let mut all = History::new(from_weights);
        for (i, mean) in means.iter().enumerate() {
            let e = evaluation(*mean, 8.0);
            let weights = all.is_best(&e).then(|| vec![("w".into(), Tensor::from(i as i64))]);
            all.add(i as u64 + 1, &e, weights);
        }
        all
    }

    fn drop(means: &[f64]) -> Option<f64> {
        after(false, means).record().drop()
    }

    #[test]
    fn the_drop_is_a_share_of_what_was_gained() {
        assert_eq!(drop(&[0.0, 50.0, 100.0, 25.0]), Some(0.75));
        // Wherever returns have their origin.
        for shift in [-1000.0, -100.0, 1000.0] {
            let means = [0.0, 50.0, 100.0, 25.0].map(|m| m + shift);
            assert_eq!(drop(&means), Some(0.75), "{shift}");
        }
        assert_eq!(drop(&[0.0, 100.0, 40.0, 101.0]), Some(0.0));
        // No better than at the beginning, and worse.
        assert_eq!(drop(&[0.0, 100.0, 60.0, 0.0]), Some(1.0));
        assert_eq!(drop(&[0.0, 100.0, 60.0, -50.0]), Some(1.5));
    }

    #[test]
    fn nothing_is_said_of_chance_of_the_beginning_or_where_nothing_was_gained() {
        assert_eq!(drop(&[0.0, 100.0, 0.0]), None, "three evaluations");
        // Standard errors of 1 and 1: three of both are 4.2.
        assert_eq!(drop(&[100.0, 101.0, 104.0, 0.0]), None, "no gain");
        assert_eq!(drop(&[0.0, 50.0, 100.0, 96.0]), Some(0.0), "no fall");
        assert!(drop(&[0.0, 50.0, 100.0, 95.0]).unwrap() > 0.04);
        // A run that began with a policy that could do it already.
        assert_eq!(drop(&[100.0, 99.0, 98.0, 20.0]), None);
        let tuned = after(true, &[100.0, 99.0, 98.0, 20.0]);
        assert_eq!(tuned.record().drop(), Some(0.8));
        assert_eq!(after(true, &[-50.0, -50.0, -50.0, -90.0]).record().drop(), Some(0.8));
    }

    #[test]
    fn a_fall_beyond_the_limit_is_trouble_and_the_best_weights_are_kept() {
        let mut all = after(false, &[0.0, 100.0, 90.0, 45.0]);
        assert_eq!(all.judge(0.0, Algorithm::default()), None);
        assert!(all.record().said);
        assert_eq!(all.judge(0.6, Algorithm::default()), None);
        let trouble = all.judge(0.5, Algorithm::default()).unwrap();
        let text = trouble.to_string();
        assert!(
            text.contains("fell to 45.00, from 100.00 at iteration 2") && text.contains("55 %"),
            "{text}"
        );
        assert_eq!(i64::try_from(&all.weights()[0].1).unwrap(), 1);
        assert!(!all.record().said);
        // Where no weights were kept there is nothing to go back to.
        let (record, _) = all.save();
        let mut bare = History::default();
        bare.restore(record.clone(), Vec::new());
        assert_eq!(bare.judge(0.5, Algorithm::default()), None);
    }

    #[test]
    fn what_is_not_finite_is_no_evaluation() {
        let mut all = after(false, &[0.0, 100.0]);
        all.add(3, &evaluation(f64::NAN, f64::NAN), None);
        assert_eq!(all.record().count, 2);
        assert_eq!(all.record().last.unwrap().iteration, 2);
        assert!(all.record().plausible(2) && !all.record().plausible(1));
    }
}
