//! Memory that is set aside for the moment when there is none.
//!
//! A large allocation that fails is an error like any other; but handling an error
//! takes a little memory too, and C++ and Rust end the process where a small
//! allocation fails. So some memory is held from the start. Whoever finds none gives
//! it back to the system and asks again: libtorch's allocator of tensors (whose error
//! is for large ones and stays), C++'s `new`, and Rust's allocator. The run sees
//! afterwards that the reserve is gone, makes room, and takes a new one.

use super::{TorchError, call, ostler_torch_use_reserve};
use ostler_sim::memory::MemoryError;
use std::alloc::{GlobalAlloc, Layout, System};
use std::ptr::{NonNull, null_mut};
use std::sync::atomic::{AtomicPtr, AtomicU64, Ordering};

/// The process's.
static RESERVE: Reserve = Reserve::none();
/// How often it was released.
static RELEASED: AtomicU64 = AtomicU64::new(0);

/// Memory that nobody else has, touched, unmapped when this is dropped.
///
/// Invariant: the start of a mapping whose first word is its size (bytes).
struct Mapping(NonNull<usize>);

impl Mapping {
    fn new(bytes: usize) -> Result<Self, MemoryError> {
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_POPULATE;
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        // SAFETY: a new mapping without a file; nothing of ours lies there.
        let start = unsafe { libc::mmap(null_mut(), bytes, protection, flags, -1, 0) };
        let made = NonNull::new(start).filter(|_| start != libc::MAP_FAILED);
        let start: NonNull<usize> = match made {
            Some(start) => start.cast(),
            None => {
                return Err(MemoryError {
                    what: "the reserve for when memory runs out".to_string(),
                    bytes,
                });
            }
        };
        // SAFETY: a mapping begins at a page and has one at least; so far it is known here alone.
        unsafe { start.write(bytes) };
        Ok(Self(start))
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: that many bytes were mapped there, and nobody else has them.
        unsafe { libc::munmap(self.0.as_ptr().cast(), self.0.read()) };
    }
}

/// Memory that is set aside by one thread and given back by one, whichever come first: null,
/// or a [`Mapping`], which belongs to whoever swaps it away. Its size goes along with it, and
/// cannot be that of another.
struct Reserve(AtomicPtr<usize>);

impl Reserve {
    const fn none() -> Self {
        Self(AtomicPtr::new(null_mut()))
    }

    fn is_held(&self) -> bool {
        !self.0.load(Ordering::Relaxed).is_null()
    }

    /// Sets `bytes` aside, unless there is a reserve already. Whether this call did.
    fn hold(&self, bytes: usize) -> Result<bool, MemoryError> {
        Ok(!self.is_held() && self.put(Mapping::new(bytes)?))
    }

    /// Keeps a mapping; one that comes second is unmapped. Whether it was kept.
    fn put(&self, mapping: Mapping) -> bool {
        let (put, other) = (Ordering::Release, Ordering::Relaxed);
        let exchange = (self.0).compare_exchange(null_mut(), mapping.0.as_ptr(), put, other);
        if exchange.is_ok() {
            std::mem::forget(mapping);
        }
        exchange.is_ok()
    }

    /// Size of the reserve. Allocates nothing.
    fn take(&self) -> Option<Mapping> {
        NonNull::new(self.0.swap(null_mut(), Ordering::Acquire)).map(Mapping)
    }
}

/// Rust allocations of more are left to fail: all that grow with the number of
/// environments can (see [`MemoryError`]), and the reserve would not do. (bytes)
const SMALL: usize = 1 << 20;

/// Sets `bytes` aside, unless there is a reserve already, and has it used from now on.
/// The memory is touched: it counts as used.
///
/// # Errors
/// There is no such memory, or libtorch refuses.
pub fn hold(bytes: usize) -> Result<(), TorchError> {
    // SAFETY: `call` hands over a buffer together with its length.
    call("use the reserve", |error, size| unsafe { ostler_torch_use_reserve(error, size) })?;
    RESERVE.hold(bytes).map(drop).map_err(TorchError::Memory)
}

/// Reserve of a run (bytes): an error's way through libtorch and the run, and the copy
/// of the learner's state that a back-off takes along.
const USUAL: usize = 16 << 20;

/// Sets the usual reserve aside again if it is gone, and says so in the log where there
/// is no room for it.
pub fn keep_up() {
    static SAID: AtomicU64 = AtomicU64::new(0);
    if is_held() {
        return;
    }
    if let Err(e) = hold(USUAL)
        && SAID.swap(1, Ordering::Relaxed) == 0
    {
        tracing::warn!("{e}; the run goes on without");
    }
}

/// Gives the reserve back to the system. Returns whether there was one. Allocates
/// nothing; any thread may call it at any time.
pub fn release() -> bool {
    let released = RESERVE.take().map(drop).is_some();
    if released {
        RELEASED.fetch_add(1, Ordering::Relaxed);
    }
    released
}

/// Whether there is a reserve now. If there was one before, memory ran out since.
pub fn is_held() -> bool {
    RESERVE.is_held()
}

/// How often the reserve was released since the start.
pub fn released() -> u64 {
    RELEASED.load(Ordering::Relaxed)
}

/// [`release`] for the shim; 1 if there was a reserve.
#[unsafe(no_mangle)]
extern "C" fn ostler_release_reserve() -> i32 {
    i32::from(release())
}

/// Rust's allocator: the system's, and for small sizes a second try once the reserve is
/// released.
#[derive(Debug)]
pub struct Reserving;

#[global_allocator]
static GLOBAL: Reserving = Reserving;

// SAFETY: every call is passed on to the system's allocator with the layout it came with, at
// most twice and only if the first try gave null; the result is the last one of the system's
// allocator. Releasing the reserve unmaps memory that nothing else uses, and does not allocate.
unsafe impl GlobalAlloc for Reserving {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `alloc`'s contract.
        let first = unsafe { System.alloc(layout) };
        if !first.is_null() || layout.size() > SMALL || !release() {
            return first;
        }
        // SAFETY: as above.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        // SAFETY: the caller keeps `alloc_zeroed`'s contract.
        let first = unsafe { System.alloc_zeroed(layout) };
        if !first.is_null() || layout.size() > SMALL || !release() {
            return first;
        }
        // SAFETY: as above.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        // SAFETY: the caller keeps `realloc`'s contract.
        let first = unsafe { System.realloc(old, layout, size) };
        if !first.is_null() || size > SMALL || !release() {
            return first;
        }
        // SAFETY: as above; after null the old block is still there.
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: the block came from the system's allocator with this layout.
        unsafe { System.dealloc(block, layout) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn taken(reserve: &Reserve) -> Option<usize> {
        let mapping = reserve.take()?;
        // SAFETY: the mapping lives, and its first word is its size.
        Some(unsafe { mapping.0.read() })
    }

    #[test]
    fn of_two_that_set_memory_aside_at_once_one_does() {
        let reserve = Reserve::none();
        // Both found none, and each has mapped its own.
        let [one, two] = [1, 2].map(|pages| Mapping::new(pages << 12).unwrap());
        assert!(reserve.put(one) && !reserve.put(two));
        assert_eq!([taken(&reserve), taken(&reserve)], [Some(1 << 12), None]);
        assert!(reserve.hold(1 << 12).unwrap());
        assert!(!reserve.hold(1 << 13).unwrap(), "it is there already");
        assert_eq!(taken(&reserve), Some(1 << 12));
        assert!(reserve.hold(1 << 60).is_err() && !reserve.is_held());
    }
}
