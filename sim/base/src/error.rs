//! A value that cannot be used, and where it stands.

/// A value of `[sim]`, `[env]` or `[task]` that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{path}: {message}{}", .help.as_ref().map(|h| format!(" ({h})")).unwrap_or_default())]
pub struct ConfigError {
    /// Where: `task.reward[2].expr`.
    pub path: String,
    /// Bytes of the string value that are meant, for expressions.
    pub span: Option<std::ops::Range<usize>>,
    /// The mistake.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
}

impl ConfigError {
    /// An error about the whole value at `path`.
    pub fn new(path: impl Into<String>, message: impl Into<String>) -> Self {
        Self { path: path.into(), span: None, message: message.into(), help: None }
    }

    /// Adds the right value.
    #[must_use]
    pub fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
