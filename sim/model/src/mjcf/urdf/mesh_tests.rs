//! Which file a mesh of a URDF is.

use crate::Model;
use crate::mjcf::{MjcfError, Reading, attached_copies, parse, plain_urdf};
use std::path::Path;

/// A box of these sides at the origin, which has their product times 1000 kg.
fn cuboid([x, y, z]: [f64; 3]) -> String {
    let corners = (0..8).map(|k| {
        let at = |bit: usize, side: f64| if k >> bit & 1 == 1 { side } else { 0.0 };
        format!("v {} {} {}\n", at(0, x), at(1, y), at(2, z))
    });
    let faces = "f 1 3 4 2\nf 5 6 8 7\nf 1 2 6 5\nf 3 7 8 4\nf 1 5 7 3\nf 2 4 8 6\n";
    corners.chain([faces.to_string()]).collect()
}

fn put(folder: &Path, files: &[(&str, [f64; 3])]) {
    for (name, sides) in files {
        let path = folder.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, cuboid(*sides)).unwrap();
    }
}

/// A robot of links that are one mesh each.
fn meshes(shapes: &[&str]) -> String {
    let links = shapes.iter().enumerate().map(|(i, mesh)| {
        format!(
            r#"<link name="l{i}"><collision><geometry><mesh {mesh}/></geometry></collision></link>
            <joint name="j{i}" type="continuous"><parent link="base"/><child link="l{i}"/></joint>"#
        )
    });
    let links: String = links.collect();
    format!(r#"<robot name="r"><link name="base"/>{links}</robot>"#)
}

/// Masses of the links, and the meshes' names.
fn weighed(model: &Model) -> (Vec<f64>, Vec<&str>) {
    let masses = model.bodies[1..].iter().map(|b| (b.mass * 1e5).round() / 1e5);
    let names = model.meshes.iter().map(|m| m.name.as_str());
    (masses.collect(), names.collect())
}

#[test]
fn meshes_are_told_apart_by_file_and_scale_not_by_stem() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    put(
        at,
        &[
            ("a/part.obj", [0.1, 0.1, 0.1]),
            ("b/part.obj", [0.2, 0.1, 0.1]),
            ("c/part.OBJ", [0.3, 0.1, 0.1]),
            ("c/Part.obj", [0.4, 0.1, 0.1]),
            ("part1.obj", [0.5, 0.1, 0.1]),
            ("c/part.tar.obj", [0.6, 0.1, 0.1]),
        ],
    );
    std::os::unix::fs::symlink("../a/part.obj", at.join("b/link.obj")).unwrap();
    let robot = at.join("robot.urdf");
    let table: [(&[&str], &[f64], usize); 8] = [
        (&[r#"filename="a/part.obj""#, r#"filename="b/part.obj""#], &[1.0, 2.0], 2),
        (
            &[
                r#"filename="c/part.OBJ""#,
                r#"filename="c/Part.obj""#,
                r#"filename="c/part.tar.obj""#,
            ],
            &[3.0, 4.0, 6.0],
            3,
        ),
        // One file, however it is called.
        (
            &[
                r#"filename="a/part.obj""#,
                r#"filename="b/../a/part.obj""#,
                r#"filename="./a//part.obj""#,
                r#"filename="b/link.obj""#,
                r#"filename="package://a/part.obj""#,
            ],
            &[1.0; 5],
            1,
        ),
        (
            &[
                r#"filename="a/part.obj" scale="1 1 1""#,
                r#"filename="a/part.obj" scale="1.0 1 1""#,
                r#"filename="a/part.obj""#,
            ],
            &[1.0; 3],
            1,
        ),
        (
            &[
                r#"filename="a/part.obj" scale="1 1 1""#,
                r#"filename="a/part.obj" scale="1 1 1.0001""#,
            ],
            &[1.0, 1.0001],
            2,
        ),
        (
            &[
                r#"filename="a/part.obj""#,
                r#"filename="b/part.obj" scale="1 -1 1""#,
                r#"filename="b/part.obj" scale="2 2 2""#,
                r#"filename="a/part.obj" scale="1 -1 1""#,
            ],
            &[1.0, 2.0, 16.0, 1.0],
            4,
        ),
        // Names that are given are none that a file has.
        (
            &[r#"filename="a/part.obj""#, r#"filename="b/part.obj""#, r#"filename="part1.obj""#],
            &[1.0, 2.0, 5.0],
            3,
        ),
        (
            &[r#"filename="part1.obj""#, r#"filename="b/part.obj""#, r#"filename="a/part.obj""#],
            &[5.0, 2.0, 1.0],
            3,
        ),
    ];
    for (shapes, masses, count) in table {
        let model = parse(&robot, meshes(shapes)).unwrap();
        let (found, names) = weighed(&model);
        assert_eq!(found, masses, "{shapes:?}");
        assert_eq!(names.len(), count, "{shapes:?} {names:?}");
    }
}

#[test]
fn what_is_seen_and_what_is_felt_are_meshes_of_their_own() {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), &[("seen/m.obj", [0.2, 0.1, 0.1]), ("felt/m.obj", [0.1, 0.1, 0.1])]);
    for discard in ["true", "false"] {
        let text = format!(
            r#"<robot name="r"><mujoco><compiler discardvisual="{discard}"/></mujoco><link name="base"/><link name="l">
            <visual><geometry><mesh filename="seen/m.obj"/></geometry></visual>
            <collision><geometry><mesh filename="felt/m.obj"/></geometry></collision></link>
            <joint name="j" type="continuous"><parent link="base"/><child link="l"/></joint></robot>"#
        );
        let robot = dir.path().join("robot.urdf");
        let (model, looks) =
            Reading { text: Some(text), looks: true, ..Reading::default() }.read(&robot).unwrap();
        assert_eq!(weighed(&model).0, [1.0]);
        let far = |s: &crate::looks::Surface| s.vertices.iter().any(|v| v[0] > 0.15);
        assert!(looks.surfaces.iter().all(far) && looks.surfaces.len() == 1, "{looks:?}");
        assert_eq!(model.meshes.len(), 1, "{discard}");
    }
}

#[test]
fn a_package_is_the_folder_of_its_name_before_any_other() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    put(
        at,
        &[
            ("ws/arm/meshes/base.obj", [0.1, 0.1, 0.1]),
            ("ws/gripper/meshes/base.obj", [0.2, 0.1, 0.1]),
            ("ws/wrist-main/meshes/base.obj", [0.3, 0.1, 0.1]),
            ("elsewhere/meshes/base.obj", [0.4, 0.1, 0.1]),
        ],
    );
    let robot = at.join("ws/arm/urdf/arm.urdf");
    std::fs::create_dir_all(at.join("ws/arm/urdf")).unwrap();
    let read = |packages: &[&str]| {
        let names = packages.iter().map(|p| format!("filename=\"package://{p}/meshes/base.obj\""));
        let names: Vec<_> = names.collect();
        let names: Vec<_> = names.iter().map(String::as_str).collect();
        std::fs::write(&robot, meshes(&names)).unwrap();
        let ws = at.join("ws");
        let reading = Reading { within: Some(&ws), ..Reading::default() };
        reading.read(&robot).map(|r| r.0).map_err(|e| e.to_string())
    };
    let said = |model: &Model| model.ignored.iter().any(|i| i.what.contains("package"));
    let both = read(&["arm", "gripper"]).unwrap();
    assert_eq!(weighed(&both).0, [1.0, 2.0]);
    assert!(!said(&both), "{:?}", both.ignored);
    // ROS' own description of a package counts where its folder has another name.
    let why = read(&["arm", "wrist"]).unwrap_err();
    assert!(why.contains("arm/meshes/base.obj") && why.contains("would be"), "{why}");
    let manifest = at.join("ws/wrist-main/package.xml");
    std::fs::write(
        &manifest,
        "<?xml version=\"1.0\"?>\n<package format=\"3\"><name> wrist </name></package>",
    )
    .unwrap();
    assert_eq!(weighed(&read(&["arm", "wrist"]).unwrap()).0, [1.0, 3.0]);
    // One whose folder is not known is the robot's own; that is a guess, and said.
    let guess = read(&["arm_description"]).unwrap();
    assert_eq!(weighed(&guess).0, [1.0]);
    assert!(said(&guess), "{:?}", guess.ignored);
    // It is no guess where the package is, but out of reach.
    let why = read(&["elsewhere"]).unwrap_err();
    assert!(why.contains("is outside"), "{why}");
    std::fs::write(at.join("ws/arm/package.xml"), "<package><name>arm</name></package>").unwrap();
    let why = read(&["arm_description"]).unwrap_err();
    assert!(why.contains("task.robot_folder reaches: in "), "{why}");
    assert!(why.contains(&at.join("ws/arm").display().to_string()), "{why}");
}

/// MuJoCo's reader knows no packages, and up to version 3 took files of one stem for one.
#[test]
fn mujoco_gets_a_urdf_whose_meshes_have_plain_names() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    put(at, &[("arm/meshes/base.obj", [0.1; 3]), ("gripper/meshes/base.obj", [0.2; 3])]);
    let robot = at.join("robot.urdf");
    let text = meshes(&[
        r#"filename="package://arm/meshes/base.obj""#,
        r#"filename = 'gripper/meshes/base.obj'"#,
        r#"scale="2 2 2" filename="arm/meshes/base.obj""#,
        r#"filename="arm/meshes/../meshes/base.obj""#,
        r#"filename="nowhere.obj""#,
    ]);
    let text = text.replace(
        "<link name=\"base\"/>",
        "<mujoco><compiler meshdir=\"\" balanceinertia='true'/></mujoco><link name=\"base\"/>",
    );
    std::fs::write(&robot, &text).unwrap();
    let (plain, files) = plain_urdf(&robot, None).unwrap().unwrap();
    assert_eq!(files.len(), 3, "{files:?}");
    let model = {
        let to = tempfile::tempdir().unwrap();
        for (name, file) in &files {
            std::fs::copy(file, to.path().join(name)).unwrap();
        }
        let plain = plain.replace("nowhere.obj", files.keys().next().unwrap());
        parse(&to.path().join("robot.urdf"), plain).unwrap()
    };
    assert_eq!(weighed(&model).0, [1.0, 8.0, 8.0, 1.0, 1.0]);
    let mjcf = at.join("robot.xml");
    std::fs::write(&mjcf, "<mujoco/>").unwrap();
    assert_eq!(plain_urdf(&mjcf, None).unwrap(), None);
}

