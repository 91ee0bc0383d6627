//! Does it fit, and how many environments would?

use super::need::Need;
use super::probe::{self, ProbeError};
use crate::run::{Machine, Options, RunError, demonstrations, one_env, plan, reflection, try_out};
use ostler_collector::peers::Group;
use ostler_learn::config::{Config, Gpus, Loaded, Override};
use ostler_machine::memory::{FreeMemory, Here, Process};
use ostler_sim::Model;
use ostler_sim::config::ConfigError;
use ostler_sim::env::EnvSpec;
use std::path::Path;
use std::sync::Arc;

#[path = "fit_on_gpu.rs"]
mod on_gpu;
use on_gpu::OnGpu;

/// `env.num_envs = "auto"` takes no more than this. A processor's threads have all the
/// lanes they can use with a few hundred environments, and PPO learns less from each
/// sample the more of them share an update: beyond this there is nothing to be had.
const MOST: usize = 16_384;
/// The program itself without any environment, resident (bytes): libtorch's code and
/// tables. Only for display.
const PROGRAM: u64 = 160 << 20;
/// How many environments fit.
#[derive(Debug, Clone, PartialEq)]
pub struct Fit {
    /// So many.
    pub num_envs: usize,
    /// Memory of a run with them, of each kind.
    takes: Vec<Demand>,
    /// The next larger number: it does not fit.
    above: Option<usize>,
    measured: bool,
}

/// Memory of a run, of one kind.
#[derive(Debug, Clone, PartialEq)]
struct Demand {
    /// ` of the GPU`; empty where there is no other kind.
    of: &'static str,
    /// Bytes.
    bytes: u64,
    /// With the next larger number of environments.
    above: Option<u64>,
    /// Memory that may be taken (bytes), less the head-room.
    room: Option<u64>,
}

/// `5 MiB of the GPU and 3 MiB of the host`.
fn listed(takes: &[Demand], bytes: impl Fn(&Demand) -> Option<u64>) -> String {
    let all = takes.iter().filter_map(|t| Some((bytes(t)?, t.of)));
    let all: Vec<_> = all.map(|(bytes, of)| format!("{} MiB{of}", mib(bytes))).collect();
    all.join(" and ")
}

impl std::fmt::Display for Fit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let by = match self.measured {
            true => "measured",
            false => "estimated",
        };
        write!(
            f,
            "env.num_envs \"auto\" is {}, which takes {} ({by})",
            self.num_envs,
            listed(&self.takes, |t| Some(t.bytes))
        )?;
        match self.above {
            Some(n) => {
                let above = listed(&self.takes, |t| t.above);
                let room = listed(&self.takes, |t| t.room);
                write!(f, "; {n} would take {above}, {room} may be taken")
            }
            None => write!(f, "; more would not make training faster"),
        }
    }
}

/// The largest number of environments that `fits`, which fewer must do too, and the next;
/// `most` at the most. Numbers are powers of two and three times such: they share out
/// evenly over lanes, threads and minibatches.
fn largest(most: usize, fits: impl Fn(usize) -> bool) -> (usize, Option<usize>) {
    let all = (0..30).flat_map(|k| [1 << k, 3 << k]);
    let mut friendly: Vec<usize> = all.filter(|&n| n <= most).collect();
    friendly.sort_unstable();
    let count = friendly.iter().take_while(|n| fits(**n)).count();
    // One has to be tried: the estimate may be wrong, and then there is a clear error.
    (friendly[count.saturating_sub(1)], friendly.get(count).copied())
}

/// Size of an environment in a checkpoint (bytes), and the task's sizes.
fn one(loaded: &Loaded, model: &Arc<Model>) -> Result<(EnvSpec, u64), RunError> {
    if let Some(foreign) = &loaded.foreign {
        let facts = foreign.facts()?;
        return Ok((facts.spec.clone(), facts.state));
    }
    let mut env = one_env(loaded, model)?;
    try_out(loaded, &mut env)?;
    let mut state = Vec::new();
    env.capture(&mut state).map_err(ostler_collector::CollectError::Snapshot)?;
    let mut spec = env.spec().clone();
    spec.doubts.extend(env.rehearse().notes);
    Ok((spec, state.len() as u64))
}

/// The most environments that a run has at a time: it begins with `env.num_envs`, and a schedule of
/// it may ask for more.
fn most(config: &Config) -> usize {
    config.envs().most.max(config.env.num_envs)
}

fn with_envs(config: &Config, num_envs: usize) -> Config {
    let mut config = config.clone();
    config.env.num_envs = num_envs;
    config
}

/// The part of `free` bytes that may be taken.
fn room(config: &Config, free: Option<u64>) -> Option<u64> {
    free.map(|free| (free as f64 * (1.0 - config.memory.head_room)) as u64)
}

/// `env.num_envs = "auto"` by estimate: for all that only wants to know, and on a GPU.
///
/// # Errors
/// The task has a mistake, or more minibatches than samples.
pub(crate) fn estimated(
    machine: &Machine,
    loaded: &Loaded,
    model: &Arc<Model>,
) -> Result<Fit, RunError> {
    let config = &loaded.config;
    let (spec, state) = one(loaded, model)?;
    if machine.has_gpu() {
        let on_gpu = OnGpu::on(machine, loaded, model, (&spec, state))?;
        return enough(loaded, on_gpu.fit());
    }
    let bytes = |n| Need::with_state(&with_envs(config, n), &spec, state).total();
    let fit = on_host(room(config, machine.free.host()), bytes);
    let take = |t: Demand| Demand {
        bytes: PROGRAM + t.bytes,
        above: t.above.map(|b| PROGRAM + b),
        room: t.room.map(|r| PROGRAM + r),
        ..t
    };
    let takes = fit.takes.into_iter().map(take).collect();
    enough(loaded, Fit { takes, ..fit })
}

