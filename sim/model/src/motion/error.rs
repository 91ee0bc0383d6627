//! Why a file of a motion cannot be used.

use ostler_base::npz::NpzError;

/// Why a file of a motion cannot be used: where, the cause and the remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}: {place}: {what}; {help}")]
pub struct MotionError {
    /// The file.
    pub file: String,
    /// Where in it: `body_pos_w, frame 17, body left_knee_link`. Frames count from 0.
    pub place: String,
    /// The cause.
    pub what: String,
    /// The remedy.
    pub help: String,
}

impl MotionError {
    /// An error of a file that is named later.
    pub(super) fn new(
        place: impl Into<String>,
        what: impl Into<String>,
        help: impl Into<String>,
    ) -> Self {
        Self { file: String::new(), place: place.into(), what: what.into(), help: help.into() }
    }
}

/// The reader's errors name the file themselves, which would stand there twice.
impl From<NpzError> for MotionError {
    fn from(e: NpzError) -> Self {
        match e {
            NpzError::Format { why, .. } => Self::new(
                "the file",
                format!("it is no .npz file that can be read: {why}"),
                "copy it again, or write it again with numpy.savez",
            ),
            NpzError::Missing { name, found, .. } => Self::new(
                format!("array {name}"),
                format!("it is missing; the file has {found}"),
                "write it as docs/motions.md lists the arrays",
            ),
            NpzError::Array { name, found, expected, .. } => Self::new(
                format!("array {name}"),
                format!("it {found}"),
                format!("expected {expected}; numpy.savez writes no pickle of arrays with a dtype"),
            ),
            e @ NpzError::Memory { .. } => Self::new(
                "the file",
                format!("it is too large: {e}"),
                "cut the motion into several files",
            ),
            e => Self::new("the file", e.to_string(), "copy it again"),
        }
    }
}
