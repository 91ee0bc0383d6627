//! Exported policies: onnxruntime and C decide as the program does, C observes what MuJoCo
//! measures, and the files come back into `ostler eval`.
//!
//! Reading order: this file -> `order` (which number is whose) -> `closed_loop` (the C moves
//! floating robots of MuJoCo's) -> `foreign` (ONNX files of other programs).

mod closed_loop;
mod foreign;
mod hostile;
mod order;

use crate::common::carts::{CARTS, TWO};
use crate::common::{Place, REPLAY, TASK, root};
use crate::support::need::Need;
use crate::support::referee::referee_python;
use serde_json::Value;
use std::path::Path;
use std::process::Command;

/// Farther off a number may not be; of numbers beyond 1 in relation to them.
const TOLERANCE: f64 = 1e-5;

/// `exported.py WHAT FOLDER NAME ...`, if its Python is there and a compiler of C.
fn referee(what: &str, folder: &Path, name: &str, more: &[&str]) -> Option<Value> {
    let python = referee_python()?;
    let gcc = Command::new("gcc").arg("--version").output();
    let gcc = gcc.map_err(|e| format!("gcc: {e}"));
    Need::Compiler.or_skip(gcc)?;
    let script = root().join("tests/referee/exported.py");
    let mut command = Command::new(python);
    let out = command
        .arg(script)
        .args([what, folder.to_str().unwrap(), name])
        .args(more)
        .output()
        .unwrap();
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{what} {name}: {err}");
    Some(serde_json::from_slice(&out.stdout).unwrap())
}

/// Exports the run `a` in all kinds and compares them; `more`: arguments of `export`.
fn compare(place: &Place, steps: usize, more: &[&str]) -> Option<Value> {
    let steps_text = steps.to_string();
    let mut args = vec![
        "export",
        "a",
        "--format",
        "onnx,torchscript,c",
        "--out",
        "out",
        "--name",
        "p",
        "--vectors",
        &steps_text,
    ];
    args.extend(more);
    let said = place.ok(&args);
    for file in ["p.onnx", "p.pt", "p_policy.h", "p.json"] {
        assert!(said.contains(file), "{said}");
        assert!(place.path("out").join(file).is_file(), "{file}");
    }
    let found = referee("vectors", &place.path("out"), "p", &[])?;
    assert_eq!(found["steps"], steps);
    for kind in ["onnx", "c"] {
        let off = found[kind].as_f64().unwrap();
        assert!(off < TOLERANCE, "{kind} differs by {off}");
    }
    Some(found)
}

/// The mean return of `eval a` with these arguments.
fn evaluated(place: &Place, more: &[&str]) -> f64 {
    let mut args = vec!["eval", "a", "--episodes", "16", "--json"];
    args.extend(more);
    let said: Value = serde_json::from_str(&place.ok(&args)).unwrap();
    said["mean_return"].as_f64().unwrap_or_else(|| panic!("{said}"))
}

/// The files act in `ostler eval` as the run's own policy does.
fn comes_back(place: &Place) {
    let own = evaluated(place, &[]);
    for file in ["out/p.onnx", "out/p.pt"] {
        let back = evaluated(place, &["--policy", file]);
        let far = (own - back).abs();
        assert!(far < 1e-3 * own.abs().max(1.0), "{file}: {back}, not {own}");
    }
}

#[test]
fn files_decide_as_the_program_does_whatever_learner_and_layers_made_them() {
    let gru = ["actor.rnn_type=gru", "actor.rnn_hidden_dim=8"];
    let layers = ["actor.layer_norm=true", "actor.residual=true", "actor.activation=tanh"];
    let ars = [
        "runner.algorithm=ars",
        "collector.reset_at_each_iter=true",
        "runner.num_steps_per_env=20",
    ];
    for (steps, more) in [
        (10_000, &[][..]),
        (2000, &gru),
        (500, &layers),
        (500, &["actor.activation=relu", "actor.obs_normalization=false"]),
        (500, &["--profile", "sac"]),
        (500, &["--profile", "sac", "actor.activation=silu", "actor.layer_norm=true"]),
        (500, &["--profile", "td3"]),
        (500, &ars),
    ] {
        let place = Place::with(&format!("{TASK}{REPLAY}"));
        place.train("a", 3, more);
        let Some(found) = compare(&place, steps, &[]) else {
            return;
        };
        assert!(found["moved"].as_f64().unwrap() > 0.0, "{found}");
        comes_back(&place);
    }
}

