//! How deep boxes and hulls are in the cells of a height field and of the shared ground, beside a
//! search of all directions. MuJoCo's own search ends too early there.

use super::engine::{PRECISIONS, evaluate};
use super::generator::dice::Dice;
use super::reference::mujoco;
use ostler_sim::Model;
use ostler_sim::model::rotation::rotate;
use ostler_sim::model::terrain::{Roof, Terrain};
use ostler_sim::model::{GeomKind, mjcf};
use ostler_sim::npz::NpzWriter;
use ostler_sim::physics::evaluate::{Precision, States};
use ostler_sim::referee::states::Reference;
use std::fmt::Write;
use std::path::Path;
use std::sync::Arc;

type V3 = [f64; 3];

const STATES: usize = 40;
/// Cells along a side, of 1 m: a shape is rarely in two of them.
const CELLS: usize = 4;
const HEIGHT: f64 = 0.5;
/// The base is as far below.
const BASE: f64 = 1.0;
/// Depths up to here, and distances from which another cell is surely not touched (m).
const DEEPEST: f64 = 0.03;
const CLEAR: f64 = 1e-4;
/// A body that a contact moves and hardly turns accelerates by this for each metre of depth: an
/// impedance of 0.9 twice, times a stiffness of `1 / (0.9 * 0.02 s)^2`.
const PER_METRE: f64 = 1.0 / (0.02 * 0.02);

fn dot(a: V3, b: V3) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

fn unit(a: V3) -> V3 {
    let length = dot(a, a).sqrt();
    a.map(|x| x / length)
}

fn cross(a: V3, b: V3) -> V3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// How far one of two hulls has to move along `n` to leave the other; negative: they are apart.
fn reach(a: &[V3], b: &[V3], n: V3) -> f64 {
    let far = a.iter().map(|v| dot(*v, n)).fold(f64::MIN, f64::max);
    let near = b.iter().map(|v| dot(*v, n)).fold(f64::MAX, f64::min);
    far - near
}

