//! A solver that stops after a number of iterations, in states of roll-outs with their warm
//! starts, beside MuJoCo's that stops there, too.

use super::engine::repository;
use super::reference::{cached, mujoco};
use ostler_sim::model::mjcf;
use ostler_sim::physics::evaluate::Precision;
use ostler_sim::physics::native::{self, EvalOptions};
use ostler_sim::referee::residual::{Quantiles, errors};
use std::path::Path;

const STATES: usize = 500;

/// Robots on the ground, what their `<option>` says besides, numbers of iterations. All that
/// touches is one island of MuJoCo's; with RK4 its stages begin elsewhere.
const CASES: [(&str, &str, u32); 7] = [
    ("half_cheetah", "integrator='Euler'", 1),
    ("quadruped", "", 1),
    ("quadruped", "", 2),
    ("quadruped", "", 4),
    ("quadruped", "cone='elliptic' integrator='implicitfast'", 1),
    ("quadruped", "cone='elliptic'", 3),
    ("quadruped", "integrator='implicit'", 1),
];

#[test]
fn a_solver_that_stops_early_is_where_mujocos_is() {
    let Some(mut mujoco) = mujoco() else { return };
    let mut far = Vec::new();
    for (i, (name, options, iterations)) in CASES.into_iter().enumerate() {
        let text = std::fs::read_to_string(repository(&format!("configs/robots/{name}.xml")));
        let own = format!("<option iterations='{iterations}' {options}/><option");
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("early_{i}.xml"));
        std::fs::write(&path, text.unwrap().replacen("<option", &own, 1)).unwrap();
        let model = mjcf::load(&path).unwrap();
        let request = serde_json::json!({
            "op": "written", "model": path, "states": STATES, "seed": 5,
        });
        let theirs = cached(&mut mujoco, &model, &request).unwrap();
        let (states, start) = (theirs.states.view(), Some(theirs.warmstart.as_slice()));
        let early = EvalOptions::as_written(&model.options);
        let [double, single, whole] = [
            (early, Precision::F64),
            (early, Precision::F32),
            (EvalOptions::default(), Precision::F64),
        ]
        .map(|(options, precision)| {
            let ours = native::evaluate_from(&model, &options, precision, &states, start).unwrap();
            Quantiles::of(errors(&model, &ours, &theirs).1)
        });
        println!("{name} {options} {iterations}: {double:?}\n {single:?}\n {whole:?}");
        // Lengths of steps are exact to 1e-5, which elliptic cones show.
        if double.p99 > 1e-5 || single.p99 > 1e-4 || whole.p99 < 1e-3 {
            far.push(format!("{name} {options} {iterations}: {double:?}, {single:?}, {whole:?}"));
        }
    }
    assert!(far.is_empty(), "{far:#?}");
}
