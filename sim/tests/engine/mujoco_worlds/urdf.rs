//! URDFs: names, order, poses and followers as in MuJoCo.

use super::*;

/// A model of a URDF's text, and both engines.
fn urdf(text: &str) -> Option<(Arc<Model>, native::NativePhysics, MuJoCoWorlds)> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("robot.urdf");
    std::fs::write(&path, text).unwrap();
    let model = Arc::new(mjcf::load(&path).unwrap_or_else(|e| panic!("{e}\n{text}")));
    let (ours, theirs) = pair(&model)?;
    Some((model, ours, theirs))
}

const MASS: &str = r#"<inertial><origin xyz="0 0.01 0.05"/><mass value="0.5"/><inertia ixx="2e-3" iyy="2e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/></inertial>"#;

/// A tree whose links and joints are written in any order.
fn tree(seed: usize) -> String {
    let mut drawn = 0;
    let mut below = |n: usize| {
        drawn += 1;
        (n as f32 * 0.5 * (1.0 + draw(seed, drawn, n))) as usize % n.max(1)
    };
    let kinds = ["fixed", "continuous", "revolute", "prismatic", "fixed", "planar"];
    let (mut links, mut joints, mut still) = (vec![], vec![], vec![true]);
    for i in 0..10 {
        let parent = below(i);
        let mut kind = kinds[below(kinds.len())];
        if i > 0 && still[parent] && below(4) == 0 {
            kind = "floating";
        }
        if i > 0 {
            still.push(still[parent] && kind == "fixed");
            let [x, y, z] = [0, 1, 2].map(|_| 0.4 * (below(9) as f64 - 4.0) / 4.0);
            joints.push(format!(
                r#"<joint name="j{i}" type="{kind}"><parent link="l{parent}"/><child link="l{i}"/><origin xyz="{x} {y} {z}" rpy="{y} {z} {x}"/><axis xyz="{x} 1 {z}"/><dynamics damping="0.1"/></joint>"#
            ));
        }
        // Of a name that comes twice, one link has it.
        let shape = match below(3) {
            0 => String::new(),
            n => format!(
                r#"<collision name="c{}"><geometry><sphere radius="0.01"/></geometry></collision>"#,
                n * below(3)
            ),
        };
        let mass = if kind == "fixed" && below(2) == 0 { "" } else { MASS };
        links.push(format!(r#"<link name="l{i}">{mass}{shape}</link>"#));
    }
    let mut shuffled = |mut list: Vec<String>| {
        (1..list.len()).rev().for_each(|i| list.swap(i, below(i + 1)));
        list.concat()
    };
    let (links, joints) = (shuffled(links), shuffled(joints));
    format!(r#"<robot name="r">{links}{joints}</robot>"#)
}

/// Names, order, masses and poses are MuJoCo's, however links and joints are written.
#[test]
fn a_urdf_has_mujocos_order() {
    let mut floating = 0;
    for seed in 0..30 {
        let text = tree(seed);
        let Some((model, mut ours, mut theirs)) = urdf(&text) else {
            return;
        };
        floating += usize::from(text.contains("floating"));
        let ctrl = vec![0.0; model.nu() * WORLDS];
        for step in 0..5 {
            ours.step(&ctrl, 1);
            theirs.step(&ctrl, 1);
            compare(&text, step, ours.state(), theirs.state());
        }
    }
    assert!(floating > 3, "{floating}");
}

/// Joints that follow others, one of them in a chain, feel each equality once.
#[test]
fn a_urdfs_followers_go_as_mujocos() {
    let link = |name: &str| format!(r#"<link name="{name}">{MASS}</link>"#);
    let joint = |name: &str, kind: &str, parent: &str, child: &str, mimic: &str| {
        format!(
            r#"<joint name="{name}" type="{kind}"><parent link="{parent}"/><child link="{child}"/><origin xyz="0 0.04 0.02"/><axis xyz="1 0 0"/><limit lower="-0.8" upper="0.8" effort="3" velocity="4"/>{mimic}</joint>"#
        )
    };
    let links: String = ["palm", "a", "b", "c", "d"].map(link).concat();
    let joints = [
        joint("tip", "prismatic", "b", "c", r#"<mimic joint="follow" multiplier="0.1"/>"#),
        joint(
            "still",
            "revolute",
            "a",
            "d",
            r#"<mimic joint="tip" multiplier="0" offset="-0.2"/>"#,
        ),
        joint("lead", "revolute", "palm", "a", ""),
        joint(
            "follow",
            "revolute",
            "palm",
            "b",
            r#"<mimic joint="lead" multiplier="-0.5" offset="0.1"/>"#,
        ),
    ];
    let text = format!(r#"<robot name="claw">{links}{}</robot>"#, joints.concat());
    let Some((model, mut ours, mut theirs)) = urdf(&text) else {
        return;
    };
    assert_eq!(model.equalities.len(), 3);
    for step in 0..200 {
        ours.step(&[], 1);
        theirs.step(&[], 1);
        compare("claw", step, ours.state(), theirs.state());
    }
    let at = |name: &str, e: usize| {
        let joint = model.joints.iter().find(|j| j.name == name).unwrap();
        theirs.state().qpos[joint.qpos_adr * WORLDS + e]
    };
    for e in 0..WORLDS {
        let off = at("follow", e) - (0.1 - 0.5 * at("lead", e));
        assert!(off.abs() < 0.02, "{off}");
        assert!((at("still", e) + 0.2).abs() < 0.02);
    }
}

/// MuJoCo's reader knows UTF-8 alone: its worlds get that, whatever the file is written in.
#[test]
fn a_file_in_another_encoding_opens_mujocos_worlds() {
    let folder = tempfile::tempdir().unwrap();
    let part = r#"<mujoco><worldbody><body name="arm"><joint name="j"/><geom size="0.1"/></body></worldbody></mujoco>"#;
    std::fs::write(folder.path().join("part.xml"), part).unwrap();
    let text = r#"<mujoco><include file="part.xml"/><worldbody><body name="Gerät"><joint name="ö"/><geom size="0.1"/></body></worldbody></mujoco>"#;
    let wide = "\u{feff}".chars().chain(text.chars()).collect::<String>();
    let wide: Vec<u8> = wide.encode_utf16().flat_map(u16::to_le_bytes).collect();
    let latin = r#"<?xml version="1.0" encoding="ISO-8859-1"?>"#.to_string() + text;
    let latin: Vec<u8> = latin.chars().map(|c| c as u8).collect();
    for bytes in [wide, latin] {
        let path = folder.path().join("robot.xml");
        std::fs::write(&path, bytes).unwrap();
        let model = Arc::new(mjcf::load(&path).unwrap());
        assert!(model.joints.iter().any(|j| j.name == "ö"));
        // Opening them compares the names.
        if pair(&model).is_none() {
            return;
        }
    }
}

/// A scene, the scene that it attaches, and the URDF that this one attaches have their files
/// beside and above them: MuJoCo's worlds find each, though it gets copies of all three.
#[test]
fn a_scene_that_attaches_through_others_opens_mujocos_worlds() {
    let folder = tempfile::tempdir().unwrap();
    let lab = folder.path().join("a & b");
    let write = |name: &str, text: &str| {
        let path = lab.join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    let corners = "v 0 0 0\nv 0.1 0 0\nv 0 0.1 0\nv 0 0 0.1\n";
    let mesh = format!("{corners}f 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n");
    for name in ["meshes/block.obj", "arms/own.obj", "arms/hand_description/meshes/finger.obj"] {
        write(name, &mesh);
    }
    write("parts/light.xml", "<mujocoinclude><option gravity=\"0 0 -3\"/></mujocoinclude>");
    write(
        "arms/hand_description/hand.urdf",
        &format!(
            r#"<robot name="hand"><link name="palm">{MASS}<collision><geometry><mesh filename="package://hand_description/meshes/finger.obj"/></geometry></collision></link></robot>"#
        ),
    );
    write(
        "arms/arm.xml",
        r#"<mujoco model="arm"><asset><mesh name="own" file="own.obj"/><model name="hand" file="hand_description/hand.urdf"/></asset><worldbody><body name="upper"><joint name="shoulder"/><geom type="mesh" mesh="own"/><body name="wrist" pos="0 0 0.3"><joint name="turn" axis="0 1 0"/><geom size="0.02"/><attach model="hand" body="palm" prefix="h_"/></body></body></worldbody></mujoco>"#,
    );
    write(
        "scenes/lift.xml",
        r#"<mujoco><include file="../parts/light.xml"/><asset><mesh name="block" file="../meshes/block.obj"/><model name="arm" file="../arms/arm.xml"/></asset><worldbody><body name="block"><freejoint/><geom type="mesh" mesh="block"/></body><frame pos="1 0 0"><attach model="arm" body="upper" prefix="a_"/></frame></worldbody></mujoco>"#,
    );
    let reading = mjcf::Reading { within: Some(&lab), ..mjcf::Reading::default() };
    let (model, _) = reading.read(&lab.join("scenes/lift.xml")).unwrap_or_else(|e| panic!("{e}"));
    assert!(model.bodies.iter().any(|b| b.name == "a_h_palm"));
    let model = Arc::new(model);
    let Some((mut ours, mut theirs)) = pair(&model) else { return };
    for step in 0..20 {
        ours.step(&[], 1);
        theirs.step(&[], 1);
        compare("lift", step, ours.state(), theirs.state());
    }
}

/// Meshes and pictures that are only seen may be missing, named and nameless, of materials with
/// one picture, several layers and six sides: MuJoCo's worlds and `ostler compare` do without.
#[test]
fn what_is_only_seen_and_missing_stops_neither_worlds_nor_states() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("robot.xml");
    let text = r#"<mujoco><compiler meshdir="shapes" texturedir="looks"/>
        <asset><mesh file="shell.stl"/><mesh name="cap" file="deep/cap.obj"/>
        <texture type="2d" file="skin.png"/><texture name="own" type="2d" builtin="flat" width="4" height="4"/>
        <texture name="sky" type="cube" fileright="r.png" fileleft="l.png" fileup="u.png" filedown="d.png" filefront="f.png" fileback="b.png"/>
        <material name="one" texture="skin"/><material name="two"><layer role="rgb" texture="own"/><layer role="normal" texture="skin"/></material>
        <material name="six" texture="sky"/></asset>
        <worldbody><geom type="plane" size="1 1 1" material="six"/><body name="ball" pos="0 0 0.2"><freejoint/>
        <geom type="mesh" mesh="shell" contype="0" conaffinity="0" mass="0"/><geom name="core" size="0.1" material="one"/>
        <geom type="mesh" mesh="cap" contype="0" conaffinity="0" material="two" mass="0"/></body></worldbody></mujoco>"#;
    std::fs::write(&path, text).unwrap();
    let model = Arc::new(mjcf::load(&path).unwrap_or_else(|e| panic!("{e}")));
    let Some((mut ours, mut theirs)) = pair(&model) else { return };
    for step in 0..10 {
        ours.step(&[], 4);
        theirs.step(&[], 4);
        compare("unseen", step, ours.state(), theirs.state());
    }
    let python = crate::support::referee::referee_python().unwrap();
    let mut mujoco = MuJoCo::start(Some(&python)).unwrap();
    let out = mujoco.scratch("states.npz");
    mujoco.states(&path, None, &out, 20, 1, false).unwrap_or_else(|e| panic!("{e}"));
}
