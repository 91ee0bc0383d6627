//! Policies as a collector needs them.

use ostler_sim::device::Counts;
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
    /// The hidden state of a policy that has one.
    pub hidden: Option<Hidden<'a>>,
}

/// Rows of a recurrent policy's hidden state in one step.
#[derive(Debug, Clone, Copy)]
pub struct Hidden<'a> {
    /// Before the step `[N,H]`: zeros where an episode begins.
    pub before: &'a Tensor,
    /// After it `[N,H]`, written by the policy.
    pub after: &'a Tensor,
}

/// Widths of a policy's columns of a rollout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Widths {
    /// [`Policy::dist_width`].
    pub dist: i64,
    /// [`Policy::hidden_width`].
    pub hidden: i64,
}

/// Decides on actions.
pub trait Policy {
    /// Width `D` of [`Act::dist`].
    fn dist_width(&self) -> i64;

    /// Width `H` of the hidden state that a recurrent policy has in each environment; 0
    /// without one. Whoever calls [`act`](Self::act) keeps it from one step to the next, and
    /// sets it to zero where an episode begins.
    fn hidden_width(&self) -> i64 {
        0
    }

    /// Both widths.
    fn widths(&self) -> Widths {
        Widths { dist: self.dist_width(), hidden: self.hidden_width() }
    }

    /// Width of the random numbers that [`act`](Self::act) wants per environment,
    /// and whether they are standard normal (else uniform in [0, 1)).
    fn noise(&self) -> (i64, Noise);

    /// Draws actions for raw observations `obs` `[N,O]` with the random numbers
    /// `noise` `[N, width]`, writing into `out`. Runs without gradients, does not
    /// wait for the device.
    fn act(&mut self, obs: &Tensor, noise: &Tensor, out: &Act<'_>) -> Result<(), TchError>;

    /// The same without chance: the mean or the most likely choice, into `action`.
    fn act_mean(
        &mut self,
        obs: &Tensor,
        hidden: Option<Hidden<'_>>,
        action: &Tensor,
    ) -> Result<(), TchError>;

    /// Sizes that the components of actions stay within; empty where they have none.
    fn bounds(&self) -> &[f32] {
        &[]
    }

    /// Number of updates behind the policy; -1 where it is not counted.
    fn version(&self) -> i32 {
        -1
    }

    /// The policy as one that can be copied into other threads, if it can be.
    fn replicate(&self) -> Option<&dyn Replicate> {
        None
    }
}

/// A policy that acts in other threads, too, by copies of it.
pub trait Replicate {
    /// A copy that acts on the host for environments `first..first + envs` of the whole
    /// batch, as the policy itself would. It has other weights until it
    /// [takes](Replica::take) some.
    ///
    /// # Errors
    /// No memory.
    fn replica(&self, first: usize, envs: usize) -> Result<Box<dyn Replica>, TchError>;

    /// Overwrites `out` with all that the decisions depend on and that an update changes:
    /// weights and normalisers, as plain numbers on the host. `out` keeps its memory;
    /// bytes copied to the host are counted.
    ///
    /// # Errors
    /// No memory; the device refuses.
    fn weights(&self, out: &mut Vec<f32>, crossed: &Counts) -> Result<(), TchError>;
}

/// A copy of a policy, for one thread.
pub trait Replica: Policy + Send {
    /// Decides from now on as the policy did when it [wrote](Replicate::weights) these.
    ///
    /// # Errors
    /// They are of another policy.
    fn take(&mut self, weights: &[f32]) -> Result<(), TchError>;
}

/// Kind of the random numbers of [`Policy::noise`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Noise {
    /// Standard normal.
    Normal,
    /// Uniform in [0, 1).
    Uniform,
}
