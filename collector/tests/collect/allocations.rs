//! A collection step makes no allocation of ours.

use crate::common::{Copying, Counting};
use crate::support::count::of_thread;
use ostler_collector::device::{Bridge, Queue};
use ostler_collector::{Collector, CudaSync, DeviceCollector, Snapshot, SyncCollector};

fn allocations(c: &mut impl Collector) -> u64 {
    of_thread(|| c.collect(&mut Copying).map(|_| ()).unwrap())
}

/// Collects and keeps without an allocation, from the second time on.
fn without_any(c: &mut impl Collector) {
    c.collect(&mut Copying).unwrap();
    assert_eq!(allocations(c), 0);
    let mut kept = Snapshot::default();
    c.capture(&mut kept).unwrap();
    assert_eq!(of_thread(|| c.capture(&mut kept).unwrap()), 0, "capturing");
}

#[test]
fn a_collection_allocates_nothing() {
    for steps in [4, 64] {
        let env = Counting::new(8);
        without_any(&mut SyncCollector::new(Box::new(env), steps, &Copying, 1, false).unwrap());
        let queue = Queue::host();
        let env =
            Bridge::new(Box::new(Counting::new(8)), steps, &Copying, 1, queue.clone()).unwrap();
        without_any(&mut DeviceCollector::new(env, queue, CudaSync::Event, false).unwrap());
    }
    // The counter does count.
    assert_eq!(of_thread(|| drop(std::hint::black_box(vec![1u8; 10]))), 1);
}
