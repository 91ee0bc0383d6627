//! Models as MuJoCo saves them: with its own choice among the ways in which MJCF says a thing,
//! which is what programs hand on that build or change their robots by MuJoCo.

use super::engine::{Findings, due, files};
use super::reference::{gymnasium, mujoco, reference};
use ostler_sim::Model;
use ostler_sim::model::mjcf;
use serde_json::json;

const STATES: usize = 20;

#[test]
fn models_that_mujoco_has_saved_are_the_same() {
    let Some(mut mujoco) = mujoco() else { return };
    let mut all = files("tests/referee/features");
    all.extend(files("tests/referee/robots"));
    all.extend(files("configs/robots"));
    let theirs = gymnasium(&mut mujoco);
    for name in ["humanoid", "swimmer", "walker2d", "reacher"] {
        all.push((name.into(), theirs.join(format!("{name}.xml"))));
    }
    let folder = tempfile::tempdir().unwrap();
    let mut findings = Findings::default();
    for (name, path) in all {
        let path = std::path::absolute(path).unwrap();
        let saved = folder.path().join(format!("{name}.xml"));
        mujoco
            .ask(&json!({"op": "saved", "model": path, "out": saved}))
            .unwrap_or_else(|e| panic!("{name}: {e}"));
        let (model, again) = match (mjcf::load(&path), mjcf::load(&saved)) {
            (Ok(model), Ok(again)) => (model, again),
            (model, again) => {
                let errors = [model.err(), again.err()].into_iter().flatten();
                let words: Vec<String> = errors.map(|e| e.to_string()).collect();
                findings.add(&name, "refused", &words);
                continue;
            }
        };
        let sizes = |m: &ostler_sim::Model| {
            let (bodies, geoms) = (m.bodies.len(), m.geoms.len());
            (m.nq, m.nv, m.na, m.actuators.len(), bodies, geoms)
        };
        assert_eq!(sizes(&model), sizes(&again), "{name}");
        // The saved file has the machine's paths: what is proved hangs on what is read of it.
        if due(&name, &Model { sources: Vec::new(), ..again.clone() }) {
            let answers = reference(&mut mujoco, &saved, &again, STATES, 3);
            findings.check(&name, &again, &answers);
        }
    }
    findings.finish();
}
