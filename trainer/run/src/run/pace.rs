//! How much of a run is done, for what follows a schedule: learning rates, divergences,
//! exponents of priorities.

use std::time::{Duration, Instant};

/// The share of a run that is done: by its iterations, and of a run with a time limit by its
/// time where that is more.
#[derive(Debug)]
pub(super) struct Pace {
    /// Time that this process may take.
    limit: Option<Duration>,
    started: Instant,
    /// The share that was done when this process began.
    before: f64,
    /// The share as the iteration of this number has it: one that is taken again has the
    /// same.
    last: Option<(u64, f64)>,
}

impl Pace {
    /// Of a process that began at `started` and has to end after `limit`. `before`: the
    /// share that a checkpoint has, which counts only where there is a limit.
    pub(super) fn new(limit: Option<Duration>, started: Instant, before: f64) -> Self {
        Self { limit, started, before: before.clamp(0.0, 1.0), last: None }
    }

    /// The share that is done after `iteration` of `most` iterations, 0..1.
    pub(super) fn done(&mut self, iteration: u64, most: u64) -> f64 {
        if let Some((same, done)) = self.last
            && same == iteration
        {
            return done;
        }
        let by_iterations = (iteration as f64 / most.max(1) as f64).min(1.0);
        let done = match self.limit {
            None => by_iterations,
            Some(limit) => {
                let spent = self.started.elapsed().as_secs_f64();
                let share = (spent / limit.as_secs_f64().max(1e-9)).min(1.0);
                by_iterations.max(self.before + (1.0 - self.before) * share)
            }
        };
        self.last = Some((iteration, done));
        done
    }

    /// The last result of [`done`](Self::done), for a checkpoint.
    pub(super) fn last(&self) -> f64 {
        self.last.map_or(self.before, |(_, done)| done)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_limit_iterations_alone_count() {
        let mut pace = Pace::new(None, Instant::now(), 0.9);
        assert_eq!(pace.done(0, 4), 0.0);
        assert_eq!(pace.done(3, 4), 0.75);
        assert_eq!(pace.done(9, 4), 1.0);
    }

    #[test]
    fn with_a_limit_time_counts_where_it_is_further() {
        let hour = Duration::from_secs(3600);
        let half_an_hour_ago = Instant::now().checked_sub(hour / 2).unwrap();
        let mut pace = Pace::new(Some(hour), half_an_hour_ago, 0.0);
        let done = pace.done(1, 1_000_000);
        assert!((0.5..0.51).contains(&done), "{done}");
        // The same iteration again is as far as it was.
        assert_eq!(pace.done(1, 1_000_000), done);
        assert_eq!(pace.last(), done);
        assert_eq!(pace.done(9, 10), 0.9);
        // Half of what a checkpoint left.
        let mut resumed = Pace::new(Some(hour), half_an_hour_ago, 0.4);
        let done = resumed.done(1, 1_000_000);
        assert!((0.7..0.71).contains(&done), "{done}");
    }
}
