//! Spheres and capsules on a height field beside MuJoCo, and the ground that environments share
//! beside the same height field.

use super::engine::{PRECISIONS, due, evaluate};
use super::generator::dice::Dice;
use super::reference::{mujoco, reference};
use ostler_sim::Model;
use ostler_sim::model::rotation::{mul, rotate};
use ostler_sim::model::terrain::{Roof, Terrain};
use ostler_sim::model::{GeomKind, mjcf};
use ostler_sim::physics::evaluate::{Precision, States};
use ostler_sim::referee::residual::{Gate, compare};
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

/// Distances that MuJoCo's search for the nearest point of a prism leaves open are of 1e-7 m, for
/// which a contact of a time constant of 0.02 s pushes with 4e-4 more of its acceleration.
const OPEN: f64 = 400.0;

#[test]
fn round_geoms_on_a_field_agree_with_mujoco() {
    let Some(mut mujoco) = mujoco() else { return };
    let folder = tempfile::tempdir().unwrap();
    for (name, geoms, slope) in [
        ("spheres", &ROUND[..2], ""),
        ("spheres_turned", &ROUND[..2], "euler=\"10 -7 30\" pos=\"0.1 0 0\""),
        ("capsules", &ROUND[2..], ""),
        ("capsules_turned", &ROUND[2..], "euler=\"10 -7 30\" pos=\"0.1 0 0\""),
    ] {
        let (path, model) = load(folder.path(), name, &text(geoms, slope));
        if !due(name, &model) {
            continue;
        }
        let answers = reference(&mut mujoco, &path, &model, STATES, 3);
        for (label, precision) in PRECISIONS {
            let ours = evaluate(&model, precision, &answers.states.view()).unwrap();
            let gate = match precision {
                Precision::F64 => Gate::of(precision).scaled(OPEN),
                Precision::F32 => Gate { most: 1e-3, ..Gate::of(precision) },
            };
            let table = compare(&model, label, &ours, &answers, gate);
            println!("{name}\n{table}");
            assert!(table.beyond.is_empty(), "{name}, {label}: {:?}", table.beyond);
            assert!(table.same_ncon >= STATES - 1, "{name}, {label}: {}", table.same_ncon);
        }
    }
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
        roof: Roof::default(),
    }));
    let ground = model.geoms.iter_mut().find(|g| g.name == "field").unwrap();
    ground.kind = GeomKind::Terrain;
    model
}

/// States of one free geom, drawn anew about the field.
fn states(model: &Model) -> impl Iterator<Item = Vec<f64>> + '_ {
    let mut dice = Dice::new(17);
    (0..4000).map(move |_| {
        let mut qpos = model.qpos0.clone();
        qpos[0] = -0.95 + 1.9 * dice.unit();
        qpos[1] = -0.95 + 1.9 * dice.unit();
        qpos[2] = 0.08 + 0.25 * dice.unit();
        let quat = [(); 4].map(|()| -1.0 + 2.0 * dice.unit());
        let norm = quat.iter().map(|x| x * x).sum::<f64>().sqrt();
        (0..4).for_each(|i| qpos[3 + i] = quat[i] / norm);
        qpos
    })
}

/// Half the length of a round geom's axis (m).
const AXES: [f64; 4] = [0.0, 0.0, 0.1, 0.2];

/// Whether the centre or the axis of a geom is in the ground, which then leads out of all cells
/// and not of each.
fn is_within(ground: &Terrain, pose: &[f64], body: usize) -> bool {
    let axis = rotate([pose[3], pose[4], pose[5], pose[6]], [0.0, 0.0, 1.0]);
    let half = AXES.get(body).copied().unwrap_or(0.0);
    (-20..=20).any(|k| {
        let [x, y, z] = [0, 1, 2].map(|i| pose[i] + f64::from(k) / 20.0 * half * axis[i]);
        z < ground.height(x, y) + 0.003
    })
}

