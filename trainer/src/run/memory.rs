//! Whether a training fits into memory, asked before it is built: the system grants
//! more than there is and later kills whoever touches it.

use super::error::RunError;
use crate::config::Config;
use ostler_sim::env::{ActionSpace, EnvSpec};
use std::path::Path;

/// Bytes that grow with the number of samples.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Need {
    /// The rollout's buffers (see `ostler_collector::Rollout`).
    pub rollout: u64,
    /// Activations and their gradients in one minibatch, at the least.
    pub update: u64,
    /// Weights, their gradients and the optimiser's two moments.
    pub networks: u64,
}

impl Need {
    /// Of a configuration and its task.
    pub fn of(config: &Config, spec: &EnvSpec) -> Self {
        let steps = config.runner.num_steps_per_env as u64;
        let envs = config.env.num_envs as u64;
        let truncations = steps.div_ceil(u64::from(spec.min_truncation_steps.max(1)));
        let width = (spec.obs.policy + spec.obs.critic.unwrap_or(0)) as u64;
        let action = spec.action.width() as u64;
        let dist = match spec.action {
            ActionSpace::Continuous(n) | ActionSpace::Discrete(n) => n as u64,
        };
        let observations = (steps + 1 + truncations) * width;
        // Reward, two flags, valid, slot.
        let step = action + dist + action + 5;
        let rows = (steps * envs).div_ceil(config.ppo.num_mini_batches.max(1) as u64);
        let hidden = config
            .actor
            .hidden_dims
            .iter()
            .chain(&config.critic.hidden_dims);
        // Every layer's output and the gradient with respect to it.
        let neurons: u64 = hidden.map(|&n| 2 * n as u64).sum();
        Self {
            rollout: 4 * envs * (observations + steps * step),
            update: 4 * rows.saturating_mul(neurons + width),
            networks: 16
                * (weights(spec.obs.policy, &config.actor.hidden_dims, dist)
                    + weights(
                        spec.obs.critic.unwrap_or(spec.obs.policy),
                        &config.critic.hidden_dims,
                        1,
                    )),
        }
    }

    /// Refuses what is more than `free` bytes.
    ///
    /// # Errors
    /// It does not fit.
    pub fn check(self, free: Option<u64>) -> Result<(), RunError> {
        let need = self
            .rollout
            .saturating_add(self.update)
            .saturating_add(self.networks);
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

/// Numbers in the weights of a network.
fn weights(input: usize, hidden: &[i64], output: u64) -> u64 {
    let mut from = input as u64;
    let mut sum = 0_u64;
    for to in hidden.iter().map(|&n| n as u64).chain([output]) {
        sum += (from + 1) * to;
        from = to;
    }
    sum
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

/// Bytes that this process may still take: the system's, and its control group's
/// where that is less; `None` where neither is known.
pub fn available() -> Option<u64> {
    let read = |p: &Path| std::fs::read_to_string(p).ok();
    let system = read(Path::new("/proc/meminfo")).and_then(|t| {
        let line = t.lines().find(|l| l.starts_with("MemAvailable:"))?;
        Some(line.split_whitespace().nth(1)?.parse::<u64>().ok()? * 1024)
    });
    // Control groups, version 2; every group above counts too.
    let own = read(Path::new("/proc/self/cgroup")).and_then(|t| {
        let path = t.lines().find_map(|l| l.strip_prefix("0::/"))?.to_string();
        let root = Path::new("/sys/fs/cgroup");
        let number = |p: &Path| read(p).and_then(|t| t.trim().parse::<u64>().ok());
        root.join(path)
            .ancestors()
            .take_while(|d| d.starts_with(root))
            .filter_map(|d| {
                let max = number(&d.join("memory.max"))?;
                Some(max.saturating_sub(number(&d.join("memory.current"))?))
            })
            .min()
    });
    system.into_iter().chain(own).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_refused_with_the_numbers() {
        let need = Need {
            rollout: 3 << 20,
            update: 5 << 20,
            networks: 2 << 20,
        };
        need.check(Some(10 << 20)).unwrap();
        need.check(None).unwrap();
        let e = need.check(Some(9 << 20)).unwrap_err();
        let text = e.to_string();
        for word in [
            "3 MiB",
            "5 MiB",
            "2 MiB",
            "9 MiB",
            "env.num_envs",
            "hidden_dims",
        ] {
            assert!(text.contains(word), "{text}");
        }
        assert_eq!(e.exit_code(), super::super::error::USAGE);
    }

    #[test]
    fn weights_are_those_of_dense_layers_with_biases() {
        assert_eq!(weights(3, &[], 2), 8);
        assert_eq!(weights(3, &[5, 7], 2), 4 * 5 + 6 * 7 + 8 * 2);
    }

    #[test]
    fn the_free_memory_is_known_here() {
        assert!(available().unwrap() > 1 << 20);
    }
}
