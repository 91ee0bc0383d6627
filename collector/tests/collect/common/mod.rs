//! Environments and a policy whose numbers say where they come from.

pub mod parts;
pub mod robots;

use ostler_collector::env::Environments;
use ostler_collector::policy::{Hidden, Noise};
use ostler_collector::{Act, CollectError, Collector, Policy, Snapshot};
use ostler_sim::env::{ActionSpace, EnvSpec};
use ostler_sim::physics::SnapshotError;
use ostler_sim::{EpisodeStats, Groups, StepOut};
use tch::{TchError, Tensor};

/// The snapshot of a collector, as bytes.
pub fn captured(c: &mut dyn Collector) -> Vec<u8> {
    let mut into = Snapshot::default();
    c.capture(&mut into).unwrap();
    into.into_bytes()
}

/// Bytes as a captured state.
pub fn state(bytes: &[u8]) -> Snapshot {
    bytes.to_vec().into()
}

pub const OBS: usize = 3;
pub const CRITIC: usize = 2;

/// Counts steps; observation `[step, env, first number of the last action]`.
/// Environment 1 times out at every second step, environment 2 breaks at step 3.
pub struct Counting {
    spec: EnvSpec,
    step: u32,
    slot: i32,
}

impl Counting {
    pub fn new(num_envs: usize) -> Self {
        let spec = EnvSpec::plain(
            num_envs,
            Groups { policy: OBS, critic: Some(CRITIC) },
            ActionSpace::Continuous(2),
            0.02,
            2,
        );
        Self { spec, step: 0, slot: 0 }
    }

    fn observe(&self, obs: &mut Groups<&mut [f32]>, actions: Option<&[f32]>) {
        for (env, row) in obs.policy.chunks_exact_mut(OBS).enumerate() {
            let action = actions.map_or(-1.0, |a| a[2 * env]);
            row.copy_from_slice(&[self.step as f32, env as f32, action]);
        }
        if let Some(critic) = &mut obs.critic {
            for (env, row) in critic.chunks_exact_mut(CRITIC).enumerate() {
                row.copy_from_slice(&[100.0 * self.step as f32, env as f32]);
            }
        }
    }
}

impl Environments for Counting {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }

    fn reset(&mut self, spread: bool, obs: &mut Groups<&mut [f32]>) -> Result<(), CollectError> {
        self.step = if spread { 1000 } else { 0 };
        self.observe(obs, None);
        Ok(())
    }

    fn begin_rollout(&mut self) {
        self.slot = 0;
    }

    fn step(&mut self, actions: &[f32], out: &mut StepOut<'_>) -> Result<(), CollectError> {
        self.step += 1;
        for env in 0..self.spec.num_envs {
            let timed_out = env == 1 && self.step.is_multiple_of(2);
            out.reward[env] = 10.0 * self.step as f32 + env as f32;
            out.terminated[env] = f32::from(env == 0 && self.step == 2);
            out.truncated[env] = f32::from(timed_out);
            out.valid[env] = f32::from(!(env == 2 && self.step == 3));
            out.final_slot[env] = -1;
            if timed_out {
                let row = self.slot as usize * self.spec.num_envs + env;
                out.final_obs.policy[row * OBS..][..OBS].fill(-(self.step as f32));
                out.final_slot[env] = self.slot;
                self.slot += 1;
            }
        }
        self.observe(&mut out.obs, Some(actions));
        Ok(())
    }

    fn take_stats(&mut self, into: &mut EpisodeStats) {
        into.episodes = u64::from(self.step);
    }

    fn capture(&self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        out.extend_from_slice(&self.step.to_le_bytes());
        Ok(())
    }

    fn restore(&mut self, blob: &[u8]) -> Result<(), SnapshotError> {
        let bytes =
            blob.try_into().map_err(|_| SnapshotError::Unfit("four bytes expected".into()))?;
        self.step = u32::from_le_bytes(bytes);
        Ok(())
    }

    fn restore_range(
        &mut self,
        blob: &[u8],
        _: bool,
        obs: &mut Groups<&mut [f32]>,
    ) -> Result<usize, SnapshotError> {
        self.restore(blob)?;
        self.observe(obs, None);
        Ok(self.spec.num_envs)
    }
}

/// Acts with the first two numbers of the observation plus the noise.
pub struct Copying;

impl Policy for Copying {
    fn dist_width(&self) -> i64 {
        2
    }

    fn noise(&self) -> (i64, Noise) {
        (2, Noise::Normal)
    }

    fn act(&mut self, obs: &Tensor, noise: &Tensor, out: &Act<'_>) -> Result<(), TchError> {
        let _no_grad = tch::no_grad_guard();
        let first = obs.f_narrow(1, 0, 2)?;
        out.dist.shallow_clone().f_copy_(&first)?;
        let _ = out.std.shallow_clone().f_fill_(1.0)?;
        let _ = first.f_add_out(out.action, noise)?;
        Ok(())
    }

    fn act_mean(
        &mut self,
        obs: &Tensor,
        _: Option<Hidden<'_>>,
        action: &Tensor,
    ) -> Result<(), TchError> {
        action.shallow_clone().f_copy_(&obs.f_narrow(1, 0, 2)?)
    }
}
