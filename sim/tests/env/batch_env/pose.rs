//! Pins: `task.default_pose`, seen through targets, relative positions, starts and the
//! controls of actuators that no action drives.

use super::point_mass::{Batch, Out, SMALL, build, model, task};
use ostler_sim::config::{EnvConfig, SimConfig, TaskConfig};
use ostler_sim::env::{BatchEnv, EnvError};
use ostler_sim::model::Keyframe;
use ostler_sim::task::Task;
use std::sync::Arc;

/// Observes `joint_pos_rel` (slider, turn), `joint_pos` and `ctrl` (push, servo).
fn seen(head: &str, terms: &str) -> TaskConfig {
    let mut text = head.to_string();
    for expr in ["joint_pos_rel", "joint_pos", "ctrl"] {
        text += &format!("\n[[observation]]\nname = \"{expr}\"\nexpr = \"{expr}\"");
    }
    task(&format!("{text}\n[[reward]]\nname = \"r\"\nexpr = \"1\"\n{terms}"))
}

fn one(cfg: &TaskConfig) -> (BatchEnv, Out) {
    let mut env = build(Batch { n: 1, ..SMALL }, cfg).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    (env, out)
}

const SERVO: &str = "[[action]]\nactuators = [\"servo\"]\nkind = \"position\"\nscale = 0.5";
const PUSH: &str = "[[action]]\nactuators = [\"push\"]";
const TO_HIGH: &str =
    "[[reset]]\ntarget = \"keyframe(high)\"\n[[reset]]\ntarget = \"qvel\"\nvalue = 0";

#[test]
fn targets_and_relative_positions_are_about_the_same_pose() {
    // Episodes start in "high": slider 0.5, turn 0.25. The file's own pose is zero; in
    // "low" the slider is at -1 and the turn at 0.125.
    for (pose, rel, servo) in [
        ("", [0.0, 0.0], 0.25),
        ("default_pose = \"reset\"", [0.0, 0.0], 0.25),
        ("default_pose = \"keyframe(high)\"", [0.0, 0.0], 0.25),
        ("default_pose = 'keyframe(\"low\")'", [1.5, 0.125], 0.125),
        ("default_pose = \"initial\"", [0.5, 0.25], 0.0),
    ] {
        let (mut env, mut out) = one(&seen(pose, &format!("{SERVO}\n{TO_HIGH}")));
        assert_eq!(out.policy[..4], [rel[0], rel[1], 0.5, 0.25], "{pose}");
        out.step(&mut env, &[0.0]);
        assert_eq!(out.policy[5], servo, "{pose}");
        out.step(&mut env, &[1.0]);
        assert_eq!(out.policy[5], servo + 0.5, "{pose}");
    }
}

#[test]
fn episodes_start_in_a_pose_that_is_named() {
    let start = |pose: &str, terms: &str| {
        let (_, out) = one(&seen(pose, &format!("{PUSH}\n{terms}")));
        [out.policy[2], out.policy[3]]
    };
    let named = "default_pose = \"keyframe(high)\"";
    assert_eq!(start(named, ""), [0.5, 0.25]);
    assert_eq!(start("default_pose = \"initial\"", ""), [0.0, 0.0]);
    // Terms come on top: an offset from it, a value instead, another keyframe.
    let offset = "[[reset]]\ntarget = \"joint_pos(turn)\"\nuniform = [0.5, 0.5]";
    assert_eq!(start(named, offset), [0.5, 0.75]);
    let value = "[[reset]]\ntarget = \"joint_pos(turn)\"\nvalue = 2";
    assert_eq!(start(named, value), [0.5, 2.0]);
    let other = "[[reset]]\ntarget = \"keyframe(low)\"";
    assert_eq!(start(named, other), [-1.0, 0.125]);
}

/// The servo follows its control at once: left at zero, it would leave the pose.
#[test]
fn actuators_that_no_action_drives_hold_the_pose() {
    for (pose, terms, held) in [
        ("", "", [0.0, 0.0]),
        ("", TO_HIGH, [0.0, 0.25]),
        ("default_pose = \"keyframe(high)\"", "", [0.0, 0.25]),
        ("default_pose = \"initial\"", TO_HIGH, [0.0, 0.0]),
        // A keyframe's own controls come first, and are clipped to the control range.
        ("default_pose = \"keyframe(low)\"", "", [0.0, -2.0]),
    ] {
        let (mut env, mut out) = one(&seen(pose, &format!("{PUSH}\n{terms}")));
        assert_eq!(out.policy[4..], [0.0, 0.0], "no control was given yet");
        let mut blob = Vec::new();
        for _ in 0..2 {
            out.step(&mut env, &[0.0]);
            assert_eq!(out.policy[4..], held, "{pose} {terms}");
        }
        env.capture(&mut blob).unwrap();
        // Another process goes on with it.
        let (mut env, mut out) = one(&seen(pose, &format!("{PUSH}\n{terms}")));
        env.restore(&blob).unwrap();
        out.step(&mut env, &[0.0]);
        assert_eq!(out.policy[4..], held, "restored: {pose} {terms}");
        assert_eq!(out.policy[3], held[1]);
    }
    // All controls of a keyframe, also those of motors.
    let (mut env, mut out) = one(&seen("default_pose = \"keyframe(low)\"", SERVO));
    out.step(&mut env, &[0.0]);
    assert_eq!(out.policy[4..], [0.5, 0.125]);
}

