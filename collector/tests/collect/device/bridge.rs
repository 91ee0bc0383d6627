//! Physics on the host, rollout on a device.

use super::support::{SEED, T, collect, host, notes, policy, same};
use crate::common::robots::{self, Jittery};
use crate::common::{Copying, Counting, captured, state};
use ostler_collector::device::{Bridge, HostStream, Queue, Stream, Transfers};
use ostler_collector::env::Environments;
use ostler_collector::snapshot::environments;
use ostler_collector::{CollectError, Collector, CudaSync, DeviceCollector, Policy};
use ostler_sim::BatchEnv;
use ostler_sim::env::{Injection, Value, What, When, Which};
use std::cell::Cell;
use std::rc::Rc;
use tch::{Device, TchError, Tensor};

type Bridged<E> = DeviceCollector<Bridge<E>>;

fn bridge<E: Environments>(
    env: E,
    policy: &dyn Policy,
    sync: CudaSync,
    stream: Rc<dyn Stream>,
    non_blocking: bool,
) -> Bridged<E> {
    let transfers = Transfers { pin_memory: true, non_blocking };
    let queue = Queue::new(stream, Device::Cpu, transfers);
    let env = Bridge::new(Box::new(env), T, policy, SEED, queue.clone()).unwrap();
    DeviceCollector::new(env, queue, sync, true).unwrap()
}

fn bridged<E: Environments>(env: E) -> Bridged<E> {
    let policy = policy(env.spec());
    bridge(env, &policy, CudaSync::Off, Rc::new(HostStream), true)
}

/// A robot whose environments end, time out and break within a few rollouts.
fn robot(name: &str, n: usize) -> BatchEnv {
    let mut env = robots::batch(&robots::setup(name, n, 0.3), SEED);
    let fault = |when, env, what| Injection {
        when: When::Every(when),
        env: Which::One(env),
        what,
        value: Value::Nan,
    };
    env.inject(vec![fault(13, 2, What::Qvel(0)), fault(9, 1, What::Observation(0))]).unwrap();
    env
}

#[test]
fn rollouts_statistics_and_states_are_those_of_the_host() {
    for name in ["cartpole", "quadruped"] {
        let (mut a, mut b) = (host(robot(name, 5)), bridged(robot(name, 5)));
        let (mut truncated, mut broken) = (0.0, 0);
        for _ in 0..4 {
            let tensors = same(&mut a, &mut b);
            assert_eq!(a.stats(), b.stats());
            truncated += tensors[tensors.len() - 3].sum(tch::Kind::Double).double_value(&[]);
            broken += b.stats().broken();
        }
        // The events to compare did happen.
        assert!(truncated > 0.0 && broken == 5, "{name}: {truncated} {broken}");
    }
}

#[test]
fn what_one_saved_the_other_goes_on_with() {
    let name = "quadruped";
    let (mut a, mut b) = (host(robot(name, 5)), bridged(robot(name, 5)));
    same(&mut a, &mut b);
    let (saved, kept) = (state(&captured(&mut a)), state(&captured(&mut b)));
    assert_eq!(environments(saved.bytes()).unwrap(), environments(kept.bytes()).unwrap());
    let next = same(&mut a, &mut b);
    // Crosswise.
    let (mut c, mut d) = (host(robot(name, 5)), bridged(robot(name, 5)));
    d.restore(&saved).unwrap();
    c.restore(&kept).unwrap();
    // Rows into which no episode timed out are as the collector had them.
    let last = 2;
    assert_eq!(same(&mut c, &mut d)[last..], next[last..]);
    b.restore(&kept).unwrap();
    a.restore(&saved).unwrap();
    assert_eq!(same(&mut a, &mut b)[last..], next[last..]);
    assert!(b.restore(&state(&saved.bytes()[1..])).is_err());
}

#[test]
fn noted_states_are_gone_back_to_and_handed_on() {
    for name in ["cartpole", "quadruped"] {
        notes(bridged(robot(name, 5)), bridged(robot(name, 5)));
    }
}

#[test]
fn another_number_of_environments_takes_over() {
    let name = "quadruped";
    let mut a = host(robot(name, 5));
    collect(&mut a);
    let saved = state(&captured(&mut a));
    for n in [3, 5, 8] {
        let (mut few, mut bridged) = (host(robot(name, n)), bridged(robot(name, n)));
        collect(&mut bridged);
        collect(&mut few);
        assert_eq!(bridged.restore_range(&saved, true).unwrap(), n.min(5));
        assert_eq!(few.restore_range(&saved, true).unwrap(), n.min(5));
        same(&mut few, &mut bridged);
        same(&mut few, &mut bridged);
    }
}

