//! Mistakes in expressions.

use ostler_base::ConfigError;

/// Error of an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", .help.as_ref().map(|h| format!(" ({h})")).unwrap_or_default())]
pub struct ExprError {
    /// Bytes of the text that are meant.
    pub span: std::ops::Range<usize>,
    /// The mistake.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// The key of the named expression (`[task.let]`) whose text is meant; `None`: the text
    /// itself.
    pub of: Option<String>,
    /// Keys of named expressions that use that one, the innermost first.
    pub used_by: Vec<String>,
    /// Whether `of` is known.
    settled: bool,
}

impl ExprError {
    pub(super) fn new(span: std::ops::Range<usize>, message: impl Into<String>) -> Self {
        Self {
            span,
            message: message.into(),
            help: None,
            of: None,
            used_by: Vec::new(),
            settled: false,
        }
    }

    /// The same, on its way out of the named expression `key`.
    pub(super) fn inside_of(mut self, key: &str) -> Self {
        if !self.settled {
            return self.settled_in(Some(key));
        }
        if self.of.as_deref().is_some_and(|of| of != key) {
            self.used_by.push(key.to_string());
        }
        self
    }

    /// The same, about the text of the named expression `key`, or about the text itself.
    pub(super) fn settled_in(mut self, key: Option<&str>) -> Self {
        if !self.settled {
            self.of = key.map(str::to_string);
            self.settled = true;
        }
        self
    }

    /// As an error of the configuration: `path` is that of the text.
    pub fn at(self, path: String) -> ConfigError {
        let Some(of) = self.of else {
            return ConfigError {
                path,
                span: Some(self.span),
                message: self.message,
                help: self.help,
            };
        };
        let own = format!("task.let.{of}");
        let mut users: Vec<String> =
            (self.used_by.iter()).map(|key| format!("task.let.{key}")).collect();
        users.push(path);
        users.retain(|user| *user != own);
        let message = match users.is_empty() {
            true => self.message,
            false => format!("{} (used by {})", self.message, users.join(", by ")),
        };
        ConfigError { path: own, span: Some(self.span), message, help: self.help }
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}
