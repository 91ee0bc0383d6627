//! `[[curriculum]]`: numbers that follow a schedule.

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
    /// (`task.reward.effort.weight`, `task.params.push`, `task.reset[0].uniform[1]`), or
    /// `env.num_envs`.
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

/// `a.b[2].c` in parts.
fn parts(key: &str) -> impl Iterator<Item = &str> {
    key.split(['.', '[', ']']).filter(|s| !s.is_empty())
}

fn find<'a>(task: &'a mut Value, key: &str) -> Option<&'a mut Value> {
    let mut path = parts(key);
    (path.next() == Some("task")).then_some(())?;
    let mut node = task;
    for part in path {
        node = match node {
            Value::Table(t) => t.get_mut(part)?,
            Value::Array(items) => {
                let at = element(items, part)?;
                items.get_mut(at)?
            }
            _ => return None,
        };
    }
    matches!(node, Value::Float(_) | Value::Integer(_)).then_some(node)
}

fn name(v: &Value) -> Option<&str> {
    v.get("name").and_then(Value::as_str)
}

fn element(items: &[Value], part: &str) -> Option<usize> {
    let mut named = items.iter().enumerate().filter(|(_, v)| name(v) == Some(part));
    match (named.next(), named.next()) {
        // Of different agents: a number says which.
        (Some((_, item)), Some(_)) if item.get("agents").is_some() => None,
        (Some((at, _)), _) => Some(at),
        (None, _) => part.parse().ok().filter(|i| *i < items.len()),
    }
}

/// What a part of a key leads to.
fn part_of<'a>(node: &'a Value, part: &str) -> Option<&'a Value> {
    match node {
        Value::Table(t) => t.get(part),
        Value::Array(items) => element(items, part).and_then(|i| items.get(i)),
        _ => None,
    }
}

/// Whether two keys are names of one number.
pub(super) fn same_number(task: &Value, a: &str, b: &str) -> bool {
    let at = |key: &str| parts(key).skip(1).try_fold(task, part_of);
    at(a).zip(at(b)).is_some_and(|(a, b)| std::ptr::eq(a, b))
}

/// Whether `key` is a number of the task; else the mistake and the right form.
fn leads_to_number(task: &Value, key: &str) -> Result<(), (String, Option<String>)> {
    let mut path = parts(key);
    if path.next() != Some("task") {
        let help = "a number of [task] such as task.reward.NAME.weight, or env.num_envs";
        return Err((format!("\"{key}\" cannot follow a schedule"), Some(help.into())));
    }
    let mut node = task;
    for part in path {
        node = part_of(node, part).ok_or_else(|| {
            let known: Vec<&str> = match node {
                Value::Table(t) => t.keys().map(String::as_str).collect(),
                Value::Array(items) => items.iter().filter_map(name).collect(),
                _ => Vec::new(),
            };
            let several = (0..known.len()).filter(|i| known[*i] == part);
            let several: Vec<String> = several.map(|i| format!("[{i}]")).collect();
            let help = match nearest(part, known.iter().copied()) {
                _ if several.len() > 1 => {
                    let which = several.join(" or ");
                    let why = format!("{key}: several are called \"{part}\"");
                    return (why, Some(format!("write {which} in place of .{part}")));
                }
                Some(near) => Some(format!("did you mean \"{near}\"?")),
                None if known.is_empty() => None,
                None => Some(format!("there are {}", known.join(", "))),
            };
            (format!("{key}: there is no \"{part}\""), help)
        })?;
    }
    match node {
        Value::Float(_) => Ok(()),
        // Whole numbers are sizes of what environments remember.
        Value::Integer(_) => {
            let help = "histories and delays stay as they are while a task is trained";
            let what = "is a number of control steps and cannot follow a schedule";
            Err((format!("{key} {what}"), Some(help.into())))
        }
        _ => Err((format!("{key} is not a number"), None)),
    }
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
