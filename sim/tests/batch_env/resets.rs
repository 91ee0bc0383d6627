//! Pins: where every reset target puts the robot.

use crate::point_mass::{Batch, Out, SMALL, build, task};

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
        for (i, row) in starts(50, &reset(target, "uniform = [0.1, 0.2]"))
            .iter()
            .enumerate()
        {
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
        [
            0.5, 0.25, 1.0, 2.0, 3.0, 1.0, 0.0, 0.0, 0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0
        ]
    );
    let both = [
        reset("keyframe(high)", ""),
        reset("pos(ball)", "value = [7, 8, 9]"),
        reset("joint_vel(slider)", "value = 0"),
    ]
    .concat();
    let row = &starts(1, &both)[0];
    assert_eq!(
        (&row[..5], row[9]),
        ([0.5, 0.25, 7.0, 8.0, 9.0].as_slice(), 0.0)
    );
    let turned = &starts(1, &reset("yaw(ball)", "value = 1.5707963"))[0];
    assert!((turned[5] - 0.5f32.sqrt()).abs() < 1e-6 && (turned[8] - 0.5f32.sqrt()).abs() < 1e-6);
    // A value and a spread: around the value.
    for row in starts(
        20,
        &reset("joint_pos(turn)", "value = 4.0\nuniform = [-0.5, 0.5]"),
    ) {
        assert!((3.5..=4.5).contains(&row[1]) && row[1] != 4.0);
    }
}

#[test]
fn draws_differ_between_coordinates_environments_and_episodes_and_have_the_right_spread() {
    let rows = starts(4000, &reset("qvel", "normal = 2.0"));
    let values: Vec<f64> = rows
        .iter()
        .flat_map(|r| r[9..17].iter().map(|&x| f64::from(x)))
        .collect();
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
