use super::*;
use crate::policy::Widths;
use crate::transfer::host_numbers;
use ostler_sim::Groups;
use ostler_sim::env::{ActionSpace, EnvSpec};
use tch::Kind;

const WIDTHS: Widths = Widths { dist: 4, hidden: 0 };

pub(crate) fn spec(envs: usize, critic: Option<usize>) -> EnvSpec {
    EnvSpec::plain(envs, Groups { policy: 3, critic }, ActionSpace::Continuous(2), 0.02, 4)
}

pub(crate) fn setup(batch_size: usize) -> Setup<'static> {
    Setup::new(batch_size, Device::Cpu, 0.5, 11)
}

pub(crate) fn host(capacity: usize) -> ReplayConfig {
    ReplayConfig {
        capacity,
        storage: StorageKind::Host,
        save: false,
        prefetch: 0,
        ..ReplayConfig::default()
    }
}

/// Observations say (step, environment, 0); the last ones of truncated episodes have 7 as
/// their third number. Rewards are `100 step + environment`. Environment 1 terminates at
/// every fifth step, environment 2 times out at every fourth, environment 0 breaks at step 6.
pub(crate) fn rollout(spec: &EnvSpec, first: i64, steps: i64) -> Rollout {
    let mut r = Rollout::new(spec, steps, WIDTHS, Device::Cpu).unwrap();
    let (n, at) = (spec.num_envs as i64, |t: i64| (first + t) as f64);
    let mut taken = vec![0; n as usize];
    for t in 0..=steps {
        for e in 0..n {
            let row = Tensor::from_slice(&[at(t) as f32, e as f32, 0.0]);
            r.obs.policy.get(t).get(e).copy_(&row);
            if let Some(critic) = &r.obs.critic {
                let _ = critic.get(t).get(e).fill_(-at(t) - 1000.0 * e as f64);
            }
            if t == steps {
                continue;
            }
            let set = |tensor: &Tensor, value: f64| {
                let _ = tensor.get(t).get(e).fill_(value);
            };
            set(&r.action, at(t) + 0.5);
            set(&r.reward, 100.0 * at(t) + e as f64);
            let step = first + t;
            set(&r.terminated, f64::from(e == 1 && step % 5 == 4));
            set(&r.valid, f64::from(!(e == 0 && step == 6)));
            let truncated = e == 2 && step % 4 == 3;
            set(&r.truncated, f64::from(truncated));
            set(&r.final_slot, -1.0);
            if truncated {
                let slot = taken[e as usize];
                taken[e as usize] += 1;
                set(&r.final_slot, slot as f64);
                let row = Tensor::from_slice(&[at(t) as f32 + 1.0, e as f32, 7.0]);
                r.final_obs.policy.get(slot).get(e).copy_(&row);
                if let Some(critic) = &r.final_obs.critic {
                    let _ = critic.get(slot).get(e).fill_(7.0);
                }
            }
        }
    }
    r.steps = steps;
    r
}

/// The numbers of a field, one row per draw.
pub(crate) fn field(batch: &Batch, name: &str) -> Vec<Vec<f32>> {
    let tensor = batch.get(name).unwrap();
    let width = tensor.numel() / batch.rows();
    let numbers = host_numbers(tensor).unwrap();
    numbers.chunks(width.max(1)).map(<[f32]>::to_vec).collect()
}

