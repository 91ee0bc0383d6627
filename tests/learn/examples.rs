//! `examples/`: tasks of peers, with a robot that has the names of theirs.

use crate::common::forked::Forked as _;
use crate::common::root;
use crate::support::referee;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

fn ostler(folder: &Path) -> Command {
    let mut command = crate::common::ostler();
    command.current_dir(folder);
    command
}

fn said(command: &mut Command) -> String {
    let output = command.forked().unwrap();
    let text = [output.stdout, output.stderr].map(|t| String::from_utf8_lossy(&t).into_owned());
    assert!(output.status.success(), "{}", text.concat());
    text.concat()
}

/// A four-legged robot with the parts that the task names.
fn go1() -> String {
    let leg = |(name, x, y): (&str, f64, f64)| {
        format!(
            r#"<body name="{name}_hip" pos="{x} {y} 0"><joint name="{name}_hip_joint" axis="1 0 0" range="-0.86 0.86"/>
            <inertial pos="0 0 0" mass="0.7" diaginertia="1e-3 1e-3 1e-3"/>
            <body name="{name}_thigh" pos="0 {side} 0"><joint name="{name}_thigh_joint" axis="0 1 0" range="-0.69 4.5"/>
            <inertial pos="0 0 -0.03" mass="1" diaginertia="5e-3 5e-3 1e-3"/>
            <geom name="{name}_thigh_collision1" type="capsule" size="0.015" fromto="0 0 -0.02 0 0 -0.19"/>
            <body name="{name}_calf" pos="0 0 -0.213"><joint name="{name}_calf_joint" axis="0 1 0" range="-2.8 -0.9"/>
            <inertial pos="0 0 -0.1" mass="0.2" diaginertia="2e-3 2e-3 1e-4"/>
            <geom name="{name}_calf_collision1" type="capsule" size="0.01" fromto="0 0 0 0 0 -0.18"/>
            <geom name="{name}_foot_collision" size="0.023" pos="0 0 -0.213"/>
            <site name="{name}" pos="0 0 -0.213"/></body></body></body>"#,
            side = y.signum() * 0.08
        )
    };
    let legs = [("FR", 0.19, -0.05), ("FL", 0.19, 0.05), ("RR", -0.19, -0.05), ("RL", -0.19, 0.05)];
    let legs: String = legs.map(leg).concat();
    format!(
        r#"<mujoco model="go1"><compiler angle="radian" autolimits="true"/><worldbody>
        <body name="trunk" pos="0 0 0.445"><freejoint name="base"/>
        <inertial pos="0.02 0 0" mass="5.2" diaginertia="0.02 0.06 0.07"/>
        <geom name="trunk_collision" type="box" size="0.13 0.09 0.05"/><site name="imu"/>{legs}</body>
        </worldbody><sensor><gyro name="imu_ang_vel" site="imu"/><velocimeter name="imu_lin_vel" site="imu"/></sensor></mujoco>"#
    )
}

/// It trains, and MuJoCo's worlds have the robot that the task makes of the file.
#[test]
fn mjlabs_go1_trains_and_is_judged_by_mujoco() {
    let folder = tempfile::tempdir().unwrap();
    let robot = "mjlab/asset_zoo/robots/unitree_go1/xmls";
    std::fs::create_dir_all(folder.path().join(robot)).unwrap();
    // A mesh that is only seen, and whose file is missing, is left out by both.
    let lost = "<asset><mesh name=\"hull\" file=\"lost.stl\"/></asset><worldbody>\
                <geom type=\"mesh\" mesh=\"hull\" contype=\"0\" conaffinity=\"0\"/>";
    let text = go1().replacen("<worldbody>", lost, 1);
    assert!(text.contains("lost.stl"));
    std::fs::write(folder.path().join(robot).join("go1.xml"), text).unwrap();
    let task = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/go1_flat.toml");
    let text = std::fs::read_to_string(task).unwrap();
    assert!(text.lines().count() < 120);
    std::fs::write(folder.path().join("go1_flat.toml"), text).unwrap();
    let said_by_check = said(ostler(folder.path()).args(["check", "go1_flat.toml", "-q"]));
    for line in [
        "noise uniform 0.01; bias uniform 0.015",
        "0  FR_hip_joint    FR_hip_joint       7  0.3728     0.1   15.9  1.012",
        "push_robot: vel(trunk) every 50 to 150 control steps, 6 numbers",
        "go1_flat.toml is sound",
    ] {
        assert!(said_by_check.contains(line), "{line}\n{said_by_check}");
    }
    let small = [
        "env.num_envs=16",
        "runner.max_iterations=2",
        "actor.hidden_dims=[16]",
        "critic.hidden_dims=[16]",
        "sim.specialize=off",
    ];
    let mut train = ostler(folder.path());
    train.args(["train", "go1_flat.toml", "--out", "run"]);
    for set in small {
        train.args(["--set", set]);
    }
    said(&mut train);
    let Some(python) = referee::referee_python() else {
        return;
    };
    let mut eval = ostler(folder.path());
    eval.args(["eval", "run", "--backend", "mujoco", "--episodes", "2"]);
    let judged = said(eval.args(["--python", python.to_str().unwrap()]));
    assert!(judged.contains("error_vel_xy"), "{judged}");
}

