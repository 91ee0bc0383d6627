//! Warnings about faults that are no errors: each is given once.

use super::learning::Learning;
use super::suspects::Suspects;
use ostler_learn::config::Config;
use ostler_learn::learner::UpdateStats;
use ostler_sim::EpisodeStats;
use ostler_sim::env::EnvSpec;
use ostler_sim::physics::fault;

/// Share of steps with broken environments that is worth a warning.
const BROKEN: f64 = 0.01;
/// Share of steps whose physics fell short that is worth one.
const SHORT: f64 = 0.001;

/// Share of starts whose conditions hold in no try that is worth one.
const GAVE_UP: f64 = 0.01;

/// Watches updates and environments.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    broken: u64,
    skipped: u64,
    skips_said: bool,
    broken_said: bool,
    overflow_said: bool,
    unsolved_said: bool,
    starts_said: bool,
    suspects: Suspects,
    learning: Learning,
    /// Broken environments by cause, as [`EnvSpec::cause_names`] has them.
    causes: Vec<u64>,
}

impl Watch {
    /// Environments that broke, minibatches that were skipped, in all iterations.
    pub(crate) fn totals(&self) -> (u64, u64) {
        (self.broken, self.skipped)
    }

    /// What environments broke of, the most frequent first.
    pub(crate) fn causes(&self, spec: &EnvSpec) -> String {
        causes(&spec.cause_names, &self.causes)
    }

    /// Events of the task that broke environments, a sentence each.
    pub(crate) fn suspects(&self, spec: &EnvSpec) -> Vec<String> {
        self.suspects.lines(spec)
    }

    /// Looks at one iteration: its update, its episodes, its number of control steps.
    pub(crate) fn look(
        &mut self,
        iteration: u64,
        update: &UpdateStats,
        stats: &EpisodeStats,
        (steps, spec): (u64, &EnvSpec),
        config: &Config,
    ) {
        let spread = (config.actor.init_std, config.runner.algorithm.exploring());
        for line in self.learning.look(iteration, update, stats, spread, &spec.agents) {
            tracing::warn!("iteration {iteration}: {line}");
        }
        self.causes.resize(spec.cause_names.len(), 0);
        for (sum, count) in self.causes.iter_mut().zip(&stats.causes) {
            *sum += count;
        }
        for line in self.suspects.add(stats, steps, spec) {
            tracing::warn!(
                "iteration {iteration}: {line}; Guard/event/NAME counts on. Narrower numbers of the \
                 event may help"
            );
        }
        let faults = stats.faults.as_slice();
        let broken = stats.broken();
        self.broken += broken;
        self.skipped += update.skipped;
        let share_of = |n: u64| n as f64 / steps.max(1) as f64;
        let share = share_of(broken);
        if share > BROKEN && !self.broken_said {
            self.broken_said = true;
            // Environments of Python and of other programs have no physics of ours.
            let of_others = spec.obs_table.policy.is_empty();
            let (kinds, advice) = match of_others {
                true => (
                    "see Guard/*".to_string(),
                    "They raise, end or give numbers that are not finite: log.txt says more",
                ),
                false => {
                    let parts = causes(&spec.cause_names, &stats.causes);
                    let advice = advice(&parts);
                    let all = [kinds(faults), parts].into_iter().filter(|text| !text.is_empty());
                    (all.collect::<Vec<_>>().join("; "), advice)
                }
            };
            tracing::warn!(
                "iteration {iteration}: environments broke in {:.1} % of the steps ({kinds}) and were reset; \
                 Guard/broken_envs counts on. {advice}",
                100.0 * share,
            );
        }
        let short = stats.shortfalls;
        // A contact that is left out is another robot, however rarely.
        if let Some(text) = short.left_out().filter(|_| !self.overflow_said) {
            self.overflow_said = true;
            tracing::warn!("iteration {iteration}: {text}; Guard/contact_overflow counts on");
        }
        if share_of(short.unsolved) > SHORT && !self.unsolved_said {
            self.unsolved_said = true;
            tracing::warn!(
                "iteration {iteration}: the constraint solver stopped early in {} time steps; \
                 Guard/unsolved counts on. A smaller sim.dt or softer contacts (solref) may help",
                short.unsolved
            );
        }
        let share = stats.starts_gave_up as f64 / stats.starts.max(1) as f64;
        if share > GAVE_UP && !self.starts_said {
            self.starts_said = true;
            tracing::warn!(
                "iteration {iteration}: {:.1} % of the starts of episodes do not fulfil \
                 task.start.until, for it failed in every try; Start/gave_up counts on. More \
                 `tries`, narrower [[task.reset]] terms or a weaker condition help",
                100.0 * share
            );
        }
        let skipped = update.skipped;
        if skipped > 0 && !self.skips_said {
            self.skips_said = true;
            tracing::warn!(
                "iteration {iteration}: {skipped} of {} minibatches were skipped: their losses or \
                 gradients were not finite; Guard/skipped_minibatches counts on",
                update.minibatches
            );
        }
    }
}

