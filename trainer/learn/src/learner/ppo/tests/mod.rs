//! The learner against autograd, against PyTorch, and against its own promises.

mod behaviour;
mod blocks;
mod device;
mod explosion;
mod faults;
mod gradient;
mod half;
mod host;
mod imitation;
mod mirrored;
mod recurrent;
mod reference;
mod stale;
mod state;

use super::batch::MiniBatch;
use super::*;
use crate::learner::policy::{Activation, RnnType, StdType};
use crate::learner::testing::{bits, normals, rollout, same, spec, stand_in};
use crate::learner::{UpdateFault, tensors::NamedTensors};
use ostler_collector::peers::Group;
use ostler_collector::{Policy, Widths};
use tch::Kind;

/// Small networks, so that tests are quick, learnt on one thread: a second would
/// wait for the first much longer than it works, and for the other tests' too.
pub fn small() -> (ActorConfig, CriticConfig) {
    tch::set_num_threads(1);
    let actor = ActorConfig { hidden_dims: vec![16, 8], ..ActorConfig::default() };
    let critic = CriticConfig { hidden_dims: vec![16, 8], ..CriticConfig::default() };
    (actor, critic)
}

/// Values in units of rewards.
pub fn plain() -> PpoConfig {
    PpoConfig { normalize_returns: false, ..PpoConfig::default() }
}

/// A learner for a small task, rollouts of 8 steps of 6 environments.
pub fn build(ppo: &PpoConfig, action: ActionSpace, normalize: bool) -> (Ppo, EnvSpec) {
    build_seeded(ppo, action, normalize, 3)
}

pub fn build_seeded(
    ppo: &PpoConfig,
    action: ActionSpace,
    normalize: bool,
    seed: u64,
) -> (Ppo, EnvSpec) {
    let spec = spec(5, None, action, 6);
    let (actor, critic) = small();
    let actor = ActorConfig { obs_normalization: normalize, ..actor };
    let critic = CriticConfig { obs_normalization: normalize, ..critic };
    let ppo = Ppo::new(ppo, &actor, &critic, &spec, 8, seed, Device::Cpu).unwrap();
    (ppo, spec)
}

/// Lets a learner work on the host's memory, or as it does on a device.
pub fn on(ppo: &mut Ppo, host: bool) {
    match host {
        true => {
            ppo.adam.leave_device();
            ppo.path = ppo.in_blocks(1, None).unwrap();
        }
        false => ppo.learn_with(&stand_in()).unwrap(),
    }
}

/// The loss of a minibatch as on a device; its gradients lie in the minibatch's space.
pub fn device_loss(
    ppo: &Ppo,
    config: &PpoConfig,
    mb: &MiniBatch,
    terms: (&Tensor, f64),
    stats: &Tensor,
) {
    let shape = ppo.columns.shape(config);
    let kernel = LossKernel::new(&stand_in(), shape, mb.rows, Device::Cpu).unwrap();
    kernel.run(config, mb, terms, stats).unwrap();
}

/// The gradient of the samples `range` in their order, worked out on the host.
pub fn host_gradient(ppo: &mut Ppo, config: &PpoConfig, range: Range<usize>, value_clip: f32) {
    let mut host = ppo.host().unwrap();
    let Path::Blocks(blocks) = &mut ppo.path else {
        panic!("not on the host");
    };
    blocks.take(range);
    let imitation = config.imitation.coef_at(1.0) as f32;
    host.run(blocks, config, true, [value_clip, imitation], &Group::default()).unwrap();
}
