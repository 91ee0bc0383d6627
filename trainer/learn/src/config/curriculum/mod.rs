//! `[[curriculum]]`: numbers that follow a schedule.

mod envs;
mod key;

pub use envs::Envs;
pub(super) use key::same_number;

use key::{find, leads_to_number, parts};
use ostler_sim::config::{ConfigError, TaskConfig};
use ostler_sim::names::nearest;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use toml::Value;

/// The one number outside of the task that can follow a schedule.
pub const NUM_ENVS: &str = "env.num_envs";
/// How the names of logged numbers begin (docs/metrics.md).
const GROUPS: [&str; 16] = [
    "Train/",
    "Eval/",
    "Metrics/",
    "Episode_Reward/",
    "Episode_Termination/",
    "Start/",
    "Terrain/",
    "Loss/",
    "Policy/",
    "Replay/",
    "Search/",
    "SelfPlay/",
    "Curriculum/",
    "Guard/",
    "Perf/",
    "Memory/",
];
/// `over` for schedules over iterations.
pub const ITERATION: &str = "iteration";

/// Numbers of the task by their keys, as a curriculum has them at some time.
pub type Stage = Vec<(String, f64)>;

/// `[[curriculum]]`: one number and its schedule.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Schedule {
    /// Any number of `[task]`, by the path that `--set` takes
    /// (`task.reward.effort.weight`, `task.params.push`, `task.reset[0].uniform[1]`), but for
    /// what is drawn once, at startup, or `env.num_envs`.
    pub key: String,
    /// The number that it follows: `"iteration"` (iterations done), or a number that is logged,
    /// such as `"Train/mean_reward"` or `"Episode_Termination/fallen"`.
    #[serde(default = "iteration")]
    pub over: String,
    /// `[over, value]`, `over` growing: straight lines between, constant beyond.
    pub points: Vec<[f64; 2]>,
    /// Steps instead of lines: each value holds from its point to the next. Always so
    /// for `env.num_envs`.
    #[serde(default)]
    pub steps: bool,
    /// The largest value of a logged number counts, also when it falls back.
    #[serde(default = "yes")]
    pub ratchet: bool,
}

fn iteration() -> String {
    ITERATION.into()
}

fn yes() -> bool {
    true
}

impl Schedule {
    /// Whether each value holds up to the next point.
    pub fn in_steps(&self) -> bool {
        self.steps || self.key == NUM_ENVS
    }

    /// The value where `over` is `x`; before the first point it is the first value.
    pub fn at(&self, x: f64) -> f64 {
        let after = self.points.iter().position(|p| p[0] > x);
        match after {
            Some(0) => self.points.first().map_or(f64::NAN, |p| p[1]),
            None => self.points.last().map_or(f64::NAN, |p| p[1]),
            Some(i) => {
                let ([x0, y0], [x1, y1]) = (self.points[i - 1], self.points[i]);
                if self.in_steps() {
                    return y0;
                }
                y0 + (y1 - y0) * (x - x0) / (x1 - x0)
            }
        }
    }

    pub(super) fn validate(&self, at: &str, task: &Value, errors: &mut Vec<ConfigError>) {
        if self.points.is_empty() {
            let message = "a schedule without points";
            errors.push(
                ConfigError::new(format!("{at}.points"), message)
                    .help("points = [[0, 0.0], [500, 1.0]] leads from 0 to 1 in 500 iterations"),
            );
        }
        for (i, pair) in self.points.windows(2).enumerate() {
            if pair[1][0].partial_cmp(&pair[0][0]) != Some(std::cmp::Ordering::Greater) {
                let message = format!("{} does not come after {}", pair[1][0], pair[0][0]);
                let path = format!("{at}.points[{}][0]", i + 1);
                errors.push(ConfigError::new(path, message).help("points are in growing order"));
            }
        }
        if self.over != ITERATION && !GROUPS.iter().any(|group| self.over.starts_with(group)) {
            let what = format!("\"{}\" is not logged", self.over);
            let near = nearest(&self.over, [ITERATION]).is_some() || self.over.contains("step");
            let help = match near {
                true => "\"iteration\" counts iterations".to_owned(),
                false => format!(
                    "\"iteration\", or a logged number, which begins with {}",
                    GROUPS.join(", ")
                ),
            };
            errors.push(ConfigError::new(format!("{at}.over"), what).help(help));
        }
        if self.key == NUM_ENVS {
            for (i, p) in self.points.iter().enumerate() {
                if !(p[1] >= 1.0 && p[1].fract() == 0.0 && p[1] <= f64::from(1 << 22)) {
                    let path = format!("{at}.points[{i}][1]");
                    let message = format!("{} environments are not possible", p[1]);
                    errors.push(ConfigError::new(path, message));
                }
            }
            return;
        }
        if self.key.starts_with("task.native[") || self.key.starts_with("task.native.") {
            let message = "sizes of a native function stay as they are while a task is trained";
            let error = ConfigError::new(format!("{at}.key"), message);
            errors.push(error.help("an input such as param.NAME can follow a schedule"));
            return;
        }
        if let Err((message, help)) = leads_to_number(task, &self.key) {
            let error = ConfigError::new(format!("{at}.key"), message);
            errors.push(match help {
                Some(help) => error.help(help),
                None => error,
            });
        }
    }
}

