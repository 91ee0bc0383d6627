//! The orders in which a device takes an update's samples.
//!
//! They are drawn on the host and cross once per update. While the device works through
//! the minibatches the host draws those of the next update.

use super::batch::shuffle;
use crate::learner::LearnError;
use crate::learner::nn::zeros;
use crate::torch::CudaStream;
use ostler_collector::device::Stream;
use ostler_collector::memory::HostRows;
use ostler_sim::device::Counts;
use tch::{Device, Kind, Tensor};

/// Orders of `M` samples for `E` epochs.
#[derive(Debug)]
pub(super) struct Orders {
    /// On the host, by turns: one may still be on its way while the other is written.
    here: [Drawn; 2],
    /// On the device `[E,M]`.
    there: Tensor,
    /// Which of the two was sent last.
    sent: usize,
    device: Device,
}

#[derive(Debug)]
struct Drawn {
    tensor: Tensor,
    rows: HostRows<i64>,
    /// For which update.
    update: Option<u64>,
}

impl Drawn {
    fn new(size: &[i64], device: Device) -> Result<Self, LearnError> {
        let mut tensor = zeros("orders of samples", size, Kind::Int64, Device::Cpu)?;
        if device.is_cuda() {
            tensor = ostler_collector::memory::pinned(&tensor, device)?;
        }
        // SAFETY: zeros that only this value has. `draw` alone borrows slices; a copy to a device
        // has ended by then, see `Orders::send`.
        let rows = unsafe { HostRows::new(&tensor) }?;
        Ok(Self {
            rows,
            tensor,
            update: None,
        })
    }

    /// Each from the same order: an update depends on nothing before it.
    fn draw(&mut self, seed: u64, update: u64) -> Result<(), LearnError> {
        if self.update == Some(update) {
            return Ok(());
        }
        self.update = None;
        let epochs = self.tensor.size2()?.0;
        for epoch in 0..epochs as u32 {
            let order = self.rows.row_mut(epoch as usize)?;
            order.iter_mut().zip(0..).for_each(|(o, i)| *o = i);
            shuffle(order, seed, update, epoch);
        }
        self.update = Some(update);
        Ok(())
    }
}

impl Orders {
    pub(super) fn new(epochs: i64, total: i64, device: Device) -> Result<Self, LearnError> {
        let size = [epochs, total];
        Ok(Self {
            here: [Drawn::new(&size, device)?, Drawn::new(&size, device)?],
            there: zeros("orders of samples", &size, Kind::Int64, device)?,
            sent: 0,
            device,
        })
    }

    /// The orders of an update `[E,M]` on the device.
    ///
    /// The one that was sent before has arrived: every update ends with a read that waits
    /// for all that came before.
    pub(super) fn send(
        &mut self,
        seed: u64,
        update: u64,
        crossed: &Counts,
    ) -> Result<Tensor, LearnError> {
        self.sent = 1 - self.sent;
        let next = &mut self.here[self.sent];
        next.draw(seed, update)?;
        crossed.sent(false);
        match self.device {
            Device::Cuda(index) => {
                CudaStream::new(index).upload(&next.tensor, &self.there, false)?;
            }
            _ => self.there.f_copy_(&next.tensor)?,
        }
        Ok(self.there.shallow_clone())
    }

    /// Draws the orders of the update after this one.
    pub(super) fn draw_ahead(&mut self, seed: u64, update: u64) -> Result<(), LearnError> {
        self.here[1 - self.sent].draw(seed, update)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn orders_are_those_that_the_host_takes_whether_drawn_ahead_or_not() {
        let crossed = Counts::default();
        let mut orders = Orders::new(3, 40, Device::Cpu).unwrap();
        // Also after updates were taken back or left out.
        for update in [0, 1, 2, 2, 7, 3, 4] {
            let sent = orders.send(5, update, &crossed).unwrap();
            for epoch in 0..3 {
                let mut order: Vec<i64> = (0..40).collect();
                shuffle(&mut order, 5, update, epoch as u32);
                let row = Vec::<i64>::try_from(sent.get(epoch)).unwrap();
                assert_eq!(row, order, "update {update}, epoch {epoch}");
            }
            orders.draw_ahead(5, update + 1).unwrap();
        }
        let traffic = crossed.traffic();
        assert_eq!((traffic.uploads, traffic.waits), (7, 0));
    }
}
