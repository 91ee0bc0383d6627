//! Pins: when a state of the task has which value: rewards and terminations of a step see the
//! value before it, observations the value after it, and an episode begins with `init`.

use super::point_mass::{Batch, Out, SMALL, build, task};
use ostler_sim::config::TaskConfig;

/// `touch` is what a foot's contact would be, `lift` its height.
fn counted() -> TaskConfig {
    task(
        r#"
[names]
foot = ["cart", "ball"]
motor = ["pu*"]
piece = ["vo"]
[let]
touch = "action > 0.5"
lift = "max(0.2 - action, 0) * 2"
landed = "touch and previous(not touch)"
[[action]]
actuators = ["motor", "ser{piece}"]
[[command]]
name = "goal"
range = [[-1, 1]]
resample_s = 0.04
[[state]]
name = "count"
init = "0"
update = "state.count + 1"
[[state]]
name = "old"
init = "state.count - 1"
update = "state.count"
[[state]]
name = "peak"
unit = "m"
init = "0"
update = "touch ? 0 : max(state.peak, lift)"
[[state]]
name = "air"
init = "0 * since(touch)"
update = "touch ? 0 : state.air + step_dt"
[[state]]
name = "turned"
init = "[1, 2, 3]"
update = "state.turned.yzx"
[[state]]
name = "drawn"
init = "command.goal"
update = "command.goal"
[[state]]
name = "seen_{foot}"
init = "0"
update = "state.seen_{foot} + (0 * height({foot})) + 2"
unit = "m"
[[state]]
name = "ever"
init = "false"
update = "state.ever or action[0] > 0.8"
[[observation]]
name = "state"
expr = "[state.count, state.old, state.peak, state.turned, state.ever]"
[[observation]]
name = "same"
expr = "[state.air - since(touch), state.drawn - command.goal, previous(state.count)]"
[[observation]]
name = "feet"
expr = "each(foot, state.seen_{foot})"
[[reward]]
name = "count"
expr = "state.count"
[[reward]]
name = "swing"
expr = "sum(landed * state.peak)"
weight = 100
[[reward]]
name = "air"
expr = "sum(abs((touch ? 0 : state.air + step_dt) - since(touch)))"
weight = 1e6
[[termination]]
name = "late"
expr = "state.count > 6"
"#,
    )
}

const WIDTH: usize = 8 + 2 + 1 + 1 + 2;

/// The two actions of an environment in a step.
fn action(env: usize, step: u32) -> [f32; 2] {
    let wave = |k: u32| ((7 * step + 3 * k + 5 * env as u32) % 11) as f32 / 10.0;
    [wave(0), wave(1)]
}

#[test]
fn rewards_see_the_value_before_the_step_and_observations_the_one_after() {
    let b = Batch { steps: 100, ..SMALL };
    let mut env = build(b, &counted()).unwrap_or_else(|e| panic!("{e}"));
    assert_eq!(env.spec().obs.policy, WIDTH);
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    let first = |peak: &[f32; 2]| {
        vec![0.0, -1.0, peak[0], peak[1], 1.0, 2.0, 3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0]
    };
    for row in out.policy.chunks(WIDTH) {
        assert_eq!(row, first(&[0.0; 2]));
    }
    let mut ends = 0;
    // By hand, one environment each: steps of the episode, peaks, whether a foot stood, ever.
    let mut hand = vec![(0u32, [0f32; 2], [false; 2], false); b.n];
    for step in 0..40 {
        let actions: Vec<f32> = (0..b.n).flat_map(|e| action(e, step)).collect();
        out.step(&mut env, &actions);
        for (e, (age, peak, stood, ever)) in hand.iter_mut().enumerate() {
            let a = action(e, step);
            let touch = a.map(|x| x > 0.5);
            // In an episode's first step nothing was before; its first state has no action.
            let mut swing = 0.0;
            for k in 0..2 {
                swing += if touch[k] && !stood[k] { peak[k] } else { 0.0 };
            }
            let reward = *age as f32 + 100.0 * swing;
            assert!(
                (out.reward[e] - reward).abs() < 1e-3,
                "{step}, {e}: {} {reward}",
                out.reward[e]
            );
            assert_eq!(out.terminated[e], f32::from(u8::from(*age > 6)));
            *age += 1;
            for k in 0..2 {
                let lift = (0.2 - a[k]).max(0.0) * 2.0;
                peak[k] = if touch[k] { 0.0 } else { peak[k].max(lift) };
            }
            *stood = touch;
            *ever |= a[0] > 0.8;
            let row = &out.policy[WIDTH * e..][..WIDTH];
            if out.terminated[e] != 0.0 {
                ends += 1;
                assert_eq!(row, first(&[0.0; 2]), "{step}");
                (*age, *peak, *stood, *ever) = (0, [0.0; 2], [false; 2], false);
                continue;
            }
            let n = *age as f32;
            let turned = [[1.0, 2.0, 3.0], [2.0, 3.0, 1.0], [3.0, 1.0, 2.0]][*age as usize % 3];
            let want = [
                &[n, n - 1.0, peak[0], peak[1]],
                &turned[..],
                &[f32::from(u8::from(*ever)), 0.0, 0.0, 0.0, n - 1.0, 2.0 * n, 2.0 * n],
            ];
            assert_eq!(row, want.concat(), "{step}, {e}");
        }
    }
    assert_eq!(ends, 15);
}

