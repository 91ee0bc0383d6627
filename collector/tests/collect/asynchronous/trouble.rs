//! Pins: workers that panic, hang or run out of memory (failure F4).

use super::support::*;
use crate::common::parts::{Hook, Learning, Moment, Part};
use crate::common::state;
use ostler_collector::{AsyncCollector, CollectError, Collector, Snapshot};
use ostler_sim::env::EnvError;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// Four rollouts of a collector to which nothing happens.
fn untroubled(max_staleness: usize) -> Vec<Seen> {
    let (mut c, mut policy) = (collector(options(2, max_staleness), &quiet()), Learning::new());
    (0..4).map(|_| iterate(&mut c, &mut policy)).collect()
}

/// The second worker panics at its eighth step, in the second rollout, as often as given.
fn panicking(times: u32) -> Hook {
    let left = AtomicU32::new(times);
    Arc::new(move |m: Moment| {
        let here = m.first > 0 && m.step == 7;
        if here && left.fetch_update(SeqCst, SeqCst, |n| n.checked_sub(1)).is_ok() {
            panic!("deliberately, at step {}", m.step);
        }
    })
}

#[test]
fn a_worker_that_panics_is_restarted_and_nobody_can_tell_from_the_numbers() {
    for staleness in [0, 1] {
        let (mut c, mut policy) =
            (collector(options(2, staleness), &panicking(1)), Learning::new());
        let seen: Vec<Seen> = (0..4).map(|_| iterate(&mut c, &mut policy)).collect();
        assert_eq!(seen, untroubled(staleness));
        assert_eq!(c.worker_stats().unwrap().restarts, 1);
    }
}

#[test]
fn where_the_same_state_panics_again_new_episodes_begin() {
    let (mut c, mut policy) = (collector(options(2, 0), &panicking(2)), Learning::new());
    iterate(&mut c, &mut policy);
    let r = c.collect(&mut policy).unwrap();
    assert_eq!(value(&r.obs.policy, &[0, 6, 2]), 0.0, "age of the last one");
    assert_eq!(value(&r.obs.policy, &[0, 1, 2]), 5.0, "the first worker's go on");
    assert_eq!(value(&r.valid.min(), &[]), 1.0);
    assert_eq!(c.worker_stats().unwrap().restarts, 2);
    // The clocks agree: the state can be joined and gone on from.
    let blob = saved(&mut c);
    let mut other = collector(options(1, 0), &quiet());
    other.restore(&state(&blob)).unwrap();
    let mut same = policy.clone();
    assert_eq!(iterate(&mut other, &mut same), iterate(&mut c, &mut policy));
}

/// The second worker panics before every step in the second rollout until told otherwise.
fn stubborn(well: &Arc<AtomicBool>) -> Hook {
    let well = well.clone();
    Arc::new(move |m: Moment| {
        assert!(m.first == 0 || m.step < T as u64 || well.load(SeqCst), "again");
    })
}

#[test]
fn a_rollout_that_cannot_be_made_is_masked() {
    let well = Arc::new(AtomicBool::new(false));
    let (mut c, mut policy) = (collector(options(2, 0), &stubborn(&well)), Learning::new());
    iterate(&mut c, &mut policy);
    let r = c.collect(&mut policy).unwrap();
    let second = r.valid.narrow(1, 3, 4);
    assert_eq!(value(&second.max(), &[]), 0.0);
    assert_eq!(value(&r.valid.narrow(1, 0, 3).min(), &[]), 1.0);
    for t in [&r.obs.policy, &r.action, &r.dist, &r.std, &r.reward] {
        assert!(t.isfinite().all().int64_value(&[]) != 0);
    }
    assert_eq!(value(&r.std.narrow(1, 3, 4).min(), &[]), 1.0);
    assert_eq!(c.worker_stats().unwrap().restarts, 3);
    well.store(true, SeqCst);
    let r = c.collect(&mut policy).unwrap();
    assert_eq!(value(&r.valid.min(), &[]), 1.0);
    let step = |env| value(&r.obs.policy, &[1, env, 0]);
    assert_eq!((step(6), step(0)), (11.0, 11.0), "they are in step again");
}

#[test]
fn what_lost_a_rollout_is_in_step_with_the_others_where_all_begin_anew() {
    let well = Arc::new(AtomicBool::new(false));
    let mut options = options(2, 0);
    options.stepping.reset_at_each_iter = true;
    let (mut c, mut policy) = (collector(options, &stubborn(&well)), Learning::new());
    for _ in 0..3 {
        c.collect(&mut policy).unwrap();
        // Parts of different times cannot be joined.
        saved(&mut c);
    }
    assert_eq!(value(&c.rollout().valid.narrow(1, 3, 4).max(), &[]), 0.0);
}

#[test]
fn a_worker_beyond_help_is_an_error_that_says_who_and_why() {
    let well = Arc::new(AtomicBool::new(false));
    let (mut c, mut policy) = (collector(options(2, 0), &stubborn(&well)), Learning::new());
    for _ in 0..3 {
        c.collect(&mut policy).unwrap();
    }
    let error = c.collect(&mut policy).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("worker 1") && text.contains("3..7"), "{text}");
    assert!(text.contains("3 rollouts in a row"), "{text}");
    assert!(c.collect(&mut policy).is_err(), "and stays one");
}

