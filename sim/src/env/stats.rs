//! Statistics of episodes.

use super::EnvSpec;
use super::examine::DESCRIBED;
use crate::kernels::GAVE_UP;
use crate::memory::MemoryError;
use crate::physics::{Shortfalls, fault};
use serde::{Deserialize, Serialize};

/// Statistics of the episodes that ended since the last call, and of broken
/// environments. Sums are over episodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct EpisodeStats {
    /// Episodes that ended (broken ones are not counted).
    pub episodes: u64,
    /// Sum of returns; of several agents, the mean counts.
    pub return_sum: f64,
    /// Sum of returns of every agent `[M]`; empty for tasks without `[agents]`.
    pub agent_return_sums: Vec<f64>,
    /// Sum of lengths in control steps.
    pub length_sum: f64,
    /// Per reward term: sum of weighted values.
    pub reward_sums: Vec<f64>,
    /// Per metric: sum of the episodes' values.
    pub metric_sums: Vec<f64>,
    /// Per termination cause: how many episodes it ended.
    pub terminations: Vec<u64>,
    /// Per bit of [`crate::physics::fault`]: broken environments.
    pub faults: Vec<u64>,
    /// Per cause ([`EnvSpec::cause_names`]): broken environments, each counted once, by
    /// what was wrong first.
    pub causes: Vec<u64>,
    /// Per event ([`EnvSpec::events`]): broken environments in which it happened shortly
    /// before; of events of startup, those that had broken twice before. One break can count
    /// for several events.
    pub suspects: Vec<u64>,
    /// The first few broken environments.
    pub breaks: Vec<Break>,
    /// Truncations that found no room in `final_obs`.
    pub final_overflow: u64,
    /// Starts of episodes whose conditions were looked at.
    pub starts: Starts,
    /// Shortfalls of the physics.
    pub shortfalls: Shortfalls,
    /// Returns and lengths of the episodes, in order of (step, environment),
    /// for evaluation; capped at the number of environments per call.
    pub finished: Vec<Finished>,
    /// Metrics of these `[finished][metrics]`; empty where the episodes were counted on a
    /// device, or by several workers.
    pub finished_metrics: Vec<f32>,
}

/// Starts of episodes of a task with `[task.start]`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Starts {
    /// How many.
    #[serde(with = "postcard::fixint::le")]
    pub count: u64,
    /// Draws that they took.
    #[serde(with = "postcard::fixint::le")]
    pub tries: u64,
    /// Those in which a condition failed in every try, so that the last counts.
    #[serde(with = "postcard::fixint::le")]
    pub gave_up: u64,
}

impl Starts {
    /// Counts a start, by its entry of the column `tries`.
    pub(super) fn add(&mut self, tries: u32) {
        self.count += 1;
        self.tries += u64::from(tries & !GAVE_UP);
        self.gave_up += u64::from(tries & GAVE_UP != 0);
    }
}

impl std::ops::AddAssign for Starts {
    fn add_assign(&mut self, other: Self) {
        self.count += other.count;
        self.tries += other.tries;
        self.gave_up += other.gave_up;
    }
}

/// An environment that broke.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Break {
    /// Its global id.
    pub env: u32,
    /// Steps and resets of the batch when it broke.
    pub clock: u64,
    /// Control step of the rollout, from 0.
    pub step: u32,
    /// Control steps of its episode, that of the break included.
    pub age: u32,
    /// Index into [`EnvSpec::cause_names`].
    pub cause: u32,
    /// The number that was wrong; NaN where there is none to show.
    pub value: f32,
}

impl PartialEq for Break {
    /// By bits: a NaN is itself.
    fn eq(&self, other: &Self) -> bool {
        let all = |b: &Self| (b.env, b.clock, b.step, b.age, b.cause, b.value.to_bits());
        all(self) == all(other)
    }
}

/// One finished episode.
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Finished {
    /// Environment, by its place in the batch.
    pub env: u32,
    /// Control step of the rollout in which it ended, from 0.
    pub step: u32,
    /// Sum of rewards; of several agents, the mean.
    pub ret: f32,
    /// Control steps.
    pub length: u32,
}

