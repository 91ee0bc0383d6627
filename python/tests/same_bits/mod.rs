//! BatchEnv itself, beside what Python has of it.

use ostler_sim::BatchEnv;
use ostler_sim::config::Leave;
use ostler_sim::config::file::{Override, load_simulation};
use ostler_sim::env::{Groups, StepOut};
use std::path::Path;
use std::sync::Arc;

const STEPS: usize = 300;

/// Environments with the buffers of a step.
struct Stepped {
    env: BatchEnv,
    obs: Vec<f32>,
    critic: Option<Vec<f32>>,
    /// Reward, terminated, truncated, valid.
    columns: [Vec<f32>; 4],
    slot: Vec<i32>,
}

impl Stepped {
    fn new(name: &str, set: &[&str]) -> Self {
        let file = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../configs/{name}.toml"));
        let set: Vec<Override> = set.iter().map(|s| Override::set(*s)).collect();
        let loaded = load_simulation(&file, &set, Leave::Refused).unwrap();
        let model = Arc::new(loaded.model().unwrap());
        let env = ostler_sim::BatchEnv::of(&loaded.config, model).unwrap();
        let spec = env.spec().clone();
        let rows = |width: usize| vec![0.0_f32; spec.rows() * width];
        Self {
            obs: rows(spec.obs.policy),
            critic: spec.obs.critic.map(rows),
            columns: [(); 4].map(|()| rows(1)),
            slot: vec![0; spec.rows()],
            env,
        }
    }

    fn reset(&mut self) {
        let mut seen = Groups { policy: &mut self.obs[..], critic: self.critic.as_deref_mut() };
        self.env.reset(false, &mut seen);
    }

    fn step(&mut self, actions: &[f32]) {
        let [reward, terminated, truncated, valid] = &mut self.columns;
        let mut out = StepOut {
            obs: Groups { policy: &mut self.obs, critic: self.critic.as_deref_mut() },
            reward,
            terminated,
            truncated,
            valid,
            final_obs: Groups {
                policy: &mut [],
                critic: self.env.spec().obs.critic.map(|_| &mut [][..]),
            },
            final_slot: &mut self.slot,
        };
        self.env.step(actions, &mut out);
    }

    fn actions(&self, step: usize) -> Vec<f32> {
        let count = self.env.spec().rows() * self.env.spec().action.width();
        // Exact in single precision, in Python as here.
        let action = |i: usize| ((step * 31 + i * 17) % 64) as f32 / 32.0 - 1.0;
        (0..count).map(action).collect()
    }
}

/// Observations, rewards and flags of the steps of `bits.py`, as it writes them.
pub fn run(name: &str, envs: usize) -> Vec<u8> {
    let envs = format!("env.num_envs={envs}");
    let short = ["env.episode_length_s=1", "seed=7", "sim.threads=2", "sim.specialize=off"];
    let set: Vec<&str> = [&envs[..]].into_iter().chain(short).collect();
    let mut all = Stepped::new(name, &set);
    let mut bytes = Vec::new();
    let mut write = |numbers: &[f32]| {
        numbers.iter().for_each(|x| bytes.extend_from_slice(&x.to_le_bytes()));
    };
    all.reset();
    write(&all.obs);
    for step in 0..STEPS {
        let actions = all.actions(step);
        all.step(&actions);
        write(&all.obs);
        all.columns[..3].iter().for_each(|column| write(column));
    }
    bytes
}

/// Environment steps per second of processor time, on one thread.
pub fn speed(name: &str, envs: usize, seconds: f64) -> f64 {
    let num_envs = format!("env.num_envs={envs}");
    let mut all = Stepped::new(name, &[&num_envs, "sim.threads=1", "sim.specialize=wait"]);
    all.reset();
    let actions: Vec<Vec<f32>> = (0..16).map(|step| all.actions(step)).collect();
    (0..20).for_each(|i| all.step(&actions[i % 16]));
    let (begin, mut steps) = (thread_time(), 0);
    while thread_time() - begin < seconds {
        actions.iter().for_each(|actions| all.step(actions));
        steps += actions.len();
    }
    (steps * envs) as f64 / (thread_time() - begin)
}

/// Processor time of this thread (s): others of the machine count less than by the clock.
fn thread_time() -> f64 {
    let told = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    let nanoseconds: f64 = told.split(' ').next().unwrap().parse().unwrap();
    1e-9 * nanoseconds
}
