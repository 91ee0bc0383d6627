//! Tensors over host memory that the simulation writes in place.
//!
//! libtorch owns the memory; [`HostRows`] lends it to the simulation as slices, so
//! that observations and actions are never copied between the two.
//!
//! A tensor is a handle that safe code may clone, view and write through at any time: that
//! nobody does while a slice is lent is what the callers of this module's `unsafe`
//! functions promise.

use crate::CollectError;
use bytemuck::Pod;
use ostler_sim::memory::MemoryError;
use tch::{Device, Kind, TchError, Tensor};

/// A zeroed tensor on the host, or an error that names its purpose.
pub fn host_zeros(what: &str, size: &[i64], kind: Kind) -> Result<Tensor, CollectError> {
    zeros(what, size, kind, Device::Cpu)
}

/// A zeroed tensor on a device, or an error that names its purpose.
pub fn zeros(what: &str, size: &[i64], kind: Kind, device: Device) -> Result<Tensor, CollectError> {
    let bytes = size
        .iter()
        .try_fold(kind.elt_size_in_bytes(), |n, &d| {
            usize::try_from(d).ok().and_then(|d| n.checked_mul(d))
        })
        .filter(|&bytes| bytes <= isize::MAX as usize);
    let error =
        || MemoryError { what: format!("{what} {size:?}"), bytes: bytes.unwrap_or(usize::MAX) };
    bytes.ok_or_else(error)?;
    Tensor::f_zeros(size, (kind, device)).map_err(|e| match device {
        // There is nothing else that can go wrong on a host.
        Device::Cpu => error().into(),
        _ => match out_of_memory(&e) {
            Some(_) => error().into(),
            None => CollectError::Torch(e),
        },
    })
}

/// A copy of a host's tensor in page-locked memory, from which a GPU copies by itself.
///
/// # Errors
/// There is none, or no GPU.
pub fn pinned(tensor: &Tensor, device: Device) -> Result<Tensor, TchError> {
    // `pin_memory` with a device warns at every call.
    tensor.f_internal_pin_memory(device)
}

/// The failed allocation, if that is why libtorch failed.
///
/// libtorch's errors are texts; these are the ones that its allocators, the C++
/// library and the CUDA libraries have for "no memory". A size beyond what can be
/// addressed counts too.
pub fn out_of_memory(error: &TchError) -> Option<MemoryError> {
    match error {
        TchError::Io(e) if e.kind() == std::io::ErrorKind::OutOfMemory => {
            let inner = e.get_ref().and_then(|e| e.downcast_ref::<MemoryError>());
            Some(inner.cloned().unwrap_or_else(|| tensor_of(0)))
        }
        TchError::Torch(text) | TchError::FileFormat(text) => out_of_memory_text(text),
        _ => None,
    }
}

/// The same for the text of an exception of libtorch.
pub fn out_of_memory_text(text: &str) -> Option<MemoryError> {
    const REFUSALS: [&str; 11] = [
        "DefaultCPUAllocator: ",
        "std::bad_alloc",
        "out of memory",
        "CUBLAS_STATUS_ALLOC_FAILED",
        "CUDNN_STATUS_ALLOC_FAILED",
        "CUSOLVER_STATUS_ALLOC_FAILED",
        // A handle is made at the first product: on a GPU that worked before, memory lacks for it.
        "CUBLAS_STATUS_NOT_INITIALIZED",
        "CUDNN_STATUS_NOT_INITIALIZED",
        "Storage size calculation overflowed",
        // oneDNN has one sentence for all its failures; on shapes that worked before it
        // is memory, and where it is not, fewer environments do not help and the run
        // ends with this text.
        "could not create a primitive",
        "could not create a memory object",
    ];
    // Only the message, not the stack that may follow it.
    let end = text.find("\nframe #").unwrap_or(text.len());
    let text = &text[..end];
    if !REFUSALS.iter().any(|r| text.contains(r)) {
        return None;
    }
    if text.contains("Storage size calculation overflowed") {
        return Some(tensor_of(usize::MAX));
    }
    Some(tensor_of(asked_for(text).unwrap_or(0)))
}

/// An error of [`Policy::act`](crate::Policy::act) that names the tensor that could not be
/// allocated; [`out_of_memory`] finds it again.
pub fn memory_as_tch(error: MemoryError) -> TchError {
    TchError::Io(std::io::Error::new(std::io::ErrorKind::OutOfMemory, error))
}

