//! A training is the same wherever it computes: on the host, with its rollout on a device
//! and physics on the host, and all on a device. The host stands in for the device.

use super::{Machine, Parts};
use crate::PRECISION;
use crate::run::engine::one_env;
use crate::run::setup::plan;
use ostler_collector::Snapshot;
use ostler_learn::config::{Gpus, Loaded, Override};
use ostler_learn::learner::{NamedTensors, UpdateStats};
use ostler_machine::memory::Told;
use ostler_sim::Model;
use ostler_sim::device::host::Host;
use std::path::Path;
use std::sync::Arc;

fn task(num_envs: usize, more: &[(&str, &str)]) -> (Loaded, Arc<Model>) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/cartpole.toml");
    let n = num_envs.to_string();
    let own = [
        ("env.num_envs", n.as_str()),
        // The same text as on the stand-in: the engine as it comes has other last bits.
        ("sim.specialize", "wait"),
        ("sim.threads", "1"),
        ("learner.threads", "1"),
        ("runner.num_steps_per_env", "16"),
    ];
    let all = own.iter().chain(more);
    let overrides: Vec<_> = all.map(|(k, v)| Override::flag("--set", k, v)).collect();
    let (loaded, model, _) = plan(&path, &overrides, None, Gpus::Trust).unwrap();
    (loaded, model)
}

fn parts(machine: &Machine, (loaded, model): &(Loaded, Arc<Model>)) -> Parts {
    tch::set_num_threads(1);
    let spec = one_env(loaded, model).unwrap().spec().clone();
    Parts::build_on(machine, loaded, model, &spec).unwrap()
}

