//! Statistics of episodes.

use super::examine::DESCRIBED;
use super::{EnvSpec, EpisodeStats};
use crate::memory::MemoryError;
use crate::physics::fault;

impl EpisodeStats {
    /// No episodes yet; room for all that [`super::BatchEnv::take_stats`] can report.
    pub fn with_room(spec: &EnvSpec) -> Result<Self, MemoryError> {
        let mut finished = Vec::new();
        finished
            .try_reserve_exact(spec.num_envs)
            .map_err(|_| MemoryError {
                what: "finished episodes".to_string(),
                bytes: spec
                    .num_envs
                    .saturating_mul(std::mem::size_of::<super::Finished>()),
            })?;
        Ok(Self {
            agent_return_sums: vec![0.0; spec.agents.len()],
            reward_sums: vec![0.0; spec.reward_names.len()],
            terminations: vec![0; spec.termination_names.len()],
            faults: vec![0; fault::COUNT],
            causes: vec![0; spec.cause_names.len()],
            breaks: Vec::with_capacity(DESCRIBED),
            finished,
            ..Self::default()
        })
    }
}

/// Moves the numbers of `from` into `into` and starts `from` at zero; no allocation
/// once `into` has been used.
pub(super) fn take(from: &mut EpisodeStats, into: &mut EpisodeStats) {
    into.finished.reserve(
        from.finished
            .capacity()
            .saturating_sub(into.finished.capacity()),
    );
    into.breaks
        .reserve(DESCRIBED.saturating_sub(into.breaks.capacity()));
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
    from.terminations.fill(0);
    from.faults.fill(0);
    from.causes.fill(0);
    from.breaks.clear();
    from.final_overflow = 0;
    from.finished.clear();
}

/// Copies `from` over `into`, reusing its memory.
pub(super) fn copy(from: &EpisodeStats, into: &mut EpisodeStats) {
    into.clone_from_reusing(from);
}

impl EpisodeStats {
    /// How often an environment broke.
    pub fn broken(&self) -> u64 {
        self.causes.iter().sum()
    }

    fn clone_from_reusing(&mut self, from: &Self) {
        self.episodes = from.episodes;
        self.return_sum = from.return_sum;
        self.length_sum = from.length_sum;
        self.agent_return_sums.clone_from(&from.agent_return_sums);
        self.reward_sums.clone_from(&from.reward_sums);
        self.terminations.clone_from(&from.terminations);
        self.faults.clone_from(&from.faults);
        self.causes.clone_from(&from.causes);
        self.breaks.clone_from(&from.breaks);
        self.final_overflow = from.final_overflow;
        self.shortfalls = from.shortfalls;
        self.finished.clone_from(&from.finished);
    }
}
