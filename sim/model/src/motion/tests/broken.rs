//! Files that are broken on purpose, each refused with its place, the cause and a remedy.

use super::*;

/// A change to a valid file, and words that the error must have.
type Case<'a> = (&'a str, &'a dyn Fn(&mut File), &'a [&'a str]);

pub(super) fn refused(model: &Model, name: &str, bytes: &[u8], key: &MotionFormat, words: &[&str]) {
    let error = match read(model, name, bytes, key) {
        Ok(motion) => panic!("{words:?} was read: {:?}", motion.notes),
        Err(e) => e,
    };
    assert_eq!(error.file, name);
    assert!(!error.place.is_empty() && !error.help.is_empty());
    for word in words {
        assert!(error.to_string().contains(word), "{error} lacks {word}");
    }
}

fn all(named: bool, cases: &[Case<'_>]) {
    let model = walker();
    let made = motion(&model, FRAMES, FPS);
    let valid = match named {
        true => File::holosoma(&model, &made),
        false => File::mjlab(&model, &made),
    };
    for (what, change, words) in cases {
        let mut file = valid.clone();
        change(&mut file);
        println!("{what}");
        refused(&model, "a.npz", &file.bytes(), &MotionFormat::default(), words);
    }
}

fn xyzw(row: &[f64]) -> Vec<f64> {
    vec![row[1], row[2], row[3], row[0]]
}

/// Breadth first: trunk, both hips and the arm, thighs, shins.
const BREADTH: [usize; 8] = [0, 1, 4, 7, 2, 5, 3, 6];

#[test]
fn files_with_names() {
    let knee = 7 + 2;
    let beyond = |file: &mut File, to: f64| {
        for name in ["joint_vel", "body_pos_w", "body_quat_w"] {
            file.drop(name);
        }
        file.columns("joint_pos", |row| {
            let mut row = row.to_vec();
            row[knee] += to;
            row
        });
    };
    let degrees = |file: &mut File| {
        for name in ["joint_pos", "joint_vel"] {
            let lead = if name == "joint_pos" { 7 } else { 6 };
            file.columns(name, |row| {
                row.iter()
                    .enumerate()
                    .map(|(i, x)| if i < lead { *x } else { x.to_degrees() })
                    .collect()
            });
        }
    };
    let alone = |file: &mut File| {
        for name in ["joint_vel", "body_pos_w", "body_quat_w", "body_names"] {
            file.drop(name);
        }
    };
    all(
        true,
        &[
            ("fps 0", &|f| f.values("fps")[0] = 0.0, &["array fps", "0 frames per second"]),
            ("fps below 0", &|f| f.values("fps")[0] = -50.0, &["array fps", "-50"]),
            ("fps NaN", &|f| f.values("fps")[0] = f64::NAN, &["array fps", "NaN"]),
            ("fps of a million", &|f| f.values("fps")[0] = 1e6, &["array fps", "1000000"]),
            ("no fps", &|f| f.drop("fps"), &["does not say how many frames", "--fps"]),
            (
                "two fps",
                &|f| {
                    *f.shape("fps") = vec![2];
                    f.values("fps").push(50.0);
                },
                &["array fps", "[2]"],
            ),
            (
                "the wrong fps",
                &|f| f.values("fps")[0] = 30.0,
                &["array joint_vel", "1.67 times", "at 50.00", "correct fps"],
            ),
            (
                "no positions",
                &|f| f.drop("joint_pos"),
                &["array joint_pos", "missing", "joint_vel"],
            ),
            (
                "NaN in a joint",
                &|f| f.values("joint_pos")[17 * 14 + knee] = f64::NAN,
                &["array joint_pos, frame 17, joint left_knee", "NaN"],
            ),
            (
                "NaN in the root",
                &|f| f.values("joint_pos")[3 * 14 + 2] = f64::NAN,
                &["frame 3, column 2 (the root's)"],
            ),
            (
                "inf in a velocity",
                &|f| f.values("joint_vel")[4 * 13 + 6] = f64::INFINITY,
                &["array joint_vel, frame 4, joint left_hip_pitch", "inf"],
            ),
            (
                "inf in a body",
                &|f| f.values("body_pos_w")[(5 * 8 + 3) * 3] = f64::INFINITY,
                &["array body_pos_w, frame 5, body left_shin"],
            ),
            (
                "one frame",
                &|f| f.cut("joint_pos", 1),
                &["array joint_pos", "1 frames", "2 or more"],
            ),
            (
                "velocities of fewer frames",
                &|f| f.cut("joint_vel", 79),
                &["array joint_vel", "79 frames, and joint_pos has 80"],
            ),
            (
                "bodies of fewer frames",
                &|f| f.cut("body_quat_w", 60),
                &["array body_quat_w", "60 frames, and joint_pos has 80"],
            ),
            (
                "a mistyped joint",
                &|f| f.text("joint_names")[2] = "left_kneee".into(),
                &["joint_names, joint left_kneee", "did you mean \"left_knee\"?"],
            ),
            (
                "a joint twice",
                &|f| f.text("joint_names")[2] = "elbow".into(),
                &["joint_names, joint elbow", "twice"],
            ),
            (
                "a joint less",
                &|f| {
                    f.text("joint_names").truncate(6);
                    f.columns("joint_pos", |row| row[..13].to_vec());
                    f.columns("joint_vel", |row| row[..12].to_vec());
                },
                &["joint_names, joint elbow", "the file has it not"],
            ),
            (
                "a name less",
                &|f| f.columns("joint_pos", |row| row[..13].to_vec()),
                &["array joint_pos", "13 columns, and joint_names has 7 joints: expected 7, or 14"],
            ),
            (
                "a body twice",
                &|f| f.text("body_names")[2] = "trunk".into(),
                &["body_names, body trunk", "twice"],
            ),
            (
                "a body's name less",
                &|f| f.text("body_names").truncate(7),
                &["array body_pos_w", "8 bodies, and body_names has 7"],
            ),
            (
                "bodies of another robot",
                &|f| f.text("body_names").iter_mut().for_each(|n| n.push('2')),
                &["body_names", "none of these bodies"],
            ),
            (
                "two bodies exchanged",
                &|f| f.text("body_names").swap(3, 6),
                &["array body_pos_w", "shin", "_shin fits there", "body_names"],
            ),
            (
                "quaternions with w last",
                &|f| {
                    f.columns("body_quat_w", xyzw);
                    f.columns("joint_pos", |r| [&r[..3], &xyzw(&r[3..7]), &r[7..]].concat());
                },
                &["read as xyzw all fits", "--quat xyzw"],
            ),
            (
                "quaternions of bodies with w last",
                &|f| f.columns("body_quat_w", xyzw),
                &["array body_quat_w", "body_quat_w alone read as xyzw"],
            ),
            (
                "the root's with w last",
                &|f| f.columns("joint_pos", |r| [&r[..3], &xyzw(&r[3..7]), &r[7..]].concat()),
                &["the root's quaternion in joint_pos alone read as xyzw"],
            ),
            (
                "the root's with w last, without bodies",
                &|f| {
                    alone(f);
                    f.columns("joint_pos", |r| [&r[..3], &xyzw(&r[3..7]), &r[7..]].concat());
                },
                &["the root's columns, the quaternion", "quat = \"xyzw\""],
            ),
            (
                "a quaternion that is none",
                &|f| f.values("joint_pos")[9 * 14 + 3..9 * 14 + 7].fill(0.0),
                &["array joint_pos, frame 9, the root's columns 3 to 6", "length 0.0000"],
            ),
            (
                "a quaternion of length 2",
                &|f| {
                    let at = (9 * 8 + 7) * 4;
                    f.values("body_quat_w")[at..at + 4].iter_mut().for_each(|x| *x *= 2.0);
                },
                &["array body_quat_w, frame 9, body arm", "length 2.0000"],
            ),
            ("degrees", &degrees, &["joint positions", "taken as degrees all joints fit"]),
            ("far beyond limits", &|f| beyond(f, 3.0), &["left_knee", "far beyond its limits"]),
            ("velocities of 0", &|f| f.values("joint_vel").fill(0.0), &["joint_vel", "they are 0"]),
            (
                "velocities in degrees",
                &|f| {
                    f.columns("joint_vel", |r| {
                        [&r[..6], &r[6..].iter().map(|x| x.to_degrees()).collect::<Vec<_>>()]
                            .concat()
                    })
                },
                &["array joint_vel", "degrees", "radians per second"],
            ),
            (
                "velocities of two joints exchanged",
                &|f| {
                    f.columns("joint_vel", |r| {
                        let mut r = r.to_vec();
                        r.swap(8, 11);
                        r
                    })
                },
                &["array joint_vel, joint ", "they are those of "],
            ),
            (
                "velocities breadth first",
                &|f| {
                    f.columns("joint_vel", |r| {
                        let order = [0, 3, 6, 1, 4, 2, 5].map(|j| r[6 + j]);
                        [&r[..6], &order].concat()
                    })
                },
                &["array joint_vel", "breadth first"],
            ),
            (
                "velocities backwards",
                &|f| f.values("joint_vel").iter_mut().for_each(|x| *x = -*x),
                &["array joint_vel", "-1.00 times", "sign"],
            ),
            (
                "the root's velocity of another robot",
                &|f| {
                    f.columns("joint_vel", |r| [&[r[7], r[8], r[9]], &r[3..]].concat());
                },
                &["joint_vel, the root's columns 0 to 2", "contradict its positions"],
            ),
            (
                "a jump of the root",
                &|f| {
                    alone(f);
                    for t in 40..80 {
                        f.values("joint_pos")[t * 14] += 1.0;
                    }
                },
                &["the root's columns, frame 40", "jumps by 1.01 m", "cut"],
            ),
            (
                "a jump of a joint",
                &|f| {
                    alone(f);
                    f.values("joint_pos")[33 * 14 + 13] += 1.2;
                },
                &["frame 33, joint elbow", "jumps by 1.34", "mend"],
            ),
            (
                "a full turn of a joint",
                &|f| {
                    alone(f);
                    for t in 50..80 {
                        f.values("joint_pos")[t * 14 + 13] += std::f64::consts::TAU;
                    }
                },
                &["frame 50, joint elbow", "full turn", "unwrap"],
            ),
            (
                "half of the bodies' pose",
                &|f| f.drop("body_quat_w"),
                &["array body_pos_w", "belong together"],
            ),
            (
                "positions of another shape",
                &|f| *f.shape("joint_pos") = vec![FRAMES * 14],
                &["array joint_pos", "[1120]"],
            ),
            (
                "bodies of another shape",
                &|f| *f.shape("body_quat_w") = vec![FRAMES, 32],
                &["array body_quat_w", "[80, 32]", "[80, 8, 4]"],
            ),
        ],
    );
}

#[test]
fn files_without_names() {
    let every = ["body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w"];
    all(
        false,
        &[
            (
                "bodies breadth first",
                &|f| every.iter().for_each(|n| f.bodies(n, &BREADTH)),
                &["body_pos_w", "breadth first, as Isaac Lab lists bodies", "body_names"],
            ),
            (
                "joints breadth first",
                &|f| {
                    for name in ["joint_pos", "joint_vel"] {
                        f.columns(name, |r| [0, 3, 6, 1, 4, 2, 5].map(|j| r[j]).to_vec());
                    }
                },
                &["body_pos_w", "joints breadth first", "joint_names"],
            ),
            (
                "two bodies exchanged",
                &|f| every.iter().for_each(|n| f.bodies(n, &[0, 1, 3, 2, 4, 5, 6, 7])),
                &["body_pos_w", "body left_", "fits there"],
            ),
            (
                "a body less",
                &|f| {
                    for name in every {
                        f.bodies(name, &[0, 1, 2, 3, 4, 5, 6, 7]);
                        let width = *f.shape(name).last().unwrap();
                        let all: Vec<f64> = (f.values(name).chunks_exact(8 * width))
                            .flat_map(|r| r[..7 * width].to_vec())
                            .collect();
                        *f.values(name) = all;
                        f.shape(name)[1] = 7;
                    }
                },
                &["array body_pos_w", "7 bodies, and the robot has 8 without the world"],
            ),
            (
                "a joint less",
                &|f| f.columns("joint_pos", |r| r[..6].to_vec()),
                &["array joint_pos", "6 columns, and the robot has 7 joints"],
            ),
            (
                "no root",
                &|f| every.iter().for_each(|n| f.drop(n)),
                &["body trunk", "does not say where it is"],
            ),
            (
                "angular velocities in the body's frame",
                &|f| {
                    let quats = f.values("body_quat_w").clone();
                    let all = f.values("body_ang_vel_w").chunks_exact_mut(3);
                    for (w, q) in all.zip(quats.chunks_exact(4)) {
                        let q = [q[0], q[1], q[2], q[3]];
                        w.copy_from_slice(&into_body(q, [w[0], w[1], w[2]]));
                    }
                },
                &["array body_ang_vel_w, body trunk", "in the body's frame"],
            ),
            (
                "velocities in the body's frame",
                &|f| {
                    let quats = f.values("body_quat_w").clone();
                    let all = f.values("body_lin_vel_w").chunks_exact_mut(3);
                    for (w, q) in all.zip(quats.chunks_exact(4)) {
                        let q = [q[0], q[1], q[2], q[3]];
                        w.copy_from_slice(&into_body(q, [w[0], w[1], w[2]]));
                    }
                },
                &["array body_lin_vel_w, body trunk", "in the body's frame"],
            ),
        ],
    );
}
