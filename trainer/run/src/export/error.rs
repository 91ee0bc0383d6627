//! Why a policy was not exported, or its file cannot act.

use ostler_learn::learner::LearnError;
use ostler_sim::task::deploy::DeployError;
use std::path::{Path, PathBuf};

/// Why a policy was not exported.
#[derive(Debug, thiserror::Error)]
pub enum ExportError {
    #[error(transparent)]
    Deploy(#[from] DeployError),
    #[error("libtorch: {0}")]
    Torch(#[from] tch::TchError),
    #[error(transparent)]
    Learn(#[from] LearnError),
    /// The learner's policy is none of those that are exported.
    #[error("policies of {0} cannot be exported")]
    NoNetwork(String),
    /// A weight is NaN or infinite.
    #[error("the policy has weights that are not finite: export an earlier checkpoint")]
    NotFinite,
    /// A file cannot be written.
    #[error("cannot write {path}: {source}")]
    File { path: PathBuf, source: std::io::Error },
    /// `--input` without C.
    #[error("--input {0}: only C computes observations; other formats have all of them as inputs")]
    InputWithoutC(String),
}

/// Why a file cannot act.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    #[error("cannot read {path}: {source}")]
    Read { path: PathBuf, source: std::io::Error },
    #[error("{path} is no policy file: its name ends neither with .onnx nor with .pt")]
    Kind { path: PathBuf },
    #[error("{path} cannot be used: {why}")]
    Unusable { path: PathBuf, why: String },
}

pub(super) fn unwritten(path: &Path) -> impl FnOnce(std::io::Error) -> ExportError {
    let path = path.to_path_buf();
    move |source| ExportError::File { path, source }
}
