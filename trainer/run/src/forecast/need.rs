//! Whether a run fits into memory, asked before it is built: the system grants more than there
//! is and later kills whoever touches it.

use crate::run::RunError;
use ostler_collector::replay::{Layout, ReplayConfig, Room, StorageKind, places};
use ostler_learn::config::{Config, Device};
use ostler_sim::config::SimDevice;
use ostler_sim::env::{ActionSpace, EnvSpec};

/// Bytes that a run takes beside the program itself, part by part.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Need {
    /// The rollout's buffers (see `ostler_collector::Rollout`).
    pub rollout: u64,
    /// Activations and their gradients in one minibatch, at the least, and activations
    /// where the values of a rollout are estimated, a part of it at a time.
    pub update: u64,
    /// Weights, their gradients and the optimiser's two moments.
    pub networks: u64,
    /// An update's tensors over a rollout: normalised observations, values, advantages,
    /// one row per sample, the order of samples, temporaries.
    pub samples: u64,
    /// Environments: their state, the task's buffers, the copy that an iteration
    /// can go back to, and a checkpoint's copy while it is written.
    pub envs: u64,
    /// Environments of evaluations, and the state that each evaluation starts from.
    pub evaluation: u64,
    /// Transitions that are remembered in memory, wherever that is.
    pub replay: u64,
    /// Copies of the weights to go back to, and a checkpoint's copy.
    pub copies: u64,
}

/// Memory by place (bytes).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Shares {
    /// In a GPU's memory.
    pub gpu: u64,
    /// In the host's.
    pub host: u64,
}

/// Rows of which values are estimated at a time, at the most.
const VALUE_ROWS: u64 = 8192;

/// How many times the saved state of an environment its memory is: its own, the task's
/// working copy, the copy to go back to, and two while a checkpoint is written.
const STATES: u64 = 5;

/// The same for an environment on a GPU: its own, the copy to go back to, and about as much
/// of statistics, controls and random numbers.
const GPU_STATES: u64 = 3;

impl Need {
    /// Of a configuration and its task. `state` is the size of one environment in a
    /// checkpoint (bytes); 0 where that is not known, and then neither are `envs`.
    pub fn of(config: &Config, spec: &EnvSpec) -> Self {
        Self::with_state(config, spec, 0)
    }

