//! Which number is whose: metadata, manifest, header and the table of `ostler check` go by the
//! order of the policy's outputs.

use super::referee;
use crate::common::{Place, TASK};
use serde_json::{Value, json};

/// Actuators stand in another order than joints; a joint has two, a tendon, a ball joint and a
/// gripper of two fingers have one each.
const MIXED: &str = r#"<mujoco model="mixed"><compiler angle="radian"/>
<option timestep="0.005" gravity="0 0 0"/>
<default><geom type="capsule" size="0.02" fromto="0 0 0 0 0 -0.2" mass="1" contype="0" conaffinity="0"/>
<joint axis="0 1 0" damping="1"/></default>
<worldbody>
<body name="a" pos="0 0 1"><joint name="passive"/><geom/>
<body name="b" pos="0 0 -0.2"><joint name="hip" range="-1 1"/><geom/>
<body name="c" pos="0 0 -0.2"><joint name="knee" type="slide" range="-0.1 0.1"/><geom/></body></body></body>
<body name="d" pos="1 0 1"><joint name="wrist" type="ball" damping="1"/><geom/></body>
<body name="e" pos="2 0 1"><joint name="left" type="slide"/><geom/></body>
<body name="f" pos="3 0 1"><joint name="right" type="slide"/><geom/></body>
<body name="g" pos="4 0 1"><joint name="t1"/><geom/></body>
<body name="h" pos="5 0 1"><joint name="t2"/><geom/></body>
<body name="i" pos="6 0 1"><joint name="arm"/><geom/></body>
</worldbody>
<tendon><fixed name="split"><joint joint="t1" coef="1"/><joint joint="t2" coef="-1"/></fixed></tendon>
<actuator><motor name="m_ball" joint="wrist" gear="1 0 0"/>
<velocity name="v_knee" joint="knee" kv="3"/>
<position name="m_knee" joint="knee" kp="60" kv="2" ctrlrange="-0.5 0.75"/>
<position name="m_hip" joint="hip" kp="30" kv="1" gear="2" forcerange="-7 7"/>
<position name="m_split" tendon="split" kp="5" kv="1"/>
<position name="m_right" joint="right" kp="10"/><position name="m_left" joint="left" kp="11"/>
<position name="m_arm" joint="arm" kp="20" kv="4"/></actuator></mujoco>"#;

const MIXED_TASK: &str = r#"
[sim]
threads = 1
specialize = "off"
[env]
num_envs = 4
decimation = 2
episode_length_s = 0.2
[task]
robot = "robots/mixed.xml"
[[task.action]]
actuators = ["m_hip", "m_knee"]
kind = "position"
scale = [0.3, 0.9]
offset = [0.0, 0.05]
[[task.action]]
actuators = ["m_split"]
scale = 0.5
[[task.action]]
actuators = ["m_right", "m_left"]
kind = "binary"
choices = [[0.0, 1.0], [0.02, 1.02]]
[[task.action]]
actuators = ["m_ball", "v_knee"]
scale = [2, 4]
[[task.reset]]
target = "joint_pos([arm, hip])"
value = [-0.3, 0.2]
[[task.observation]]
name = "seen"
expr = "joint_pos_rel([knee, hip])"
scale = [1.0, 0.5]
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

fn mixed(task: &str) -> Place {
    let place = Place::with(task);
    std::fs::write(place.path("robots/mixed.xml"), MIXED).unwrap();
    place
}

fn export(place: &Place) -> Value {
    place.train("a", 1, &[]);
    let formats = "onnx,torchscript,c";
    place.ok(&["export", "a", "--format", formats, "--out", "out", "--name", "p"]);
    let text = std::fs::read(place.path("out/p.json")).unwrap();
    serde_json::from_slice(&text).unwrap()
}

/// The rows of a table, by words, from the line that begins with `output` on.
fn table(text: &str) -> Vec<Vec<String>> {
    let lines = text.lines().skip_while(|l| !l.trim_start().starts_with("output "));
    let rows = lines.skip(1).take_while(|l| !l.trim().is_empty());
    // A column's gap is wider than a blank within a name.
    let words = |line: &str| {
        let words = line.trim().split("  ").map(str::trim).filter(|w| !w.is_empty());
        words.map(String::from).collect()
    };
    rows.map(words).collect()
}

