//! A GPU's environments are those of the processor.

use crate::place::{Rows, Task, TestDevice, figure, numbers, place, task};
use ostler_collector::device::TorchMemory;
use ostler_sim::rng::{Purpose, fill_normal};
use ostler_sim::{BatchEnv, EpisodeStats, Groups, StepOut};
use tch::Tensor;

/// Buffers of the host's environments.
struct HostRows {
    obs: Vec<f32>,
    critic: Vec<f32>,
    reward: Vec<f32>,
    flags: [Vec<f32>; 3],
    final_obs: Vec<f32>,
    final_critic: Vec<f32>,
    final_slot: Vec<i32>,
}

impl HostRows {
    fn new(env: &BatchEnv) -> Self {
        let spec = env.spec();
        let n = spec.num_envs;
        let critic = n * spec.obs.critic.unwrap_or(0);
        Self {
            obs: vec![0.0; n * spec.obs.policy],
            critic: vec![0.0; critic],
            reward: vec![0.0; n],
            flags: [vec![0.0; n], vec![0.0; n], vec![0.0; n]],
            final_obs: vec![0.0; n * spec.obs.policy],
            final_critic: vec![0.0; critic],
            final_slot: vec![0; n],
        }
    }

    fn groups<'a>(policy: &'a mut [f32], critic: &'a mut [f32]) -> Groups<&'a mut [f32]> {
        let critic = Some(critic).filter(|c| !c.is_empty());
        Groups { policy, critic }
    }

    fn reset(&mut self, env: &mut BatchEnv) {
        env.reset(true, &mut Self::groups(&mut self.obs, &mut self.critic));
    }

    fn step(&mut self, env: &mut BatchEnv, actions: &[f32]) {
        let [terminated, truncated, valid] = &mut self.flags;
        let mut out = StepOut {
            obs: Self::groups(&mut self.obs, &mut self.critic),
            reward: &mut self.reward,
            terminated,
            truncated,
            valid,
            final_obs: Self::groups(&mut self.final_obs, &mut self.final_critic),
            final_slot: &mut self.final_slot,
        };
        env.begin_rollout();
        env.step(actions, &mut out);
    }
}

/// A processor compiles a kernel for each, which takes longer than all steps.
fn robots(place: &TestDevice) -> &'static [&'static str] {
    const ALL: [&str; 5] = ["cartpole", "ant", "hopper", "half_cheetah", "quadruped"];
    &ALL[..place.pick(5, 2)]
}

fn actions(t: &Task, step: u64) -> Vec<f32> {
    let width = t.policy_width();
    let n = t.env.num_envs;
    let mut out = vec![0.0; n * width];
    fill_normal(9, 0..n as u32, Purpose::ActionNoise, step, width, &mut out);
    out.iter_mut().for_each(|x| *x *= 0.5);
    out
}

impl Task {
    fn policy_width(&self) -> usize {
        use ostler_collector::Policy;
        self.policy.noise().0 as usize
    }
}

/// Share of numbers that differ by more than 1e-4 (of numbers beyond 1: relatively), and
/// the largest difference.
fn differ(a: &[f32], b: &[f32]) -> (f64, f32) {
    assert_eq!(a.len(), b.len());
    let apart = |(x, y): (&f32, &f32)| (x - y).abs() / x.abs().max(1.0);
    let worst = a.iter().zip(b).map(apart).fold(0.0, f32::max);
    let far = a.iter().zip(b).map(apart).filter(|d| d.is_nan() || *d > 1e-4).count();
    (far as f64 / a.len() as f64, worst)
}

#[test]
fn one_step_from_ten_thousand_states_is_the_processors() {
    let place = place();
    let n = place.pick(10_000, 60);
    for &name in robots(&place) {
        let t = task(&place, name, n);
        let mut host = t.on_host();
        let mut rows = HostRows::new(&host);
        rows.reset(&mut host);
        // To states with contacts.
        for step in 0..60 {
            rows.step(&mut host, &actions(&t, step));
        }
        let mut stats = EpisodeStats::with_room(host.spec()).unwrap();
        host.take_stats(&mut stats);
        let mut blob = Vec::new();
        host.capture(&mut blob).unwrap();
        let mut device = t.on_device(&place, &TorchMemory(place.torch));
        device.restore(&blob).unwrap();
        let there = Rows::new(&place, &device);
        let a = actions(&t, 99);
        rows.step(&mut host, &a);
        let given = Tensor::from_slice(&a).view_as(&there.action);
        there.action.shallow_clone().copy_(&given);
        device.begin_rollout(None).unwrap();
        there.step(&mut device);
        let (far, worst) = differ(&rows.obs, &numbers(&there.obs.policy));
        figure(&format!("same.{name}.worst"), f64::from(worst));
        assert!(far <= 1e-3, "{name}: {far} of all observations are off by up to {worst}");
        let (far, worst) = differ(&rows.reward, &numbers(&there.reward));
        assert!(far <= 1e-3, "{name}: {far} of all rewards are off by up to {worst}");
        for (host, there) in rows.flags.iter().zip(&there.flags) {
            let (far, _) = differ(host, &numbers(there));
            assert!(far <= 1e-3, "{name}: {far} of all flags differ");
        }
    }
}

