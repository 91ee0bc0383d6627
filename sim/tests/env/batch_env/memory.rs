//! Pins: values of `previous` and `since` in every step of an episode, at its start, and after
//! one that broke.

use super::point_mass::{Batch, Out, SMALL, build, task};
use ostler_sim::config::TaskConfig;
use ostler_sim::env::{BatchEnv, Groups};

/// Observations: steps, those before, before those, and then times.
fn remembering() -> TaskConfig {
    task(
        r#"
[[action]]
actuators = ["*"]
[[observation]]
name = "steps"
expr = "[step_count, previous(step_count), previous(previous(step_count))]"
[[observation]]
name = "place"
expr = "[qpos[0], previous(qpos[0])]"
[[observation]]
name = "times"
expr = "[since([action[0] > 0.5, false]), previous(since(action[0] > 0.5))]"
[[reward]]
name = "landed"
expr = "action[0] > 0.5 and previous(since(action[0] > 0.5)) > 0 ? previous(since(action[0] > 0.5)) : 0"
[[reset]]
target = "qpos"
uniform = [-0.5, 0.5]
"#,
    )
}

const WIDE: usize = 8;

fn start(b: Batch) -> (BatchEnv, Out) {
    let mut env = build(b, &remembering()).unwrap();
    let mut out = Out::new(env.spec(), 4);
    out.reset(&mut env, false);
    (env, out)
}

fn row(out: &Out, env: usize) -> [f32; WIDE] {
    out.policy[WIDE * env..][..WIDE].try_into().unwrap()
}

/// Actions of three environments: the first number of each.
fn push(first: [f32; 3]) -> Vec<f32> {
    first.iter().flat_map(|x| [*x, 0.0]).collect()
}

#[test]
fn what_was_before_is_that_of_the_same_episode() {
    let (mut env, mut out) = start(SMALL);
    for e in 0..3 {
        let [a, b, c, place, before, ..] = row(&out, e);
        assert_eq!([a, b, c], [0.0; 3]);
        assert_eq!(place, before);
    }
    let mut places = [0, 1, 2].map(|e| row(&out, e)[3]);
    // Two episodes of five steps.
    for step in 1..=10 {
        out.step(&mut env, &push([1.0, 0.2, -1.0]));
        let age = (step % 5) as f32;
        for (e, place) in places.iter_mut().enumerate() {
            let [a, b, c, now, before, ..] = row(&out, e);
            let expected = [age, (age - 1.0).max(0.0), (age - 2.0).max(0.0)];
            assert_eq!([a, b, c], expected, "step {step}");
            let first = age == 0.0;
            assert_eq!(before, if first { now } else { *place }, "step {step}");
            assert_eq!(out.truncated[e], f32::from(u8::from(first)));
            *place = now;
        }
    }
}

#[test]
fn times_run_from_what_held_last_or_from_the_start() {
    let (mut env, mut out) = start(SMALL);
    let dt = 0.02_f32;
    for e in 0..3 {
        assert_eq!(row(&out, e)[5..], [0.0; 3]);
    }
    let held = [[false; 4], [false, true, false, false], [true, true, false, true]];
    let mut times = [0.0_f32; 3];
    let mut episode = 0.0;
    for step in 0..4 {
        let before = times;
        out.step(&mut env, &push(held.map(|h| f32::from(u8::from(h[step])))));
        episode += dt;
        for e in 0..3 {
            times[e] = if held[e][step] { 0.0 } else { times[e] + dt };
            let seen = &row(&out, e)[5..];
            assert_eq!(seen, [times[e], episode, before[e]], "{e} {step}");
            // The reward of a foot that touches the ground after a time in the air.
            let landed = if held[e][step] { before[e] } else { 0.0 };
            assert_eq!(out.reward[e], landed, "{e} {step}");
        }
    }
    // The fifth step ends the episode: a new one, from its start.
    out.step(&mut env, &push([0.0; 3]));
    for e in 0..3 {
        assert_eq!(row(&out, e)[5..], [0.0; 3]);
    }
    out.step(&mut env, &push([0.0; 3]));
    assert_eq!(row(&out, 0)[5..], [dt, dt, 0.0]);
}

#[test]
fn nothing_is_left_of_an_environment_that_broke() {
    let (mut env, mut out) = start(Batch { steps: 50, ..SMALL });
    for _ in 0..3 {
        out.step(&mut env, &push([0.0; 3]));
    }
    out.step(&mut env, &push([0.0, f32::NAN, 0.0]));
    assert_eq!(out.valid, [1.0, 0.0, 1.0]);
    let [a, b, c, place, before, times @ ..] = row(&out, 1);
    assert_eq!(([a, b, c], times), ([0.0; 3], [0.0; 3]));
    assert_eq!(place, before);
    assert_eq!(row(&out, 0)[..3], [4.0, 3.0, 2.0]);
}

#[test]
fn environments_that_are_taken_over_remember_and_new_ones_do_not() {
    let long = Batch { steps: 50, ..SMALL };
    let (mut env, mut out) = start(long);
    for _ in 0..3 {
        out.step(&mut env, &push([0.0; 3]));
    }
    let mut blob = Vec::new();
    env.capture(&mut blob).unwrap();
    let (mut more, mut rows) = start(Batch { n: 5, ..long });
    let mut obs = Groups { policy: &mut rows.policy[..], critic: None };
    assert_eq!(more.restore_range(&blob, false, &mut obs).unwrap(), 3);
    out.step(&mut env, &push([0.0; 3]));
    rows.step(&mut more, &[0.0; 10]);
    for e in 0..3 {
        assert_eq!(row(&out, e), row(&rows, e));
    }
    for e in 3..5 {
        assert_eq!(row(&rows, e)[..3], [1.0, 0.0, 0.0]);
        assert_eq!(row(&rows, e)[5..], [0.02, 0.02, 0.0]);
    }
}
