//! Thousands of generated tasks: each is compiled, printed and evaluated, or refused with a place
//! that exists. None panics.

use super::fixture::{World, robot};
use super::generate::task;
use super::vary;
use crate::config::{Auto, ConfigError, EnvConfig, SimConfig, Specialize, TaskConfig};
use crate::env::results::Results;
use crate::env::{BatchEnv, EnvError, EpisodeStats};
use crate::task::emit::{Numbers, emit};
use ostler_lang::expr::Scratch;
use ostler_model::Model;
use std::sync::Arc;

/// The text at a path, if it is one of an expression.
fn written<'a>(cfg: &'a TaskConfig, path: &str) -> Option<&'a str> {
    if let Some(key) = path.strip_prefix("task.let.") {
        return cfg.lets.get(key).map(String::as_str);
    }
    let at = |prefix: &str| -> Option<usize> {
        let rest = path.strip_prefix(prefix)?;
        rest[..rest.find(']')?].parse().ok()
    };
    if let Some(i) = at("task.state[") {
        let s = cfg.state.get(i)?;
        return Some(if path.ends_with(".init") { &s.init } else { &s.update });
    }
    if let Some(i) = at("task.reset[") {
        return cfg.reset.get(i)?.expr.as_deref();
    }
    if let Some(i) = at("task.start.until[") {
        return cfg.start.as_ref()?.until.all().get(i).map(String::as_str);
    }
    at("task.reward[")
        .and_then(|i| Some(cfg.reward.get(i)?.expr.as_str()))
        .or_else(|| {
            at("task.observation[").and_then(|i| Some(cfg.observation.get(i)?.expr.as_str()))
        })
        .or_else(|| {
            at("task.termination[").and_then(|i| Some(cfg.termination.get(i)?.expr.as_str()))
        })
        .or_else(|| at("task.metric[").and_then(|i| Some(cfg.metric.get(i)?.expr.as_str())))
}

/// The robot, and a folder with the networks of its actuators.
fn robot_with_networks() -> (Arc<Model>, tempfile::TempDir) {
    let folder = tempfile::tempdir().unwrap();
    vary::write_networks(folder.path());
    let mut model = robot();
    model.sources = vec![folder.path().join("hopalong.xml")];
    (Arc::new(model), folder)
}

/// Whether an error says what and where.
fn says(cfg: &TaskConfig, key: u32, error: &ConfigError) {
    let ConfigError { path, span, message, .. } = error;
    assert!(!message.is_empty() && path.starts_with("task"), "{key}: {path}: {message}");
    if let (Some(span), Some(text)) = (span, written(cfg, path)) {
        assert!(text.get(span.clone()).is_some(), "{key}: {path} {span:?}: {text}");
    }
}

#[test]
fn generated_tasks_compile_or_say_why_not() {
    compile(2_000);
}

#[test]
fn generated_tasks_take_steps() {
    step(120);
}

/// All of them: `cargo test -p ostler-sim --lib ten_thousand -- --ignored`.
#[test]
#[ignore = "minutes; a share runs with the other tests"]
fn ten_thousand_tasks() {
    compile(10_000);
    step(10_000);
}

