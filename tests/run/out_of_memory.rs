//! F15, F16: whatever allocation fails in an iteration, the program goes on, says that
//! it was memory, and goes back to the bits from before.

#![allow(clippy::disallowed_methods)]

use crate::support::alone;
use ostler_collector::{Collector, Snapshot, SyncCollector};
use ostler_sim::config::{EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::{BatchEnv, model::mjcf};
use ostler_trainer::learner::{
    ActorConfig, CriticConfig, LearnError, Learner, NamedTensors, Ppo, PpoConfig, UpdateStats,
};
use ostler_trainer::run::RunError;
use ostler_trainer::torch::FailAllocation::{After, FromBytes, Never};
use ostler_trainer::torch::{self, fail_allocation, reserve};
use std::sync::Arc;
use tch::{Device, Kind, Tensor};

/// Whether a test goes on here. Allocations fail for the whole process, so that each has one of its
/// own; it hands out memory without a cache for each thread, whose filling would look like
/// something forgotten.
fn here(test: &str) -> bool {
    let tunables = [("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0".as_ref())];
    let here = alone::here(&format!("out_of_memory::{test}"), &tunables);
    if here {
        torch::init(1).unwrap();
    }
    here
}

const ROBOT: &str = r#"<mujoco model="two_carts">
  <worldbody>
    <body name="a"><joint name="a" type="slide" axis="1 0 0"/><geom size="0.1" mass="1"/></body>
    <body name="b" pos="0 1 0"><joint name="b" type="hinge" axis="0 0 1"/><geom size="0.1" mass="1" pos="1 0 0"/></body>
  </worldbody>
  <actuator>
    <motor name="a" joint="a" ctrlrange="-3 3"/>
    <motor name="b" joint="b" ctrlrange="-3 3"/>
  </actuator>
</mujoco>"#;

const STEPS: usize = 5;

fn env() -> BatchEnv {
    let task = r#"{
        "observation": [{"name": "state", "expr": "concat(qpos, qvel)", "noise": 0.01},
                        {"name": "secret", "expr": "qvel", "group": "critic"}],
        "reward": [{"name": "alive", "expr": "1 - sum(qpos^2)"}],
        "termination": [{"name": "far", "expr": "abs(qpos.x) > 0.01"}],
        "reset": [{"target": "qpos", "uniform": [-0.005, 0.005]}],
        "action": [{"actuators": ["*"]}]
    }"#;
    let task: TaskConfig = serde_json::from_str(task).unwrap();
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("robot.xml");
    std::fs::write(&path, ROBOT).unwrap();
    let sim = SimConfig { specialize: Specialize::Off, ..SimConfig::default() };
    let env = EnvConfig { num_envs: 6, episode_length_s: 0.1, ..EnvConfig::default() };
    let model = Arc::new(mjcf::load(&path).unwrap());
    BatchEnv::new(model, &sim, &env, &task, 7).unwrap()
}

fn learner(env: &BatchEnv) -> Result<Ppo, LearnError> {
    let config = PpoConfig {
        num_learning_epochs: 1,
        num_mini_batches: 2,
        normalize_returns: true,
        ..PpoConfig::default()
    };
    let actor =
        ActorConfig { hidden_dims: vec![8, 4], obs_normalization: true, ..ActorConfig::default() };
    let critic =
        CriticConfig { hidden_dims: vec![8], obs_normalization: true, ..CriticConfig::default() };
    Ppo::new(&config, &actor, &critic, env.spec(), STEPS, 3, Device::Cpu)
}

struct Parts {
    collector: SyncCollector,
    ppo: Ppo,
    kept: Snapshot,
}

impl Parts {
    fn new() -> Self {
        let env = env();
        let ppo = learner(&env).unwrap();
        let collector = SyncCollector::new(Box::new(env), STEPS, ppo.policy(), 7, true).unwrap();
        Self { collector, ppo, kept: Snapshot::in_place() }
    }

    fn iteration(&mut self) -> Result<UpdateStats, RunError> {
        self.ppo.capture()?;
        self.collector.capture(&mut self.kept)?;
        self.collector.collect(self.ppo.policy_mut())?;
        Ok(self.ppo.update(self.collector.rollout())?)
    }

    fn restore(&mut self) {
        self.ppo.restore().unwrap();
        self.collector.restore(&self.kept).unwrap();
    }

