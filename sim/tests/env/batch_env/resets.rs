//! Pins: where every reset target puts the robot.

use super::point_mass::{Batch, Out, SMALL, build, task};

/// First observations (qpos, qvel) of `n` environments.
fn starts(n: usize, terms: &str) -> Vec<Vec<f32>> {
    let text = format!(
        "[[action]]\nactuators = [\"push\"]\n[[observation]]\nname = \"q\"\nexpr = \"qpos\"\n[[observation]]\nname = \"v\"\nexpr = \"qvel\"\n[[reward]]\nname = \"r\"\nexpr = \"1\"\n{terms}"
    );
    let mut env = build(Batch { n, ..SMALL }, &task(&text)).unwrap();
    let mut out = Out::new(env.spec(), 1);
    out.reset(&mut env, false);
    out.policy.chunks(17).map(<[f32]>::to_vec).collect()
}

fn reset(target: &str, how: &str) -> String {
    format!("[[reset]]\ntarget = '{target}'\n{how}\n")
}

const POSE: [f32; 9] = [0.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0];

#[test]
fn without_terms_an_episode_starts_in_the_initial_pose_at_rest() {
    assert_eq!(starts(1, "")[0], [&POSE[..], &[0.0; 8]].concat());
}

/// The robot has `slider` before `turn`.
#[test]
fn numbers_of_joints_that_are_named_go_in_the_order_of_the_names() {
    for target in [
        "joint_pos([turn, slider])",
        "joint_pos(turn, slider)",
        "joint_pos([\"turn\", \"slider\"])",
    ] {
        for how in [
            "value = [0.25, 0.5]",
            "choice = [[0.25, 0.5]]",
            "uniform = [[0.25, 0.25], [0.5, 0.5]]",
            "expr = \"concat(0.25, 0.5)\"",
        ] {
            let row = &starts(1, &reset(target, how))[0];
            assert_eq!(row[..2], [0.5, 0.25], "{target} {how}");
        }
    }
    let row = &starts(1, &reset("joint_vel([turn, slider])", "value = [0.25, 0.5]"))[0];
    assert_eq!(row[9..11], [0.5, 0.25]);
    let named = reset("joint_pos(both)", "value = [0.25, 0.5]");
    let named = format!("{named}[names]\nboth = [\"turn\", \"slider\"]\n");
    assert_eq!(starts(1, &named)[0][..2], [0.5, 0.25]);
    for (target, how, wrong) in [
        ("joint_pos([\"t*\", slider])", "value = [0.25, 0.5]", "in the model's order"),
        ("joint_pos([\"t*\", slider])", "choice = [[0.25, 0.5]]", "in the model's order"),
        ("joint_pos([\"t*\", slider])", "expr = \"concat(0.1, 0.2)\"", "in the model's order"),
        ("joint_pos([turn, turn])", "value = 0.5", "\"turn\" is in the list twice"),
        ("joint_pos([])", "value = 0.5", "the list is empty"),
        ("joint_pos([turn, slidr])", "value = 0.5", "did you mean \"slider\"?"),
    ] {
        let text = format!(
            "[[action]]\nactuators = [\"push\"]\n[[observation]]\nname = \"q\"\nexpr = \"qpos\"\n[[reward]]\nname = \"r\"\nexpr = \"1\"\n{}",
            reset(target, how)
        );
        let e = build(SMALL, &task(&text)).unwrap_err().to_string();
        assert!(e.contains(wrong), "{target} {how}: {e}");
    }
    // One number for all has no order.
    let row = &starts(1, &reset("joint_pos([\"t*\", slider])", "value = 0.5"))[0];
    assert_eq!(row[..2], [0.5, 0.5]);
}