#[test]
fn observations_before_a_reset_have_the_value_after_the_last_step() {
    let mut task = counted();
    task.termination[0].truncate = true;
    let b = Batch { steps: 100, ..SMALL };
    let mut env = build(b, &task).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    for step in 0..8 {
        let actions: Vec<f32> = (0..b.n).flat_map(|e| action(e, step)).collect();
        out.step(&mut env, &actions);
    }
    assert_eq!(out.truncated, [1.0; 3]);
    for e in 0..3 {
        assert_eq!(out.final_policy[WIDTH * e], 8.0);
        assert_eq!(out.policy[WIDTH * e], 0.0);
    }
}

/// The value that broke the reward is another one after the step.
#[test]
fn a_reward_that_a_state_broke_is_the_cause() {
    let text = r#"
[[action]]
actuators = ["*"]
[[state]]
name = "n"
init = "0"
update = "state.n > 2 ? 0 : state.n + 1"
[[observation]]
name = "state"
expr = "qpos"
[[reward]]
name = "fine"
expr = "1"
[[reward]]
name = "edge"
expr = "1 / (3 - state.n)"
"#;
    let b = Batch { steps: 100, ..SMALL };
    let mut env = build(b, &task(text)).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    for _ in 0..4 {
        out.step(&mut env, &[0.0; 6]);
    }
    assert_eq!(out.valid, [0.0; 3]);
    let mut stats = ostler_sim::EpisodeStats::default();
    env.take_stats(&mut stats);
    let names = &env.spec().cause_names;
    let causes: Vec<&str> =
        (stats.breaks.iter()).map(|b| names[b.cause as usize].as_str()).collect();
    assert_eq!(causes, ["inf/reward/edge"; 3]);
}

/// As many states as there may be, each of which takes its size from the next.
#[test]
fn sizes_are_found_where_they_are_or_asked_for() {
    let chain = |n: usize, last: &str| {
        let mut text = String::new();
        for i in 0..n {
            let update = match i + 1 == n {
                true => last.to_string(),
                false => format!("state.s{} + 1", i + 1),
            };
            text += &format!("[[state]]\nname = \"s{i}\"\ninit = \"0\"\nupdate = \"{update}\"\n");
        }
        text += "[[action]]\nactuators = [\"*\"]\n[[reward]]\nname = \"r\"\nexpr = \"1\"\n";
        text += "[[observation]]\nname = \"o\"\nexpr = \"state.s0\"\n";
        task(&text)
    };
    let env = build(SMALL, &chain(12, "[1, 2, 3] * state.s0")).unwrap();
    assert_eq!(env.spec().obs.policy, 3);
    let env = build(SMALL, &chain(1000, "2 * state.s0")).unwrap();
    assert_eq!(env.spec().obs.policy, 1);
    let began = std::time::Instant::now();
    match build(SMALL, &chain(1000, "[1, 2]")) {
        Err(ostler_sim::env::EnvError::Config(e)) => {
            assert!(e.message.contains("depend on one another"), "{e}");
            assert!(e.help.unwrap().contains("`init`"));
        }
        other => panic!("{other:?}"),
    }
    assert!(began.elapsed().as_secs() < 60);
}

