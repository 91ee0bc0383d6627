//! The order in which a device works, and how a host waits for it.
//!
//! Physics, policy and learner share one stream, so that nothing has to wait for
//! anything. A host's reads all the same are counted here.

use super::Traffic;
use crate::CollectError;
use crate::memory::{Element, HostRows, pinned, zeros};
use ostler_sim::device::Counts;
use ostler_sim::memory::MemoryError;
use std::fmt::Debug;
use std::rc::Rc;
use tch::{Device, Kind, TchError, Tensor};

/// Whether the host waits for the device after each control step:
/// `collector.cuda_sync`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CudaSync {
    /// It does not: the stream's order is enough.
    #[default]
    Off,
    /// For one recorded event.
    Event,
    /// Until the whole device is idle.
    Device,
}

/// Operations of a stream that tensors do not offer.
pub trait Stream: Debug {
    /// Copies the host's `from` into the device's `to`, of the same shape and kind, in
    /// order with all else. Where it is not to wait and `from` is pinned, the host goes on
    /// at once, and must leave that memory alone until it has waited for something later.
    ///
    /// # Errors
    /// libtorch refuses, now or for something that was started before.
    fn upload(&self, from: &Tensor, to: &Tensor, wait: bool) -> Result<(), TchError>;

    /// Records an event behind all that was started, and waits for it.
    ///
    /// # Errors
    /// Something that was started has failed.
    fn wait_for_event(&self) -> Result<(), TchError>;

    /// Waits until the device is idle.
    ///
    /// # Errors
    /// Something that was started has failed.
    fn wait_for_device(&self) -> Result<(), TchError>;
}

/// The stream of tensors on the host: every call is done when it returns.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostStream;

impl Stream for HostStream {
    fn upload(&self, from: &Tensor, to: &Tensor, _: bool) -> Result<(), TchError> {
        to.shallow_clone().f_copy_(from)
    }

    fn wait_for_event(&self) -> Result<(), TchError> {
        Ok(())
    }

    fn wait_for_device(&self) -> Result<(), TchError> {
        Ok(())
    }
}

/// A stream with counts of the copies and of how often the host waited. Clones count
/// together.
#[derive(Debug, Clone)]
pub struct Queue {
    stream: Rc<dyn Stream>,
    device: Device,
    transfers: Transfers,
    counts: Rc<Counts>,
}

/// How the host's memory takes part in copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Transfers {
    /// It is pinned, so that a GPU reads and writes it by itself: `collector.pin_memory`.
    pub pin_memory: bool,
    /// The host does not wait for copies from pinned memory: `collector.non_blocking`.
    pub non_blocking: bool,
}

impl Queue {
    /// Over a device's stream.
    pub fn new(stream: Rc<dyn Stream>, device: Device, transfers: Transfers) -> Self {
        Self { stream, device, transfers, counts: Rc::default() }
    }

    /// For tensors on the host.
    pub fn host() -> Self {
        let transfers = Transfers { pin_memory: false, non_blocking: false };
        Self::new(Rc::new(HostStream), Device::Cpu, transfers)
    }

    /// Whether the host waits for its copies to the device.
    pub(super) fn waits_for_uploads(&self) -> bool {
        !(self.transfers.pin_memory && self.transfers.non_blocking)
    }

    /// The device.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Counts since the beginning.
    pub fn traffic(&self) -> Traffic {
        self.counts.traffic()
    }

    /// Copies the host's `from` to the device's `to`; see [`Stream::upload`].
    fn upload(&self, from: &Tensor, to: &Tensor) -> Result<(), TchError> {
        let wait = self.waits_for_uploads();
        self.counts.sent(wait);
        self.stream.upload(from, to, wait)
    }

    /// Waits as it was configured.
    pub fn wait(&self, how: CudaSync) -> Result<(), TchError> {
        if how == CudaSync::Off {
            return Ok(());
        }
        self.counts.wait();
        match how {
            CudaSync::Event => self.stream.wait_for_event(),
            _ => self.stream.wait_for_device(),
        }
    }

    /// Zeroed memory of the host for one side of copies, pinned if that was asked for.
    fn staging(&self, what: &str, size: &[i64], kind: Kind) -> Result<Tensor, CollectError> {
        let host = zeros(what, size, kind, Device::Cpu)?;
        // To a device that is the host nothing is pinned.
        if !(self.transfers.pin_memory && self.device.is_cuda()) {
            return Ok(host);
        }
        pinned(&host, self.device).map_err(|e| match e.into() {
            CollectError::Memory(_) => CollectError::Memory(MemoryError {
                what: format!("{what} {size:?}, pinned"),
                bytes: host.numel() * kind.elt_size_in_bytes(),
            }),
            e => e,
        })
    }
}

/// Memory of the host that numbers leave from.
#[derive(Debug)]
pub(super) struct Outgoing<T> {
    tensor: Tensor,
    pub(super) rows: HostRows<T>,
}

impl<T: Element> Outgoing<T> {
    /// As many as `like`, a tensor of the device, has.
    pub(super) fn like(queue: &Queue, what: &str, like: &Tensor) -> Result<Self, CollectError> {
        let tensor = queue.staging(what, &like.size(), T::KIND)?;
        // SAFETY: zeros that only this value has. A copy that `send` started has landed before
        // the rows are written again: within a rollout each step waits for the actions behind
        // it, between rollouts `Bridge` settles.
        let rows = unsafe { HostRows::new(&tensor) }?;
        Ok(Self { rows, tensor })
    }

    /// All of it to the device.
    pub(super) fn send(&self, queue: &Queue, to: &Tensor) -> Result<(), CollectError> {
        Ok(queue.upload(&self.tensor, to)?)
    }
}

/// Memory of the host that numbers of a device land in. Numbers that have not
/// landed cannot be read: the slice comes from the call that waited for it.
#[derive(Debug)]
pub(super) struct Landing {
    tensor: Tensor,
    rows: HostRows<f32>,
}

impl Landing {
    /// For tensors of the shape of `like`.
    pub(super) fn like(queue: &Queue, what: &str, like: &Tensor) -> Result<Self, CollectError> {
        let size = [&[1], &like.size()[..]].concat();
        let tensor = queue.staging(what, &size, Kind::Float)?;
        // SAFETY: zeros that only this value has. `fetch` ends its copy before it lends the
        // slice, which borrows `self` as every other use of the tensor does.
        let rows = unsafe { HostRows::new(&tensor) }?;
        Ok(Self { rows, tensor: tensor.f_get(0)? })
    }

    /// Copies a tensor here and waits for it.
    pub(super) fn fetch(&mut self, queue: &Queue, from: &Tensor) -> Result<&[f32], CollectError> {
        queue.counts.fetched();
        // Without being told otherwise libtorch's copies to the host wait.
        self.tensor.f_copy_(from)?;
        self.rows.row(0)
    }

    /// The same, lets `change` write, and copies it back.
    pub(super) fn amend(
        &mut self,
        queue: &Queue,
        there: &Tensor,
        change: impl FnOnce(&mut [f32]),
    ) -> Result<(), CollectError> {
        self.fetch(queue, there)?;
        change(self.rows.row_mut(0)?);
        queue.counts.sent(true);
        Ok(there.shallow_clone().f_copy_(&self.tensor)?)
    }
}