/// Scaled, clipped and remembered observations of two sorts, and what the task remembers.
const SEEN: &str = r#"
[[task.observation]]
name = "angle"
expr = "joint_pos(hinge)"
scale = 3.0
clip = [-0.05, 0.05]
history = 4
[[task.observation]]
name = "moved"
expr = "joint_pos(slider) - previous(joint_pos(slider))"
scale = [100.0]
[[task.observation]]
name = "still"
expr = "since(abs(joint_vel(hinge)) > 0.1)"
[[task.observation]]
name = "last"
expr = "last_action"
history = 2
[[task.observation]]
name = "swung"
expr = "state.most"
[[task.state]]
name = "most"
init = "0"
update = "max(state.most, abs(joint_pos(hinge)))"
"#;

#[test]
fn earlier_values_and_remembered_ones_are_inside() {
    let place = Place::with(&TASK.replace("[[task.reward]]", &format!("{SEEN}[[task.reward]]")));
    place.train("a", 3, &[]);
    let Some(_) = compare(&place, 2000, &[]) else {
        return;
    };
    comes_back(&place);
}

#[test]
fn choices_and_rows_of_controls_are_mapped() {
    for kind in ["discrete", "binary"] {
        let action = format!("kind = \"{kind}\"\nchoices = [[-0.7], [0.4]]\n[[task.observation]]");
        let place = Place::with(&TASK.replacen("[[task.observation]]", &action, 1));
        place.train("a", 8, &["ppo.learning_rate=0.01", "ppo.schedule=fixed"]);
        if compare(&place, 500, &[]).is_none() {
            return;
        }
        comes_back(&place);
    }
}

#[test]
fn each_of_several_agents_has_files_of_its_own() {
    let place = Place::with(TWO);
    std::fs::write(place.path("robots/carts.xml"), CARTS).unwrap();
    place.train("a", 2, &["agents.policies=separate"]);
    let why = place.fails(2, &["export", "a"]);
    assert!(why.contains("--agent") && why.contains("left"), "{why}");
    let why = place.fails(2, &["export", "a", "--agent", "lefd"]);
    assert!(why.contains("did you mean \"left\""), "{why}");
    let own = evaluated(&place, &[]);
    for agent in ["left", "right"] {
        place.ok(&[
            "export",
            "a",
            "--agent",
            agent,
            "--out",
            "out",
            "--format",
            "onnx,torchscript",
        ]);
    }
    let files: Vec<String> = std::fs::read_dir(place.path("out"))
        .unwrap()
        .map(|f| f.unwrap().path().display().to_string())
        .filter(|f| f.ends_with(".onnx"))
        .collect();
    assert_eq!(files.len(), 2, "{files:?}");
    let instead = |agent: &str| {
        let file = files.iter().find(|f| f.contains(agent)).unwrap();
        format!("{agent}={file}")
    };
    for file in [
        &instead("left"),
        &files.iter().find(|f| f.contains("left")).unwrap().replace(".onnx", ".pt"),
    ] {
        let wrong = format!("right={}", file.rsplit('=').next().unwrap());
        let why = place.fails(2, &["eval", "a", "--instead", &wrong]);
        assert!(why.contains("the policy of agent \"left\", not of \"right\""), "{why}");
    }
    let (left, right) = (instead("left"), instead("right"));
    let back = evaluated(&place, &["--instead", &left, "--instead", &right]);
    assert!((own - back).abs() < 1e-3 * own.abs().max(1.0), "{back}, not {own}");
}

/// A trunk that floats, with a leg of odd joints.
const FLOATING: &str = r#"<mujoco><option timestep="0.005"/><worldbody>
<geom name="floor" type="plane" size="5 5 1"/>
<body name="trunk" pos="0 0 1"><freejoint name="root"/><geom name="box" type="box" size="0.2 0.1 0.05"/>
<body name="thigh" pos="0.1 0.05 -0.03" euler="10 20 30">
<joint name="hip" axis="0 1 0.2" pos="0.01 0 0.02" ref="20"/><joint name="twist" axis="1 0 0"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.2"/>
<body name="shank" pos="0 0 -0.2" quat="0.9 0.1 0 0.3"><joint name="knee" type="slide" axis="0 0.3 1" ref="0.1"/>
<geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.2"/>
<body name="foot" pos="0 0.01 -0.2"><geom name="sole" type="sphere" size="0.03"/></body></body></body></body>
</worldbody><actuator><position name="hip" joint="hip" kp="5"/><position name="twist" joint="twist" kp="5"/>
<position name="knee" joint="knee" kp="50"/></actuator></mujoco>"#;

