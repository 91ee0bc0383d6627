//! Appearance of robots, and the files that they name.

use super::*;
use crate::looks::{LookKind, Looks, Surface};
use crate::rotation::{Pose, rotate};
use crate::test_support::meshes::{put, wedge};
use crate::{GeomKind, Model};
use std::path::PathBuf;

fn names(model: &Model, folder: &Path) -> Vec<PathBuf> {
    let inner = |p: &PathBuf| p.strip_prefix(folder).unwrap().to_path_buf();
    let mut all: Vec<_> = model.sources.iter().skip(1).map(inner).collect();
    all.sort();
    all
}

const DOG: &str = r#"<mujoco><compiler meshdir="assets" texturedir="pictures"/>
<asset><mesh name="trunk" file="trunk.stl" scale="2 1 -1"/><mesh name="spare" file="spare.obj"/>
<texture name="t" type="cube" fileright="a.png" fileleft="a.png"/><material name="blue" rgba="0 0 1 1"/>
<hfield name="hills" file="hills.png" size="1 1 1 1"/></asset>
<default><default class="v"><geom type="mesh" contype="0" conaffinity="0" group="2" mass="0"/></default></default>
<worldbody><geom type="plane" size="0 0 .05"/>
<body name="trunk" pos="0 0 1"><freejoint/><geom class="v" mesh="trunk" pos="1 2 3" euler="0 0 90" material="blue"/>
<geom name="box" type="box" size=".1 .1 .1" group="3"/><geom name="solid" type="mesh" mesh="trunk" pos="1 2 3" euler="0 0 90" group="3"/>
<body name="foot"><geom class="v" mesh="lost"/><geom class="v" type="hfield" hfield="hills"/><geom name="ball" size=".1"/></body></body></worldbody></mujoco>"#;

#[test]
fn what_is_only_seen_is_kept_for_pictures_where_the_file_has_it() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("dog.xml");
    put(&folder.path().join("assets/trunk.stl"), wedge());
    let (model, looks) = parse_looks(&main, DOG.into()).unwrap();
    assert_eq!(parse(&main, DOG.into()).unwrap().geoms, model.geoms);
    assert_eq!(model.geoms.len(), 4);
    // MuJoCo counts all: floor, seen, box, solid, lost, hills, ball.
    assert_eq!(model.skipped, [1, 4, 5]);
    let [look] = &looks.shapes[..] else { panic!("{looks:?}") };
    assert_eq!((look.body, look.group), (1, 2));
    assert_eq!(look.rgba, [0.0, 0.0, 1.0, 1.0]);
    assert_eq!(look.kind, LookKind::Surface(0));
    // Scaled, turned a quarter about z, moved; the faces of the mirrored mesh look outwards.
    let surface = &looks.surfaces[0];
    let place = |s: &Surface, pos, quat| -> Vec<[f64; 3]> {
        let pose = Pose { pos, quat };
        let all = s.vertices.iter().map(|v| pose.point(v.map(f64::from)));
        all.collect()
    };
    let seen = place(surface, look.pos, look.quat);
    let near = |p: &[f64; 3], q: [f64; 3]| (0..3).all(|i| (p[i] - q[i]).abs() < 1e-6);
    assert!(seen.iter().any(|p| near(p, [1.0 - 0.2, 2.0 + 1.0, 3.0 - 0.3])), "{seen:?}");
    let volume: f64 = surface
        .faces
        .iter()
        .map(|f| {
            let [a, b, c] = f.map(|i| surface.vertices[i as usize].map(f64::from));
            crate::rotation::dot(a, crate::rotation::cross(b, c)) / 6.0
        })
        .sum();
    assert!((volume - 2.0 * 0.4 * 0.2 * 0.6 / 6.0).abs() < 1e-6, "{volume}");
    // The one that collides has a frame of its own, and is in the same place.
    let solid = &model.geoms[2];
    assert_eq!(solid.kind, GeomKind::Mesh(0));
    let mut felt = place(&looks.meshes[0], solid.pos, solid.quat);
    for (a, b) in felt.drain(..).zip(&seen) {
        assert!((0..3).all(|i| (a[i] - b[i]).abs() < 1e-5), "{a:?} {b:?}");
    }
    // A look that cannot be shown is named, with its reason.
    let why: Vec<_> =
        looks.missing.iter().map(|m| (m.body, m.name.as_str(), m.why.as_str())).collect();
    assert!(
        why[0].2.starts_with("dog.xml:9:") && why[0].2.contains("no mesh called \"lost\""),
        "{why:?}"
    );
    assert!(why[1].1 == "hills" && why[1].2.contains("hills.png"), "{why:?}");
    assert!(why.iter().all(|w| w.0 == 2) && why.len() == 2);
}