/// The task with other numbers; keys that lead nowhere are left out (they were refused
/// when the configuration was read).
pub fn with_values<'a>(
    task: &TaskConfig,
    values: impl Iterator<Item = (&'a str, f64)>,
) -> TaskConfig {
    let mut changed = tree(task);
    for (key, value) in values {
        if let Some(slot) = find(&mut changed, key) {
            *slot = Value::Float(value);
        }
    }
    TaskConfig::deserialize(changed).map_or_else(|_| task.clone(), |c| with_files_of(c, task))
}

/// The task with weights of rewards, and parameters, that are 0 and that schedules raise as large
/// as they become.
pub fn raised(task: &TaskConfig, schedules: &[Schedule]) -> TaskConfig {
    let mut table = tree(task);
    let raised = schedules.iter().filter_map(|schedule| {
        let mut path = parts(&schedule.key).skip(1);
        let grows = match path.next()? {
            "reward" => path.last() == Some("weight"),
            table => table == "params",
        };
        let zero = match find(&mut table, &schedule.key)? {
            Value::Float(x) => *x == 0.0,
            _ => false,
        };
        let values = schedule.points.iter().map(|point| point[1]);
        let most = values.max_by(|a, b| a.abs().total_cmp(&b.abs()))?;
        (grows && zero).then_some((schedule.key.as_str(), most))
    });
    let raised: Vec<(&str, f64)> = raised.collect();
    match raised.is_empty() {
        true => task.clone(),
        false => with_values(task, raised.into_iter()),
    }
}

/// A task that was read from a table, with what of `task` is not part of it: what its files hold.
pub fn with_files_of(read: TaskConfig, task: &TaskConfig) -> TaskConfig {
    TaskConfig {
        agents: task.agents.clone(),
        native_code: task.native_code.clone(),
        tile_files: task.tile_files.clone(),
        motion_files: task.motion_files.clone(),
        ..read
    }
}

