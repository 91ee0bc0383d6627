//! Files of laboratories' robots as they are published, with what they lack or have too much of:
//! each mistake names the key that mends it, and with these keys they train.

mod foreign;

use crate::common::forked::Forked as _;
use crate::common::ostler;
use crate::support::meshes::{put, wedge};
use crate::support::referee;
use std::path::Path;

/// A hand whose second finger follows its first; `palm`: its shape that collides.
fn hand(palm: &str) -> String {
    let finger = |name: &str, side: f64, moments: &str| {
        format!(
            r#"<link name="{name}"><inertial><origin xyz="0 0 0.05"/><mass value="0.1"/>{moments}</inertial>
            <collision><origin xyz="0 0 0.05"/><geometry><box size="0.02 0.02 0.1"/></geometry></collision></link>
            <joint name="{name}_joint" type="revolute"><parent link="palm"/><child link="{name}"/>
            <origin xyz="{side} 0 0.05"/><axis xyz="0 1 0"/><limit lower="-0.8" upper="0.8" effort="3" velocity="5"/>
            <dynamics damping="0.02"/>"#
        )
    };
    let sound = r#"<inertia ixx="1e-3" iyy="1e-3" izz="1e-3" ixy="0" ixz="0" iyz="0"/>"#;
    // As published hands have them: no body has such moments.
    let wrong = r#"<inertia ixx="2e-3" iyy="2e-4" izz="2e-4" ixy="0" ixz="0" iyz="0"/>"#;
    format!(
        r#"<robot name="hand"><link name="palm"><inertial><mass value="0.5"/>{sound}</inertial>
        <collision><geometry>{palm}</geometry></collision></link>
        {}</joint>{}<mimic joint="left_joint" multiplier="-1.5" offset="0.1"/></joint></robot>"#,
        finger("left", 0.05, sound),
        finger("right", -0.05, wrong),
    )
}

/// A small task of the robot, with `keys` of `[task]` and `more` tables.
fn task(robot: &str, keys: &str, more: &str) -> String {
    format!(
        r#"[env]
num_envs = 4
episode_length_s = 0.5
[sim]
specialize = "off"
[task]
robot = "{robot}"
{keys}
{more}
[[task.action]]
actuators = ["*"]
kind = "position"
[[task.observation]]
name = "joints"
expr = "[joint_pos(), joint_vel()]"
[[task.reward]]
name = "bent"
expr = "joint_pos(left_joint)"
[[task.metric]]
name = "astray"
expr = "abs(joint_pos(right_joint) - 0.1 + 1.5 * joint_pos(left_joint))"
unit = "rad"
over = "last"
[actor]
hidden_dims = [8]
[critic]
hidden_dims = [8]
[runner]
num_steps_per_env = 8
max_iterations = 2
"#
    )
}

const DRIVE: &str = r#"[[task.actuator]]
joints = ["left_joint"]
stiffness = 2.0
damping = 0.1"#;

/// What `ostler` says, and whether it is content.
fn said(folder: &Path, args: &[&str]) -> (bool, String) {
    let out = ostler().current_dir(folder).args(args).forked().unwrap();
    let text = [out.stdout, out.stderr].map(|t| String::from_utf8_lossy(&t).into_owned());
    (out.status.success(), text.concat())
}

/// A package of ROS: the file beside the folder of its meshes, which have its name in their
/// addresses.
#[test]
fn a_package_trains_with_the_keys_that_its_mistakes_name() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let palm =
        r#"<mesh filename="package://hand_description/meshes/palm.stl" scale="0.1 0.1 0.1"/>"#;
    put(&at.join("hand_description/urdf/hand.urdf"), hand(palm));
    let robot = "hand_description/urdf/hand.urdf";
    let steps = [
        ("", "", "a package's folder is looked for"),
        ("", "", "task.robot_folder"),
        ("robot_folder = \"hand_description\"\n", "", "task.balance_inertia = true"),
        (
            "robot_folder = \"hand_description\"\nbalance_inertia = true\n",
            "",
            "[[task.actuator]] with joints = [\"*\"]",
        ),
    ];
    for (step, (keys, more, help)) in steps.into_iter().enumerate() {
        if step == 1 {
            put(&at.join("hand_description/meshes/palm.stl"), wedge());
        }
        put(&at.join("hand.toml"), task(robot, keys, more));
        let (content, words) = said(at, &["check", "hand.toml", "-q"]);
        assert!(!content && words.contains(help), "{help}\n{words}");
    }
    put(&at.join("hand.toml"), task(robot, steps[3].0, DRIVE));
    let (content, words) = said(at, &["check", "hand.toml"]);
    assert!(content, "{words}");
    let line = "moments of inertia that no body can have";
    assert!(words.contains(line), "{line}\n{words}");
    let (content, words) = said(at, &["train", "hand.toml", "--quiet", "--out", "run"]);
    assert!(content, "{words}");
    assert!(at.join("run/robot/meshes/palm.stl").is_file());
}

