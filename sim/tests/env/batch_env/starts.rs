//! Pins: starts from expressions, their random numbers, and conditions of starts.

use super::point_mass::{Batch, Out, SMALL, build, task};
use ostler_sim::EpisodeStats;
use ostler_sim::env::{BatchEnv, EnvError};

/// A task that shows positions, velocities and the command.
fn text(terms: &str) -> String {
    format!(
        r#"
[params]
ahead = 0.5
[[action]]
actuators = ["push"]
[[command]]
name = "goal"
range = [[-1, 1], [-1, 1]]
unit = "m"
[[observation]]
name = "q"
expr = "qpos"
[[observation]]
name = "v"
expr = "qvel"
[[observation]]
name = "goal"
expr = "command.goal"
[[reward]]
name = "r"
expr = "1"
{terms}"#
    )
}

const Q: usize = 9;
const WIDTH: usize = 19;

fn batch(n: usize, terms: &str) -> (BatchEnv, Out) {
    let mut env = build(Batch { n, ..SMALL }, &task(&text(terms))).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    (env, out)
}

/// First observations of `n` environments.
fn starts(n: usize, terms: &str) -> Vec<Vec<f32>> {
    let (env, out) = batch(n, terms);
    let width = env.spec().obs.policy;
    out.policy.chunks(width).map(<[f32]>::to_vec).collect()
}

fn reset(target: &str, how: &str) -> String {
    format!("[[reset]]\ntarget = '{target}'\n{how}\n")
}

fn near(a: f32, b: f32) {
    assert!((a - b).abs() < 2e-6 * (1.0 + b.abs()), "{a} {b}");
}

#[test]
fn an_expression_sets_its_target_from_commands_parameters_and_the_pose_so_far() {
    let terms = [
        reset("joint_pos(slider)", "uniform = [-1, 1]"),
        // A mirror image, in rad of m.
        reset("joint_pos(turn)", "expr = \"-1 * joint_pos(slider)\""),
        reset("pos(ball)", "expr = \"[command.goal, param.ahead + joint_pos(slider)]\""),
        reset("lin_vel(ball)", "expr = \"(pos(ball) - pos(cart)) / 2.0 * 1\""),
        reset("ang_vel(ball)", "expr = \"3\""),
        reset("yaw(ball)", "expr = \"atan2(command.goal.y, command.goal.x)\""),
        reset("joint_vel(slider)", "expr = \"norm(lin_vel(ball))\""),
    ]
    .concat();
    let rows = starts(100, &terms);
    for row in &rows {
        let (q, v, goal) = (&row[..Q], &row[Q..17], &row[17..]);
        assert!(q[0] != 0.0 && (-1.0..=1.0).contains(&q[0]));
        near(q[1], -q[0]);
        assert_eq!(q[2..4], *goal);
        near(q[4], 0.5 + q[0]);
        // The cart stands where its slider is: kinematics of the pose so far.
        for (k, cart) in [q[0], 0.0, 0.0].into_iter().enumerate() {
            near(v[2 + k], (q[2 + k] - cart) / 2.0);
        }
        assert_eq!(v[5..8], [3.0; 3]);
        let yaw = 2.0 * q[8].atan2(q[5]);
        let error = yaw - goal[1].atan2(goal[0]);
        assert!(error.sin().abs() < 1e-5 && error.cos() > 0.0, "{yaw} {goal:?}");
        let speed = v[2..5].iter().map(|x| x * x).sum::<f32>().sqrt();
        near(v[0], speed);
    }
    assert!(rows[0] != rows[1]);
}

#[test]
fn later_terms_do_not_show_and_spreads_and_limits_act_on_the_value() {
    let terms = [
        reset("joint_pos(turn)", "expr = \"joint_pos(slider) * 1\"\nuniform = [1, 2]"),
        reset("joint_pos(slider)", "value = 7"),
        reset("rpy(ball)", "expr = \"[0, 0, joint_pos(slider) / 7 * 1]\"\nuniform = [[0, 0], [0, 0], [0.25, 0.25]]"),
        reset("qvel", "expr = \"1 * step_dt\""),
    ]
    .concat();
    for row in starts(50, &terms) {
        assert!((1.0..=2.0).contains(&row[1]) && row[0] == 7.0, "{row:?}");
        near(2.0 * row[8].atan2(row[5]), 1.25);
        assert!(row[Q..17].iter().all(|v| *v == 0.02), "{row:?}");
    }
    // A quaternion of any length.
    let row = &starts(1, &reset("quat(ball)", "expr = \"[3, 0, 0, 4]\""))[0];
    for (got, want) in row[5..9].iter().zip([0.6, 0.0, 0.0, 0.8]) {
        near(*got, want);
    }
}

