//! The tasks of `configs/`, as batches of environments.

use ostler_collector::policy::{Hidden, Noise};
use ostler_collector::{Act, Policy, Replica, Replicate};
use ostler_sim::config::{EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::device::Counts;
use ostler_sim::model::mjcf;
use ostler_sim::{BatchEnv, Model};
use serde::Deserialize;
use std::path::PathBuf;
use std::sync::Arc;
use tch::{TchError, Tensor};

/// The parts that environments are built from.
pub struct Setup {
    pub model: Arc<Model>,
    pub sim: SimConfig,
    pub env: EnvConfig,
    pub task: TaskConfig,
}

/// The task in `configs/{name}.toml` for `n` environments, whose episodes last `seconds`,
/// on the engine as it comes: without a kernel of the robot's own.
pub fn setup(name: &str, n: usize, seconds: f64) -> Setup {
    #[derive(Deserialize)]
    struct File {
        env: EnvConfig,
        #[serde(default)]
        sim: SimConfig,
        task: TaskConfig,
    }
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../configs");
    let text = std::fs::read_to_string(folder.join(format!("{name}.toml"))).unwrap();
    let mut file: File = toml::from_str(&text).unwrap();
    file.sim.specialize = Specialize::Off;
    file.env.num_envs = n;
    file.env.episode_length_s = seconds;
    let model = mjcf::load(&folder.join(&file.task.robot)).unwrap();
    Setup { model: Arc::new(model), sim: file.sim, env: file.env, task: file.task }
}

/// The environments of a setup.
pub fn batch(s: &Setup, seed: u64) -> BatchEnv {
    BatchEnv::new(s.model.clone(), &s.sim, &s.env, &s.task, seed).unwrap()
}

/// Acts with the first so many numbers of the observation, made small, plus noise and what
/// it remembers of those before.
pub struct Jittery(pub i64);

impl Policy for Jittery {
    fn dist_width(&self) -> i64 {
        self.0
    }

    fn noise(&self) -> (i64, Noise) {
        (self.0, Noise::Normal)
    }

    fn hidden_width(&self) -> i64 {
        self.0
    }

    fn act(&mut self, obs: &Tensor, noise: &Tensor, out: &Act<'_>) -> Result<(), TchError> {
        let _no_grad = tch::no_grad_guard();
        self.act_mean(obs, out.hidden, out.dist)?;
        let _ = out.std.shallow_clone().f_fill_(0.3)?;
        let _ = out.dist.f_addcmul_out(out.action, noise, out.std)?;
        Ok(())
    }

    fn act_mean(
        &mut self,
        obs: &Tensor,
        hidden: Option<Hidden<'_>>,
        action: &Tensor,
    ) -> Result<(), TchError> {
        let first = obs.f_narrow(1, 0, self.0)?.f_mul_scalar(0.1)?;
        let Hidden { before, after } = hidden.expect("a hidden state");
        let remembered = before.f_mul_scalar(0.8)?.f_add(&first)?;
        after.shallow_clone().f_copy_(&remembered)?;
        action.shallow_clone().f_copy_(&remembered)
    }

    fn replicate(&self) -> Option<&dyn Replicate> {
        Some(self)
    }
}

impl Replicate for Jittery {
    fn replica(&self, _: usize, _: usize) -> Result<Box<dyn Replica>, TchError> {
        Ok(Box::new(Self(self.0)))
    }

    fn weights(&self, out: &mut Vec<f32>, _: &Counts) -> Result<(), TchError> {
        out.clear();
        Ok(())
    }
}

impl Replica for Jittery {
    fn take(&mut self, _: &[f32]) -> Result<(), TchError> {
        Ok(())
    }
}
