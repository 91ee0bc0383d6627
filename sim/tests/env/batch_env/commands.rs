//! Pins: how commands are drawn, how long they hold, and how velocities follow the robot.

use super::point_mass::{Batch, Out, SMALL, build, task};
use ostler_sim::Model;
use ostler_sim::config::{EnvConfig, SimConfig, Specialize};
use ostler_sim::env::{BatchEnv, EnvError};
use ostler_sim::model::mjcf;
use std::path::Path;
use std::sync::Arc;

const N: usize = 4000;

fn seeing(command: &str, expr: &str) -> String {
    format!(
        "[[action]]\nactuators = [\"push\"]\n[[reward]]\nname = \"one\"\nexpr = \"1\"\n[[observation]]\nname = \"c\"\nexpr = \"{expr}\"\n[[command]]\nname = \"c\"\n{command}\n"
    )
}

/// First commands of many environments, one row each.
fn drawn(command: &str) -> Vec<Vec<f64>> {
    let b = Batch { n: N, ..SMALL };
    let mut env = build(b, &task(&seeing(command, "command.c"))).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    let width = env.spec().obs.policy;
    let rows = out.policy.chunks(width);
    rows.map(|row| row.iter().map(|x| f64::from(*x)).collect()).collect()
}

fn mean(rows: &[Vec<f64>], f: impl Fn(&[f64]) -> f64) -> f64 {
    rows.iter().map(|row| f(row)).sum::<f64>() / rows.len() as f64
}

#[test]
fn components_are_distributed_as_they_say() {
    let log = drawn("distribution = \"log_uniform\"\nrange = [[0.1, 10], [2, 3]]");
    assert!(log.iter().all(|r| (0.0999..10.001).contains(&r[0]) && (1.999..3.001).contains(&r[1])));
    assert!(mean(&log, |r| r[0].ln()).abs() < 0.1);
    assert!((mean(&log, |r| f64::from(r[0] < 1.0)) - 0.5).abs() < 0.04);

    let normal = drawn("distribution = \"normal\"\nmean = [1, 0]\nstd = [0.5, 2]");
    assert!((mean(&normal, |r| r[0]) - 1.0).abs() < 0.05);
    assert!((mean(&normal, |r| (r[0] - 1.0).powi(2)) / 0.25 - 1.0).abs() < 0.1);
    assert!((mean(&normal, |r| r[1].powi(4)) / 48.0 - 1.0).abs() < 0.3);
    assert!(mean(&normal, |r| (r[0] - 1.0) * r[1]).abs() < 0.1);
    let cut = drawn("distribution = \"normal\"\nstd = [1]\nrange = [[-0.5, 0.25]]");
    assert!(cut.iter().all(|r| (-0.5..=0.25).contains(&r[0])));

    let late = drawn("distribution = \"exponential\"\nmean = [2]");
    assert!((mean(&late, |r| r[0]) - 2.0).abs() < 0.15);
    assert!((mean(&late, |r| f64::from(r[0] > 2.0)) - (-1.0_f64).exp()).abs() < 0.03);

    let flag = drawn("distribution = \"bernoulli\"\nprobability = [0.25, 1]");
    assert!(flag.iter().all(|r| (r[0] == 0.0 || r[0] == 1.0) && r[1] == 1.0));
    assert!((mean(&flag, |r| r[0]) - 0.25).abs() < 0.03);

    let rows = drawn(
        "distribution = \"choice\"\nchoices = [[1, 10], [2, 20], [3, 30]]\nweights = [1, 0, 3]",
    );
    assert!(rows.iter().all(|r| r[1] == 10.0 * r[0] && r[0] != 2.0));
    assert!((mean(&rows, |r| f64::from(r[0] == 3.0)) - 0.75).abs() < 0.03);
}