    /// [`of`](Self::of) with the size of an environment's saved state (bytes).
    pub fn with_state(config: &Config, spec: &EnvSpec, state: u64) -> Self {
        let steps = config.runner.num_steps_per_env as u64;
        // Rows: every agent of an environment has its own.
        let rows_of_env = spec.agents_per_env() as u64;
        let worlds = config.env.num_envs as u64;
        let envs = worlds.saturating_mul(rows_of_env);
        let policies = spec.policy_names.len().max(1) as u64;
        let truncations = steps.div_ceil(u64::from(spec.min_truncation_steps.max(1)));
        let width = (spec.obs.policy + spec.obs.critic.unwrap_or(0)) as u64;
        let action = spec.action.width() as u64;
        let (dist, std) = match spec.action {
            ActionSpace::Continuous(n) => (n as u64, n as u64),
            ActionSpace::Discrete(n) => (n as u64, 0),
        };
        let hidden_state = config.actor.hidden_width() as u64;
        let observations = (steps + 1 + truncations) * width + (steps + 1) * hidden_state;
        // Reward, two flags, valid, version, slot.
        let step = action + dist + action + 6;
        let off_policy = config.runner.algorithm.off_policy();
        let samples = steps.saturating_mul(envs);
        let rows = config.batch_rows() as u64;
        let method = config.runner.algorithm;
        let on_gpu = matches!(Device::parse(&config.device), Ok(Device::Cuda(_)));
        let (at_once, gradients) = match on_gpu {
            true => (rows, 0),
            false => {
                let (rows, gradients) = method.working_set(config);
                (rows as u64, gradients as u64)
            }
        };
        // Then there is no minibatch as a whole, and one order of samples.
        let in_blocks = !on_gpu && method.useful_threads(config).is_some();
        let [actor, critic] = method.hidden(config);
        let hidden = actor.iter().chain(critic);
        // Every layer's output and the gradient with respect to it; once more where a norm stands
        // between the layer and its function, or the layer before is added.
        let [norm, residual] = [
            config.actor.layer_norm || config.critic.layer_norm,
            config.actor.residual || config.critic.residual,
        ];
        let twice = 1 + u64::from(norm) + u64::from(residual);
        let mut neurons: u64 = hidden.map(|&n| twice * 2 * n as u64).sum();
        // A GRU's state before and after a step, its gradient, six products; and the critic's
        // wider input. For values libtorch has seven temporaries more.
        neurons += 10 * hidden_state;
        if off_policy {
            // Another critic, and what their slow copies and the next observation take.
            neurons *= 3;
        }
        // Log-probability, advantage, return, value, validity, weight beside them.
        let mut columns = action + dist + std + 6;
        if config.ppo.imitation.is_on() {
            // The teacher's decisions, and their columns.
            columns += 2 * dist + 3 * action;
        }
        if hidden_state > 0 {
            // Hidden states after each step, twice: beside the critic's observations, too.
            let own = spec.critic.unwrap_or(spec.obs.policy) as u64;
            columns += 2 * hidden_state + own + 1;
        }
        if config.symmetry.is_some() && !off_policy {
            // Reflections, and the observations of both sides.
            let own = spec.critic.unwrap_or(0) as u64;
            columns = 2 * (columns + spec.obs.policy as u64 + own);
        }
        let normalised = match (config.actor.obs_normalization, config.critic.obs_normalization) {
            (false, false) => 0,
            (true, true) if spec.critic.is_none() => 2 * spec.obs.policy as u64,
            _ => width,
        };
        let (gru, seen) = match hidden_state as usize {
            0 => (0, [spec.obs.policy, 0]),
            h => (weights(spec.obs.policy + h + 1, &[], 3 * h as u64), [h, h]),
        };
        let of_critic = spec.critic.unwrap_or(spec.obs.policy);
        let weights = gru + weights(seen[0], actor, dist) + weights(of_critic + seen[1], critic, 1);
        let weights = policies * if off_policy { 3 * weights } else { weights };
        // Log-probabilities are computed column by column over all samples.
        let temporaries = 2 * (action + dist) + 8;
        // Of threads: the rollouts that they collect ahead, and the joined one.
        let rollouts = match config.is_async() {
            true => 2 + config.collector.max_staleness as u64,
            false => 1,
        };
        // Every policy learns from a rollout of its own agents.
        let rollouts = rollouts + u64::from(policies > 1) + u64::from(config.self_play.is_on());
        let [style, style_kept] = match config.amp.is_on() {
            true => config.amp.bytes(spec, samples),
            false => [0, 0],
        };
        // The best weights are kept where the policy may have to go back to them.
        let sets = 5 + u64::from(config.guard.max_return_drop > 0.0);
        Self {
            rollout: rollouts * 4 * envs.saturating_mul(observations + steps * step),
            update: 4 * at_once.saturating_mul(neurons + width)
                + 4 * gradients.saturating_mul(weights)
                + 4 * samples
                    .min(VALUE_ROWS)
                    .saturating_mul(neurons / 2 + width + 7 * hidden_state),
            networks: 16 * weights
                + 12 * weights * config.self_play.window as u64
                + envs.saturating_mul(method.bytes_per_row(spec)),
            // Value, advantage; the order of samples, 8 bytes each, once or twice.
            samples: style
                + match off_policy {
                    true => 8 * rows.saturating_mul(3 * width + 5 * action + 5),
                    false if in_blocks => {
                        // Temporaries, one of the normalised observations among them, are gone
                        // when a checkpoint takes two states of the environments.
                        let own = normalised.div_ceil(2);
                        let passing = 4 * samples.saturating_mul(temporaries + normalised - own);
                        let later = 2 * worlds.saturating_mul(state);
                        4 * samples.saturating_mul(columns + own + 2 + 2)
                            + passing.saturating_sub(later)
                    }
                    false => {
                        4 * samples.saturating_mul(columns + normalised + temporaries + 2 + 4)
                            + 4 * rows.saturating_mul(columns)
                    }
                },
            replay: match off_policy {
                true => {
                    let kept = remembered(&config.replay, spec, tch::Device::Cpu);
                    kept.gpu.saturating_add(kept.host)
                }
                false => 0,
            },
            envs: STATES * worlds.saturating_mul(state),
            evaluation: 2 * config.eval_envs() as u64 * state,
            // To go back to: weights and moments, and two or three sets of weights. In a
            // checkpoint: all of it, as tensors, as bytes, as a file.
            copies: sets * 4 * weights + 3 * sets * 4 * weights + 5 * style_kept,
        }
    }

    /// All of it.
    pub fn total(self) -> u64 {
        [
            self.rollout,
            self.update,
            self.networks,
            self.samples,
            self.envs,
            self.evaluation,
            self.replay,
            self.copies,
        ]
        .into_iter()
        .fold(0, u64::saturating_add)
    }

