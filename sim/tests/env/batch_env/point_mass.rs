//! An engine that a reader can follow by hand: a cart that is pushed, a hinge that
//! follows its servo at once, a ball that flies straight on.

use ostler_sim::config::{EnvConfig, TaskConfig};
use ostler_sim::env::{BatchEnv, EnvError, EnvSpec, Groups, StepOut};
use ostler_sim::physics::pool::Pool;
use ostler_sim::physics::{Part, Physics, Shortfalls, SnapshotError, State, fault};
use ostler_sim::{Model, model::mjcf};
use std::sync::Arc;

/// Positions: slider, turn, ball x y z, quaternion. Time step 0.01 s.
pub const ROBOT: &str = r#"<mujoco model="cart_and_ball">
  <option timestep="0.01"/>
  <worldbody>
    <body name="cart">
      <joint name="slider" type="slide" axis="1 0 0"/>
      <joint name="turn" type="hinge" axis="0 0 1"/>
      <geom name="cart" type="sphere" size="0.1" mass="1"/>
    </body>
    <body name="ball" pos="0 0 1">
      <freejoint name="root"/>
      <geom name="ball" type="sphere" size="0.1" mass="1"/>
    </body>
  </worldbody>
  <actuator>
    <motor name="push" joint="slider" gear="2" ctrlrange="-3 5"/>
    <position name="servo" joint="turn" kp="10" ctrlrange="-2 2"/>
  </actuator>
  <keyframe>
    <key name="high" qpos="0.5 0.25 1 2 3 1 0 0 0" qvel="1 2 3 4 5 6 7 8"/>
    <key name="low" qpos="-1 0.125 0 0 1 1 0 0 0" ctrl="0.5 -9"/>
  </keyframe>
</mujoco>"#;

pub fn model() -> Arc<Model> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("robot.xml");
    std::fs::write(&path, ROBOT).unwrap();
    Arc::new(mjcf::load(&path).unwrap())
}

pub struct PointMass {
    pub state: State,
    /// Each falls short in one contact and three solves.
    pub steps: u32,
}

const DT: f32 = 0.01;

impl PointMass {
    fn finish(&mut self) {
        let n = self.state.num_envs;
        let s = &mut self.state;
        for e in 0..n {
            for k in 0..3 {
                // World, cart, ball.
                s.body_pos[(6 + k) * n + e] = s.qpos[(2 + k) * n + e];
            }
            s.body_pos[3 * n + e] = s.qpos[e];
            for k in 0..4 {
                let upright = if k == 0 { 1.0 } else { 0.0 };
                s.body_quat[k * n + e] = upright;
                s.body_quat[(4 + k) * n + e] = upright;
                s.body_quat[(8 + k) * n + e] = s.qpos[(5 + k) * n + e];
            }
            let values = s.qpos.iter().skip(e).step_by(n).chain(s.qvel.iter().skip(e).step_by(n));
            if !values.copied().all(f32::is_finite) {
                s.fault[e] |= fault::NON_FINITE;
            }
            if s.qpos[e].abs() > 100.0 {
                s.fault[e] |= fault::POSITION;
            }
        }
    }
}

impl Physics for PointMass {
    fn state(&self) -> &State {
        &self.state
    }

    fn step(&mut self, ctrl: &[f32], substeps: usize) {
        self.steps += 1;
        let n = self.state.num_envs;
        let s = &mut self.state;
        for e in 0..n {
            assert!(
                ctrl[e].is_finite() && ctrl[n + e].is_finite(),
                "only finite controls come here"
            );
            for _ in 0..substeps {
                s.qvel[e] += DT * 2.0 * ctrl[e];
                s.qpos[e] += DT * s.qvel[e];
            }
            s.qpos[n + e] = ctrl[n + e];
            for k in 0..3 {
                s.qpos[(2 + k) * n + e] += DT * substeps as f32 * s.qvel[(2 + k) * n + e];
            }
        }
        self.finish();
    }

    fn reset(&mut self, mask: &[u32], qpos: &[f32], qvel: &[f32]) {
        let n = self.state.num_envs;
        for e in (0..n).filter(|&e| mask[e] != 0) {
            for i in (e..qpos.len()).step_by(n) {
                self.state.qpos[i] = qpos[i];
            }
            for i in (e..qvel.len()).step_by(n) {
                self.state.qvel[i] = qvel[i];
            }
            self.state.fault[e] = 0;
        }
        self.finish();
    }

    fn columns_mut(&mut self) -> Option<&mut State> {
        Some(&mut self.state)
    }

    fn timestep(&self) -> f64 {
        0.01
    }

    fn can_be_poked(&self) -> bool {
        true
    }