#[test]
fn each_target_moves_its_coordinates_and_no_others() {
    for (target, touched) in [
        ("qpos", 0..9),
        ("qvel", 9..17),
        ("joint_pos(slider)", 0..1),
        ("joint_pos(\"turn\")", 1..2),
        ("joint_pos(*)", 0..2),
        ("joint_vel(\"t*n\")", 10..11),
        ("pos(ball)", 2..5),
        ("lin_vel(ball)", 11..14),
        ("ang_vel(ball)", 14..17),
        ("yaw(ball)", 5..9),
    ] {
        let rest = starts(1, "")[0].clone();
        for (i, row) in starts(50, &reset(target, "uniform = [0.1, 0.2]")).iter().enumerate() {
            for k in 0..17 {
                if !touched.contains(&k) {
                    assert_eq!(row[k], rest[k], "{target} moved {k} in {i}");
                } else if !(5..9).contains(&k) {
                    assert!(
                        (0.1..=0.2001).contains(&(row[k] - rest[k])),
                        "{target} {k}: {}",
                        row[k]
                    );
                }
            }
            let norm: f32 = row[5..9].iter().map(|x| x * x).sum();
            assert!((norm - 1.0).abs() < 1e-6);
            if target == "yaw(ball)" {
                let angle = 2.0 * row[8].atan2(row[5]);
                assert!((0.0999..0.2001).contains(&angle) && row[6] == 0.0 && row[7] == 0.0);
            }
        }
    }
}

#[test]
fn values_replace_keyframes_set_all_and_terms_add_up_in_order() {
    let key = starts(1, &reset("keyframe(\"high\")", ""));
    assert_eq!(
        key[0],
        [0.5, 0.25, 1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0]
    );
    let both = [
        reset("keyframe(high)", ""),
        reset("pos(ball)", "value = [7, 8, 9]"),
        reset("joint_vel(slider)", "value = 0"),
    ]
    .concat();
    let row = &starts(1, &both)[0];
    assert_eq!((&row[..5], row[9]), ([0.5, 0.25, 7.0, 8.0, 9.0].as_slice(), 0.0));
    let turned = &starts(1, &reset("yaw(ball)", "value = 1.5707963"))[0];
    assert!((turned[5] - 0.5f32.sqrt()).abs() < 1e-6 && (turned[8] - 0.5f32.sqrt()).abs() < 1e-6);
    // A value and a spread: around the value.
    for row in starts(20, &reset("joint_pos(turn)", "value = 4.0\nuniform = [-0.5, 0.5]")) {
        assert!((3.5..=4.5).contains(&row[1]) && row[1] != 4.0);
    }
}

#[test]
fn draws_differ_between_coordinates_environments_and_episodes_and_have_the_right_spread() {
    let rows = starts(4000, &reset("qvel", "normal = 2.0"));
    let values: Vec<f64> =
        rows.iter().flat_map(|r| r[9..17].iter().map(|&x| f64::from(x))).collect();
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|x| x * x).sum::<f64>() / n;
    assert!(
        mean.abs() < 5.0 * 2.0 / n.sqrt() && (variance - 4.0).abs() < 5.0 * 4.0 * (2.0 / n).sqrt(),
        "{mean} {variance}"
    );
    let mut bits: Vec<u64> = values.iter().map(|x| x.to_bits()).collect();
    bits.sort_unstable();
    bits.dedup();
    assert!(bits.len() as f64 > 0.99 * n);
}

/// Coordinates of many starts.
fn columns(terms: &str) -> Vec<Vec<f32>> {
    let rows = starts(2000, terms);
    (0..17).map(|k| rows.iter().map(|r| r[k]).collect()).collect()
}

fn between(column: &[f32], low: f32, high: f32) {
    let (least, most) = column.iter().fold((f32::MAX, f32::MIN), |m, x| (m.0.min(*x), m.1.max(*x)));
    let width = high - low;
    assert!(least >= low - 1e-5 && most <= high + 1e-5, "{least} {most}");
    assert!(
        least < low + 0.02 * width + 1e-6 && most > high - 0.02 * width - 1e-6,
        "{least} {most}"
    );
}

