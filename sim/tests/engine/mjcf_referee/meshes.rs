//! Meshes and height fields. MuJoCo stops its search for a mesh's principal axes at
//! about 1e-6: poses and inertias that depend on them are compared to that.

use super::{Check, row};
use nalgebra::{Quaternion, UnitQuaternion, Vector3};
use ostler_sim::model::{Geom, HField, Model};

/// Files of meshes and terrains, by name.
pub fn files() -> Vec<(&'static str, Vec<u8>)> {
    vec![
        ("wedge.stl", stl()),
        ("blob.obj", OBJ.into()),
        ("hills.png", picture(png::ColorType::Grayscale, png::BitDepth::Eight)),
        ("hills16.png", picture(png::ColorType::Grayscale, png::BitDepth::Sixteen)),
        ("hills_rgb.png", picture(png::ColorType::Rgb, png::BitDepth::Eight)),
        ("hills.bin", hills()),
    ]
}

/// A wedge with an inner corner, so that hull and surface differ.
fn stl() -> Vec<u8> {
    let v: [[f32; 3]; 5] =
        [[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.0, 0.2, 0.0], [0.0, 0.0, 0.25], [0.05, 0.05, 0.04]];
    let faces = [[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 4], [2, 3, 4], [3, 1, 4]];
    let mut out = vec![0; 80];
    out.extend((faces.len() as u32).to_le_bytes());
    for f in faces {
        out.extend([0; 12]);
        for x in f.iter().flat_map(|i| v[*i]) {
            out.extend(x.to_le_bytes());
        }
        out.extend([0; 2]);
    }
    out
}

const OBJ: &str = "# two objects: the second's faces do not count
o first
v 0.1 0 0\nv 0.2 0.5 0\nv -0.3 0.1 0.1\nv 0 0.1 0.4\nv 0 -0.2 -0.3
f 1 2 4
f 2 3 4\nf 3 1 4\nf 2 1 5\nf -3 2 5\nf 1 3 5
o second
v 1 1 1\nv 1 1 1.1
f 1 2 6
";

fn picture(color: png::ColorType, depth: png::BitDepth) -> Vec<u8> {
    let (width, height) = (5, 4);
    let mut out = Vec::new();
    let mut encoder = png::Encoder::new(&mut out, width, height);
    encoder.set_color(color);
    encoder.set_depth(depth);
    let per_pixel = color.samples() * if depth == png::BitDepth::Sixteen { 2 } else { 1 };
    let data: Vec<u8> = (0..width as usize * height as usize * per_pixel)
        .map(|i| (31 * (i / per_pixel) % 200 + 40 + 7 * (i % per_pixel)) as u8)
        .collect();
    let mut writer = encoder.write_header().unwrap();
    writer.write_image_data(&data).unwrap();
    writer.finish().unwrap();
    out
}

fn hills() -> Vec<u8> {
    let mut out: Vec<u8> = [3_i32, 4].iter().flat_map(|n| n.to_le_bytes()).collect();
    for i in 0..12 {
        out.extend((((i * 7) % 5) as f32 - 1.5).to_le_bytes());
    }
    out
}

