//! Errors as Python's exceptions, in the program's own words.

use ostler_sim::config::file::{ConfigErrors, Diagnostic};
use ostler_sim::device::DeviceError as SimError;
use ostler_sim::device::cuda::Unavailable;
use ostler_sim::env::EnvError;
use ostler_sim::memory::MemoryError;
use ostler_sim::model::mjcf::MjcfError;
use ostler_sim::physics::{PhysicsError, SnapshotError};
use pyo3::exceptions::{PyMemoryError, PyRuntimeError, PyValueError};
use pyo3::prelude::*;

pyo3::create_exception!(
    _ostler,
    ConfigError,
    PyValueError,
    "A mistake in a configuration, with file, line and remedy."
);
pyo3::create_exception!(
    _ostler,
    RobotError,
    PyValueError,
    "A robot's file that cannot be read, or that the physics cannot have."
);
pyo3::create_exception!(
    _ostler,
    DeviceError,
    PyRuntimeError,
    "A GPU that cannot be used, or that refuses."
);
pyo3::create_exception!(
    _ostler,
    StateError,
    PyRuntimeError,
    "A saved state that does not fit, or environments that cannot be used any more."
);

/// Adds the exceptions to the module.
pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    let py = module.py();
    module.add("ConfigError", py.get_type::<ConfigError>())?;
    module.add("RobotError", py.get_type::<RobotError>())?;
    module.add("DeviceError", py.get_type::<DeviceError>())?;
    module.add("StateError", py.get_type::<StateError>())
}

/// Why there are no environments, or why they stopped.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// Mistakes in the configuration.
    #[error(transparent)]
    Config(#[from] ConfigErrors),
    /// `env.num_envs` is `"auto"`, which only a run can decide.
    #[error(
        "env.num_envs is \"auto\" in {file}, which only a training run decides: say num_envs=..."
    )]
    HowMany {
        /// The configuration.
        file: String,
    },
    /// `sim.device` is a GPU, and the environments are on the processor.
    #[error(
        "sim.device = \"cuda\", and these environments compute on the processor: device=\"cuda:0\", or sim={{\"device\": \"auto\"}}"
    )]
    OnGpu,
    /// `sim.device` is the processor, and the environments are on a GPU.
    #[error(
        "sim.device = \"cpu\", and device=\"cuda\" wants environments on a GPU: sim={{\"device\": \"auto\"}}, or device=\"cpu\""
    )]
    OnHost,
    /// No GPU to work on.
    #[error(transparent)]
    Gpu(Unavailable),
    /// A GPU refuses.
    #[error(transparent)]
    Device(SimError),
    /// The robot's file.
    #[error(transparent)]
    Robot(#[from] MjcfError),
    /// The physics.
    #[error(transparent)]
    Physics(PhysicsError),
    /// What has no place in the configuration.
    #[error(transparent)]
    Env(EnvError),
    /// No memory.
    #[error(transparent)]
    Memory(#[from] MemoryError),
    /// A saved state.
    #[error(transparent)]
    Snapshot(#[from] SnapshotError),
    /// The system refuses a thread.
    #[error("no thread could be started: {0}")]
    Thread(std::io::Error),
    /// A mistake in this program.
    #[error("environments could not be built: {0}; this is a mistake in Ostler")]
    Panicked(String),
    /// Two threads at once.
    #[error("another thread is using these environments; make some for each thread")]
    Busy,
    /// After `close`.
    #[error("the environments are closed")]
    Closed,
    /// After a fork.
    #[error(
        "these environments belong to another process: their threads did not come along when it was forked; make them in the process that uses them"
    )]
    Forked,
}

impl From<Diagnostic> for Error {
    fn from(d: Diagnostic) -> Self {
        Self::Config(d.into())
    }
}

impl From<Error> for PyErr {
    fn from(e: Error) -> Self {
        let text = e.to_string();
        match &e {
            Error::Config(_) | Error::HowMany { .. } | Error::OnGpu | Error::OnHost => {
                ConfigError::new_err(text)
            }
            Error::Robot(_) => RobotError::new_err(text),
            Error::Env(inner) if inner.out_of_memory().is_some() => PyMemoryError::new_err(text),
            Error::Physics(inner) if inner.out_of_memory().is_some() => {
                PyMemoryError::new_err(text)
            }
            Error::Device(inner) if inner.out_of_memory().is_some() => PyMemoryError::new_err(text),
            Error::Memory(_) => PyMemoryError::new_err(text),
            Error::Physics(_) => RobotError::new_err(text),
            Error::Busy | Error::Closed | Error::Forked | Error::Snapshot(_) => {
                StateError::new_err(text)
            }
            Error::Gpu(_) | Error::Device(_) | Error::Env(EnvError::Device(_)) => {
                DeviceError::new_err(text)
            }
            Error::Env(_) | Error::Thread(_) | Error::Panicked(_) => PyRuntimeError::new_err(text),
        }
    }
}
