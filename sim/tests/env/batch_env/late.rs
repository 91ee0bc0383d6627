//! Pins: what a policy sees late, of earlier steps, and with errors that stay.

use super::point_mass::{Batch, Out, SMALL, build, task};
use ostler_sim::env::{BatchEnv, EnvError};

/// A task with these observations.
fn seeing(observations: &str) -> String {
    format!(
        "[[action]]\nactuators = [\"push\"]\n[[reward]]\nname = \"one\"\nexpr = \"1\"\n{observations}"
    )
}

fn seen(name: &str, expr: &str, keys: &str) -> String {
    format!("[[observation]]\nname = \"{name}\"\nexpr = \"{expr}\"\n{keys}\n")
}

fn start(b: Batch, text: &str) -> (BatchEnv, Out) {
    let mut env = build(b, &task(&seeing(text))).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    (env, out)
}

/// Rows of environment 0, from the first of an episode on.
fn rows(text: &str, steps: usize) -> Vec<Vec<f32>> {
    let b = Batch { n: 1, steps: 1000, ..SMALL };
    let (mut env, mut out) = start(b, text);
    let mut all = vec![out.policy.clone()];
    for _ in 1..steps {
        out.step(&mut env, &[0.0]);
        all.push(out.policy.clone());
    }
    all
}

const LONG: Batch = Batch { n: 300, steps: 50, ..SMALL };

/// The example of mjlab's `DelayBuffer`: a lag of 2 shows 0, 0, 0, 1.
#[test]
fn a_delay_shows_the_value_of_so_many_steps_ago_and_before_that_the_first() {
    let text = seen("t", "[step_count, 10 * step_count]", "delay = 2");
    let found = rows(&text, 5);
    let firsts: Vec<f32> = found.iter().map(|row| row[0]).collect();
    assert_eq!(firsts, [0.0, 0.0, 0.0, 1.0, 2.0]);
    assert!(found.iter().all(|row| row[1] == 10.0 * row[0]));
}

/// As mjlab's `CircularBuffer`: the first value fills it, and the oldest comes first.
#[test]
fn a_history_is_filled_with_the_first_value_and_has_the_oldest_first() {
    let text = seen("t", "[step_count, 10 * step_count]", "history = 3");
    let expected: [[f32; 6]; 4] = [
        [0.0, 0.0, 0.0, 0.0, 0.0, 0.0],
        [0.0, 0.0, 0.0, 0.0, 1.0, 10.0],
        [0.0, 0.0, 1.0, 10.0, 2.0, 20.0],
        [1.0, 10.0, 2.0, 20.0, 3.0, 30.0],
    ];
    assert_eq!(rows(&text, 4), expected);
    // What is seen late is seen late in every step of the history.
    let late = rows(&seen("t", "step_count", "history = 3\ndelay = 2"), 6);
    assert_eq!(late[4], [0.0, 1.0, 2.0]);
    assert_eq!(late[5], [1.0, 2.0, 3.0]);
    for one in ["history = 0", "history = 1"] {
        assert_eq!(rows(&seen("t", "step_count", one), 3)[2], [2.0]);
    }
}

#[test]
fn terms_are_stacked_one_by_one_or_step_by_step() {
    let terms = [seen("a", "step_count", ""), seen("b", "[10 * step_count, 100 * step_count]", "")]
        .concat();
    let by = |stack: &str| format!("{terms}[observations.policy]\nhistory = 2\n{stack}\n");
    let term = rows(&by(""), 3);
    assert_eq!(term[2], [1.0, 2.0, 10.0, 100.0, 20.0, 200.0]);
    assert_eq!(rows(&by("stack = \"term\""), 3), term);
    let time = rows(&by("stack = \"time\""), 3);
    assert_eq!(time[1], [0.0, 0.0, 0.0, 1.0, 10.0, 100.0]);
    assert_eq!(time[2], [1.0, 10.0, 100.0, 2.0, 20.0, 200.0]);
    let env = build(SMALL, &task(&seeing(&by("stack = \"time\"")))).unwrap();
    let table = &env.spec().obs_table.policy;
    let b = &table[1];
    assert_eq!((b.index, b.len, b.frames, b.stride), (1, 2, 2, 3));
    assert_eq!(b.seen, "history 2");
}