    fn poke(&mut self, env: usize, part: Part, value: f32) {
        let n = self.state.num_envs;
        match part {
            Part::Qpos(i) => self.state.qpos[i * n + env] = value,
            Part::Qvel(i) => self.state.qvel[i * n + env] = value,
            _ => panic!("{part:?}"),
        }
    }

    fn shortfalls(&self) -> Shortfalls {
        Shortfalls { contact_overflow: u64::from(self.steps), unsolved: 3 * u64::from(self.steps) }
    }

    fn capture(&self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        for buffer in [&self.state.qpos, &self.state.qvel, &self.state.body_pos] {
            out.extend(buffer.iter().flat_map(|x| x.to_le_bytes()));
        }
        out.extend(self.state.fault.iter().flat_map(|x| x.to_le_bytes()));
        out.extend(self.steps.to_le_bytes());
        Ok(())
    }

    fn restore_range(&mut self, blob: &[u8], from: usize) -> Result<usize, SnapshotError> {
        let s = &mut self.state;
        let n = s.num_envs;
        let per_env = (s.qpos.len() + s.qvel.len() + s.body_pos.len()) / n + 1;
        let words: Vec<u32> =
            blob.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]])).collect();
        let stored = words.len().saturating_sub(1) / per_env;
        if blob.len() != 4 * (stored * per_env + 1) {
            return Err(SnapshotError::Unfit("of another length".into()));
        }
        let mut at = 0;
        for buffer in [&mut s.qpos, &mut s.qvel, &mut s.body_pos] {
            for row in buffer.chunks_mut(n) {
                for (x, w) in row.iter_mut().zip(&words[at + from..at + stored]) {
                    *x = f32::from_bits(*w);
                }
                at += stored;
            }
        }
        s.fault.iter_mut().zip(&words[at + from..at + stored]).for_each(|(x, w)| *x = *w);
        self.steps = words[words.len() - 1];
        Ok((stored - from).min(n))
    }

    fn restore(&mut self, blob: &[u8]) -> Result<(), SnapshotError> {
        let mut words = blob.chunks_exact(4).map(|b| u32::from_le_bytes([b[0], b[1], b[2], b[3]]));
        let s = &mut self.state;
        for buffer in [&mut s.qpos, &mut s.qvel, &mut s.body_pos] {
            for x in buffer {
                *x = f32::from_bits(
                    words.next().ok_or_else(|| SnapshotError::Unfit("short".into()))?,
                );
            }
        }
        for x in s.fault.iter_mut().chain([&mut self.steps]) {
            *x = words.next().ok_or_else(|| SnapshotError::Unfit("short".into()))?;
        }
        Ok(())
    }
}

/// A task from its TOML.
pub fn task(text: &str) -> TaskConfig {
    toml::from_str(text).unwrap()
}

/// Settings of the batch that a test changes.
#[derive(Clone, Copy)]
pub struct Batch {
    pub n: usize,
    pub threads: usize,
    pub seed: u64,
    pub first: u32,
    pub steps: u32,
}

pub const SMALL: Batch = Batch { n: 3, threads: 1, seed: 1, first: 0, steps: 5 };

/// Control steps are of two physics steps, 0.02 s.
pub fn build(b: Batch, task: &TaskConfig) -> Result<BatchEnv, EnvError> {
    let model = model();
    let physics = Box::new(PointMass { state: State::new(&model, b.n).unwrap(), steps: 0 });
    let env =
        EnvConfig { num_envs: b.n, decimation: 2, episode_length_s: 0.02 * f64::from(b.steps) };
    BatchEnv::with_physics(
        model,
        physics,
        Arc::new(Pool::new(b.threads).unwrap()),
        &env,
        task,
        b.seed,
        b.first,
    )
}

/// Buffers of one step, with room for `slots` final observations.
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

impl Out {
    pub fn new(spec: &EnvSpec, slots: usize) -> Self {
        // No correct answer is seven: unwritten numbers show.
        let n = spec.num_envs;
        let sevens = |k: usize| vec![7.0f32; k * n];
        Self {
            policy: sevens(spec.obs.policy),
            critic: spec.obs.critic.map(sevens),
            reward: sevens(1),
            terminated: sevens(1),
            truncated: sevens(1),
            valid: sevens(1),
            final_policy: sevens(slots * spec.obs.policy),
            final_critic: spec.obs.critic.map(|c| sevens(slots * c)),
            final_slot: vec![7; n],
        }
    }

    pub fn reset(&mut self, env: &mut BatchEnv, spread: bool) {
        env.reset(
            spread,
            &mut Groups { policy: &mut self.policy, critic: self.critic.as_deref_mut() },
        );
    }

    pub fn step(&mut self, env: &mut BatchEnv, actions: &[f32]) {
        env.step(
            actions,
            &mut StepOut {
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
            },
        );
    }
}