#[test]
fn every_axis_and_every_joint_may_have_a_range_of_its_own() {
    let pos = columns(&reset("pos(ball)", "uniform = [[-0.1, 0.1], [-0.25, 0.25], [0, 0]]"));
    between(&pos[2], -0.1, 0.1);
    between(&pos[3], -0.25, 0.25);
    assert!(pos[4].iter().all(|z| *z == 1.0));
    let named = columns(&reset("joint_pos(*)", "uniform = { \"sli*\" = [1, 2], turn = [-3, -1] }"));
    between(&named[0], 1.0, 2.0);
    between(&named[1], -3.0, -1.0);
    let value = starts(1, &reset("joint_pos(*)", "value = { slider = 0.5, \"t*\" = 0.25 }"));
    assert_eq!(value[0][..2], [0.5, 0.25]);
    let spread = columns(&reset("lin_vel(ball)", "normal = [0, 0.5, 2]"));
    let variance = |x: &[f32]| x.iter().map(|x| f64::from(x * x)).sum::<f64>() / 2000.0;
    assert!(variance(&spread[11]) == 0.0);
    assert!((variance(&spread[12]) / 0.25 - 1.0).abs() < 0.1);
    assert!((variance(&spread[13]) / 4.0 - 1.0).abs() < 0.1);
}

/// `reset_joints_by_scale` of Isaac Lab and legged_gym, log-uniform offsets.
#[test]
fn values_are_scaled_and_offsets_may_be_log_uniform() {
    let high = reset("keyframe(high)", "");
    let scaled = columns(&format!("{high}{}", reset("joint_pos(*)", "scale = [0.5, 1.5]")));
    between(&scaled[0], 0.25, 0.75);
    between(&scaled[1], 0.125, 0.375);
    let log = columns(&reset("joint_pos(slider)", "log_uniform = [0.1, 10]"));
    between(&log[0], 0.1, 10.0);
    let below = log[0].iter().filter(|x| **x < 1.0).count();
    assert!((900..1100).contains(&below), "{below}");
}

/// Roll, pitch and yaw as mjlab's and Isaac Lab's `quat_from_euler_xyz`, in the body's axes.
#[test]
fn bodies_are_turned_about_their_axes() {
    let angles = "value = [0.3, -0.4, 1.1]";
    let row = &starts(1, &reset("rpy(ball)", angles))[0];
    let half = |x: f32| (x / 2.0).sin_cos();
    let ((sr, cr), (sp, cp), (sy, cy)) = (half(0.3), half(-0.4), half(1.1));
    let wanted = [
        cy * cr * cp + sy * sr * sp,
        cy * sr * cp - sy * cr * sp,
        cy * cr * sp + sy * sr * cp,
        sy * cr * cp - cy * sr * sp,
    ];
    for (a, b) in row[5..9].iter().zip(wanted) {
        assert!((a - b).abs() < 1e-6, "{row:?} {wanted:?}");
    }
    // About the body's own axis: upside down it turns the other way.
    let turned = |terms: &str| starts(1, terms)[0][5..9].to_vec();
    let over = reset("quat(ball)", "value = [0, 1, 0, 0]");
    let yaw =
        turned(&format!("{over}{}", reset("rpy(ball)", "uniform = [[0, 0], [0, 0], [1, 1]]")));
    let (s, c) = half(1.0);
    for (a, b) in yaw.iter().zip([0.0, c, -s, 0.0]) {
        assert!((a - b).abs() < 1e-6, "{yaw:?}");
    }
    for (target, at) in [("roll(ball)", 1), ("pitch(ball)", 2)] {
        let one = turned(&reset(target, "uniform = [0.5, 0.5]"));
        let mut wanted = [0.25_f32.cos(), 0.0, 0.0, 0.0];
        wanted[at] = 0.25_f32.sin();
        assert!(one.iter().zip(wanted).all(|(a, b)| (a - b).abs() < 1e-6), "{one:?}");
    }
}

/// Moments of rotations that are all alike (the Haar measure): of w^2, a quarter; of the
/// angle, pi/2 + 2/pi.
#[test]
fn a_rotation_without_a_range_is_any_rotation() {
    let quats = columns(&reset("quat(ball)", ""));
    for (k, of) in quats.iter().enumerate().skip(5).take(4) {
        let mean: f32 = of.iter().sum::<f32>() / 2000.0;
        let square: f32 = of.iter().map(|x| x * x).sum::<f32>() / 2000.0;
        assert!(mean.abs() < 0.06 && (square - 0.25).abs() < 0.03, "{k}: {mean} {square}");
    }
    let angles = quats[5].iter().map(|w| 2.0 * f64::from(w.abs().min(1.0)).acos());
    let mean = angles.sum::<f64>() / 2000.0;
    let pi = std::f64::consts::PI;
    assert!((mean - (pi / 2.0 + 2.0 / pi)).abs() < 0.06, "{mean}");
}