#[test]
fn a_history_has_the_noise_of_its_steps() {
    let text = [
        seen("x", "[pos(ball).z, pos(ball).z]", "noise = 0.5\nhistory = 4"),
        seen("y", "pos(ball).z", "noise = { normal = 0.1 }\nhistory = 2\ndelay = 1"),
    ]
    .concat();
    let (mut env, mut out) = start(LONG, &text);
    let width = 10;
    let mut before = out.policy.clone();
    // The first row has one value, as often as there is room.
    for row in before.chunks(width) {
        assert!(row[..8].chunks(2).all(|frame| frame == &row[6..8]) && row[8] == row[9]);
    }
    for _ in 0..6 {
        out.step(&mut env, &[0.0; 300]);
        for (now, was) in out.policy.chunks(width).zip(before.chunks(width)) {
            assert_eq!(now[..6], was[2..8]);
            assert_ne!(now[6..8], was[6..8]);
            assert_eq!(now[8], was[9]);
        }
        before.clone_from(&out.policy);
    }
    // Without noise the history remains, and what it had from before.
    env.set_noise(false);
    out.step(&mut env, &[0.0; 300]);
    for (now, was) in out.policy.chunks(width).zip(before.chunks(width)) {
        assert_eq!(now[..6], was[2..8]);
        assert_eq!(now[6..8], [1.0, 1.0]);
    }
}

#[test]
fn a_bias_stays_for_the_episode_and_is_not_the_critics() {
    let text = [
        seen("x", "[pos(ball).z, pos(ball).z]", "bias = [-0.2, 0.6]\nscale = 2"),
        seen("y", "pos(ball).z", "bias = { normal = 0.1 }\nnoise = 0.01"),
        seen("age", "step_count", "group = \"critic\""),
    ]
    .concat();
    let (mut env, mut out) = start(LONG, &text);
    let first = out.policy.clone();
    let mut sums = [0.0; 4];
    for row in first.chunks(3) {
        assert_ne!(row[0], row[1]);
        for x in &row[..2] {
            assert!((1.6..=3.2).contains(x), "{x}");
            sums[0] += f64::from(x / 2.0 - 1.0);
        }
        sums[1] += f64::from(row[2] - 1.0);
        sums[2] += f64::from(row[2] - 1.0).powi(2);
    }
    let n = 300.0;
    // Means of 600 and 300 draws; the variance of the latter.
    assert!((sums[0] / (2.0 * n) - 0.2).abs() < 0.05, "{sums:?}");
    assert!((sums[1] / n).abs() < 0.03, "{sums:?}");
    assert!((sums[2] / n / 0.01 - 1.0).abs() < 0.3, "{sums:?}");
    for _ in 0..49 {
        out.step(&mut env, &[0.0; 300]);
        for (now, was) in out.policy.chunks(3).zip(first.chunks(3)) {
            assert_eq!(now[..2], was[..2]);
            assert!((now[2] - was[2]).abs() <= 0.0201);
        }
        for row in out.critic.as_ref().unwrap().chunks(4) {
            assert_eq!(row[..3], [2.0, 2.0, 1.0]);
        }
    }
    // The next episodes have others.
    out.step(&mut env, &[0.0; 300]);
    assert!(out.truncated.iter().all(|x| *x == 1.0));
    for (now, was) in out.policy.chunks(3).zip(first.chunks(3)) {
        assert!(now[0] != was[0] && now[1] != was[1]);
    }
    // Without noise there is none.
    env.set_noise(false);
    out.step(&mut env, &[0.0; 300]);
    for row in out.policy.chunks(3) {
        assert_eq!(row, [2.0, 2.0, 1.0]);
    }
}

/// The delays that environments have in a step, from a clock that is seen late.
fn delays(out: &Out, now: f32) -> Vec<u32> {
    out.policy.iter().map(|seen| (now - seen) as u32).collect()
}

