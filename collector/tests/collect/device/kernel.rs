//! Physics, task and rollout on a device: one launch is a control step.

use super::support::{SEED, T, collect, host, notes, policy, same};
use crate::common::robots::{self, Setup};
use crate::common::{captured, state};
use ostler_collector::device::{KernelEnvironments, NoiseSpec, Queue, TorchMemory};
use ostler_collector::{CollectError, Collector, CudaSync, DeviceCollector, Policy};
use ostler_sim::config::Specialize;
use ostler_sim::device::Traffic;
use ostler_sim::device::host::Host;
use ostler_sim::env::DeviceEnv;
use std::sync::Arc;
use tch::Device;

type OnDevice = DeviceCollector<KernelEnvironments>;

fn env(s: &Setup, policy: &dyn Policy) -> DeviceEnv {
    let device = Arc::new(Host::default());
    let noise = NoiseSpec::of(policy, SEED).into();
    let memory = TorchMemory(Device::Cpu);
    let model = s.model.clone();
    DeviceEnv::new(model, &s.sim, &s.env, &s.task, SEED, 0, device, &memory, noise, false).unwrap()
}

fn on_device(s: &Setup, sync: CudaSync) -> OnDevice {
    let policy = policy(robots::batch(s, SEED).spec());
    let env = KernelEnvironments::new(env(s, &policy), T, &policy, Device::Cpu).unwrap();
    DeviceCollector::new(env, Queue::host(), sync, true).unwrap()
}

/// Environments that end, time out and break within a few rollouts.
fn robot(name: &str, n: usize) -> Setup {
    let mut s = robots::setup(name, n, 0.3);
    // The same text: the engine as it comes adds in another order.
    s.sim.specialize = Specialize::Wait;
    s.sim.max_speed = match name {
        "cartpole" => 0.6,
        _ => 5.0,
    };
    s
}

#[test]
fn rollouts_and_states_are_those_of_the_host() {
    for name in ["cartpole", "quadruped"] {
        let s = robot(name, 5);
        let (mut a, mut b) = (host(robots::batch(&s, SEED)), on_device(&s, CudaSync::Off));
        let (mut truncated, mut broken) = (0.0, 0);
        for _ in 0..6 {
            let tensors = same(&mut a, &mut b);
            truncated += tensors[tensors.len() - 3].sum(tch::Kind::Double).double_value(&[]);
            broken += b.stats().broken();
        }
        // The events to compare did happen.
        assert!(truncated > 0.0 && broken > 0, "{name}: {truncated} {broken}");
    }
}

#[test]
fn what_one_saved_the_other_goes_on_with() {
    let s = robot("quadruped", 5);
    let on_host = || host(robots::batch(&s, SEED));
    let (mut a, mut b) = (on_host(), on_device(&s, CudaSync::Off));
    same(&mut a, &mut b);
    let (saved, kept) = (state(&captured(&mut a)), state(&captured(&mut b)));
    let next = same(&mut a, &mut b);
    let (mut c, mut d) = (on_host(), on_device(&s, CudaSync::Off));
    d.restore(&saved).unwrap();
    c.restore(&kept).unwrap();
    // Row after row of what timed out before is not part of a state.
    let last = 2;
    assert_eq!(same(&mut c, &mut d)[last..], next[last..]);
    b.restore(&kept).unwrap();
    a.restore(&saved).unwrap();
    assert_eq!(same(&mut a, &mut b)[last..], next[last..]);
    assert!(b.restore(&state(&saved.bytes()[1..])).is_err());
    for n in [3, 8] {
        let s = robot("quadruped", n);
        let (mut a, mut b) = (host(robots::batch(&s, SEED)), on_device(&s, CudaSync::Off));
        collect(&mut b);
        collect(&mut a);
        assert_eq!(b.restore_range(&saved, true).unwrap(), n.min(5));
        assert_eq!(a.restore_range(&saved, true).unwrap(), n.min(5));
        same(&mut a, &mut b);
        same(&mut a, &mut b);
    }
}

#[test]
fn noted_states_are_gone_back_to_and_handed_on() {
    let s = robot("quadruped", 5);
    let on_device = || on_device(&s, CudaSync::Off);
    notes(on_device(), on_device());
}

#[test]
fn f1_a_step_is_one_launch_on_one_stream_and_nothing_waits() {
    let s = robots::setup("cartpole", 5, 10.0);
    let t = T as u64;
    for (sync, waits) in [(CudaSync::Off, 0), (CudaSync::Event, t), (CudaSync::Device, t)] {
        let mut c = on_device(&s, sync);
        collect(&mut c);
        collect(&mut c);
        let counts = c.counts();
        let step = Traffic { launches: t, waits, ..Traffic::default() };
        assert_eq!(counts.in_loop, step);
        // Around them: the beginning, and statistics, which are read once.
        let all = Traffic { launches: t + 3, uploads: 0, downloads: 1, waits: waits + 1 };
        assert_eq!(counts.all, all);
    }
}

#[test]
fn other_random_numbers_than_the_policys_are_refused() {
    let s = robots::setup("cartpole", 5, 10.0);
    let policy = policy(robots::batch(&s, SEED).spec());
    let other = crate::common::robots::Jittery(3);
    let error =
        KernelEnvironments::new(env(&s, &policy), T, &other, Device::Cpu).map(|_| ()).unwrap_err();
    assert!(matches!(error, CollectError::NotRows(_)), "{error}");
}
