//! SAC and TD3 as two of the [learners](crate::learner::registry).

use super::{Algorithm, OffPolicy, OffPolicyArgs, policy};
use crate::config::Config;
use crate::learner::registry::{LearnerArgs, Method};
use crate::learner::{Learner, TrainedPolicy, error::LearnError};
use ostler_collector::peers::Group;
use ostler_sim::config::ConfigError;
use serde_json::{Value, json};

/// `runner.algorithm = "sac"`.
pub struct SacMethod;

/// `runner.algorithm = "td3"`.
pub struct Td3Method;

impl Method for SacMethod {
    fn name(&self) -> &'static str {
        "sac"
    }

    fn off_policy(&self) -> bool {
        true
    }

    fn validate(&self, config: &Config) -> Vec<ConfigError> {
        config.sac.validate()
    }

    fn check(&self, config: &Config) -> Vec<ConfigError> {
        let errors = [undecayed("sac", config.sac.weight_decay, config), unshared("sac", config)];
        errors.into_iter().flatten().collect()
    }

    fn batch_rows(&self, config: &Config) -> usize {
        config.sac.batch_size
    }

    fn slower(&self) -> &'static str {
        "a lower sac.actor_learning_rate and sac.critic_learning_rate"
    }

    fn calmer(&self) -> &'static str {
        "a lower sac.critic_learning_rate"
    }

    fn exploring(&self) -> &'static str {
        "sac.target_entropy"
    }

    fn meaning(&self, config: &Config) -> Vec<(&'static str, Value)> {
        let (sac, actor) = (&config.sac, &config.actor);
        let mut all = vec![
            ("sac.action_bound", json!(sac.action_bound)),
            ("sac.joint_limits", json!(sac.joint_limits)),
            ("sac.tanh_std", json!(sac.tanh_std)),
        ];
        if sac.tanh_std {
            let ends = [("actor.min_std", actor.min_std), ("actor.max_std", actor.max_std)];
            all.extend(ends.map(|(key, std)| (key, json!(std))));
        }
        if sac.num_atoms > 1 {
            all.extend([("sac.v_min", json!(sac.v_min)), ("sac.v_max", json!(sac.v_max))]);
        }
        all
    }

    fn in_vain(&self, config: &Config) -> Option<String> {
        never_begun("sac", config.sac.learning_starts, config)
    }

    fn describe(&self, config: &Config) -> String {
        gradient_steps(config.sac.num_updates, config.sac.batch_size, config)
    }

    fn build(&self, plan: &LearnerArgs<'_>) -> Result<Box<dyn Learner>, LearnError> {
        let mut config = plan.config.sac.clone();
        config.batch_size = part(config.batch_size, "sac", plan.group)?;
        build(Algorithm::Sac(&config), plan)
    }

    fn policy(&self, plan: &LearnerArgs<'_>) -> Result<Box<dyn TrainedPolicy>, LearnError> {
        policy_alone(Algorithm::Sac(&plan.config.sac), plan)
    }
}

impl Method for Td3Method {
    fn name(&self) -> &'static str {
        "td3"
    }

    fn off_policy(&self) -> bool {
        true
    }

    fn validate(&self, config: &Config) -> Vec<ConfigError> {
        config.td3.validate()
    }

    fn check(&self, config: &Config) -> Vec<ConfigError> {
        let errors = [undecayed("td3", config.td3.weight_decay, config), unshared("td3", config)];
        errors.into_iter().flatten().collect()
    }

    fn batch_rows(&self, config: &Config) -> usize {
        config.td3.batch_size
    }

    fn slower(&self) -> &'static str {
        "a lower td3.actor_learning_rate and td3.critic_learning_rate"
    }

    fn calmer(&self) -> &'static str {
        "a lower td3.critic_learning_rate"
    }

    fn meaning(&self, config: &Config) -> Vec<(&'static str, Value)> {
        let td3 = &config.td3;
        let mut all = vec![("td3.action_bound", json!(td3.action_bound))];
        if td3.num_atoms > 1 {
            all.extend([("td3.v_min", json!(td3.v_min)), ("td3.v_max", json!(td3.v_max))]);
        }
        all
    }

    fn in_vain(&self, config: &Config) -> Option<String> {
        never_begun("td3", config.td3.learning_starts, config)
    }

    fn describe(&self, config: &Config) -> String {
        gradient_steps(config.td3.num_updates, config.td3.batch_size, config)
    }

    fn build(&self, plan: &LearnerArgs<'_>) -> Result<Box<dyn Learner>, LearnError> {
        let mut config = plan.config.td3.clone();
        config.batch_size = part(config.batch_size, "td3", plan.group)?;
        build(Algorithm::Td3(&config), plan)
    }

    fn policy(&self, plan: &LearnerArgs<'_>) -> Result<Box<dyn TrainedPolicy>, LearnError> {
        policy_alone(Algorithm::Td3(&plan.config.td3), plan)
    }
}