/// The same of those that a scene attaches.
#[test]
fn mujoco_gets_a_scene_that_attaches_the_copies() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    std::fs::create_dir(at.join("arm")).unwrap();
    std::fs::write(at.join("arm/arm.urdf"), "<robot name=\"arm\"><link name=\"base\"/></robot>")
        .unwrap();
    std::fs::write(at.join("hand.xml"), "<mujoco/>").unwrap();
    let scene = at.join("scene.xml");
    let text = r#"<mujoco><asset><model name="a" file='arm/arm.urdf'/>
        <model name="h" file="hand.xml"/><model file="nowhere.urdf"/></asset></mujoco>"#;
    std::fs::write(&scene, text).unwrap();
    let mut asked = Vec::new();
    let copied = attached_copies(&scene, None, |file| {
        asked.push(file.strip_prefix(at).unwrap().display().to_string());
        Ok::<_, MjcfError>(plain_urdf(file, None)?.map(|_| "/copy/robot.urdf".into()))
    });
    assert_eq!(copied.unwrap().unwrap(), text.replace("arm/arm.urdf", "/copy/robot.urdf"));
    assert_eq!(asked, ["arm/arm.urdf", "hand.xml"]);
    let none =
        attached_copies(&at.join("hand.xml"), None, |_| Ok::<_, MjcfError>(Some("x".into())));
    assert_eq!(none.unwrap(), None);
    // What it includes may lie above it.
    std::fs::write(at.join("hand.xml"), "<mujocoinclude/>").unwrap();
    std::fs::write(at.join("arm/up.xml"), "<mujoco><include file=\"../hand.xml\"/></mujoco>")
        .unwrap();
    let up = |within| attached_copies(&at.join("arm/up.xml"), within, |_| Ok::<_, MjcfError>(None));
    assert!(up(Some(at)).is_ok() && up(None).is_err());
}