pub const MODELS: &[(&str, &str)] = &[
    (
        "meshes",
        r#"<mujoco model="meshes">
  <default><default class="s"><mesh scale="1 2 3"/></default></default>
  <asset>
    <mesh file="wedge.stl"/>
    <mesh name="convex" file="wedge.stl" inertia="convex"/>
    <mesh name="exact" file="wedge.stl" inertia="exact" scale="-1 1 1.5"/>
    <mesh name="shell" file="wedge.stl" inertia="shell"/>
    <mesh name="placed" class="s" file="wedge.stl" refpos="0.1 0.2 0.3" refquat="1 2 0 1"/>
    <mesh file="blob.obj"/>
    <mesh name="points" vertex="0 0 0  1 0 0  0 1 0  0 0 1  0.1 0.1 0.1  0.5 0.5 0  0.4 0.7 0.3"/>
    <mesh name="faces" vertex="0 0 0  1 0 0  0 1.3 0  0 0 1.6  1 1.1 1" face="0 2 1 0 1 3 0 3 2 1 2 4 2 3 4 3 1 4"/>
  </asset>
  <worldbody>
    <body name="a"><freejoint/><geom type="mesh" mesh="wedge" pos="1 2 3" euler="10 20 30"/></body>
    <body name="b"><freejoint/><geom type="mesh" mesh="convex" mass="2"/><geom size="0.1" pos="1 0 0"/></body>
    <body name="c"><freejoint/><geom type="mesh" mesh="exact" density="300"/></body>
    <body name="d"><freejoint/><geom type="mesh" mesh="shell"/></body>
    <body name="e"><freejoint/><frame euler="0 0 90" pos="1 0 0"><geom type="mesh" mesh="placed" quat="1 0 1 0"/></frame></body>
    <body name="f"><freejoint/><geom type="mesh" mesh="blob"/></body>
    <body name="g"><freejoint/><geom type="mesh" mesh="points"/><geom type="mesh" mesh="wedge"/></body>
    <body name="h"><freejoint/><geom type="mesh" mesh="faces" fluidshape="ellipsoid"/></body>
  </worldbody>
</mujoco>"#,
    ),
    (
        "fitted",
        r#"<mujoco model="fitted">
  <asset><mesh file="wedge.stl"/><mesh file="blob.obj"/></asset>
  <worldbody>
    <body name="a"><freejoint/><geom type="box" mesh="wedge" pos="1 2 3" euler="10 20 30"/></body>
    <body name="b"><freejoint/><geom type="sphere" mesh="wedge" fitscale="1.5"/></body>
    <body name="c"><freejoint/><geom type="capsule" mesh="blob"/></body>
    <body name="d"><freejoint/><geom type="cylinder" mesh="blob"/></body>
    <body name="e"><freejoint/><geom type="ellipsoid" mesh="blob" mass="3"/></body>
  </worldbody>
</mujoco>"#,
    ),
    (
        "fitted_boxes",
        r#"<mujoco model="fitted_boxes">
  <compiler fitaabb="true" assetdir="." strippath="true"/>
  <asset><mesh file="somewhere/wedge.stl"/><mesh file="blob.obj"/></asset>
  <worldbody>
    <body name="a"><freejoint/><geom type="box" mesh="wedge" pos="1 2 3" euler="10 20 30"/></body>
    <body name="b"><freejoint/><geom type="sphere" mesh="wedge"/></body>
    <body name="c"><freejoint/><geom type="capsule" mesh="blob"/></body>
    <body name="d"><freejoint/><geom type="cylinder" mesh="blob"/></body>
    <body name="e"><freejoint/><geom type="ellipsoid" mesh="blob"/></body>
  </worldbody>
</mujoco>"#,
    ),
    (
        "terrains",
        r#"<mujoco model="terrains">
  <asset>
    <hfield name="inline" nrow="2" ncol="3" size="1 2 0.3 0.1" elevation="1 2 3 4 5 7"/>
    <hfield name="flat" nrow="3" ncol="3" size="1 2 0.3 0.1"/>
    <hfield file="hills.png" size="1 2 0.5 0.2"/>
    <hfield file="hills16.png" size="1 2 0.5 0.2"/>
    <hfield file="hills_rgb.png" size="1 2 0.5 0.2"/>
    <hfield name="custom" file="hills.bin" size="3 2 0.5 0.2"/>
  </asset>
  <worldbody>
    <geom type="hfield" hfield="inline" pos="0 0 1" euler="5 0 0"/>
    <geom type="hfield" hfield="flat"/>
    <geom type="hfield" hfield="hills"/>
    <geom type="hfield" hfield="hills16"/>
    <geom type="hfield" hfield="hills_rgb"/>
    <geom type="hfield" hfield="custom"/>
  </worldbody>
</mujoco>"#,
    ),
];