#[test]
fn a_pose_that_does_not_exist_is_refused_with_its_place_and_a_guess() {
    for (pose, part, help) in [
        ("keyframe(hihg)", "hihg", "did you mean \"high\"?"),
        ("keyframe(\"hihg\")", "hihg", "did you mean \"high\"?"),
        ("keyframe(key)", "key", "the robot has: high, low"),
        ("keyframe()", "", "keyframe(NAME)"),
        ("keyframe", "", "keyframe(NAME)"),
        ("keyfrme(high)", "keyfrme", "did you mean \"keyframe\"?"),
        ("high", "high", "did you mean \"keyframe(high)\"?"),
        ("initail", "initail", "did you mean \"initial\"?"),
        ("x", "x", "\"reset\", \"initial\" or \"keyframe(NAME)\""),
        ("", "", "\"reset\", \"initial\" or \"keyframe(NAME)\""),
    ] {
        let cfg = seen(&format!("default_pose = '{pose}'"), PUSH);
        let e = match build(SMALL, &cfg) {
            Err(EnvError::Config(e)) => e,
            other => panic!("{pose}: {other:?}"),
        };
        assert_eq!(e.path, "task.default_pose", "{e}");
        let span = e.span.clone().unwrap_or(0..0);
        assert_eq!(&pose[span], part, "{e}");
        assert!(e.help.as_ref().is_some_and(|h| h.contains(help)), "{e}");
    }
}

/// The reader refuses these; models can be made without it.
#[test]
fn a_keyframe_of_another_models_size_is_refused() {
    let mut robot = model();
    let short: fn(&mut Keyframe) = |k| k.qpos.truncate(3);
    let long: fn(&mut Keyframe) = |k| k.qvel.push(0.0);
    for (damage, part) in [
        (short, "qpos of keyframe \"high\" has 3 numbers, the robot 9"),
        (long, "qvel of keyframe \"high\" has 9 numbers, the robot 8"),
    ] {
        let robot = Arc::make_mut(&mut robot);
        let whole = robot.clone();
        damage(&mut robot.keyframes[0]);
        for (head, terms) in [("default_pose = \"keyframe(high)\"", ""), ("", TO_HIGH)] {
            let cfg = seen(head, &format!("{PUSH}\n{terms}"));
            let e = Task::compile(robot, &cfg, 0.02).unwrap_err();
            assert!(e.to_string().contains(part), "{e}");
        }
        *robot = whole;
    }
}