#[test]
fn lists_of_outputs_have_an_entry_for_each_output_in_order() {
    let place = mixed(MIXED_TASK);
    let manifest = export(&place);
    let names = |list: &str, key: &str| -> Vec<Value> {
        let all = manifest[list].as_array().unwrap();
        all.iter().map(|entry| entry[key].clone()).collect()
    };
    let outputs = ["m_hip", "m_knee", "m_split", "m_right", "m_ball", "v_knee"];
    assert_eq!(names("actions", "name"), outputs);
    let joints = json!(["hip", "knee", null, null, null, "knee"]);
    assert_eq!(json!(names("actions", "joint")), joints);
    let drives =
        ["joint hip", "joint knee", "tendon split", "2 actuators", "ball wrist", "joint knee"];
    assert_eq!(names("actions", "drives"), drives);
    let controls = ["m_hip", "m_knee", "m_split", "m_right", "m_left", "m_ball", "v_knee"];
    assert_eq!(names("controls", "name"), controls);
    assert_eq!(names("controls", "action"), [0, 1, 2, 3, 3, 4, 5]);
    let others = ["passive", "left", "right", "t1", "t2", "arm"];
    assert_eq!(manifest["other_joints"], json!(others));
    let Some(found) = referee("contract", &place.path("out"), "p", &[]) else {
        return;
    };
    let lists = &found["lists"];
    assert_eq!(lists["action_names"], json!(outputs));
    let joints = ["hip", "knee", "(tendon split)", "(2 actuators)", "(ball wrist)", "knee"];
    assert_eq!(lists["joint_names"], json!(joints));
    for (key, wanted) in [
        ("joint_stiffness", json!([120.0, 60.0, null, null, null, 0.0])),
        ("joint_damping", json!([4.0, 2.0, null, null, null, 3.0])),
        ("default_joint_pos", json!([0.2, 0.0, null, null, null, 0.0])),
        ("action_scale", json!([0.3, 0.9, 0.5, null, 2.0, 4.0])),
        ("action_offset", json!([0.2, 0.05, 0.0, null, 0.0, 0.0])),
        ("other_joint_names", json!(others)),
        ("other_joint_stiffness", json!([0.0, 11.0, 10.0, 0.0, 0.0, 20.0])),
        ("other_joint_damping", json!([0.0, 0.0, 0.0, 0.0, 0.0, 4.0])),
        ("other_default_joint_pos", json!([0.0, 0.0, 0.0, 0.0, 0.0, -0.3])),
        ("observation_names", json!(["seen"])),
    ] {
        assert_eq!(lists[key], wanted, "{key}");
    }
    // Who maps actions by the metadata gets the file's own controls.
    let number = |list: &Value, k: usize| list[k].as_f64().unwrap_or(f64::NAN);
    for (output, control, gear) in [(0, 0, 2.0), (1, 1, 1.0), (2, 2, 1.0), (4, 5, 1.0), (5, 6, 1.0)]
    {
        let [scale, offset] = ["action_scale", "action_offset"].map(|k| number(&lists[k], output));
        let told = gear * (offset + scale * number(&found["actions"], output));
        let apart = (told - number(&found["controls"], control)).abs();
        assert!(apart < 1e-6, "{output}: {apart}");
    }
    // A motor of the joint's own gains gets the target itself.
    let hip = &manifest["controls"][0];
    assert_eq!(hip["gear"], 2.0);
    assert_eq!(hip["unit"], "rad x gear");
    assert_eq!(hip["target"]["unit"], "rad");
    let number = |value: &Value| value.as_f64().unwrap_or(f64::NAN);
    for key in ["scale", "offset"] {
        let apart = number(&hip["target"][key]) * 2.0 - number(&hip["mapping"][key]);
        assert!(apart.abs() < 1e-6, "{hip}");
    }
    assert_eq!(manifest["controls"][5]["target"], Value::Null);
}

#[test]
fn check_the_header_and_the_manifest_say_the_same_of_every_output() {
    let place = mixed(MIXED_TASK);
    let manifest = export(&place);
    let check = table(&place.ok(&["check", "pole.toml", "--quiet"]));
    let header = std::fs::read_to_string(place.path("out/p_policy.h")).unwrap();
    assert_eq!(check, table(&header));
    assert!(header.contains("control 0 (\"m_hip\") is 2 times the target"), "{header}");
    assert!(!header.contains("control 1 ("), "{header}");
    let lines: Vec<String> = check.iter().map(|row| row.join(" ")).collect();
    for (line, wanted) in lines.iter().zip([
        "0 m_hip hip 1 0.6 0.4 120 4 -1..1 - 14",
        "1 m_knee knee 2 0.9 0.05 60 2 -0.1..0.1 -0.5..0.75 -",
        "2 m_split tendon split - 0.5 0 5 1 - - -",
        "3 m_right right 8 - 0 or 0.02 10 - - - -",
        "3 m_left left 7 - 1 or 1.02 11 - - - -",
        "4 m_ball ball wrist 3..6 2 0 - - - - -",
        "5 v_knee knee 2 4 0 - 3 -0.1..0.1 - -",
        "held m_arm arm 11 0 -0.3 20 4 - - -",
        "- - passive 0 - - - - - - -",
        "- - t1 9 - - - - - - -",
        "- - t2 10 - - - - - - -",
    ]) {
        assert_eq!(line, wanted);
    }
    assert_eq!(lines.len(), 11, "{lines:?}");
    for (row, control) in check.iter().zip(manifest["controls"].as_array().unwrap()) {
        let cell = |k: usize| row[k].as_str();
        assert_eq!(cell(0), control["action"].to_string());
        assert_eq!(cell(1), control["name"]);
        let joint = control["joint"].as_str().or(control["drives"].as_str());
        assert_eq!(Some(cell(2)), joint);
        for (k, number) in [
            (4, &control["mapping"]["scale"]),
            (5, &control["mapping"]["offset"]),
            (6, &control["stiffness"]),
            (7, &control["damping"]),
            (10, &control["effort_limit"]),
        ] {
            let shown: Option<f64> = cell(k).parse().ok();
            let apart = shown.zip(number.as_f64()).map(|(a, b)| (a - b).abs());
            assert!(shown.is_some() == number.is_number() || cell(k).contains(" or "));
            assert!(apart.is_none_or(|apart| apart < 1e-3), "{row:?} {control}");
        }
    }
}

