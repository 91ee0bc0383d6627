//! From a configuration's file to environments, in a thread of its own: the caller's can be
//! interrupted meanwhile.

use crate::error::Error;
use ostler_sim::config::file::{LoadedSimulation, Override, load_simulation};
use ostler_sim::config::{Backend, Leave, SimDevice};
use ostler_sim::physics::native::{self, Settled};
use ostler_sim::{BatchEnv, Model, task};
use pyo3::prelude::*;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

/// What environments are built from.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The configuration.
    pub path: PathBuf,
    /// `key=value`, in order.
    pub overrides: Vec<String>,
    /// Whether native functions may be compiled and run.
    pub allow_native: bool,
}

/// Environments, with what they were built from.
pub struct Made {
    /// They.
    pub env: BatchEnv,
    /// The configuration, with the kernel that was decided on.
    pub loaded: LoadedSimulation,
    /// The robot.
    pub model: Arc<Model>,
    /// Observation noise is on.
    pub noise: bool,
    /// Why it is this kernel, where that needs saying.
    pub kernel_note: Option<String>,
    /// A compilation for the next start; dropping it stops it.
    _background: Option<Settled>,
}

impl Made {
    /// The same environments for another seed, as if they were just made.
    pub fn again(&mut self, seed: u64) -> Result<(), Error> {
        self.loaded.config.seed = seed;
        self.env = environments(&self.loaded, &self.model)?;
        self.env.set_noise(self.noise);
        Ok(())
    }
}

/// A configuration with its robot.
pub struct Configured {
    /// The configuration.
    pub loaded: LoadedSimulation,
    /// The robot.
    pub model: Arc<Model>,
}

/// Builds environments; Ctrl-C gives up.
pub fn made(py: Python<'_>, wanted: Wanted) -> PyResult<Made> {
    in_thread(py, move |stop| build(&wanted, stop))
}

/// Runs `work` in a thread of its own; Ctrl-C gives up, and tells it to stop.
pub fn in_thread<T: Send + 'static>(
    py: Python<'_>,
    work: impl FnOnce(&AtomicBool) -> Result<T, Error> + Send + 'static,
) -> PyResult<T> {
    let stop = Arc::new(AtomicBool::new(false));
    let theirs = Arc::clone(&stop);
    let worker = thread::Builder::new()
        .name("ostler make".to_owned())
        .spawn(move || work(&theirs))
        .map_err(Error::Thread)?;
    let mut pause = Duration::from_micros(200);
    while !worker.is_finished() {
        py.detach(|| thread::sleep(pause));
        pause = (pause * 2).min(Duration::from_millis(20));
        if let Err(interrupted) = py.check_signals() {
            // A compiler that is running ends with its thread.
            stop.store(true, Relaxed);
            return Err(interrupted);
        }
    }
    match worker.join() {
        Ok(made) => Ok(made?),
        Err(payload) => {
            let text = payload.downcast_ref::<String>().cloned();
            let text = text.or_else(|| payload.downcast_ref::<&str>().map(|s| (*s).to_string()));
            Err(Error::Panicked(text.unwrap_or_default()).into())
        }
    }
}

/// Reads the configuration and the robot. `gpu`: for environments on a GPU.
pub fn configured(wanted: &Wanted, gpu: bool) -> Result<Configured, Error> {
    let overrides = wanted
        .overrides
        .iter()
        .map(|text| Override { flag: "override".into(), text: text.clone() });
    let overrides: Vec<Override> = overrides.collect();
    let leave = match wanted.allow_native {
        true => Leave::Run,
        false => Leave::Refused,
    };
    let loaded = load_simulation(&wanted.path, &overrides, leave)?;
    if loaded.auto_envs {
        let file = loaded.path.display().to_string();
        return Err(Error::HowMany { file });
    }
    match loaded.config.sim.device {
        SimDevice::Cuda if !gpu => return Err(Error::OnGpu),
        SimDevice::Cpu if gpu => return Err(Error::OnHost),
        _ => {}
    }
    let model = Arc::new(loaded.model()?);
    Ok(Configured { loaded, model })
}

fn build(wanted: &Wanted, stop: &AtomicBool) -> Result<Made, Error> {
    let Configured { mut loaded, mut model } = configured(wanted, false)?;
    let mut settled = None;
    if loaded.config.sim.backend == Backend::Native {
        let mut go_on = |_| match stop.load(Relaxed) {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        };
        // The kernel is that of the robot as its task has it.
        let config = &loaded.config;
        let made = task::robot_of(&model, &config.sim, &config.env, &config.task);
        model = made.map_err(|e| explained(&loaded, e.into()))?;
        let chosen = native::settle(&model, &loaded.config.sim, &mut go_on);
        let chosen = chosen.map_err(|e| explained(&loaded, e.into()))?;
        // Environments that are built again have the same one, and so the same bits.
        loaded.config.sim.kernel.clone_from(&chosen.kernel);
        settled = Some(chosen);
    }
    let env = environments(&loaded, &model)?;
    Ok(Made {
        env,
        loaded,
        model,
        noise: true,
        kernel_note: settled.as_ref().and_then(|s| s.note.clone()),
        _background: settled,
    })
}

fn environments(loaded: &LoadedSimulation, model: &Arc<Model>) -> Result<BatchEnv, Error> {
    let env = BatchEnv::of(&loaded.config, Arc::clone(model));
    let mut env = env.map_err(|e| explained(loaded, e))?;
    env.keep_last_obs()?;
    Ok(env)
}

/// In the words of the file where it was written there.
pub fn explained(loaded: &LoadedSimulation, e: ostler_sim::env::EnvError) -> Error {
    use ostler_sim::env::EnvError;
    match e.explained(&loaded.places) {
        Ok(shown) => shown.into(),
        Err(EnvError::Physics(e)) => Error::Physics(e),
        Err(e) => Error::Env(e),
    }
}
