//! A control step allocates nothing on our side; rapier's allocations are reported.

use ostler_sim::config::SimConfig;
use ostler_sim::model::mjcf;
use ostler_sim::physics::{pool::Pool, rapier};
use std::alloc::{GlobalAlloc, Layout, System};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::SeqCst};

struct Counting;
static COUNT: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call is passed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        COUNT.fetch_add(1, SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.alloc(layout) }
    }
    unsafe fn dealloc(&self, p: *mut u8, layout: Layout) {
        // SAFETY: the caller's promise.
        unsafe { System.dealloc(p, layout) }
    }
    unsafe fn realloc(&self, p: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        COUNT.fetch_add(1, SeqCst);
        // SAFETY: the caller's promise.
        unsafe { System.realloc(p, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn allocations(f: impl FnOnce()) -> usize {
    let before = COUNT.load(SeqCst);
    f();
    COUNT.load(SeqCst) - before
}

/// One test, so that no other thread of the harness allocates meanwhile.
#[test]
fn our_side_of_a_step_allocates_nothing() {
    const WORLDS: usize = 32;
    for name in ["cartpole", "half_cheetah", "ant"] {
        let path =
            Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../configs/robots/{name}.xml"));
        let model = Arc::new(mjcf::load(&path).unwrap());
        let pool = Arc::new(Pool::new(2).unwrap());
        let mut worlds = rapier::new(&model, &SimConfig::default(), WORLDS, &pool).unwrap();
        let ctrl = vec![0.1; model.nu() * WORLDS];
        for _ in 0..20 {
            worlds.step(&ctrl, 2);
        }
        // Without time steps: controls in, reading, kinematics, state out, the pool.
        let ours = allocations(|| {
            for _ in 0..100 {
                worlds.step(&ctrl, 0);
            }
        });
        assert_eq!(ours, 0, "{name}");
        // With time steps: the difference is rapier's own.
        let rapiers = allocations(|| {
            for _ in 0..10 {
                worlds.step(&ctrl, 1);
            }
        });
        println!("{name}: {} allocations per time step in rapier", rapiers / (10 * WORLDS));
        let none = vec![0; WORLDS];
        let idle = allocations(|| worlds.reset(&none, &[], &[]));
        assert_eq!(idle, 0, "{name}: a reset of nobody");
    }
}
