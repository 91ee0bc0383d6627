//! Does it fit, and how many environments would?

use super::host::Process;
use super::need::Need;
use super::probe;
use super::sample::available;
use crate::config::{Config, Gpus, Loaded, Override};
use crate::run::{Options, RunError, one_env, plan};
use ostler_sim::Model;
use ostler_sim::config::ConfigError;
use ostler_sim::env::EnvSpec;
use std::path::Path;
use std::sync::Arc;

/// `env.num_envs = "auto"` takes no more than this. A processor's threads have all the
/// lanes they can use with a few hundred environments, and PPO learns less from each
/// sample the more of them share an update: beyond this there is nothing to be had.
const MOST: usize = 16_384;
/// The program itself without any environment, resident (bytes): libtorch's code and
/// tables. Only for what is shown.
const PROGRAM: u64 = 150 << 20;

/// How many environments fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// So many.
    pub num_envs: usize,
    /// What a training with them takes (bytes).
    bytes: u64,
    /// The next larger number, and what it takes: it does not fit.
    above: Option<(usize, u64)>,
    /// What there is to take (bytes), less the head-room.
    room: Option<u64>,
    measured: bool,
}

impl std::fmt::Display for Fit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let by = match self.measured {
            true => "measured",
            false => "estimated",
        };
        write!(
            f,
            "env.num_envs \"auto\" is {}, which takes {} MiB ({by})",
            self.num_envs,
            mib(self.bytes)
        )?;
        match (self.above, self.room) {
            (Some((n, bytes)), Some(room)) => {
                let (bytes, room) = (mib(bytes), mib(room));
                write!(f, "; {n} would take {bytes} MiB, {room} MiB may be taken")
            }
            _ => write!(f, "; more would not make training faster"),
        }
    }
}

/// The largest number of environments that takes no more than `room`, by `bytes`, which
/// must not fall. Numbers are powers of two and three times such: they share out evenly
/// over lanes, threads and minibatches.
fn largest(room: Option<u64>, bytes: impl Fn(usize) -> u64) -> (usize, Option<(usize, u64)>) {
    let all = (0..).flat_map(|k| [1 << k, 3 << k]).take(32);
    let mut friendly: Vec<usize> = all.filter(|&n| n <= MOST).collect();
    friendly.sort_unstable();
    let fits = |&n: &usize| room.is_none_or(|room| bytes(n) <= room);
    let count = friendly.iter().take_while(|n| fits(n)).count();
    let above = friendly.get(count).map(|&n| (n, bytes(n)));
    // One has to be tried: the estimate may be wrong, and then there is a clear error.
    (friendly[count.saturating_sub(1)], above)
}

/// What one environment takes in a checkpoint (bytes), and the task's sizes.
fn one(loaded: &Loaded, model: &Arc<Model>) -> Result<(EnvSpec, u64), RunError> {
    let env = one_env(loaded, model)?;
    let mut state = Vec::new();
    env.save(&mut state)
        .map_err(ostler_collector::CollectError::Snapshot)?;
    Ok((env.spec().clone(), state.len() as u64))
}

fn with_envs(config: &Config, num_envs: usize) -> Config {
    let mut config = config.clone();
    config.env.num_envs = num_envs;
    config
}

fn room(config: &Config) -> Option<u64> {
    available().map(|free| (free as f64 * (1.0 - config.memory.head_room)) as u64)
}

/// `env.num_envs = "auto"` by estimate: for all that only wants to know.
///
/// # Errors
/// The task has a mistake, or more minibatches than samples.
pub(crate) fn estimated(loaded: &Loaded, model: &Arc<Model>) -> Result<Fit, RunError> {
    let config = &loaded.config;
    let (spec, state) = one(loaded, model)?;
    let bytes = |n| Need::with_state(&with_envs(config, n), &spec, state).total();
    let room = room(config);
    let (num_envs, above) = largest(room, bytes);
    let fit = Fit {
        num_envs,
        bytes: PROGRAM + bytes(num_envs),
        above: above.map(|(n, b)| (n, PROGRAM + b)),
        room: room.map(|r| r + PROGRAM),
        measured: false,
    };
    enough(loaded, fit)
}

/// The same by measurement: for a training that is about to begin. Where nothing can be
/// measured the estimate stands.
///
/// # Errors
/// As [`estimated`].
pub(crate) fn measured(path: &Path, overrides: &[Override]) -> Result<Fit, RunError> {
    // As if the number were known: what is wrong with the task is said here.
    let (loaded, model, _) = plan(path, overrides, None, Gpus::Trust)?;
    let config = &loaded.config;
    let line = match probe::measure(path, overrides, config.runner.num_steps_per_env) {
        Ok(line) => line,
        Err(e) => {
            crate::log::errln!("nothing was measured: {e}");
            return estimated(&loaded, &model);
        }
    };
    // What this program takes already is not taken again.
    let own = Process::now(Path::new("/")).map_or(0, |p| p.resident);
    let room = room(config).map(|room| room + own);
    let (num_envs, above) = largest(room, |n| line.at(n));
    let fit = Fit {
        num_envs,
        bytes: line.at(num_envs),
        above,
        room,
        measured: true,
    };
    enough(&loaded, fit)
}