/// As mjlab's `resampling_time_range`.
#[test]
fn times_between_draws_are_drawn_anew() {
    let b = Batch { n: 200, steps: 400, ..SMALL };
    // Control steps of 0.02 s: 5 to 10.
    let text = seeing("range = [[0, 1]]\nresample_s = [0.1, 0.2]", "command.c");
    let mut env = build(b, &task(&text)).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    let mut last = out.policy.clone();
    let (mut since, mut lengths) = (vec![0; 200], [0; 12]);
    for _ in 0..300 {
        out.step(&mut env, &[0.0; 200]);
        for e in 0..200 {
            since[e] += 1;
            if out.policy[e] != last[e] {
                lengths[since[e]] += 1;
                since[e] = 0;
            }
        }
        last.clone_from(&out.policy);
    }
    assert_eq!(lengths[..5].iter().sum::<i32>() + lengths[11], 0, "{lengths:?}");
    // Rounded up: 5 has only the draws of exactly 0.1 s.
    assert!(lengths[6..=10].iter().all(|n| *n > 1000), "{lengths:?}");
}

/// As mjlab's and Isaac Lab's `update_goal_on_success`: a goal that is reached makes place for the
/// next one, whose time begins then.
#[test]
fn a_condition_draws_a_command_anew() {
    // The first command of one environment in each of so many control steps of 0.02 s.
    let seen = |command: &str, steps: usize| -> Vec<f32> {
        let b = Batch { n: 1, steps: 400, ..SMALL };
        let mut env = build(b, &task(&seeing(command, "command.c"))).unwrap();
        let mut out = Out::new(env.spec(), 1);
        out.reset(&mut env, false);
        let mut all = vec![out.policy[0]];
        for _ in 0..steps {
            out.step(&mut env, &[0.0]);
            all.push(out.policy[0]);
        }
        all
    };
    let changes =
        |all: &[f32]| -> Vec<usize> { (1..all.len()).filter(|&i| all[i] != all[i - 1]).collect() };
    let at_three = "range = [[0, 1]]\nresample_when = \"step_count == 3\"\n";
    assert_eq!(changes(&seen(at_three, 200)), [3]);
    let timed = format!("{at_three}resample_s = 0.2\n");
    assert_eq!(changes(&seen(&timed, 40)), [3, 13, 23, 33]);
    let between = format!("{at_three}resample_s = [0.1, 0.2]\n");
    let drawn = changes(&seen(&between, 100));
    assert_eq!(drawn[0], 3);
    assert!(drawn.windows(2).all(|w| (5..=10).contains(&(w[1] - w[0]))), "{drawn:?}");
    // It reads the command as it was, and holds until it is small.
    let small = seen("range = [[0, 1]]\nresample_when = \"command.c > 0.2\"", 60);
    let first = small.iter().position(|x| *x <= 0.2).unwrap();
    assert_eq!(changes(&small), (1..=first).collect::<Vec<_>>());
    // Of velocities, all of it.
    let fast = "kind = \"velocity\"\nframe = \"trunk\"\nlin_vel_x = [0, 1]\nlin_vel_y = [0, 1]\n\
                resample_when = \"command.c.x > 0.2\"";
    let mut env = free(&seeing(fast, "command.c"), 64);
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    for _ in 0..40 {
        let before = out.policy.clone();
        out.step(&mut env, &[0.0; 64]);
        for (a, b) in before.chunks(3).zip(out.policy.chunks(3)) {
            assert_eq!(a[0] > 0.2, a[0] != b[0], "{a:?} {b:?}");
            assert_eq!(a[0] > 0.2, a[1] != b[1], "{a:?} {b:?}");
        }
    }
}

