//! Names of parts in the keys of a task: the same forms everywhere; numbers that are infinite.

use crate::config::{ConfigError, SimConfig, TaskConfig};
use crate::task::{Task, limits, prepare};
use ostler_model::{Model, mjcf};
use std::sync::Arc;

const ROBOT: &str = r#"<mujoco><worldbody>
    <body name="a_trunk"><freejoint name="float"/><geom name="ball" size=".1" mass="1"/>
      <body name="a_leg"><joint name="a_hip"/><geom name="a_thigh" size=".05" mass="1"/>
        <body name="a_shank"><joint name="a_knee"/><geom name="a_foot" size=".05" mass="1"/></body>
        <body name="a_toe"><geom size=".01" mass=".1"/></body></body></body>
    <body name="cube"><geom size=".1" mass="1"/></body></worldbody>
  <actuator><motor name="m_hip" joint="a_hip"/><motor name="m_knee" joint="a_knee"/></actuator>
  <keyframe><key name="k1" qpos="0 0 1 1 0 0 0 .1 .2"/><key name="k2" qpos="0 0 1 1 0 0 0 .2 .3"/>
    <key name="home"/></keyframe></mujoco>"#;

/// A task with these lines, and an action unless they have one.
fn task(lines: &str) -> TaskConfig {
    let action = match lines.contains("[[action]]") {
        true => "",
        false => "[[action]]\nactuators = [\"*\"]\n",
    };
    let text = format!(
        "robot = \"\"\n{}\n[names]\njoint = [\"a_hip\", \"a_knee\"]\nmotor = [\"m_hip\", \"m_knee\"]\n\
         part = [\"hip\", \"knee\"]\nfoot = [\"a_thigh\", \"a_foot\"]\ntrunk = [\"a_trunk\"]\n\
         key = [\"k1\", \"k2\"]\none = [\"k1\"]\n{action}[[observation]]\nname = \"o\"\nexpr = \"qpos\"\n\
         [[reward]]\nname = \"r\"\nexpr = \"1\"\n{}",
        lines.lines().next().filter(|l| l.starts_with("default_pose")).unwrap_or(""),
        lines.strip_prefix("default_pose").map_or(lines, |_| "")
    );
    toml::from_str(&text).unwrap_or_else(|e| panic!("{e}\n{text}"))
}

fn robot() -> Arc<Model> {
    Arc::new(mjcf::parse("pair.xml".as_ref(), ROBOT.into()).unwrap())
}

fn made(lines: &str) -> Result<(Arc<Model>, Task), ConfigError> {
    prepare(&robot(), &task(lines), |_| 0.02)
}

fn error(lines: &str) -> String {
    made(lines).err().map_or_else(|| panic!("{lines} was accepted"), |e| e.to_string())
}

/// What names decide, in one text.
fn meant(lines: &str) -> String {
    let (model, task) = made(lines).unwrap_or_else(|e| panic!("{lines}: {e}"));
    let tables = task.tables(&model, 0.02, 100);
    format!("{:?} {:?} {:?} {tables:?}", model.actuators, model.geoms, model.varied)
}

