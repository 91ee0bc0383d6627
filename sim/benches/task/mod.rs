//! A shipped task, ready to be stepped.

use ostler_sim::config::file::{Simulation, load_simulation};
use ostler_sim::config::{Auto, Leave, Specialize};
use ostler_sim::env::{BatchEnv, Groups, StepOut};
use ostler_sim::model::Model;
use ostler_sim::rng::{Purpose, fill_normal};
use std::path::Path;
use std::sync::Arc;

/// What a configuration says of its simulation, with so many environments and threads, and the
/// robot: `configs/NAME.toml`, or the file NAME.
pub fn load(name: &str, num_envs: usize, threads: usize) -> (Simulation, Arc<Model>) {
    let mut file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    match name.ends_with(".toml") {
        true => file = name.into(),
        false => file.push(format!("{name}.toml")),
    }
    let loaded = load_simulation(&file, &[], Leave::Refused).expect("config");
    let model = loaded.model().expect("robot");
    let mut run = loaded.config;
    run.env.num_envs = num_envs;
    run.sim.threads = Auto::N(threads);
    // Nothing compiles beside what is measured.
    run.sim.specialize = Specialize::Wait;
    (run, Arc::new(model))
}

/// Environments with the buffers of a step.
pub struct Batch {
    pub env: BatchEnv,
    obs: Groups<Vec<f32>>,
    final_obs: Groups<Vec<f32>>,
    /// Reward, terminated, truncated, valid.
    columns: [Vec<f32>; 4],
    slot: Vec<i32>,
}

impl Batch {
    /// Starts all episodes, at random ages.
    pub fn new(mut env: BatchEnv) -> Self {
        let (n, obs) = (env.spec().num_envs, env.spec().obs);
        let rows = || Groups {
            policy: vec![0.0; n * obs.policy],
            critic: obs.critic.map(|c| vec![0.0; n * c]),
        };
        let mut first = rows();
        env.reset(true, &mut slices(&mut first));
        Self {
            env,
            obs: first,
            final_obs: rows(),
            columns: [0; 4].map(|_| vec![0.0; n]),
            slot: vec![0; n],
        }
    }

    /// Random actions for `steps` steps.
    pub fn actions(&self, steps: usize) -> Vec<f32> {
        let (n, width) = (self.env.spec().num_envs, self.env.spec().action.width());
        let mut actions = vec![0.0; steps * n * width];
        let rows = 0..(steps * n) as u32;
        fill_normal(1, rows, Purpose::ActionNoise, 0, width, &mut actions);
        actions
    }

    /// One control step, the first of a rollout.
    pub fn step(&mut self, actions: &[f32]) {
        let [reward, terminated, truncated, valid] = &mut self.columns;
        self.env.begin_rollout();
        let mut out = StepOut {
            obs: slices(&mut self.obs),
            reward,
            terminated,
            truncated,
            valid,
            final_obs: slices(&mut self.final_obs),
            final_slot: &mut self.slot,
        };
        self.env.step(actions, &mut out);
    }
}

fn slices(rows: &mut Groups<Vec<f32>>) -> Groups<&mut [f32]> {
    Groups { policy: &mut rows.policy, critic: rows.critic.as_deref_mut() }
}
