//! What a policy would see in the frames of the reference motions.

use super::{BatchEnv, Demonstrations, EnvError, Groups};
use crate::config::file::Simulation;
use crate::config::{Backend, ConfigError, SimConfig};
use ostler_model::Model;
use std::sync::Arc;

/// Environments that stand in frames at a time.
const ENVS: usize = 256;

impl Demonstrations {
    /// The task's observations, without noise and events, of a robot that stands in every frame
    /// of `[[task.reference]]`, moving as it does there: of the critic, or of the policy where
    /// the critic has none of its own. Nothing was touched and nobody has acted; what terms read
    /// of earlier steps is that of the frame itself.
    ///
    /// # Errors
    /// The task has no reference; what [`BatchEnv::of`] refuses.
    pub fn of(config: &Simulation, model: Arc<Model>) -> Result<Self, EnvError> {
        let mut config = config.clone();
        config.env.num_envs = ENVS;
        config.sim = SimConfig { backend: Backend::Native, ..config.sim.generic() };
        let mut env = BatchEnv::of(&config, model)?;
        if !env.task.reference.is_some() {
            let what = "an adversarial prior learns from motions, and this task has none";
            return Err(ConfigError::new("amp.observations", what)
                .help("[[task.reference]] with files = [\"walk.npz\"] gives it some")
                .into());
        }
        env.set_noise(false);
        env.set_events(false);
        let rows = env.spec.rows();
        let (policy, critic) = (env.spec.obs.policy, env.spec.obs.critic);
        let mut seen = [vec![0.0; rows * policy], vec![0.0; rows * critic.unwrap_or(0)]];
        let mut all = Self { width: critic.unwrap_or(policy), ..Self::default() };
        let stand = vec![0.0; env.live.episodes.stand.len()];
        // The tables hold what is read of them.
        let clips = std::mem::take(&mut env.task.reference.clips);
        for clip in &clips {
            let motion = &clip.motion;
            for first in (0..motion.frames).step_by(ENVS) {
                let count = ENVS.min(motion.frames - first);
                // Environments without a frame stand in the last one.
                let columns = |rows: &[f64]| -> Vec<f32> {
                    let width = rows.len() / motion.frames;
                    let entry = |k: usize| {
                        (0..ENVS).map(move |e| rows[(first + e.min(count - 1)) * width + k] as f32)
                    };
                    (0..width).flat_map(entry).collect()
                };
                let [own, critics] = &mut seen;
                let critics = critic.map(|_| &mut critics[..]);
                let mut obs = Groups { policy: &mut own[..], critic: critics };
                env.begin_at(&columns(&motion.qpos), &columns(&motion.qvel), &stand, &mut obs);
                let from = if critic.is_some() { &seen[1] } else { &seen[0] };
                all.rows.extend(&from[..count * all.width]);
            }
            all.clips.push(all.frames());
        }
        Ok(all)
    }
}