/// The first of the forms is plain.
const KEYS: [(&str, &[&str]); 10] = [
    (
        "[[action]]\nactuators = NAMES",
        &[
            "[\"m_hip\", \"m_knee\"]",
            "[\"m_*\"]",
            "[\"motor\"]",
            "[\"m_{part}\"]",
            "[\"m_hip, m_knee\"]",
        ],
    ),
    (
        "[[action]]\nactuators = [\"*\"]\nscale = NAMES",
        &[
            "{ m_hip = 2, m_knee = 2 }",
            "{ \"*\" = 2 }",
            "{ motor = 2 }",
            "{ joint = 2 }",
            "{ \"a_{part}\" = 2 }",
            "{ \"m_hip, a_knee\" = 2 }",
        ],
    ),
    (
        "[[actuator]]\nstiffness = 3\njoints = NAMES",
        &[
            "[\"a_hip\", \"a_knee\"]",
            "[\"*\"]",
            "[\"joint\"]",
            "[\"a_{part}\"]",
            "[\"a_hip, a_knee\"]",
        ],
    ),
    (
        "[[actuator]]\njoints = [\"*\"]\nstiffness = NAMES",
        &[
            "{ a_hip = 3, a_knee = 3 }",
            "{ \"*\" = 3 }",
            "{ joint = 3 }",
            "{ \"a_{part}\" = 3 }",
            "{ \"a_hip, a_knee\" = 3 }",
        ],
    ),
    (
        "[[contact]]\ncondim = 1\ngeoms = NAMES",
        &[
            "[\"a_thigh\", \"a_foot\"]",
            "[\"a_*\"]",
            "[\"foot\"]",
            "[\"{foot}\"]",
            "[\"a_thigh, a_foot\"]",
        ],
    ),
    (
        "[[event]]\nname = \"e\"\nwhen = \"reset\"\nrange = [1, 2]\nset = \"damping(NAMES)\"",
        &["a_hip, a_knee", "*", "joint", "a_{part}", "[a_hip, a_knee]"],
    ),
    (
        "[[event]]\nname = \"e\"\nwhen = \"reset\"\nrange = [1, 2]\nset = \"vel(NAMES)\"",
        &["a_trunk", "a_*", "trunk", "{trunk}"],
    ),
    (
        "[[reset]]\nuniform = [1, 2]\ntarget = \"joint_pos(NAMES)\"",
        &["a_hip, a_knee", "*", "joint", "a_{part}", "[a_hip, a_knee]"],
    ),
    (
        "[[reset]]\nuniform = [1, 2]\ntarget = \"pos(NAMES)\"",
        &["a_trunk", "a_*", "trunk", "{trunk}"],
    ),
    (
        "[[reset]]\ntarget = \"joint_pos(*)\"\nuniform = NAMES",
        &[
            "{ a_hip = [1, 2], a_knee = [1, 2] }",
            "{ \"*\" = [1, 2] }",
            "{ joint = [1, 2] }",
            "{ \"a_{part}\" = [1, 2] }",
            "{ \"a_hip, a_knee\" = [1, 2] }",
        ],
    ),
];

#[test]
fn every_key_that_names_parts_takes_every_form() {
    for (key, forms) in KEYS {
        let plain = meant(&key.replace("NAMES", forms[0]));
        for form in &forms[1..] {
            assert_eq!(meant(&key.replace("NAMES", form)), plain, "{key}: {form}");
        }
    }
    let pose = |name: &str| {
        let (_, task) = made(&format!("default_pose = \"keyframe({name})\"")).unwrap();
        task.pose.qpos
    };
    let plain = pose("k1");
    for form in ["k1*", "one", "{one}", "[k1]"] {
        assert_eq!(pose(form), plain, "{form}");
    }
    let start = |name: &str| meant(&format!("[[reset]]\ntarget = \"keyframe({name})\""));
    for form in ["[\\\"k*\\\"]", "[k*]", "k1, k2", "key"] {
        assert_eq!(start(form), start("[k1, k2]"), "{form}");
    }
    assert_eq!(start("ho*"), start("home"));
    let frame = "[[command]]\nname = \"c\"\nkind = \"velocity\"\nlin_vel_x = [0, 1]\nframe = ";
    for form in ["a_tr*", "trunk", "{trunk}"] {
        assert_eq!(
            meant(&format!("{frame}\"{form}\"")),
            meant(&format!("{frame}\"a_trunk\"")),
            "{form}"
        );
    }
}