#[test]
fn a_velocity_that_stands_or_heads_is_read_as_the_robot_will_see_it() {
    let terms = format!(
        r#"
[[command]]
name = "twist"
kind = "velocity"
frame = "ball"
lin_vel_x = [0.5, 1]
ang_vel_z = [-3, 3]
heading = {{ share = 0.5, stiffness = 0.5, range = [-3.14, 3.14] }}
standing = 0.3
world = 0.3
resample_s = 10
[[observation]]
name = "twist"
expr = "command.twist"
{}{}"#,
        reset("yaw(ball)", "uniform = [-3, 3]"),
        reset("joint_vel(*)", "expr = \"[command.twist.x, 1 * command.twist.z]\""),
    );
    let rows = starts(400, &terms);
    for row in &rows {
        near(row[9], row[19]);
        near(row[10], row[21]);
    }
    let standing = rows.iter().filter(|row| row[9] == 0.0).count();
    assert!((80..170).contains(&standing), "{standing}");
}

/// Mean and variance.
fn moments(x: &[f32]) -> (f64, f64) {
    let n = x.len() as f64;
    let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
    let square = x.iter().map(|x| (f64::from(*x) - mean).powi(2)).sum::<f64>();
    (mean, square / n)
}

fn column(rows: &[Vec<f32>], k: usize) -> Vec<f32> {
    rows.iter().map(|row| row[k]).collect()
}

#[test]
fn draws_have_their_distributions() {
    const N: usize = 8000;
    let terms = reset(
        "qvel",
        "expr = \"[uniform([-1, 2], 4), log_uniform(0.1, 10), normal(3, 0.5), bernoulli(0.3), choice(1, 5, 6), normal([0, 0], 1)]\"",
    );
    // Units of velocities are those of any number here.
    let terms = terms.replace("expr = \"[", "expr = \"1 * [");
    let rows = starts(N, &terms);
    let of = |k: usize| column(&rows, Q + k);
    let sigma = 5.0 / (N as f64).sqrt();
    for (k, mean, variance) in [
        (0, 1.5, 25.0 / 12.0),
        (1, 3.0, 4.0 / 12.0),
        (3, 3.0, 0.25),
        (4, 0.3, 0.21),
        (5, 4.0, (9.0 + 1.0 + 4.0) / 3.0),
        (6, 0.0, 1.0),
        (7, 0.0, 1.0),
    ] {
        let (m, v) = moments(&of(k));
        assert!((m - mean).abs() < sigma * f64::sqrt(variance), "{k}: mean {m}");
        assert!((v - variance).abs() < 2.0 * sigma * variance, "{k}: variance {v}");
    }
    let logs: Vec<f32> = of(2).iter().map(|x| x.log10()).collect();
    let (m, v) = moments(&logs);
    assert!(m.abs() < sigma * 0.6 && (v - 1.0 / 3.0).abs() < sigma, "{m} {v}");
    // Components are drawn by themselves.
    let both = of(6).iter().zip(of(7)).map(|(a, b)| a * b).collect::<Vec<_>>();
    assert!(moments(&both).0.abs() < sigma);
    assert!(of(5).iter().all(|x| [1.0, 5.0, 6.0].contains(x)));
    // All orientations alike: each axis of the body points everywhere.
    let turned = starts(N, &reset("quat(ball)", "expr = \"random_quat\""));
    for k in 5..9 {
        let (m, v) = moments(&column(&turned, k));
        assert!(m.abs() < sigma * 0.5 && (v - 0.25).abs() < sigma * 0.25, "{m} {v}");
    }
    let up: Vec<f32> = turned.iter().map(|q| 1.0 - 2.0 * (q[6] * q[6] + q[7] * q[7])).collect();
    let (m, v) = moments(&up);
    assert!(m.abs() < sigma * 0.6 && (v - 1.0 / 3.0).abs() < sigma, "{m} {v}");
}

