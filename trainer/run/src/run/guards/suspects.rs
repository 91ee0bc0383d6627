//! Events of the task that environments break after: counted, and named where chance alone
//! does not explain the count.

use ostler_sim::EpisodeStats;
use ostler_sim::config::EventTime;
use ostler_sim::env::{EnvSpec, EventSpec};

/// Fewer breaks say nothing.
const ENOUGH: u64 = 10;

/// Counts of this process.
#[derive(Debug, Default)]
pub(crate) struct Suspects {
    /// Broken environments by event, as [`EnvSpec::events`] has them.
    counts: Vec<u64>,
    broken: u64,
    steps: u64,
    episodes: u64,
    /// Whether the log has been told of an event.
    said: Vec<bool>,
}

impl Suspects {
    /// Adds an iteration of so many control steps of all environments; returns what is to be
    /// said about events for the first time.
    pub(crate) fn add(&mut self, stats: &EpisodeStats, steps: u64, spec: &EnvSpec) -> Vec<String> {
        self.counts.resize(spec.events.len(), 0);
        self.said.resize(spec.events.len(), false);
        for (sum, count) in self.counts.iter_mut().zip(&stats.suspects) {
            *sum += count;
        }
        self.broken += stats.broken();
        self.steps += steps;
        self.episodes += stats.episodes + stats.broken();
        let mut new = Vec::new();
        for (k, event) in spec.events.iter().enumerate() {
            if !self.said[k] && self.suspicious(k, event, spec) {
                self.said[k] = true;
                new.push(self.line(k, event, spec));
            }
        }
        new
    }

    /// Every event that more environments broke after than chance has it.
    pub(crate) fn lines(&self, spec: &EnvSpec) -> Vec<String> {
        let each = spec.events.iter().enumerate();
        each.filter(|(k, event)| self.suspicious(*k, event, spec))
            .map(|(k, event)| self.line(k, event, spec))
            .collect()
    }

    fn count(&self, k: usize) -> u64 {
        self.counts.get(k).copied().unwrap_or(0)
    }

    fn chance(&self, event: &EventSpec, spec: &EnvSpec) -> f64 {
        event.by_chance(self.broken, self.steps, self.episodes, spec.num_envs)
    }

    /// Beyond three standard deviations of a count with the mean of chance, and twice that mean.
    fn suspicious(&self, k: usize, event: &EventSpec, spec: &EnvSpec) -> bool {
        let (count, chance) = (self.count(k), self.chance(event, spec));
        count >= ENOUGH && count as f64 > (chance + 3.0 * chance.sqrt()).max(2.0 * chance)
    }

    fn line(&self, k: usize, event: &EventSpec, spec: &EnvSpec) -> String {
        let (count, broken, name) = (self.count(k), self.broken, &event.name);
        let how = match event.when {
            EventTime::Startup => format!(
                "were the third or a later break of their environment, which keeps the numbers of \
                 the event \"{name}\" of startup"
            ),
            EventTime::Reset | EventTime::Interval => {
                format!("came within {} control steps after the event \"{name}\"", EventSpec::SOON)
            }
        };
        format!("{count} of {broken} breaks {how}; {:.1} would by chance", self.chance(event, spec))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(when: EventTime, every: f64) -> EventSpec {
        EventSpec { name: "push".into(), when, soon: 10.0, every, warnings: Vec::new() }
    }

    #[test]
    fn chance_is_the_share_of_steps_that_are_soon_after() {
        let push = event(EventTime::Interval, 100.0);
        assert_eq!(push.by_chance(50, 10_000, 20, 64), 5.0);
        let reset = event(EventTime::Reset, 0.0);
        assert_eq!(reset.by_chance(50, 10_000, 20, 64), 1.0);
        // Each of two environments breaks once on average: E[(X - 2)+] = 3/e - 1.
        let startup = event(EventTime::Startup, 0.0);
        let each = startup.by_chance(2, 10_000, 20, 2) / 2.0;
        assert!((each - (3.0 / std::f64::consts::E - 1.0)).abs() < 1e-12, "{each}");
    }
}