#[test]
fn limits_of_joints_take_every_form() {
    let config = |joints: &str| -> SimConfig {
        toml::from_str(&format!("[[limit]]\njoints = {joints}\nmax_speed = 3.0")).unwrap()
    };
    let named = |joints: &str| limits(&robot(), &config(joints), &task(""));
    for form in ["[\"joint\"]", "[\"a_{part}\"]", "[\"a_hip, a_knee\"]", "[\"a_hip\", \"a_knee\"]"]
    {
        assert_eq!(named(form).unwrap(), config("[\"a_hip\", \"a_knee\"]"), "{form}");
    }
    assert_eq!(named("[\"a_*\"]").unwrap(), config("[\"a_*\"]"));
    // A mistake has the place that was written.
    let e = named("[\"joint\", \"a_hop\"]").unwrap_err();
    assert_eq!(e.path, "sim.limit[0].joints[1]");
    assert!(e.help.unwrap().contains("a_hip"));
}

#[test]
fn several_parts_where_one_is_wanted_are_named() {
    let reset =
        |target: &str| error(&format!("[[reset]]\nuniform = [0, 1]\ntarget = \"{target}\""));
    let start = |target: &str| error(&format!("[[reset]]\ntarget = \"{target}\""));
    for (e, parts) in [
        (error("default_pose = \"keyframe(k*)\""), &["means 2: k1, k2", "name one keyframe"][..]),
        (error("default_pose = \"keyframe(key)\""), &["means 2: k1, k2"]),
        (start("keyframe(k*)"), &["means 2: k1, k2", "keyframe([k*])"]),
        (
            error(
                "[[command]]\nname = \"c\"\nkind = \"velocity\"\nlin_vel_x = [0, 1]\nframe = \"a_*\"",
            ),
            &["means 4: a_trunk, a_leg, a_shank, a_toe", "name one body"],
        ),
        (
            {
                let bare = r#"<mujoco><worldbody><body name="hand" mocap="true"/>
                    <body><joint/><geom size=".1"/></body></worldbody></mujoco>"#;
                let bare = Arc::new(mjcf::parse("bare.xml".as_ref(), bare.into()).unwrap());
                let none = TaskConfig { action: Vec::new(), ..task("") };
                prepare(&bare, &none, |_| 0.02).err().unwrap().to_string()
            },
            &["the robot has no actuators; no action moves a mocap body", "[[task.actuator]]"],
        ),
        // What sets a body without a free joint.
        (reset("pos(cube)"), &["\"cube\" has no free joint", "<freejoint/>"]),
        (reset("pos(a_leg)"), &["it moves by joint_pos(a_hip)"]),
        (reset("lin_vel(a_toe)"), &["it moves by joint_vel(a_hip)"]),
        (reset("pos(c*)"), &["no body with a free joint fits \"c*\""]),
        (reset("joint_pos(all)"), &["no hinge or slide joint fits \"all\"", "\"*\" means all"]),
        (
            error("[[action]]\nactuators = [\"m_hip\"]\nscale = { motor = 1 }"),
            &["\"m_knee\" fits none of these actuators"],
        ),
    ] {
        assert!(parts.iter().all(|part| e.contains(part)), "{e}");
    }
}

/// Of several parts of one name: the one that is meant, and how the others are written. Nothing is
/// told where a function takes one kind alone, or where it is written which.
#[test]
fn names_of_several_parts_are_told_once_for_each_expression() {
    let text = r#"<mujoco><worldbody><body name="peg" pos="0 0 1"><joint name="peg"/>
        <geom name="peg" size=".05" pos="0 0 .1"/><site name="peg" pos="0 0 -.3"/><site name="a-tip"/></body>
        <body name="a-tip"><joint/><geom size=".1"/></body>
        <body name="ball"><joint/><geom name="ball" size=".1"/><site name="ball"/></body></worldbody>
        <actuator><motor name="peg" joint="peg"/></actuator></mujoco>"#;
    let robot = Arc::new(mjcf::parse("peg.xml".as_ref(), text.into()).unwrap());
    let doubts = |expr: &str| {
        let reward = format!("[[observation]]\nname = \"p\"\nexpr = '{expr}'");
        let (model, task) = prepare(&robot, &task(&reward), |_| 0.02).unwrap();
        let all = task.doubts(&model);
        all.into_iter().filter(|line| line.contains("task.observation[1]")).collect::<Vec<_>>()
    };
    let peg = "in task.observation[1].expr: \"peg\" is the body, and site(peg) the site, \
               \"peg\" is the body, and geom(peg) the geom";
    for (expr, told) in [
        ("height(peg) + 2 * height(peg)", Some(peg)),
        ("height(\"pe*\")", Some(peg)),
        (
            "height(\"a-tip\")",
            Some(
                "in task.observation[1].expr: \"a-tip\" is the body, and site(\"a-tip\") the site",
            ),
        ),
        ("[height(site(peg)), height(body(peg)), height(geom(\"peg\"))]", None),
        ("joint_pos(peg) * ctrl(peg)", None),
        // Where the body is.
        ("height(ball)", None),
    ] {
        assert_eq!(doubts(expr), told.into_iter().collect::<Vec<_>>(), "{expr}");
    }
}

