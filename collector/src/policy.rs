//! What a collector needs of a policy.

use tch::{TchError, Tensor};

/// Where one step's decision goes: rows of the rollout, written in place.
#[derive(Debug)]
pub struct Act<'a> {
    /// Action `[N,A]`.
    pub action: &'a Tensor,
    /// Parameters of the distribution the action was drawn from, `[N,D]`: mean for
    /// a Gaussian (D = A), logits for a categorical (D = choices).
    pub dist: &'a Tensor,
    /// Standard deviation `[N,A]` for a Gaussian; unused for a categorical.
    pub std: &'a Tensor,
}

/// Decides on actions.
pub trait Policy {
    /// Width `D` of [`Act::dist`].
    fn dist_width(&self) -> i64;

    /// Width of the random numbers that [`act`](Self::act) wants per environment,
    /// and whether they are standard normal (else uniform in [0, 1)).
    fn noise(&self) -> (i64, Noise);

    /// Draws actions for raw observations `obs` `[N,O]` with the random numbers
    /// `noise` `[N, width]`, writing into `out`. Runs without gradients, does not
    /// wait for the device.
    fn act(&mut self, obs: &Tensor, noise: &Tensor, out: &Act<'_>) -> Result<(), TchError>;

    /// The same without chance: the mean or the most likely choice, into `action`.
    fn act_mean(&mut self, obs: &Tensor, action: &Tensor) -> Result<(), TchError>;
}

/// Kind of the random numbers of [`Policy::noise`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// Standard normal.
    Normal,
    /// Uniform in [0, 1).
    Uniform,
}
