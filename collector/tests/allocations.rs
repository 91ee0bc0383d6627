//! A collection step makes no allocation of ours. libtorch allocates through C++'s
//! own operator new, which this allocator does not see.

#![allow(clippy::unwrap_used)]

#[allow(dead_code)]
mod common;

use common::{Copying, Counting};
use ostler_collector::device::{Bridge, Queue};
use ostler_collector::{Collector, CudaSync, DeviceCollector, Snapshot, SyncCollector};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

struct Count;

thread_local! {
    static ALLOCATIONS: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged; the counter is
// a plain thread-local cell without a destructor and allocates nothing itself.
unsafe impl GlobalAlloc for Count {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        ALLOCATIONS.with(|n| n.set(n.get() + 1));
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, ptr: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(ptr, layout) }
    }
}

#[global_allocator]
static GLOBAL: Count = Count;

fn allocations(c: &mut impl Collector) -> u64 {
    let before = ALLOCATIONS.with(Cell::get);
    c.collect(&mut Copying).unwrap();
    ALLOCATIONS.with(Cell::get) - before
}

/// Collects and keeps without an allocation, from the second time on.
fn without_any(c: &mut impl Collector) {
    c.collect(&mut Copying).unwrap();
    assert_eq!(allocations(c), 0);
    let mut kept = Snapshot::default();
    c.capture(&mut kept).unwrap();
    let before = ALLOCATIONS.with(Cell::get);
    c.capture(&mut kept).unwrap();
    assert_eq!(ALLOCATIONS.with(Cell::get), before, "capturing");
}

#[test]
fn a_collection_allocates_nothing() {
    for steps in [4, 64] {
        let env = Counting::new(8);
        without_any(&mut SyncCollector::new(env, steps, &Copying, 1, false).unwrap());
        let queue = Queue::host();
        let env = Bridge::new(Counting::new(8), steps, &Copying, 1, queue.clone()).unwrap();
        without_any(&mut DeviceCollector::new(env, queue, CudaSync::Event, false).unwrap());
    }
    // The counter does count.
    let before = ALLOCATIONS.with(Cell::get);
    drop(std::hint::black_box(vec![1u8; 10]));
    assert_eq!(ALLOCATIONS.with(Cell::get), before + 1);
}
