//! Settings that may differ when a run goes on.

use crate::run::error::RunError;
use ostler_learn::config::Config;
use ostler_sim::config::MotionFile;
use std::path::Path;
use toml::Value;

/// Keys that may change on resume: none of them changes what has been computed, and
/// those that change what will be computed say so by their meaning.
pub const MAY_CHANGE: &[&str] = &[
    "description",
    "name",
    "runner.max_iterations",
    "runner.save_interval",
    "runner.keep_checkpoints",
    "runner.stop_at_return",
    "runner.eval_interval",
    "runner.eval_episodes",
    "runner.eval_noise",
    "runner.supervise",
    "runner.max_restarts",
    "runner.peers_silence_s",
    "runner.peers_start_s",
    "log",
    "memory",
    // What a run did, and what it does about the next trouble.
    "back_off",
    "guard",
    "fault",
    // The simulation's bits do not depend on it.
    "sim.threads",
    // Any collector goes on from any other's checkpoint.
    "collector.kind",
    "collector.workers",
    "collector.max_staleness",
    "collector.refresh_interval",
    "collector.preemptive_threshold",
    "collector.storing_device",
    "collector.worker_timeout_s",
    "collector.shutdown_timeout_s",
    "ppo.staleness_correction",
    // The run has its kernel: sim.kernel, which may not change.
    "sim.specialize",
    // Compared by the content of its files.
    "task.robot",
    "task.robot_folder",
];

/// Refuses a configuration that would make the run another one.
///
/// # Errors
/// Names every key that differs, with both values.
pub(crate) fn same_run(old: &Config, new: &Config, run: &Path) -> Result<(), RunError> {
    let differing = others(old, new);
    if differing.is_empty() {
        return Ok(());
    }
    Err(RunError::Usage(format!(
        "cannot go on with {} under another configuration:\n  {}\nkeys that may change on resume: {}; for anything else start a new run, from these weights by --init-from {0}",
        run.display(),
        differing.join("\n  "),
        may_change()
    )))
}

/// What makes the new configuration another run's: a key with both values, each.
pub(in crate::run) fn others(old: &Config, new: &Config) -> Vec<String> {
    let tree = |c: &Config| Value::try_from(c).unwrap_or(Value::Boolean(false));
    let mut all = differing(&tree(old), &tree(new));
    all.extend(other_tiles(old, new));
    all.extend(other_motions(old, new));
    all
}

/// The keys that may change, in words; those of files count by what the files hold.
fn may_change() -> String {
    let all = MAY_CHANGE.iter().filter(|key| !key.starts_with("task."));
    all.copied().collect::<Vec<_>>().join(", ")
}

/// What differs, but for keys that may change: a key with both values, each.
pub(in crate::run) fn differing(old: &Value, new: &Value) -> Vec<String> {
    let mut all = Vec::new();
    compare(old, new, "", &mut all);
    all
}

/// Files of a terrain's tiles that hold something else.
fn other_tiles(old: &Config, new: &Config) -> Vec<String> {
    let [before, now] = [old, new].map(|c| c.task.tiles().collect::<Vec<_>>());
    let pairs = before.into_iter().zip(now).enumerate();
    let others = pairs.filter(|(_, (a, b))| a.map(|t| t.1) != b.map(|t| t.1));
    let name = |t: Option<(&str, _)>| t.map_or("none", |(name, _)| name).to_string();
    let line = |(i, (a, b))| {
        let (was, is) = (name(a), name(b));
        format!("task.terrain.kinds[{i}].file: {is} holds something else than {was} did")
    };
    others.map(line).collect()
}

/// Motions that hold something else; a run has copies, by other names.
fn other_motions(old: &Config, new: &Config) -> Vec<String> {
    let pairs = old.task.motion_files.iter().zip(&new.task.motion_files).enumerate();
    let same = |a: &[MotionFile], b: &[MotionFile]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| a.bytes == b.bytes)
    };
    let others = pairs.filter(|(_, (a, b))| !same(a, b));
    let line =
        |(i, _)| format!("task.reference[{i}].files: they hold something else than they did");
    others.map(line).collect()
}

fn compare(old: &Value, new: &Value, path: &str, out: &mut Vec<String>) {
    // Headers are compared by their checksums, tiles and motions by what they hold.
    let parts = ["task.native[", "task.terrain.kinds["];
    let file = path.ends_with("].file") && parts.iter().any(|p| path.starts_with(p));
    let motions = path.starts_with("task.reference[") && path.ends_with("].files");
    // A run has its own copy of a teacher.
    let some = |v: &Value| v.as_str().is_some_and(|name| !name.is_empty());
    let teacher = path == "ppo.imitation.teacher" && some(old) && some(new);
    if MAY_CHANGE.contains(&path) || file || motions || teacher {
        return;
    }
    match (old, new) {
        (Value::Table(a), Value::Table(b)) => {
            let keys: std::collections::BTreeSet<&String> = a.keys().chain(b.keys()).collect();
            for key in keys {
                let at = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                match (a.get(key), b.get(key)) {
                    (Some(x), Some(y)) => compare(x, y, &at, out),
                    (Some(x), None) => out.push(format!("{at}: was {x}, is not set")),
                    (None, Some(y)) => out.push(format!("{at}: was not set, is {y}")),
                    (None, None) => {}
                }
            }
        }
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => {
            for (i, (x, y)) in a.iter().zip(b).enumerate() {
                compare(x, y, &format!("{path}[{i}]"), out);
            }
        }
        (a, b) if a == b => {}
        (a, b) => out.push(format!("{path}: was {a}, is {b}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn listed_keys_may_change_and_all_others_are_named() {
        let old = Config::default();
        let mut new = old.clone();
        new.runner.max_iterations = 7;
        new.log.tensorboard = false;
        same_run(&old, &new, Path::new("r")).unwrap();
        new.ppo.gamma = 0.5;
        new.actor.hidden_dims[1] = 3;
        let e = same_run(&old, &new, Path::new("r")).unwrap_err().to_string();
        assert!(e.contains("ppo.gamma: was 0.99, is 0.5"), "{e}");
        assert!(e.contains("actor.hidden_dims[1]: was 256, is 3"), "{e}");
        assert!(!e.contains("tensorboard:"), "{e}");
        let (_, listed) = e.split_once("may change on resume: ").unwrap();
        for key in ["runner.max_iterations", "collector.kind", "guard", "memory", "back_off"] {
            assert!(listed.contains(&format!(" {key},")), "{key}: {e}");
        }
        assert!(listed.contains("ppo.staleness_correction") && !listed.contains("task."), "{e}");
    }
}
