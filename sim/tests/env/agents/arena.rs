//! Carts on a plane that do not touch, one for each agent, and a free ball.

use ostler_sim::config::{
    AgentsConfig, Auto, ConfigError, EnvConfig, SimConfig, Specialize, TaskConfig,
};
use ostler_sim::env::{BatchEnv, EnvError, EnvSpec, Groups, StepOut};
use ostler_sim::rng::{Purpose, fill_normal};
use ostler_sim::{Model, model::mjcf};
use std::sync::Arc;

const CARTS: [&str; 3] = ["red", "blue", "green"];

fn robot() -> String {
    let mut bodies = String::new();
    let mut motors = String::new();
    for (i, name) in CARTS.iter().enumerate() {
        bodies += &format!(
            r#"<body name="{name}" pos="{i} 0 0.1">
                 <joint name="{name}_x" type="slide" axis="1 0 0" damping="0.3"/>
                 <joint name="{name}_y" type="slide" axis="0 1 0" damping="0.2"/>
                 <geom name="{name}" size="0.1" mass="1" contype="0" conaffinity="0"/>
                 <site name="{name}/nose" pos="0.1 0 0"/>
               </body>"#
        );
        motors += &format!(
            r#"<motor name="{name}_x" joint="{name}_x" gear="3" ctrlrange="-1 1"/>
               <motor name="{name}_y" joint="{name}_y" gear="2" ctrlrange="-1 1"/>"#
        );
    }
    format!(
        r#"<mujoco model="arena">
             <option timestep="0.01"/>
             <worldbody>{bodies}
               <body name="ball" pos="0 0 5"><freejoint name="ball"/>
                 <geom name="ball" size="0.1" mass="0.5" contype="0" conaffinity="0"/></body>
             </worldbody>
             <actuator>{motors}</actuator>
           </mujoco>"#
    )
}

pub fn model() -> Arc<Model> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("robot.xml");
    std::fs::write(&path, robot()).unwrap();
    Arc::new(mjcf::load(&path).unwrap())
}

/// A task and its agents, as a run's file has them.
pub fn task(text: &str) -> TaskConfig {
    #[derive(serde::Deserialize)]
    struct File {
        task: TaskConfig,
        agents: Option<AgentsConfig>,
    }
    let file: File = toml::from_str(text).unwrap_or_else(|e| panic!("{e}"));
    TaskConfig { agents: file.agents, ..file.task }
}

/// Settings of the batch that a test changes.
#[derive(Clone, Copy)]
pub struct Batch {
    pub n: usize,
    pub threads: usize,
    pub first: u32,
    pub steps: u32,
}

pub const SMALL: Batch = Batch { n: 3, threads: 1, first: 0, steps: 20 };

/// Control steps are of two physics steps, 0.02 s.
pub fn build(b: Batch, task: &TaskConfig) -> Result<BatchEnv, EnvError> {
    let sim = SimConfig {
        specialize: Specialize::Off,
        threads: Auto::N(b.threads),
        ..SimConfig::default()
    };
    let env =
        EnvConfig { num_envs: b.n, decimation: 2, episode_length_s: 0.02 * f64::from(b.steps) };
    BatchEnv::shard(model(), &sim, &env, task, 1, b.first)
}

pub fn built(b: Batch, text: &str) -> BatchEnv {
    build(b, &task(text)).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

pub fn mistake(text: &str) -> ConfigError {
    match build(SMALL, &task(text)) {
        Err(EnvError::Config(e)) => e,
        other => panic!("{text}: {other:?}"),
    }
}

/// Buffers of one step.
#[derive(Clone)]
pub struct Out {
    pub policy: Vec<f32>,
    pub critic: Option<Vec<f32>>,
    pub reward: Vec<f32>,
    pub terminated: Vec<f32>,
    pub truncated: Vec<f32>,
    pub valid: Vec<f32>,
    pub final_policy: Vec<f32>,
    pub final_critic: Option<Vec<f32>>,
    pub final_slot: Vec<i32>,
}

pub const SLOTS: usize = 2;

impl Out {
    pub fn new(spec: &EnvSpec) -> Self {
        // No correct answer is seven: unwritten numbers show.
        let rows = spec.rows();
        let sevens = |k: usize| vec![7.0f32; k * rows];
        Self {
            policy: sevens(spec.obs.policy),
            critic: spec.obs.critic.map(sevens),
            reward: sevens(1),
            terminated: sevens(1),
            truncated: sevens(1),
            valid: sevens(1),
            final_policy: sevens(SLOTS * spec.obs.policy),
            final_critic: spec.obs.critic.map(|c| sevens(SLOTS * c)),
            final_slot: vec![7; rows],
        }
    }

    pub fn obs(&mut self) -> Groups<&mut [f32]> {
        Groups { policy: &mut self.policy, critic: self.critic.as_deref_mut() }
    }

    pub fn reset(&mut self, env: &mut BatchEnv, spread: bool) {
        env.reset(spread, &mut self.obs());
    }

    pub fn step(&mut self, env: &mut BatchEnv, actions: &[f32]) {
        let mut out = StepOut {
            obs: Groups { policy: &mut self.policy, critic: self.critic.as_deref_mut() },
            reward: &mut self.reward,
            terminated: &mut self.terminated,
            truncated: &mut self.truncated,
            valid: &mut self.valid,
            final_obs: Groups {
                policy: &mut self.final_policy,
                critic: self.final_critic.as_deref_mut(),
            },
            final_slot: &mut self.final_slot,
        };
        env.step(actions, &mut out);
    }

    /// Row `r` of the policies' observations.
    pub fn row(&self, spec: &EnvSpec, r: usize) -> &[f32] {
        &self.policy[r * spec.obs.policy..][..spec.obs.policy]
    }

    /// Row `r` of the critics' observations.
    pub fn critic_row(&self, spec: &EnvSpec, r: usize) -> &[f32] {
        let wide = spec.obs.critic.unwrap();
        &self.critic.as_ref().unwrap()[r * wide..][..wide]
    }

    /// All numbers of environments `from..`, bit by bit, of `n`.
    pub fn bits(&self, n: usize, from: usize) -> Vec<u32> {
        let mut all = Vec::new();
        let floats = [&self.policy, &self.reward, &self.terminated, &self.truncated, &self.valid];
        for buffer in floats.into_iter().chain(&self.critic) {
            all.extend(buffer[from * buffer.len() / n..].iter().map(|x| x.to_bits()));
        }
        all
    }
}

/// Actions of step `t` of environments `first..first + n`, `width` each.
pub fn actions(first: u32, n: usize, width: usize, t: u64) -> Vec<f32> {
    let mut out = vec![0.0; n * width];
    let envs = first..first + n as u32;
    fill_normal(5, envs, Purpose::ActionNoise, t, width, &mut out);
    out.iter_mut().for_each(|x| *x *= 0.7);
    out
}