/// Of the states in which a body alone touches a field once: how many, and in how many of them it
/// accelerates otherwise on another ground. Where it touches the field several times, edges between
/// cells that do not stick out are among these: the ground has no more contacts, and one at least.
fn compared(one: &Model, other: &Model, body: usize, precision: Precision) -> [usize; 2] {
    let ground = on_terrain(one).terrain.unwrap();
    let most = if precision == Precision::F64 { 1e-3 } else { 0.02 };
    let (mut count, mut different) = (0, 0);
    for qpos in states(one) {
        if body < AXES.len() && is_within(&ground, &qpos, body) {
            continue;
        }
        let qvel = vec![0.0; one.nv];
        let states = States { qpos: &qpos, qvel: &qvel, ctrl: &[], act: &[], varied: &[] };
        let [a, b] = [one, other].map(|m| evaluate(m, precision, &states).unwrap());
        let [a_count, b_count] = [a.ncon[0], b.ncon[0]];
        // A box touches it with its corners, too.
        let corners = if body < AXES.len() { 0 } else { 4 };
        assert!(
            b_count <= a_count + corners && (b_count > 0 || a_count == 0),
            "{a_count} {b_count}"
        );
        if a_count == 1 {
            let differs = |i: usize| (a.qacc[i] - b.qacc[i]).abs() > most * (1.0 + a.qacc[i].abs());
            count += 1;
            different += usize::from((0..6).any(differs));
        }
    }
    [count, different]
}

#[test]
fn the_shared_ground_is_the_field() {
    let folder = tempfile::tempdir().unwrap();
    let geoms = [&ROUND[..], &["type=\"box\" size=\"0.1 0.06 0.04\""]].concat();
    // A large one touches several cells, always.
    let mut alone = 0;
    for (body, geom) in geoms.iter().enumerate() {
        let (_, field) = load(folder.path(), "one", &text(&[geom], ""));
        let ground = on_terrain(&field);
        for (label, precision) in PRECISIONS {
            let [count, different] = compared(&field, &ground, body, precision);
            println!("{geom}, {label}: {different} of {count}");
            assert!(different <= 1, "{geom}: {different} of {count}");
            alone += count;
        }
    }
    assert!(alone > 100, "{alone}");
}

/// The ground with cells of one height, level ones and the same as triangles.
fn even(field: &Model) -> [Model; 2] {
    [1, 0].map(|bit| {
        let mut model = on_terrain(field);
        let mut terrain = Terrain::clone(model.terrain.as_ref().unwrap());
        terrain.heights.fill(f32::from_bits(EVEN.to_bits() & !1 | bit));
        model.terrain = Some(Arc::new(terrain));
        model
    })
}

const EVEN: f32 = 0.1;

/// A capsule that lies on several cells has a plane's two contacts, and moves as on it.
#[test]
fn a_capsule_on_even_ground_has_a_planes_contacts() {
    let folder = tempfile::tempdir().unwrap();
    let geom = "type=\"capsule\" size=\"0.05 0.2\"";
    let (_, field) = load(folder.path(), "capsule", &text(&[geom], ""));
    let plane = format!(
        "<mujoco><worldbody><geom name=\"field\" type=\"plane\" size=\"0 0 1\" pos=\"0 0 {EVEN}\"/>\
         <body><freejoint/><geom {geom}/></body></worldbody></mujoco>"
    );
    let (_, plane) = load(folder.path(), "plane", &plane);
    for model in even(&field) {
        let mut dice = Dice::new(7);
        for _ in 0..500 {
            let mut qpos = model.qpos0.clone();
            let [x, y, yaw] = [(); 3].map(|()| dice.unit());
            (qpos[0], qpos[1], qpos[2]) = (x - 0.5, y - 0.5, f64::from(EVEN) + 0.049);
            // Along the ground, in any direction.
            let (sin, cos) = (3.0 * yaw).sin_cos();
            let half = std::f64::consts::FRAC_1_SQRT_2;
            qpos[3..7].copy_from_slice(&[cos * half, -sin * half, cos * half, sin * half]);
            let qvel = vec![0.0; model.nv];
            let states = States { qpos: &qpos, qvel: &qvel, ctrl: &[], act: &[], varied: &[] };
            let [ours, theirs] =
                [&model, &plane].map(|m| evaluate(m, Precision::F64, &states).unwrap());
            assert_eq!([ours.ncon[0], theirs.ncon[0]], [2, 2], "{qpos:?}");
            for (a, b) in ours.qacc.iter().zip(&theirs.qacc) {
                assert!(
                    (a - b).abs() < 1e-3 * (1.0 + b.abs()),
                    "{:?} {:?}",
                    ours.qacc,
                    theirs.qacc
                );
            }
        }
    }
}