#[test]
fn what_programs_of_the_contract_would_get_wrong_is_said() {
    let place = mixed(MIXED_TASK);
    place.train("a", 1, &[]);
    let said = place.run(&["export", "a", "--format", "onnx", "--out", "out"]);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    for part in [
        "observation \"seen\" has joints in another order",
        "targets of \"m_knee\" are about action_offset",
        "control 0 (\"m_hip\") is 2 times the target of joint \"hip\"",
    ] {
        assert!(said.contains(part), "{part} not in {said}");
    }
    let one = MIXED_TASK.replace("[knee, hip]", "[hip, knee]").replace("0.0, 0.05", "0.0, 0.0");
    let place = mixed(&one);
    place.train("a", 1, &[]);
    let said = place.run(&["export", "a", "--format", "onnx", "--out", "out"]);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(!said.contains("another order") && !said.contains("action_offset"), "{said}");
    // A list cannot have a name with a comma: it is left out, not shifted.
    let robot = MIXED.replace("\"hip\"", "\"hip,left\"");
    let task = MIXED_TASK.replace("[arm, hip]", "[arm, knee]");
    let task = task.replace("[knee, hip]", "[knee, \\\"hip,left\\\"]");
    let place = Place::with(&task);
    std::fs::write(place.path("robots/mixed.xml"), robot).unwrap();
    place.train("a", 1, &[]);
    let said = place.run(&["export", "a", "--format", "onnx", "--out", "out"]);
    let said = String::from_utf8_lossy(&said.stderr).into_owned();
    assert!(said.contains("no metadata joint_names") && said.contains("hip,left"), "{said}");
}

#[test]
fn weights_and_files_whose_outputs_stand_in_another_order_are_refused() {
    let place = mixed(MIXED_TASK);
    export(&place);
    let other = MIXED_TASK.replace("[\"m_ball\", \"v_knee\"]", "[\"v_knee\", \"m_ball\"]");
    assert_ne!(other, MIXED_TASK);
    std::fs::write(place.path("other.toml"), &other).unwrap();
    let why = place.fails(2, &["train", "other.toml", "--init-from", "a", "--quiet", "--out", "c"]);
    let order = "m_hip, m_knee, m_split, m_right, m_ball, v_knee";
    assert!(why.contains(order) && why.contains("[[task.action]]"), "{why}");
    place.ok(&["train", "other.toml", "--quiet", "--out", "b"]);
    for file in ["out/p.onnx", "out/p.pt"] {
        // A configuration serves as well as a run.
        for other in ["b", "other.toml"] {
            let why = place.fails(2, &["eval", other, "--policy", file, "--episodes", "2"]);
            assert!(why.contains(&format!("its actions are {order}")), "{why}");
        }
        let eval = |what| place.ok(&["eval", what, "--policy", file, "--episodes", "2", "--json"]);
        let mean =
            |what| serde_json::from_str::<Value>(&eval(what)).unwrap()["mean_return"].clone();
        assert!(mean("a").is_f64() && mean("a") == mean("pole.toml"));
    }
}

#[test]
fn the_cart_pole_has_one_output_and_one_joint_beside_it() {
    let place = Place::with(TASK);
    let said = place.ok(&["check", "pole.toml", "--quiet"]);
    let rows = table(&said);
    assert_eq!(rows.len(), 2, "{said}");
    assert_eq!(rows[0][..3], ["0", "slide", "slider"]);
    assert_eq!(rows[1][..4], ["-", "-", "hinge", "1"]);
}
