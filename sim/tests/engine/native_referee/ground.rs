//! Spheres and capsules on a height field beside MuJoCo, and the ground that environments share
//! beside the same height field.

use super::engine::{Findings, evaluate};
use super::reference::{mujoco, reference};
use ostler_sim::Model;
use ostler_sim::model::terrain::Terrain;
use ostler_sim::model::{GeomKind, mjcf};
use ostler_sim::physics::evaluate::Precision;
use std::fmt::Write;
use std::sync::Arc;

const STATES: usize = 1000;
/// Cells along each side, and their size (m).
const CELLS: usize = 30;
const CELL: f64 = 0.1;
const HEIGHT: f64 = 0.25;

/// A height that looks random.
fn elevation(k: usize) -> f64 {
    ((k * k * 31 + k * 17) % 97) as f64 / 97.0
}

/// Free geoms, each alone, over a field; `slope` of its frame.
fn text(geoms: &[&str], slope: &str) -> String {
    let half = CELLS as f64 * CELL / 2.0;
    let side = CELLS + 1;
    let mut field = String::new();
    for k in 0..side * side {
        let _ = write!(field, " {:.4}", elevation(k));
    }
    let mut bodies = String::new();
    for (i, geom) in geoms.iter().enumerate() {
        let bit = 1 << i;
        let _ = write!(
            bodies,
            "<body pos=\"{} {} 0.2\"><freejoint/><geom {geom} contype=\"{bit}\" conaffinity=\"0\"/>\
             </body>",
            i as f64 * 0.37 - 0.5,
            0.3 - i as f64 * 0.29,
        );
    }
    format!(
        "<mujoco><option timestep=\"0.002\"/><asset><hfield name=\"h\" nrow=\"{side}\" \
         ncol=\"{side}\" size=\"{half} {half} {HEIGHT} 1\" elevation=\"{field}\"/></asset>\
         <worldbody><geom name=\"field\" type=\"hfield\" hfield=\"h\" contype=\"0\" \
         conaffinity=\"255\" {slope}/>{bodies}</worldbody></mujoco>"
    )
}

fn load(folder: &std::path::Path, name: &str, text: &str) -> (std::path::PathBuf, Model) {
    let path = folder.join(format!("{name}.xml"));
    std::fs::write(&path, text).unwrap();
    let model = mjcf::load(&path).unwrap();
    (path, model)
}

const ROUND: [&str; 4] = [
    "type=\"sphere\" size=\"0.02\"",
    "type=\"sphere\" size=\"0.13\"",
    "type=\"capsule\" size=\"0.02 0.1\"",
    "type=\"capsule\" size=\"0.05 0.2\"",
];

#[test]
fn round_geoms_on_a_field_agree_with_mujoco() {
    let Some(mut mujoco) = mujoco() else { return };
    let folder = tempfile::tempdir().unwrap();
    let mut findings = Findings::default();
    for (name, geoms, slope) in [
        ("spheres", &ROUND[..2], ""),
        ("spheres_turned", &ROUND[..2], "euler=\"10 -7 30\" pos=\"0.1 0 0\""),
        ("capsules", &ROUND[2..], ""),
        ("capsules_turned", &ROUND[2..], "euler=\"10 -7 30\" pos=\"0.1 0 0\""),
    ] {
        let (path, model) = load(folder.path(), name, &text(geoms, slope));
        let answers = reference(&mut mujoco, &path, &model, STATES, 3);
        findings.check(name, &model, &answers);
    }
    findings.finish();
}

/// The same heights as a tile of the shared ground.
fn on_terrain(model: &Model) -> Model {
    let mut model = model.clone();
    let field = model.hfields[0].clone();
    let heights = field.data.iter().map(|h| {
        let bits = ((f64::from(*h) * field.size[2]) as f32).to_bits() & !1;
        f32::from_bits(bits)
    });
    model.terrain = Some(Arc::new(Terrain {
        levels: 1,
        columns: 1,
        cells: CELLS,
        cell: CELL,
        heights: heights.collect(),
        origins: vec![[0.0; 3]],
        column_kinds: vec![0],
        kinds: vec!["field".into()],
        range: [0.0, HEIGHT],
    }));
    let ground = model.geoms.iter_mut().find(|g| g.name == "field").unwrap();
    ground.kind = GeomKind::Terrain;
    model
}

#[test]
fn the_shared_ground_is_the_field() {
    let folder = tempfile::tempdir().unwrap();
    let geoms = [&ROUND[..], &["type=\"box\" size=\"0.1 0.06 0.04\""]].concat();
    let (_, field) = load(folder.path(), "all", &text(&geoms, ""));
    let ground = on_terrain(&field);
    let (mut touching, mut checked) = (0, 0);
    for (name, precision, most) in [("f64", Precision::F64, 1e-4), ("f32", Precision::F32, 0.2)] {
        for k in 0..200 {
            let mut qpos = field.qpos0.clone();
            for body in 0..geoms.len() {
                let at = |i: usize| elevation(k * 131 + body * 17 + i * 7);
                qpos[7 * body] = at(1) * 2.0 - 1.0;
                qpos[7 * body + 1] = at(2) * 2.0 - 1.0;
                qpos[7 * body + 2] = 0.05 + 0.25 * at(3);
                let quat = [at(4) + 0.1, at(5) - 0.5, at(6) - 0.5, at(7) - 0.5];
                let norm = quat.iter().map(|x| x * x).sum::<f64>().sqrt();
                (0..4).for_each(|i| qpos[7 * body + 3 + i] = quat[i] / norm);
            }
            let qvel = vec![0.0; field.nv];
            let states = ostler_sim::physics::evaluate::States {
                qpos: &qpos,
                qvel: &qvel,
                ctrl: &[],
                act: &[],
                varied: &[],
            };
            let [a, b] = [&field, &ground].map(|m| evaluate(m, precision, &states).unwrap());
            assert_eq!(a.ncon, b.ncon, "{name}, state {k}");
            touching += a.ncon[0];
            for (i, (x, y)) in a.qacc.iter().zip(&b.qacc).enumerate() {
                let size = 1.0 + x.abs();
                assert!((x - y).abs() <= most * size, "{name}, state {k}, {i}: {x} and {y}");
                checked += 1;
            }
        }
    }
    assert!(touching > 500 && checked > 1000, "{touching} contacts");
}