/// Counts what it was asked for.
#[derive(Debug, Default)]
struct Counted {
    copies: Cell<u64>,
    waited: Cell<bool>,
    events: Cell<u64>,
    devices: Cell<u64>,
}

fn add(n: &Cell<u64>) -> Result<(), TchError> {
    n.set(n.get() + 1);
    Ok(())
}

impl Stream for Counted {
    fn upload(&self, from: &Tensor, to: &Tensor, wait: bool) -> Result<(), TchError> {
        add(&self.copies)?;
        self.waited.set(self.waited.get() || wait);
        HostStream.upload(from, to, wait)
    }
    fn wait_for_event(&self) -> Result<(), TchError> {
        add(&self.events)
    }
    fn wait_for_device(&self) -> Result<(), TchError> {
        add(&self.devices)
    }
}

#[test]
fn f2_one_copy_crosses_each_way_per_step_and_waits_are_as_configured() {
    copies(&mut Copying, 1);
}

#[test]
fn ends_of_episodes_cross_for_policies_that_remember() {
    let width = Counting::new(4).spec().action.width();
    copies(&mut Jittery(width as i64), 2);
}

/// With so many copies to the device in each step.
fn copies(policy: &mut dyn Policy, per_step: u64) {
    let t = T as u64;
    let collect = |c: &mut Bridged<Counting>, policy: &mut dyn Policy| {
        c.collect(policy).unwrap();
    };
    for (sync, events, devices) in
        [(CudaSync::Off, 0, 0), (CudaSync::Event, t, 0), (CudaSync::Device, 0, t)]
    {
        let stream = Rc::new(Counted::default());
        let mut c = bridge(Counting::new(4), policy, sync, stream.clone(), true);
        collect(&mut c, policy);
        collect(&mut c, policy);
        let settled = stream.events.get() - 2 * events;
        let before = [&stream.events, &stream.devices].map(Cell::get);
        collect(&mut c, policy);
        assert_eq!(stream.devices.get() - before[1], devices);
        let counts = c.counts();
        assert_eq!(counts.in_loop.uploads, per_step * t);
        assert_eq!(counts.in_loop.downloads, t);
        // Actions are waited for, whatever else is.
        assert_eq!(counts.in_loop.waits, t + events + devices);
        // Noise, and each tensor that the policy does not look at, once.
        assert_eq!(counts.all.uploads, per_step * t + 1 + 8);
        // Before the noise of the next rollout is drawn, that of the last has left.
        assert_eq!(settled, 2);
        assert_eq!(stream.events.get() - before[0], events + 1);
        assert_eq!(counts.all.waits, counts.in_loop.waits + 1);
        captured(&mut c);
        collect(&mut c, policy);
        // First observations, and states.
        assert_eq!(c.counts().all.downloads, t + 1 + per_step);
        assert_eq!(c.counts().in_loop, counts.in_loop);
        assert!(!stream.waited.get());
    }
    let stream = Rc::new(Counted::default());
    let mut c = bridge(Counting::new(4), policy, CudaSync::Off, stream.clone(), false);
    collect(&mut c, policy);
    collect(&mut c, policy);
    assert_eq!(c.counts().in_loop.waits, (1 + per_step) * t);
    assert_eq!(c.counts().all.waits, c.counts().all.uploads + t);
    assert!(stream.waited.get() && stream.events.get() == 0);
}

#[test]
fn a_rollout_too_large_for_the_machine_is_an_error() {
    let steps = usize::MAX / 2;
    let error = Bridge::new(Box::new(Counting::new(4)), steps, &Copying, SEED, Queue::host())
        .map(|_| ())
        .unwrap_err();
    assert!(matches!(error, CollectError::Memory(_)), "{error}");
    // More than fits the address space, less than overflows it.
    let error = Bridge::new(Box::new(Counting::new(4)), 1 << 42, &Copying, SEED, Queue::host())
        .map(|_| ())
        .unwrap_err();
    assert!(error.out_of_memory().is_some_and(|e| e.bytes > 1 << 42));
}
