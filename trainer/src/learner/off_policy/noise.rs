//! Normal numbers of gradient steps, drawn on the host from the run's seed.
//!
//! On their way to a device they leave from several pieces of pinned memory by turns. The
//! host waits for one copy of each round, behind which all before it have landed: no piece
//! is written while it may still be read.

use crate::learner::LearnError;
use crate::learner::nn::zeros;
use crate::torch::CudaStream;
use ostler_collector::device::Stream;
use ostler_collector::memory::HostRows;
use ostler_sim::device::Counts;
use ostler_sim::rng::{Purpose, fill_normal};
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

/// Pieces of memory on the host.
const PIECES: usize = 8;

/// Numbers for `B` rows.
#[derive(Debug)]
pub struct Noise {
    /// On the host, `PIECES` of `[B,W]`, or one that is not sent.
    here: Vec<(Tensor, HostRows<f32>)>,
    /// On the device, where that is another `[B,W]`.
    there: Option<(Tensor, Box<dyn Stream>)>,
    /// Copies since it was made.
    sent: usize,
    width: usize,
    seed: u64,
    crossed: Arc<Counts>,
}

impl Noise {
    /// Allocates for `rows` of `width` numbers.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn new(
        (rows, width): (i64, i64),
        seed: u64,
        device: Device,
        crossed: &Arc<Counts>,
    ) -> Result<Self, LearnError> {
        let there = match device {
            Device::Cuda(index) => {
                let there = zeros("noise", &[rows, width], Kind::Float, device)?;
                let stream: Box<dyn Stream> = Box::new(CudaStream::new(index));
                Some((there, stream))
            }
            _ => None,
        };
        Self::with((rows, width), seed, there, crossed)
    }

    fn with(
        (rows, width): (i64, i64),
        seed: u64,
        there: Option<(Tensor, Box<dyn Stream>)>,
        crossed: &Arc<Counts>,
    ) -> Result<Self, LearnError> {
        let pinned = there.as_ref().map(|(t, _)| t.device());
        let pinned = pinned.filter(|d| d.is_cuda());
        let piece = |_| {
            let mut tensor = zeros("noise", &[rows, width], Kind::Float, Device::Cpu)?;
            if let Some(device) = pinned {
                tensor = ostler_collector::memory::pinned(&tensor, device)?;
            }
            // SAFETY: zeros that only this value has. `draw` alone borrows the slice, and no copy
            // of it to a device is still under way by then: see the module's description.
            let rows = unsafe { HostRows::new(&tensor) }?;
            Ok::<_, LearnError>((tensor, rows))
        };
        let pieces = if there.is_some() { PIECES } else { 1 };
        Ok(Self {
            here: (0..pieces).map(piece).collect::<Result<_, _>>()?,
            there,
            sent: 0,
            width: width as usize,
            seed,
            crossed: Arc::clone(crossed),
        })
    }

    /// The numbers `[B,W]` on their device: the same memory after every [`Self::draw`].
    pub fn numbers(&self) -> &Tensor {
        match &self.there {
            Some((there, _)) => there,
            None => &self.here[0].0,
        }
    }

    /// Draws those of a gradient step.
    ///
    /// # Errors
    /// The device fails, now or in something that was started before.
    pub fn draw(&mut self, step: u64) -> Result<(), LearnError> {
        let at = self.sent % self.here.len();
        let (tensor, rows) = &mut self.here[at];
        let numbers = rows.all_mut()?;
        let count = (numbers.len() / self.width.max(1)) as u32;
        let purpose = Purpose::UpdateNoise;
        fill_normal(self.seed, 0..count, purpose, step, self.width, numbers);
        if let Some((there, stream)) = &self.there {
            let wait = at + 1 == PIECES;
            self.crossed.sent(wait);
            self.sent += 1;
            stream.upload(tensor, there, wait)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::cell::RefCell;
    use std::rc::Rc;
    use tch::TchError;

    /// Copies as late as it may: when the host waits.
    #[derive(Debug, Default, Clone)]
    struct Late {
        pending: Rc<RefCell<Vec<Tensor>>>,
        landed: Rc<RefCell<Vec<Vec<f32>>>>,
    }

    impl Stream for Late {
        fn upload(&self, from: &Tensor, to: &Tensor, wait: bool) -> Result<(), TchError> {
            let mut pending = self.pending.borrow_mut();
            pending.push(from.shallow_clone());
            if wait {
                for from in pending.drain(..) {
                    let numbers = Vec::try_from(from.reshape([-1]));
                    self.landed.borrow_mut().push(numbers.unwrap());
                    to.shallow_clone().copy_(&from);
                }
            }
            Ok(())
        }

        fn wait_for_event(&self) -> Result<(), TchError> {
            Ok(())
        }

        fn wait_for_device(&self) -> Result<(), TchError> {
            Ok(())
        }
    }

    #[test]
    fn no_piece_is_written_before_its_copy_has_landed() {
        let (late, crossed) = (Late::default(), Arc::default());
        let there = Tensor::zeros([5, 4], (Kind::Float, Device::Cpu));
        let apart = Some((there, Box::new(late.clone()) as Box<dyn Stream>));
        let mut sent = Noise::with((5, 4), 7, apart, &crossed).unwrap();
        let none = Arc::default();
        let mut here = Noise::new((5, 4), 7, Device::Cpu, &none).unwrap();
        let mut expected: Vec<Vec<f32>> = Vec::new();
        let steps = 3 * PIECES as u64;
        for step in 0..steps {
            sent.draw(step).unwrap();
            here.draw(step).unwrap();
            expected.push(Vec::try_from(here.numbers().reshape([-1])).unwrap());
        }
        assert_eq!(*late.landed.borrow(), expected);
        assert_eq!(*sent.numbers(), *here.numbers());
        let traffic = crossed.traffic();
        assert_eq!((traffic.uploads, traffic.waits), (steps, 3));
        assert_eq!(none.traffic().uploads, 0, "what is here is not sent");
    }
}
