//! The function between layers.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Function between layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Activation {
    /// `x` above 0, `exp(x) - 1` below (Clevert et al. 2016).
    Elu,
    /// `max(x, 0)`.
    Relu,
    /// Hyperbolic tangent.
    Tanh,
    /// `x / (1 + exp(-x))` (Elfwing et al. 2018).
    Silu,
}