const SMALL: [&str; 5] = [
    "env.num_envs=16",
    "runner.max_iterations=2",
    "actor.hidden_dims=[16]",
    "critic.hidden_dims=[16]",
    "sim.specialize=off",
];

fn trains(folder: &Path, file: &str) {
    let mut train = ostler(folder);
    train.args(["train", file, "--out", "run"]);
    for set in SMALL {
        train.args(["--set", set]);
    }
    said(&mut train);
}

/// An example with the robot that is beside it is sound, says these lines, and trains.
fn with_its_robot(file: &str, robot: &str, lines: &[&str]) {
    let folder = tempfile::tempdir().unwrap();
    let examples = root().join("examples");
    std::fs::create_dir(folder.path().join("robots")).unwrap();
    for file in [file, robot] {
        std::fs::copy(examples.join(file), folder.path().join(file)).unwrap();
    }
    let checked = said(ostler(folder.path()).args(["check", file, "-q"]));
    for line in lines.iter().copied().chain([format!("{file} is sound").as_str()]) {
        assert!(checked.contains(line), "{line}\n{checked}");
    }
    trains(folder.path(), file);
}

#[test]
fn isaac_labs_cube_is_lifted_by_a_robot_of_simple_shapes() {
    let lines = ["action: 8 numbers", "binary on finger"];
    with_its_robot("lift_cube.toml", "robots/franka_cube.xml", &lines);
}

#[test]
fn a_quadrotor_flies_from_goal_to_goal() {
    let lines = ["for the episode, or when there", "gain(*) at every reset, 4 numbers"];
    with_its_robot("quadrotor.toml", "robots/quadrotor.xml", &lines);
}

/// With mjlab's robot, from its wheel.
#[test]
fn mjlabs_go1_trains_on_rough_ground() {
    let Some(peers) = referee::peers() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/go1_rough.toml");
    let robot = peers.join("mjlab/asset_zoo/robots/unitree_go1/xmls/go1.xml");
    let text = format!("extends = {example:?}\n[task]\nrobot = {robot:?}\n");
    std::fs::write(folder.path().join("go1.toml"), text).unwrap();
    let checked = said(ostler(folder.path()).args(["check", "go1.toml", "-q"]));
    for line in [
        "a terrain of 10 x 20 tiles of 8 m in the plane's place",
        "48..234  height_scan",
        "termination: time_out, illegal_contact, out_of_terrain_bounds",
        "go1.toml is sound",
    ] {
        assert!(checked.contains(line), "{line}\n{checked}");
    }
    trains(folder.path(), "go1.toml");
}

/// A robot a quarter larger, twice as heavy and with other names: the same file, with its names.
#[test]
fn another_robot_trains_with_the_same_file_on_rough_ground() {
    let Some(peers) = referee::peers() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let robot = peers.join("mjlab/asset_zoo/robots/unitree_go1/xmls/go1.xml");
    let larger = scaled(&std::fs::read_to_string(robot).unwrap(), 1.25);
    std::fs::write(folder.path().join("larger.xml"), larger).unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/go1_rough.toml");
    let text = format!(
        "extends = {example:?}\n[task]\nrobot = \"larger.xml\"\n[task.names]\ntrunk = [\"base\"]\n\
         foot = [\"NR\", \"NL\", \"SR\", \"SL\"]\n"
    );
    std::fs::write(folder.path().join("larger.toml"), text).unwrap();
    let checked = said(ostler(folder.path()).args(["check", "larger.toml", "-q"]));
    assert!(checked.contains("larger.toml is sound"), "{checked}");
    trains(folder.path(), "larger.toml");
}

/// What `eval` says of the policy that is kept for an example, with mjlab's robot, and of the task
/// what `changed` changes.
fn kept(name: &str, robot: &str, changed: &str, args: &[&str]) -> Option<Value> {
    let folder = tempfile::tempdir().unwrap();
    let examples = root().join("examples");
    let example = examples.join(format!("{name}_cpu.toml"));
    let robot = referee::peers()?.join("mjlab/asset_zoo/robots").join(robot);
    let text = format!("extends = {example:?}\n[task]\nrobot = {robot:?}\n{changed}");
    std::fs::write(folder.path().join("judge.toml"), text).unwrap();
    let policy = examples.join(format!("policies/{name}.onnx"));
    let mut eval = ostler(folder.path());
    eval.args(["eval", "judge.toml", "--json", "--seed", "7", "--policy"]).arg(policy).args(args);
    let out = eval.output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    Some(serde_json::from_slice(&out.stdout).unwrap())
}

/// A metric's mean.
fn mean(said: &Value, metric: &str) -> f64 {
    said["metrics"][metric]["mean"].as_f64().unwrap_or_else(|| panic!("{metric}: {said}"))
}

/// The share of episodes that nothing but their time ended.
fn lasted(said: &Value) -> f64 {
    said["ended_by"]["time_out"].as_f64().unwrap_or_else(|| panic!("{said}"))
}

