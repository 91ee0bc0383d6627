//! The differences between SAC and TD3.

use super::actor::ContinuousPolicy;
use super::critics::Critics;
use super::inputs::Inputs;
use super::section::Section;
use crate::learner::nn::device::LearnKernels;
use crate::learner::{State, error::LearnError};
use ostler_collector::peers::Group;
use tch::{Kind, TchError, Tensor};

/// The networks.
#[derive(Debug)]
pub(crate) struct Nets {
    /// Actor, normalisers.
    pub policy: ContinuousPolicy,
    /// Critics and their slow copies.
    pub critics: Critics,
}

/// Losses, their gradients, and other learnt parameters of a method.
pub(crate) trait Method: std::fmt::Debug {
    /// Losses of the critics, into the section, with their mean target; their gradient,
    /// into the critics' parameters'.
    ///
    /// # Errors
    /// libtorch refuses.
    fn critic_loss(
        &mut self,
        nets: &Nets,
        x: &Inputs,
        section: &mut Section,
    ) -> Result<(), TchError>;

    /// The same for the actor, with its entropy and mean standard deviation where it has them.
    ///
    /// # Errors
    /// libtorch refuses.
    fn actor_loss(
        &mut self,
        nets: &Nets,
        x: &Inputs,
        section: &mut Section,
    ) -> Result<(), TchError>;

    /// What the actor gave for the batch of [`actor_loss`](Self::actor_loss), before squashing
    /// `[B,A]`.
    fn mean(&self) -> &Tensor;

    /// After a step of the critics.
    ///
    /// # Errors
    /// libtorch refuses.
    fn after_critics(&mut self, _: &Inputs) -> Result<(), LearnError> {
        Ok(())
    }

    /// After a step of the actor.
    ///
    /// # Errors
    /// libtorch refuses.
    fn after_actor(&mut self, _: &Inputs) -> Result<(), LearnError> {
        Ok(())
    }

    /// How wrong the critics were about each transition `[B]`, in units of returns.
    fn td_error(&self) -> &Tensor;

    /// Before an update.
    ///
    /// # Errors
    /// libtorch refuses.
    fn begin(&mut self) -> Result<(), TchError> {
        Ok(())
    }

    /// Logarithm of the temperature `[1]`, where there is one.
    fn log_alpha(&self) -> Option<&Tensor> {
        None
    }

    /// Enters the method's own parameters, and their optimiser, into a state.
    ///
    /// # Errors
    /// libtorch refuses.
    fn declare(&self, _: &mut State) -> Result<(), TchError> {
        Ok(())
    }

    /// Learns on a device, with its kernels.
    ///
    /// # Errors
    /// Memory does not suffice.
    fn with_kernels(&mut self, _: &LearnKernels) -> Result<(), LearnError> {
        Ok(())
    }

    /// The method's own parameters are learnt with these processes.
    fn join(&mut self, _: &Group) {}

    /// The optimiser forgets all gradients.
    ///
    /// # Errors
    /// libtorch refuses.
    fn restart(&mut self) -> Result<(), TchError> {
        Ok(())
    }

    /// The optimiser's learning rate becomes this share of the configuration's.
    ///
    /// # Errors
    /// libtorch refuses.
    fn set_rate(&mut self, _share: f64) -> Result<(), TchError> {
        Ok(())
    }
}

/// Sum of all numbers, without dimensions.
pub(super) fn sum(x: &Tensor) -> Result<Tensor, TchError> {
    x.f_sum(Kind::Float)
}

/// Mean of `x [B,1]` with weights `[B,1]` that add up to 1, without dimensions.
pub(super) fn weighted(x: &Tensor, weight: &Tensor) -> Result<Tensor, TchError> {
    sum(&x.f_mul(weight)?)
}

/// Derivative of `bound tanh(u)` by `u`, from `tanh(u)`.
pub(super) fn squash_slope(tanh: &Tensor, bound: &Tensor) -> Result<Tensor, TchError> {
    tanh.f_mul(tanh)?.f_neg()?.f_add_scalar(1.0)?.f_mul(bound)
}