    /// Parts of it on a GPU and on the host, where the learner is on a GPU with
    /// `free` bytes: of which `"auto"` takes a part for a replay buffer.
    pub fn shared(self, config: &Config, spec: &EnvSpec, free: Option<u64>) -> Shares {
        let on_gpu = config.sim.device == SimDevice::Cuda;
        let device = tch::Device::Cuda(0);
        let mut replay = config.replay.clone();
        if replay.storage == StorageKind::Auto {
            let room = Room { device: free, ..Room::default() };
            replay = replay.resolve(&Layout::of(spec), device, &room, 0);
        }
        let replay = match config.runner.algorithm.off_policy() {
            true => remembered(&replay, spec, device),
            false => Shares::default(),
        };
        let gpu = [
            self.rollout,
            self.update,
            self.networks,
            self.samples,
            self.copies,
            replay.gpu,
            match on_gpu {
                true => self.envs / STATES * GPU_STATES,
                false => 0,
            },
        ];
        // Checkpoints, the host's twin of environments on the GPU; rollouts of threads, before
        // they are brought to the GPU.
        let host = [
            self.envs,
            self.evaluation,
            self.copies,
            replay.host,
            match config.is_async() {
                true => self.rollout,
                false => 0,
            },
        ];
        let sum = |all: &[u64]| all.iter().copied().fold(0, u64::saturating_add);
        Shares { gpu: sum(&gpu), host: sum(&host) }
    }

    /// Refuses needs above `free` bytes.
    ///
    /// # Errors
    /// It does not fit.
    pub fn check(self, free: Option<u64>) -> Result<(), RunError> {
        let need = self.rollout.saturating_add(self.update).saturating_add(self.networks);
        match free {
            Some(free) if need > free => Err(RunError::Memory {
                rollout: mib(self.rollout),
                update: mib(self.update),
                networks: mib(self.networks),
                free: mib(free),
            }),
            _ => Ok(()),
        }
    }
}

/// Bytes of the replay buffer that do not lie in a file. With `"auto"` nobody knows yet:
/// it takes no more than fits.
fn remembered(replay: &ReplayConfig, spec: &EnvSpec, device: tch::Device) -> Shares {
    if replay.storage == StorageKind::Auto {
        return Shares::default();
    }
    // A layout that cannot be is refused by the learner.
    let layout = replay.layout(spec).unwrap_or_else(|_| Layout::of(spec));
    let each = layout.bytes_per_transition() as u64;
    let rows = places(replay, device, 0);
    // Each policy has a buffer of its own.
    let each = each.saturating_mul(spec.policy_names.len().max(1) as u64);
    Shares { gpu: each.saturating_mul(rows.device), host: each.saturating_mul(rows.host) }
}

/// Numbers in the weights of a network.
pub fn weights(input: usize, hidden: &[i64], output: u64) -> u64 {
    let mut from = input as u64;
    let mut sum = 0_u64;
    for to in hidden.iter().map(|&n| n as u64).chain([output]) {
        sum = sum.saturating_add(from.saturating_add(1).saturating_mul(to));
        from = to;
    }
    sum
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_sim::Groups;

    #[test]
    fn what_does_not_fit_is_refused_with_the_numbers() {
        let need = Need { rollout: 3 << 20, update: 5 << 20, networks: 2 << 20, ..Need::default() };
        need.check(Some(10 << 20)).unwrap();
        need.check(None).unwrap();
        let e = need.check(Some(9 << 20)).unwrap_err();
        let text = e.to_string();
        for word in ["3 MiB", "5 MiB", "2 MiB", "9 MiB", "env.num_envs", "hidden_dims"] {
            assert!(text.contains(word), "{text}");
        }
        assert_eq!(e.exit_code(), crate::run::error::USAGE);
    }

    /// Storage, and transitions in host memory and on the device.
    #[test]
    fn remembered_is_what_the_memory_itself_counts() {
        let obs = Groups { policy: 4, critic: None };
        let spec = EnvSpec::plain(8, obs, ActionSpace::Continuous(2), 0.02, 100);
        let replay = |storage| ReplayConfig {
            capacity: 1000,
            recent: 100,
            storage,
            ..ReplayConfig::default()
        };
        let each = Layout::of(&spec).bytes_per_transition() as u64;
        let gpu = tch::Device::Cuda(0);
        for (storage, host, device) in [
            (StorageKind::Host, 1000, 0),
            (StorageKind::Device, 0, 1000),
            (StorageKind::Tiered, 0, 100),
            (StorageKind::Memmap, 0, 0),
            (StorageKind::Auto, 0, 0),
        ] {
            let kept = remembered(&replay(storage), &spec, gpu);
            assert_eq!((kept.host, kept.gpu), (host * each, device * each));
            let on_host = remembered(&replay(storage), &spec, tch::Device::Cpu);
            assert_eq!(on_host.host, (host + device) * each);
            assert_eq!(on_host.gpu, 0);
        }
    }

    #[test]
    fn weights_are_those_of_dense_layers_with_biases() {
        assert_eq!(weights(3, &[], 2), 8);
        assert_eq!(weights(3, &[5, 7], 2), 4 * 5 + 6 * 7 + 8 * 2);
    }
}