    fn state(&mut self) -> (Vec<(String, Vec<u8>)>, Vec<u8>) {
        let mut env = Snapshot::default();
        self.collector.capture(&mut env).unwrap();
        (bytes(&self.ppo.save().unwrap()), env.into_bytes())
    }
}

fn bytes(all: &NamedTensors) -> Vec<(String, Vec<u8>)> {
    let of = |t: &Tensor| {
        let mut bytes = vec![0; t.numel() * t.kind().elt_size_in_bytes()];
        t.copy_data_u8(&mut bytes, t.numel());
        bytes
    };
    all.iter().map(|(n, t)| (n.clone(), of(t))).collect()
}

/// Lets each tensor allocation of `work` fail once, from the first on, until `work`
/// succeeds untouched. Returns how many there were.
fn each_fails_once<T>(mut work: impl FnMut(u64) -> Result<T, RunError>) -> u64 {
    let before = fail_allocation(Never).unwrap();
    for n in 0.. {
        assert!(n < 20_000, "it never succeeds");
        fail_allocation(After(n)).unwrap();
        let result = work(n);
        let failed = fail_allocation(Never).unwrap() - before;
        match result {
            Ok(_) => {
                assert_eq!(failed, n, "a failed allocation went unnoticed");
                return n;
            }
            Err(e) => {
                assert_eq!(failed, n + 1, "{e}");
                let memory = e.out_of_memory();
                assert!(memory.is_some(), "allocation {n}: {e}");
            }
        }
    }
    unreachable!()
}

/// Bytes that glibc has handed out.
fn in_use() -> usize {
    // SAFETY: mallinfo2 takes nothing and returns numbers.
    unsafe { libc::mallinfo2().uordblks }
}

#[test]
fn an_iteration_whose_nth_allocation_fails_is_as_if_it_had_not_been() {
    if !here("an_iteration_whose_nth_allocation_fails_is_as_if_it_had_not_been") {
        return;
    }
    let (mut parts, mut other) = (Parts::new(), Parts::new());
    for p in [&mut parts, &mut other] {
        p.iteration().unwrap();
    }
    let before = parts.state();
    let (mut used, mut failures) = (Vec::new(), 0);
    for _ in 0..10 {
        let count = each_fails_once(|_| {
            let result = parts.iteration();
            fail_allocation(Never).unwrap();
            parts.restore();
            assert!(parts.state() == before, "the state has other bits");
            result
        });
        assert!(count > 100, "only {count} allocations in an iteration");
        used.push(in_use());
        failures = count as usize;
    }
    // Once caches are filled, hundreds of failures leave nothing behind: one forgotten
    // tensor each would be a hundred times as much.
    println!("{failures} allocations; bytes in use after each round: {used:?}");
    let [.., before, _, last] = used[..] else { unreachable!() };
    assert!(last <= before + 2 * failures, "{failures} {used:?}");

    for _ in 0..2 {
        parts.iteration().unwrap();
        other.iteration().unwrap();
    }
    assert!(parts.state() == other.state());
}

#[test]
fn building_saving_and_rolling_back_fail_as_well_as_they_can() {
    if !here("building_saving_and_rolling_back_fail_as_well_as_they_can") {
        return;
    }
    let environments = env();
    assert!(each_fails_once(|_| Ok(learner(&environments)?)) > 50);

    let mut parts = Parts::new();
    parts.iteration().unwrap();
    assert!(each_fails_once(|_| Ok(parts.ppo.save()?)) > 20);
    let saved = parts.ppo.save().unwrap();
    let state = parts.state();
    each_fails_once(|_| Ok(parts.ppo.load(&saved)?));
    assert!(parts.state() == state);
    parts.ppo.capture().unwrap();
    let policy = parts.ppo.weights().unwrap();
    each_fails_once(|_| {
        let result = parts.ppo.roll_back(&policy, 0.5);
        parts.ppo.restore().unwrap();
        Ok(result?)
    });
    assert!(parts.state() == state);
    // Neither keeping nor going back needs memory at all.
    assert_eq!(each_fails_once(|_| Ok(parts.ppo.capture()?)), 0);
    assert_eq!(each_fails_once(|_| Ok(parts.ppo.restore()?)), 0);
}

