//! What follows the run's progress: numbers of the task that follow a schedule, and the
//! share of the run that is done, which learning rates follow.

use super::counters::Counters;
use super::engine::explained;
use super::error::RunError;
use super::pace::Pace;
use super::parts::Parts;
use super::setup::Setup;
use crate::log::metrics::Record;
use ostler_learn::config::Config;
use ostler_learn::config::Loaded;
use ostler_learn::config::curriculum::{ITERATION, NUM_ENVS, Schedule, Stage, with_values};
use ostler_sim::BatchEnv;
use ostler_sim::config::{ConfigError, TaskConfig};
use ostler_sim::env::{EnvError, EnvSpec};
use ostler_sim::model::summary::short;
use ostler_sim::names::{few, nearest};

/// Where each schedule of the configuration is: the value of its `over`, where there
/// is one already.
pub(super) type Progress = Vec<Option<f64>>;

/// The numbers of the task as the schedules of `config` have them after `iteration`, where they have
/// come as far as `progress`.
pub(super) fn stage(config: &Config, iteration: u64, progress: &[Option<f64>]) -> Stage {
    let all = config.curriculum.iter().enumerate().filter(|(_, s)| s.key != NUM_ENVS);
    all.map(|(i, s)| (s.key.clone(), now(s, iteration, progress.get(i)))).collect()
}

/// The task with these numbers.
pub(super) fn task_at(stage: &[(String, f64)], config: &Config) -> TaskConfig {
    with_values(&config.task, stage.iter().map(|(key, value)| (key.as_str(), *value)))
}

/// Tries the task's numbers where schedules bend, each with the others over the same number where
/// they are then, and all else as a run begins: what `env` refuses hours later it refuses now.
///
/// # Errors
/// The task does not take a value; its schedule is named.
pub(crate) fn try_out(loaded: &Loaded, env: &mut BatchEnv) -> Result<(), RunError> {
    /// So many are tried at the most: the ends are among them.
    const MOST: usize = 128;
    let config = &loaded.config;
    let all: Vec<_> = config.curriculum.iter().filter(|s| s.key != NUM_ENVS).collect();
    if all.is_empty() {
        return Ok(());
    }
    let mut bends: Vec<(&str, f64)> =
        all.iter().flat_map(|s| s.points.iter().map(|p| (s.over.as_str(), p[0]))).collect();
    bends.sort_by(|a, b| a.0.cmp(b.0).then(a.1.total_cmp(&b.1)));
    bends.dedup();
    let stride = bends.len().div_ceil(MOST).max(1);
    let last = bends.len().saturating_sub(1);
    for (_, (over, x)) in bends.iter().enumerate().filter(|(i, _)| i % stride == 0 || *i == last) {
        let at = |s: &&Schedule| if s.over == *over { *x } else { f64::NEG_INFINITY };
        let stage: Stage = all.iter().map(|s| (s.key.clone(), s.at(at(s)))).collect();
        if let Err(e) = env.set_task(&task_at(&stage, config)) {
            return Err(loaded.places.explain(&refused(config, over, *x, e)).into());
        }
    }
    env.set_task(&config.task).map_err(|e| explained(loaded, e))
}

/// The mistake of a point: where `over` is `x`, the task is refused for `e`.
fn refused(config: &Config, over: &str, x: f64, e: EnvError) -> ConfigError {
    let mut all = config.curriculum.iter().enumerate().filter(|(_, s)| s.key != NUM_ENVS);
    let bends = |s: &Schedule| s.points.iter().position(|p| p[0] == x);
    let place = all.find_map(|(i, s)| Some((i, bends(s).filter(|_| s.over == over)?)));
    let (i, point) = place.unwrap_or_default();
    // The message alone: its own place would be quoted within a line.
    let (why, help) = match e {
        EnvError::Config(e) => (format!("{}: {}", e.path, e.message), e.help),
        other => (other.to_string(), None),
    };
    let why = format!("where \"{over}\" is {x} the task cannot be: {why}");
    let error = ConfigError::new(format!("curriculum[{i}].points[{point}]"), why);
    match help {
        Some(help) => error.help(help),
        None => error,
    }
}

/// The value of a schedule after `iteration`, which has come as far as `progress`.
fn now(schedule: &Schedule, iteration: u64, progress: Option<&Option<f64>>) -> f64 {
    let reached = match schedule.over == ITERATION {
        true => Some(iteration as f64),
        false => progress.copied().flatten(),
    };
    value(schedule, reached)
}