/// The same of shapes in each other, but not of a child in its parent, nor where they are
/// excluded, nor less deep than a millimetre.
#[test]
fn shapes_inside_each_other_are_told_with_their_depth() {
    let told = |apart: f64, more: &str, starts: &str| {
        let text = format!(
            r#"<mujoco><worldbody><geom name="floor" type="plane" size="5 5 1"/>
              <body name="a" pos="0 0 0.098"><freejoint/><geom name="left" size="0.1"/>
                <body pos="0.05 0 0"><joint/><geom name="inner" size="0.01"/></body></body>
              <body name="b" pos="{apart} 0 1"><freejoint/>
                <geom name="right" type="box" size="0.1 0.1 0.1"/></body>
              <body name="c" pos="0 0 1"><freejoint/>
                <geom name="far" type="box" size="0.1 0.1 0.1"/></body></worldbody>{more}
              <actuator><motor name="push" joint="slide"/></actuator></mujoco>"#
        );
        let text = text.replacen("<joint/>", "<joint name=\"slide\" type=\"slide\"/>", 1);
        let model = ostler_sim::model::mjcf::parse("shapes.xml".as_ref(), text).unwrap();
        let sim = SimConfig::default();
        let reward = "[[reward]]\nname = \"r\"\nexpr = \"1\"";
        let obs = "[[observation]]\nname = \"q\"\nexpr = \"qpos\"";
        let cfg = task(&format!("{PUSH}\n{reward}\n{obs}\n{starts}"));
        let size = EnvConfig { num_envs: 3, ..EnvConfig::default() };
        BatchEnv::new(Arc::new(model), &sim, &size, &cfg, 1)
            .unwrap()
            .rehearse()
            .notes
            .into_iter()
            .find(|line| line.contains("inside each other"))
    };
    let doubts = |apart: f64, more: &str| told(apart, more, "");
    let said = doubts(0.1875, "").unwrap();
    assert!(said.starts_with("episodes begin with shapes inside each other"), "{said}");
    let pairs = said.split(": ").nth(1).unwrap().split("; ").next().unwrap();
    assert_eq!(pairs, "right and far by 12.5 mm, floor and left by 2.0 mm");
    let exclude = "<contact><exclude body1=\"b\" body2=\"c\"/></contact>";
    let said = doubts(0.1875, exclude).unwrap();
    assert!(!said.contains("right") && said.contains("floor and left"), "{said}");
    let floor = "<contact><exclude body1=\"world\" body2=\"a\"/></contact>";
    assert_eq!(doubts(0.1995, floor), None);
    assert!(doubts(0.198, floor).unwrap().contains("by 2.0 mm"));
    // Starts count, not the pose that they are drawn about.
    let lift = |low: f64, high: f64| {
        let uniform = format!("uniform = [[0, 0], [0, 0], [{low}, {high}]]");
        format!("[[reset]]\ntarget = \"pos(a)\"\n{uniform}")
    };
    assert_eq!(told(0.1995, "", &lift(0.0015, 0.002)), None);
    let said = told(0.1995, "", &lift(0.0, 0.002)).unwrap();
    let some = said.strip_prefix("of 18 episodes ").unwrap().split(' ').next().unwrap();
    let some: usize = some.parse().unwrap();
    assert!(0 < some && some < 18 && said.contains("floor and left by 1."), "{said}");
}

/// A run says so at its start, and `ostler check`.
#[test]
fn a_pose_beyond_limits_and_out_of_reach_is_told() {
    let doubts = |range: Option<[f64; 2]>, turn: f64| {
        let mut robot = model();
        Arc::make_mut(&mut robot).joints[1].range = range;
        let reset = format!("[[reset]]\ntarget = \"joint_pos(turn)\"\nvalue = {turn}");
        let task = Task::compile(&robot, &seen("", &format!("{SERVO}\n{reset}")), 0.02).unwrap();
        task.doubts(&robot)
    };
    assert_eq!(doubts(Some([-1.0, 1.0]), 0.9), [""; 0]);
    assert_eq!(doubts(None, 1.9), [""; 0]);
    let said = doubts(Some([-1.0, 1.0]), -1.25);
    assert!(said.len() == 1 && said[0].contains("(reset)"), "{said:?}");
    assert!(said[0].contains("beyond their limits, which push them back: turn by 0.2500 rad"));
    let said = doubts(None, 2.5);
    assert!(said.len() == 1 && said[0].contains("beyond them: servo by 0.5000 rad"), "{said:?}");
    assert_eq!(doubts(Some([-1.0, 1.0]), 2.5).len(), 2);
}

/// What an untrained policy meets in its first steps: ends, numbers that are none, joints far
/// beyond their limits. Nothing is said of a task that has none of them.
#[test]
fn what_the_first_step_meets_is_told() {
    let told = |more: &str| {
        let (mut robot, sim) = (model(), SimConfig::default());
        Arc::make_mut(&mut robot).joints[1].range = Some([-1.0, 1.0]);
        let size = EnvConfig { num_envs: 3, ..EnvConfig::default() };
        let cfg = seen("", &format!("{SERVO}\n{more}"));
        let met = BatchEnv::new(robot, &sim, &size, &cfg, 1).unwrap().rehearse();
        assert_eq!(met.hopeless, met.notes.iter().any(|n| n.contains(" 18 break")), "{met:?}");
        met.notes
    };
    let end = |expr: &str| told(&format!("[[termination]]\nname = \"over\"\nexpr = \"{expr}\""));
    for expr in ["time > 3", "false", "1 > 2"] {
        assert_eq!(end(expr), [""; 0], "{expr}");
    }
    for expr in ["true", "joint_pos(turn) < 9"] {
        let said = end(expr);
        let all = "of 18 episodes 18 end in their first step, with outputs of 0: over (18); ";
        assert!(said.len() == 1 && said[0].starts_with(all), "{said:?}");
    }
    for (term, named) in [
        ("[[reward]]\nname = \"odd\"\nexpr = \"sqrt(time / step_dt - 9)\"", "nan/reward/odd"),
        (
            "[[observation]]\nname = \"far\"\nexpr = \"1 / (0 * joint_pos(turn))\"",
            "/observation/far",
        ),
    ] {
        let said = told(term);
        assert!(said.len() == 1 && said[0].contains(named), "{said:?}");
        assert!(said[0].starts_with("of 18 episodes 18 break in their first step"), "{said:?}");
    }
    let start = |uniform: &str| {
        told(&format!("[[reset]]\ntarget = \"joint_pos(turn)\"\nuniform = {uniform}"))
    };
    assert_eq!(start("[-1.1, 1.1]"), [""; 0]);
    let said = start("[-30, 30]");
    assert!(said.len() == 1 && said[0].contains("far beyond their limits"), "{said:?}");
    assert!(said[0].contains("turn by 2") && said[0].contains("angles are in rad"), "{said:?}");
    let drawn = "[[reset]]\ntarget = \"joint_pos(turn)\"\nuniform = [-0.5, 0.5]\n[start]\nuntil = ";
    for never in ["\"false\"", "\"joint_pos(turn) > 1\""] {
        let said = told(&format!("{drawn}{never}"));
        assert!(said.len() == 1 && said[0].starts_with("none of 18 starts fulfils"), "{said:?}");
    }
    assert_eq!(told(&format!("{drawn}\"joint_pos(turn) > 0\"")), [""; 0]);
}