pub(super) fn tree(task: &TaskConfig) -> Value {
    Value::try_from(task).unwrap_or(Value::Boolean(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use ostler_sim::config::{ResetTerm, RewardTerm};

    fn schedule(key: &str, points: &[[f64; 2]]) -> Schedule {
        Schedule {
            key: key.into(),
            over: iteration(),
            points: points.to_vec(),
            steps: false,
            ratchet: true,
        }
    }

    fn task() -> TaskConfig {
        TaskConfig {
            params: [("push".to_string(), 1.0)].into(),
            reward: vec![RewardTerm {
                name: "effort".into(),
                expr: "1".into(),
                weight: -1.0,
                agents: None,
            }],
            reset: vec![ResetTerm {
                target: "qpos".into(),
                uniform: Some([-0.1, 0.1].into()),
                ..ResetTerm::default()
            }],
            ..TaskConfig::default()
        }
    }

    #[test]
    fn lines_between_points_and_constant_beyond() {
        let mut s = schedule("task.params.push", &[[10.0, 1.0], [20.0, 3.0], [30.0, 0.0]]);
        let at = |s: &Schedule, x: f64| s.at(x);
        for (x, y) in [(0.0, 1.0), (10.0, 1.0), (15.0, 2.0), (20.0, 3.0), (25.0, 1.5), (99.0, 0.0)]
        {
            assert_eq!(at(&s, x), y, "{x}");
        }
        s.steps = true;
        for (x, y) in [(0.0, 1.0), (19.9, 1.0), (20.0, 3.0), (30.0, 0.0)] {
            assert_eq!(at(&s, x), y, "{x}");
        }
        let s = schedule(NUM_ENVS, &[[0.0, 64.0], [10.0, 128.0]]);
        assert_eq!((at(&s, 9.0), at(&s, 10.0)), (64.0, 128.0));
    }

    #[test]
    fn numbers_are_found_by_name_and_by_index() {
        let values = [
            ("task.params.push", 5.0),
            ("task.reward.effort.weight", -0.5),
            ("task.reset[0].uniform[1]", 0.7),
        ];
        let changed = with_values(&task(), values.into_iter());
        assert_eq!(changed.params["push"], 5.0);
        assert_eq!(changed.reward[0].weight, -0.5);
        assert_eq!(changed.reset[0].uniform, Some([-0.1, 0.7].into()));
        assert_eq!(changed.reward[0].name, "effort");
    }

    #[test]
    fn what_is_nothing_at_first_is_as_large_as_it_becomes() {
        let mut task = task();
        let all = [
            schedule("task.params.push", &[[0.0, 0.0], [9.0, 2.0]]),
            schedule("task.reward.effort.weight", &[[0.0, 0.0], [5.0, -3.0], [9.0, 1.0]]),
            schedule("task.reset[0].uniform[1]", &[[0.0, 0.0], [9.0, 0.7]]),
        ];
        assert_eq!(raised(&task, &all), task, "what has a number keeps it");
        task.params.insert("push".into(), 0.0);
        task.reward[0].weight = 0.0;
        task.reset[0].uniform = Some([-0.1, 0.0].into());
        let raised = raised(&task, &all);
        assert_eq!((raised.params["push"], raised.reward[0].weight), (2.0, -3.0));
        assert_eq!(raised.reset[0].uniform, task.reset[0].uniform, "a range is no factor");
    }

    #[test]
    fn the_environments_of_a_run_follow_their_schedule() {
        let mut config = Config::default();
        config.env.num_envs = 64;
        config.runner.max_iterations = 10;
        let of = |config: &Config| (config.envs().least, config.envs().most, config.envs().in_all);
        assert_eq!(of(&config), (64, 64, 640.0));
        let mut all = schedule(NUM_ENVS, &[[2.0, 16.0], [3.0, 100.0], [7.5, 8.0], [10.0, 9000.0]]);
        config.curriculum = vec![all.clone()];
        // Three iterations, five and two; the last point is after the run.
        assert_eq!(of(&config), (8, 100, 3.0 * 16.0 + 5.0 * 100.0 + 2.0 * 8.0));
        let one_by_one: f64 = (0..10).map(|i| all.at(f64::from(i))).sum();
        assert_eq!(config.envs().in_all, one_by_one);
        all.over = "Train/mean_reward".into();
        config.curriculum = vec![all];
        assert_eq!(of(&config), (8, 9000, 90_000.0), "at most");
    }

    #[test]
    fn what_is_settled_before_a_run_is_refused_with_its_reason() {
        let table = |startup: &str| {
            let text = format!(
                "event = [{{ name = \"grip\", when = \"{startup}\", set = \"gravity\", range = [0.5, 1] }}]
                 [[observation]]
                 name = \"q\"
                 expr = \"qpos\"
                 history = 3
                 bias = {{ uniform = 0.1, when = \"{startup}\" }}
                 [terrain]
                 start_level = [0, 2]
                 kinds = [{{ kind = \"flat\" }}]"
            );
            toml::from_str::<TaskConfig>(&text).unwrap()
        };
        let found = |task: TaskConfig, key: &str| {
            let curriculum = vec![schedule(key, &[[0.0, 0.2], [9.0, 0.9]])];
            let config = Config { task, curriculum, ..Config::default() };
            config.check_curriculum().iter().map(ToString::to_string).collect::<Vec<_>>().join("")
        };
        for key in ["task.event.grip.range[0]", "task.observation.q.bias.uniform"] {
            assert_eq!(found(table("reset"), key), "");
            let said = found(table("startup"), key);
            assert!(said.contains("is drawn once for every environment, at startup"), "{said}");
            assert!(said.contains("when = \"reset\""), "{said}");
        }
        let said = found(table("reset"), "task.observation.q.history");
        assert!(said.contains("is a number of control steps and cannot follow"), "{said}");
        let said = found(table("reset"), "task.terrain.start_level[1]");
        assert!(
            said.contains("is a whole number") && said.contains("ground is laid out"),
            "{said}"
        );
        assert!(!said.contains("control steps"), "{said}");
    }

    #[test]
    fn mistakes_are_named_with_what_would_be_right() {
        let mut config = Config { task: task(), ..Config::default() };
        config.curriculum = vec![
            schedule("task.params.pish", &[[0.0, 1.0]]),
            schedule("task.reward.effort.name", &[[0.0, 1.0]]),
            schedule("ppo.gamma", &[[0.0, 1.0]]),
            schedule("task.params.push", &[[2.0, 1.0], [2.0, 3.0]]),
            schedule("task.params.push", &[]),
            schedule(NUM_ENVS, &[[0.0, 0.5]]),
        ];
        let all: Vec<String> = config.check_curriculum().iter().map(ToString::to_string).collect();
        for (found, expected) in all.iter().zip([
            "curriculum[0].key: task.params.pish: there is no \"pish\" (did you mean \"push\"?)",
            "curriculum[1].key: task.reward.effort.name is not a number",
            "curriculum[2].key: \"ppo.gamma\" cannot follow",
            "curriculum[3].points[1][0]: 2 does not come after 2",
            "curriculum[4].points: a schedule without points",
            "curriculum[4].key: task.params.push has a schedule already",
            "curriculum[5].points[0][1]: 0.5 environments",
        ]) {
            assert!(found.starts_with(expected), "{found}\n{expected}");
        }
        assert_eq!(all.len(), 7, "{all:?}");
        config.ppo.num_mini_batches = 100;
        config.curriculum = vec![schedule(NUM_ENVS, &[[0.0, 1.0], [9.0, 64.0]])];
        let all: Vec<String> = config.check_curriculum().iter().map(ToString::to_string).collect();
        assert_eq!(
            all,
            ["curriculum[0].points[0][1]: 1 environments give 24 samples for 100 minibatches"]
        );
    }
}