/// Out of a pit with five steps of 0.12 m around it, straight ahead at 0.7 m/s, with pushes.
const STAIRS: &str = r#"
[sim]
specialize = "off"
[env]
episode_length_s = 10.0
[task.terrain]
levels = 1
columns = 4
start_level = [0, 0]
up = "0 > 1"
down = "0 > 1"
kinds = [{ kind = "stairs", share = 1.0, step_height = 0.12, step_width = 0.3, platform = 3.0, border = 1.0, inverted = true }]
[[task.command]]
name = "twist"
lin_vel_x = [0.7, 0.7]
lin_vel_y = [0.0, 0.0]
ang_vel_z = [0.0, 0.0]
heading = { share = 0.0, stiffness = 0.5, range = [0.0, 0.0] }
standing = 0.0
resample_s = [20.0, 20.0]
[[task.metric]]
name = "climbed"
expr = "walked > 4"
over = "last"
"#;

#[test]
fn the_kept_policy_of_the_go1_climbs_stairs() {
    let judge = |args: &[&str]| kept("go1_rough", "unitree_go1/xmls/go1.xml", STAIRS, args);
    let Some(said) = judge(&["--episodes", "24", "--num-envs", "24"]) else {
        return;
    };
    assert!(mean(&said, "climbed") > 0.6 && lasted(&said) > 0.8, "{said}");
    let Some(python) = referee::referee_python() else {
        return;
    };
    let python = ["--backend", "mujoco", "--python", python.to_str().unwrap()];
    let args = [&["--episodes", "10", "--num-envs", "10"][..], &python].concat();
    let said = judge(&args).unwrap();
    assert!(mean(&said, "climbed") > 0.3 && lasted(&said) > 0.6, "{said}");
}

#[test]
fn the_kept_policy_of_the_g1_walks() {
    let task = "[sim]\nspecialize = \"off\"\n[env]\nepisode_length_s = 10.0\n";
    let judge = |args: &[&str]| kept("g1_flat", "unitree_g1/xmls/g1.xml", task, args);
    let Some(said) = judge(&["--episodes", "24", "--num-envs", "24"]) else {
        return;
    };
    assert!(lasted(&said) > 0.9 && mean(&said, "error_vel_xy") < 0.35, "{said}");
    let Some(python) = referee::referee_python() else {
        return;
    };
    let python = ["--backend", "mujoco", "--python", python.to_str().unwrap()];
    let args = [&["--episodes", "4", "--num-envs", "4"][..], &python].concat();
    let said = judge(&args).unwrap();
    assert!(lasted(&said) > 0.7 && mean(&said, "error_vel_xy") < 0.4, "{said}");
}

/// A Go1 of `by` times its lengths, of the same material, with other names and nothing that is
/// only seen.
fn scaled(text: &str, by: f64) -> String {
    let lines = text.lines().filter(|line| {
        !(line.contains("<geom") && line.contains("class=\"visual\"") || line.contains("<mesh "))
    });
    let mut text: String = lines.map(|line| format!("{line}\n")).collect();
    for (names, power) in
        [(&["pos", "size", "fromto"][..], 1), (&["mass"], 3), (&["diaginertia", "fullinertia"], 5)]
    {
        for name in names {
            let key = format!(" {name}=\"");
            let mut parts = text.split(&key);
            let mut made = parts.next().unwrap().to_owned();
            for part in parts {
                let (numbers, rest) = part.split_once('"').unwrap();
                let numbers = numbers.split_whitespace().map(|x| {
                    let x: f64 = x.parse().unwrap();
                    format!("{} ", x * by.powi(power))
                });
                made += &format!("{key}{}\"{rest}", numbers.collect::<String>().trim());
            }
            text = made;
        }
    }
    for (theirs, ours) in [("FR", "NR"), ("FL", "NL"), ("RR", "SR"), ("RL", "SL")] {
        text = text.replace(&format!("\"{theirs}"), &format!("\"{ours}"));
    }
    text.replace("\"trunk\"", "\"base\"")
}

/// With mjlab's robot and holosoma's motion, from their wheels.
#[test]
fn mjlabs_g1_tracks_a_motion_of_holosomas() {
    let Some(peers) = referee::peers() else {
        return;
    };
    let folder = tempfile::tempdir().unwrap();
    let example = concat!(env!("CARGO_MANIFEST_DIR"), "/../examples/g1_tracking.toml");
    let robot = peers.join("mjlab/asset_zoo/robots/unitree_g1/xmls/g1.xml");
    std::os::unix::fs::symlink(peers.join("holosoma"), folder.path().join("holosoma")).unwrap();
    let text = format!("extends = {example:?}\n[task]\nrobot = {robot:?}\n");
    std::fs::write(folder.path().join("g1.toml"), text).unwrap();
    let checked = said(ostler(folder.path()).args(["check", "g1.toml", "-q"]));
    assert!(checked.contains("g1.toml is sound"), "{checked}");
    // What the file's own numbers contradict is said.
    assert!(
        checked.contains("6.48 s, 325 frames") && checked.contains("body_ang_vel_w"),
        "{checked}"
    );
    trains(folder.path(), "g1.toml");
}