#[test]
fn one_of_some_poses_is_chosen_as_a_whole() {
    let poses = columns(&reset("joint_pos(*)", "choice = [[1, 10], [2, 20], [3, 30]]"));
    for (a, b) in poses[0].iter().zip(&poses[1]) {
        assert!(*b == 10.0 * a && [1.0, 2.0, 3.0].contains(a));
    }
    let count = poses[0].iter().filter(|x| **x == 2.0).count();
    assert!((560..780).contains(&count), "{count}");
    for list in ["keyframe([high, low])", "keyframe([\"*\"])"] {
        let keys = starts(200, &reset(list, ""));
        let high = starts(1, &reset("keyframe(high)", ""))[0].clone();
        let low = starts(1, &reset("keyframe(low)", ""))[0].clone();
        let count = keys.iter().filter(|row| **row == high).count();
        assert!((60..140).contains(&count), "{count}");
        assert!(keys.iter().all(|row| *row == high || *row == low));
    }
}

#[test]
fn a_choice_without_chance_is_the_first() {
    let text = format!(
        "[[action]]\nactuators = [\"servo\"]\nkind = \"position\"\n[[observation]]\nname = \"q\"\nexpr = \"joint_pos_rel(turn)\"\n[[reward]]\nname = \"r\"\nexpr = \"1\"\n{}",
        reset("joint_pos(turn)", "choice = [[0.25], [0.5]]")
    );
    let env = build(SMALL, &task(&text)).unwrap();
    assert_eq!(env.pose().qpos[1], 0.25);
}

#[test]
fn resets_that_mean_nothing_are_refused() {
    for (target, how, path, part) in [
        ("pos(ball)", "uniform = [[0, 1]]", ".uniform", "1 ranges for 3 coordinates"),
        ("pos(ball)", "uniform = { x = [0, 1] }", ".uniform", "no names"),
        ("joint_pos(*)", "uniform = { slider = [0, 1] }", ".uniform", "\"turn\" fits no pattern"),
        ("joint_pos(*)", "log_uniform = [0, 1]", ".log_uniform", "no logarithm"),
        ("joint_pos(*)", "uniform = [0, 1]\nscale = [0, 1]", "", "both `uniform` and `scale`"),
        ("joint_pos(*)", "value = 1\nscale = [0, 1]", ".scale", "two terms"),
        ("joint_pos(*)", "choice = [[1]]", ".choice[0]", "1 numbers for 2"),
        ("joint_pos(*)", "choice = [[1, 2]]\nvalue = 1", ".choice", "two terms"),
        ("joint_pos(*)", "within_limits = 0.9", ".within_limits", "no limits"),
        ("joint_pos(*)", "within_limits = 1.5", ".within_limits", "share"),
        ("qpos", "within_limits = 0.9", ".within_limits", "joint_pos"),
        ("joint_vel(*)", "within_limits = 0.9", ".within_limits", "joint_pos"),
        ("roll(ball)", "value = 1", ".value", "rpy(BODY)"),
        ("pitch(ball)", "scale = [1, 2]", ".scale", "no factor"),
        ("quat(ball)", "uniform = [0, 1]", "", "rpy(BODY)"),
        ("rpy(ball)", "scale = [0, 1]", "", "rpy takes"),
        ("keyframe([high, hihg])", "", ".target", "did you mean \"high\""),
        ("keyframe([])", "", ".target", "empty"),
        ("keyframe([high])", "value = 1", "", "no numbers"),
        ("joint_pos(*)", "", "", "does nothing"),
    ] {
        let text = format!(
            "[[action]]\nactuators = [\"push\"]\n[[observation]]\nname = \"q\"\nexpr = \"qpos\"\n[[reward]]\nname = \"r\"\nexpr = \"1\"\n{}",
            reset(target, how)
        );
        let Err(ostler_sim::env::EnvError::Config(e)) = build(SMALL, &task(&text)) else {
            panic!("{target} {how} is fine");
        };
        assert_eq!(e.path, format!("task.reset[0]{path}"), "{e}");
        assert!(e.to_string().contains(part), "{target} {how}: {e}");
    }
}
