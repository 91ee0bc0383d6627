//! Counters of a run.

use ostler_sim::EpisodeStats;
use ostler_sim::env::LISTED;
use std::collections::VecDeque;

/// Episodes in the rolling mean.
pub(crate) const WINDOW: usize = LISTED;

/// Counters that survive a checkpoint.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Counters {
    /// Iterations done.
    pub iteration: u64,
    /// Environment steps done, warm-up included.
    pub env_steps: u64,
    /// Training time of earlier sessions (s).
    pub wall_before_s: f64,
    /// Best mean return of a checkpoint so far.
    pub best: Option<f64>,
    /// The last episodes.
    pub window: Window,
}

/// Returns and lengths of the last [`WINDOW`] episodes.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Window(VecDeque<[f32; 2]>);

impl Window {
    /// Adds the episodes of one collection.
    pub(crate) fn add(&mut self, stats: &EpisodeStats) {
        for e in &stats.finished {
            if self.0.len() == WINDOW {
                self.0.pop_front();
            }
            self.0.push_back([e.ret, e.length as f32]);
        }
    }

    /// Mean return and length; NaN without episodes.
    pub(crate) fn means(&self) -> (f64, f64) {
        let n = self.0.len() as f64;
        let sum = |k: usize| self.0.iter().map(|e| f64::from(e[k])).sum::<f64>();
        (sum(0) / n, sum(1) / n)
    }

    /// Whether the mean is over as many episodes as it is meant to be.
    pub(crate) fn full(&self) -> bool {
        self.0.len() == WINDOW
    }

    /// Oldest first, for a checkpoint.
    pub(crate) fn to_vec(&self) -> Vec<[f32; 2]> {
        self.0.iter().copied().collect()
    }

    /// The reverse of [`to_vec`](Self::to_vec).
    pub(crate) fn from_slice(episodes: &[[f32; 2]]) -> Self {
        let skip = episodes.len().saturating_sub(WINDOW);
        Self(episodes[skip..].iter().copied().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_sim::env::Finished;

    #[test]
    fn the_mean_is_over_the_last_hundred_episodes() {
        let mut w = Window::default();
        assert!(w.means().0.is_nan());
        let mut stats = EpisodeStats::default();
        for i in 0..150 {
            stats.finished = vec![Finished { env: 0, step: 0, ret: i as f32, length: 2 }];
            w.add(&stats);
            assert_eq!(w.full(), i >= 99);
        }
        assert_eq!(w.means(), (99.5, 2.0));
        assert_eq!(Window::from_slice(&w.to_vec()), w);
    }
}