#[test]
fn the_same_place_is_the_same_draw_and_a_functions_call_is_a_new_one() {
    let terms = [
        "[names]\npart = [\"cart\", \"ball\"]\n[let]\nh = \"uniform(-1, 1)\"\n\"around(x)\" = \"x + uniform(-1, 1)\"\nown = \"height({part}) * 0 / 1.0 + uniform(-1, 1)\"\ntwice = \"2 * h\"\n".to_string(),
        reset("joint_pos(*)", "expr = \"[1 * h, 1 * h]\""),
        reset("pos(ball)", "expr = \"[1 * h, 1 * twice, around(0) * 1]\""),
        reset("lin_vel(ball)", "expr = \"[around(0) * 1, each(part, own * 1)]\""),
        reset("ang_vel(ball)", "expr = \"[1 * h, each(part, h * 1)]\""),
        reset("joint_vel(*)", "expr = \"1 * each(part, uniform(-1, 1))\""),
        "[[state]]\nname = \"kept\"\ninit = \"h\"\nupdate = \"state.kept\"\n[[observation]]\nname = \"kept\"\nexpr = \"state.kept\"\n".to_string(),
    ]
    .concat();
    let (mut env, mut out) = batch(40, &terms);
    let rows =
        |out: &Out| -> Vec<Vec<f32>> { out.policy.chunks(20).map(<[f32]>::to_vec).collect() };
    let first = rows(&out);
    for row in &first {
        let h = row[0];
        assert_eq!(
            [row[1], row[2], row[3], row[14], row[15], row[16], row[19]],
            [h, h, 2.0 * h, h, h, h, h]
        );
        let others = [row[4], row[11], row[12], row[13], row[9], row[10]];
        for (i, x) in others.iter().enumerate() {
            assert!(*x != h && !others[..i].contains(x), "{others:?} {h}");
        }
    }
    // Kept while the episode lasts, drawn anew in the next one.
    for _ in 0..SMALL.steps {
        out.step(&mut env, &[0.0; 40]);
        if out.truncated[0] == 0.0 {
            assert_eq!(out.policy[19], first[0][19]);
        }
    }
    let second = rows(&out);
    assert!(second.iter().zip(&first).all(|(a, b)| a[19] != b[19]));
    assert!(first.iter().all(|row| row[19] == row[0]));
}

/// A start that keeps the ball away from the goal.
fn apart(tries: u32) -> String {
    let pos = reset("pos(ball)", "uniform = [[-1, 1], [-1, 1], [0, 0]]");
    format!("{pos}[start]\nuntil = \"norm(pos(ball).xy - command.goal) > 0.8\"\ntries = {tries}\n")
}

fn distance(row: &[f32]) -> f64 {
    let [x, y] = [row[2] - row[17], row[3] - row[18]].map(f64::from);
    x.hypot(y)
}

#[test]
fn starts_are_drawn_until_their_conditions_hold() {
    const N: usize = 6000;
    let free = starts(N, &apart(1).replace("0.8", "-1"));
    let kept: Vec<f64> = free.iter().map(|r| distance(r)).filter(|d| *d > 0.8).collect();
    let (mut env, out) = batch(N, &apart(100));
    let rows: Vec<Vec<f32>> = out.policy.chunks(WIDTH).map(<[f32]>::to_vec).collect();
    let found: Vec<f64> = rows.iter().map(|r| distance(r)).collect();
    assert!(found.iter().all(|d| *d > 0.8));
    // First draws that hold are the starts of a task without the condition.
    let same = rows.iter().zip(&free).filter(|(a, b)| a == b).count();
    assert_eq!(same, kept.len());
    // The distribution is that of draws under the condition.
    let mean = |x: &[f64]| x.iter().sum::<f64>() / x.len() as f64;
    assert!((mean(&found) - mean(&kept)).abs() < 0.03, "{} {}", mean(&found), mean(&kept));
    let mut stats = EpisodeStats::default();
    env.take_stats(&mut stats);
    assert_eq!((stats.starts, stats.starts_gave_up), (N as u64, 0));
    let (tries, share) = (stats.start_tries as f64 / N as f64, kept.len() as f64 / N as f64);
    assert!((tries - 1.0 / share).abs() < 0.06, "{tries} {share}");
}