const NEAR: f64 = 2e-6;

#[track_caller]
pub fn near(what: &str, ours: &[f64], theirs: &[f64], c: &Check) {
    let scale = theirs.iter().fold(1e-6_f64, |a, x| a.max(x.abs()));
    let equal = ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() < NEAR * scale);
    assert!(equal, "{}: {what}: ours {ours:?}, MuJoCo's {theirs:?}", c.file);
}

fn turn(q: &[f64]) -> UnitQuaternion<f64> {
    UnitQuaternion::new_normalize(Quaternion::new(q[0], q[1], q[2], q[3]))
}

/// The same corners count in every direction, in the body's frame.
#[track_caller]
pub fn same_hull(m: &Model, g: &Geom, mesh: usize, i: usize, c: &Check) {
    let id = row(c.theirs, "geom_dataid", i)[0] as usize;
    let number = |field: &str| row(c.theirs, field, id)[0] as usize;
    let (first, count) = (number("mesh_vertadr"), number("mesh_vertnum"));
    let (pos, quat) = (row(c.theirs, "geom_pos", i), row(c.theirs, "geom_quat", i));
    let place = |v: Vector3<f64>, pos: &[f64], quat: &[f64]| {
        turn(quat) * v + Vector3::from_column_slice(pos)
    };
    let theirs: Vec<Vector3<f64>> = (first..first + count)
        .map(|k| place(Vector3::from_vec(row(c.theirs, "mesh_vert", k)), &pos, &quat))
        .collect();
    let corner = |v: &[f32; 3]| Vector3::from(*v).map(f64::from);
    let ours: Vec<Vector3<f64>> =
        m.meshes[mesh].vertices.iter().map(|v| place(corner(v), &g.pos, &g.quat)).collect();
    near("geom_pos", &g.pos, &pos, c);
    for k in 0..200 {
        let k = f64::from(k);
        let direction = Vector3::new((1.1 * k).sin(), (2.3 * k).sin(), (0.7 * k).cos()).normalize();
        let support = |points: &[Vector3<f64>]| {
            points.iter().map(|p| p.dot(&direction)).fold(f64::MIN, f64::max)
        };
        let (a, b) = (support(&ours), support(&theirs));
        assert!((a - b).abs() < 5e-6, "{}: {} {a} {b}", c.file, g.name);
    }
    // Faces look outwards and close.
    let mesh = &m.meshes[mesh];
    let volume: f64 = mesh
        .faces
        .iter()
        .map(|f| {
            let [a, b, c] = f.map(|i| corner(&mesh.vertices[i as usize]));
            a.dot(&b.cross(&c)) / 6.0
        })
        .sum();
    assert!(volume > 0.0 && mesh.faces.len() + 4 == 2 * mesh.vertices.len());
}

/// Up to half turns about the shape's own axes.
#[track_caller]
pub fn same_place(g: &Geom, size: &[f64], i: usize, c: &Check) {
    near("geom_size", size, &row(c.theirs, "geom_size", i)[..size.len()], c);
    near("geom_pos", &g.pos, &row(c.theirs, "geom_pos", i), c);
    let between = turn(&g.quat).inverse() * turn(&row(c.theirs, "geom_quat", i));
    let between = between.to_rotation_matrix();
    for k in 0..3 {
        assert!(between[(k, k)].abs() > 1.0 - 1e-9, "{}: {between}", g.name);
    }
}

#[track_caller]
pub fn same_field(h: &HField, geom: usize, c: &Check) {
    let id = row(c.theirs, "geom_dataid", geom)[0] as usize;
    c.field("hfield_nrow", id, &[h.nrow as f64]);
    c.field("hfield_ncol", id, &[h.ncol as f64]);
    c.field("hfield_size", id, &h.size);
    let adr = row(c.theirs, "hfield_adr", id)[0] as usize;
    for (k, x) in h.data.iter().enumerate() {
        c.field("hfield_data", adr + k, &[f64::from(*x)]);
    }
}
