//! PPO as one of the [learners](crate::learner::registry).

use super::{AdvantageNorm, Ppo, Schedule, Staleness, blocks};
use crate::config::Config;
use crate::learner::nn::host::half::Half;
use crate::learner::policy::Activation;
use crate::learner::registry::{LearnerArgs, Method};
use crate::learner::{ActorCritic, Learner, TrainedPolicy, error::LearnError};
use ostler_sim::config::ConfigError;

/// Steps that samples are drawn in: 1, but for a recurrent policy.
fn sequence(config: &Config) -> usize {
    match config.actor.is_recurrent() {
        false => 1,
        true => {
            let steps = config.runner.num_steps_per_env;
            config.ppo.sequence_steps(steps).max(1)
        }
    }
}

/// `runner.algorithm = "ppo"`.
pub struct PpoMethod;

impl Method for PpoMethod {
    fn name(&self) -> &'static str {
        "ppo"
    }

    fn validate(&self, config: &Config) -> Vec<ConfigError> {
        config.ppo.validate()
    }

    fn fits(&self, config: &Config, samples: usize) -> Vec<ConfigError> {
        let (steps, recurrent) = (config.runner.num_steps_per_env, config.actor.is_recurrent());
        config.ppo.validate_rollout(steps, samples, recurrent)
    }

    fn check(&self, config: &Config) -> Vec<ConfigError> {
        let collector = &config.collector;
        let mut errors = Vec::new();
        if collector.init_random_steps > 0 {
            let why = "\"ppo\" learns from what its own policy does, not from random actions";
            errors.push(
                ConfigError::new("collector.init_random_steps", why)
                    .help("0, or runner.algorithm = \"sac\" or \"td3\""),
            );
        }
        let bodies = [("actor", config.actor.body()), ("critic", config.critic.body())];
        for (table, (body, flash)) in bodies {
            let mut refuse = |key: &str, why: &str, help: &str| {
                errors.push(ConfigError::new(format!("{table}.{key}"), why).help(help));
            };
            if body.activation == Activation::Silu {
                let why = "\"silu\" is for \"sac\" and \"td3\": PPO's passes keep results alone";
                refuse("activation", why, "\"elu\", \"relu\" or \"tanh\"");
            }
            if flash {
                let why = "\"flash_sac\" is for \"sac\" and \"td3\"";
                refuse("architecture", why, "\"mlp\", or runner.algorithm = \"sac\"");
            }
        }
        if config.ppo.sequence_length > 0 && !config.actor.is_recurrent() {
            let why = "only a recurrent policy learns from sequences";
            errors.push(
                ConfigError::new("ppo.sequence_length", why)
                    .help("actor.rnn_type = \"gru\", or leave it out"),
            );
        }
        let whole = config.ppo.normalize_advantage == AdvantageNorm::Batch;
        if config.ppo.advantage_floor > 0.0 && !whole {
            let why = "only advantages that are normalised over the batch have a floor";
            errors.push(
                ConfigError::new("ppo.advantage_floor", why)
                    .help("ppo.normalize_advantage = \"batch\", or leave it out"),
            );
        }
        let uncorrected = config.ppo.staleness_correction == Staleness::None;
        if config.max_staleness() > 0 && uncorrected {
            let why = format!(
                "\"none\" takes what a policy up to {} versions older did for the present one's",
                collector.max_staleness
            );
            errors.push(
                ConfigError::new("ppo.staleness_correction", why)
                    .help("\"clip\" or \"vtrace\", or collector.max_staleness = 0"),
            );
        }
        errors
    }

    fn in_vain(&self, config: &Config) -> Option<String> {
        let ppo = &config.ppo;
        let once = ppo.num_learning_epochs * ppo.num_mini_batches == 1;
        let fresh = config.max_staleness() == 0;
        (once && fresh && ppo.schedule == Schedule::Adaptive).then(|| {
            "ppo.schedule = \"adaptive\" does nothing with one minibatch in one epoch: the \
             divergence is that before the last minibatch's step, which is 0 then"
                .into()
        })
    }

    fn batch_rows(&self, config: &Config) -> usize {
        let rows = config.rows_of_a_policy(config.env.num_envs).1;
        let samples = rows * config.runner.num_steps_per_env;
        let steps = sequence(config);
        (samples / steps).div_ceil(config.ppo.num_mini_batches.max(1)) * steps
    }

    fn half(&self) -> bool {
        true
    }

    fn recurrent(&self) -> bool {
        true
    }

    fn self_play(&self) -> bool {
        true
    }

    fn working_set(&self, config: &Config) -> (usize, usize) {
        let steps = sequence(config);
        let sequences = self.batch_rows(config) / steps;
        blocks::working_set(sequences, steps, config.learner_threads())
    }

    fn useful_threads(&self, config: &Config) -> Option<usize> {
        let steps = sequence(config);
        Some(blocks::parts_of(self.batch_rows(config) / steps, steps))
    }

    fn slower(&self) -> &'static str {
        "a lower ppo.learning_rate"
    }

    fn calmer(&self) -> &'static str {
        "ppo.value_loss = \"huber\", a lower ppo.learning_rate"
    }

    fn steadier(&self) -> &'static str {
        "a lower ppo.learning_rate or ppo.desired_kl, ppo.final_kl_share below 1, and where Policy/mean_std is far above 1 actor.max_std = 1"
    }

    fn describe(&self, config: &Config) -> String {
        format!(
            "{} minibatches of {} x {} epochs",
            config.ppo.num_mini_batches,
            self.batch_rows(config),
            config.ppo.num_learning_epochs
        )
    }

    fn build(&self, plan: &LearnerArgs<'_>) -> Result<Box<dyn Learner>, LearnError> {
        let LearnerArgs { config, spec, seed, device, group, .. } = *plan;
        let (actor, critic) = (plan.actor(), plan.critic());
        let sizes = [plan.steps(), plan.place().all as usize];
        let mut ppo = Ppo::among(&config.ppo, (actor, critic), spec, sizes, (seed, device))?;
        if let (Some(reflection), Some(symmetry)) = (&spec.reflection, &config.symmetry) {
            ppo = ppo.with_symmetry(reflection, symmetry, spec.critic)?;
        }
        if config.amp.is_on() {
            let Some(demonstrations) = &spec.demonstrations else {
                let why = "there is no reference motion to compare with";
                let error = ConfigError::new("amp.observations", why);
                return Err(error.help("leave it out, or give the robot motions").into());
            };
            ppo = ppo.with_demonstrations(&config.amp, spec, demonstrations)?;
        }
        let half = Half::of(config)?;
        let ppo = ppo.with_group(group, plan.place())?;
        Ok(Box::new(ppo.on_processor(config.learner_threads(), half)?))
    }

    fn policy(&self, plan: &LearnerArgs<'_>) -> Result<Box<dyn TrainedPolicy>, LearnError> {
        let (actor, critic) = (plan.actor(), plan.critic());
        let policy = ActorCritic::new(actor, critic, plan.spec, plan.seed, plan.device)?;
        Ok(Box::new(policy))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_schedule_that_nothing_moves_is_told() {
        let mut config = Config::default();
        config.ppo.schedule = Schedule::Adaptive;
        config.ppo.num_learning_epochs = 1;
        for (minibatches, told) in [(1, true), (2, false)] {
            config.ppo.num_mini_batches = minibatches;
            let said = PpoMethod.in_vain(&config);
            assert_eq!(said.is_some_and(|s| s.contains("ppo.schedule")), told);
        }
    }
}
