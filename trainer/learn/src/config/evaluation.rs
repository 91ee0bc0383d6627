//! How often a run is evaluated, and over how many episodes.
//!
//! Both follow from the configuration alone, never from a clock: a run that is repeated or
//! resumed is evaluated in the same iterations.

use super::Config;
use super::sections::RunnerConfig;
use ostler_sim::config::{Auto, ObservationTerm, Spread};

/// Evaluations of a run, where nothing else speaks against it.
const TIMES: u64 = 20;
/// Control steps of evaluation for each of training, at the most. One of evaluation takes
/// about a seventh of the time of one of training, as nothing is learnt from it.
const SHARE: f64 = 0.5;
/// Episodes that an evaluation has without being told, at the least and at the most.
/// Fewer say too little, and take hardly less time.
const EPISODES: (u64, u64) = (16, 64);
/// Environments that an evaluation takes its episodes in, at the most.
const MAX_ENVS: usize = 64;

impl RunnerConfig {
    /// Iterations between evaluations, 0 for none; known after
    /// [`Config::resolve_evaluation`].
    pub fn eval_interval(&self) -> u64 {
        match self.eval_interval {
            Auto::N(n) => n as u64,
            Auto::Auto(_) => self.max_iterations.div_ceil(TIMES),
        }
    }

    /// Episodes of an evaluation; known after [`Config::resolve_evaluation`].
    pub fn eval_episodes(&self) -> usize {
        match self.eval_episodes {
            Auto::N(n) => n,
            Auto::Auto(_) => EPISODES.1 as usize,
        }
    }
}

impl Config {
    /// A line for each setting that does nothing in such a run, once the evaluations are
    /// [known](Self::resolve_evaluation).
    pub fn without_effect(&self) -> Vec<String> {
        let limit = self.guard.max_return_drop;
        let blind = limit > 0.0 && self.runner.eval_interval() == 0;
        let blind = blind.then(|| {
            format!(
                "guard.max_return_drop = {limit} does nothing without evaluations \
                 (runner.eval_interval is 0)"
            )
        });
        blind.into_iter().chain(self.runner.algorithm.in_vain(self)).collect()
    }

    /// Replaces the "auto" of `runner.eval_interval` and `runner.eval_episodes`, where
    /// episodes have at most `episode_steps` control steps. A run that goes on keeps what
    /// `earlier` had. Returns a line where that is no evaluation.
    pub fn resolve_evaluation(
        &mut self,
        earlier: Option<&Self>,
        episode_steps: u32,
    ) -> Option<String> {
        let given = earlier.map(|e| &e.runner);
        if let (Auto::Auto(_), Some(Auto::N(n))) =
            (self.runner.eval_episodes, given.map(|r| r.eval_episodes))
        {
            self.runner.eval_episodes = Auto::N(n);
        }
        if let (Auto::Auto(_), Some(Auto::N(n))) =
            (self.runner.eval_interval, given.map(|r| r.eval_interval))
        {
            self.runner.eval_interval = Auto::N(n);
        }
        if let Auto::Auto(_) = self.runner.eval_episodes {
            let steps = SHARE * self.samples() as f64 * self.runner.eval_interval() as f64;
            let affordable = (steps / f64::from(episode_steps.max(1))) as u64;
            let n = affordable.clamp(EPISODES.0, EPISODES.1);
            self.runner.eval_episodes = Auto::N(n as usize);
        }
        if let Auto::Auto(_) = self.runner.eval_interval {
            let n = self.runner.eval_interval().max(self.eval_spacing(episode_steps));
            let n = n.min(self.runner.max_iterations);
            self.runner.eval_interval = Auto::N(usize::try_from(n).unwrap_or(usize::MAX));
            // A single one would take longer than all that it judges.
            let least = EPISODES.0.min(self.runner.eval_episodes() as u64);
            let whole = self.samples().saturating_mul(self.runner.max_iterations);
            if least.saturating_mul(u64::from(episode_steps)) > whole {
                self.runner.eval_interval = Auto::N(0);
                return Some(format!(
                    "nothing is evaluated: {least} episodes of {episode_steps} control steps are \
                     more than the whole run of {whole}; --set runner.eval_interval=N does all the \
                     same"
                ));
            }
        }
        None
    }

    /// Environments that evaluations have for themselves: 64 at the most.
    pub fn eval_envs(&self) -> usize {
        match self.runner.eval_interval() {
            0 => 0,
            _ => self.runner.eval_episodes().min(MAX_ENVS),
        }
    }

    /// Whether a policy learns from observations with noise or bias that evaluations leave out.
    pub fn eval_is_cleaner(&self) -> bool {
        !self.runner.eval_noise && self.has_noise()
    }

    /// Whether observations have noise or bias.
    pub fn has_noise(&self) -> bool {
        let noisy = |t: &ObservationTerm| t.noise != Spread::default() || t.bias.is_some();
        self.task.observation.iter().any(noisy)
    }

    /// Iterations that an evaluation of episodes of `episode_steps` control steps should
    /// wait after the one before, so that evaluations take a small share of the time.
    pub fn eval_spacing(&self, episode_steps: u32) -> u64 {
        let steps = self.runner.eval_episodes() as f64 * f64::from(episode_steps);
        let iteration = SHARE * self.samples() as f64;
        ((steps / iteration).ceil() as u64).max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn resolved(envs: usize, steps: usize, iterations: u64, episode: u32) -> (u64, usize) {
        let mut c = Config::default();
        c.env.num_envs = envs;
        c.runner.num_steps_per_env = steps;
        c.runner.max_iterations = iterations;
        c.resolve_evaluation(None, episode);
        (c.runner.eval_interval(), c.runner.eval_episodes())
    }

    #[test]
    fn a_run_is_evaluated_about_twenty_times_where_it_is_long_enough() {
        // The half-cheetah: 100 iterations are 409,600 steps, 64 episodes are 64,000.
        assert_eq!(resolved(64, 64, 2000, 1000), (100, 64));
        // The cart-pole: a twentieth are 12,288 steps, too few for 16,000.
        assert_eq!(resolved(64, 32, 120, 1000), (16, 16));
        // One that is hardly begun is evaluated at its end, if that takes no longer than all of it.
        assert_eq!(resolved(1, 8, 2000, 1000), (2000, 16));
        assert_eq!(resolved(1, 8, 1999, 1000), (0, 16));
        assert_eq!(resolved(4096, 24, 30, 1000), (2, 64));
    }

    #[test]
    fn what_is_given_stays_and_a_run_that_goes_on_keeps_its_own() {
        let mut c = Config::default();
        c.runner.eval_interval = Auto::N(0);
        c.runner.eval_episodes = Auto::N(3);
        c.resolve_evaluation(None, 1000);
        assert_eq!((c.runner.eval_interval(), c.runner.eval_episodes()), (0, 3));
        let mut more = Config::default();
        more.runner.max_iterations = 1 << 30;
        more.resolve_evaluation(Some(&c), 1000);
        assert_eq!((more.runner.eval_interval(), more.runner.eval_episodes()), (0, 3));
        // Many episodes leave more time between evaluations.
        let mut many = Config::default();
        many.runner.eval_episodes = Auto::N(6400);
        many.env.num_envs = 64;
        many.runner.num_steps_per_env = 64;
        many.resolve_evaluation(None, 100);
        assert_eq!(many.runner.eval_interval(), 313);
    }
}
