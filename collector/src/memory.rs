//! Tensors over host memory that the simulation writes in place.
//!
//! libtorch owns the memory; [`HostRows`] lends it to the simulation as slices, so
//! that observations and actions are never copied between the two.

use crate::CollectError;
use bytemuck::Pod;
use ostler_sim::memory::MemoryError;
use tch::{Device, Kind, Tensor};

/// A zeroed tensor on the host, or an error that says what it was for.
pub fn host_zeros(what: &str, size: &[i64], kind: Kind) -> Result<Tensor, CollectError> {
    let bytes = size
        .iter()
        .try_fold(kind.elt_size_in_bytes(), |n, &d| {
            usize::try_from(d).ok().and_then(|d| n.checked_mul(d))
        })
        .filter(|&bytes| bytes <= isize::MAX as usize);
    let error = || MemoryError {
        what: format!("{what} {size:?}"),
        bytes: bytes.unwrap_or(usize::MAX),
    };
    bytes.ok_or_else(error)?;
    Ok(Tensor::f_zeros(size, (kind, Device::Cpu)).map_err(|_| error())?)
}

/// Elements that both sides know.
pub trait Element: Pod {
    /// libtorch's name of the type.
    const KIND: Kind;
}

impl Element for f32 {
    const KIND: Kind = Kind::Float;
}

impl Element for i32 {
    const KIND: Kind = Kind::Int;
}

/// The memory of a contiguous host tensor, as slices of equal rows along its first
/// dimension.
///
/// Invariant: `ptr` points to `rows * width` initialised elements of `T` that belong
/// to the storage of `tensor`, which this value keeps alive. libtorch reallocates a
/// storage only when a tensor is resized; nothing in this program does that to a
/// buffer, and every borrow checks that the address is still the same.
#[derive(Debug)]
pub struct HostRows<T> {
    tensor: Tensor,
    ptr: *mut T,
    rows: usize,
    width: usize,
}

impl<T: Element> HostRows<T> {
    /// Rows of `tensor`, which must be contiguous, of this element type, on the host.
    pub fn new(tensor: &Tensor) -> Result<Self, CollectError> {
        let size = tensor.size();
        if tensor.device() != Device::Cpu
            || tensor.kind() != T::KIND
            || !tensor.is_contiguous()
            || size.is_empty()
        {
            return Err(CollectError::NotHostRows(format!(
                "{size:?} of {:?} on {:?}, {}",
                tensor.kind(),
                tensor.device(),
                if tensor.is_contiguous() {
                    "contiguous"
                } else {
                    "not contiguous"
                },
            )));
        }
        let rows = size[0] as usize;
        Ok(Self {
            ptr: tensor.data_ptr().cast(),
            tensor: tensor.shallow_clone(),
            rows,
            width: tensor.numel().checked_div(rows).unwrap_or(0),
        })
    }

    /// Elements per row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Row `i`, to read.
    pub fn row(&self, i: usize) -> Result<&[T], CollectError> {
        let start = self.start(i, 1)?;
        // SAFETY: `start` checked that the row lies within the storage that `tensor`
        // keeps alive and that this storage has not moved. The elements are plain data.
        // The slice borrows `self`; while it lives, the caller runs no libtorch
        // operation that writes this tensor (operations on host tensors end before
        // they return, so none is under way).
        Ok(unsafe { std::slice::from_raw_parts(start, self.width) })
    }

    /// Row `i`, to write.
    pub fn row_mut(&mut self, i: usize) -> Result<&mut [T], CollectError> {
        let start = self.start(i, 1)?;
        // SAFETY: as in `row`; the slice borrows `self` exclusively, one `HostRows` is
        // made per buffer, and while the slice lives the caller runs no libtorch
        // operation on this tensor.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, self.width) })
    }

    /// All rows, to write.
    pub fn all_mut(&mut self) -> Result<&mut [T], CollectError> {
        let start = self.start(0, self.rows)?;
        // SAFETY: as in `row_mut`, for all rows.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, self.rows * self.width) })
    }

    /// Where row `i` begins, if `count` rows from there exist and the storage has not
    /// been moved by a resize. An empty buffer gets a pointer that may be sliced.
    fn start(&self, i: usize, count: usize) -> Result<*mut T, CollectError> {
        if i + count > self.rows || self.tensor.data_ptr().cast() != self.ptr {
            return Err(CollectError::NotHostRows(format!(
                "row {i} of {} rows, or the tensor was resized meanwhile",
                self.rows
            )));
        }
        if self.rows * self.width == 0 {
            return Ok(std::ptr::NonNull::dangling().as_ptr());
        }
        // SAFETY: i <= rows, so the offset stays within the allocation.
        Ok(unsafe { self.ptr.add(i * self.width) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_the_tensors_own_memory() {
        let t = host_zeros("t", &[3, 2, 2], Kind::Float).unwrap();
        let mut rows = HostRows::<f32>::new(&t).unwrap();
        rows.row_mut(1)
            .unwrap()
            .copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(t.double_value(&[1, 1, 0]), 3.0);
        let _ = t.get(2).fill_(7.0);
        assert_eq!(rows.row(2).unwrap(), [7.0; 4]);
        assert!(rows.row(3).is_err());
    }

    #[test]
    fn other_tensors_are_refused() {
        let t = host_zeros("t", &[3, 2], Kind::Float).unwrap();
        assert!(HostRows::<f32>::new(&t.tr()).is_err());
        assert!(HostRows::<i32>::new(&t).is_err());
        assert!(HostRows::<f32>::new(&t.sum(Kind::Float)).is_err());
    }

    #[test]
    fn a_resized_tensor_is_noticed() {
        let t = host_zeros("t", &[3, 2], Kind::Float).unwrap();
        let rows = HostRows::<f32>::new(&t).unwrap();
        let _ = t.shallow_clone().resize_([3000, 2000]);
        assert!(rows.row(0).is_err());
    }

    #[test]
    fn impossible_sizes_are_errors() {
        for size in [[i64::MAX, 2], [1 << 40, 1 << 20], [-1, 2]] {
            let e = host_zeros("rollout", &size, Kind::Float).unwrap_err();
            assert!(e.to_string().contains("rollout"), "{e}");
        }
    }
}
