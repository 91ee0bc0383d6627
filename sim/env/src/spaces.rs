//! Shapes of what goes into an environment and comes out of it: actions, rows of observations,
//! events.

use crate::config::EventTime;
use ostler_engine::kernels;

/// One value for the policy and, where the task has privileged terms, one for the
/// critic. Without one the critic sees the policy's observations.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Groups<T> {
    /// Seen by the actor.
    pub policy: T,
    /// Seen by the critic, if it differs.
    pub critic: Option<T>,
}

/// Actions of the policy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ActionSpace {
    /// A vector of this many unbounded numbers; the task clips.
    Continuous(usize),
    /// One of this many choices; the action is a single float holding the index.
    Discrete(usize),
}

impl ActionSpace {
    /// Floats per action, `A`.
    pub fn width(self) -> usize {
        match self {
            Self::Continuous(n) => n,
            Self::Discrete(_) => 1,
        }
    }
}

/// One row of the observation table that `ostler check` prints.
#[derive(Debug, Clone, PartialEq)]
pub struct ObsRow {
    /// First index in the observation.
    pub index: usize,
    /// Number of entries of a control step.
    pub len: usize,
    /// Control steps whose values are seen, the oldest first.
    pub frames: usize,
    /// Entries from one control step to the next.
    pub stride: usize,
    /// Noise, bias, delay and history, in words; empty without any.
    pub seen: String,
    /// The term's name.
    pub name: String,
    /// Its expression.
    pub expr: String,
    /// Its unit, `"-"` for none.
    pub unit: String,
}

/// A group of observations that neither actor nor critic sees: columns of the critics' rows.
#[derive(Debug, Clone, PartialEq)]
pub struct ObsGroup {
    /// Its name.
    pub name: String,
    /// First column.
    pub first: usize,
    /// Columns.
    pub width: usize,
    /// The (first agent's) terms, by their places in the group.
    pub table: Vec<ObsRow>,
}

/// An event, as far as breaks are counted by it.
#[derive(Debug, Clone, PartialEq)]
pub struct EventSpec {
    /// Its name.
    pub name: String,
    /// When it happens.
    pub when: EventTime,
    /// Control steps shortly after the event, for each time that it happens.
    pub soon: f64,
    /// Control steps between two times; 0 but for `when = "interval"`.
    pub every: f64,
    /// What of its numbers is not as it seems: draws that are cut off, factors of nothing.
    pub warnings: Vec<String>,
}

impl EventSpec {
    /// A break is soon after an event up to so many control steps after it.
    pub const SOON: u32 = kernels::EVENT_SOON;
    /// Breaks after which an environment breaks again and again.
    pub const AGAIN: u32 = kernels::BREAKS_AGAIN;

    /// How many of `broken` environments would count for the event if it had nothing to do
    /// with them. `steps`: control steps of all environments; `episodes`: episodes that
    /// began in them; `envs`: environments.
    ///
    /// Breaks of environments are taken as a Poisson process: of startup, the expected
    /// number of those that come after the first two of their environments.
    pub fn by_chance(&self, broken: u64, steps: u64, episodes: u64, envs: usize) -> f64 {
        let broken = broken as f64;
        let share = |most: f64| most.clamp(0.0, 1.0) * broken;
        match self.when {
            EventTime::Interval => share(self.soon / self.every.max(1.0)),
            EventTime::Reset => share(self.soon * episodes as f64 / (steps as f64).max(1.0)),
            EventTime::Startup => {
                let n = envs.max(1) as f64;
                let mean = broken / n;
                // n (E[X] - E[min(X, 2)])
                n * (mean - 2.0 + (-mean).exp() * (2.0 + mean))
            }
        }
    }
}