#[test]
fn numbers_are_infinite_where_that_has_a_meaning() {
    let motor = "[[actuator]]\njoints = [\"*\"]\nstiffness = 3\n";
    let dc = format!("{motor}model = \"dc_motor\"\nsaturation_effort = 5\n");
    for (infinite, plain) in [
        (format!("{motor}effort_limit = inf"), motor.to_string()),
        (
            format!("{dc}velocity_limit = 7\neffort_limit = {{ \"*\" = inf }}"),
            format!("{dc}velocity_limit = 7\neffort_limit = 1e30"),
        ),
        (
            "[[command]]\nname = \"c\"\nrange = [[0, 1]]\nresample_s = inf".into(),
            "[[command]]\nname = \"c\"\nrange = [[0, 1]]\nresample_s = 0".into(),
        ),
        (
            "[[event]]\nname = \"e\"\nwhen = \"reset\"\nset = \"force(a_trunk)\"\nrange = [0, 1]\nduration_s = inf".into(),
            "[[event]]\nname = \"e\"\nwhen = \"reset\"\nset = \"force(a_trunk)\"\nrange = [0, 1]".into(),
        ),
        ("[rewards]\nmax_abs = inf".into(), "".into()),
    ] {
        let plain = meant(&plain).replace("1e30", "inf");
        assert_eq!(meant(&infinite), plain, "{infinite}");
    }
    // An effort that no speed makes smaller.
    let (model, _) = made(&format!("{dc}velocity_limit = inf\neffort_limit = 9")).unwrap();
    let limit = model.actuators[0].motor.as_ref().unwrap().law.limit().unwrap();
    assert_eq!((limit.effort, limit.fall), (5.0, None));
    let (_, task) = made("[params]\nhigh = inf\nlow = -inf").unwrap();
    assert_eq!(task.params, [f32::INFINITY, f32::NEG_INFINITY]);
    for (lines, part) in [
        (format!("{motor}effort_limit = -inf"), "effort_limit: -inf is negative"),
        (format!("{motor}effort_limit = nan"), "NaN is not"),
        (
            "[[command]]\nname = \"c\"\nrange = [[0, 1]]\nresample_s = [1, inf]".into(),
            "0 or inf: drawn where an episode begins",
        ),
        ("[params]\np = nan".into(), "task.params.p: NaN"),
        ("[rewards]\nmax_abs = -inf".into(), "-inf is not positive"),
    ] {
        let e = error(&lines);
        assert!(e.contains(part), "{e}");
    }
}

#[test]
fn a_unit_is_refused_in_its_own_key() {
    let command = "[[command]]\nname = \"c\"\nrange = [[0, 1]]\nunit = \"mile\"";
    assert!(error(command).starts_with("task.command[0].unit: the unit \"mile\""));
    let metric = "[[metric]]\nname = \"a\"\nexpr = \"time\"\nunit = \"m\"";
    let e = error(metric);
    assert!(e.starts_with("task.metric[0].unit: `expr` is in [s], not in [m]"), "{e}");
}