/// The schedules of a run.
pub(super) struct Schedules {
    /// How far each has come.
    pub progress: Progress,
    /// Their values in the present iteration, or in the last one of a run that goes on.
    pub stage: Stage,
    /// The collector's environments have them.
    pub applied: bool,
    /// Whether the numbers that they follow were looked for in the logs.
    looked_at: bool,
    /// How much of the run is done.
    pub pace: Pace,
}

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

impl Schedules {
    /// As far as `progress`, of a checkpoint that was trained at `stage`, has come.
    pub(crate) fn new(progress: Progress, stage: Stage, pace: Pace) -> Self {
        Self { progress, stage, applied: false, looked_at: false, pace }
    }

    /// Whether every number has its last value, so that a return counts as the run's goal.
    pub(crate) fn complete(&self, config: &Config) -> bool {
        let all = config.curriculum.iter().filter(|s| s.key != NUM_ENVS);
        all.zip(&self.stage).all(|(s, (_, now))| s.points.last().is_none_or(|p| p[1] == *now))
    }

    /// Notes how far the schedules have come; after an iteration's numbers are logged in
    /// `record`, so that a checkpoint knows it. `evaluated`: whether evaluations are made.
    pub(crate) fn measure(
        &mut self,
        setup: &Setup,
        iteration: u64,
        record: &Record,
        evaluated: bool,
    ) {
        self.note(setup, iteration, record);
        if !self.looked_at {
            self.looked_at = true;
            let unlogged = over_nothing(setup.config(), record, &setup.spec, evaluated);
            for line in unlogged.into_iter().chain(beyond_the_run(setup.config())) {
                tracing::warn!("{line}");
            }
        }
    }

    /// The same of a record with some of an iteration's numbers.
    pub(crate) fn note(&mut self, setup: &Setup, iteration: u64, record: &Record) {
        let schedules = &setup.config().curriculum;
        self.progress.resize(schedules.len(), None);
        for (schedule, x) in schedules.iter().zip(&mut self.progress) {
            let logged = record.get(&schedule.over);
            *x = reached(schedule, *x, iteration, logged);
        }
    }

    /// Brings the task's numbers to where their schedules are, before an iteration. Returns at
    /// other numbers are not comparable: which was the best is told anew.
    ///
    /// # Errors
    /// The task does not take a value.
    pub(crate) fn follow(
        &mut self,
        setup: &Setup,
        counters: &mut Counters,
        parts: &mut Parts,
    ) -> Result<(), RunError> {
        let config = setup.config();
        if config.curriculum.is_empty() {
            return Ok(());
        }
        let values = stage(config, counters.iteration, &self.progress);
        if self.applied && values == self.stage {
            return Ok(());
        }
        let task = task_at(&values, config);
        parts.collector.set_task(&task).map_err(|e| explained(&setup.loaded, e))?;
        if values != self.stage {
            counters.best = None;
        }
        (self.stage, self.applied) = (values, true);
        Ok(())
    }

    /// Number of environments by the schedule of `env.num_envs`, if there is one.
    pub(crate) fn num_envs(&self, config: &Config, iteration: u64) -> Option<usize> {
        let mut all = config.curriculum.iter().enumerate();
        let (i, schedule) = all.find(|(_, s)| s.key == NUM_ENVS)?;
        Some(now(schedule, iteration, self.progress.get(i)) as usize)
    }
}

/// A sentence for each schedule over a number that is never logged.
fn over_nothing(config: &Config, record: &Record, spec: &EnvSpec, evaluated: bool) -> Vec<String> {
    let mut tags: Vec<String> = record.scalars().map(|s| s.0.to_string()).collect();
    // These come once there is something to count.
    tags.extend(
        of_task(config, spec).into_iter().filter(|tag| evaluated || !tag.starts_with("Eval/")),
    );
    if evaluated {
        let names = [
            "mean_reward",
            "ci95_reward",
            "std_reward",
            "quantile_5_reward",
            "mean_episode_length",
        ];
        tags.extend(names.map(|n| format!("Eval/{n}")));
    }
    let nowhere = config
        .curriculum
        .iter()
        .filter(|s| s.over != ITERATION && !s.over.starts_with("Guard/"))
        .filter(|s| !tags.contains(&s.over));
    nowhere.map(|s| stays(s, &tags)).collect()
}

/// Where rewards, terminations and metrics of a task are logged, and metrics of evaluations.
const TERMS: [&str; 4] = ["Episode_Reward", "Episode_Termination", "Metrics", "Eval/Metrics"];