/// Where there is one kind of memory; `bytes` gives the need of a number of environments.
fn on_host(room: Option<u64>, bytes: impl Fn(usize) -> u64) -> Fit {
    let fits = |n| room.is_none_or(|room| bytes(n) <= room);
    let (num_envs, above) = largest(MOST, fits);
    Fit {
        num_envs,
        takes: vec![Demand { of: "", bytes: bytes(num_envs), above: above.map(&bytes), room }],
        above,
        measured: false,
    }
}

/// The same by measurement: for a run that is about to begin. Where nothing can be
/// measured the estimate stands.
///
/// # Errors
/// As `estimated`.
pub fn measured(path: &Path, overrides: &[Override]) -> Result<Fit, RunError> {
    // As if the number were known: mistakes in the task are reported here.
    let (loaded, model, _) = plan(path, overrides, None, Gpus::Trust)?;
    let config = &loaded.config;
    let line = match probe::measure(path, overrides, config.runner.num_steps_per_env, &|| false) {
        Ok(line) => line,
        Err(ProbeError::Stopped) => return Err(RunError::Stopped),
        Err(e) => {
            crate::log::errln!("nothing was measured: {e}");
            return estimated(&Machine::host(), &loaded, &model);
        }
    };
    // The memory that this program takes already is not counted twice.
    let own = Process::now(Path::new("/")).map_or(0, |p| p.resident);
    let room = room(config, Here.host()).map(|room| room + own);
    let fit = Fit { measured: true, ..on_host(room, |n| line.at(n)) };
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

/// Forecast of a run's memory.
#[derive(Debug, Clone)]
pub struct Foreseen {
    /// In a line.
    pub note: String,
    /// The task's sizes, of one environment.
    pub spec: EnvSpec,
    /// Measured bytes by number of environments.
    line: Option<probe::Line>,
    /// Memory that the whole process may take (bytes).
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

/// One line about a run's memory, by estimate; measured where that is more than a third of the
/// free memory, unless `asked` tells of a signal.
///
/// # Errors
/// The task has a mistake; a signal came.
pub fn foresee(
    loaded: &Loaded,
    model: &Arc<Model>,
    options: &Options,
    asked: &dyn Fn() -> bool,
) -> Result<Foreseen, RunError> {
    let machine = Machine::of(&loaded.config)?;
    let (mut spec, state) = one(loaded, model)?;
    spec.reflection = reflection(loaded, model)?.map(Arc::new);
    spec.demonstrations = demonstrations(loaded, model, &spec)?.map(Arc::new);
    let config = &loaded.config;
    // A run that goes on has the number that it was saved with.
    let n = match options.resume {
        None => most(config).min(options.max_envs.unwrap_or(usize::MAX)).max(config.env.num_envs),
        Some(_) => config.env.num_envs,
    };
    if machine.has_gpu() {
        // Nothing is measured: the allocation fails there where it does not fit.
        let note = OnGpu::on(&machine, loaded, model, (&spec, state))?.words(n);
        return Ok(Foreseen { note, spec, line: None, room: None });
    }
    let needs = Need::with_state(&with_envs(config, n), &spec, state);
    let free = machine.free.host();
    let need = needs.total();
    // A refused size needs no measurement, and a size below the measured ones neither; and the
    // measurement must fit itself.
    let (_, more) = probe::sizes(config.runner.num_steps_per_env);
    let small = Need::with_state(&with_envs(config, more), &spec, state).total();
    let worth_it = options.resume.is_none()
        && Group::current().is_alone()
        && config.runner.supervise
        && needs.check(free).is_ok()
        && n > more
        && free.is_some_and(|free| need > free / 3 && small < free / 2);
    let line = match (&options.config, worth_it) {
        (Some(path), true) => {
            let steps = config.runner.num_steps_per_env;
            match probe::measure(path, &options.overrides, steps, asked) {
                Err(ProbeError::Stopped) => return Err(RunError::Stopped),
                measured => measured.ok(),
            }
        }
        _ => None,
    };
    let note = match &line {
        Some(line) => words(n, line.at(n), free, "measured with fewer"),
        None => words(n, PROGRAM + need, free, "estimated"),
    };
    let own = Process::now(Path::new("/")).map_or(0, |p| p.resident);
    let room = free.map(|free| free + own);
    Ok(Foreseen { note, spec, line, room })
}

/// The same by estimate alone, with its parts.
///
/// # Errors
/// The task has a mistake.
pub fn foreseen(loaded: &Loaded, model: &Arc<Model>) -> Result<String, RunError> {
    let machine = Machine::of(&loaded.config)?;
    foreseen_on(&machine, loaded, model)
}

fn foreseen_on(machine: &Machine, loaded: &Loaded, model: &Arc<Model>) -> Result<String, RunError> {
    let (spec, state) = one(loaded, model)?;
    let envs = most(&loaded.config);
    let n = Need::with_state(&with_envs(&loaded.config, envs), &spec, state);
    let total = PROGRAM + n.total();
    let line = match machine.has_gpu() {
        true => OnGpu::on(machine, loaded, model, (&spec, state))?.words(envs),
        false => {
            let free = machine.free.host();
            words(envs, total, free, "estimated")
        }
    };
    Ok(format!(
        "{line}\n  rollout {}, samples {}, minibatch {}, environments {}, networks {}, copies {}, program {} MiB",
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
    format!("memory: about {} MiB with {num_envs} environments ({how}){free}", mib(bytes))
}

fn mib(bytes: u64) -> u64 {
    bytes.div_ceil(1 << 20)
}

#[cfg(test)]
#[path = "fit_tests.rs"]
mod tests;
