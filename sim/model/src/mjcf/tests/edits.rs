//! What a task adds to a file means what it means in the file.

use super::super::*;
use crate::edit::{Base, Edits, Floor, Height};
use std::path::Path;

fn read(text: &str, edits: &Edits) -> Result<Model, String> {
    let path = Path::new("robot.xml");
    let reading = Reading { text: Some(text.into()), edits: Some(edits), ..Reading::default() };
    reading.read(path).map(|r| r.0).map_err(|e| e.to_string())
}

fn floor() -> Edits {
    Edits { floor: Some(Floor::default()), ..Edits::default() }
}

/// The same robot but for places and what is said about additions.
fn same(edited: Model, written: &str) {
    let mut edited = edited;
    assert!(!edited.added.is_empty());
    let mut written = parse(Path::new("robot.xml"), written.into()).unwrap();
    for model in [&mut edited, &mut written] {
        model.added.clear();
        model.edits = Edits::default();
        model.ignored.clear();
    }
    assert_eq!(edited, written);
}

const DEAF: &str = r#"<default><geom contype="0" conaffinity="0" friction="3 2 1" type="capsule" size=".1 .2" rgba="0 0 0 1"/></default>"#;

#[test]
fn a_floor_is_a_plane_that_meets_every_geom_that_meets_any() {
    let robot = r#"<body name="a" pos="0 0 1"><freejoint/><geom name="floor" contype="4" conaffinity="0"/>
        <geom contype="0" conaffinity="8"/></body>"#;
    let text =
        |world: &str| format!("<mujoco>{DEAF}<worldbody>{robot}{world}</worldbody></mujoco>");
    let all = Edits {
        floor: Some(Floor { height: -0.5, friction: [0.7, 0.01, 0.002] }),
        ..Edits::default()
    };
    let plane = r#"<geom name="floor_1" type="plane" size="0 0 1" pos="0 0 -.5" friction=".7 .01 .002"
        contype="2147483647" conaffinity="2147483647" rgba="0.85 0.87 0.88 1"/>"#;
    same(read(&text(""), &all).unwrap(), &text(plane));
}