#[test]
fn a_range_of_delays_is_drawn_for_the_episode_also_without_noise() {
    let text = seen("t", "step_count", "delay = [1, 3]");
    let (mut env, mut out) = start(LONG, &text);
    env.set_noise(false);
    let mut first = Vec::new();
    for step in 1..50 {
        out.step(&mut env, &[0.0; 300]);
        let now = delays(&out, step as f32);
        if step == 3 {
            first.clone_from(&now);
        }
        assert!(step < 3 || now == first);
    }
    for delay in 1..=3 {
        let count = first.iter().filter(|d| **d == delay).count();
        assert!((60..140).contains(&count), "{delay}: {count}");
    }
    assert_eq!(first.iter().filter(|d| !(1..=3).contains(*d)).count(), 0);
    for step in 1..5 {
        out.step(&mut env, &[0.0; 300]);
        let next = delays(&out, (step - 1) as f32);
        assert!(step < 4 || next != first);
    }
}

/// As mjlab's `update_period`, `per_env_phase` and `hold_prob`.
#[test]
fn a_delay_may_be_drawn_anew_every_so_many_steps() {
    let changes = |how: &str| -> Vec<Vec<u32>> {
        let text = seen("t", "step_count", &format!("delay = {{ steps = [0, 4], {how} }}"));
        let (mut env, mut out) = start(LONG, &text);
        let all = (1..50).map(|step| {
            out.step(&mut env, &[0.0; 300]);
            delays(&out, step as f32)
        });
        let all: Vec<Vec<u32>> = all.collect();
        assert!(all[4..].iter().flatten().all(|d| *d <= 4));
        all
    };
    // Changes of a uniform draw from five: four in five.
    let share = |all: &[Vec<u32>]| {
        let pairs = all[10..].windows(2);
        let changed = pairs.flat_map(|p| p[0].iter().zip(&p[1]).map(|(a, b)| u32::from(a != b)));
        let changed: Vec<u32> = changed.collect();
        f64::from(changed.iter().sum::<u32>()) / changed.len() as f64
    };
    let every = changes("redraw = 1");
    assert!((share(&every) - 0.8).abs() < 0.02, "{}", share(&every));
    let held = changes("redraw = 1, hold = 0.5");
    assert!((share(&held) - 0.4).abs() < 0.02, "{}", share(&held));
    let fifth = changes("redraw = 5");
    assert!((share(&fifth) - 0.16).abs() < 0.02, "{}", share(&fifth));
    // Each environment's are five steps apart, and not all at the same time.
    let mut phases = [0; 5];
    for e in 0..300 {
        let at = |t: usize| fifth.get(t).map(|row| row[e]);
        let times: Vec<usize> = (11..49).filter(|&t| at(t) != at(t - 1)).collect();
        assert!(times.iter().all(|t| t % 5 == times[0] % 5), "{times:?}");
        phases[times[0] % 5] += 1;
    }
    assert!(phases.iter().all(|n| *n > 30), "{phases:?}");
    assert!(share(&changes("redraw = 0")) == 0.0);
    assert!(share(&changes("redraw = 1, hold = 1.0")) == 0.0);
}

#[test]
fn the_critics_copy_has_what_is_said_for_it() {
    let text = [
        seen("t", "step_count", "delay = 1\ncritic = { history = 2, delay = 2 }"),
        seen("z", "pos(ball).z", "critic = { noise = { uniform = [0.1, 0.2] } }"),
        seen("own", "step_count", "critic = { seen = false }"),
        seen("secret", "step_count", "group = \"critic\"\nhistory = 3"),
        seen("bias", "0 * step_count", "group = \"critic\"\nbias = [1, 2]"),
    ]
    .concat();
    let (mut env, mut out) = start(LONG, &text);
    for _ in 0..5 {
        out.step(&mut env, &[0.0; 300]);
    }
    let critic = out.critic.as_ref().unwrap();
    for (row, policy) in critic.chunks(7).zip(out.policy.chunks(3)) {
        assert_eq!(policy, [4.0, 1.0, 5.0]);
        assert_eq!(row[..2], [2.0, 3.0]);
        assert!((1.1..=1.2).contains(&row[2]));
        assert_eq!(row[3..6], [3.0, 4.0, 5.0]);
        assert!((1.0..=2.0).contains(&row[6]));
    }
    // Critics that see nothing else have rows of their own for that.
    let alone = seen("t", "step_count", "history = 3\ncritic = { history = 1 }");
    let (env, _) = start(SMALL, &alone);
    assert_eq!((env.spec().obs.policy, env.spec().obs.critic), (3, Some(1)));
    let group = format!(
        "{}[observations.critic]\nhistory = 2\nstack = \"time\"\n",
        [seen("t", "step_count", ""), seen("u", "-step_count", "")].concat()
    );
    let (mut env, mut out) = start(SMALL, &group);
    out.step(&mut env, &[0.0; 3]);
    out.step(&mut env, &[0.0; 3]);
    assert_eq!(out.critic.as_ref().unwrap()[..4], [1.0, -1.0, 2.0, -2.0]);
}

