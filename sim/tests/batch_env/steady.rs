//! Pins: a control step allocates nothing, nor does keeping what came of it.

use crate::point_mass::{Batch, Out, build, task};
use ostler_sim::EpisodeStats;
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// Counts the allocations of each thread.
struct Counting;

thread_local! {
    static COUNT: Cell<u64> = const { Cell::new(0) };
}

// SAFETY: every call is passed on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let _ = COUNT.try_with(|c| c.set(c.get() + 1));
        // SAFETY: the caller's promises are the same.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the same.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        let _ = COUNT.try_with(|c| c.set(c.get() + 1));
        // SAFETY: the caller's promises are the same.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[test]
fn stepping_resetting_keeping_and_taking_statistics_allocate_nothing() {
    let text = r#"
[[action]]
actuators = ["*"]
kind = "normalized"
[[command]]
name = "goal"
range = [[-1.0, 1.0]]
resample_s = 0.04
[[observation]]
name = "state"
expr = "concat(qpos, qvel, command.goal)"
noise = 0.1
[[observation]]
name = "secret"
expr = "last_action"
group = "critic"
[[reward]]
name = "near"
expr = "exp(-norm2(joint_pos(slider) - command.goal) / 1.0) - 0.1 * sum(action^2)"
[[termination]]
name = "far"
expr = "abs(joint_pos(slider)) > 0.01"
[[reset]]
target = "qpos"
normal = 0.01
"#;
    let batch = Batch { n: 150, threads: 1, seed: 1, first: 0, steps: 6 };
    let mut env = build(batch, &task(text)).unwrap();
    let mut out = Out::new(env.spec(), 4);
    let mut stats = EpisodeStats::default();
    let mut actions = vec![0.5; 300];
    out.reset(&mut env, true);
    env.take_stats(&mut stats);
    out.step(&mut env, &actions);
    let mut kept = Vec::new();
    env.capture(&mut kept).unwrap();
    let before = COUNT.get();
    let mut episodes = 0;
    for step in 0..100 {
        actions[step] = f32::NAN;
        out.step(&mut env, &actions);
        actions[step] = -0.5;
        env.begin_rollout();
        env.take_stats(&mut stats);
        episodes += stats.episodes;
        kept.clear();
        env.capture(&mut kept).unwrap();
        env.restore(&kept).unwrap();
    }
    assert_eq!(COUNT.get() - before, 0);
    assert!(episodes > 1000);
}