const FLOATING_TASK: &str = r#"
[sim]
threads = 1
specialize = "off"
[env]
num_envs = 4
decimation = 2
episode_length_s = 0.2
[task]
robot = "robots/floating.xml"
[[task.action]]
actuators = ["*"]
kind = "position"
[[task.observation]]
name = "gravity"
expr = "projected_gravity(trunk)"
[[task.observation]]
name = "gyro"
expr = "ang_vel_body(trunk)"
[[task.observation]]
name = "joint_pos"
expr = "joint_pos(hip, twist, knee)"
[[task.observation]]
name = "joint_vel"
expr = "joint_vel(hip, twist, knee)"
[[task.observation]]
name = "apart"
expr = "pos(foot) - pos(trunk)"
[[task.observation]]
name = "slide"
expr = "lin_vel(foot) - lin_vel(trunk)"
[[task.observation]]
name = "tilt"
expr = "quat(foot)"
OTHER
[[task.reward]]
name = "alive"
expr = "1"
[actor]
hidden_dims = [8]
[critic]
hidden_dims = [8]
[runner]
num_steps_per_env = 8
max_iterations = 1
[ppo]
num_mini_batches = 1
"#;

fn floating(other: &str) -> Place {
    let place = Place::with(&FLOATING_TASK.replace("OTHER", other));
    std::fs::write(place.path("robots/floating.xml"), FLOATING).unwrap();
    place.train("a", 1, &[]);
    place
}

/// What no robot measures, by a factor of 0.
const NOTHING: &str = r#"
[[task.observation]]
name = "load"
expr = "0.0 * contact_force(sole)"
[[task.observation]]
name = "forces"
expr = "sum(actuator_force()) * 0.0 + 0.25"
[[task.observation]]
name = "away"
expr = "0.0 * (1.0 / height(trunk))"
[[task.state]]
name = "even"
update = "state.even"
init = "uniform(0.5, 0.5)"
[[task.state]]
name = "normal"
update = "state.normal"
init = "normal(0, 0)"
[[task.state]]
name = "scaled"
update = "state.scaled"
init = "0.0 * uniform(-pi, pi)"
[[task.observation]]
name = "began"
expr = "[state.even, state.normal, state.scaled]"
"#;

#[test]
fn c_observes_what_a_robot_measures() {
    let place = floating(NOTHING);
    place.ok(&["export", "a", "--format", "c", "--out", "out", "--name", "p"]);
    let terms = r#"{"foot": "foot", "terms": [["gravity", 3], ["gyro", 3], ["joint_pos", 3],
        ["joint_vel", 3], ["apart", 3], ["slide", 3], ["tilt", 4],
        ["load", 1], ["forces", 1], ["away", 1], ["began", 3]],
        "constants": {"load": [0], "forces": [0.25], "away": [0], "began": [0.5, 0, 0]}}"#;
    let robot = place.path("robots/floating.xml");
    let more = [robot.to_str().unwrap(), terms];
    let Some(found) = referee("sensors", &place.path("out"), "p", &more) else {
        return;
    };
    let found = found.as_object().unwrap();
    assert_eq!(found.len(), 11);
    for (term, off) in found {
        assert!(off.as_f64().unwrap() < TOLERANCE, "{term}: {off}");
    }
}

#[test]
fn what_a_robot_cannot_measure_is_named_and_can_be_an_input() {
    let other = r#"
[[task.observation]]
name = "velocity"
expr = "lin_vel_body(trunk)"
[[task.observation]]
name = "load"
expr = "contact_force(sole)"
[[task.observation]]
name = "square"
expr = "height(foot)^2"
"#;
    let place = floating(other);
    let why = place.fails(2, &["export", "a", "--format", "c,onnx", "--out", "out"]);
    for part in [
        "velocity = lin_vel_body(trunk): the linear velocity of \"trunk\"",
        "load = contact_force(sole): the contact force of \"sole\"",
        "square = height(foot)^2: the position of \"trunk\"",
        "--input velocity --input load --input square",
    ] {
        assert!(why.contains(part), "{part}\n{why}");
    }
    assert!(!place.path("out").exists(), "nothing is written");
    let some = ["export", "a", "--format", "c", "--input", "velocity", "--input", "load"];
    let why = place.fails(2, &some);
    assert!(why.contains("square") && !why.contains("load ="), "{why}");
    let all = [&some[..], &["--input", "square", "--out", "out", "--name", "p"]].concat();
    place.ok(&all);
    let header = std::fs::read_to_string(place.path("out/p_policy.h")).unwrap();
    assert!(header.contains("float input_velocity[3];"), "{header}");
    let why = place.fails(2, &["export", "a", "--format", "c", "--input", "sqare"]);
    assert!(why.contains("did you mean \"square\""), "{why}");
    let why = place.fails(2, &["export", "a", "--input", "square"]);
    assert!(why.contains("only C"), "{why}");
}