fn less(a: V3, b: V3) -> V3 {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// Directions in which one of two hulls may leave the other soonest, or is nearest to it: normal
/// to three corners of one, to two of each, to two of one and a corner of the other there, and
/// between two corners. Edges and faces are among these, whichever they are.
fn directions(a: &[V3], b: &[V3]) -> Vec<V3> {
    let mut all = Vec::new();
    let pairs = |of: &[V3]| -> Vec<[V3; 2]> {
        let ends = |i: usize| of[..i].iter().map(move |from| [*from, of[i]]);
        (1..of.len()).flat_map(ends).collect()
    };
    let (pairs_a, pairs_b) = (pairs(a), pairs(b));
    let edges = |of: &[[V3; 2]]| of.iter().map(|[from, to]| less(*to, *from)).collect::<Vec<_>>();
    let (edges_a, edges_b) = (edges(&pairs_a), edges(&pairs_b));
    all.extend(edges_a.iter().flat_map(|e| edges_b.iter().map(|f| cross(*e, *f))));
    for (own, pairs, other) in [(a, &pairs_a, b), (b, &pairs_b, a)] {
        for [from, to] in pairs {
            let edge = unit(less(*to, *from));
            all.extend(own.iter().map(|third| cross(edge, less(*third, *from))));
            all.extend(other.iter().map(|at| {
                let gap = less(*at, *from);
                let along = dot(gap, edge);
                [0, 1, 2].map(|i| gap[i] - along * edge[i])
            }));
        }
    }
    all.extend(a.iter().flat_map(|v| b.iter().map(|w| less(*w, *v))));
    all.retain(|n| dot(*n, *n) > 1e-20);
    all.iter().flat_map(|n| [unit(*n), unit(n.map(|x| -x))]).collect()
}

/// The least reach of all directions. Of 2,000 all around none has less.
fn depth(a: &[V3], b: &[V3]) -> f64 {
    let least = directions(a, b).into_iter().map(|n| reach(a, b, n)).fold(f64::MAX, f64::min);
    let turn = std::f64::consts::PI * (1.0 + 5.0_f64.sqrt());
    for i in 0..2000 {
        let z = 1.0 - (2.0 * f64::from(i) + 1.0) / 2000.0;
        let ((sin, cos), side) = ((turn * f64::from(i)).sin_cos(), (1.0 - z * z).sqrt());
        assert!(reach(a, b, [side * cos, side * sin, z]) > least - 1e-12);
    }
    least
}

fn hull() -> Vec<V3> {
    let mut dice = Dice::new(5);
    (0..12)
        .map(|_| {
            let at = unit([(); 3].map(|()| -1.0 + 2.0 * dice.unit()));
            [0.12 * at[0], 0.09 * at[1], 0.07 * at[2]]
        })
        .collect()
}

/// One shape over a field that looks random; without weight, hard to turn, without friction.
fn text(geom: &str) -> String {
    let (side, half) = (CELLS + 1, CELLS as f64 / 2.0);
    let (mut field, mut vertices) = (String::new(), String::new());
    for k in 0..side * side {
        let _ = write!(field, " {:.4}", ((k * k * 31 + k * 17) % 97) as f64 / 96.0);
    }
    for v in hull() {
        let _ = write!(vertices, " {} {} {}", v[0], v[1], v[2]);
    }
    format!(
        "<mujoco><compiler balanceinertia=\"true\"/><option gravity=\"0 0 0\"/><asset>\
         <mesh name=\"m\" vertex=\"{vertices}\"/><hfield name=\"h\" nrow=\"{side}\" \
         ncol=\"{side}\" size=\"{half} {half} {HEIGHT} {BASE}\" elevation=\"{field}\"/></asset>\
         <default><geom condim=\"1\" solimp=\".9 .9 .001\"/></default><worldbody>\
         <geom name=\"field\" type=\"hfield\" hfield=\"h\"/><body><freejoint/><inertial pos=\"0 0 0\" \
         mass=\"1\" diaginertia=\"1e7 1e7 1e7\"/>{geom}</body></worldbody></mujoco>"
    )
}

/// The same heights as a tile of the shared ground.
fn on_ground(model: &Model) -> Model {
    let mut model = model.clone();
    let heights = heights(&model).into_iter().map(|h| f32::from_bits((h as f32).to_bits() & !1));
    model.terrain = Some(Arc::new(Terrain {
        levels: 1,
        columns: 1,
        cells: CELLS,
        cell: 1.0,
        heights: heights.collect(),
        origins: vec![[0.0; 3]],
        column_kinds: vec![0],
        kinds: vec!["field".into()],
        range: [0.0, HEIGHT],
        roof: Roof::default(),
    }));
    model.geoms.iter_mut().find(|g| g.name == "field").unwrap().kind = GeomKind::Terrain;
    model
}

fn heights(model: &Model) -> Vec<f64> {
    let field = &model.hfields[0];
    field.data.iter().map(|h| f64::from(*h) * field.size[2]).collect()
}

/// Both prisms of every cell.
fn prisms(model: &Model) -> Vec<Vec<V3>> {
    let (heights, half) = (heights(model), CELLS as f64 / 2.0);
    let corner =
        |c: usize, r: usize| [c as f64 - half, r as f64 - half, heights[r * (CELLS + 1) + c]];
    let mut all = Vec::new();
    for (r, c) in (0..CELLS * CELLS).map(|k| (k / CELLS, k % CELLS)) {
        for third in [corner(c, r + 1), corner(c + 1, r)] {
            let top = [corner(c, r), corner(c + 1, r + 1), third];
            all.push(top.iter().copied().chain(top.map(|[x, y, _]| [x, y, -BASE])).collect());
        }
    }
    all
}

/// States in which one cell alone is touched, with how deep the shape is in it.
fn states(model: &Model, corners: &[V3], margin: f64) -> (Vec<f64>, Vec<f64>) {
    let cells = prisms(model);
    let ground = on_ground(model).terrain.unwrap();
    let mut dice = Dice::new(11);
    let (mut rows, mut deep) = (Vec::new(), Vec::new());
    while deep.len() < STATES {
        let mut draw = |low: f64, high: f64| low + (high - low) * dice.unit();
        let quat = [(); 4].map(|()| draw(-1.0, 1.0));
        let norm = quat.iter().map(|x| x * x).sum::<f64>().sqrt();
        // Numbers that single precision holds.
        let quat = quat.map(|x| f64::from((x / norm) as f32));
        let [x, y] = [(); 2].map(|()| draw(-1.7, 1.7));
        let at = [x, y, ground.height(x, y) + draw(-0.02, 0.12)].map(|x| f64::from(x as f32));
        let turned = quat.iter().map(|x| x * x).sum::<f64>().sqrt();
        let placed: Vec<V3> = corners
            .iter()
            .map(|v| {
                let v = rotate(quat.map(|x| x / turned), *v);
                [at[0] + v[0], at[1] + v[1], at[2] + v[2]]
            })
            .collect();
        // Most cells are passed by: these directions say so at once.
        let axes =
            [[1.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, -1.0, 0.0], [0.0, 0.0, 1.0]];
        let near: Vec<f64> = cells
            .iter()
            .filter(|cell| axes.iter().all(|n| reach(cell, &placed, *n) > -margin - CLEAR))
            .map(|cell| depth(cell, &placed) + margin)
            .filter(|deep| *deep > -CLEAR)
            .collect();
        if let [only] = near[..]
            && only > CLEAR
            && only < DEEPEST + margin
        {
            rows.extend(at.into_iter().chain(quat));
            deep.push(only);
        }
    }
    (rows, deep)
}

/// MuJoCo's accelerations.
fn theirs(path: &Path, model: &Model, qpos: &[f64]) -> Option<Reference> {
    let mut mujoco = mujoco()?;
    let (given, out) = (mujoco.scratch("given.npz"), mujoco.scratch("answers.npz"));
    let mut npz = NpzWriter::create(&given).unwrap();
    npz.array("qpos", &[STATES, model.nq], qpos).unwrap();
    npz.array("qvel", &[STATES, model.nv], &vec![0.0; STATES * model.nv]).unwrap();
    npz.finish().unwrap();
    let request = serde_json::json!({"op": "evaluate", "model": path, "states": given, "out": out});
    mujoco.ask(&request).unwrap_or_else(|e| panic!("{e}"));
    Some(Reference::read(&out, model).unwrap_or_else(|e| panic!("{e}")))
}

/// Errors of the depths (m) that accelerations say, those of one contact. A cell of the shared
/// ground is touched by several corners, too, which push the more.
fn errors(qacc: &[f64], ncon: &[u32], deep: &[f64], corners: bool) -> Vec<f64> {
    let alone = ncon.iter().filter(|n| **n == 1).count();
    assert!(!ncon.contains(&0), "one cell is touched: {ncon:?}");
    assert!(alone == ncon.len() || corners && 3 * alone > ncon.len(), "{ncon:?}");
    let said = qacc.chunks_exact(6).map(|a| dot([a[0], a[1], a[2]], [a[0], a[1], a[2]]).sqrt());
    let alone = said.zip(deep).zip(ncon).filter(|(_, n)| **n == 1);
    alone.map(|((a, deep), _)| a / PER_METRE - deep).collect()
}

#[test]
fn boxes_and_hulls_are_as_deep_in_a_cell_as_all_directions_say() {
    let folder = tempfile::tempdir().unwrap();
    let sign = |k: usize, bit: usize, x: f64| if k & bit == 0 { -x } else { x };
    let corners = (0..8).map(|k| [sign(k, 1, 0.1), sign(k, 2, 0.06), sign(k, 4, 0.04)]).collect();
    let shapes = [
        ("box", "type=\"box\" size=\".1 .06 .04\"", corners),
        ("hull", "type=\"mesh\" mesh=\"m\"", hull()),
    ];
    for ((name, geom, corners), margin) in shapes.iter().flat_map(|s| [(s, 0.0), (s, 0.02)]) {
        let path = folder.path().join(format!("{name}.xml"));
        let geom = format!("<geom {geom} margin=\"{margin}\"/>");
        std::fs::write(&path, text(&geom)).unwrap();
        let field = mjcf::load(&path).unwrap();
        // A mesh's vertices are where its geom's frame is not.
        let shape = field.geoms.iter().find(|g| g.name != "field").unwrap();
        assert!(name != &"hull" || shape.pos.iter().all(|x| x.abs() < 0.1));
        let (qpos, deep) = states(&field, corners, margin);
        let qvel = vec![0.0; STATES * field.nv];
        for (ground, model) in [("field", field.clone()), ("ground", on_ground(&field))] {
            for (label, precision) in PRECISIONS {
                let states = States { qpos: &qpos, qvel: &qvel, ctrl: &[], act: &[], varied: &[] };
                let ours = evaluate(&model, precision, &states).unwrap();
                let off = errors(&ours.qacc, &ours.ncon, &deep, ground == "ground");
                let most = off.iter().fold(0.0_f64, |m, e| m.max(e.abs()));
                println!("{name}, margin {margin}, {ground}, {label}: off by {most:.1e} m");
                let allowed = if precision == Precision::F64 { 1e-7 } else { 3e-7 };
                assert!(most < allowed, "{name}, {ground}, {label}: {most}");
            }
        }
        if let Some(answers) = theirs(&path, &field, &qpos) {
            // Without a margin it ends too early, where the depth is too small. With one its
            // shapes are round, and it does not.
            let off = errors(&answers.qacc, &answers.ncon, &deep, false);
            let far = off.iter().filter(|e| e.abs() > 1e-6).count();
            let most = off.iter().fold(0.0_f64, |m, e| m.max(e.abs()));
            println!("{name}, margin {margin}, MuJoCo: {far} of {STATES}, up to {most:.1e} m");
            assert!(off.iter().all(|e| *e < 1e-6), "{name}: deeper than it is");
            let few = if margin > 0.0 { 0 } else { STATES * 9 / 10 };
            assert!(far <= few, "{name}: {far} of {STATES}");
        }
    }
}
