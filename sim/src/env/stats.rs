//! Statistics of episodes.

use super::{EnvSpec, EpisodeStats};
use crate::physics::fault;

/// No episodes yet; room for all that a call can report.
pub(super) fn empty(spec: &EnvSpec) -> EpisodeStats {
    EpisodeStats {
        reward_sums: vec![0.0; spec.reward_names.len()],
        terminations: vec![0; spec.termination_names.len()],
        faults: vec![0; fault::COUNT],
        finished: Vec::with_capacity(spec.num_envs),
        ..EpisodeStats::default()
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
    into.clone_from_reusing(from);
    from.episodes = 0;
    from.return_sum = 0.0;
    from.length_sum = 0.0;
    from.reward_sums.fill(0.0);
    from.terminations.fill(0);
    from.faults.fill(0);
    from.final_overflow = 0;
    from.finished.clear();
}

impl EpisodeStats {
    fn clone_from_reusing(&mut self, from: &Self) {
        self.episodes = from.episodes;
        self.return_sum = from.return_sum;
        self.length_sum = from.length_sum;
        self.reward_sums.clone_from(&from.reward_sums);
        self.terminations.clone_from(&from.terminations);
        self.faults.clone_from(&from.faults);
        self.final_overflow = from.final_overflow;
        self.shortfalls = from.shortfalls;
        self.finished.clone_from(&from.finished);
    }
}
