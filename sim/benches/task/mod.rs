//! A shipped task, ready to be stepped.

use ostler_sim::config::{Auto, EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::env::{BatchEnv, Groups, StepOut};
use ostler_sim::model::{Model, mjcf};
use ostler_sim::rng::{Purpose, fill_normal};
use std::path::Path;
use std::sync::Arc;

/// The part of a configuration that concerns the simulation.
#[derive(serde::Deserialize)]
pub struct Run {
    #[serde(default)]
    pub sim: SimConfig,
    pub env: EnvConfig,
    pub task: TaskConfig,
}

impl Run {
    /// `configs/NAME.toml`, or the file NAME, with so many environments and threads, and its
    /// robot.
    pub fn load(name: &str, num_envs: usize, threads: usize) -> (Self, Arc<Model>) {
        let mut file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
        match name.ends_with(".toml") {
            true => file = name.into(),
            false => file.push(format!("{name}.toml")),
        }
        let folder = file.parent().expect("a folder");
        let text = std::fs::read_to_string(&file).expect("config");
        let mut run: Self = toml::from_str(&text).expect("config");
        run.env.num_envs = num_envs;
        run.sim.threads = Auto::N(threads);
        // Nothing compiles beside what is measured.
        run.sim.specialize = Specialize::Wait;
        let edits = run.task.edits().expect("edits");
        let within = run.task.robot_folder.as_ref().map(|f| folder.join(f));
        let robot = folder.join(&run.task.robot);
        let model = mjcf::load_edited(&robot, within.as_deref(), &edits).expect("robot");
        (run, Arc::new(model))
    }
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
    Groups {
        policy: &mut rows.policy,
        critic: rows.critic.as_deref_mut(),
    }
}