#[test]
fn large_allocations_alone_can_be_refused() {
    if !here("large_allocations_alone_can_be_refused") {
        return;
    }
    let zeros = |n: i64| Tensor::f_zeros([n], (Kind::Float, Device::Cpu)).map(|_| ());
    let before = fail_allocation(FromBytes(4000)).unwrap();
    assert!(zeros(999).is_ok() && zeros(1000).is_err() && zeros(5000).is_err());
    assert_eq!(fail_allocation(Never).unwrap() - before, 2);
    assert!(zeros(5000).is_ok());
    let text = {
        fail_allocation(After(0)).unwrap();
        zeros(250).unwrap_err().to_string()
    };
    let real = zeros(1 << 44).unwrap_err().to_string();
    // Word for word what the real allocator says, but for the place and the size.
    for words in
        ["enforce fail at", "can't allocate memory: you tried to allocate", "Error code 12"]
    {
        assert!(text.contains(words) && real.contains(words), "{text}\n{real}");
    }
}

/// Says which part of [`in_a_process_of_its_own`] a child plays.
const PART: &str = "OSTLER_TEST_MEMORY_PART";

/// A limit on the process's data, so much above what it has now. (bytes)
fn limit_data(extra: u64) {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|l| l.starts_with("VmData:")).unwrap();
    let kib: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
    let bytes = kib * 1024 + extra;
    set_limit(bytes);
}

fn set_limit(bytes: u64) {
    let limit = libc::rlimit { rlim_cur: bytes, rlim_max: libc::RLIM_INFINITY };
    // SAFETY: setrlimit reads a live rlimit.
    let set = unsafe { libc::setrlimit(libc::RLIMIT_DATA, &raw const limit) };
    assert_eq!(set, 0);
}

/// Takes all memory there is from C's allocator, which asks nobody else.
fn take_everything() {
    let mut size = 1 << 20;
    while size >= 16 {
        // SAFETY: malloc takes a number; the blocks are leaked on purpose.
        while !std::hint::black_box(unsafe { libc::malloc(size) }).is_null() {}
        size /= 2;
    }
}

const RESERVE: usize = 16 << 20;

#[test]
#[ignore = "only run by another test"]
fn in_a_process_of_its_own() {
    let part = std::env::var(PART).unwrap();
    torch::init(1).unwrap();
    reserve::hold(RESERVE).unwrap();
    assert!(reserve::is_held());
    let floats = |n: i64| Tensor::f_zeros([n], (Kind::Float, Device::Cpu));
    match part.as_str() {
        "tensors" => {
            limit_data(64 << 20);
            let mut kept = Vec::new();
            let error = loop {
                match floats(1 << 20) {
                    Ok(t) => kept.push(t),
                    Err(e) => break RunError::from(e),
                }
            };
            assert!(error.out_of_memory().is_some(), "{error}");
            // The reserve is free for whoever handles that.
            assert!(!reserve::is_held() && reserve::released() == 1);
            assert_eq!(std::hint::black_box(vec![1_u8; 1 << 19]).len(), 1 << 19);
            assert!(floats(1 << 18).is_ok());
            drop(kept);
            // No room for a new one is an error, and not the end; later there is.
            assert!(reserve::hold(1 << 40).is_err() && !reserve::is_held());
            set_limit(libc::RLIM_INFINITY);
            reserve::hold(RESERVE).unwrap();
            assert!(reserve::is_held());
        }
        "small tensors" => {
            limit_data(0);
            take_everything();
            // Small objects are made before the tensor's memory: C++'s `new` meets the
            // limit first, and goes on with the reserve.
            assert!(floats(4).is_ok() || reserve::released() == 1);
            assert!(reserve::released() == 1 && floats(1000).is_ok());
        }
        "rust" => {
            limit_data(0);
            take_everything();
            let grown: Vec<u64> = (0..30_000).collect();
            assert_eq!(std::hint::black_box(&grown).len(), 30_000);
            assert_eq!(reserve::released(), 1);
        }
        other => panic!("no part {other}"),
    }
    println!("survived");
}

#[test]
fn the_reserve_lets_the_process_outlive_the_moment_without_memory() {
    for part in ["tensors", "small tensors", "rust"] {
        let mut command = alone::command(&[], "out_of_memory::in_a_process_of_its_own");
        command.env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0");
        let output = command.env(PART, part).output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout);
        assert!(
            output.status.success() && text.contains("survived"),
            "{part}: {}\n{text}\n{}",
            output.status,
            String::from_utf8_lossy(&output.stderr)
        );
    }
}
