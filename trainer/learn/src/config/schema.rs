//! The keys of a run's file, and the kind of value that each takes.
//!
//! The literals name every field of a list's element, so that a new key cannot be forgotten
//! here; those of the simulation's tables are in its crate.

use super::WandbConfig;
use super::{BackOffConfig, Config, FaultConfig, LogConfig, curriculum, foreign};
use crate::environments::CustomConfig;
use ostler_collector::gymnasium::GymnasiumConfig;
use ostler_collector::replay::{ReplayConfig, TransformConfig, TransformKind};
use ostler_sim::config::NoiseKind;
use ostler_sim::config::file::{ANY, Kind, Rules, Simulation};

/// What a run's file may hold.
pub fn rules() -> Rules {
    Rules::of(&exemplar()).special(special).recognise(foreign::recognise).gone(GONE)
}

/// Keys of earlier builds, and what replaces them.
const GONE: &[(&str, &str)] = &[(
    "learner.path",
    "PPO takes gradients in one way, which tests hold against libtorch's automatic differentiation; leave the key out",
)];

/// A configuration in which everything is set once.
fn exemplar() -> Config {
    let text = String::new;
    let simulation = Simulation::exemplar();
    Config {
        sim: simulation.sim,
        agents: simulation.agents,
        task: simulation.task,
        gymnasium: Some(GymnasiumConfig { kwargs: anything(), ..GymnasiumConfig::default() }),
        custom: Some(CustomConfig { args: anything(), ..CustomConfig::default() }),
        replay: ReplayConfig {
            transform: vec![TransformConfig {
                fields: vec![text()],
                scale: Some(0.0),
                clip: Some(0.0),
                noise: Some(0.0),
                noise_kind: Some(NoiseKind::Normal),
                ..TransformConfig::new(TransformKind::Noise)
            }],
            ..ReplayConfig::default()
        },
        curriculum: vec![curriculum::Schedule {
            key: text(),
            over: text(),
            points: vec![[0.0, 0.0]],
            steps: false,
            ratchet: true,
        }],
        log: LogConfig {
            wandb: Some(WandbConfig { tags: vec![text()], ..WandbConfig::default() }),
            ..LogConfig::default()
        },
        back_off: BackOffConfig { changes: vec![[0, 0]], ..BackOffConfig::default() },
        fault: FaultConfig { inject: vec![text()] },
        ..Config::default()
    }
}

/// A table that may hold anything.
fn anything() -> toml::Table {
    [(ANY.to_string(), toml::Value::Boolean(true))].into_iter().collect()
}

/// Keys that take more than one kind of value, beside the simulation's.
fn special(path: &str) -> Option<Kind> {
    match path {
        "learner.threads" | "collector.workers" | "runner.eval_episodes" => Some(Kind::Auto),
        "gymnasium.workers" => Some(Kind::Auto),
        "gymnasium.kwargs" | "custom.args" => Some(Kind::Anything),
        "runner.eval_interval" => Some(Kind::AutoOrNone),
        _ => None,
    }
}
