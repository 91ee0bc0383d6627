//! Pins: the results of fast and slow workers.

use super::support::*;
use crate::common::parts::{Hook, Learning};
use crate::common::state;
use crate::support::alone;
use ostler_collector::{Collector, Stepping};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(100);

#[test]
fn workers_collect_while_the_caller_learns() {
    let (told, tell) = channel();
    let hook: Hook = Arc::new(move |m| {
        if m.step as usize == 2 * T - 1 {
            told.send(m.first).unwrap();
        }
    });
    let mut c = collector(options(2, 1), &hook);
    c.collect(&mut Learning::new()).unwrap();
    // The second rollout is made though nobody asks for it.
    let mut done = [tell.recv_timeout(LONG).unwrap(), tell.recv_timeout(LONG).unwrap()];
    done.sort_unstable();
    assert_eq!(done, [0, 3]);
}

#[test]
fn workers_compute_on_one_thread_each_and_leave_the_callers_threads_alone() {
    let test = "asynchronous::pace::workers_compute_on_one_thread_each_and_leave_the_callers_threads_alone";
    if !alone::here(test, &[]) {
        return;
    }
    // libtorch's setting is each thread's own, once a thread has asked for it: other threads'
    // settings do not show here.
    tch::get_num_threads();
    tch::set_num_threads(2);
    let mut c = collector(options(3, 1), &quiet());
    c.collect(&mut Learning::new()).unwrap();
    drop(c);
    assert_eq!(tch::get_num_threads(), 2);
}

#[test]
fn weights_are_refreshed_within_a_rollout_where_that_is_asked_for() {
    let (told, tell) = channel();
    let (open, gate) = channel();
    let gate = Mutex::new(gate);
    let hook: Hook = Arc::new(move |m| match (m.first, m.step as usize) {
        // The other worker stops in the middle of its second rollout ...
        (3, step) if step == T + 2 => {
            told.send(()).unwrap();
            gate.lock().unwrap().recv_timeout(LONG).unwrap();
        }
        (0, step) if step == 2 * T - 1 => told.send(()).unwrap(),
        // ... until the first begins its third, which is ordered after weights were
        // published.
        (0, step) if step == 2 * T => open.send(()).unwrap(),
        _ => {}
    });
    let mut options = options(2, 1);
    options.refresh_interval = 2;
    let (mut c, mut policy) = (collector(options, &hook), Learning::new());
    iterate(&mut c, &mut policy);
    for _ in 0..2 {
        tell.recv_timeout(LONG).unwrap();
    }
    let r = c.collect(&mut policy).unwrap();
    assert_eq!(versions(r, 0), [0; T], "it was through before");
    assert_eq!(versions(r, 6), [0, 0, 0, 0, 1], "it looks before steps 0, 2 and 4");
    // Four environments by one worker, three by the other; one step in five is newer.
    let stale = c.worker_stats().unwrap().staleness;
    assert!((stale - (1.0 - 4.0 / 35.0)).abs() < 1e-12, "{stale}");
}

#[test]
fn slow_workers_are_cut_and_what_they_did_not_do_is_masked() {
    const STEPS: usize = 20_000;
    let slow: Hook = Arc::new(|m| {
        if m.first > 0 {
            std::thread::sleep(Duration::from_millis(1));
        }
    });
    let mut options = options(2, 0);
    options.preemptive_threshold = 0.5;
    let (mut c, mut policy) = (with(options, 4, STEPS, &slow), Learning::new());
    let r = c.collect(&mut policy).unwrap();
    let valid = r.valid.sum_dim_intlist([0_i64].as_slice(), false, tch::Kind::Double);
    assert_eq!(value(&valid, &[0]), STEPS as f64);
    let made = value(&valid, &[2]) as i64;
    assert!((1..STEPS as i64).contains(&made), "{made}");
    assert_eq!(value(&valid, &[3]), made as f64, "both of the slow worker's");
    // One block at the start, then numbers that are repeated.
    assert_eq!(value(&r.valid, &[made - 1, 2]), 1.0);
    for t in [made, STEPS as i64 - 1] {
        assert_eq!(value(&r.valid, &[t, 2]), 0.0);
        assert_eq!(value(&r.reward, &[t, 2]), 0.0);
        assert_eq!(value(&r.std, &[t, 2, 1]), 1.0);
        assert_eq!(value(&r.obs.policy, &[t + 1, 2, 0]), made as f64);
        assert_eq!(r.final_slot.int64_value(&[t, 2]), -1);
    }
    let cut = c.worker_stats().unwrap().cut;
    assert_eq!(cut, 2 * (STEPS as u64 - made as u64));
    // All are at the same step again: the state can be saved, and any collector goes on.
    let blob = saved(&mut c);
    let mut alone = sync(4, Stepping::default());
    alone.restore(&state(&blob)).unwrap();
    let r = alone.collect(&mut policy).unwrap();
    assert_eq!(value(&r.obs.policy, &[1, 3, 0]), STEPS as f64 + 1.0);
}