/// Shapes that are tilted a little, over several cells, touch even ground as they touch a plane:
/// the shallow corners push, too.
#[test]
fn tilted_shapes_on_even_ground_have_a_planes_contacts() {
    let folder = tempfile::tempdir().unwrap();
    let block = "<asset><mesh name=\"block\" vertex=\"-.1 -.06 -.04 .1 -.06 -.04 -.1 .06 -.04 .1 .06 -.04 -.1 -.06 .05 .1 -.06 .05 -.1 .06 .05 .1 .06 .05\"/></asset>";
    let shapes = [
        ("type=\"capsule\" size=\"0.05 0.2\"", [0.0, 1.0, 0.0], 0.05),
        ("type=\"box\" size=\"0.1 0.06 0.04\"", [0.0, 0.0, 1.0], 0.04),
        ("type=\"cylinder\" size=\"0.08 0.05\"", [0.0, 0.0, 1.0], 0.05),
        ("type=\"cylinder\" size=\"0.05 0.12\"", [0.0, 1.0, 0.0], 0.05),
        ("type=\"mesh\" mesh=\"block\"", [0.0, 0.0, 1.0], 0.044),
    ];
    for (geom, up, low) in shapes {
        let with_mesh = |text: String| match geom.contains("mesh") {
            true => text.replacen("<worldbody>", &format!("{block}<worldbody>"), 1),
            false => text,
        };
        let (_, field) = load(folder.path(), "tilted", &with_mesh(text(&[geom], "")));
        let plane = format!(
            "<mujoco><worldbody><geom name=\"field\" type=\"plane\" size=\"0 0 1\" pos=\"0 0 {EVEN}\"/>\
             <body><freejoint/><geom {geom}/></body></worldbody></mujoco>"
        );
        let (_, plane) = load(folder.path(), "plane", &with_mesh(plane));
        for (kind, model) in even(&field).iter().enumerate() {
            let (mut dice, mut several, mut more) = (Dice::new(29), 0, 0);
            for _ in 0..400 {
                let mut qpos = model.qpos0.clone();
                let [x, y, yaw, tilt, about, deep] = [(); 6].map(|()| dice.unit());
                // Lying: the axis `up` along z; then tilted about a level axis, and turned.
                let lying = if up[2] > 0.0 {
                    [1.0, 0.0, 0.0, 0.0]
                } else {
                    [0.5_f64.sqrt(), 0.5_f64.sqrt(), 0.0, 0.0]
                };
                let (sin, cos) = (0.002 + 0.04 * tilt).sin_cos();
                let (a, b) = (6.2 * about).sin_cos();
                let tilted = mul([cos, sin * a, sin * b, 0.0], lying);
                let (sin, cos) = (3.1 * yaw).sin_cos();
                (qpos[0], qpos[1]) = (x - 0.5, y - 0.5);
                qpos[2] = f64::from(EVEN) + low - 0.012 * deep;
                qpos[3..7].copy_from_slice(&mul([cos, 0.0, 0.0, sin], tilted));
                let qvel = vec![0.0; model.nv];
                let states = States { qpos: &qpos, qvel: &qvel, ctrl: &[], act: &[], varied: &[] };
                for (_, precision) in PRECISIONS {
                    let [ours, theirs] =
                        [model, &plane].map(|m| evaluate(m, precision, &states).unwrap());
                    // A contact more, of a cell whose border the shape's is near.
                    if ours.ncon[0] != theirs.ncon[0] {
                        more += 1;
                        continue;
                    }
                    several += usize::from(theirs.ncon[0] > 1);
                    for (a, b) in ours.qacc.iter().zip(&theirs.qacc) {
                        assert!(
                            (a - b).abs() < 0.02 * (10.0 + b.abs()),
                            "{geom}, {kind}: {:?} {:?}",
                            ours.qacc,
                            theirs.qacc
                        );
                    }
                }
            }
            assert!(several > 200 && more < 8, "{geom}: {several} {more}");
        }
    }
}

