//! An allocator that counts. A program whose tests ask says once:
//! `#[global_allocator] static ALLOCATOR: Counting = Counting;`. libtorch allocates through C++'s
//! own operator new, which it does not see.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The system's, with counts of what was asked for.
pub struct Counting;

static OF_ALL: AtomicU64 = AtomicU64::new(0);
thread_local! {
    static OF_THREAD: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    OF_ALL.fetch_add(1, Relaxed);
    // A thread that ends has none.
    let _ = OF_THREAD.try_with(|n| n.set(n.get() + 1));
}

// SAFETY: every call is passed on to the system's allocator unchanged; the counters are plain
// numbers without destructors and allocate nothing themselves.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are the same.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// Allocations of this thread because of `work`.
pub fn of_thread(work: impl FnOnce()) -> u64 {
    let before = OF_THREAD.get();
    work();
    OF_THREAD.get() - before
}

/// Allocations of all threads while `work` runs: for a test in a process of its own.
pub fn of_all(work: impl FnOnce()) -> u64 {
    let before = OF_ALL.load(Relaxed);
    work();
    OF_ALL.load(Relaxed) - before
}