/// The second worker hangs at its eighth step the first time that it comes there, until
/// the sender is gone.
fn hanging() -> (Hook, Sender<()>) {
    let (open, gate) = channel();
    let (gate, first) = (Mutex::new(gate), AtomicBool::new(true));
    let hook: Hook = Arc::new(move |m: Moment| {
        if m.first > 0 && m.step == 7 && first.swap(false, SeqCst) {
            let _ = gate.lock().unwrap_or_else(PoisonError::into_inner).recv();
        }
    });
    (hook, open)
}

#[test]
fn a_worker_that_hangs_is_replaced_and_nobody_can_tell_from_the_numbers() {
    for staleness in [0, 1] {
        let (hook, open) = hanging();
        let mut options = options(2, staleness);
        // One that is only slow may be replaced, too: the numbers are the same.
        options.worker_timeout = Duration::from_millis(300);
        let (mut c, mut policy) = (collector(options, &hook), Learning::new());
        let mut seen: Vec<Seen> = (0..2).map(|_| iterate(&mut c, &mut policy)).collect();
        assert!(c.worker_stats().unwrap().hangs >= 1);
        // It wakes up, and has nothing more to say.
        drop(open);
        seen.extend((0..2).map(|_| iterate(&mut c, &mut policy)));
        assert_eq!(seen, untroubled(staleness));
    }
}

#[test]
fn the_end_does_not_wait_for_a_worker_that_hangs() {
    let (hook, open) = hanging();
    let mut options = options(2, 1);
    options.shutdown_timeout = Duration::from_millis(50);
    let (mut c, mut policy) = (collector(options, &hook), Learning::new());
    iterate(&mut c, &mut policy);
    drop(c);
    // That the test gets here shows it. The thread that was left behind ends by itself,
    // and with it the last hook but this one.
    drop(open);
    while Arc::strong_count(&hook) > 1 {
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn at_the_end_all_threads_are_joined() {
    let hook = quiet();
    let mut c = collector(options(5, 1), &hook);
    c.collect(&mut Learning::new()).unwrap();
    drop(c);
    assert_eq!(Arc::strong_count(&hook), 1, "no thread has environments any more");
}

#[test]
fn out_of_memory_in_a_worker_is_out_of_memory_here_and_can_be_taken_back() {
    for staleness in [0, 1] {
        let full = Arc::new(AtomicBool::new(false));
        let mut policy = Learning::new();
        let seen_by_workers = full.clone();
        policy.full = Arc::new(move || seen_by_workers.load(SeqCst));
        let factory = Arc::new(|shard: ostler_collector::asynchronous::Shard| {
            Ok(Part::new(shard.first, shard.len, quiet()))
        });
        let options = options(2, staleness);
        let mut c = AsyncCollector::new(factory, N, T, &policy, SEED, false, options).unwrap();
        let mut kept = Snapshot::in_place();
        c.capture(&mut kept).unwrap();
        full.store(true, SeqCst);
        let error = c.collect(&mut policy).unwrap_err();
        assert_eq!(error.out_of_memory().unwrap().what, "a thought");
        full.store(false, SeqCst);
        assert_eq!(c.bytes(&kept).unwrap(), kept.bytes());
        c.restore(&kept).unwrap();
        let seen: Vec<Seen> = (0..4).map(|_| iterate(&mut c, &mut policy)).collect();
        assert_eq!(seen, untroubled(staleness));
    }
}

#[test]
fn environments_that_cannot_be_built_are_an_error_at_once() {
    let failed = |factory: Arc<ostler_collector::asynchronous::Factory<Part>>| {
        let policy = Learning::new();
        AsyncCollector::new(factory, N, T, &policy, SEED, false, options(2, 1)).unwrap_err()
    };
    let no_memory = failed(Arc::new(|shard| match shard.first {
        0 => Ok(Part::new(0, shard.len, quiet())),
        _ => Err(EnvError::Memory(ostler_sim::memory::MemoryError {
            what: "worlds".into(),
            bytes: 7,
        })),
    }));
    assert_eq!(no_memory.out_of_memory().unwrap().bytes, 7);
    let panic = failed(Arc::new(|_| panic!("no such robot")));
    assert!(matches!(panic, CollectError::Worker { .. }), "{panic}");
    assert!(panic.to_string().contains("no such robot"), "{panic}");
}

#[test]
fn a_policy_that_cannot_be_copied_is_refused() {
    let factory = Arc::new(|shard: ostler_collector::asynchronous::Shard| {
        Ok(Part::new(shard.first, shard.len, quiet()))
    });
    let policy = crate::common::Copying;
    let error = AsyncCollector::new(factory, N, T, &policy, SEED, false, options(2, 1));
    let text = error.unwrap_err().to_string();
    assert!(text.contains("collector.kind = \"sync\""), "{text}");
}