fn compile(tasks: u32) {
    let (plain, _folder) = robot_with_networks();
    let mut world = World::new(3, 1);
    world.memory = vec![0.5; 3 * 4096];
    world.random = vec![0.5; 3 * 4096];
    world.shown = vec![0.5; 3 * 512];
    world.state.varied = vec![0.7; 3 * 512];
    let (mut good, mut rich, mut reasons) = (0, 0, std::collections::BTreeMap::new());
    let (mut varied, mut driven, mut read) = (0, 0, 0);
    for key in 0..tasks {
        let cfg = task(key);
        let made = crate::task::prepare(&plain, &cfg, |_| 0.02).map(|(model, task)| (task, model));
        let (compiled, model) = match made {
            Ok(made) => made,
            Err(error) => {
                says(&cfg, key, &error);
                let kind = error.message.split(['"', '`', '[']).next();
                *reasons.entry(kind.unwrap_or_default().to_string()).or_insert(0) += 1;
                continue;
            }
        };
        good += 1;
        rich += u32::from(!compiled.history.states().is_empty() && !compiled.lets.is_empty());
        varied += u32::from(!cfg.event.is_empty());
        driven += u32::from(!cfg.actuator.is_empty());
        // The kernels' numbers are as long as their sizes say, and all is printed.
        let sizes = compiled.sizes(&model, 4);
        let tables = compiled.tables(&model, 0.02, 100);
        assert_eq!(tables.cell_end.len(), sizes.ncell);
        assert_eq!(tables.metric_over.len(), sizes.nmetric);
        assert_eq!(tables.drawn_shown.len(), sizes.ndrawn);
        assert_eq!(tables.shown_base.len(), sizes.nshown);
        read += u32::from(sizes.nshown > 0);
        assert_eq!(tables.cell_end.last().copied().unwrap_or(0) as usize, sizes.nhistory);
        if key % 10 == 0 {
            let text = emit(&compiled, &sizes, 0.02, 100, Numbers::baked()).text;
            assert!(text.contains("term_reward_0"));
        }
        let mut scratch = Scratch::default();
        let inputs = world.inputs(0, 3);
        for term in compiled.score.terms().chain(compiled.metrics.terms()) {
            if compiled.team.is_several() {
                break;
            }
            assert_eq!(term.program.eval(&inputs, &mut scratch).len(), 64);
        }
        for cell in compiled.history.cells() {
            assert_eq!(cell.begin().outputs, cell.next().outputs, "{key}");
            if !compiled.team.is_several() {
                cell.next().eval(&inputs, &mut scratch);
            }
        }
    }
    let all = format!(
        "{good} good, {rich} rich, {varied} with events, {driven} with actuators, {read} read \
         events: {reasons:#?}"
    );
    assert!(20 * good > 3 * tasks && 50 * rich > tasks, "{all}");
    assert!(20 * varied > tasks && 50 * driven > tasks && 50 * read > tasks, "{all}");
    assert!(reasons.len() > 40, "{all}");
}

/// Generated tasks take a few control steps: events happen, actuators of all laws act, and
/// nothing panics, not even where it would be caught. Half of so many tasks: the sound ones.
fn step(tasks: u32) {
    let (plain, _folder) = robot_with_networks();
    let sim =
        SimConfig { specialize: Specialize::Off, threads: Auto::N(1), ..SimConfig::default() };
    let env = EnvConfig { num_envs: 3, decimation: 2, episode_length_s: 0.02 };
    let (mut stepped, mut varied) = (0, 0);
    for key in (0..tasks).step_by(2) {
        let cfg = task(key);
        let mut env = match BatchEnv::new(Arc::clone(&plain), &sim, &env, &cfg, 7) {
            Ok(env) => env,
            Err(EnvError::Config(error)) => {
                says(&cfg, key, &error);
                continue;
            }
            Err(other) => panic!("{key}: {other}"),
        };
        let spec = env.spec().clone();
        let mut results = Results::new(&spec);
        env.reset(false, &mut results.out().obs);
        let actions = vec![0.3; spec.rows() * spec.action.width()];
        for _ in 0..6 {
            env.step(&actions, &mut results.out());
        }
        let mut stats = EpisodeStats::with_room(&spec).unwrap();
        env.take_stats(&mut stats);
        let failed = spec.cause_names.iter().position(|n| n == "engine/failed");
        assert_eq!(stats.causes[failed.unwrap()], 0, "{key}: a panic was caught");
        stepped += 1;
        varied += u32::from(!spec.events.is_empty());
    }
    assert!(
        8 * stepped > tasks && 20 * varied > tasks,
        "{stepped} of {tasks}, {varied} with events"
    );
}
