//! How many environments a run has, where `env.num_envs` follows a schedule.

use super::{ITERATION, NUM_ENVS};
use crate::config::Config;

/// Environments of a whole run.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Envs {
    /// Fewest.
    pub least: usize,
    /// Most.
    pub most: usize,
    /// Added up over the iterations; at most, where a schedule follows a logged number.
    pub in_all: f64,
}

impl Config {
    /// Environments of the run's iterations, without regard to memory.
    pub fn envs(&self) -> Envs {
        let end = self.runner.max_iterations as f64;
        let n = self.env.num_envs;
        let same = Envs { least: n, most: n, in_all: n as f64 * end };
        let Some(schedule) = self.curriculum.iter().find(|s| s.key == NUM_ENVS) else {
            return same;
        };
        let points = &schedule.points;
        let timed = schedule.over == ITERATION;
        // The first value holds before its point, too.
        let starts = |k: usize| if k == 0 { 0.0 } else { points[k][0].ceil().clamp(0.0, end) };
        let lasts = |k: usize| match (timed, points.get(k + 1)) {
            (false, _) => end,
            (true, Some(_)) => starts(k + 1) - starts(k),
            (true, None) => end - starts(k),
        };
        let all = points.iter().enumerate().map(|(k, p)| (p[1] as usize, lasts(k)));
        let all: Vec<(usize, f64)> = all.filter(|(_, iterations)| *iterations > 0.0).collect();
        let numbers = || all.iter().map(|(n, _)| *n);
        let (Some(least), Some(most)) = (numbers().min(), numbers().max()) else {
            return same;
        };
        let in_all = match timed {
            true => all.iter().map(|(n, iterations)| *n as f64 * iterations).sum(),
            false => most as f64 * end,
        };
        Envs { least, most, in_all }
    }
}
