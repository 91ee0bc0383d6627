//! Worlds that are stepped block by block.

use crate::device::Address;
use crate::state::WorldAddresses;
use bytemuck::{Pod, Zeroable};

/// Arguments of a time step of worlds: `StepArgs<float>` of
/// `sim/kernels/step.cuh`, pointers as addresses.
#[derive(Debug, Clone, Copy, Zeroable)]
#[repr(C)]
pub struct StepArgs {
    pub(crate) stride: i32,
    pub(crate) substeps: i32,
    pub(crate) iterations: i32,
    pub(crate) _padding: i32,
    pub(crate) tolerance: f64,
    pub(crate) top_speed: Address,
    pub(crate) top_place: Address,
    pub(crate) ctrl: Address,
    pub(crate) delays: Address,
    pub(crate) world: WorldAddresses,
}

// SAFETY: four- and eight-byte numbers; where eight follow an odd number of four, the
// padding is a field of its own, so there are no bytes without a value (the size is
// held against the sum of the fields below).
unsafe impl Pod for StepArgs {}

const _: () = assert!(size_of::<StepArgs>() == 4 * 4 + 8 + 4 * 8 + size_of::<WorldAddresses>());

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