const LEVEL: &str = "Terrain/mean_level";
const CLIPPED: &str = "Train/clipped_rewards";
const AGENTS: &str = "Train/agent_reward";
/// Of an iteration with valid steps.
const PER_STEP: &str = "Train/reward_per_step";

/// The numbers that a task's terms, ground and agents are logged as, once an episode has ended.
fn of_task(config: &Config, spec: &EnvSpec) -> Vec<String> {
    let metrics: Vec<String> = spec.metrics.iter().map(|m| m.name.clone()).collect();
    let names = [&spec.reward_names, &spec.termination_names, &metrics, &metrics];
    let groups = TERMS.iter().zip(names);
    let all = groups.flat_map(|(group, names)| names.iter().map(move |n| (group, n)));
    let terms = all.map(|(group, name)| format!("{group}/{name}"));
    let agents = spec.agents.iter().map(|agent| format!("{AGENTS}/{}", agent.name));
    let clipped = config.task.rewards.clip.map(|_| CLIPPED);
    let level = (spec.levels > 0).then_some(LEVEL);
    let single = [clipped, level, Some(PER_STEP)].into_iter().flatten().map(String::from);
    terms.chain(agents).chain(single).collect()
}

/// A sentence for each schedule that a run never follows to its end: over a term that the task
/// lacks, or over more iterations than there are.
pub fn in_vain(config: &Config, spec: &EnvSpec) -> Vec<String> {
    let (schedules, tags) = (&config.curriculum, of_task(config, spec));
    let of_terms = |s: &&Schedule| {
        let mut groups = TERMS.into_iter().chain(["Terrain", AGENTS]);
        let by_task = groups.any(|group| s.over.starts_with(&format!("{group}/")));
        (by_task || s.over == CLIPPED) && !tags.contains(&s.over)
    };
    let unlogged = schedules.iter().filter(of_terms).map(|s| stays(s, &tags));
    unlogged.chain(beyond_the_run(config)).collect()
}

/// Schedules whose last points come after the run's last iteration. A line that ends where the
/// run does is one of an iteration more, and is meant.
fn beyond_the_run(config: &Config) -> Option<String> {
    let end = config.runner.max_iterations;
    let of_iterations = config.curriculum.iter().filter(|s| s.over == ITERATION);
    let told = of_iterations.filter_map(|s| {
        let [last, full] = *s.points.last()?;
        let reached = s.at(end.saturating_sub(1) as f64);
        let later = if s.in_steps() { last >= end as f64 } else { last > end as f64 };
        let later = later && reached != full;
        later.then(|| format!("{} comes to {}, and to {full} at {last}", s.key, short(reached)))
    });
    let told: Vec<_> = told.collect();
    (!told.is_empty()).then(|| {
        format!(
            "the curriculum goes on after the run's {end} iterations: {}; more \
             runner.max_iterations, or earlier points",
            few(&told, 4)
        )
    })
}

fn stays(s: &Schedule, tags: &[String]) -> String {
    let near = nearest(&s.over, tags.iter().map(String::as_str));
    let near = near.map_or(String::new(), |n| format!("; did you mean \"{n}\"?"));
    format!(
        "{} follows \"{}\", which is not logged, and stays at {}{near}",
        s.key,
        s.over,
        value(s, None)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_sim::Groups;
    use ostler_sim::env::ActionSpace;

    /// In the first iteration no episode may end.
    #[test]
    fn what_a_task_can_log_is_not_unknown_before_it_is_logged() {
        let schedule = |over: &str| Schedule {
            key: "task.params.push".into(),
            over: over.into(),
            points: vec![[0.0, 1.0], [9.0, 2.0]],
            steps: false,
            ratchet: true,
        };
        let curriculum = [LEVEL, CLIPPED].map(schedule).into();
        let mut config = Config { curriculum, ..Config::default() };
        let obs = Groups { policy: 1, critic: None };
        let mut spec = EnvSpec::plain(1, obs, ActionSpace::Continuous(1), 0.1, 10);
        let said = |config: &Config, spec: &EnvSpec| {
            let [train, check] =
                [over_nothing(config, &Record::default(), spec, true), in_vain(config, spec)];
            assert_eq!(train.len(), check.len(), "{train:?} {check:?}");
            train
        };
        let unknown = said(&config, &spec);
        assert!(unknown.len() == 2 && unknown[0].contains("which is not logged"), "{unknown:?}");
        spec.levels = 3;
        config.task.rewards.clip = Some([0.0, 1.0]);
        assert_eq!(said(&config, &spec), [""; 0]);
    }

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
