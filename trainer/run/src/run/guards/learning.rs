//! Warnings about learning that stands still: each is given once.

use ostler_learn::learner::UpdateStats;
use ostler_sim::EpisodeStats;
use ostler_sim::env::AgentSpec;

/// Share of the standard deviation at the start below which a policy hardly explores.
const COLLAPSED: f64 = 0.15;
/// Times that standard deviation above which it does little else.
const EXPLODED: f64 = 3.0;
/// Iterations without a higher return that are worth a warning then.
const STILL: u64 = 200;
/// A higher return is higher by this share of the best.
const HIGHER: f64 = 0.01;
/// Weight of an iteration's return in their running mean.
const RECENT: f64 = 0.1;
/// Share of rewards that may be clipped.
const CLIPPED: f64 = 0.5;
/// Iterations in turn above it that are worth a warning: untrained policies fall.
const CLIPPED_FOR: u64 = 20;

/// What learning has come to.
#[derive(Debug, Default)]
pub(super) struct Learning {
    /// Running mean of returns.
    recent: Option<f64>,
    /// The highest so far, and when.
    best: Option<(f64, u64)>,
    collapsed_said: bool,
    exploded_said: bool,
    /// Iterations in turn in which most rewards were clipped.
    clipped_for: u64,
}

impl Learning {
    /// Looks at one iteration of a policy whose standard deviation began at `init_std` and grows
    /// with the key `exploring`, and of these `agents`, where there are several; what is to be said
    /// for the first time.
    pub(super) fn look(
        &mut self,
        iteration: u64,
        update: &UpdateStats,
        stats: &EpisodeStats,
        (init_std, exploring): (f64, &str),
        agents: &[AgentSpec],
    ) -> Vec<String> {
        let mut said = Vec::new();
        if stats.episodes > 0 {
            self.returned(iteration, stats.return_sum / stats.episodes as f64);
        }
        let still = self.best.map_or(0, |(_, at)| iteration.saturating_sub(at));
        // NaN without a distribution that has one.
        let std = update.mean_std;
        if std < COLLAPSED * init_std && still >= STILL && !self.collapsed_said {
            self.collapsed_said = true;
            said.push(format!(
                "the actions' standard deviation is down to {std:.2} from {init_std}, and for \
                 {still} iterations the return has not risen: the policy hardly explores any more. \
                 If the task is not learnt yet, actor.min_std = {:.2} or a larger {exploring} \
                 help (docs/not-learning.md)",
                0.25 * init_std
            ));
        }
        if std > EXPLODED * init_std && !self.exploded_said {
            self.exploded_said = true;
            said.push(format!(
                "the actions' standard deviation is up to {std:.2} from {init_std}: noise costs \
                 nothing, and where outputs are clipped the policy may end as a switch. \
                 actor.max_std = {init_std}, a smaller {exploring} or a penalty of action_rate help \
                 (docs/not-learning.md)"
            ));
        }
        let most = stats.most_clipped().filter(|_| self.clipped_for < CLIPPED_FOR);
        if let Some((agent, share)) = most {
            self.clipped_for = if share > CLIPPED { self.clipped_for + 1 } else { 0 };
            if self.clipped_for == CLIPPED_FOR {
                let whose = agents.get(agent).map_or(String::new(), |a| format!(" of {}", a.name));
                said.push(format!(
                    "task.rewards.clip changes {:.0} % of the rewards{whose}, and has changed most of them \
                     for {CLIPPED_FOR} iterations: the policy cannot learn from what is clipped. \
                     Smaller penalties or wider limits help; Train/clipped_rewards counts on",
                    100.0 * share
                ));
            }
        }
        said
    }