#[test]
fn fused_bodies_keep_what_they_look_like() {
    let text = r#"<mujoco><compiler fusestatic="true"/><asset>
<mesh name="m" vertex="0 0 0 1 0 0 0 1 0 0 0 1"/></asset>
<default><default class="v"><geom type="mesh" mesh="m" contype="0" conaffinity="0" mass="0"/></default></default><worldbody>
<body pos="0 0 1"><joint/><geom size=".1"/><body pos="0 2 0" quat="0 0 0 1"><geom class="v" pos="1 0 0"/>
<body><joint/><geom size=".2"/></body></body><geom class="v"/></body></worldbody></mujoco>"#;
    let (model, looks) = parse_looks(Path::new("a.xml"), text.into()).unwrap();
    assert_eq!(model.bodies.len(), 3);
    let at: Vec<_> = looks.shapes.iter().map(|l| (l.body, l.pos)).collect();
    assert_eq!(at[0], (1, [0.0; 3]));
    assert_eq!(at[1].0, 1);
    let turned = rotate([0.0, 0.0, 0.0, 1.0], [1.0, 0.0, 0.0]);
    assert!((at[1].1[0] - turned[0]).abs() < 1e-12 && (at[1].1[1] - 2.0).abs() < 1e-12, "{at:?}");
    // Without faces it is the hull; MuJoCo's numbers count the seen ones in their bodies.
    assert_eq!(looks.surfaces[0].faces.len(), 4);
    assert_eq!(model.skipped, [1, 2]);
}

#[test]
fn all_files_that_a_model_names_and_that_are_there_belong_to_it() {
    let folder = tempfile::tempdir().unwrap();
    let (at, main) = (folder.path().join("dog"), folder.path().join("dog/dog.xml"));
    for name in ["assets/trunk.stl", "assets/spare.obj", "pictures/a.png", "assets/hills.png"] {
        put(&at.join(name), wedge());
    }
    let model = parse(&main, DOG.into()).unwrap();
    let all = ["assets/hills.png", "assets/spare.obj", "assets/trunk.stl", "pictures/a.png"];
    assert_eq!(names(&model, &at), all.map(PathBuf::from));
    // Of includes in folders, also beside them; of models that nothing attaches, too.
    put(
        &at.join("parts/leg.xml"),
        r#"<mujoco><include file="more.xml"/><asset><mesh name="leg" file="leg.stl"/></asset></mujoco>"#,
    );
    put(&at.join("parts/leg.stl"), wedge());
    put(
        &at.join("parts/more.xml"),
        r#"<mujoco><worldbody><body><joint/><geom type="mesh" mesh="leg"/></body></worldbody></mujoco>"#,
    );
    put(
        &at.join("arm/arm.xml"),
        r#"<mujoco model="arm"><compiler meshdir="a"/><asset><mesh file="arm.stl"/></asset><nonsense/></mujoco>"#,
    );
    put(&at.join("arm/a/arm.stl"), wedge());
    let text = r#"<mujoco><compiler meshdir="assets"/><include file="parts/leg.xml"/><asset><model file="arm/arm.xml"/></asset></mujoco>"#;
    let model = parse(&main, text.into()).unwrap();
    assert_eq!(model.meshes[0].name, "leg");
    let all = ["arm/a/arm.stl", "arm/arm.xml", "parts/leg.stl", "parts/leg.xml", "parts/more.xml"];
    assert_eq!(names(&model, &at), all.map(PathBuf::from));
    // Meshes beside the folder, but not what is none: a model may come from anywhere.
    put(&folder.path().join("shared/x.stl"), wedge());
    put(&folder.path().join("shared/secret.txt"), "");
    let text = r#"<mujoco><asset><mesh file="../shared/x.stl"/><texture name="t" file="../shared/secret.txt"/></asset></mujoco>"#;
    let model = parse(&main, text.into()).unwrap();
    assert_eq!(model.sources[1..], [at.join("../shared/x.stl")]);
}

#[test]
fn what_a_urdf_shows_is_drawn_and_not_simulated() {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("urdf/arm.urdf");
    put(&folder.path().join("meshes/arm.stl"), wedge());
    put(
        &main,
        r#"<robot name="arm"><link name="base"/><link name="arm">
<inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
<visual><origin xyz="0 0 1"/><geometry><mesh filename="package://pkg/meshes/arm.stl" scale="2 2 2"/></geometry><material name="red"><color rgba="1 0 0 1"/></material></visual>
<visual><geometry><sphere radius="0.1"/></geometry></visual><visual><geometry><blob/></geometry></visual>
<collision><geometry><box size="1 1 1"/></geometry></collision></link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/></joint></robot>"#,
    );
    let (model, looks) = Reading { within: Some(folder.path()), looks: true, ..Reading::default() }
        .read(&main)
        .unwrap();
    assert_eq!(model, load_within(&main, Some(folder.path())).unwrap());
    assert_eq!((model.geoms.len(), model.skipped.len()), (1, 0));
    assert!(looks.urdf && looks.missing.is_empty(), "{looks:?}");
    let kinds: Vec<_> = looks.shapes.iter().map(|l| (l.kind, l.pos, l.rgba)).collect();
    let red = [1.0, 0.0, 0.0, 1.0];
    assert_eq!(kinds[0], (LookKind::Surface(0), [0.0, 0.0, 1.0], red));
    assert_eq!(kinds[1].0, LookKind::Primitive(GeomKind::Sphere));
    assert_eq!(model.sources.len(), 2, "{:?}", model.sources);
    // Out of reach it is missing, and the way out is named.
    let (_, looks) = Reading { looks: true, ..Reading::default() }.read(&main).unwrap();
    assert!(looks.missing[0].why.contains("task.robot_folder"), "{:?}", looks.missing);
    assert_eq!(Looks::default().shapes, []);
}