/// What is no number breaks its environment in the step in which it comes, late or not.
#[test]
fn a_delay_does_not_hide_what_is_no_number() {
    let text = seen("x", "step_count < 2.5 ? step_count : sqrt(-1)", "delay = 2\nhistory = 2");
    let (mut env, mut out) = start(SMALL, &text);
    for step in 1..=3 {
        out.step(&mut env, &[0.0; 3]);
        let valid = if step < 3 { 1.0 } else { 0.0 };
        assert!(out.valid.iter().all(|v| *v == valid), "{step}");
        assert!(out.policy.iter().all(|x| x.is_finite()));
    }
    // New episodes have forgotten it.
    assert_eq!(out.policy, [0.0; 6]);
    let mut stats = ostler_sim::EpisodeStats::default();
    env.take_stats(&mut stats);
    let at = stats.causes.iter().position(|n| *n == 3).unwrap();
    assert_eq!(env.spec().cause_names[at], "nan/observation/x");
}

/// mjlab's `encoder_bias`: what is seen and what is asked for are off alike, for good.
#[test]
fn a_bias_of_startup_is_the_environments_and_its_encoders_have_it() {
    let task_of = |when: &str| {
        task(&format!(
            "[[action]]\nactuators = [\"servo\"]\nkind = \"position\"\nscale = 0.5\nencoders = \"angles\"\n\
             [[reward]]\nname = \"one\"\nexpr = \"1\"\n{}{}{}",
            seen("ctrl", "ctrl[1]", ""),
            seen("true", "joint_pos(turn)", ""),
            seen(
                "angles",
                "joint_pos_rel()",
                &format!(
                    "bias = {{ uniform = 0.25, when = \"{when}\" }}\ncritic = {{ bias = 0.0 }}"
                )
            ),
        ))
    };
    let biases = |row: &[f32]| row[3] - row[1];
    for (when, stays) in [("startup", true), ("reset", false)] {
        let mut env = build(LONG, &task_of(when)).unwrap();
        let mut out = Out::new(env.spec(), 1);
        out.reset(&mut env, false);
        let first: Vec<f32> = out.policy.chunks(4).map(biases).collect();
        assert!(first.iter().any(|b| *b > 0.1) && first.iter().any(|b| *b < -0.1));
        for step in 0..120 {
            let own: Vec<f32> = out.policy.chunks(4).map(biases).collect();
            out.step(&mut env, &[1.0; 300]);
            if step % 50 == 49 {
                continue;
            }
            for (row, bias) in out.policy.chunks(4).zip(own) {
                // The target 0.5 in what the encoder says.
                assert!((row[0] - (0.5 - bias)).abs() < 1e-6, "{row:?}");
            }
        }
        let now: Vec<f32> = out.policy.chunks(4).map(biases).collect();
        let same = now.iter().zip(&first).filter(|(a, b)| (*a - *b).abs() < 1e-6);
        assert_eq!(same.count() == 300, stays, "{when}");
        // As if they were right.
        env.set_noise(false);
        out.step(&mut env, &[1.0; 300]);
        assert!(out.policy.chunks(4).all(|row| row[0] == 0.5));
    }
}

