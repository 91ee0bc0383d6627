//! From an error about a path to one about a line.

use super::error::{self, ConfigErrors, Diagnostic};
use super::locate;
use super::source::{Node, Sources};
use crate::config::ConfigError;

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
}
