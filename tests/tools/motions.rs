//! `ostler motion`: a motion of any robot, and a repaired copy.

use crate::common::{Place, root};
use std::fmt::Write as _;

const LEG: &str = r#"<mujoco model="leg"><compiler angle="radian" autolimits="true"/><worldbody>
  <geom name="floor" type="plane" size="5 5 0.1"/>
  <body name="trunk" pos="0 0 0.53"><freejoint name="root"/>
    <geom name="trunk" type="box" size="0.1 0.08 0.05"/>
    <body name="thigh"><joint name="hip" axis="0 1 0" range="-1.2 1.2"/>
      <geom name="thigh" type="capsule" fromto="0 0 -0.05 0 0 -0.2" size="0.02"/>
      <body name="shin" pos="0 0 -0.25"><joint name="knee" axis="0 1 0" range="0.6 2"/>
        <geom name="shin" type="capsule" fromto="0 0 -0.05 0 0 -0.2" size="0.02"/>
        <geom name="foot" type="sphere" pos="0 0 -0.25" size="0.03"/></body></body></body>
  </worldbody></mujoco>"#;

/// Two seconds of squats that slide forward, 6 cm too high, with the knee 0.1 rad beyond its
/// limit.
fn squats(hip: usize) -> String {
    let mut text = String::new();
    for t in 0..60 {
        let knee = 0.9 - 0.4 * (0.2 * f64::from(t)).sin();
        let z = 0.56 - 0.5 * (1.0 - (0.5 * knee).cos());
        let mut joints = [-0.5 * knee; 2];
        joints[1 - hip] = knee;
        let [a, b] = joints;
        writeln!(
            text,
            "{},0,{z},0,0,0.5646424733950354,0.8253356149096783,{a},{b}",
            0.01 * f64::from(t)
        )
        .unwrap();
    }
    text
}

fn place() -> Place {
    let place = Place::new();
    std::fs::write(place.path("leg.xml"), LEG).unwrap();
    std::fs::write(place.path("squats.csv"), squats(0)).unwrap();
    place
}

fn has(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "{text} lacks {word}");
    }
}

#[test]
fn a_motion_is_looked_at_and_a_repaired_copy_written() {
    let place = place();
    let robot = place.path("leg.xml").display().to_string();
    let file = place.path("squats.csv").display().to_string();
    let fixed = place.path("fixed.npz").display().to_string();
    let text = place.ok(&["motion", &file, "--robot", &robot, "--fps", "30"]);
    has(
        &text,
        &[
            "1.97 s, 60 frames, 30.000000 per second; leg: 2 joints, 3 bodies",
            "knee: by 0.100 rad",
            "root: up to 0.41 m/s",
            "the fastest are knee",
            "the lowest point of the clip is at z = 0.0",
            "foot of shin: down to 0.0",
            "sliding there at 0.30",
            "note: assumed: joints in the robot's order",
            "note: assumed: quaternions x y z w",
        ],
    );
    assert!(!text.contains("changed"), "{text}");
    let args = ["motion", &file, "--robot", &robot, "--fps", "30", "--out", &fixed];
    let text = place.ok(&[&args[..], &["--step", "0.02"]].concat());
    has(
        &text,
        &[
            "changed: resampled from 60 frames at 0.0333 s to 99 frames at 0.0200 s",
            "changed: clipped knee to its limits in ",
            "changed: moved the whole clip down by 0.0",
            "changed: computed velocities and bodies anew",
            "fixed.npz: 99 frames, 50.000000 per second",
        ],
    );
    let text = place.ok(&["motion", &fixed, "--robot", &robot]);
    has(&text, &["99 frames", "no joint is beyond its own", "is at z = -0.00", "foot of shin"]);
    assert!(!text.contains("note:"), "{text}");
    // Named columns, and joints in another order.
    let text = format!("x,y,z,qx,qy,qz,qw,knee,hip\n{}", squats(1));
    std::fs::write(place.path("named.csv"), text).unwrap();
    let named = place.path("named.csv").display().to_string();
    let text = place.ok(&["motion", &named, "--robot", &robot, "--fps", "30"]);
    has(&text, &["knee: by 0.100 rad"]);
    let other = squats(1);
    std::fs::write(place.path("other.csv"), other).unwrap();
    let other = place.path("other.csv").display().to_string();
    let keys = ["--fps", "30", "--joints", "knee,hip"];
    let text = place.ok(&[&["motion", &other, "--robot", &robot][..], &keys].concat());
    has(&text, &["knee: by 0.100 rad"]);
}

#[test]
fn mistakes_are_named_with_their_remedy() {
    let place = place();
    let robot = place.path("leg.xml").display().to_string();
    let file = place.path("squats.csv").display().to_string();
    let base = ["motion", &file, "--robot", &robot];
    let bad = |more: &[&str], words: &[&str]| {
        has(&place.fails(2, &[&base[..], more].concat()), words);
    };
    bad(&[], &["squats.csv: the file", "--fps 50"]);
    bad(&["--fps", "30", "--quat", "wxyz"], &["the quaternion", "--quat xyzw"]);
    bad(
        &["--fps", "30", "--joints", "hip,nee"],
        &["key joints, joint nee", "did you mean \"knee\"?"],
    );
    bad(&["--fps", "0"], &["key fps", "1 to 10000"]);
    bad(&["--fps", "30", "--step", "0.02"], &["--out"]);
    let out = place.path("o.npz").display().to_string();
    bad(&["--fps", "30", "--out", &out, "--step", "0"], &["--step 0: give 0.0001 to 1"]);
    let nowhere = place.path("nowhere.csv").display().to_string();
    let text = place.fails(2, &["motion", &nowhere, "--robot", &robot]);
    has(&text, &["cannot read", "nowhere.csv"]);
    // Another robot, by its configuration: it has no legs.
    let config = root().join("configs/cartpole.toml").display().to_string();
    let text = place.fails(2, &["motion", &file, "--robot", &config, "--fps", "30"]);
    has(&text, &["line 1, frame 0", "9 columns, and the robot takes 2"]);
}

#[test]
fn a_motor_that_is_too_slow_is_named() {
    let place = place();
    let task = format!(
        r#"[task]
robot = "{}"
[[task.actuator]]
joints = ["*"]
stiffness = 20.0
damping = 1.0
effort_limit = 20.0
model = "dc_motor"
saturation_effort = 30.0
velocity_limit = 1.0
[[task.action]]
actuators = ["*"]
kind = "position"
[[task.observation]]
name = "joints"
expr = "joint_pos_rel()"
[[task.reward]]
name = "alive"
expr = "1"
"#,
        place.path("leg.xml").display()
    );
    std::fs::write(place.path("leg.toml"), task).unwrap();
    let robot = place.path("leg.toml").display().to_string();
    let file = place.path("squats.csv").display().to_string();
    let text = place.ok(&["motion", &file, "--robot", &robot, "--fps", "30"]);
    has(&text, &["speeds: knee reaches 2.", "beyond its motor's 1.00"]);
}