#[test]
fn encoders_are_those_of_positions_that_are_off() {
    let with = |kind: &str, encoders: &str, observation: &str| {
        let text = format!(
            "[[action]]\nactuators = [\"servo\"]\nkind = \"{kind}\"\nencoders = \"{encoders}\"\n\
             [[reward]]\nname = \"one\"\nexpr = \"1\"\n{observation}"
        );
        build(SMALL, &task(&text)).unwrap_err().to_string()
    };
    let angles = seen("angles", "joint_pos_rel()", "bias = 0.1");
    for (kind, name, observation, part) in [
        ("control", "angles", angles.clone(), "is for kind = \"position\""),
        ("position", "angels", angles.clone(), "positions of joints are: angles"),
        ("position", "angles", seen("angles", "joint_pos_rel()", ""), "has no bias"),
        (
            "position",
            "angles",
            seen("angles", "joint_pos(slider)", "bias = 0.1"),
            "does not have joint \"turn\"",
        ),
        (
            "position",
            "angles",
            seen("angles", "2 * joint_pos()", "bias = 0.1"),
            "not one number of each",
        ),
    ] {
        let said = with(kind, name, &observation);
        assert!(said.contains(part) && said.contains("task.action[0].encoders"), "{said}");
    }
}

#[test]
fn mistakes_say_what_would_be_right() {
    let long = "[joint_pos(), qpos, qvel]";
    for (keys, path, part) in [
        ("noise = { }", "noise", "takes one distribution"),
        ("noise = { uniform = 1, normal = 1 }", "noise", "takes one"),
        ("noise = { uniform = [1, 0] }", "noise.uniform", "upside down"),
        ("noise = { normal = -1 }", "noise.normal", "negative"),
        ("noise = { normal = 1 }\nnoise_kind = \"normal\"", "noise_kind", "says so itself"),
        ("noise = { uniform = 1, when = \"startup\" }", "noise.when", "drawn in every step"),
        ("noise = [1, 1, 1]", "noise", "3 numbers for 9 components"),
        ("noise = { each = [1, 1] }", "noise.each", "2 numbers for 9 components"),
        ("noise = [1, 1, 1, 1, 1, 1, 1, 1, -1]", "noise[8]", "negative"),
        ("noise = { each = [1], normal = 1 }", "noise", "stands alone"),
        ("critic = { noise = [1, 1, 1] }", "critic.noise", "9 components"),
        ("bias = [1, 1, 1]", "bias", "for `noise` alone"),
        ("bias = -1", "bias", "negative"),
        ("bias = [2, 1]", "bias", "upside down"),
        ("delay = [2, 1]", "delay", "write [1, 2]"),
        ("delay = 256", "delay", "more than 255"),
        ("delay = { steps = 256 }", "delay.steps", "more than 255"),
        ("delay = { steps = 2, hold = 0.5 }", "delay.hold", "redraw = 1"),
        ("delay = { steps = 2, redraw = 1, hold = 1.5 }", "delay.hold", "0 to 1"),
        ("history = 1000", "history", "more than 256"),
        ("critic = { noise = -1 }", "critic.noise", "negative"),
        ("critic = { seen = false, history = 2 }", "critic", "seen = false"),
        ("group = \"critic\"\ncritic = { history = 2 }", "critic", "beside `expr`"),
    ] {
        let text = [seen("s", long, ""), seen("q", "qpos", keys)].concat();
        let Err(EnvError::Config(e)) = build(SMALL, &task(&seeing(&text))) else {
            panic!("{keys} is fine");
        };
        assert_eq!(e.path, format!("task.observation[1].{path}"), "{e}");
        assert!(e.to_string().contains(part), "{keys}: {e}");
    }
    for (options, path, part) in [
        ("[observations.polcy]\nhistory = 2", "observations.polcy", "\"policy\""),
        ("[observations.policy]\nstack = \"time\"", "observation[0].history", "give it once"),
    ] {
        let text = format!("{}{options}", seen("q", "qpos", "history = 3"));
        let Err(EnvError::Config(e)) = build(SMALL, &task(&seeing(&text))) else {
            panic!("{options} is fine");
        };
        assert_eq!(e.path, format!("task.{path}"), "{e}");
        assert!(e.to_string().contains(part), "{options}: {e}");
    }
    // Many terms that ask for much.
    let many: String =
        (0..200).map(|i| seen(&format!("q{i}"), long, "delay = 255\nhistory = 256")).collect();
    let Err(EnvError::Config(e)) = build(SMALL, &task(&seeing(&many))) else {
        panic!("too much is fine");
    };
    assert!(e.message.contains("more than 1048576"), "{e}");
}