/// `nan/joint/knee 9, speed/joint/hip 3`: the three most frequent.
pub(crate) fn causes(names: &[String], counts: &[u64]) -> String {
    let mut seen: Vec<_> = names.iter().zip(counts).filter(|c| *c.1 > 0).collect();
    seen.sort_by_key(|c| std::cmp::Reverse(*c.1));
    seen.iter().take(3).map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
}

/// A remedy for the most frequent of such causes.
pub(super) fn advice(causes: &str) -> &'static str {
    // The most frequent of those that were looked at.
    let causes = causes.split(", ").find(|c| !c.starts_with("unexamined/")).unwrap_or(causes);
    let of = |what: &str| causes.split('/').nth(1) == Some(what);
    if of("reward") || of("observation") || of("native") {
        "That term is not a number there: look for a division by zero, a root or a logarithm"
    } else if causes.starts_with("start/") {
        "Where episodes begin the robot cannot be simulated, or an observation is not a number: \
         look at [[task.reset]], and for a division by zero, a root or a logarithm in \
         [[task.observation]]"
    } else if of("action") {
        "The policy's output is not a number: see Guard/non_finite_params and the learning rate"
    } else if causes.starts_with("position/") || causes.starts_with("speed/") {
        "That is beyond sim.max_position, sim.max_speed or a [[sim.limit]]: where the motion is \
         wanted, a wider one; else a smaller sim.dt, weaker actions or a gentler reset"
    } else {
        "A smaller sim.dt, weaker actions or a gentler reset may help"
    }
}

/// `speed 12, position 3`.
fn kinds(faults: &[u64]) -> String {
    let seen = fault::NAMES.iter().zip(faults).filter(|f| *f.1 > 0);
    seen.map(|(name, n)| format!("{name} {n}")).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_that_occurred_are_named_with_their_numbers() {
        assert_eq!(kinds(&[0, 3, 1]), "speed 3, position 1");
    }

    #[test]
    fn parts_that_broke_most_often_are_named_first() {
        let names = ["a", "b", "c", "d", "e"].map(String::from);
        assert_eq!(causes(&names, &[1, 0, 5, 2, 9]), "e 9, c 5, d 2");
        assert_eq!(causes(&names, &[0; 5]), "");
        assert!(advice("nan/reward/track 3, nan/joint/knee 1").contains("division by zero"));
        assert!(advice("nan/joint/knee 3, nan/reward/track 1").contains("sim.dt"));
        let unexamined = "unexamined/others 9, nan/reward/track 3";
        assert!(advice(unexamined).contains("division by zero"));
        assert!(advice("position/joint/knee 3").contains("[[sim.limit]]"));
        assert!(advice("").contains("sim.dt"));
    }
}
