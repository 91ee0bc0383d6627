//! OBJ files of faces with many corners, some bent inwards or not quite flat: cut into MuJoCo's
//! triangles, so that masses and inertias are its own.

use super::{compare, referee, row};
use nalgebra::{Quaternion, UnitQuaternion, Vector3};
use ostler_sim::model::{GeomKind, mjcf};
use std::f64::consts::TAU;
use std::fmt::Write;
use std::path::Path;

const MODELS: u64 = 6;
const PRISMS: usize = 60;

/// Numbers from 0 to 1 (splitmix64).
struct Draw(u64);

impl Draw {
    fn unit(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((z ^ (z >> 31)) >> 11) as f64 / (1_u64 << 53) as f64
    }

    fn from(&mut self, low: f64, high: f64) -> f64 {
        low + (high - low) * self.unit()
    }

    fn below(&mut self, count: usize) -> usize {
        (self.unit() * count as f64) as usize
    }
}

/// A polygon that does not cross itself: convex, a star, or any.
fn polygon(draw: &mut Draw) -> Vec<[f64; 2]> {
    let count = 4 + draw.below(9);
    let kind = draw.below(3);
    if kind == 2 {
        let points = (0..count).map(|_| [draw.from(-1.0, 1.0), draw.from(-1.0, 1.0)]).collect();
        return untangled(points);
    }
    let mut turns: Vec<f64> = (0..count).map(|_| draw.from(0.0, TAU)).collect();
    turns.sort_by(f64::total_cmp);
    let at = |turn: f64| {
        let radius = if kind == 0 { 1.0 } else { draw.from(0.2, 1.0) };
        [radius * turn.cos(), 0.8 * radius * turn.sin()]
    };
    turns.into_iter().map(at).collect()
}

/// Turns the way around between sides that cross until none do.
fn untangled(mut p: Vec<[f64; 2]>) -> Vec<[f64; 2]> {
    let side = |a: [f64; 2], b: [f64; 2], c: [f64; 2]| {
        (b[0] - a[0]) * (c[1] - a[1]) - (b[1] - a[1]) * (c[0] - a[0])
    };
    let apart = |a, b, c, d| side(a, b, c) * side(a, b, d) >= 0.0;
    let count = p.len();
    let pairs = || (0..count).flat_map(move |i| (i + 2..count).map(move |j| (i, j)));
    let crossed = |p: &[[f64; 2]], (i, j): (usize, usize)| {
        let (a, b, c, d) = (p[i], p[i + 1], p[j], p[(j + 1) % count]);
        (i > 0 || j + 1 < count) && !apart(a, b, c, d) && !apart(c, d, a, b)
    };
    for _ in 0..1000 {
        let Some((i, j)) = pairs().find(|pair| crossed(&p, *pair)) else {
            break;
        };
        p[i + 1..=j].reverse();
    }
    p
}

/// A prism on a polygon, somewhere, turned, wound either way, its corners a little off.
fn prism(draw: &mut Draw) -> String {
    let base = polygon(draw);
    let count = base.len();
    let height = draw.from(0.2, 1.0);
    let off = [0.0, 0.0, 1e-5, 1e-3, 0.03][draw.below(5)];
    let [w, i, j, k] = [0; 4].map(|_| draw.from(-1.0, 1.0));
    let turn = UnitQuaternion::new_normalize(Quaternion::new(w, i, j, k));
    let turned = draw.unit() < 0.6;
    let shift = if draw.unit() < 0.5 { 1.0 } else { 0.0 };
    let middle = Vector3::from_fn(|_, _| shift * draw.from(-1.0, 1.0));
    let mut text = String::new();
    for k in 0..2 * count {
        let [x, y] = base[k % count];
        let z = if k < count { 0.0 } else { height };
        let at = Vector3::new(x, y, z).map(|x| x + off * draw.from(-1.0, 1.0));
        let at = if turned { turn * at } else { at } + middle;
        writeln!(text, "v {:.5} {:.5} {:.5}", at.x, at.y, at.z).unwrap();
    }
    let around = |k: usize| (k + 1) % count;
    let mut faces: Vec<Vec<usize>> =
        (0..count).map(|k| vec![k, around(k), count + around(k), count + k]).collect();
    faces.extend([(0..count).rev().collect(), (count..2 * count).collect()]);
    let inwards = draw.unit() < 0.5;
    for mut face in faces {
        let first = draw.below(face.len());
        face.rotate_left(first);
        if inwards {
            face.reverse();
        }
        let words: Vec<String> = face.iter().map(|k| (k + 1).to_string()).collect();
        writeln!(text, "f {}", words.join(" ")).unwrap();
    }
    text
}

#[test]
fn faces_are_cut_into_mujocos_triangles() {
    let folder = tempfile::tempdir().unwrap();
    let mut paths = Vec::new();
    for model in 0..MODELS {
        let mut draw = Draw(model);
        let (mut assets, mut bodies) = (String::new(), String::new());
        for k in 0..PRISMS {
            let name = format!("p{model}_{k}");
            std::fs::write(folder.path().join(format!("{name}.obj")), prism(&mut draw)).unwrap();
            let inertia = if k % 4 == 3 { "shell" } else { "legacy" };
            write!(assets, "<mesh file=\"{name}.obj\" inertia=\"{inertia}\"/>").unwrap();
            let geom = format!("<geom type=\"mesh\" mesh=\"{name}\"/>");
            write!(bodies, "<body><freejoint/>{geom}</body>").unwrap();
        }
        let text = format!(
            "<mujoco model=\"prisms {model}\"><asset>{assets}</asset>\
             <worldbody>{bodies}</worldbody></mujoco>"
        );
        paths.push(folder.path().join(format!("prisms{model}.xml")));
        std::fs::write(&paths[model as usize], text).unwrap();
    }
    let Some(answer) = referee(&paths) else {
        return;
    };
    for (path, theirs) in &answer {
        let model = mjcf::load(Path::new(path)).unwrap_or_else(|e| panic!("{e}"));
        compare(&model, theirs);
        let mut looked_at = 0;
        for (i, geom) in model.geoms.iter().enumerate() {
            let GeomKind::Mesh(mesh) = geom.kind else {
                continue;
            };
            let id = row(theirs, "geom_dataid", i)[0] as usize;
            let number = |field: &str| row(theirs, field, id)[0] as usize;
            let (first, count) = (number("mesh_faceadr"), number("mesh_facenum"));
            let faces: Vec<_> =
                (first..first + count).map(|k| row(theirs, "mesh_face", k)).collect();
            let surface = model.meshes[mesh].surface.as_ref().unwrap();
            let ours: Vec<_> = surface.faces.iter().map(|f| f.map(f64::from).to_vec()).collect();
            assert_eq!(ours, faces, "{path}: mesh {mesh}");
            looked_at += 1;
        }
        assert_eq!(looked_at, PRISMS);
    }
}
