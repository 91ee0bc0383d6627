//! Names that other libraries give to our keys; those of the simulation's are in its crate.

use ostler_sim::config::file::{self, Foreign};

const NAMES: &[Foreign] = &[
    ("horizon_length", "runner.num_steps_per_env", ""),
    ("n_steps", "runner.num_steps_per_env", ""),
    ("unroll_length", "runner.num_steps_per_env", ""),
    ("num_steps", "runner.num_steps_per_env", ""),
    ("rollout_length", "runner.num_steps_per_env", ""),
    ("max_epochs", "runner.max_iterations", ""),
    (
        "total_timesteps",
        "runner.max_iterations",
        "it counts iterations of num_envs x num_steps_per_env steps",
    ),
    (
        "num_timesteps",
        "runner.max_iterations",
        "it counts iterations of num_envs x num_steps_per_env steps",
    ),
    ("minibatch_size", "ppo.num_mini_batches", "it counts minibatches, not samples"),
    ("batch_size", "ppo.num_mini_batches", "it counts minibatches, not samples"),
    ("num_minibatches", "ppo.num_mini_batches", ""),
    ("mini_epochs", "ppo.num_learning_epochs", ""),
    ("n_epochs", "ppo.num_learning_epochs", ""),
    ("update_epochs", "ppo.num_learning_epochs", ""),
    ("num_updates_per_batch", "ppo.num_learning_epochs", ""),
    ("num_workers", "collector.workers", ""),
    ("update_at_each_batch", "collector.refresh_interval", "0: once per rollout"),
    (
        "init_random_frames",
        "collector.init_random_steps",
        "control steps of each environment, not frames of all",
    ),
    ("frames_per_batch", "runner.num_steps_per_env", "of each environment, not of all"),
    (
        "split_trajs",
        "runner.num_steps_per_env",
        "rollouts are [T,N] with every end of an episode marked; they are not split",
    ),
    (
        "split_trajectories",
        "runner.num_steps_per_env",
        "rollouts are [T,N] with every end of an episode marked; they are not split",
    ),
    ("discounting", "ppo.gamma", ""),
    ("discount", "ppo.gamma", ""),
    ("lam", "ppo.gae_lambda", ""),
    ("tau", "ppo.gae_lambda", ""),
    ("lambda", "ppo.gae_lambda", ""),
    ("e_clip", "ppo.clip_param", ""),
    ("clip_range", "ppo.clip_param", ""),
    ("clip_coef", "ppo.clip_param", ""),
    ("clipping_epsilon", "ppo.clip_param", ""),
    ("clip_value", "ppo.use_clipped_value_loss", ""),
    ("critic_coef", "ppo.value_loss_coef", "rl_games takes half of it"),
    ("vf_coef", "ppo.value_loss_coef", ""),
    ("ent_coef", "ppo.entropy_coef", ""),
    ("entropy_cost", "ppo.entropy_coef", ""),
    ("grad_norm", "ppo.max_grad_norm", ""),
    ("kl_threshold", "ppo.desired_kl", ""),
    ("target_kl", "ppo.desired_kl", ""),
    ("lr", "ppo.learning_rate", ""),
    ("lr_schedule", "ppo.schedule", ""),
    ("units", "actor.hidden_dims", ""),
    ("network", "actor.hidden_dims", "and critic.hidden_dims"),
    ("net_arch", "actor.hidden_dims", "and critic.hidden_dims"),
    ("actor_hidden_dims", "actor.hidden_dims", ""),
    ("critic_hidden_dims", "critic.hidden_dims", ""),
    ("rnn_hidden_size", "actor.rnn_hidden_dim", ""),
    ("rnn_num_layers", "actor.rnn_type", "a GRU has one layer"),
    ("seq_length", "ppo.sequence_length", ""),
    ("seq_len", "ppo.sequence_length", ""),
    ("bptt_horizon", "ppo.sequence_length", ""),
    ("recurrence", "ppo.sequence_length", ""),
    ("init_noise_std", "actor.init_std", ""),
    ("empirical_normalization", "actor.obs_normalization", "and critic.obs_normalization"),
    ("normalize_input", "actor.obs_normalization", "and critic.obs_normalization"),
    ("experiment_name", "name", ""),
    ("wandb_project", "log.wandb.project", ""),
    ("wandb_project_name", "log.wandb.project", ""),
    ("wandb_entity", "log.wandb.entity", ""),
    ("wandb_group", "log.wandb.group", ""),
    ("wandb_tags", "log.wandb.tags", ""),
    ("wandb_activate", "log.wandb.mode", "an empty table [log.wandb] is enough"),
    ("save_freq", "runner.save_interval", ""),
    ("save_frequency", "runner.save_interval", ""),
];

/// What `[sac]` and `[td3]` are asked for; our key stands in the same table where it begins with a
/// dot.
const OFF_POLICY: &[Foreign] = &[
    ("ent_coef", "sac.init_alpha", "the temperature; sac.auto_alpha = false keeps it"),
    ("alpha", "sac.init_alpha", "the temperature; sac.auto_alpha = false keeps it"),
    ("autotune", "sac.auto_alpha", ""),
    ("buffer_size", "replay.capacity", "transitions of all environments"),
    ("memory_size", "replay.capacity", "transitions of all environments"),
    ("replay_size", "replay.capacity", "transitions of all environments"),
    ("num_steps", "replay.n_step", ""),
    ("n_steps", "replay.n_step", ""),
    ("gradient_steps", ".num_updates", "per control step of all environments"),
    ("utd_ratio", ".num_updates", "per control step of all environments"),
    ("polyak", ".tau", "1 - polyak"),
    ("polyak_factor", ".tau", ""),
    ("policy_delay", ".policy_frequency", ""),
    ("discount", ".gamma", ""),
    ("discounting", ".gamma", ""),
    ("discount_factor", ".gamma", ""),
    ("warmup_steps", ".learning_starts", ""),
    ("minibatch_size", ".batch_size", ""),
    ("actor_lr", ".actor_learning_rate", ""),
    ("critic_lr", ".critic_learning_rate", ""),
    ("target_policy_noise", "td3.policy_noise", ""),
    ("target_noise_clip", "td3.noise_clip", ""),
    ("random_timesteps", "collector.init_random_steps", ""),
    ("start_steps", "collector.init_random_steps", "of each environment"),
];

/// Our key for `name` in `table`: `num_actors is called env.num_envs here`.
pub(crate) fn recognise(table: &str, name: &str) -> Option<String> {
    let off_policy = ["sac", "td3"].contains(&table);
    let own = || file::recognise(OFF_POLICY, name);
    let own = off_policy.then(own).flatten();
    let own = own.map(|said| said.replace("is called .", &format!("is called {table}.")));
    // What is the policy gradient's alone is not meant there.
    let others = || file::recognise(NAMES, name);
    let others = || others().filter(|said| !off_policy || !said.contains("is called ppo."));
    own.or_else(|| file::recognise(file::NAMES, name)).or_else(others)
}

/// Our keys in the table, for the test that they exist.
#[cfg(test)]
pub fn ours() -> impl Iterator<Item = &'static str> {
    file::NAMES.iter().chain(NAMES).chain(OFF_POLICY).map(|n| n.1)
}
