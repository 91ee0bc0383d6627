//! Memory that a run may still take: the one place where it asks, so that a test can put
//! any machine in this one's place.

use super::sample::available;
use crate::torch::device_free;
use std::fmt::Debug;
use tch::Device;

/// Free memory, of the host and of GPUs.
pub trait FreeMemory: Debug + Send + Sync {
    /// Bytes of the host's memory that this process may still take; `None` where nothing
    /// is known.
    fn host(&self) -> Option<u64>;

    /// Bytes that tensors may still take on a GPU; `None` where nothing is known.
    fn device(&self, device: Device) -> Option<u64>;
}

/// This machine.
#[derive(Debug, Clone, Copy, Default)]
pub struct Here;

impl FreeMemory for Here {
    fn host(&self) -> Option<u64> {
        available()
    }

    fn device(&self, device: Device) -> Option<u64> {
        let Device::Cuda(index) = device else {
            return None;
        };
        match device_free(index) {
            Ok(free) => Some(free),
            Err(e) => {
                tracing::warn!("how much of the GPU's memory is free is not known: {e}");
                None
            }
        }
    }
}

/// Any machine.
#[derive(Debug, Clone, Copy)]
pub struct Told {
    /// Of the host.
    pub host: Option<u64>,
    /// Of GPUs.
    pub device: Option<u64>,
}

impl FreeMemory for Told {
    fn host(&self) -> Option<u64> {
        self.host
    }

    fn device(&self, _: Device) -> Option<u64> {
        self.device
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_gpu_that_is_not_there_has_no_known_memory() {
        assert!(Here.host().is_some());
        assert_eq!(Here.device(Device::Cpu), None);
        assert_eq!(Here.device(Device::Cuda(4096)), None);
    }
}