/// A box that lies on cells of one height is pushed up alone, wherever their borders are.
#[test]
fn borders_of_level_cells_do_not_push_a_box_aside() {
    let folder = tempfile::tempdir().unwrap();
    let half = [0.1, 0.06, 0.04];
    // Without friction: each contact pushes along its normal.
    let geom = "type=\"box\" size=\"0.1 0.06 0.04\" condim=\"1\" priority=\"1\"";
    let (_, field) = load(folder.path(), "box", &text(&[geom], ""));
    for model in even(&field) {
        let mut dice = Dice::new(5);
        for _ in 0..500 {
            let mut qpos = model.qpos0.clone();
            let [x, y, yaw] = [(); 3].map(|()| dice.unit());
            (qpos[0], qpos[1]) = (x - 0.5, y - 0.5);
            qpos[2] = f64::from(EVEN) + half[2] - 0.001;
            let (sin, cos) = (3.0 * yaw).sin_cos();
            qpos[3..7].copy_from_slice(&[cos, 0.0, 0.0, sin]);
            let qvel = vec![0.0; model.nv];
            let states = States { qpos: &qpos, qvel: &qvel, ctrl: &[], act: &[], varied: &[] };
            let found = evaluate(&model, Precision::F64, &states).unwrap();
            assert!(found.ncon[0] > 0 && found.qacc[2] > 0.1, "{qpos:?}: {:?}", found.qacc);
            let aside = found.qacc[0].abs() + found.qacc[1].abs();
            assert!(aside < 1e-6 * found.qacc[2], "{qpos:?}: {:?}", found.qacc);
        }
    }
}

/// A box that stands on a corner, wherever the borders of cells are, is pushed up by it as on a
/// plane.
#[test]
fn a_corner_on_even_ground_has_a_planes_contact() {
    let folder = tempfile::tempdir().unwrap();
    let half = [0.1, 0.06, 0.04];
    let geom = "type=\"box\" size=\"0.1 0.06 0.04\" condim=\"1\" priority=\"1\"";
    let (_, field) = load(folder.path(), "box", &text(&[geom], ""));
    let plane = format!(
        "<mujoco><worldbody><geom type=\"plane\" size=\"0 0 1\" pos=\"0 0 {EVEN}\"/>\
         <body><freejoint/><geom {geom}/></body></worldbody></mujoco>"
    );
    let (_, plane) = load(folder.path(), "plane", &plane);
    for model in even(&field) {
        let (mut dice, mut alone) = (Dice::new(11), 0);
        for _ in 0..1000 {
            let mut qpos = model.qpos0.clone();
            let quat = [(); 4].map(|()| 2.0 * dice.unit() - 1.0);
            let norm = quat.iter().map(|x| x * x).sum::<f64>().sqrt();
            let quat = quat.map(|x| x / norm);
            let corner = |i: usize| {
                let sign = |k: usize| if i >> k & 1 == 0 { -half[k] } else { half[k] };
                rotate(quat, [sign(0), sign(1), sign(2)])[2]
            };
            let lowest = (0..8).map(corner).fold(f64::MAX, f64::min);
            qpos[0] = dice.unit() - 0.5;
            qpos[1] = dice.unit() - 0.5;
            qpos[2] = f64::from(EVEN) - lowest - 0.001;
            qpos[3..7].copy_from_slice(&quat);
            let qvel = vec![0.0; model.nv];
            let states = States { qpos: &qpos, qvel: &qvel, ctrl: &[], act: &[], varied: &[] };
            let [ours, theirs] =
                [&model, &plane].map(|m| evaluate(m, Precision::F64, &states).unwrap());
            assert!(ours.ncon[0] > 0);
            if [ours.ncon[0], theirs.ncon[0]] != [1, 1] {
                continue;
            }
            alone += 1;
            for (a, b) in ours.qacc.iter().zip(&theirs.qacc) {
                assert!((a - b).abs() < 1e-4 * (1.0 + b.abs()), "{qpos:?}: {ours:?} {theirs:?}");
            }
        }
        assert!(alone > 800, "{alone}");
    }
}