/// Weights that keep their lengths, and running statistics among them, do not decay.
fn undecayed(table: &str, weight_decay: f64, config: &Config) -> Option<ConfigError> {
    let flash = config.actor.body().1 || config.critic.body().1;
    let refused = || {
        let why = "weights of architecture = \"flash_sac\" keep their lengths";
        let path = format!("{table}.weight_decay");
        ConfigError::new(path, why).help(format!("{table}.weight_decay = 0.0"))
    };
    (flash && weight_decay > 0.0).then(refused)
}

/// Two critics of their own, whatever the actor has.
fn unshared(algorithm: &str, config: &Config) -> Option<ConfigError> {
    config.critic.shared.then(|| {
        let why = format!("the critics of \"{algorithm}\" share no layers with the actor");
        let help = "critic.shared = false, or runner.algorithm = \"ppo\"";
        ConfigError::new("critic.shared", why).help(help)
    })
}

/// A run that ends before it learns.
fn never_begun(table: &str, starts: usize, config: &Config) -> Option<String> {
    let (envs, runner) = (config.env.num_envs, &config.runner);
    let rows = config.rows_of_a_policy(envs).1 as u64;
    // Statistics of observations begin with a rollout that is stored, too.
    let first = config.actor.obs_normalization || config.critic.obs_normalization;
    let rollouts = runner.max_iterations.saturating_add(u64::from(first));
    let all = rows.saturating_mul(runner.num_steps_per_env as u64).saturating_mul(rollouts);
    (starts as u64 > all).then(|| {
        format!(
            "nothing is learnt: {table}.learning_starts is {starts}, and the run's {} iterations \
             have {all} steps; lower it, or raise runner.max_iterations",
            runner.max_iterations
        )
    })
}

fn gradient_steps(per_step: usize, batch: usize, config: &Config) -> String {
    let steps = per_step * config.runner.num_steps_per_env;
    format!("{steps} gradient steps on {batch} transitions each")
}

fn build(algorithm: Algorithm<'_>, plan: &LearnerArgs<'_>) -> Result<Box<dyn Learner>, LearnError> {
    let processes = plan.group.size();
    let mut replay = plan.config.replay.clone();
    replay.capacity = replay.capacity.div_ceil(processes);
    let own = OffPolicyArgs {
        algorithm,
        actor: plan.actor(),
        critic: plan.critic(),
        replay: &replay,
        steps: plan.steps(),
        fresh_episodes: plan.config.collector.reset_at_each_iter,
        save_interval: plan.config.runner.save_interval,
        seed: plan.seed,
        draws: plan.seed ^ (plan.group.rank() as u64) << 40,
    };
    let mut learner = OffPolicy::new(&own, plan.spec, plan.device)?;
    if let (Some(reflection), Some(symmetry)) = (&plan.spec.reflection, &plan.config.symmetry) {
        learner = learner.with_symmetry(reflection, symmetry, plan.spec.critic)?;
    }
    Ok(Box::new(learner.with_group(plan.group, plan.place())?))
}

/// A process's part of a batch.
///
/// # Errors
/// The processes cannot have equal parts.
fn part(batch: usize, table: &str, group: &Group) -> Result<usize, ConfigError> {
    let processes = group.size();
    match batch.is_multiple_of(processes) {
        true => Ok(batch / processes),
        false => {
            let why = format!("{batch} transitions cannot be divided among {processes} processes");
            let next = batch.next_multiple_of(processes);
            Err(ConfigError::new(format!("{table}.batch_size"), why).help(next.to_string()))
        }
    }
}

fn policy_alone(
    algorithm: Algorithm<'_>,
    plan: &LearnerArgs<'_>,
) -> Result<Box<dyn TrainedPolicy>, LearnError> {
    let (actor, critic) = (plan.actor(), plan.critic());
    let policy = policy(algorithm, actor, critic, plan.spec, plan.seed, plan.device)?;
    Ok(Box::new(policy))
}
