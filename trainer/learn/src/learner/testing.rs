//! Tasks, rollouts and comparisons for the tests of all learners.

use super::nn::device::LearnKernels;
use super::tensors::NamedTensors;
use ostler_collector::policy::Noise;
use ostler_collector::{Act, Hidden, Policy, Rollout};
use ostler_sim::Groups;
use ostler_sim::device::host::Host;
use ostler_sim::env::{ActionSpace, EnvSpec};
use ostler_sim::rng::{Purpose, normal_pair, philox};
use std::sync::OnceLock;
use tch::{Device, Kind, Tensor};

/// The learner's kernels as on a device: the host's compiler has compiled them.
pub fn stand_in() -> LearnKernels {
    static LOADED: OnceLock<LearnKernels> = OnceLock::new();
    let load = || LearnKernels::load(&Host::default()).unwrap();
    LOADED.get_or_init(load).clone()
}

/// Sizes of a task that exists only here.
pub fn spec(obs: usize, critic: Option<usize>, action: ActionSpace, num_envs: usize) -> EnvSpec {
    EnvSpec::plain(num_envs, Groups { policy: obs, critic }, action, 0.02, 100)
}

/// Standard normal numbers that are the same in every run; `stream` tells them apart.
pub fn normals(stream: u32, size: &[i64]) -> Tensor {
    let count: i64 = size.iter().product();
    let numbers: Vec<f32> = (0..count as u32)
        .map(|i| {
            let w = philox(99, stream, Purpose::Replay, 0, i);
            normal_pair(w[0], w[1]).0
        })
        .collect();
    Tensor::from_slice(&numbers).view(size)
}

/// Bit for bit the same tensors under the same names.
pub fn same(a: &NamedTensors, b: &NamedTensors) {
    assert_eq!(a.len(), b.len());
    for ((name, x), (other, y)) in a.iter().zip(b) {
        assert_eq!(name, other);
        assert_eq!(bits(x), bits(y), "{name}");
    }
}

/// A tensor's bytes: NaN equals itself, 0 does not equal -0.
pub fn bits(t: &Tensor) -> Vec<u8> {
    let mut bytes = vec![0; t.numel() * t.kind().elt_size_in_bytes()];
    t.copy_data_u8(&mut bytes, t.numel());
    bytes
}

/// A rollout with random observations and rewards, acted on by `policy`; one
/// termination, one time-out and one broken transition.
pub fn rollout(policy: &mut dyn Policy, spec: &EnvSpec, steps: i64, stream: u32) -> Rollout {
    let n = spec.rows() as i64;
    let r = Rollout::new(spec, steps, policy.widths(), Device::Cpu).unwrap();
    let fill = |t: &Tensor, i: u32| t.shallow_clone().copy_(&normals(stream * 100 + i, &t.size()));
    fill(&r.obs.policy, 0);
    fill(&r.final_obs.policy, 1);
    if let (Some(obs), Some(last)) = (&r.obs.critic, &r.final_obs.critic) {
        fill(obs, 2);
        fill(last, 3);
    }
    fill(&r.reward, 4);
    let _ = r.valid.shallow_clone().fill_(1.0);
    let set = |t: &Tensor, step: i64, env: i64, x: f64| {
        let _ = t.get(step).get(env % n).fill_(x);
    };
    set(&r.terminated, 1, 0, 1.0);
    set(&r.truncated, 0, 1, 1.0);
    set(&r.final_slot, 0, 1, 0.0);
    set(&r.valid, 1, 2, 0.0);
    set(&r.reward, 1, 2, 0.0);
    let ended = r.ended().unwrap();
    for t in 0..steps {
        let [before, after] = [t, t + 1].map(|t| r.hidden.as_ref().map(|h| h.get(t)));
        let (width, kind) = policy.noise();
        let mut noise = normals(stream * 100 + 10 + t as u32, &[n, width]);
        if kind == Noise::Uniform {
            noise = noise.sigmoid();
        }
        let out = Act {
            action: &r.action.get(t),
            dist: &r.dist.get(t),
            std: &r.std.get(t),
            hidden: before
                .as_ref()
                .zip(after.as_ref())
                .map(|(before, after)| Hidden { before, after }),
        };
        policy.act(&r.obs.policy.get(t), &noise, &out).unwrap();
        if let Some(mut after) = after {
            let _ = after.masked_fill_(&ended.get(t).unsqueeze(1), 0.0);
        }
    }
    r
}

/// A tensor as a fixture has it.
#[derive(serde::Deserialize)]
pub struct Numbers {
    pub shape: Vec<i64>,
    pub data: Vec<f64>,
}

impl Numbers {
    pub fn tensor(&self) -> Tensor {
        Tensor::from_slice(&self.data).to_kind(Kind::Float).view(&self.shape[..])
    }
}

/// Tensors by name.
pub type Named = std::collections::BTreeMap<String, Numbers>;
