//! Why a model file is refused.

/// Why a model file was refused. `Display` is `file:line:column: message`.
#[derive(Debug, thiserror::Error)]
pub enum MjcfError {
    /// The file cannot be read.
    #[error("cannot read {path}: {}", why(source))]
    Read {
        /// The file.
        path: std::path::PathBuf,
        /// The system's error.
        source: std::io::Error,
    },
    /// The file says something that is wrong or not supported.
    #[error("{place}: {message}")]
    Invalid {
        /// `file:line:column`.
        place: String,
        /// The mistake and its remedy.
        message: String,
    },
}

/// The system's error, in words where it is the usual one.
fn why(source: &std::io::Error) -> String {
    match source.kind() {
        std::io::ErrorKind::NotFound => {
            "there is no such file; names count from the folder of the file that has them".into()
        }
        _ => source.to_string(),
    }
}
