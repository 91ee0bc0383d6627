//! Normal numbers of gradient steps, drawn from the run's seed where they are needed: on a
//! device by a kernel, on a host in its memory. Nothing crosses, and the bits are the same.

use crate::learner::error::LearnError;
use crate::learner::nn::device::{Entry, LearnKernels, address, not_loaded};
use crate::learner::nn::shared::NoiseArgs;
use crate::learner::tensors::zeros;
use ostler_collector::memory::HostRows;
use ostler_sim::rng::{Purpose, fill_normal};
use tch::{Device, Kind, Tensor};

/// Numbers that a thread of a device draws.
const FOUR: i64 = 4;

/// Numbers for `B` rows.
#[derive(Debug)]
pub(crate) struct Noise {
    /// `[B,W]`
    numbers: Tensor,
    by: By,
    seed: u64,
}

/// What draws.
#[derive(Debug)]
enum By {
    /// Nothing yet: a device whose kernels were not loaded.
    None,
    /// The processor, in the tensor's memory.
    Host(HostRows<f32>),
    Device(LearnKernels),
}

impl Noise {
    /// Allocates for `rows` of `width` numbers.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(crate) fn new(
        (rows, width): (i64, i64),
        seed: u64,
        device: Device,
    ) -> Result<Self, LearnError> {
        let numbers = zeros("noise", &[rows, width], Kind::Float, device)?;
        let by = match device {
            // SAFETY: zeros that only this value has. `draw` alone borrows the slice and writes;
            // others only read the tensor, and not while it is drawn.
            Device::Cpu => By::Host(unsafe { HostRows::new(&numbers) }?),
            _ => By::None,
        };
        Ok(Self { numbers, by, seed })
    }

    /// Draws on a device, with its kernels.
    pub(crate) fn with_kernels(&mut self, kernels: &LearnKernels) {
        self.by = By::Device(kernels.clone());
    }

    /// The numbers `[B,W]` on their device: the same memory after every [`Self::draw`].
    pub(crate) fn numbers(&self) -> &Tensor {
        &self.numbers
    }

    /// Draws those of a gradient step.
    ///
    /// # Errors
    /// The device fails, now or in something that was started before.
    pub(crate) fn draw(&mut self, step: u64) -> Result<(), LearnError> {
        let (rows, width) = self.numbers.size2()?;
        match &mut self.by {
            By::None => return Err(not_loaded()),
            By::Host(numbers) => {
                let (streams, purpose) = (0..rows as u32, Purpose::UpdateNoise);
                let numbers = numbers.all_mut()?;
                fill_normal(self.seed, streams, purpose, step, width as usize, numbers);
            }
            By::Device(kernels) => {
                let args =
                    NoiseArgs { seed: self.seed, step, rows, width, to: address(&self.numbers) };
                let threads = rows * ((width + FOUR - 1) / FOUR);
                // SAFETY: the struct is the entry's; the tensor is of this device and has so
                // many rows of that width. The gradient step before reads it earlier in the
                // order of the same stream.
                unsafe { kernels.launch(Entry::Noise, threads as usize, &args)? };
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::testing::{bits, stand_in};

    #[test]
    fn a_device_draws_the_bits_of_a_host() {
        for (rows, width) in [(1, 1), (5, 2), (3, 3), (37, 4), (16, 5), (129, 12), (7, 31)] {
            let seed = 0x1234_5678_9abc_def0 + width as u64;
            let mut here = Noise::new((rows, width), seed, Device::Cpu).unwrap();
            let mut there = Noise::new((rows, width), seed, Device::Cpu).unwrap();
            there.with_kernels(&stand_in());
            let mut plain = vec![0.0; (rows * width) as usize];
            for step in [0, 1, 2, 77_777, u64::from(u32::MAX), 1 << 32, (1 << 55) + 9] {
                here.draw(step).unwrap();
                there.draw(step).unwrap();
                let what = (rows, width, step);
                assert_eq!(bits(there.numbers()), bits(here.numbers()), "{what:?}");
                let streams = 0..rows as u32;
                let purpose = Purpose::UpdateNoise;
                fill_normal(seed, streams, purpose, step, width as usize, &mut plain);
                let plain: &[u8] = bytemuck::cast_slice(&plain);
                assert_eq!(bits(there.numbers()), plain, "{what:?}");
            }
        }
    }
}