fn enough(loaded: &Loaded, fit: Fit) -> Result<Fit, RunError> {
    let config = &loaded.config;
    let samples = fit.num_envs * config.runner.num_steps_per_env;
    match config.validate_batch(samples).into_iter().next() {
        None => Ok(fit),
        Some(_) => {
            let why = format!("{fit}, which is too few for ppo.num_mini_batches");
            let e = ConfigError::new("env.num_envs", why);
            Err(loaded.places.explain(&e).into())
        }
    }
}

/// What a training will take.
#[derive(Debug, Clone)]
pub(crate) struct Foreseen {
    /// In a line.
    pub note: String,
    /// The task's sizes, of one environment.
    pub spec: EnvSpec,
    /// Measured bytes by number of environments.
    line: Option<probe::Line>,
    /// What all of the process may take (bytes).
    room: Option<u64>,
}

impl Foreseen {
    /// Whether so many environments fit, as far as was measured.
    pub fn fits(&self, num_envs: usize) -> bool {
        match (&self.line, self.room) {
            (Some(line), Some(room)) => line.at(num_envs) <= room,
            _ => true,
        }
    }
}

/// One line about what a training will take, by estimate; measured where that is more
/// than a third of what there is.
///
/// # Errors
/// The task has a mistake.
pub(crate) fn foresee(
    loaded: &Loaded,
    model: &Arc<Model>,
    options: &Options,
) -> Result<Foreseen, RunError> {
    let (spec, state) = one(loaded, model)?;
    let config = &loaded.config;
    let needs = Need::with_state(config, &spec, state);
    // A GPU's memory is asked for when it is needed, and refused where there is none.
    let free = match config.gpu() {
        Some(_) => None,
        None => available(),
    };
    let need = needs.total();
    // What is refused needs no measurement, what is smaller than the measurement
    // neither; and the measurement must fit itself.
    let (_, more) = probe::sizes(config.runner.num_steps_per_env);
    let small = Need::with_state(&with_envs(config, more), &spec, state).total();
    let worth_it = options.resume.is_none()
        && config.runner.supervise
        && needs.check(free).is_ok()
        && config.env.num_envs > more
        && free.is_some_and(|free| need > free / 3 && small < free / 2);
    let line = match (&options.config, worth_it) {
        (Some(path), true) => {
            let steps = config.runner.num_steps_per_env;
            probe::measure(path, &options.overrides, steps).ok()
        }
        _ => None,
    };
    let n = config.env.num_envs;
    let note = match &line {
        Some(line) => words(n, line.at(n), free, "measured with fewer"),
        None => words(n, PROGRAM + need, free, "estimated"),
    };
    let own = Process::now(Path::new("/")).map_or(0, |p| p.resident);
    let room = free.map(|free| free + own);
    Ok(Foreseen {
        note,
        spec,
        line,
        room,
    })
}

/// The same by estimate alone, with its parts.
///
/// # Errors
/// The task has a mistake.
pub(crate) fn foreseen(loaded: &Loaded, model: &Arc<Model>) -> Result<String, RunError> {
    let (spec, state) = one(loaded, model)?;
    let n = Need::with_state(&loaded.config, &spec, state);
    let total = PROGRAM + n.total();
    Ok(format!(
        "{}\n  rollout {}, samples {}, minibatch {}, environments {}, networks {}, copies {}, program {} MiB",
        words(loaded.config.env.num_envs, total, available(), "estimated"),
        mib(n.rollout),
        mib(n.samples),
        mib(n.update),
        mib(n.envs),
        mib(n.networks),
        mib(n.copies),
        mib(PROGRAM),
    ))
}

fn words(num_envs: usize, bytes: u64, free: Option<u64>, how: &str) -> String {
    let free = match free {
        Some(free) => format!(", {} MiB are free", free >> 20),
        None => String::new(),
    };
    format!(
        "memory: about {} MiB with {num_envs} environments ({how}){free}",
        mib(bytes)
    )
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_friendly_number_that_fits_is_taken() {
        let bytes = |n: usize| 1000 + 10 * n as u64;
        assert_eq!(
            largest(Some(1000 + 10 * 100), bytes),
            (96, Some((128, 2280)))
        );
        assert_eq!(largest(Some(1000 + 10 * 96), bytes).0, 96);
        assert_eq!(largest(Some(1000 + 10 * 95), bytes).0, 64);
        assert_eq!(largest(Some(1000 + 10 * 48), bytes).0, 48);
        assert_eq!(largest(None, bytes), (MOST, None));
        assert_eq!(largest(Some(u64::MAX), bytes), (MOST, None));
        // Nothing fits: one is tried all the same.
        assert_eq!(largest(Some(0), bytes).0, 1);
    }

    #[test]
    fn the_reason_is_said() {
        let fit = Fit {
            num_envs: 96,
            bytes: 5 << 20,
            above: Some((128, 7 << 20)),
            room: Some(6 << 20),
            measured: true,
        };
        assert_eq!(
            fit.to_string(),
            "env.num_envs \"auto\" is 96, which takes 5 MiB (measured); 128 would take 7 MiB, 6 MiB may be taken"
        );
        let most = Fit { above: None, ..fit };
        assert!(
            most.to_string()
                .ends_with("more would not make training faster")
        );
    }
}
