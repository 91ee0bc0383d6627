//! Why an iteration is not believed.

use super::watch::advice;
use crate::run::evaluate::history::share_lost;
use ostler_learn::learner::registry::Algorithm;
use std::fmt;

/// A finding. Displays as one sentence with the numbers.
#[derive(Debug, Clone, PartialEq)]
pub enum Trouble {
    /// More environments broke than bad luck explains.
    Broken {
        /// Steps that broke.
        broken: u64,
        /// All steps of the iteration.
        steps: u64,
        /// The share that is put up with.
        limit: f64,
        /// Most of them because the policy's actions were not finite.
        actions: bool,
        /// What broke them most often, with numbers: `nan/reward/upright 26`.
        causes: String,
    },
    /// Parameters or the optimiser's state are not finite.
    NotFinite,
    /// Updates that could not be used, in a row.
    Skipped {
        /// How many.
        updates: u32,
        /// Minibatches skipped in the last of them.
        skipped: u64,
        /// Its minibatches.
        minibatches: u64,
    },
    /// Updates whose value loss was far beyond what it used to be, in a row.
    ValueLoss {
        /// How many.
        updates: u32,
        /// The last one's.
        loss: f64,
        /// The largest of the good ones before.
        usual: f64,
    },
    /// An evaluation that has lost too much of what was gained.
    ReturnDrop {
        /// Its mean return.
        last: f64,
        /// The best evaluation's.
        best: f64,
        /// The iteration after which that was made.
        best_iteration: u64,
        /// How much is lost, as a share of what was gained.
        drop: f64,
        /// The share that is put up with.
        limit: f64,
    },
}

impl Trouble {
    /// Names it in logs and reports.
    pub fn name(&self) -> &'static str {
        match self {
            Self::Broken { .. } => "broken_envs",
            Self::NotFinite => "non_finite_params",
            Self::Skipped { .. } => "skipped_updates",
            Self::ValueLoss { .. } => "value_loss",
            Self::ReturnDrop { .. } => "return_drop",
        }
    }

    /// The usual remedy, in the keys of what learns.
    pub fn remedy(&self, learner: Algorithm) -> String {
        match self {
            Self::Broken { actions: false, causes, .. } if !causes.is_empty() => {
                advice(causes).into()
            }
            Self::Broken { actions: false, .. } => {
                "by the causes under Guard/*: for a reward or an observation bounds in its expression, for a joint or a body a smaller sim.dt, task.option.integrator = \"implicitfast\" where actuators have damping, more armature or damping at the joints, weaker actions or a gentler reset".into()
            }
            Self::Broken { .. } | Self::NotFinite | Self::Skipped { .. } => format!(
                "{}, observations and rewards within limits (clip, obs_normalization)",
                learner.slower()
            ),
            Self::ValueLoss { .. } => format!(
                "rewards within limits (task.rewards.clip, smaller weights), {}",
                learner.calmer()
            ),
            Self::ReturnDrop { .. } => learner.steadier().into(),
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Broken { broken, steps, limit, actions, causes } => write!(
                f,
                "{broken} of {steps} environment steps broke{} ({:.1} %, guard.max_broken_share allows {:.1} %){}{causes}",
                if *actions { " on actions that were not finite" } else { "" },
                100.0 * *broken as f64 / (*steps).max(1) as f64,
                100.0 * limit,
                if causes.is_empty() { "" } else { ": " }
            ),
            Self::NotFinite => {
                write!(f, "parameters or the optimiser's state were not finite")
            }
            Self::Skipped { updates, skipped, minibatches } => write!(
                f,
                "nothing was learnt in {updates} updates in a row: losses or gradients were not finite ({skipped} of {minibatches} minibatches skipped in the last)"
            ),
            Self::ReturnDrop { last, best, best_iteration, drop, limit } => write!(
                f,
                "the evaluated return fell to {last:.2}, from {best:.2} at iteration {best_iteration}: {} is lost (guard.max_return_drop allows {:.0} %)",
                share_lost(*drop),
                100.0 * limit
            ),
            Self::ValueLoss { updates, loss, usual } => write!(
                f,
                "the value loss was {loss:.3e} after {updates} bad updates in a row, at most {usual:.3e} in the good ones before"
            ),
        }
    }
}