    fn returned(&mut self, iteration: u64, now: f64) {
        let recent = self.recent.map_or(now, |r| r + RECENT * (now - r));
        self.recent = Some(recent);
        let higher = |(best, _): (f64, u64)| recent > best + HIGHER * best.abs();
        if self.best.is_none_or(higher) {
            self.best = Some((recent, iteration));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn iteration(ret: f64) -> EpisodeStats {
        EpisodeStats { episodes: 2, return_sum: 2.0 * ret, ..EpisodeStats::default() }
    }

    fn update(mean_std: f64) -> UpdateStats {
        UpdateStats { mean_std, ..UpdateStats::none() }
    }

    #[test]
    fn a_policy_that_stopped_exploring_is_told_once_where_its_return_stands_still() {
        let mut learning = Learning::default();
        let mut said = Vec::new();
        for i in 1..=500 {
            // Rises until 150.
            let stats = iteration(i.min(150) as f64);
            let lines = learning.look(
                i,
                &update(1.0 / (1.0 + 0.1 * i as f64)),
                &stats,
                (1.0, "ppo.entropy_coef"),
                &[],
            );
            said.extend(lines.into_iter().map(|line| (i, line)));
        }
        assert_eq!(said.len(), 1, "{said:?}");
        let (at, line) = &said[0];
        assert!((350..400).contains(at), "{at}");
        assert!(line.contains("down to 0.03 from 1") && line.contains("actor.min_std = 0.25"));
    }

    #[test]
    fn nothing_is_said_of_one_that_explores_or_still_rises() {
        let mut learning = Learning::default();
        for i in 1..=500 {
            let ret = i as f64;
            assert_eq!(
                learning.look(i, &update(0.01), &iteration(ret), (1.0, "ppo.entropy_coef"), &[]),
                [""; 0]
            );
        }
        for i in 501..=900 {
            assert_eq!(
                learning.look(i, &update(0.5), &iteration(0.0), (1.0, "ppo.entropy_coef"), &[]),
                [""; 0]
            );
            assert_eq!(
                learning.look(
                    i,
                    &update(f64::NAN),
                    &iteration(0.0),
                    (1.0, "ppo.entropy_coef"),
                    &[]
                ),
                [""; 0]
            );
        }
    }

    #[test]
    fn noise_that_grows_is_told() {
        let mut learning = Learning::default();
        assert_eq!(
            learning.look(1, &update(2.9), &iteration(1.0), (1.0, "ppo.entropy_coef"), &[]),
            [""; 0]
        );
        let said = learning.look(2, &update(3.1), &iteration(1.0), (1.0, "ppo.entropy_coef"), &[]);
        assert!(said[0].contains("up to 3.10 from 1"), "{said:?}");
        assert_eq!(
            learning.look(3, &update(3.2), &iteration(1.0), (1.0, "ppo.entropy_coef"), &[]),
            [""; 0]
        );
    }

    #[test]
    fn rewards_that_stay_clipped_are_told_once() {
        let mut learning = Learning::default();
        // Two agents; the other's are never clipped.
        let mut look = |i, clipped| {
            let rewards_clipped = vec![0, clipped];
            let stats = EpisodeStats { length_sum: 100.0, rewards_clipped, ..iteration(1.0) };
            learning.look(i, &update(1.0), &stats, (1.0, "ppo.entropy_coef"), &[])
        };
        // An iteration with fewer of them begins anew.
        for i in 1..=19 {
            assert_eq!(look(i, 60), [""; 0]);
        }
        for i in 20..=39 {
            assert_eq!(look(i, if i == 20 { 50 } else { 60 }), [""; 0]);
        }
        let said = look(40, 70);
        assert!(said[0].contains("changes 70 % of the rewards"), "{said:?}");
        for i in 41..=80 {
            assert_eq!(look(i, 70), [""; 0]);
        }
    }

    #[test]
    fn iterations_without_an_end_of_an_episode_say_nothing_of_clipping() {
        let mut learning = Learning::default();
        let none = EpisodeStats::default();
        for i in 1..=50 {
            assert_eq!(
                learning.look(i, &update(1.0), &none, (1.0, "ppo.entropy_coef"), &[]),
                [""; 0]
            );
        }
    }
}