impl EpisodeStats {
    /// No episodes yet; room for all that [`super::BatchEnv::take_stats`] can report.
    pub fn with_room(spec: &EnvSpec) -> Result<Self, MemoryError> {
        let mut finished = Vec::new();
        finished.try_reserve_exact(spec.num_envs).map_err(|_| MemoryError {
            what: "finished episodes".to_string(),
            bytes: spec.num_envs.saturating_mul(std::mem::size_of::<Finished>()),
        })?;
        let mut finished_metrics = Vec::new();
        let metrics = spec.num_envs.saturating_mul(spec.metrics.len());
        finished_metrics.try_reserve_exact(metrics).map_err(|_| MemoryError {
            what: "metrics of finished episodes".to_string(),
            bytes: 4 * metrics,
        })?;
        Ok(Self {
            agent_return_sums: vec![0.0; spec.agents.len()],
            reward_sums: vec![0.0; spec.reward_names.len()],
            metric_sums: vec![0.0; spec.metrics.len()],
            finished_metrics,
            terminations: vec![0; spec.termination_names.len()],
            faults: vec![0; fault::COUNT],
            causes: vec![0; spec.cause_names.len()],
            suspects: vec![0; spec.events.len()],
            breaks: Vec::with_capacity(DESCRIBED),
            finished,
            ..Self::default()
        })
    }
}

/// Moves the numbers of `from` into `into` and starts `from` at zero; no allocation
/// once `into` has been used.
pub(super) fn take(from: &mut EpisodeStats, into: &mut EpisodeStats) {
    into.finished.reserve(from.finished.capacity().saturating_sub(into.finished.capacity()));
    let metrics = from.finished_metrics.capacity();
    into.finished_metrics.reserve(metrics.saturating_sub(into.finished_metrics.capacity()));
    into.breaks.reserve(DESCRIBED.saturating_sub(into.breaks.capacity()));
    into.clone_from_reusing(from);
    clear(from);
}

/// Nothing was counted.
pub(super) fn clear(from: &mut EpisodeStats) {
    from.episodes = 0;
    from.return_sum = 0.0;
    from.length_sum = 0.0;
    from.agent_return_sums.fill(0.0);
    from.reward_sums.fill(0.0);
    from.metric_sums.fill(0.0);
    from.finished_metrics.clear();
    from.terminations.fill(0);
    from.faults.fill(0);
    from.causes.fill(0);
    from.suspects.fill(0);
    from.breaks.clear();
    from.final_overflow = 0;
    from.starts = Starts::default();
    from.finished.clear();
}

/// Copies `from` over `into`, reusing its memory.
pub(super) fn copy(from: &EpisodeStats, into: &mut EpisodeStats) {
    into.clone_from_reusing(from);
}

impl EpisodeStats {
    /// Moves the numbers into `into`, whose memory is used again, and starts at zero.
    pub fn take_into(&mut self, into: &mut Self) {
        take(self, into);
    }

    /// How often an environment broke.
    pub fn broken(&self) -> u64 {
        self.causes.iter().sum()
    }

    /// Whether all finished episodes have their metrics: those that a device counted have none.
    pub(super) fn has_metrics(&self) -> bool {
        self.finished_metrics.len() == self.finished.len() * self.metric_sums.len()
    }

    fn clone_from_reusing(&mut self, from: &Self) {
        self.episodes = from.episodes;
        self.return_sum = from.return_sum;
        self.length_sum = from.length_sum;
        self.agent_return_sums.clone_from(&from.agent_return_sums);
        self.reward_sums.clone_from(&from.reward_sums);
        self.metric_sums.clone_from(&from.metric_sums);
        self.finished_metrics.clone_from(&from.finished_metrics);
        self.terminations.clone_from(&from.terminations);
        self.faults.clone_from(&from.faults);
        self.causes.clone_from(&from.causes);
        self.suspects.clone_from(&from.suspects);
        self.breaks.clone_from(&from.breaks);
        self.final_overflow = from.final_overflow;
        self.starts = from.starts;
        self.shortfalls = from.shortfalls;
        self.finished.clone_from(&from.finished);
    }
}