#[test]
fn a_chain_of_bodies_whose_joints_events_shift_is_no_measurement() {
    let other = r#"
[[task.event]]
name = "shift"
when = "reset"
set = "joint_offset(twist)"
operation = "add"
range = [-0.1, 0.1]
"#;
    let place = floating(other);
    let why = place.fails(2, &["export", "a", "--format", "c"]);
    let what = "the offset of joint \"twist\" that events change";
    for part in ["apart = pos(foot) - pos(trunk)", "tilt = quat(foot)"] {
        assert!(why.contains(&format!("{part}: {what}\n")), "{part}\n{why}");
    }
    // An encoder measures a joint, however its body is put on.
    assert!(!why.contains("joint_pos") && !why.contains("gravity"), "{why}");
}

#[test]
fn controls_that_come_late_are_no_measurement_and_held_ones_begin_with_zero() {
    let late = "actuators = [\"slide\"]\ndelay = 1\n[[task.observation]]\nname = \"given\"\n\
                expr = \"ctrl\"";
    let place = Place::with(&TASK.replace("actuators = [\"slide\"]", late));
    place.train("a", 1, &[]);
    let why = place.fails(2, &["export", "a", "--format", "c"]);
    assert!(why.contains("given = ctrl: controls that actions reach late"), "{why}");
    place.ok(&["export", "a", "--format", "c", "--input", "given", "--out", "out"]);

    let held = "[[task.observation]]\nname = \"held\"\nexpr = \"ctrl(knee)\"";
    let task = FLOATING_TASK.replace("actuators = [\"*\"]", "actuators = [\"hip\", \"twist\"]");
    let place = Place::with(&task.replace("OTHER", held));
    std::fs::write(place.path("robots/floating.xml"), FLOATING).unwrap();
    place.train("a", 1, &[]);
    place.ok(&["export", "a", "--format", "c", "--out", "out", "--name", "p"]);
    let header = std::fs::read_to_string(place.path("out/p_policy.h")).unwrap();
    assert!(header.contains("(m->step == 0u ? 0.0f : 0.1f)"), "{header}");
}

#[test]
fn a_robot_of_mujocos_that_the_c_policy_moves_gets_what_eval_says() {
    // Starts from which some fall.
    let task = TASK.replace("[-0.01, 0.01]", "[-0.15, 0.15]");
    let place = Place::with(&task.replace("episode_length_s = 0.8", "episode_length_s = 4.0"));
    place.train("a", 20, &["ppo.num_learning_epochs=5"]);
    place.ok(&["export", "a", "--format", "c", "--out", "out", "--name", "p"]);
    let robot = place.path("robots/cartpole.xml");
    let more = [robot.to_str().unwrap(), "400", "100", "2", "0.15"];
    let Some(found) = referee("balance", &place.path("out"), "p", &more) else {
        return;
    };
    let python = referee_python().unwrap();
    let judged = [
        "eval",
        "a",
        "--episodes",
        "400",
        "--json",
        "--backend",
        "mujoco",
        "--python",
        python.to_str().unwrap(),
    ];
    let said: Value = serde_json::from_str(&place.ok(&judged)).unwrap();
    let number = |v: &Value, key: &str| v[key].as_f64().unwrap_or_else(|| panic!("{v}"));
    let (own, ci) = (number(&said, "mean_return"), number(&said, "ci95_return"));
    let (c, c_ci) = (number(&found, "mean"), number(&found, "ci95"));
    assert!(ci > 0.0, "some fall: {said}");
    assert!((own - c).abs() <= ci + c_ci, "{said}\n{found}");
}

#[test]
fn a_file_that_does_not_fit_is_refused_with_the_reason() {
    let place = Place::new();
    place.train("a", 1, &[]);
    let eval = |file: &str| place.fails(2, &["eval", "a", "--policy", file]);
    assert!(eval("none.onnx").contains("none.onnx"));
    std::fs::write(place.path("odd.onnx"), b"not a model").unwrap();
    assert!(eval("odd.onnx").contains("no ONNX file"));
    assert!(eval("a").contains(".onnx"));
    std::fs::write(place.path("odd.pt"), b"not a module").unwrap();
    assert!(eval("odd.pt").contains("odd.pt cannot be used"));
    // Of another task.
    let other = floating("");
    other.ok(&["export", "a", "--format", "onnx,torchscript", "--out", "out", "--name", "p"]);
    for file in ["p.onnx", "p.pt"] {
        std::fs::copy(other.path("out").join(file), place.path(file)).unwrap();
    }
    let why = eval("p.onnx");
    assert!(why.contains("22 numbers") && why.contains("sees 4"), "{why}");
    let why = place.fails(1, &["eval", "a", "--policy", "p.pt"]);
    assert!(why.contains("does not take this task's 4 numbers"), "{why}");
    assert!(!why.contains("Traceback"), "{why}");
}