fn machines() -> [(&'static str, Machine); 3] {
    let host = Machine::host();
    let bridged = Machine::stand_in(None);
    let on_device = Machine::stand_in(Some(Arc::new(Host::default())));
    [("host", host), ("bridged", bridged), ("on device", on_device)]
}

/// An iteration as a run does it.
fn iterate(parts: &mut Parts) -> UpdateStats {
    parts.capture().unwrap();
    parts.collector.collect(parts.learner.policy_mut()).unwrap();
    let stats = parts.learner.update(parts.collector.rollout()).unwrap();
    UpdateStats { gae_s: 0.0, update_s: 0.0, ..stats }
}

type State = (Vec<(String, Vec<u8>)>, Vec<u8>);

fn bytes(tensors: NamedTensors) -> Vec<(String, Vec<u8>)> {
    let of = |t: tch::Tensor| {
        let count = t.numel();
        let mut bytes = vec![0; count * t.kind().elt_size_in_bytes()];
        t.copy_data_u8(&mut bytes, count);
        bytes
    };
    tensors.into_iter().map(|(name, t)| (name, of(t))).collect()
}

/// All that a checkpoint has.
fn state(parts: &mut Parts) -> State {
    let mut environments = Snapshot::default();
    parts.collector.capture(&mut environments).unwrap();
    let environments = environments.into_bytes();
    (bytes(parts.learner.save().unwrap()), environments)
}

#[test]
fn a_training_has_the_same_bits_wherever_it_computes() {
    let _alone = PRECISION.lock();
    let task = task(12, &[]);
    let trained = machines().map(|(name, machine)| {
        let mut parts = parts(&machine, &task);
        let said: Vec<_> = (0..3).map(|_| iterate(&mut parts)).collect();
        let after = state(&mut parts);
        // The last iteration is taken back and done again.
        parts.restore().unwrap();
        assert_eq!(iterate(&mut parts), said[2], "{name}");
        assert!(state(&mut parts) == after, "{name}");
        (name, said, after)
    });
    let (_, said, after) = &trained[0];
    assert!(said.iter().all(|s| s.skipped == 0));
    for (name, others, state) in &trained[1..] {
        assert_eq!(others, said, "{name}");
        assert!(state == after, "{name}: another state");
    }
}

#[test]
fn threads_that_the_learner_waits_for_train_with_the_same_bits() {
    let _alone = PRECISION.lock();
    let train = |more: &[(&str, &str)]| {
        let task = task(12, more);
        let mut parts = parts(&Machine::host(), &task);
        let said: Vec<_> = (0..3).map(|_| iterate(&mut parts)).collect();
        let after = state(&mut parts);
        parts.restore().unwrap();
        assert_eq!(iterate(&mut parts), said[2], "{more:?}");
        assert!(state(&mut parts) == after, "{more:?}");
        (said, after)
    };
    let (said, after) = train(&[]);
    for workers in ["1", "3"] {
        let more = [
            ("collector.kind", "async"),
            ("collector.max_staleness", "0"),
            ("collector.workers", workers),
        ];
        let (others, state) = train(&more);
        assert_eq!(others, said, "{workers} workers");
        assert!(state == after, "{workers} workers: another state");
    }
}

#[test]
fn rollouts_collected_ahead_are_learnt_from_with_a_correction() {
    let _alone = PRECISION.lock();
    let train = |workers: &str| {
        let task = task(12, &[("collector.kind", "async"), ("collector.workers", workers)]);
        let mut parts = parts(&Machine::host(), &task);
        let said: Vec<_> = (0..3).map(|_| iterate(&mut parts)).collect();
        let stats = parts.collector.worker_stats().unwrap();
        assert_eq!(stats.staleness, 1.0);
        assert_eq!((stats.restarts, stats.hangs, stats.cut), (0, 0, 0));
        let version = &parts.collector.rollout().version;
        assert_eq!(version.max().int64_value(&[]), 1, "the learner's was 2");
        (said, state(&mut parts))
    };
    let (said, after) = train("1");
    assert!(said.iter().all(|s| s.skipped == 0 && s.kl.is_finite()));
    let (others, state) = train("3");
    assert_eq!(others, said);
    assert!(state == after);
}

#[test]
fn fewer_environments_go_on_with_their_states_wherever_they_are() {
    let _alone = PRECISION.lock();
    let (many, few) = (task(12, &[]), task(8, &[]));
    let went_on = machines().map(|(name, machine)| {
        let mut before = parts(&machine, &many);
        iterate(&mut before);
        iterate(&mut before);
        before.restore().unwrap();
        let learner = before.learner.save().unwrap();
        let kept = before.take_start().unwrap();
        drop(before);
        let mut after = parts(&machine, &few);
        after.learner.load(&learner).unwrap();
        assert_eq!(after.collector.restore_range(&kept.collector, true).unwrap(), 8, "{name}");
        let said = iterate(&mut after);
        (name, said, state(&mut after))
    });
    for (name, said, state) in &went_on[1..] {
        assert_eq!(*said, went_on[0].1, "{name}");
        assert!(*state == went_on[0].2, "{name}: another state");
    }
}

#[test]
fn a_curriculum_is_followed_wherever_environments_are() {
    let schedule = r#"[{key = "task.reward.upright.weight", points = [[0, 1], [10, 2]]}]"#;
    let task = task(12, &[("curriculum", schedule)]);
    let rewards = machines().map(|(_, machine)| {
        let mut parts = parts(&machine, &task);
        let mut changed = task.0.config.task.clone();
        changed.reward[0].weight = 3.0;
        parts.collector.set_task(&changed).unwrap();
        let rollout = parts.collector.collect(parts.learner.policy_mut()).unwrap();
        rollout.reward.max().double_value(&[])
    });
    assert_eq!(rewards, [3.0; 3]);
}

#[test]
fn a_memory_of_the_past_has_to_fit_where_the_run_says_there_is_room() {
    let _alone = PRECISION.lock();
    let memory = [("replay.storage", "host"), ("replay.save", "false")];
    let task = task(12, &[&[("runner.algorithm", "sac")], &memory[..]].concat());
    let told = Told { host: Some(1000), device: None };
    let mut parts = parts(&Machine::stand_in(None).with(told), &task);
    let folder = tempfile::tempdir().unwrap();
    let opened = parts.open(folder.path(), false).map(|_| ());
    let error = opened.unwrap_err().to_string();
    assert!(error.contains("1000 are free in host memory"), "{error}");
}

#[test]
fn faults_that_environments_on_a_device_cannot_have_are_refused() {
    let fault = ("fault.inject", r#"["nan qpos[0] env=0 step=3"]"#);
    let workers = task(12, &[("collector.kind", "async"), fault]);
    let task = task(12, &[fault]);
    let [host, bridged, on_device] = machines();
    let spec = one_env(&task.0, &task.1).unwrap().spec().clone();
    let build = |machine: &Machine| Parts::build_on(machine, &task.0, &task.1, &spec);
    assert!(build(&host.1).is_ok() && build(&bridged.1).is_ok());
    let error = build(&on_device.1).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("sim.device=cpu"), "{error}");
    let error = Parts::build_on(&host.1, &workers.0, &workers.1, &spec).map(|_| ());
    let error = error.unwrap_err().to_string();
    assert!(error.contains("collector.kind=sync"), "{error}");
}
