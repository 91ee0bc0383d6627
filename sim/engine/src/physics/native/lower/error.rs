//! Something that the native engine does not do.

/// Something in a model that the native engine does not do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the native engine does not support {what}; {remedy}")]
pub struct LowerError {
    /// The feature, by its name in the model.
    pub what: String,
    /// The remedy.
    pub remedy: String,
}

impl LowerError {
    pub(super) fn new(what: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { what: what.into(), remedy: remedy.into() }
    }
}
