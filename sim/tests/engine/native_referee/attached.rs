//! Models that attach models and replicate bodies move as in MuJoCo.

use super::engine::Findings;
use super::reference::{mujoco, reference};
use crate::mjcf_referee::attached as models;
use ostler_sim::model::mjcf;

const STATES: usize = 50;

#[test]
fn attached_models_agree_with_mujoco() {
    let Some(mut mujoco) = mujoco() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in models::PARTS {
        let path = folder.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    let mut findings = Findings::default();
    for (name, text) in models::MODELS {
        let path = folder.path().join(format!("{name}.xml"));
        std::fs::write(&path, text).unwrap();
        let model = mjcf::load(&path).unwrap_or_else(|e| panic!("{e}"));
        if model.nv > 0 {
            let answers = reference(&mut mujoco, &path, &model, STATES, 3);
            findings.check(name, &model, &answers);
        }
    }
    findings.finish();
}
