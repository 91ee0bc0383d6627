//! From an error about a path to one about a line.

use super::error::{self, ConfigErrors, Diagnostic};
use super::locate;
use super::source::{Node, Sources};
use crate::config::ConfigError;
use crate::env::EnvError;
use ostler_engine::device::{CompileError, DeviceError};
use ostler_engine::physics::PhysicsError;

/// Where every value of a configuration was written.
#[derive(Debug, Clone)]
pub struct Places {
    root: Node,
    sources: Sources,
}

impl Places {
    pub(super) fn new(root: Node, sources: Sources) -> Self {
        Self { root, sources }
    }

    /// Turns an error about a path into one about a line.
    pub fn explain(&self, error: &ConfigError) -> Diagnostic {
        let key = &error.path;
        let place = locate::locate(&self.root, key);
        let mut help = error.help.clone();
        let diagnostic = match place {
            Some(p) if p.exact => {
                let origin = match &error.span {
                    Some(span) => locate::inside(&self.sources, &p.origin, span.clone()),
                    None => p.origin,
                };
                Diagnostic::at(&self.sources, &origin, format!("{key}: {}", error.message))
            }
            _ => {
                let label = self.sources.0.first().map_or("", |s| s.label.as_str());
                let message = format!("{label}: {key} (not set, default): {}", error.message);
                match place {
                    Some(p) => Diagnostic::at(
                        &self.sources,
                        &p.origin,
                        format!("{key} (not set here): {}", error.message),
                    ),
                    None => Diagnostic::plain(message),
                }
            }
        };
        match help.take() {
            Some(help) => diagnostic.help(help),
            None => diagnostic,
        }
    }

    /// Like [`explain`](Self::explain), for several.
    pub fn explain_all(&self, errors: &[ConfigError]) -> ConfigErrors {
        // One more than are shown, so that it is known that there are more.
        let errors = errors.iter().take(error::MOST + 1);
        ConfigErrors::sorted(errors.map(|e| self.explain(e)).collect())
    }

    /// Why there are no environments, shown in the configuration.
    ///
    /// # Errors
    /// The error itself, if it has no place there.
    pub fn explain_env(&self, error: EnvError) -> Result<Diagnostic, EnvError> {
        match error {
            EnvError::Config(e) => Ok(self.explain(&e)),
            EnvError::Physics(e) => self.unsuitable(e),
            EnvError::Device(DeviceError::Compile(e)) => self.uncompilable(e),
            e => Err(e),
        }
    }

    /// A program for a device that does not compile, shown at the expression that it is in.
    fn uncompilable(&self, e: CompileError) -> Result<Diagnostic, EnvError> {
        match &e.place {
            Some((name, _)) => {
                let message = format!("does not compile for {}: {}", e.target, e.message);
                Ok(self.explain(&ConfigError::new(name, message)))
            }
            None => Err(EnvError::Device(DeviceError::Compile(e))),
        }
    }

    /// An engine or a kernel that cannot be used, shown where it was chosen.
    fn unsuitable(&self, e: PhysicsError) -> Result<Diagnostic, EnvError> {
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
        Ok(self.explain(&error))
    }
}
