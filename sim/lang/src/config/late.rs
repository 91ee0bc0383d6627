//! `delay` of observations and actions, in control steps, and of actuators, in physics steps.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A delay in steps: `2`, `[0, 2]` or a table.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum Delay {
    /// Steps, or a range from which they are drawn where an episode begins.
    Steps(DelaySteps),
    /// With more to say.
    Table(DelayConfig),
}

/// Steps: a number, or a range of whole numbers, both ends included.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum DelaySteps {
    /// Always so many.
    Fixed(u32),
    /// Drawn evenly.
    Range([u32; 2]),
}

/// A delay that changes while an episode lasts.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct DelayConfig {
    /// Steps.
    pub steps: DelaySteps,
    /// Steps between draws of the delay; 0: only where an episode begins. Environments
    /// draw at different times.
    #[serde(default)]
    pub redraw: u32,
    /// Probability that a draw keeps the delay as it was, 0 to 1.
    #[serde(default)]
    pub hold: f64,
}

impl Delay {
    /// With the defaults of what it does not say.
    pub fn full(&self) -> DelayConfig {
        match self {
            Self::Steps(steps) => DelayConfig { steps: *steps, redraw: 0, hold: 0.0 },
            Self::Table(config) => config.clone(),
        }
    }
}

impl DelaySteps {
    /// Least and most.
    pub fn range(self) -> [u32; 2] {
        match self {
            Self::Fixed(steps) => [steps; 2],
            Self::Range(range) => range,
        }
    }
}