#[test]
fn impossible_moments_are_balanced_where_the_task_says_so() {
    let text = |compiler: &str| {
        format!(
            r#"<mujoco>{compiler}<worldbody><body name="a"><joint name="j"/><inertial pos="0 0 0" mass="1" diaginertia=".002 .0002 .0002"/></body></worldbody></mujoco>"#
        )
    };
    let said = read(&text(""), &Edits::default()).unwrap_err();
    assert!(said.contains("task.balance_inertia = true"), "{said}");
    let all = Edits { balance: true, ..Edits::default() };
    let written = text(r#"<compiler balanceinertia="true"/>"#);
    same(read(&text(""), &all).unwrap(), &written);
    // Whatever the file says.
    let model = read(&text(r#"<compiler balanceinertia="false"/>"#), &all).unwrap();
    let moments = model.bodies[1].inertia;
    assert!(moments.iter().all(|m| (m - 8e-4).abs() < 1e-12), "{moments:?}");
}

#[test]
fn a_file_with_a_floor_gets_no_other() {
    for ground in [
        r#"<geom name="ground" type="plane" size="1 1 1"/>"#,
        r#"<frame pos="0 0 1"><geom name="ground" class="ground"/></frame>"#,
        r#"<body><geom name="ground" class="ground"/></body>"#,
    ] {
        let text = format!(
            r#"<mujoco><default><default class="ground"><geom type="plane" size="1 1 1"/></default></default>
            <worldbody>{ground}<body><freejoint/><geom size="1"/></body></worldbody></mujoco>"#
        );
        let model = read(&text, &floor()).unwrap();
        assert_eq!(model.geoms.len(), 2, "{ground}");
        assert_eq!(model.added, [""; 0]);
        let said = model.ignored.iter().find(|i| i.what == "task.floor").unwrap();
        assert!(said.why.contains("\"ground\""), "{}", said.why);
    }
    // One that is only seen is none.
    let text = r#"<mujoco><worldbody><geom type="plane" size="1 1 1" contype="0" conaffinity="0"/>
        <body><freejoint/><geom size="1"/></body></worldbody></mujoco>"#;
    assert_eq!(read(text, &floor()).unwrap().added.len(), 1);
}

const URDF: &str = r#"<robot name="r"><link name="base"><inertial><mass value="2"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><geometry><box size=".2 .2 .2"/></geometry></collision></link>
    <link name="leg"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0 0 -.3"/><geometry><sphere radius=".05"/></geometry></collision></link>
    <joint name="hip" type="revolute"><parent link="base"/><child link="leg"/><origin xyz="0 .1 0"/>
    <axis xyz="0 1 0"/><limit lower="-1" upper="1" effort="9" velocity="1"/></joint></robot>"#;

#[test]
fn an_urdf_floats_over_a_floor() {
    let plain = read(URDF, &Edits::default()).unwrap();
    // As MuJoCo has it: the root is part of the world.
    assert_eq!((plain.nq, plain.bodies.len()), (1, 2));
    let all = Edits { base: Some(Base::Free), height: Some(Height::OnFloor), ..floor() };
    let model = read(URDF, &all).unwrap();
    assert_eq!((model.nq, model.nv, model.bodies.len()), (8, 7, 3));
    assert_eq!(model.joints[0].name, "root");
    assert_eq!(model.bodies[1].mass, 2.0);
    // The leg's sphere stands on the floor.
    assert!((model.qpos0[2] - 0.35).abs() < 1e-12, "{}", model.qpos0[2]);
    assert_eq!(model.added.len(), 3);
    let text = model.summary();
    assert!(text.contains("task.base = \"free\"") && text.contains("z = 0.35 m"), "{text}");
    assert!(model.lacks().is_empty());
    // A floor elsewhere carries it along.
    let low = Edits { floor: Some(Floor { height: -2.0, ..Floor::default() }), ..all.clone() };
    assert!((read(URDF, &low).unwrap().qpos0[2] + 1.65).abs() < 1e-12);
    let high = Edits { height: Some(Height::At(0.5)), ..all };
    assert_eq!(read(URDF, &high).unwrap().qpos0[2], 0.5);
    // Without a floor it is said that one is missing.
    let falls = Edits { base: Some(Base::Free), ..Edits::default() };
    let lacks = read(URDF, &falls).unwrap().lacks();
    assert!(lacks.len() == 1 && lacks[0].contains("task.floor"), "{lacks:?}");
    // What lies on a plate that the world holds, or hangs on a string, needs none; two that fall do.
    for (held, more, told) in [
        ("<joint/>", "", 0),
        ("<freejoint/>", "", 1),
        (
            "<freejoint/>",
            "<tendon><spatial><site site=\"up\"/><site site=\"ball\"/></spatial></tendon>",
            0,
        ),
    ] {
        let text = format!(
            r#"<mujoco><worldbody><site name="up"/><body>{held}<geom size=".1"/></body>
            <body pos="0 0 1"><freejoint/><geom size=".1"/><site name="ball"/></body></worldbody>{more}</mujoco>"#
        );
        assert_eq!(read(&text, &Edits::default()).unwrap().lacks().len(), told, "{text}");
    }
}

#[test]
fn a_base_is_set_free_or_held_as_if_the_file_said_so() {
    let text = |joint: &str, key: &str| {
        format!(
            r#"<mujoco><worldbody><body name="trunk" pos="0 1 2" quat="0 1 0 0">{joint}<geom size="1"/>
            <body><joint name="j"/><geom size="1"/></body></body></worldbody><keyframe><key {key}/></keyframe></mujoco>"#
        )
    };
    let base = |base| Edits { base: Some(base), ..Edits::default() };
    let root = r#"<freejoint name="root"/>"#;
    let free = read(&text("", "time=\"1\""), &base(Base::Free)).unwrap();
    same(free, &text(root, "time=\"1\""));
    let key = r#"qpos="1 2 3 1 0 0 0 .5" qvel="1 2 3 4 5 6 7""#;
    for joint in [root, r#"<joint type="free"/>"#] {
        let fixed = read(&text(joint, key), &base(Base::Fixed)).unwrap();
        same(fixed, &text("", r#"qpos=".5" qvel="7""#));
    }
    // What is so already is left alone, and said.
    for (joint, which) in [(root, Base::Free), ("", Base::Fixed)] {
        let model = read(&text(joint, ""), &base(which)).unwrap();
        assert!(model.added.is_empty());
        assert!(model.ignored.iter().any(|i| i.what.contains("task.base")));
    }
    // What cannot be done says which key asked for it.
    let refused = |text: &str, edits: &Edits| read(text, edits).unwrap_err();
    let message = refused(&text("", r#"qpos=".5""#), &base(Base::Free));
    assert!(message.contains("task.base") && message.contains("keyframe"), "{message}");
    let message = refused(&text("<joint/>", ""), &base(Base::Free));
    assert!(message.contains("a joint of its own"), "{message}");
    let two = r#"<mujoco><worldbody><body name="a"><joint/><geom size="1"/></body>
        <body name="b"><joint/><geom size="1"/></body></worldbody></mujoco>"#;
    let message = refused(two, &base(Base::Free));
    assert!(message.contains("\"a\", \"b\""), "{message}");
    let empty = "<mujoco><worldbody/></mujoco>";
    assert!(refused(empty, &base(Base::Fixed)).contains("no body"));
    let nothing = Edits { height: Some(Height::OnFloor), ..Edits::default() };
    let message = refused(&text(root, ""), &nothing);
    assert!(message.contains("task.start_height") && message.contains("floor"), "{message}");
}

/// Every shape lies with its lowest point on the floor.
#[test]
fn the_lowest_point_of_every_shape_is_found() {
    // Turned by 30 degrees about y: the z axis leans by as much.
    let (sine, cosine) = (0.5_f64, 0.75_f64.sqrt());
    for (geom, depth) in [
        (r#"type="sphere" size=".1""#, 0.1),
        (r#"type="capsule" size=".1 .2""#, 0.1 + 0.2 * cosine),
        (r#"type="cylinder" size=".1 .2""#, 0.1 * sine + 0.2 * cosine),
        (r#"type="box" size=".1 .2 .3""#, 0.1 * sine + 0.3 * cosine),
        (r#"type="ellipsoid" size=".1 .2 .3""#, (0.1 * sine).hypot(0.3 * cosine)),
    ] {
        let text = format!(
            r#"<mujoco><worldbody><body><freejoint/><geom {geom} euler="0 30 0"/>
            <geom size="5" contype="0" conaffinity="0"/></body></worldbody></mujoco>"#
        );
        let all = Edits { height: Some(Height::OnFloor), ..floor() };
        let model = read(&text, &all).unwrap();
        assert!((model.qpos0[2] - depth).abs() < 1e-9, "{geom}: {}", model.qpos0[2]);
    }
}