#[test]
fn a_batch_holds_the_transitions_that_its_numbers_name() {
    let spec = spec(3, Some(2));
    let mut buffer = ReplayBuffer::new(&host(30), Layout::of(&spec), setup(64)).unwrap();
    assert!(matches!(buffer.next(), Err(ReplayError::Empty)));
    for i in 0..4 {
        buffer.set_version(i as i32);
        buffer.extend(&rollout(&spec, 5 * i, 5)).unwrap();
    }
    assert_eq!((buffer.len(), buffer.capacity()), (30, 30));
    let mut seen = std::collections::BTreeSet::new();
    for _ in 0..20 {
        let batch = buffer.next().unwrap();
        let f = |name| field(batch, name);
        let (obs, next) = (f(names::OBS), f(names::NEXT_OBS));
        let (critic, next_critic) = (f(names::CRITIC_OBS), f(names::NEXT_CRITIC_OBS));
        for (i, &row) in batch.indices().iter().enumerate() {
            let (step, env) = ((row / 3) as i64, (row % 3) as i64);
            seen.insert(row);
            assert!((30..60).contains(&row), "the newest 30 of 60");
            assert_eq!(obs[i], [step as f32, env as f32, 0.0]);
            let truncated = env == 2 && step % 4 == 3;
            let third = if truncated { 7.0 } else { 0.0 };
            assert_eq!(next[i], [step as f32 + 1.0, env as f32, third]);
            let value = -step as f32 - 1000.0 * env as f32;
            assert_eq!(critic[i], [value; 2]);
            let next_value = if truncated { 7.0 } else { value - 1.0 };
            assert_eq!(next_critic[i], [next_value; 2]);
            assert_eq!(f(names::ACTION)[i], [step as f32 + 0.5; 2]);
            assert_eq!(f(names::REWARD)[i], [100.0 * step as f32 + env as f32]);
            let flag = |on: bool| [f32::from(u8::from(on))];
            assert_eq!(f(names::TERMINATED)[i], flag(env == 1 && step % 5 == 4));
            assert_eq!(f(names::TRUNCATED)[i], flag(truncated));
            assert_eq!(f(names::VALID)[i], flag(!(env == 0 && step == 6)));
            assert_eq!(f(names::VERSION)[i], [(step / 5) as f32]);
            assert_eq!(f(names::DISCOUNT)[i], [0.5]);
            assert_eq!(f(names::WEIGHTS)[i], [1.0]);
        }
        assert_eq!(batch.get(names::VERSION).unwrap().kind(), Kind::Int);
        assert_eq!(batch.get(names::OBS).unwrap().size(), [64, 3]);
        assert_eq!(batch.get(names::REWARD).unwrap().size(), [64]);
    }
    assert_eq!(seen.len(), 30, "all of them are drawn");
}

#[test]
fn a_rollout_that_knows_its_versions_keeps_them() {
    let spec = spec(3, None);
    let known = rollout(&spec, 0, 4);
    let _ = known.version.get(2).fill_(9);
    let mut buffer = ReplayBuffer::new(&host(12), Layout::of(&spec), setup(64)).unwrap();
    buffer.set_version(5);
    buffer.extend(&known).unwrap();
    let batch = buffer.next().unwrap();
    for (&row, version) in batch.indices().iter().zip(field(batch, names::VERSION)) {
        assert_eq!(version, [if row / 3 == 2 { 9.0 } else { 5.0 }]);
    }
}

#[test]
fn an_episode_whose_end_is_not_known_has_no_weight() {
    let spec = spec(3, None);
    let lost = rollout(&spec, 0, 4);
    let _ = lost.final_slot.shallow_clone().fill_(-1);
    let mut buffer = ReplayBuffer::new(&host(12), Layout::of(&spec), setup(64)).unwrap();
    buffer.extend(&lost).unwrap();
    let batch = buffer.next().unwrap();
    let valid = field(batch, names::VALID);
    for (&row, valid) in batch.indices().iter().zip(valid) {
        assert_eq!(valid, [f32::from(u8::from(row != 11))], "row {row}");
    }
}

#[test]
fn n_step_returns_stop_where_they_must() {
    let spec = spec(3, None);
    let config = ReplayConfig { n_step: 3, ..host(1000) };
    let mut buffer = ReplayBuffer::new(&config, Layout::of(&spec), setup(500)).unwrap();
    // Steps 0..5, 5..10 in a row; after a cut 10..15.
    buffer.extend(&rollout(&spec, 0, 5)).unwrap();
    buffer.extend(&rollout(&spec, 5, 5)).unwrap();
    buffer.cut();
    buffer.extend(&rollout(&spec, 10, 5)).unwrap();
    let batch = buffer.next().unwrap();
    let f = |name| field(batch, name);
    let mut lengths = [0; 4];
    for (i, &row) in batch.indices().iter().enumerate() {
        let (step, env) = ((row / 3) as i64, (row % 3) as i64);
        // By the letter: the rewards that may be summed.
        let (mut sum, mut m) = (0.0, 0_i64);
        loop {
            let s = step + m;
            sum += 0.5_f32.powi(m as i32) * (100.0 * s as f32 + env as f32);
            m += 1;
            let over = (env == 1 && s % 5 == 4) || (env == 2 && s % 4 == 3);
            let broken = |s: i64| env == 0 && s == 6;
            if m == 3 || over || s == 9 || s == 14 || broken(s) || broken(s + 1) {
                break;
            }
        }
        lengths[m as usize] += 1;
        let last = step + m - 1;
        assert_eq!(f(names::OBS)[i][..2], [step as f32, env as f32]);
        assert_eq!(f(names::REWARD)[i], [sum], "step {step} of environment {env}");
        assert_eq!(f(names::DISCOUNT)[i], [0.5_f32.powi(m as i32)]);
        let truncated = env == 2 && last % 4 == 3;
        let third = if truncated { 7.0 } else { 0.0 };
        assert_eq!(f(names::NEXT_OBS)[i], [last as f32 + 1.0, env as f32, third]);
        let terminated = env == 1 && last % 5 == 4;
        assert_eq!(f(names::TERMINATED)[i], [f32::from(u8::from(terminated))]);
        assert_eq!(f(names::TRUNCATED)[i], [f32::from(u8::from(truncated))]);
    }
    assert!(lengths[1..].iter().all(|&n| n > 10), "{lengths:?}");
}