/// Physics and task add and multiply in one order, without contraction; division and root are
/// exactly rounded. So every number of a rollout is the host's.
#[test]
fn three_hundred_steps_have_the_hosts_bits() {
    let place = place();
    let (n, steps) = (place.pick(1000, 8), place.pick(300, 20));
    for &name in robots(&place) {
        let t = task(&place, name, n);
        let mut host = t.on_host();
        let mut rows = HostRows::new(&host);
        rows.reset(&mut host);
        let mut device = t.on_device(&place, &TorchMemory(place.torch));
        let there = Rows::new(&place, &device);
        device.reset(true, there.obs()).unwrap();
        device.begin_rollout(None).unwrap();
        let (mut compared, mut off, mut first) = (0, 0, None);
        for step in 0..steps {
            let a = actions(&t, step);
            rows.step(&mut host, &a);
            let given = Tensor::from_slice(&a).view_as(&there.action);
            there.action.shallow_clone().copy_(&given);
            there.step(&mut device);
            for (host, there) in [
                (&rows.obs, &there.obs.policy),
                (&rows.reward, &there.reward),
                (&rows.flags[0], &there.flags[0]),
                (&rows.flags[1], &there.flags[1]),
                (&rows.flags[2], &there.flags[2]),
            ] {
                let there = numbers(there);
                let pairs = host.iter().zip(&there);
                let differ = pairs.filter(|(a, b)| a.to_bits() != b.to_bits()).count();
                compared += host.len();
                off += differ;
                if differ > 0 {
                    first.get_or_insert(step);
                }
            }
        }
        figure(&format!("same.{name}.bits_off"), off as f64 / compared as f64);
        assert_eq!(
            off, 0,
            "{name}: {off} of {compared} numbers differ, the first in step {first:?}"
        );
    }
}

#[test]
fn trajectories_part_no_faster_than_by_a_change_in_the_last_place() {
    let place = place();
    let (n, steps) = (place.pick(256, 24), place.pick(150, 60));
    for name in place.pick(vec!["half_cheetah", "ant"], vec!["ant"]) {
        let t = task(&place, name, n);
        let (mut host, mut moved) = (t.on_host(), t.on_host());
        let (mut rows, mut moved_rows) = (HostRows::new(&host), HostRows::new(&moved));
        rows.reset(&mut host);
        moved_rows.reset(&mut moved);
        let mut device = t.on_device(&place, &TorchMemory(place.torch));
        let there = Rows::new(&place, &device);
        device.reset(true, there.obs()).unwrap();
        device.begin_rollout(None).unwrap();
        for step in 0..steps {
            let a = actions(&t, step);
            rows.step(&mut host, &a);
            let up: Vec<f32> = a.iter().map(|x| x.next_up()).collect();
            moved_rows.step(&mut moved, if step == 0 { &up } else { &a });
            let given = Tensor::from_slice(&a).view_as(&there.action);
            there.action.shallow_clone().copy_(&given);
            there.step(&mut device);
            if step % 10 != 9 {
                continue;
            }
            let wide = rows.obs.len() / n;
            let median = |other: &[f32]| {
                let pairs = rows.obs.chunks(wide).zip(other.chunks(wide));
                let mut far: Vec<f32> = pairs.map(|(a, b)| differ(a, b).1).collect();
                far.sort_by(f32::total_cmp);
                far[n / 2]
            };
            let (gpu, ulp) = (median(&numbers(&there.obs.policy)), median(&moved_rows.obs));
            assert!(
                gpu <= 10.0 * ulp + 1e-4,
                "{name}, step {step}: {gpu} from the processor's, {ulp} by one unit in the last place"
            );
        }
    }
}
