//! Why there are no environments, shown in the configuration's file.

use super::EnvError;
use crate::config::ConfigError;
use crate::config::file::{Diagnostic, Places};
use ostler_engine::device::{CompileError, DeviceError};
use ostler_engine::physics::PhysicsError;

impl EnvError {
    /// Shown in the file that `places` are of.
    ///
    /// # Errors
    /// The error itself, if it has no place there.
    pub fn explained(self, places: &Places) -> Result<Diagnostic, Self> {
        match self {
            Self::Config(e) => Ok(places.explain(&e)),
            Self::Physics(e) => unsuitable(e, places),
            Self::Device(DeviceError::Compile(e)) => uncompilable(e, places),
            e => Err(e),
        }
    }
}

/// A program for a device that does not compile, shown at the expression that it is in.
fn uncompilable(e: CompileError, places: &Places) -> Result<Diagnostic, EnvError> {
    match &e.place {
        Some((name, _)) => {
            let message = format!("does not compile for {}: {}", e.target, e.message);
            Ok(places.explain(&ConfigError::new(name, message)))
        }
        None => Err(EnvError::Device(DeviceError::Compile(e))),
    }
}

/// An engine or a kernel that cannot be used, shown where it was chosen.
fn unsuitable(e: PhysicsError, places: &Places) -> Result<Diagnostic, EnvError> {
    let error = match &e {
        PhysicsError::Unsupported { engine, .. } => {
            let other = match *engine {
                "native" => "rapier",
                _ => "native",
            };
            let help = format!("sim.backend = \"{other}\" is the other engine");
            ConfigError::new("sim.backend", e.to_string()).help(help)
        }
        PhysicsError::Kernel { name, why } => {
            let message = format!("\"{name}\" cannot be used: {why}");
            ConfigError::new("sim.kernel", message)
                .help("sim.kernel = \"auto\" takes the best there is, with other bits")
        }
        PhysicsError::Limit(error) => error.clone(),
        _ => return Err(e.into()),
    };
    Ok(places.explain(&error))
}