/// What is said of an observation with these keys.
fn doubts_of_seeing(keys: &str) -> Vec<String> {
    let mut cfg = seen("", SERVO);
    let term = format!("[[observation]]\nname = \"q\"\nexpr = \"qpos[:2]\"\n{keys}");
    cfg.observation = task(&term).observation;
    Task::compile(&model(), &cfg, 0.02).unwrap().doubts(&model())
}

/// What is said of position targets with these keys, for a joint of that range.
fn doubts_of_driving(range: Option<[f64; 2]>, keys: &str) -> Vec<String> {
    let (mut robot, mut cfg) = (model(), seen("", SERVO));
    Arc::make_mut(&mut robot).joints[1].range = range;
    let action = format!("[[action]]\nactuators = [\"servo\"]\nkind = \"position\"\n{keys}");
    cfg.action = task(&action).action;
    Task::compile(&robot, &cfg, 0.02).unwrap().doubts(&robot)
}

/// Two numbers are a range, and one of them may be meant for each of two components.
#[test]
fn noise_of_one_sign_is_told() {
    let doubts = |noise: &str| doubts_of_seeing(&format!("noise = {noise}"));
    for fine in ["0.1", "[-0.1, 0.2]", "{ each = [0.01, 0.02] }", "[0, 0.1]"] {
        assert_eq!(doubts(fine), [""; 0], "{fine}");
    }
    let said = doubts("[0.01, 0.02]");
    assert!(said.len() == 1 && said[0].contains("positive: q from 0.01 to 0.02; "), "{said:?}");
}

/// Outputs have no range of their own, and the actuator takes little of what a policy gives.
#[test]
fn outputs_that_their_actuators_cut_short_are_told() {
    let doubts = |keys: &str| doubts_of_driving(None, keys);
    assert_eq!(doubts("scale = 1"), [""; 0]);
    let said = doubts("scale = 8");
    assert!(said.len() == 1 && said[0].contains("servo to -0.250 .. 0.250; "), "{said:?}");
    assert_eq!(doubts("scale = 8\nclip = [-inf, inf]"), [""; 0]);
}

/// Degrees, mostly.
#[test]
fn targets_that_reach_far_beyond_their_joints_are_told() {
    let doubts = |keys: &str| doubts_of_driving(Some([-1.0, 1.0]), keys);
    assert_eq!(doubts("scale = 1.5\nclip = [-9, 9]"), [""; 0]);
    assert_eq!(doubts("scale = 45\nclip = [-0.02, 0.04]"), [""; 0]);
    let said = doubts("scale = -45\nclip = [-9, 9]");
    assert!(
        said.len() == 1 && said[0].contains("servo by 45.000 rad in a range of 2.000"),
        "{said:?}"
    );
}

#[test]
fn observations_that_never_change_are_told() {
    for fine in ["scale = 2", "scale = [-1, 0.5]", "clip = [0, 1]"] {
        assert_eq!(doubts_of_seeing(fine), [""; 0], "{fine}");
    }
    for (key, why) in [
        ("scale = 0", "q (scale = 0)"),
        ("scale = [1, 0]", "q (scale = 0)"),
        ("clip = [1, 1]", "q (a clip of no width)"),
    ] {
        let said = doubts_of_seeing(key);
        assert!(said.len() == 1 && said[0].contains(why), "{key} {said:?}");
    }
}