#[test]
fn after_all_tries_the_last_draw_counts_and_is_counted() {
    const N: usize = 4000;
    let share = |tries: u32| {
        let (mut env, out) = batch(N, &apart(tries));
        let failed = out.policy.chunks(WIDTH).filter(|r| distance(r) <= 0.8).count();
        let mut stats = EpisodeStats::default();
        env.take_stats(&mut stats);
        assert_eq!(stats.starts_gave_up, failed as u64);
        assert_eq!(stats.starts, N as u64);
        failed as f64 / N as f64
    };
    let one = share(1);
    assert!((0.25..0.5).contains(&one), "{one}");
    assert!((share(2) - one * one).abs() < 0.03 && (share(3) - one.powi(3)).abs() < 0.02);
    // Draws that cannot hold end.
    let never = format!(
        "{}[start]\nuntil = [\"true\", \"pos(ball).z > 5\"]\ntries = 4\n",
        reset("pos(ball)", "normal = 0.01")
    );
    let (mut env, mut out) = batch(10, &never);
    for _ in 0..SMALL.steps {
        out.step(&mut env, &[0.0; 10]);
    }
    let mut stats = EpisodeStats::default();
    env.take_stats(&mut stats);
    assert_eq!((stats.starts, stats.start_tries, stats.starts_gave_up), (20, 80, 20));
    // Without conditions nothing is counted.
    let (mut env, _) = batch(10, "");
    env.take_stats(&mut stats);
    assert_eq!((stats.starts, stats.start_tries, stats.starts_gave_up), (0, 0, 0));
}

/// All that a start has: expressions of every kind, conditions that often fail.
const ALL: &str = r#"
[let]
side = "uniform(-1, 1)"
[[reset]]
target = "joint_pos(*)"
expr = "1 * [side, normal(0, 0.2)]"
[[reset]]
target = "pos(ball)"
expr = "pos(cart) + [1 * side, uniform(-1, 1) * [1, 1]]"
uniform = [-0.1, 0.1]
[[reset]]
target = "quat(ball)"
expr = "quat_mul(random_quat, quat_yaw(quat(ball)))"
[[start]]
"#;

fn all() -> String {
    let until = "[start]\nuntil = [\"norm(pos(ball).xy - command.goal) > 0.8\", \"upright(ball) > 0 or bernoulli(0.2)\"]\ntries = 6\n";
    ALL.replace("[[start]]\n", until)
}

/// Rows of some steps, as bits, by environment.
fn play(env: &mut BatchEnv, out: &mut Out, n: usize, steps: usize) -> Vec<Vec<u32>> {
    let mut seen = vec![Vec::new(); n];
    for _ in 0..steps {
        out.step(env, &vec![0.1; n]);
        for (seen, row) in seen.iter_mut().zip(out.policy.chunks(WIDTH)) {
            seen.extend(row.iter().map(|x| x.to_bits()));
        }
    }
    seen
}

fn fresh(b: Batch) -> (BatchEnv, Out) {
    let mut env = build(b, &task(&text(&all()))).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, true);
    (env, out)
}

#[test]
fn starts_are_the_same_bits_for_any_threads_shard_and_after_a_snapshot() {
    let b = Batch { n: 150, steps: 9, ..SMALL };
    let (mut env, mut out) = fresh(b);
    let one = play(&mut env, &mut out, b.n, 40);
    for threads in [2, 5] {
        let (mut env, mut out) = fresh(Batch { threads, ..b });
        assert!(play(&mut env, &mut out, b.n, 40) == one, "{threads} threads");
    }
    let (mut env, mut out) = fresh(Batch { n: 50, first: 70, ..b });
    assert!(play(&mut env, &mut out, 50, 40) == one[70..120]);

    let (mut env, mut out) = fresh(b);
    play(&mut env, &mut out, b.n, 13);
    let mut blob = Vec::new();
    env.capture(&mut blob).unwrap();
    let straight = play(&mut env, &mut out, b.n, 20);
    let (mut stats, mut again) = (EpisodeStats::default(), EpisodeStats::default());
    env.take_stats(&mut stats);
    let (mut other, mut other_out) = fresh(Batch { threads: 3, ..b });
    other.restore(&blob).unwrap();
    assert!(play(&mut other, &mut other_out, b.n, 20) == straight);
    other.take_stats(&mut again);
    assert_eq!(stats, again);
    assert!(2 * stats.start_tries > 3 * stats.starts && stats.starts_gave_up > 0);
}

