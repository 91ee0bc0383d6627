//! Pins: a pose made of a keyframe of every agent's own robot, attached to one world.

use super::arena::{Out, task};
use ostler_sim::config::{Auto, Backend, EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::env::{BatchEnv, EnvError};
use ostler_sim::model::mjcf;
use std::sync::Arc;

/// A stick on a hinge and a bead on the stick; a servo for each. Its keyframe gives no
/// controls.
const STICK: &str = r#"<mujoco model="stick">
  <compiler angle="radian"/>
  <worldbody>
    <body name="rod"><joint name="turn" axis="0 1 0" damping="1"/><geom size="0.1" mass="1"/>
      <body name="bead"><joint name="slide" type="slide" axis="1 0 0" damping="1"/><geom size="0.1" mass="1"/></body>
    </body>
  </worldbody>
  <contact><exclude body1="rod" body2="bead"/></contact>
  <actuator>
    <position name="turn" joint="turn" kp="50"/>
    <position name="slide" joint="slide" kp="50" gear="2"/>
  </actuator>
  <keyframe><key name="home" qpos="0.5 -0.25"/><key name="low" qpos="1 0"/></keyframe>
</mujoco>"#;

const WORLD: &str = r#"<mujoco model="two">
  <option timestep="0.01"/>
  <asset><model name="stick" file="stick.xml"/></asset>
  <worldbody>
    <body name="red" pos="0 0 2"><attach model="stick" body="rod" prefix="red_"/></body>
    <body name="blue" pos="5 0 2"><attach model="stick" body="rod" prefix="blue_"/></body>
  </worldbody>
</mujoco>"#;

fn sticks(more: &str) -> TaskConfig {
    task(&format!(
        r#"
[agents]
names = ["red", "blue"]
[task]
robot = ""
{more}
[[task.action]]
actuators = ["{{agent}}_turn"]
kind = "position"
[[task.observation]]
name = "rel"
expr = "joint_pos_rel(\"{{agent}}_*\")"
[[task.observation]]
name = "now"
expr = "joint_pos(\"{{agent}}_*\")"
[[task.observation]]
name = "ctrl"
expr = "ctrl(\"{{agent}}_*\")"
[[task.reward]]
name = "r"
expr = "1"
"#
    ))
}

fn build(cfg: &TaskConfig, backend: Backend) -> Result<BatchEnv, EnvError> {
    build_in(WORLD, cfg, backend)
}

fn build_in(world: &str, cfg: &TaskConfig, backend: Backend) -> Result<BatchEnv, EnvError> {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("world.xml");
    std::fs::write(&path, world).unwrap();
    std::fs::write(dir.path().join("stick.xml"), STICK).unwrap();
    let sim = SimConfig {
        backend,
        specialize: Specialize::Off,
        threads: Auto::N(1),
        ..SimConfig::default()
    };
    let env = EnvConfig { num_envs: 1, decimation: 2, episode_length_s: 10.0 };
    BatchEnv::new(Arc::new(mjcf::load(&path).unwrap()), &sim, &env, cfg, 1)
}

#[test]
fn every_agents_keyframe_is_part_of_the_pose() {
    for backend in [Backend::Native, Backend::Rapier] {
        for head in [
            "default_pose = \"keyframe({agent}_home)\"",
            "[[task.reset]]\ntarget = \"keyframe({agent}_home)\"",
        ] {
            let mut env = build(&sticks(head), backend).unwrap();
            let mut out = Out::new(env.spec());
            out.reset(&mut env, false);
            let start = [0.0, 0.0, 0.5, -0.25, 0.0, 0.0];
            assert_eq!(out.policy, [start, start].concat(), "{backend:?} {head}");
            out.step(&mut env, &[0.0, 0.25]);
            // The servo of the turn is driven, that of the slide holds the pose.
            assert_eq!(out.policy[4..6], [0.5, -0.5], "{backend:?} {head}");
            assert_eq!(out.policy[10..], [0.75, -0.5], "{backend:?} {head}");
        }
        // One agent's keyframe is the other's initial pose.
        let head = "default_pose = \"keyframe(blue_low)\"";
        let mut env = build(&sticks(head), backend).unwrap();
        let mut out = Out::new(env.spec());
        out.reset(&mut env, false);
        assert_eq!(out.policy[2..4], [0.0, 0.0]);
        assert_eq!(out.policy[8..10], [1.0, 0.0]);
    }
}

/// Keyframes of a file of its own have all joints in them.
#[test]
fn every_agents_keyframe_sets_the_joints_that_are_called_after_it() {
    let keys = r#"</worldbody><keyframe><key name="red_all" qpos="0.1 0.2 0.3 0.4" qvel="1 2 3 4"/>
        <key name="blue_all" qpos="0.5 0.6 0.7 0.8" qvel="5 6 7 8"/></keyframe>"#;
    let world = WORLD.replace("</worldbody>", keys);
    for head in [
        "default_pose = \"keyframe({agent}_all)\"",
        "[[task.reset]]\ntarget = \"keyframe({agent}_all)\"",
    ] {
        let cfg = sticks(head);
        let env = build_in(&world, &cfg, Backend::Native).unwrap();
        assert_eq!(
            env.compiled().pose.qpos,
            [0.1, 0.2, 0.7, 0.8].map(|x| f64::from(x as f32)),
            "{head}"
        );
        let mut env = build_in(&world, &cfg, Backend::Native).unwrap();
        let mut out = Out::new(env.spec());
        out.reset(&mut env, false);
        assert_eq!((&out.policy[2..4], &out.policy[8..10]), (&[0.1, 0.2][..], &[0.7, 0.8][..]));
    }
}

/// The same of the activations of actuators that are called after it. Those of nobody's are the
/// first agent's. A keyframe that is nobody's sets all.
#[test]
fn every_agents_keyframe_sets_the_activations_that_are_called_after_it() {
    let lag = |name: &str, joint: &str| {
        format!(r#"<general name="{name}" joint="{joint}" dyntype="integrator"/>"#)
    };
    let more = format!(
        r#"</worldbody><actuator>{}{}{}</actuator><keyframe>
        <key name="red_all" act="0.5 0.25 0.75"/><key name="blue_all" act="0.125 2 3"/></keyframe>"#,
        lag("red_lag", "red_turn"),
        lag("blue_lag", "blue_turn"),
        lag("lag", "red_slide")
    );
    let world = WORLD.replace("</worldbody>", &more);
    for (head, wanted) in [
        ("default_pose = \"keyframe({agent}_all)\"", [0.5, 2.0, 3.0]),
        ("[[task.reset]]\ntarget = \"keyframe({agent}_all)\"", [0.5, 2.0, 3.0]),
        ("[[task.reset]]\ntarget = \"keyframe(red_all)\"", [0.5, 0.25, 0.75]),
        ("default_pose = \"keyframe(blue_all)\"", [0.125, 2.0, 3.0]),
    ] {
        let mut env = build_in(&world, &sticks(head), Backend::Native).unwrap();
        Out::new(env.spec()).reset(&mut env, false);
        assert_eq!(env.physics().state().act, wanted, "{head}");
    }
}

#[test]
fn a_mistake_is_underlined_where_it_was_written() {
    let written = "keyframe({agent}_hmoe)";
    let e = match build(&sticks(&format!("default_pose = \"{written}\"")), Backend::Native) {
        Err(EnvError::Config(e)) => e,
        other => panic!("{other:?}"),
    };
    assert_eq!(e.path, "task.default_pose");
    assert_eq!(e.span.clone().map(|s| &written[s]), Some("{agent}_hmoe"));
    assert!(e.to_string().contains("did you mean \"red_home\"?"), "{e}");
}
