//! What a program that uses Ostler as a library has registered by name, for its configurations.

use ostler_sim::config::ConfigError;
use ostler_sim::names::nearest;
use std::collections::BTreeMap;
use std::error::Error;
use std::sync::{Arc, Mutex, PoisonError};

/// Why a program's function made nothing; its words are shown.
pub type MakeError = Box<dyn Error + Send + Sync>;

/// Functions by name.
#[derive(Debug)]
pub struct Registry<F: ?Sized> {
    /// What they make, of one.
    what: &'static str,
    /// The page that says how.
    page: &'static str,
    all: Mutex<BTreeMap<String, Arc<F>>>,
}

impl<F: ?Sized> Registry<F> {
    /// Without any.
    pub const fn new(what: &'static str, page: &'static str) -> Self {
        Self { what, page, all: Mutex::new(BTreeMap::new()) }
    }

    /// Gives a function a name; the last of a name counts.
    pub fn add(&self, name: impl Into<String>, function: Arc<F>) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        all.insert(name.into(), function);
    }

    /// The function of the name that a key has.
    ///
    /// # Errors
    /// There is none.
    pub fn find(&self, key: &str, name: &str) -> Result<Arc<F>, ConfigError> {
        let all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(function) = all.get(name) {
            return Ok(Arc::clone(function));
        }
        let why = format!("this program has no {} called \"{name}\"", self.what);
        let known: Vec<&str> = all.keys().map(String::as_str).collect();
        let help = match nearest(name, known.iter().copied()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None if known.is_empty() => format!(
                "a program of your own registers it ({}); `ostler` itself has none",
                self.page
            ),
            None => format!("it has {}", known.join(", ")),
        };
        Err(ConfigError::new(key, why).help(help))
    }
}
