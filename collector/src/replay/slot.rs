//! Memory of one batch, allocated once.

use super::ReplayError;
use super::batch::Batch;
use super::draw::Progress;
use super::gather::GatherPlan;
use super::layout::{FieldKind, Layout, names};
use super::pin::Pinner;
use crate::memory::{HostRows, host_zeros, zeros};
use ostler_sim::device::Counts;
use ostler_sim::memory::zeroed;
use std::ops::Range;
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

/// One batch: its columns lie one behind the other in one piece of memory, so that a GPU
/// gets all of them by one copy.
#[derive(Debug)]
pub struct Slot {
    /// On the host: the columns, and behind them [`GatherPlan::places`].
    host: Tensor,
    /// The same on the batch's device, where that is another.
    there: Option<Tensor>,
    /// Views of the columns, on the device.
    pub base: Batch,
    /// [`GatherPlan::places`] on the device, int32.
    pub places: Tensor,
    /// gamma^0, gamma^1, ... gamma^n_step, on the device.
    pub discounts: Tensor,
    /// After the transforms, where there are any.
    pub made: Option<Batch>,
    /// Numbers of the transitions.
    pub rows: Vec<u64>,
    /// The sampler after this draw.
    pub after: Progress,
    crossed: Arc<Counts>,
}

impl Slot {
    /// For batches of this plan.
    ///
    /// # Errors
    /// No room.
    pub fn new(
        layout: &Layout,
        plan: &GatherPlan,
        device: Device,
        pinner: Option<&dyn Pinner>,
        crossed: &Arc<Counts>,
    ) -> Result<Self, ReplayError> {
        let words = [(plan.words() + plan.places()) as i64];
        let there = match device {
            Device::Cpu => None,
            device => Some(zeros("a replay batch", &words, Kind::Float, device)?),
        };
        Self::with(layout, plan, there, pinner, crossed)
    }

    /// As [`Self::new`] for a device whose memory is `there`, of as many words.
    pub(super) fn with(
        layout: &Layout,
        plan: &GatherPlan,
        there: Option<Tensor>,
        pinner: Option<&dyn Pinner>,
        crossed: &Arc<Counts>,
    ) -> Result<Self, ReplayError> {
        let words = [(plan.words() + plan.places()) as i64];
        let mut host = host_zeros("a replay batch", &words, Kind::Float)?;
        if let Some(pinner) = pinner {
            host = pinner.pin(&host)?;
        }
        let device = there.as_ref().map_or(Device::Cpu, Tensor::device);
        let flat = there.as_ref().unwrap_or(&host);
        let base = views(layout, plan, flat, device)?;
        let places = flat.f_narrow(0, plan.words() as i64, plan.places() as i64)?;
        let discounts = Tensor::f_from_slice(&plan.shape.discounts)?;
        Ok(Self {
            places: places.f_view_dtype(Kind::Int)?,
            discounts: discounts.f_to_device(device)?,
            rows: zeroed("rows of a replay batch", plan.shape.batch)?,
            host,
            there,
            base,
            made: None,
            after: Progress::default(),
            crossed: Arc::clone(crossed),
        })
    }

    /// The columns on the host and the words behind them, to write.
    ///
    /// # Errors
    /// The memory was moved, which nothing does.
    pub fn columns(&mut self, write: impl FnOnce(&[u64], &mut [u32])) -> Result<(), ReplayError> {
        // SAFETY: zeros, or a pinned copy of them. The slot is borrowed exclusively, so that no
        // batch of it is; `upload` waits for its copies; `write` has words alone.
        let mut memory = unsafe { HostRows::<f32>::new(&self.host) }?;
        write(&self.rows, bytemuck::cast_slice_mut(memory.all_mut()?));
        Ok(())
    }

    /// The same, with the numbers of the transitions to write.
    ///
    /// # Errors
    /// As there.
    pub fn columns_mut(
        &mut self,
        write: impl FnOnce(&mut [u64], &mut [u32]),
    ) -> Result<(), ReplayError> {
        // SAFETY: as in `columns`.
        let mut memory = unsafe { HostRows::<f32>::new(&self.host) }?;
        write(&mut self.rows, bytemuck::cast_slice_mut(memory.all_mut()?));
        Ok(())
    }

    /// Brings these words to the batch's device; the copy has landed when this returns.
    ///
    /// # Errors
    /// The device fails.
    pub fn upload(&mut self, words: Range<usize>) -> Result<(), ReplayError> {
        let Some(there) = &self.there else {
            return Ok(());
        };
        let (start, len) = (words.start as i64, words.len() as i64);
        self.crossed.sent(true);
        let mut to = there.f_narrow(0, start, len)?;
        to.f_copy_(&self.host.f_narrow(0, start, len)?)?;
        Ok(())
    }

    /// Records in the batch its transitions, and the key of their draw.
    pub fn finish(&mut self, seed: u64, draw: u64) {
        self.base.indices.clone_from(&self.rows);
        self.base.key = (seed, draw);
    }

    /// F9: asks whether the memory that a GPU copies from is still pinned.
    ///
    /// # Errors
    /// It is not.
    pub fn check_pinned(&self, pinner: &dyn Pinner) -> Result<(), ReplayError> {
        match pinner.is_pinned(&self.host)? {
            true => Ok(()),
            false => Err(ReplayError::NotPinned { name: "(all of them, on the host)".into() }),
        }
    }

    /// The batch for the learner.
    pub fn batch(&self) -> &Batch {
        self.made.as_ref().unwrap_or(&self.base)
    }
}

/// The columns of `flat` by name.
fn views(
    layout: &Layout,
    plan: &GatherPlan,
    flat: &Tensor,
    device: Device,
) -> Result<Batch, ReplayError> {
    let rows = plan.shape.batch;
    let mut batch = Batch::new(device, rows);
    let column = |start: usize, width: usize| {
        let mut size = vec![rows as i64];
        size.extend((width > 1).then_some(width as i64));
        flat.f_narrow(0, start as i64, (rows * width) as i64)?.f_view(&size[..])
    };
    for (field, at) in layout.fields().iter().zip(layout.offsets()) {
        let mut tensor = column(at * rows, field.width)?;
        if field.kind == FieldKind::I32 {
            tensor = tensor.f_view_dtype(Kind::Int)?;
        }
        batch.insert(&field.name, tensor)?;
    }
    batch.insert(names::DISCOUNT, column(plan.discount(), 1)?)?;
    batch.insert(names::WEIGHTS, column(plan.weights().start, 1)?)?;
    Ok(batch)
}
