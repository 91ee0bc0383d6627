//! A collector goes back to what it captured, and takes over another number of environments.

use crate::common::{Copying, captured, state};
use ostler_collector::{CollectError, Collector, Rollout, SyncCollector};
use ostler_sim::config::{EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::{BatchEnv, model::mjcf};
use std::sync::Arc;
use tch::Tensor;

const T: usize = 6;

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

fn task() -> TaskConfig {
    let text = r#"{
        "observation": [{"name": "state", "expr": "concat(qpos, qvel)", "noise": 0.01},
                        {"name": "secret", "expr": "qvel", "group": "critic"}],
        "reward": [{"name": "alive", "expr": "1 - sum(qpos^2)"}],
        "termination": [{"name": "far", "expr": "abs(qpos.x) > 0.01"}],
        "reset": [{"target": "qpos", "uniform": [-0.005, 0.005]}],
        "action": [{"actuators": ["*"]}]
    }"#;
    serde_json::from_str(text).unwrap()
}

fn collector(n: usize, seed: u64) -> SyncCollector {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("robot.xml");
    std::fs::write(&path, ROBOT).unwrap();
    let sim = SimConfig { specialize: Specialize::Off, ..SimConfig::default() };
    let env = EnvConfig { num_envs: n, episode_length_s: 0.1, ..EnvConfig::default() };
    let model = Arc::new(mjcf::load(&path).unwrap());
    let env = BatchEnv::new(model, &sim, &env, &task(), seed).unwrap();
    SyncCollector::new(Box::new(env), T, &Copying, seed, true).unwrap()
}

/// Everything in the rollout, per environment.
fn copy(r: &Rollout, n: usize) -> Vec<Vec<f32>> {
    let critic = r.obs.critic.as_ref().unwrap();
    let tensors =
        [&r.obs.policy, critic, &r.action, &r.reward, &r.terminated, &r.truncated, &r.valid];
    let of = |e: i64| {
        let part = |t: &&Tensor| {
            let numbers = t.select(1, e).contiguous().view(-1);
            Vec::<f32>::try_from(&numbers).unwrap()
        };
        tensors.iter().flat_map(part).collect()
    };
    (0..n as i64).map(of).collect()
}

fn go(c: &mut SyncCollector, n: usize) -> Vec<Vec<f32>> {
    copy(c.collect(&mut Copying).unwrap(), n)
}

#[test]
fn restored_it_collects_the_same_again() {
    let mut c = collector(6, 3);
    go(&mut c, 6);
    let mut kept = state(&[1, 2, 3]);
    c.capture(&mut kept).unwrap();
    let straight = [go(&mut c, 6), go(&mut c, 6)];
    assert_ne!(straight[0], straight[1]);
    c.restore(&kept).unwrap();
    assert_eq!([go(&mut c, 6), go(&mut c, 6)], straight);
    let bytes = kept.bytes();
    assert!(c.restore(&state(&bytes[..bytes.len() - 1])).is_err());
}

#[test]
fn environments_that_stay_collect_as_in_the_larger_batch() {
    let mut all = collector(20, 3);
    go(&mut all, 20);
    let kept = captured(&mut all);
    let whole = [go(&mut all, 20), go(&mut all, 20)];
    for n in [7, 10] {
        let mut few = collector(n, 3);
        assert_eq!(few.restore_range(&state(&kept), true).unwrap(), n);
        for whole in &whole {
            assert_eq!(go(&mut few, n), whole[..n]);
        }
    }
    let mut more = collector(33, 3);
    assert_eq!(more.restore_range(&state(&kept), true).unwrap(), 20);
    for whole in &whole {
        let seen = go(&mut more, 33);
        assert_eq!(seen[..20], whole[..]);
        assert!(seen[20..].iter().flatten().all(|x| x.is_finite()));
        assert_ne!(seen[20], seen[21]);
    }
    let error = collector(7, 4).restore_range(&state(&kept), true).unwrap_err();
    assert!(matches!(error, CollectError::Snapshot(_)), "{error}");
    assert!(error.out_of_memory().is_none());
    let cut = state(&kept[..100]);
    assert!(collector(7, 3).restore_range(&cut, true).is_err());
}
