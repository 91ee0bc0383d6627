//! Numbers of the task that follow a schedule.

use super::Run;
use super::error::RunError;
use super::parts::Parts;
use crate::config::curriculum::{ITERATION, NUM_ENVS, Schedule, with_values};
use ostler_sim::names::nearest;

/// Where each schedule of the configuration is: the value of its `over`, where there
/// is one already.
pub(super) type Progress = Vec<Option<f64>>;

/// How far a schedule has come. Without a measurement it stays where it was.
fn reached(
    schedule: &Schedule,
    before: Option<f64>,
    iteration: u64,
    logged: Option<f64>,
) -> Option<f64> {
    if schedule.over == ITERATION {
        return Some(iteration as f64);
    }
    match (logged.filter(|x| x.is_finite()), before) {
        (Some(x), Some(before)) if schedule.ratchet => Some(before.max(x)),
        (Some(x), _) => Some(x),
        (None, before) => before,
    }
}

/// Its value there; the first one before anything is reached.
fn value(schedule: &Schedule, reached: Option<f64>) -> f64 {
    schedule.at(reached.unwrap_or(f64::NEG_INFINITY))
}

impl Run {
    /// Notes how far the schedules have come; after an iteration's numbers are logged,
    /// so that a checkpoint knows it.
    pub(super) fn measure_schedules(&mut self) {
        let schedules = &self.loaded.config.curriculum;
        self.progress_of.resize(schedules.len(), None);
        for (schedule, x) in schedules.iter().zip(&mut self.progress_of) {
            let logged = self.record.get(&schedule.over);
            *x = reached(schedule, *x, self.counters.iteration, logged);
        }
        if !self.schedules_looked_at {
            self.schedules_looked_at = true;
            for line in self.schedules_over_nothing() {
                tracing::warn!("{line}");
            }
        }
    }

    /// A sentence for each schedule over a number that is never logged.
    fn schedules_over_nothing(&self) -> Vec<String> {
        let mut tags: Vec<String> = self.record.scalars().map(|s| s.0.to_string()).collect();
        // These come once there is something to count.
        let in_group = |group: &str, names: &[String]| -> Vec<String> {
            names.iter().map(|n| format!("{group}/{n}")).collect()
        };
        tags.extend(in_group("Episode_Reward", &self.spec.reward_names));
        tags.extend(in_group(
            "Episode_Termination",
            &self.spec.termination_names,
        ));
        if self.evaluator.is_some() {
            let names = [
                "mean_reward",
                "ci95_reward",
                "std_reward",
                "quantile_5_reward",
                "mean_episode_length",
            ];
            tags.extend(names.map(|n| format!("Eval/{n}")));
        }
        let measured = self.loaded.config.curriculum.iter();
        let nowhere = measured
            .filter(|s| s.over != ITERATION && !s.over.starts_with("Guard/"))
            .filter(|s| !tags.contains(&s.over));
        let line = |s: &Schedule| {
            let near = nearest(&s.over, tags.iter().map(String::as_str));
            let near = near.map_or(String::new(), |n| format!("; did you mean \"{n}\"?"));
            format!(
                "{} follows \"{}\", which is not logged, and stays at {}{near}",
                s.key,
                s.over,
                value(s, None)
            )
        };
        nowhere.map(line).collect()
    }

    /// Brings the task's numbers to where their schedules are, before an iteration.
    ///
    /// # Errors
    /// The task does not take a value.
    pub(super) fn follow_schedules(&mut self, parts: &mut Parts) -> Result<(), RunError> {
        if self.loaded.config.curriculum.is_empty() {
            return Ok(());
        }
        let pairs = self.schedules().filter(|(s, _)| s.key != NUM_ENVS);
        let values: Vec<(String, f64)> = pairs.map(|(s, v)| (s.key.clone(), v)).collect();
        if values == self.scheduled {
            return Ok(());
        }
        let changes = values.iter().map(|(key, value)| (key.as_str(), *value));
        let task = with_values(&self.loaded.config.task, changes);
        parts
            .collector
            .set_task(&task)
            .map_err(|e| super::load::explained(&self.loaded, e))?;
        self.scheduled = values;
        Ok(())
    }

    /// Schedules with their values of now.
    pub(super) fn schedules(&self) -> impl Iterator<Item = (&Schedule, f64)> {
        let all = self.loaded.config.curriculum.iter();
        all.enumerate().map(|(i, schedule)| {
            let reached = match schedule.over == ITERATION {
                true => Some(self.counters.iteration as f64),
                false => self.progress_of.get(i).copied().flatten(),
            };
            (schedule, value(schedule, reached))
        })
    }

    /// Number of environments by the schedule of `env.num_envs`, if there is one.
    pub(super) fn scheduled_envs(&self) -> Option<usize> {
        let (_, n) = self.schedules().find(|(s, _)| s.key == NUM_ENVS)?;
        Some(n as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_schedule_waits_for_a_number_and_does_not_go_back() {
        let mut s = Schedule {
            key: "task.params.push".into(),
            over: "Train/mean_reward".into(),
            points: vec![[0.0, 1.0], [100.0, 2.0]],
            steps: false,
            ratchet: true,
        };
        assert_eq!(reached(&s, None, 5, None), None);
        assert_eq!(reached(&s, None, 5, Some(f64::NAN)), None);
        assert_eq!(value(&s, None), 1.0);
        assert_eq!(reached(&s, None, 5, Some(50.0)), Some(50.0));
        assert_eq!(reached(&s, Some(50.0), 5, Some(20.0)), Some(50.0));
        assert_eq!(reached(&s, Some(50.0), 5, None), Some(50.0));
        s.ratchet = false;
        assert_eq!(reached(&s, Some(50.0), 5, Some(20.0)), Some(20.0));
        s.over = ITERATION.into();
        assert_eq!(reached(&s, Some(50.0), 7, Some(20.0)), Some(7.0));
    }
}
