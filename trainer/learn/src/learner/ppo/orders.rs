//! The orders in which an update takes its samples where minibatches are tensors.
//!
//! They are drawn where they are needed: on a device by one launch for all epochs, on a host
//! in its memory. Nothing crosses, and the numbers are the same (`trainer/kernels/order.cuh`).

use crate::learner::error::LearnError;
use crate::learner::nn::device::{Entry, LearnKernels, address, not_loaded};
use crate::learner::nn::host::Vectors;
use crate::learner::nn::shared::OrderArgs;
use crate::learner::tensors::zeros;
use ostler_collector::memory::HostRows;
use tch::{Device, Kind, Tensor};

/// Orders of `M` samples for `E` epochs.
#[derive(Debug)]
pub(super) struct Orders {
    /// `[E,M]`
    all: Tensor,
    by: By,
}

/// What draws.
#[derive(Debug)]
enum By {
    /// The processor, in the tensor's memory.
    Host(HostRows<i64>),
    Device(LearnKernels),
}

impl Orders {
    /// Drawn by the processor.
    ///
    /// # Errors
    /// Memory does not suffice, or the samples are on a device without kernels.
    pub(super) fn on_host(size: [i64; 2], device: Device) -> Result<Self, LearnError> {
        if device != Device::Cpu {
            return Err(not_loaded());
        }
        let all = zeros("orders of samples", &size, Kind::Int64, device)?;
        // SAFETY: zeros that only this value has. `draw` alone borrows slices and writes; those
        // who got the tensor from it read it only until they draw again.
        let rows = unsafe { HostRows::new(&all) }?;
        let by = By::Host(rows);
        Ok(Self { all, by })
    }

    /// Drawn by the kernels of the device that has the samples.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(super) fn on_device(
        size: [i64; 2],
        kernels: &LearnKernels,
        device: Device,
    ) -> Result<Self, LearnError> {
        Ok(Self {
            all: zeros("orders of samples", &size, Kind::Int64, device)?,
            by: By::Device(kernels.clone()),
        })
    }

    /// The orders of an update `[E,M]`: the same memory each time.
    ///
    /// # Errors
    /// The device refuses.
    pub(super) fn draw(&mut self, seed: u64, update: u64) -> Result<Tensor, LearnError> {
        let (epochs, count) = self.all.size2()?;
        match &mut self.by {
            By::Host(rows) => {
                for epoch in 0..epochs as u32 {
                    let order = rows.row_mut(epoch as usize)?;
                    Vectors::widest().order(seed, update, epoch, order);
                }
            }
            By::Device(kernels) => {
                let args = OrderArgs { seed, update, epochs, count, to: address(&self.all) };
                let threads = self.all.numel();
                // SAFETY: the struct is the entry's; the tensor is of this device and has as
                // many numbers as there are threads. Minibatches of the update before read it
                // earlier in the order of the same stream.
                unsafe { kernels.launch(Entry::Order, threads, &args)? };
            }
        }
        Ok(self.all.shallow_clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::testing::{bits, stand_in};

    #[test]
    fn a_device_draws_what_a_host_draws() {
        for count in [1, 2, 31, 64, 65, 511, 513, 4097] {
            let size = [3, count as i64];
            let mut there = Orders::on_device(size, &stand_in(), Device::Cpu).unwrap();
            let mut here = Orders::on_host(size, Device::Cpu).unwrap();
            // Also after updates were taken back or left out.
            for update in [0, 1, 7, 3, u64::from(u32::MAX) + 2] {
                let drawn = there.draw(5, update).unwrap();
                assert_eq!(bits(&drawn), bits(&here.draw(5, update).unwrap()));
                // What blocks take on a host.
                for epoch in 0..3 {
                    let mut order = vec![-1; count];
                    Vectors::widest().order(5, update, epoch, &mut order);
                    let row = Vec::<i64>::try_from(drawn.get(epoch.into())).unwrap();
                    assert_eq!(row, order, "{count}, {update}, {epoch}");
                }
            }
        }
    }
}