fn tensor_of(bytes: usize) -> MemoryError {
    MemoryError { what: "a tensor".to_string(), bytes }
}

/// `tried to allocate 67108864 bytes` on the CPU, `Tried to allocate 20.00 MiB` on a
/// GPU.
fn asked_for(text: &str) -> Option<usize> {
    let rest = text.split("ried to allocate ").nth(1)?;
    let mut words = rest.split_whitespace();
    let number: f64 = words.next()?.parse().ok()?;
    let unit = match words.next()?.trim_end_matches('.') {
        "bytes" => 0,
        "KiB" => 10,
        "MiB" => 20,
        "GiB" => 30,
        "TiB" => 40,
        _ => return None,
    };
    Some((number * (1_u64 << unit) as f64) as usize)
}

/// Elements that both sides know.
pub trait Element: Pod {
    /// libtorch's name of the type.
    const KIND: Kind;
}

impl Element for f32 {
    const KIND: Kind = Kind::Float;
}

impl Element for f64 {
    const KIND: Kind = Kind::Double;
}

impl Element for i64 {
    const KIND: Kind = Kind::Int64;
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
///
/// Safe code makes none, since two over one tensor would lend the same memory twice:
///
/// ```no_run
/// # let tensor = tch::Tensor::zeros([3, 2], (tch::Kind::Float, tch::Device::Cpu));
/// # use ostler_collector::memory::HostRows;
/// // SAFETY: the tensor is new, and nothing else uses it.
/// let rows = unsafe { HostRows::<f32>::new(&tensor) };
/// ```
///
/// ```compile_fail,E0133
/// # let tensor = tch::Tensor::zeros([3, 2], (tch::Kind::Float, tch::Device::Cpu));
/// # use ostler_collector::memory::HostRows;
/// let rows = HostRows::<f32>::new(&tensor);
/// ```
#[derive(Debug)]
pub struct HostRows<T> {
    tensor: Tensor,
    ptr: *mut T,
    rows: usize,
    width: usize,
}

// SAFETY: the pointer leads into the storage of `tensor`, which is Send and goes along;
// what it points to are plain numbers that no thread is bound to. Rows are written
// through `&mut self` alone.
unsafe impl<T: Element> Send for HostRows<T> {}

impl<T: Element> HostRows<T> {
    /// Rows of `tensor`, which must be contiguous, of this element type, on the host.
    ///
    /// # Safety
    /// The tensor's elements are initialised. While a slice of this value is borrowed, no
    /// operation of libtorch (of a device's copies, too) works on this memory, through
    /// whatever tensor, and no slice of it is borrowed from another `HostRows` or
    /// [`with_floats`]. Several may read it at once, as long as nobody writes.
    ///
    /// # Errors
    /// It is another kind of tensor.
    pub unsafe fn new(tensor: &Tensor) -> Result<Self, CollectError> {
        let size = tensor.size();
        if tensor.device() != Device::Cpu
            || tensor.kind() != T::KIND
            || !tensor.is_contiguous()
            || size.is_empty()
        {
            return Err(CollectError::NotRows(format!(
                "{size:?} of {:?} on {:?}, {}",
                tensor.kind(),
                tensor.device(),
                if tensor.is_contiguous() { "contiguous" } else { "not contiguous" },
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
    ///
    /// # Errors
    /// There is no such row, or the tensor was resized.
    pub fn row(&self, i: usize) -> Result<&[T], CollectError> {
        let start = self.start(i, 1)?;
        // SAFETY: `start` checked that the row lies within the storage that `tensor`
        // keeps alive and that this storage has not moved. The elements are plain data.
        // The slice borrows `self`; that nobody writes while it lives was promised to
        // `new`, and this value itself writes through `&mut self` alone.
        Ok(unsafe { std::slice::from_raw_parts(start, self.width) })
    }

    /// Row `i`, to write.
    ///
    /// # Errors
    /// As [`row`](Self::row).
    pub fn row_mut(&mut self, i: usize) -> Result<&mut [T], CollectError> {
        let start = self.start(i, 1)?;
        // SAFETY: as in `row`; the slice borrows `self` exclusively, and that nobody else
        // reads or writes while it lives was promised to `new`.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, self.width) })
    }

    /// All rows, to read.
    ///
    /// # Errors
    /// The tensor was resized.
    pub fn all(&self) -> Result<&[T], CollectError> {
        let start = self.start(0, self.rows)?;
        // SAFETY: as in `row`, for all rows.
        Ok(unsafe { std::slice::from_raw_parts(start, self.rows * self.width) })
    }

    /// All rows, to write.
    ///
    /// # Errors
    /// As [`all`](Self::all).
    pub fn all_mut(&mut self) -> Result<&mut [T], CollectError> {
        let start = self.start(0, self.rows)?;
        // SAFETY: as in `row_mut`, for all rows.
        Ok(unsafe { std::slice::from_raw_parts_mut(start, self.rows * self.width) })
    }

    /// Where row `i` begins, if `count` rows from there exist and the storage has not
    /// been moved by a resize. An empty buffer gets a pointer that may be sliced.
    fn start(&self, i: usize, count: usize) -> Result<*mut T, CollectError> {
        let within = i.checked_add(count).is_some_and(|end| end <= self.rows);
        if !within || self.tensor.data_ptr().cast() != self.ptr {
            return Err(CollectError::NotRows(format!(
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

/// Runs `work` over the memory of tensors: those it reads and those it writes. `None`, and
/// nothing is done, if one of them is not contiguous float32 on the host, or one that is
/// written shares memory with another.
///
/// # Safety
/// The tensors' elements are initialised. While `work` runs, no operation of libtorch works
/// on their memory, through whatever tensor: `work` starts none, nor does another thread.
/// No slice of a [`HostRows`] over it is borrowed, but for both to read.
pub unsafe fn with_floats<const READ: usize, const WRITTEN: usize, T>(
    read: [&Tensor; READ],
    written: [&Tensor; WRITTEN],
    work: impl FnOnce([&[f32]; READ], [&mut [f32]; WRITTEN]) -> T,
) -> Option<T> {
    let plain =
        |t: &&Tensor| t.device() == Device::Cpu && t.kind() == Kind::Float && t.is_contiguous();
    if !(read.iter().all(plain) && written.iter().all(plain)) {
        return None;
    }
    let place = |t: &Tensor| match t.numel() {
        0 => (std::ptr::NonNull::dangling().as_ptr(), 0),
        len => (t.data_ptr().cast::<f32>(), len),
    };
    let (read, written) = (read.map(place), written.map(place));
    let apart = |&(a, a_len): &(*mut f32, usize), &(b, b_len): &(*mut f32, usize)| {
        let (a, b) = (a.addr(), b.addr());
        a + 4 * a_len <= b || b + 4 * b_len <= a || a_len == 0 || b_len == 0
    };
    for (i, w) in written.iter().enumerate() {
        let others = read.iter().chain(&written[..i]);
        if !others.into_iter().all(|other| apart(w, other)) {
            return None;
        }
    }
    // SAFETY: a contiguous float tensor on the host is `len` floats, which the caller says
    // are initialised, in a storage that the borrowed tensors keep alive while `work` runs.
    // Nothing that is written overlaps anything else here, and nobody else is at work on
    // it: the caller's promise. Operations of libtorch on host tensors end before they
    // return, so none is under way.
    Some(unsafe {
        work(
            read.map(|(at, len)| std::slice::from_raw_parts(at, len)),
            written.map(|(at, len)| std::slice::from_raw_parts_mut(at, len)),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows of a tensor of a test.
    fn rows<T: Element>(tensor: &Tensor) -> Result<HostRows<T>, CollectError> {
        // SAFETY: tests make their tensors of zeros, and work on them by operations of
        // libtorch and by slices in turn.
        unsafe { HostRows::new(tensor) }
    }

    #[test]
    fn rows_are_the_tensors_own_memory() {
        let t = host_zeros("t", &[3, 2, 2], Kind::Float).unwrap();
        let mut rows = rows::<f32>(&t).unwrap();
        rows.row_mut(1).unwrap().copy_from_slice(&[1.0, 2.0, 3.0, 4.0]);
        assert_eq!(t.double_value(&[1, 1, 0]), 3.0);
        let _ = t.get(2).fill_(7.0);
        assert_eq!(rows.row(2).unwrap(), [7.0; 4]);
        // The last one's end is beyond all numbers.
        for none in [3, usize::MAX] {
            assert!(rows.row(none).is_err() && rows.row_mut(none).is_err());
        }
    }

    #[test]
    fn other_tensors_are_refused() {
        let t = host_zeros("t", &[3, 2], Kind::Float).unwrap();
        assert!(rows::<f32>(&t.tr()).is_err());
        assert!(rows::<i32>(&t).is_err());
        assert!(rows::<f32>(&t.sum(Kind::Float)).is_err());
    }

    #[test]
    fn work_on_tensors_happens_in_their_memory_or_not_at_all() {
        let t = host_zeros("t", &[4, 2], Kind::Float).unwrap();
        let (top, bottom) = (t.narrow(0, 0, 2), t.narrow(0, 2, 2));
        let _ = top.shallow_clone().fill_(3.0);
        // SAFETY: of zeros; the closure has slices alone, and nobody else is at work.
        let done = unsafe {
            with_floats([&top], [&bottom], |[x], [y]| {
                y.copy_from_slice(x);
                y[0] = 7.0;
            })
        };
        assert!(done.is_some());
        assert_eq!(bottom.double_value(&[0, 0]), 7.0);
        assert_eq!(bottom.double_value(&[1, 1]), 3.0);
        let refused = |read: &Tensor, written: [&Tensor; 2]| {
            // SAFETY: as above.
            unsafe { with_floats([read], written, |_, _| panic!("not to be run")) }.is_none()
        };
        let (columns, double) = (t.narrow(1, 0, 1), t.to_kind(Kind::Double));
        assert!(refused(&t, [&top, &bottom]), "read and written");
        assert!(refused(&double, [&top, &bottom]), "another kind");
        assert!(refused(&columns, [&top, &bottom]), "gaps");
        let (all, other) = (&t, t.copy());
        assert!(refused(&other, [all, &bottom]), "written twice");
        let none = t.narrow(0, 1, 0);
        // SAFETY: as above.
        let lengths = unsafe { with_floats([&none], [&t], |[x], [y]| x.len() + y.len()) };
        assert_eq!(lengths, Some(8));
    }

    #[test]
    fn a_resized_tensor_is_noticed() {
        let t = host_zeros("t", &[3, 2], Kind::Float).unwrap();
        let rows = rows::<f32>(&t).unwrap();
        let _ = t.shallow_clone().resize_([3000, 2000]);
        assert!(rows.row(0).is_err());
    }

    #[test]
    fn a_failed_allocation_is_told_from_other_errors_with_its_size() {
        let cpu = |size: &[i64]| Tensor::f_empty(size, (Kind::Float, Device::Cpu)).unwrap_err();
        let bytes = |e: &TchError| out_of_memory(e).map(|m| m.bytes);
        assert_eq!(bytes(&cpu(&[1 << 44])), Some(1 << 46));
        assert_eq!(bytes(&cpu(&[1 << 62, 8])), Some(usize::MAX));
        assert_eq!(bytes(&cpu(&[-1])), None);
        let texts = [
            ("std::bad_alloc", Some(0)),
            (
                "CUDA out of memory. Tried to allocate 2.50 GiB. GPU 0 has a total capacity of",
                Some(5 << 29),
            ),
            ("CUDA error: out of memory", Some(0)),
            ("CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling", Some(0)),
            (
                "CUDA error: CUBLAS_STATUS_NOT_INITIALIZED when calling `cublasCreate(handle)`",
                Some(0),
            ),
            ("mat1 and mat2 shapes cannot be multiplied", None),
            ("a NaN\nframe #0: c10::OutOfMemoryError out of memory", None),
        ];
        for (text, expected) in texts {
            assert_eq!(bytes(&TchError::Torch(text.into())), expected, "{text}");
        }
        let ours = MemoryError { what: "hidden layers".into(), bytes: 12 };
        assert_eq!(out_of_memory(&memory_as_tch(ours.clone())), Some(ours.clone()));
        assert!(CollectError::from(cpu(&[1 << 44])).out_of_memory().is_some());
        assert!(matches!(CollectError::from(memory_as_tch(ours)), CollectError::Memory(_)));
        let shape = CollectError::from(cpu(&[-1]));
        assert!(matches!(shape, CollectError::Torch(_)) && shape.out_of_memory().is_none());
        assert!(tensor_of(0).to_string().starts_with("cannot allocate memory for a tensor"));
    }

    #[test]
    fn impossible_sizes_are_errors() {
        for size in [[i64::MAX, 2], [1 << 40, 1 << 20], [-1, 2]] {
            let e = host_zeros("rollout", &size, Kind::Float).unwrap_err();
            assert!(e.to_string().contains("rollout"), "{e}");
        }
    }
}