/// A package's folder far above the robot's: the run stands on its own, whatever becomes of that.
#[test]
fn a_run_of_a_package_above_its_robot_serves_every_command() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    let palm =
        r#"<mesh filename="package://lab/robots/hand/meshes/palm.stl" scale="0.1 0.1 0.1"/>"#;
    put(&at.join("src/lab/robots/hand/urdf/hand.urdf"), hand(palm));
    put(&at.join("src/lab/robots/hand/meshes/palm.stl"), wedge());
    let keys = "robot_folder = \"src\"\nbalance_inertia = true\n";
    let robot = "src/lab/robots/hand/urdf/hand.urdf";
    put(&at.join("hand.toml"), task(robot, keys, DRIVE));
    let ok = |args: &[&str]| {
        let (content, words) = said(at, args);
        assert!(content, "{args:?}\n{words}");
    };
    ok(&["train", "hand.toml", "--quiet", "--out", "run"]);
    std::fs::rename(at.join("src"), at.join("moved")).unwrap();
    ok(&["eval", "run", "--episodes", "2"]);
    ok(&["play", "run", "--episodes", "1", "--png", "a.png"]);
    ok(&["export", "run"]);
    ok(&["train", "--quiet", "--resume", "run", "runner.max_iterations=3"]);
    ok(&["eval", "run", "--episodes", "2"]);
}

