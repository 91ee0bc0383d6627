//! libtorch's memory of a device, by address.

use crate::CollectError;
use crate::memory::{Element, zeros};
use ostler_sim::device::{Address, Block, Memory};
use ostler_sim::memory::MemoryError;
use std::marker::PhantomData;
use tch::{Device, Kind, Tensor};

/// Hands out libtorch's memory of one device, so that one allocator knows all of it.
#[derive(Debug, Clone, Copy)]
pub struct TorchMemory(pub Device);

impl Memory for TorchMemory {
    fn zeroed(&self, what: &str, bytes: usize) -> Result<Block, MemoryError> {
        let refused = |why: String| MemoryError { what: format!("{what}{why}"), bytes };
        // An empty tensor has no address.
        let size = i64::try_from(bytes.max(1)).map_err(|_| refused(String::new()))?;
        let tensor = zeros(what, &[size], Kind::Uint8, self.0).map_err(|e| match e {
            CollectError::Memory(_) => refused(String::new()),
            e => refused(format!(" ({e})")),
        })?;
        let address = tensor.data_ptr() as Address;
        if !address.is_multiple_of(64) {
            return Err(refused(" (libtorch's memory is not aligned)".into()));
        }
        Ok(Block::new(address, bytes, Box::new(tensor)))
    }
}

/// Addresses of the equal rows of a contiguous tensor along its first dimension.
///
/// The tensor lives as long as this. libtorch reallocates a storage only when a tensor is
/// resized; nothing in this program does that to a buffer, and every row is handed out
/// only while the tensor is still where it was.
#[derive(Debug)]
pub(super) struct DeviceRows<T> {
    tensor: Tensor,
    address: Address,
    rows: usize,
    /// Bytes of a row.
    stride: usize,
    _element: PhantomData<T>,
}

impl<T: Element> DeviceRows<T> {
    /// Rows of `tensor`, which must be contiguous, of this element type, on `device`.
    pub(super) fn new(tensor: &Tensor, device: Device) -> Result<Self, CollectError> {
        let size = tensor.size();
        if tensor.device() != device
            || tensor.kind() != T::KIND
            || !tensor.is_contiguous()
            || tensor.numel() == 0
            || size.is_empty()
        {
            return Err(CollectError::NotRows(format!(
                "{size:?} of {:?} on {:?}, {}contiguous, for {:?} on {device:?}",
                tensor.kind(),
                tensor.device(),
                if tensor.is_contiguous() { "" } else { "not " },
                T::KIND,
            )));
        }
        let rows = size[0] as usize;
        Ok(Self {
            address: tensor.data_ptr() as Address,
            tensor: tensor.shallow_clone(),
            rows,
            stride: tensor.numel() / rows * size_of::<T>(),
            _element: PhantomData,
        })
    }

    /// How many there are.
    pub(super) fn len(&self) -> usize {
        self.rows
    }

    /// Where row `i` begins.
    pub(super) fn row(&self, i: usize) -> Result<Address, CollectError> {
        if i >= self.rows || self.tensor.data_ptr() as Address != self.address {
            return Err(CollectError::NotRows(format!(
                "row {i} of {} rows, or the tensor was resized meanwhile",
                self.rows
            )));
        }
        Ok(self.address + (i * self.stride) as Address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory::host_zeros;

    #[test]
    fn blocks_are_zeroed_aligned_and_gone_with_their_owner() {
        let memory = TorchMemory(Device::Cpu);
        for bytes in [0, 1, 4096] {
            let block = memory.zeroed("state", bytes).unwrap();
            assert_eq!(block.bytes(), bytes);
            assert!(block.address() != 0 && block.address().is_multiple_of(64));
            // SAFETY: the block is the host's memory, as long as it says, and lives.
            let all = unsafe { std::slice::from_raw_parts(block.address() as *const u8, bytes) };
            assert!(all.iter().all(|&b| b == 0));
        }
        for bytes in [1 << 45, usize::MAX] {
            let e = memory.zeroed("state", bytes).unwrap_err();
            assert_eq!((e.bytes, e.what.as_str()), (bytes, "state"));
        }
    }

    #[test]
    fn rows_have_their_places_and_other_tensors_are_refused() {
        let t = host_zeros("t", &[3, 2, 4], Kind::Float).unwrap();
        let rows = DeviceRows::<f32>::new(&t, Device::Cpu).unwrap();
        assert_eq!(rows.len(), 3);
        assert_eq!(rows.row(2).unwrap(), t.get(2).data_ptr() as Address);
        assert!(rows.row(3).is_err());
        assert!(DeviceRows::<f32>::new(&t, Device::Cuda(0)).is_err());
        assert!(DeviceRows::<i32>::new(&t, Device::Cpu).is_err());
        assert!(DeviceRows::<f32>::new(&t.transpose(0, 1), Device::Cpu).is_err());
        assert!(DeviceRows::<f32>::new(&t.narrow(0, 0, 0), Device::Cpu).is_err());
        let _ = t.shallow_clone().resize_([3000, 2000]);
        assert!(rows.row(0).is_err());
    }
}