/// A free body in space.
fn free(task_text: &str, n: usize) -> BatchEnv {
    let xml = r#"<mujoco><option timestep="0.01" gravity="0 0 0"/><worldbody>
        <body name="trunk"><freejoint name="root"/><geom name="box" type="box" size="0.2 0.1 0.1" mass="1"/>
          <body name="tail"><joint name="wag" axis="0 1 0"/><geom size="0.05" mass="0.1" pos="0.3 0 0"/></body></body>
      </worldbody><actuator><motor name="push" joint="wag"/></actuator></mujoco>"#;
    let model: Model = mjcf::parse(Path::new("free.xml"), xml.to_string()).unwrap();
    let sim = SimConfig { specialize: Specialize::Off, ..SimConfig::default() };
    let env = EnvConfig { num_envs: n, decimation: 2, episode_length_s: 20.0 };
    BatchEnv::new(Arc::new(model), &sim, &env, &task(task_text), 1).unwrap()
}

const SPIN: &str = "[[reset]]\ntarget = \"ang_vel(trunk)\"\nvalue = [0, 0, 2]\n[[reset]]\ntarget = \"yaw(trunk)\"\nuniform = [-3, 3]\n";

/// The heading controller, the world's directions and who stands: mjlab's
/// `UniformVelocityCommand`.
#[test]
fn velocities_turn_to_a_heading_keep_a_direction_and_stand() {
    let command = "kind = \"velocity\"\nlin_vel_x = [-1, 1]\nlin_vel_y = [0.1, 0.5]\nang_vel_z = [-0.4, 0.4]\n";
    let text = |more: &str| {
        format!("{}{SPIN}", seeing(&format!("{command}{more}"), "[command.c, yaw(trunk)]"))
    };
    let rows = |more: &str, steps: usize| {
        let mut env = free(&text(more), 500);
        let mut out = Out::new(env.spec(), 1);
        out.reset(&mut env, false);
        let mut all = vec![out.policy.clone()];
        for _ in 0..steps {
            out.step(&mut env, &[0.0; 500]);
            all.push(out.policy.clone());
        }
        all
    };
    let near = |a: f32, b: f32| (a - b).abs() < 1e-4;
    let wrap = |x: f32| {
        x - std::f32::consts::TAU * ((x + std::f32::consts::PI) / std::f32::consts::TAU).floor()
    };

    // Without more the velocity stays as it was drawn.
    let plain = rows("", 3);
    assert!(plain[0].chunks(4).zip(plain[3].chunks(4)).all(|(a, b)| a[..3] == b[..3]));
    assert!(plain[0].chunks(4).all(|r| r[2].abs() <= 0.4 && (0.1..=0.5).contains(&r[1])));

    let turning = rows("heading = { share = 1.0, stiffness = 0.2, range = [0.5, 0.5] }", 20);
    for row in turning.iter().flat_map(|all| all.chunks(4)) {
        let wanted = (0.2 * wrap(0.5 - row[3])).clamp(-0.4, 0.4);
        assert!(near(row[2], wanted), "{row:?} {wanted}");
    }
    assert!(turning[20].chunks(4).any(|r| r[2].abs() == 0.4));
    assert!(turning[20].chunks(4).any(|r| r[2].abs() < 0.39));

    let world = rows("world = 1.0", 20);
    let to_world = |r: &[f32]| {
        let (s, c) = r[3].sin_cos();
        [c * r[0] - s * r[1], s * r[0] + c * r[1]]
    };
    let mut changed = 0;
    for (a, b) in world[0].chunks(4).zip(world[20].chunks(4)) {
        let (p, q) = (to_world(a), to_world(b));
        assert!(near(p[0], q[0]) && near(p[1], q[1]), "{p:?} {q:?}");
        changed += usize::from((a[0] - b[0]).abs() > 0.01);
        assert!((0.0999..=0.5001).contains(&p[1]));
    }
    assert!(changed > 450, "{changed}");

    let share =
        |all: &[f32], f: fn(&[f32]) -> bool| all.chunks(4).filter(|r| f(r)).count() as f64 / 500.0;
    let stands = |r: &[f32]| r[..3] == [0.0; 3];
    let ahead = |r: &[f32]| r[0] >= 0.3 && r[1..3] == [0.0, 0.0];
    let some = rows("standing = 0.3\nforward = 0.4", 1);
    assert!((share(&some[0], stands) - 0.3).abs() < 0.07);
    assert!((share(&some[0], ahead) - 0.28).abs() < 0.07);
    let dead = rows("deadband = 0.6", 1);
    assert!(dead[0].chunks(4).all(|r| r[..2] == [0.0, 0.0] || r[0].hypot(r[1]) > 0.6));
    assert!(share(&dead[0], |r| r[..2] == [0.0, 0.0]) > 0.3);
}

