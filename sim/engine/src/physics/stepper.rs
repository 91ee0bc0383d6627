//! Worlds that are stepped block by block.

pub use crate::kernels::StepArgs;

/// An engine whose worlds are no more than the columns of their [`State`](super::State).
/// Threads step and place them in blocks, between the other phases of a control step.
pub trait Stepper: Sync {
    /// Steps worlds `first..first + len`.
    ///
    /// # Safety
    /// `args` are those of [`Physics::step_args`](super::Physics::step_args) with the
    /// address of controls `[nu][N]`; the engine's buffers are where they were then; and no
    /// other thread reads or writes entries of these worlds meanwhile.
    unsafe fn step_block(&self, args: &StepArgs, first: usize, len: usize);
}
