//! Inputs and outputs of environments.

use crate::demonstrations::Demonstrations;
use crate::reflection::Reflection;
use crate::spaces::{ActionSpace, EventSpec, Groups, ObsGroup, ObsRow};
use crate::task::Task;
use crate::task::metrics::MetricRow;
use std::sync::Arc;

/// One of several agents in every environment.
#[derive(Debug, Clone)]
pub struct AgentSpec {
    /// Its name.
    pub name: String,
    /// Its number among the agents of an environment.
    pub index: usize,
    /// How many these are.
    pub of: usize,
    /// The policy that moves it: index into [`EnvSpec::policy_names`].
    pub policy: usize,
    /// Widths of its observations; its rows hold zeros beyond.
    pub obs: Groups<usize>,
    /// Columns that its critic sees, see [`EnvSpec::critic`].
    pub critic: Option<usize>,
    /// Its actions; beyond its width an action row means nothing.
    pub action: ActionSpace,
    /// Its observation tables.
    pub obs_table: Groups<Vec<ObsRow>>,
}

/// Sizes and names that never change during a run.
///
/// Outputs of environments come in rows, `R` of them, `R = N * M`: row
/// `e * M + m` is that of agent `m` of environment `e`. Tasks without `[agents]` have
/// one agent, `M = 1`.
#[derive(Debug, Clone)]
pub struct EnvSpec {
    /// Environments, `N`.
    pub num_envs: usize,
    /// Observation widths of a row, `O`: the widest agent's. Rows for the critic hold further
    /// groups, too.
    pub obs: Groups<usize>,
    /// Columns that the critic sees of its row, from the first one on; none: it sees what
    /// the policy sees.
    pub critic: Option<usize>,
    /// Groups behind them.
    pub groups: Vec<ObsGroup>,
    /// Observation tables; the first agent's where there are several.
    pub obs_table: Groups<Vec<ObsRow>>,
    /// Actions of a row: the widest agent's.
    pub action: ActionSpace,
    /// Size of each action at which the target of its joint reaches the farther of the joint's
    /// limits `[A]`; none where an action is no position of a joint with limits. Empty for
    /// tasks with `[agents]` and for environments that are no robots.
    pub reach: Vec<Option<f32>>,
    /// Control step (s).
    pub step_dt: f64,
    /// Steps until the time-out.
    pub max_episode_steps: u32,
    /// Fewest steps after which an episode can be truncated (1 when a task term
    /// truncates): a rollout of T steps holds at most ceil(T / this) truncations
    /// per environment.
    pub min_truncation_steps: u32,
    /// Reward terms, in order.
    pub reward_names: Vec<String>,
    /// Metrics, in order.
    pub metrics: Vec<MetricRow>,
    /// Termination causes, in order, `time_out` first.
    pub termination_names: Vec<String>,
    /// Causes for which an environment breaks, as `KIND/PLACE/NAME`: `nan/joint/knee`.
    pub cause_names: Vec<String>,
    /// The task's events, in order.
    pub events: Vec<EventSpec>,
    /// Levels of the terrain; 0 without one.
    pub levels: usize,
    /// The agents of an environment, in order; empty for tasks without `[agents]`.
    pub agents: Vec<AgentSpec>,
    /// Names of the agents' policies; empty for tasks without `[agents]`.
    pub policy_names: Vec<String>,
    /// The task's reflection, where a learner is to learn from it.
    pub reflection: Option<Arc<Reflection>>,
    /// Reference motions, where a learner is to compare the policy's with them.
    pub demonstrations: Option<Arc<Demonstrations>>,
    /// The reference motions, and what was assumed about them: lines for who starts a run.
    pub reference: Vec<String>,
    /// What the task can do and nobody wants, such as a default pose outside of limits: lines too.
    pub doubts: Vec<String>,
}

impl AgentSpec {
    /// The agents of a task; none without `[agents]`.
    pub(super) fn all(task: &Task) -> Vec<Self> {
        let agents = task.team.names().iter().enumerate();
        agents
            .map(|(m, name)| Self {
                name: name.clone(),
                index: m,
                of: task.team.names().len(),
                policy: task.team.policy[m],
                obs: task.observations.agents[m].width,
                critic: task.observations.agents[m].critic,
                action: task.actions.spaces[m],
                obs_table: task.observations.agents[m].table.clone(),
            })
            .collect()
    }
}

impl EnvSpec {
    /// Of environments with one agent that have no names but those of their sizes: critics see the
    /// first `obs.critic` columns, episodes end with the time-out of `max_episode_steps` of
    /// `step_dt` (s).
    pub fn plain(
        num_envs: usize,
        obs: Groups<usize>,
        action: ActionSpace,
        step_dt: f64,
        max_episode_steps: u32,
    ) -> Self {
        Self {
            num_envs,
            critic: obs.critic,
            obs,
            groups: Vec::new(),
            obs_table: Groups { policy: Vec::new(), critic: None },
            action,
            reach: Vec::new(),
            step_dt,
            max_episode_steps,
            min_truncation_steps: max_episode_steps,
            reward_names: Vec::new(),
            metrics: Vec::new(),
            termination_names: vec!["time_out".into()],
            cause_names: Vec::new(),
            events: Vec::new(),
            levels: 0,
            agents: Vec::new(),
            policy_names: Vec::new(),
            reflection: None,
            demonstrations: None,
            reference: Vec::new(),
            doubts: Vec::new(),
        }
    }

    /// Agents of an environment, `M`; at least 1.
    pub fn agents_per_env(&self) -> usize {
        self.agents.len().max(1)
    }

    /// Names of all agents' outputs, in order: those under which they break an environment.
    pub fn output_names(&self) -> impl Iterator<Item = &str> {
        let causes = self.cause_names.iter();
        causes.filter_map(|cause| cause.strip_prefix("nan/action/"))
    }

    /// A group of that name.
    pub fn group(&self, name: &str) -> Option<&ObsGroup> {
        self.groups.iter().find(|g| g.name == name)
    }

    /// Rows of all environments, `R = N * M`.
    pub fn rows(&self) -> usize {
        self.num_envs * self.agents_per_env()
    }
}

/// Where one step's results go: rows of long-lived buffers, written in place.
///
/// Rows are agents of environments, `R = N * M` ([`EnvSpec`]): `obs.policy` is `[R][O]`.
/// An episode ends for all agents of an environment at once.
#[derive(Debug)]
pub struct StepOut<'a> {
    /// Observations after the step, after auto-reset `[R][O]`.
    pub obs: Groups<&'a mut [f32]>,
    /// Rewards `[R]`.
    pub reward: &'a mut [f32],
    /// 1 where the task ended `[R]`.
    pub terminated: &'a mut [f32],
    /// 1 where time ran out `[R]`.
    pub truncated: &'a mut [f32],
    /// 0 where the environment broke and this transition must not be learnt from,
    /// else 1 `[R]`. A broken environment has reward 0 and both flags 0; its trace
    /// is cut.
    pub valid: &'a mut [f32],
    /// Observations before the reset of episodes that were truncated
    /// `[K][R][O]`; row `k` of environment `e` is its `k`-th truncation in the rollout.
    pub final_obs: Groups<&'a mut [f32]>,
    /// Which `k` this step's truncation took `[R]`, -1 where none (or no room).
    pub final_slot: &'a mut [i32],
}
