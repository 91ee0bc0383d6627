//! Pins: the effect of the policy's numbers, seen through `ctrl` and `action`.

use super::point_mass::{Out, SMALL, build, task};
use ostler_sim::env::{ActionSpace, BatchEnv};

/// Observes `action`, then both controls.
fn controls(action: &str, raw: &[f32]) -> Vec<f32> {
    controls_of(action, 1, raw)
}

/// The same of `n` environments, one after the other.
fn controls_of(action: &str, n: usize, raw: &[f32]) -> Vec<f32> {
    let text = format!(
        "{action}\n[[observation]]\nname = \"a\"\nexpr = \"action\"\n[[observation]]\nname = \"c\"\nexpr = \"ctrl\"\n[[reward]]\nname = \"r\"\nexpr = \"1\""
    );
    let mut env = build(super::point_mass::Batch { n, ..SMALL }, &task(&text)).unwrap();
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

/// More environments than a block has: vectors of them are computed at once, and a few by
/// themselves. g++ 12 read a table at the wrong place in the former.
#[test]
fn an_environment_among_many_gets_the_controls_that_it_gets_alone() {
    const N: usize = 67;
    for (action, width) in [
        ("actuators = [\"*\"]\nscale = 2\noffset = 1", 2),
        ("actuators = [\"push\"]\nkind = \"normalized\"", 1),
        ("actuators = [\"*\"]\nkind = \"binary\"\nchoices = [[-1, 0.5], [3, 1]]", 1),
        ("actuators = [\"*\"]\nkind = \"discrete\"\nchoices = [[-1, 0.5], [0, 0], [3, 1]]", 1),
        ("actuators = [\"servo\"]\nkind = \"position\"\nscale = 0.5", 1),
        ("actuators = [\"*\"]\ndelay = 1\nclip = [-1, 1]", 2),
        ("actuators = [\"servo\"]\nkind = \"relative\"\nscale = 0.5", 1),
        ("actuators = [\"*\"]\nkind = \"increment\"\noffset = 0.25", 2),
        ("actuators = [\"*\"]\nkind = \"binary\"\nchoices = [[-1, 0.5], [3, 1]]\ndelay = 1", 1),
    ] {
        let action = format!("[[action]]\n{action}");
        let raw: Vec<f32> = (0..N * width).map(|i| ((i * 7) % 11) as f32 / 2.0 - 2.5).collect();
        let together = controls_of(&action, N, &raw);
        let each = together.len() / N;
        for e in 0..N {
            let own = &raw[e * width..(e + 1) * width];
            let among = &together[e * each..(e + 1) * each];
            assert_eq!(among, controls(&action, own), "{action}\n{e}: {own:?}");
        }
    }
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

/// MuJoCo Playground's `qpos + action * scale` and `ctrl + action * scale`.
#[test]
fn outputs_are_added_to_positions_or_to_the_controls_before() {
    let start = "[[reset]]\ntarget = \"joint_pos(turn)\"\nvalue = 0.5";
    let see = "[[observation]]\nname = \"c\"\nexpr = \"[ctrl, joint_pos(turn)]\"\n[[reward]]\nname = \"r\"\nexpr = \"1\"";
    let alone = super::point_mass::Batch { n: 1, ..SMALL };
    let made = |action: &str| build(alone, &task(&format!("{action}\n{start}\n{see}")));
    // What is seen in the first steps of an episode with these outputs: push, servo, the joint.
    let seen = |action: &str, raw: &[&[f32]]| -> Vec<[f32; 3]> {
        let mut env = made(action).unwrap();
        let mut out = Out::new(env.spec(), 1);
        out.reset(&mut env, false);
        let step = |raw: &&[f32]| {
            out.step(&mut env, raw);
            out.policy[..].try_into().unwrap()
        };
        raw.iter().map(step).collect()
    };
    let keys = "scale = 0.5\noffset = 0.125";
    let action = format!("[[action]]\nactuators = [\"servo\"]\nkind = \"relative\"\n{keys}");
    let rows = seen(&action, &[&[1.0], &[-0.5], &[9.0]]);
    assert_eq!(rows[0][1], 0.5 + 0.125 + 0.5);
    assert_eq!(rows[1][1], rows[0][2] + 0.125 - 0.25);
    assert_eq!(rows[2][1], 2.0, "the actuator's range");
    assert!(rows[0][2] != 0.5, "the joint moves");
    let action = format!("[[action]]\nactuators = [\"*\"]\nkind = \"increment\"\n{keys}");
    let rows = seen(&action, &[&[1.0, 1.0], &[2.0, -1.0], &[9.0, 9.0], &[-1.0, -1.0]]);
    let controls: Vec<_> = rows.iter().map(|row| [row[0], row[1]]).collect();
    // A motor begins at 0, a servo where its joint is; what is clipped is added to as it is.
    assert_eq!(controls, [[0.625, 1.125], [1.75, 0.75], [5.0, 2.0], [4.625, 1.625]]);
    let wrong = "[[action]]\nactuators = [\"push\"]\nkind = \"relative\"";
    let error = made(wrong).unwrap_err().to_string();
    assert!(error.contains("\"push\" is no position actuator"), "{error}");
    assert!(error.contains("kind = \"increment\""), "{error}");
}

/// Episodes begin anew, and with them what is added to.
#[test]
fn increments_begin_anew_with_every_episode() {
    let text = "[[action]]\nactuators = [\"push\"]\nkind = \"increment\"\n[[observation]]\nname = \"c\"\nexpr = \"ctrl\"\n[[reward]]\nname = \"r\"\nexpr = \"1\"\n[[termination]]\nname = \"third\"\nexpr = \"step_count >= 3\"";
    let mut env = build(super::point_mass::Batch { n: 1, ..SMALL }, &task(text)).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    let mut controls = Vec::new();
    for _ in 0..6 {
        out.step(&mut env, &[0.5]);
        controls.push(out.policy[0]);
    }
    // Where an episode begins `ctrl` reads 0.
    assert_eq!(controls, [0.5, 1.0, 0.0, 0.5, 1.0, 0.0]);
}

#[test]
fn actions_of_every_kind_go_on_after_a_snapshot() {
    for keys in ["increment", "increment\"\ndelay = 1\n#", "relative", "control", "position"] {
        let text = format!(
            "[[action]]\nactuators = [\"servo\"]\nkind = \"{keys}\"\nscale = 0.125\n[[observation]]\nname = \"c\"\nexpr = \"[ctrl, qpos, qvel]\"\n[[reward]]\nname = \"r\"\nexpr = \"1\"\n[[termination]]\nname = \"fifth\"\nexpr = \"step_count >= 5\""
        );
        let made = || {
            let env = build(SMALL, &task(&text)).unwrap();
            let out = Out::new(env.spec(), SMALL.n);
            (env, out)
        };
        let on = |(env, out): &mut (BatchEnv, Out), steps: u32| -> Vec<_> {
            let mut step = |t| {
                out.step(env, &[0.25 + t as f32; SMALL.n]);
                out.policy.clone()
            };
            (0..steps).map(&mut step).collect()
        };
        let mut straight = made();
        straight.1.reset(&mut straight.0, false);
        on(&mut straight, 8);
        let mut blob = Vec::new();
        straight.0.capture(&mut blob).unwrap();
        let mut other = made();
        other.0.restore(&blob).unwrap();
        assert!(on(&mut other, 7) == on(&mut straight, 7), "{keys}");
    }
}

/// Isaac Lab's `BinaryJointPositionAction`, among others.
#[test]
fn a_binary_action_closes_below_zero() {
    let text = "[[action]]\nactuators = [\"push\", \"servo\"]\nkind = \"binary\"\nchoices = [[-1, 0.5], [9, 1]]";
    assert_eq!(controls(text, &[-0.1]), [-0.1, -1.0, 0.5]);
    assert_eq!(controls(text, &[0.0]), [0.0, 5.0, 1.0]);
    assert_eq!(controls(text, &[70.0]), [70.0, 5.0, 1.0]);
    let clipped = format!("{text}\nclip = [-1, 1]");
    assert_eq!(controls(&clipped, &[70.0]), [1.0, 5.0, 1.0]);
    let beside = "[[action]]\nactuators = [\"servo\"]\n[[action]]\nactuators = [\"push\"]\nkind = \"binary\"\nchoices = [[2], [3]]\ndelay = 1";
    assert_eq!(controls(beside, &[0.25, -1.0]), [0.25, -1.0, 2.0, 0.25]);
    let wrong = |keys: &str| {
        let text = format!(
            "[[action]]\nactuators = [\"push\"]\nkind = \"binary\"\n{keys}\n[[observation]]\nname = \"q\"\nexpr = \"qpos\"\n[[reward]]\nname = \"r\"\nexpr = \"1\""
        );
        build(SMALL, &task(&text)).unwrap_err().to_string()
    };
    assert!(wrong("choices = [[1]]").contains("two rows of controls"));
    assert!(wrong("choices = [[1, 2], [3, 4]]").contains("2 controls for 1 actuators"));
    assert!(wrong("choices = [[1], [2]]\nscale = 2").contains("kind = \"binary\""));
    assert!(wrong("choices = [[1], [2]]\nclip = [[0, 1]]").contains("one output"));
}

#[test]
fn a_discrete_action_chooses_a_row() {
    let text = "[[action]]\nactuators = [\"push\", \"servo\"]\nkind = \"discrete\"\nchoices = [[-1, 0.5], [0, 0], [9, 1]]";
    assert_eq!(controls(text, &[0.0]), [0.0, -1.0, 0.5]);
    assert_eq!(controls(text, &[2.0]), [2.0, 5.0, 1.0]);
    assert_eq!(controls(text, &[1e9]), [2.0, 5.0, 1.0]);
    assert_eq!(controls(text, &[-4.0]), [0.0, -1.0, 0.5]);
    let env = build(SMALL, &task(&format!("{text}\n[[observation]]\nname = \"q\"\nexpr = \"qpos\"\n[[reward]]\nname = \"r\"\nexpr = \"1\""))).unwrap();
    assert_eq!((env.spec().action, env.spec().action.width()), (ActionSpace::Discrete(3), 1));
}

/// Patterns fit names of actuators or of their joints: `push` drives `slider`.
#[test]
fn numbers_may_be_given_by_patterns_of_names() {
    let text = "[[action]]\nactuators = [\"*\"]\nscale = { \"pu*\" = 2, turn = 0.5 }\noffset = { slider = 1, servo = 0 }\nclip = { \"slid*\" = [-1, 1], servo = [-3, 0.5] }";
    assert_eq!(controls(text, &[0.5, -1.0]), [0.5, -1.0, 2.0, -0.5]);
    assert_eq!(controls(text, &[7.0, 7.0]), [1.0, 0.5, 3.0, 0.25]);
    let gains = "[[action]]\nactuators = [\"push\"]\nkind = \"position\"\nstiffness = { \"*\" = 8 }\ndamping = { slider = 2 }\n[[reset]]\ntarget = \"joint_vel(slider)\"\nvalue = 0.5";
    // The motor is a servo: its control is the target, as a length of its gear.
    assert_eq!(controls(gains, &[0.5])[..2], [0.5, 1.0]);
    let list = "[[action]]\nactuators = [\"*\"]\nclip = [[-1, 1], [0, 0.5]]";
    assert_eq!(controls(list, &[7.0, 7.0])[..2], [1.0, 0.5]);
}

#[test]
fn every_actuator_fits_exactly_one_pattern() {
    for (scale, part, help) in [
        ("{ push = 1 }", "\"servo\" fits no pattern", "\"servo\" = 1.0"),
        ("{ push = 1, \"*\" = 2 }", "\"push\" fits both \"*\" and \"push\"", "narrower"),
        (
            "{ push = 1, servi = 2 }",
            "\"servi\" fits none of these actuators",
            "did you mean \"servo\"?",
        ),
        ("[1, 2, 3]", "3 numbers for 2 actuators", "one number for all"),
    ] {
        let text = format!(
            "[[action]]\nactuators = [\"*\"]\nscale = {scale}\n[[observation]]\nname = \"q\"\nexpr = \"qpos\"\n[[reward]]\nname = \"r\"\nexpr = \"1\""
        );
        let e = build(SMALL, &task(&text)).unwrap_err().to_string();
        assert!(e.starts_with("task.action[0].scale: "), "{e}");
        assert!(e.contains(part) && e.contains(help), "{e}");
    }
}

/// The robot has `push` before `servo`; observed are outputs, then controls in the robot's order.
#[test]
fn names_alone_stand_in_the_order_in_which_they_are_written() {
    let own = "[[action]]\nactuators = [\"servo\", \"push\"]";
    let lists =
        format!("{own}\nscale = [0.125, 1]\noffset = [0.5, 2]\nclip = [[-1, 1], [-2, 0.25]]");
    assert_eq!(controls(&lists, &[9.0, 9.0]), [1.0, 0.25, 2.25, 0.625]);
    assert_eq!(controls(&lists, &[-9.0, 0.0]), [-1.0, 0.0, 2.0, 0.375]);
    let rows = "choices = [[0.25, -1], [0.5, 3]]";
    let discrete = format!("{own}\nkind = \"discrete\"\n{rows}");
    assert_eq!(controls(&discrete, &[1.0]), [1.0, 3.0, 0.5]);
    let binary = format!("{own}\nkind = \"binary\"\n{rows}");
    assert_eq!(controls(&binary, &[-1.0]), [-1.0, -1.0, 0.25]);
    let named = "[names]\nboth = [\"servo\", \"push\"]\n[[action]]\nactuators = [\"both\"]\nscale = [0.125, 1]";
    assert_eq!(controls(named, &[1.0, 2.0]), [1.0, 2.0, 2.0, 0.125]);
    let gains = "[[action]]\nactuators = [\"push\"]\nkind = \"position\"\nstiffness = [8]";
    assert_eq!(controls(gains, &[0.5])[..2], [0.5, 1.0]);
}

#[test]
fn with_a_pattern_all_stand_in_the_robots_order_or_a_list_beside_them_is_refused() {
    // The order written is the robot's.
    for names in ["\"*\"", "\"push\", \"*\"", "\"*u*\", \"*\""] {
        let list = format!("[[action]]\nactuators = [{names}]\nscale = [1, 0.125]");
        assert_eq!(controls(&list, &[2.0, 1.0]), [2.0, 1.0, 2.0, 0.125]);
    }
    let mixed = "[[action]]\nactuators = [\"servo\", \"*\"]";
    let by_name = format!("{mixed}\nscale = {{ push = 1, servo = 0.125 }}");
    assert_eq!(controls(&by_name, &[2.0, 1.0]), [2.0, 1.0, 2.0, 0.125]);
    for (keys, place) in [
        ("scale = [1, 2]", "scale"),
        ("offset = [1, 2]", "offset"),
        ("clip = [[0, 1], [0, 2]]", "clip"),
        ("kind = \"discrete\"\nchoices = [[0, 1], [1, 0]]", "choices[0]"),
        ("kind = \"binary\"\nchoices = [[0, 1], [1, 0]]", "choices[0]"),
    ] {
        let text = format!(
            "{mixed}\n{keys}\n[[observation]]\nname = \"q\"\nexpr = \"qpos\"\n[[reward]]\nname = \"r\"\nexpr = \"1\""
        );
        let e = build(SMALL, &task(&text)).unwrap_err().to_string();
        assert!(e.starts_with(&format!("task.action[0].{place}: ")), "{e}");
        assert!(e.contains("in the model's order") && e.contains("write out all names"), "{e}");
    }
}

#[test]
fn a_name_that_is_written_twice_is_refused() {
    let text = "[[action]]\nactuators = [\"servo\", \"push\", \"servo\"]\n[[observation]]\nname = \"q\"\nexpr = \"EXPR\"\n[[reward]]\nname = \"r\"\nexpr = \"1\"";
    let e = build(SMALL, &task(&text.replace("EXPR", "qpos"))).unwrap_err().to_string();
    assert!(e.starts_with("task.action[0].actuators: \"servo\" is in the list twice"), "{e}");
    let seen = text.replace("\"push\", \"servo\"", "\"push\"");
    let seen = seen.replace("EXPR", "joint_pos([turn, slider, turn])");
    let e = build(SMALL, &task(&seen)).unwrap_err().to_string();
    assert!(e.contains("turn is in the list twice"), "{e}");
}

/// Controls of environment 0 in the steps of an episode, with outputs 1, 2, 3, ...
fn late(action: &str, n: usize, steps: u64) -> Vec<Vec<f32>> {
    let text = format!(
        "{action}\n[[observation]]\nname = \"c\"\nexpr = \"ctrl\"\n[[observation]]\nname = \"a\"\nexpr = \"action\"\n[[reward]]\nname = \"r\"\nexpr = \"1\""
    );
    let batch = super::point_mass::Batch { n, steps: 20, ..SMALL };
    let mut env = build(batch, &task(&text)).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    env.set_noise(false);
    let width = env.spec().action.width();
    let step = |t: u64| {
        out.step(&mut env, &vec![t as f32 / 16.0; n * width]);
        out.policy.clone()
    };
    (1..=steps).map(step).collect()
}

/// As mjlab's delayed actuators: before the first command has come, that is the command.
#[test]
fn late_outputs_reach_their_actuators_after_so_many_steps() {
    let text = "[[action]]\nactuators = [\"push\"]\ndelay = 2\n[[action]]\nactuators = [\"servo\"]";
    let rows = late(text, 1, 22);
    let sixteenths = |at: usize| rows.iter().map(|row| row[at] * 16.0).collect::<Vec<_>>();
    assert_eq!(sixteenths(0)[..5], [1.0, 1.0, 1.0, 2.0, 3.0]);
    assert_eq!(sixteenths(1)[..5], [1.0, 2.0, 3.0, 4.0, 5.0]);
    // What the policy decided is what it decided.
    assert_eq!(sixteenths(2)[..5], [1.0, 2.0, 3.0, 4.0, 5.0]);
    // The next episode begins with its own first output; its first row has no control yet.
    assert_eq!(sixteenths(0)[18..22], [17.0, 0.0, 21.0, 21.0]);
    // Choices are late, too.
    let choice =
        "[[action]]\nactuators = [\"push\"]\nkind = \"discrete\"\nchoices = [[-1], [1]]\ndelay = 1";
    let controls: Vec<f32> = late(choice, 1, 18).iter().map(|row| row[0]).collect();
    // 8 / 16 is the first that is rounded to 1.
    assert_eq!(controls[6..10], [-1.0, -1.0, 1.0, 1.0]);
}

#[test]
fn outputs_of_a_term_have_one_delay_which_is_drawn_for_the_episode() {
    let text = "[[action]]\nactuators = [\"*\"]\ndelay = [0, 3]";
    let rows = late(text, 400, 19);
    let delays = |t: usize| -> Vec<u32> {
        let envs = rows[t].chunks(4);
        envs.map(|row| {
            assert_eq!(row[0], row[1]);
            (16.0 * (row[2] - row[0])) as u32
        })
        .collect()
    };
    let first = delays(4);
    assert!((5..19).all(|t| delays(t) == first));
    for delay in 0..=3 {
        let count = first.iter().filter(|d| **d == delay).count();
        assert!((60..140).contains(&count), "{delay}: {count}");
    }
}