#[test]
fn mistakes_say_what_would_be_right() {
    for (command, key, part) in [
        ("", "range", "one pair each"),
        ("distribution = \"normal\"", "std", "one each"),
        ("distribution = \"normal\"\nstd = [-1]", "std[0]", "negative"),
        ("distribution = \"normal\"\nstd = [1]\nmean = [1, 2]", "mean", "2 means for 1"),
        (
            "distribution = \"normal\"\nstd = [1]\nrange = [[0, 1], [0, 1]]",
            "range",
            "2 ranges for 1",
        ),
        ("distribution = \"log_uniform\"\nrange = [[0, 1]]", "range[0]", "above 0"),
        ("distribution = \"exponential\"\nmean = [0]", "mean[0]", "not above 0"),
        ("distribution = \"bernoulli\"\nprobability = [2]", "probability[0]", "0 to 1"),
        ("distribution = \"choice\"", "choices", "one row each"),
        ("distribution = \"choice\"\nchoices = [[1], [1, 2]]", "choices[1]", "first choice has 1"),
        (
            "distribution = \"choice\"\nchoices = [[1], [2]]\nweights = [1]",
            "weights",
            "1 weights for 2",
        ),
        (
            "distribution = \"choice\"\nchoices = [[1], [2]]\nweights = [0, 0]",
            "weights",
            "no choice",
        ),
        (
            "distribution = \"choice\"\nchoices = [[1], [2]]\nweights = [1, -1]",
            "weights[1]",
            "0 and more",
        ),
        ("range = [[0, 1]]\nstd = [1]", "std", "distribution = \"normal\""),
        ("range = [[0, 1]]\nresample_s = [0.2, 0.1]", "resample_s", "upside down"),
        ("range = [[0, 1]]\nresample_s = [0, 0.1]", "resample_s", "not a number of control steps"),
        ("range = [[0, 1]]\nresample_when = \"qpos[0]\"", "resample_when", "compare it"),
        ("range = [[0, 1]]\nresample_when = \"near\"", "resample_when", "unknown name"),
        ("range = [[0, 1]]\nstanding = 0.1", "standing", "kind = \"velocity\""),
        ("kind = \"velocity\"\nrange = [[0, 1]]", "range", "lin_vel_x"),
        ("kind = \"velocity\"\nlin_vel_x = [1, 0]", "lin_vel_x", "upside down"),
        ("kind = \"velocity\"\nlin_vel_x = [0, 1]\nframe = \"boll\"", "frame", "ball"),
        (
            "kind = \"velocity\"\nlin_vel_x = [0, 1]\nheading = { share = 1.5 }",
            "heading.share",
            "0 to 1",
        ),
        ("kind = \"velocity\"\nlin_vel_x = [0, 1]\ndeadband = -1", "deadband", "negative"),
    ] {
        let Err(EnvError::Config(e)) = build(SMALL, &task(&seeing(command, "qpos"))) else {
            panic!("{command} is fine");
        };
        assert_eq!(e.path, format!("task.command[0].{key}"), "{e}");
        assert!(e.to_string().contains(part), "{command}: {e}");
    }
    let nothing = seeing("kind = \"velocity\"", "qpos");
    let e = build(SMALL, &task(&nothing)).unwrap_err().to_string();
    assert!(e.contains("no velocities"), "{e}");
}