#[test]
fn the_default_pose_has_expressions_in_the_middle_of_their_draws() {
    for (expr, want) in [
        ("0.7", 0.7),
        ("uniform(0.5, 1.5)", 1.0),
        ("normal(0.25, 3)", 0.25),
        ("param.ahead + 1 * command.goal.x", 0.5),
        ("1 * pos(ball).z", 1.0),
    ] {
        let env = build(
            Batch { n: 1, ..SMALL },
            &task(&text(&reset(
                "joint_pos(turn)",
                &format!("expr = \"{expr}\"\nuniform = [-0.1, 0.2]"),
            ))),
        );
        let pose = env.unwrap().pose().qpos[1];
        assert!((pose - want).abs() < 1e-6, "{expr}: {pose}");
    }
}

#[test]
fn mistakes_in_starts_name_their_place_and_a_remedy() {
    let term = |target: &str, expr: &str| reset(target, &format!("expr = '{expr}'"));
    let until = |what: &str| format!("[start]\nuntil = {what}\n");
    for (terms, path, message, help) in [
        (
            term("pos(ball)", "[1, 2]"),
            "task.reset[0].expr",
            "2 numbers for 3",
            "one number for all",
        ),
        (
            term("pos(ball)", "[1, qvel[0], 2]"),
            "task.reset[0].expr",
            "[m/s]",
            "multiply by a constant",
        ),
        (term("yaw(ball)", "pos(ball).x"), "task.reset[0].expr", "[m]", "multiply"),
        (term("pos(ball)", "height(bal)"), "task.reset[0].expr", "bal", "ball"),
        (term("pos(ball)", "pos(ball).z > 1"), "task.reset[0].expr", "a condition", "if("),
        (term("pos(ball)", "action[0]"), "task.reset[0].expr", "no action", "command"),
        (
            term("pos(ball)", "contact_force(ball)"),
            "task.reset[0].expr",
            "contacts",
            "uniform(lo, hi)",
        ),
        (
            term("pos(ball)", "previous(pos(ball))"),
            "task.reset[0].expr",
            "earlier steps",
            "parameters",
        ),
        (
            term("joint_pos(turn)", "joint_pos_rel(turn)"),
            "task.reset[0].expr",
            "follows from this",
            "default_pose",
        ),
        (term("pos(ball)", "1 * time"), "task.reset[0].expr", "no time", "drawn so far"),
        (term("roll(ball)", "1"), "task.reset[0].expr", "adds", "rpy(BODY)"),
        (term("keyframe(high)", "1"), "task.reset[0]", "no expression", "another reset"),
        (reset("qpos", "expr = \"1\"\nvalue = 1"), "task.reset[0]", "another key", "two terms"),
        (
            reset("qpos", "expr = \"1\"\nscale = [1, 2]"),
            "task.reset[0]",
            "another key",
            "two terms",
        ),
        (reset("yaw(ball)", "expr = \"1\"\nuniform = [1, 2]"), "task.reset[0]", "not both", ""),
        (until("\"pos(ball).z\""), "task.start.until", "a number", "compare"),
        (until("[]"), "task.start.until", "no condition", "for example"),
        (until("[\"true\", \"height(bal) > 0\"]"), "task.start.until[1]", "bal", "ball"),
        (until("\"contact(ball)\""), "task.start.until", "contacts", ""),
        (until("\"qpos > 0\""), "task.start.until", "9 conditions", "all("),
        (until("\"true\"\ntries = 0"), "task.start.tries", "0 is not", "last draw"),
        (until("\"true\"\ntries = 4000"), "task.start.tries", "4000", "last draw"),
        (
            "[[reward]]\nname = \"x\"\nexpr = \"uniform(0, 1)\"".to_string(),
            "task.reward[1].expr",
            "where an episode begins",
            "[[task.state]]",
        ),
        (
            "[[state]]\nname = \"x\"\ninit = \"0\"\nupdate = \"normal(0, 1)\"".to_string(),
            "task.state[0].update",
            "where an episode begins",
            "init",
        ),
        (term("pos(ball)", "uniform(0, qvel[0])"), "task.reset[0].expr", "[m/s]", ""),
    ] {
        let e = match build(SMALL, &task(&text(&terms))) {
            Err(EnvError::Config(e)) => e,
            other => panic!("{terms}: {other:?}"),
        };
        assert!(e.path == path && e.message.contains(message), "{terms}: {e:?}");
        let found = e.help.clone().unwrap_or_default();
        assert!(found.contains(help), "{terms}: {e:?}");
    }
}
