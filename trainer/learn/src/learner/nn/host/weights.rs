//! A layer's parameters in the host's memory.

use ostler_collector::memory::HostRows;
use tch::{TchError, Tensor};

/// A layer's parameters in the host's memory, to read.
#[derive(Debug)]
pub struct Weights {
    weight: HostRows<f32>,
    bias: HostRows<f32>,
}

impl Weights {
    /// Of weight `[H,I]` and bias `[H]`; none where they lie on a device.
    pub fn new(weight: &Tensor, bias: &Tensor) -> Option<Self> {
        // SAFETY: parameters have initial values. They are read here alone, in passes that call
        // nothing of libtorch's but for addresses, so that no step of the optimiser and no
        // load is under way in this thread; another thread has parameters of its own.
        unsafe {
            Some(Self { weight: HostRows::new(weight).ok()?, bias: HostRows::new(bias).ok()? })
        }
    }

    pub(super) fn get(&self) -> Result<(&[f32], &[f32]), TchError> {
        let moved = |e: ostler_collector::CollectError| TchError::Torch(e.to_string());
        Ok((self.weight.all().map_err(moved)?, self.bias.all().map_err(moved)?))
    }
}