/// Two packages with meshes of one name are the same robot to MuJoCo.
#[test]
fn packages_with_meshes_of_one_name_are_the_same_robot_to_mujoco() {
    let Some(python) = referee::referee_python() else {
        return;
    };
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    // Far apart: nothing touches.
    let link = |name: &str, x: u32, mesh: &str| {
        format!(
            r#"<link name="{name}"><collision><geometry><mesh {mesh}/></geometry></collision></link>
            <joint name="{name}_joint" type="continuous"><parent link="base"/><child link="{name}"/><origin xyz="{x} 0 0"/><axis xyz="0 1 0"/></joint>"#
        )
    };
    let links = [
        link("arm", 0, r#"filename="package://arm/meshes/base_link.stl""#),
        link("gripper", 10, r#"filename="package://gripper/meshes/base_link.obj""#),
        link("other", 20, r#"filename="../meshes/base_link.stl" scale="1 -1 2""#),
        link("more", 30, r#"filename="package://gripper/meshes/base_link1.obj""#),
    ];
    let links = links.concat();
    put(
        &at.join("src/arm/urdf/arm.urdf"),
        format!(
            r#"<robot name="arm"><mujoco><compiler meshdir="nowhere" discardvisual="true"/></mujoco><link name="base"/>{links}</robot>"#
        ),
    );
    put(&at.join("src/arm/meshes/base_link.stl"), wedge());
    let obj = |x: f64| {
        format!("v 0 0 0\nv {x} 0 0\nv 0 1 0\nv 0 0 1\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n")
    };
    put(&at.join("src/gripper/meshes/base_link.obj"), obj(2.0));
    put(&at.join("src/gripper/meshes/base_link1.obj"), obj(3.0));
    let args =
        ["compare", "src/arm/urdf/arm.urdf", "--folder", "src", "--states", "40", "--python"];
    let python = python.to_str().unwrap();
    let (same, words) = said(at, &[&args[..], &[python]].concat());
    assert!(same, "{words}");
}

/// The engines that are here, and what each says of the policy in `run`.
fn evaluated(at: &Path) -> (&'static [&'static str], serde_json::Value) {
    let mut eval = vec!["eval", "run", "--json", "--episodes", "4", "--backend"];
    let python = referee::referee_python();
    let python = python.as_ref().map(|p| p.to_str().unwrap());
    match python {
        Some(python) => eval.extend(["native,mujoco", "--python", python]),
        None => eval.push("native"),
    }
    let out = ostler().current_dir(at).args(eval).forked().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let engines: &[&str] = match python {
        Some(_) => &["native", "mujoco"],
        None => &["native"],
    };
    (engines, serde_json::from_slice(&out.stdout).unwrap())
}

/// The finger follows the other one, here and in MuJoCo's worlds.
#[test]
fn a_finger_that_mimics_another_follows_it() {
    let dir = tempfile::tempdir().unwrap();
    let at = dir.path();
    put(&at.join("hand.urdf"), hand(r#"<sphere radius="0.03"/>"#));
    let keys = "balance_inertia = true\n";
    put(&at.join("hand.toml"), task("hand.urdf", keys, DRIVE));
    let (content, words) = said(at, &["train", "hand.toml", "--quiet", "--out", "run"]);
    assert!(content, "{words}");
    let (engines, both) = evaluated(at);
    for engine in engines {
        let astray = &both[engine]["metrics"]["astray"]["mean"];
        assert!(astray.as_f64().is_some_and(|x| x < 0.02), "{engine}: {both}");
    }
}

/// One leg is held at 1 rad, the other at 0, whatever stands first and whether the file names it.
#[test]
fn joints_are_the_same_ones_in_mujocos_worlds() {
    let leg =
        r#"<mass value="1"/><inertia ixx="0.01" iyy="0.01" izz="0.001" ixy="0" ixz="0" iyz="0"/>"#;
    let link = |name: &str| format!(r#"<link name="{name}"><inertial>{leg}</inertial></link>"#);
    let joint = |name: &str| {
        format!(
            r#"<joint name="{name}" type="continuous"><parent link="base"/><child link="{name}_leg"/><axis xyz="0 1 0"/></joint>"#
        )
    };
    let urdf = format!(
        r#"<robot name="r"><link name="base"/>{}{}{}{}</robot>"#,
        link("left_leg"),
        link("right_leg"),
        joint("right"),
        joint("left")
    );
    let body = |name: &str| {
        format!(r#"<body><joint {name} axis="0 1 0"/><geom size="0.1" contype="0"/></body>"#)
    };
    let mjcf =
        format!("<mujoco><worldbody>{}{}</worldbody></mujoco>", body(""), body("name=\"left\""));
    for (file, text, [left, right]) in
        [("order.urdf", urdf, ["left", "right"]), ("unnamed.xml", mjcf, ["left", "joint0"])]
    {
        let dir = tempfile::tempdir().unwrap();
        let at = dir.path();
        put(&at.join(file), text);
        let mut task = format!(
            r#"[env]
num_envs = 4
episode_length_s = 0.5
[sim]
specialize = "off"
[task]
robot = "{file}"
[[task.actuator]]
joints = ["*"]
stiffness = 40.0
damping = 4.0
[[task.action]]
actuators = ["*"]
kind = "position"
scale = 0.01
[[task.observation]]
name = "joints"
expr = "joint_pos()"
[[task.reward]]
name = "one"
expr = "1"
[[task.reset]]
target = "joint_pos({right})"
value = 1.0
[actor]
hidden_dims = [8]
[critic]
hidden_dims = [8]
[runner]
num_steps_per_env = 8
max_iterations = 1
"#
        );
        for (name, joint) in [("left", left), ("right", right)] {
            task += &format!(
                "[[task.metric]]\nname = \"{name}\"\nexpr = \"joint_pos({joint})\"\nover = \"last\"\n"
            );
        }
        put(&at.join("task.toml"), task);
        let (content, words) = said(at, &["train", "task.toml", "--quiet", "--out", "run"]);
        assert!(content, "{words}");
        let (engines, both) = evaluated(at);
        for engine in engines {
            let mean = |name: &str| both[engine]["metrics"][name]["mean"].as_f64().unwrap();
            assert!(mean("left").abs() < 0.3, "{file}, {engine}: {both}");
            assert!((mean("right") - 1.0).abs() < 0.3, "{file}, {engine}: {both}");
        }
    }
}
