//! Pins: the effect of the policy's numbers, seen through `ctrl` and `action`.

use crate::point_mass::{Out, SMALL, build, task};
use ostler_sim::env::ActionSpace;

/// Observes `action`, then both controls.
fn controls(action: &str, raw: &[f32]) -> Vec<f32> {
    let text = format!(
        "{action}\n[[observation]]\nname = \"a\"\nexpr = \"action\"\n[[observation]]\nname = \"c\"\nexpr = \"ctrl\"\n[[reward]]\nname = \"r\"\nexpr = \"1\""
    );
    let mut env = build(crate::point_mass::Batch { n: 1, ..SMALL }, &task(&text)).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    out.step(&mut env, raw);
    out.policy
}

#[test]
fn controls_are_scaled_offset_and_clipped_to_the_actuators_range() {
    // push: -3..5, servo: -2..2; ctrl = 1 + 2 x, so x is clipped to -2..2 and -1.5..0.5.
    let both = "[[action]]\nactuators = [\"*\"]\nscale = 2\noffset = 1";
    assert_eq!(controls(both, &[0.5, 0.25]), [0.5, 0.25, 2.0, 1.5]);
    assert_eq!(controls(both, &[9.0, 9.0]), [2.0, 0.5, 5.0, 2.0]);
    assert_eq!(controls(both, &[-9.0, -9.0]), [-2.0, -1.5, -3.0, -2.0]);
    // A range of the task's own comes before scaling; the actuator's stays.
    let own = "[[action]]\nactuators = [\"push\", \"servo\"]\nclip = [-10, 10]\nscale = [1, 0.1]";
    assert_eq!(controls(own, &[20.0, 20.0]), [10.0, 10.0, 5.0, 1.0]);
}

#[test]
fn normalized_actions_span_the_control_range() {
    let text = "[[action]]\nactuators = [\"push\"]\nkind = \"normalized\"";
    assert_eq!(controls(text, &[-1.0]), [-1.0, -3.0, 0.0]);
    assert_eq!(controls(text, &[0.0]), [0.0, 1.0, 0.0]);
    assert_eq!(controls(text, &[7.0]), [1.0, 5.0, 0.0]);
}

#[test]
fn positions_become_targets_of_servos_and_forces_of_motors() {
    let start = "\n[[reset]]\ntarget = \"joint_pos(turn)\"\nvalue = 0.5\n[[reset]]\ntarget = \"joint_pos(slider)\"\nvalue = 0.25\n[[reset]]\ntarget = \"joint_vel(slider)\"\nvalue = 0.5";
    let servo =
        format!("[[action]]\nactuators = [\"servo\"]\nkind = \"position\"\nscale = 0.5{start}");
    assert_eq!(controls(&servo, &[1.0]), [1.0, 0.0, 1.0]);
    // (8 (0.25 + 0.5 - 0.25) - 2 * 0.5) / gear 2 = 1.5
    let motor = format!(
        "[[action]]\nactuators = [\"push\"]\nkind = \"position\"\nscale = 0.5\nstiffness = 8\ndamping = 2{start}"
    );
    assert_eq!(controls(&motor, &[1.0])[..2], [1.0, 1.5]);
}

#[test]
fn a_discrete_action_chooses_a_row() {
    let text = "[[action]]\nactuators = [\"push\", \"servo\"]\nkind = \"discrete\"\nchoices = [[-1, 0.5], [0, 0], [9, 1]]";
    assert_eq!(controls(text, &[0.0]), [0.0, -1.0, 0.5]);
    assert_eq!(controls(text, &[2.0]), [2.0, 5.0, 1.0]);
    assert_eq!(controls(text, &[1e9]), [2.0, 5.0, 1.0]);
    assert_eq!(controls(text, &[-4.0]), [0.0, -1.0, 0.5]);
    let env = build(SMALL, &task(&format!("{text}\n[[observation]]\nname = \"q\"\nexpr = \"qpos\"\n[[reward]]\nname = \"r\"\nexpr = \"1\""))).unwrap();
    assert_eq!(
        (env.spec().action, env.spec().action.width()),
        (ActionSpace::Discrete(3), 1)
    );
}