#[test]
fn after_a_revert_the_same_bits_follow() {
    let spec = spec(3, None);
    for sampler in [SamplerKind::Uniform, SamplerKind::WithoutReplacement] {
        let config = ReplayConfig { sampler, n_step: 2, ..host(30) };
        let with_margin = || Setup { margin: 15, ..setup(32) };
        let layout = || Layout::of(&spec);
        let mut buffer = ReplayBuffer::new(&config, layout(), with_margin()).unwrap();
        let go = |buffer: &mut ReplayBuffer, first: i64, version: i32| {
            buffer.set_version(version);
            buffer.extend(&rollout(&spec, first, 5)).unwrap();
            let draw = |_| {
                let batch = buffer.next().unwrap();
                let all = batch.fields().map(|(n, _)| field(batch, n)).collect();
                (batch.indices().to_vec(), all)
            };
            (0..3).map(draw).collect::<Vec<(Vec<u64>, Vec<_>)>>()
        };
        for i in 0..3 {
            go(&mut buffer, 5 * i, 0);
        }
        let mark = buffer.mark();
        let first = go(&mut buffer, 15, 0);
        assert_eq!(buffer.rewind(&mark).unwrap(), 0, "the margin is enough");
        let other = go(&mut buffer, 15, 1);
        assert_eq!(other[0].0, first[0].0, "the same transitions are drawn");
        assert_ne!(other, first, "with what they hold now");
        buffer.rewind(&mark).unwrap();
        assert_eq!(go(&mut buffer, 15, 0), first, "{sampler:?}");
        go(&mut buffer, 20, 0);
        assert_eq!(buffer.rewind(&mark).unwrap(), 15, "too many came since");
        assert_eq!(buffer.len(), 15);
        assert!(
            ReplayBuffer::new(&config, layout(), with_margin()).unwrap().rewind(&mark).is_err()
        );
    }
}

#[test]
fn more_transitions_than_there_is_room_for_leave_the_last() {
    let layout = Layout::new(vec![Field::float("a", 1)]).unwrap();
    let mut buffer = ReplayBuffer::new(&host(10), layout, setup(50)).unwrap();
    let numbers: Vec<u32> = (0..64).map(|i| (i as f32).to_bits()).collect();
    buffer.extend_rows(&[&numbers], 4).unwrap();
    let batch = buffer.next().unwrap();
    for (a, &row) in field(batch, "a").iter().zip(batch.indices()) {
        assert!(a == &[row as f32] && (54..64).contains(&row));
    }
    assert!(buffer.extend_rows(&[&numbers[..6]], 4).is_err());
    assert!(buffer.extend_rows(&[], 1).is_err());
}

#[test]
fn the_start_up_line_says_what_it_takes() {
    let layout = Layout::of(&spec(3, None));
    let buffer = ReplayBuffer::new(&host(1_000_000), layout, setup(8)).unwrap();
    // 3 + 2 + 5 + 3 words.
    assert_eq!(buffer.bytes_per_transition(), 52);
    let line = buffer.describe();
    assert!(line.contains("52 bytes per transition"), "{line}");
    assert!(line.contains("1000000 transitions (50 MiB)"), "{line}");
    assert!(line.contains("storage \"host\""), "{line}");
}

#[test]
fn returns_of_a_layout_without_rewards_are_refused() {
    let layout = Layout::new(vec![Field::float("a", 1)]).unwrap();
    let config = ReplayConfig { n_step: 2, ..host(10) };
    let e = ReplayBuffer::new(&config, layout, setup(4)).unwrap_err();
    assert!(e.to_string().contains("reward"), "{e}");
}