#[test]
fn mistakes_in_states_name_their_place_and_a_remedy() {
    let good = r#"
[names]
foot = ["cart", "ball"]
[[action]]
actuators = ["*"]
[[observation]]
name = "state"
expr = "qpos"
[[reward]]
name = "r"
expr = "1"
"#;
    let state = |name: &str, rest: &str| format!("[[state]]\nname = \"{name}\"\n{rest}\n");
    let plain = "init = \"0\"\nupdate = \"1\"";
    for (states, path, message, help) in [
        (state("", plain), "task.state[0].name", "the name is empty", ""),
        (state("a b", plain), "task.state[0].name", "cannot be a state's name", "letters"),
        (state("{fot}", plain), "task.state[0].name", "cannot be a state's name", "letters"),
        (state("a", plain) + &state("a", plain), "task.state[1].name", "used twice", ""),
        (
            state("a", "init = \"0\"\nupdate = \"state.b + 1\""),
            "task.state[0].update",
            "no state called \"b\"",
            "there are: a",
        ),
        (
            state("aaa", "init = \"0\"\nupdate = \"state.aab + 1\""),
            "task.state[0].update",
            "no state called",
            "did you mean state.aaa?",
        ),
        (
            state("a", "init = \"state.a\"\nupdate = \"1\""),
            "task.state[0].init",
            "\"a\" has no value here yet",
            "before its own",
        ),
        (
            state("a", "init = \"state.b\"\nupdate = \"1\"") + &state("b", plain),
            "task.state[0].init",
            "\"b\" has no value here yet",
            "",
        ),
        (
            state("a", "unit = \"furlong\"\ninit = \"0\"\nupdate = \"1\""),
            "task.state[0].unit",
            "\"furlong\" is not known",
            "units are products",
        ),
        (
            state("a", "unit = \"m\"\ninit = \"time\"\nupdate = \"1\""),
            "task.state[0].init",
            "this is in [s], the state \"a\" in [m]",
            "",
        ),
        (
            state("a", "init = \"height(cart)\"\nupdate = \"time\""),
            "task.state[0].update",
            "this is in [s], the state \"a\" in [m]",
            "",
        ),
        (
            state("a", "init = \"[1, 2]\"\nupdate = \"[1, 2, 3]\""),
            "task.state[0].update",
            "`update` has 3 components, `init` has 2",
            "",
        ),
        (state("a", "init = \"0\"\nupdate = \"[state.a, 1]\""), "task.state[0]", "", ""),
        (
            state("a", "init = \"0\"\nupdate = \"time > 1\""),
            "task.state[0].update",
            "`update` is a condition, `init` is a number",
            "init = \"false\"",
        ),
        (
            state("a", "init = \"false\"\nupdate = \"1\""),
            "task.state[0].update",
            "`update` is a number, `init` is a condition",
            "init = \"0\"",
        ),
        (
            state("a", "init = \"0\"\nupdate = \"{agent}\""),
            "task.state[0].name",
            "mentions {agent}",
            "state.{agent}_a",
        ),
        (
            state("a", "init = \"0\"\nupdate = \"height({foot})\""),
            "task.state[0].update",
            "`{foot}` stands for nothing here",
            "each(foot, ...)",
        ),
        (
            state("a", "init = \"0\"\nupdate = \"state\""),
            "task.state[0].update",
            "which state?",
            "there are: a",
        ),
    ] {
        let error = match build(SMALL, &task(&format!("{good}{states}"))) {
            Err(ostler_sim::env::EnvError::Config(e)) => e,
            other => panic!("{states}: {other:?}"),
        };
        assert!(error.path.starts_with(path), "{states}: {error}");
        assert!(error.message.contains(message), "{states}: {error}");
        assert!(error.help.clone().unwrap_or_default().contains(help), "{states}: {error}");
    }
}
