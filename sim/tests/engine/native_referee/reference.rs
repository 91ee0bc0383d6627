//! MuJoCo's answers: asked for once, then kept in cargo's folder for tests.

use crate::support;
use ostler_sim::Model;
use ostler_sim::referee::mujoco::{MuJoCo, RefereeError, SCRIPTS};
use ostler_sim::referee::states::Reference;
use std::path::{Path, PathBuf};

/// MuJoCo, or `None` after saying that the test is skipped.
pub fn mujoco() -> Option<MuJoCo> {
    let python = support::referee::referee_python()?;
    Some(MuJoCo::start(Some(&python)).unwrap_or_else(|e| panic!("{e}")))
}

/// Folder of Gymnasium's models.
pub fn gymnasium(mujoco: &mut MuJoCo) -> PathBuf {
    let about = mujoco.ask(&serde_json::json!({"op": "version"})).unwrap();
    about["gymnasium"].as_str().unwrap().into()
}

/// Answers for `count` states of a model's file.
pub fn reference(
    mujoco: &mut MuJoCo,
    path: &Path,
    model: &Model,
    count: usize,
    seed: u64,
) -> Reference {
    try_reference(mujoco, path, model, count, seed)
        .unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

/// The same; MuJoCo may refuse the model.
pub fn try_reference(
    mujoco: &mut MuJoCo,
    path: &Path,
    model: &Model,
    count: usize,
    seed: u64,
) -> Result<Reference, RefereeError> {
    let path = std::path::absolute(path).unwrap();
    let request = serde_json::json!({"op": "states", "model": path, "states": count, "seed": seed});
    cached(mujoco, model, &request)
}

/// Answers to a request that writes a file, `out`.
pub fn cached(
    mujoco: &mut MuJoCo,
    model: &Model,
    request: &serde_json::Value,
) -> Result<Reference, RefereeError> {
    // All that the answers depend on.
    let mut hash = blake3::Hasher::new();
    for (_, text) in SCRIPTS {
        hash.update(text.as_bytes());
    }
    hash.update(format!("{} {request}", mujoco.version).as_bytes());
    for source in &model.sources {
        hash.update(&std::fs::read(source).unwrap());
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("referee");
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{}.npz", hash.finalize().to_hex()));
    if !file.exists() {
        let part = mujoco.scratch("reference.npz");
        let mut request = request.clone();
        request["out"] = serde_json::json!(part);
        mujoco.ask(&request)?;
        // Not a rename: the folders may lie on different disks.
        let whole =
            folder.join(format!("{}-{:?}.part", std::process::id(), std::thread::current().id()));
        std::fs::copy(&part, &whole).unwrap();
        std::fs::rename(&whole, &file).unwrap();
    }
    Ok(Reference::read(&file, model).unwrap_or_else(|e| panic!("{e}")))
}
