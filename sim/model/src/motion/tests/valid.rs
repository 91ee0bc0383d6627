//! What is right is read, and comes back as it was written.

use super::*;

fn near(a: &[f64], b: &[f64], most: f64) {
    assert_eq!(a.len(), b.len());
    let worst = a.iter().zip(b).map(|(a, b)| (a - b).abs()).fold(0.0, f64::max);
    assert!(worst <= most, "they differ by {worst}");
}

fn same(read: &Motion, made: &Motion, most: f64) {
    assert_eq!((read.frames, read.step), (made.frames, made.step));
    // The root is a body in files without columns of it: scaled to unit length once more.
    near(&read.qpos, &made.qpos, 1e-15);
    near(&read.qvel, &made.qvel, most);
    near(&read.bodies, &made.bodies, most);
}

#[test]
fn velocities_of_the_tree_are_those_of_its_poses() {
    for model in [walker(), arm()] {
        // A middle state that central differences surround closely.
        let motion = motion(&model, 7, 1e4);
        let q = |t: usize| &motion.qpos[t * model.nq..(t + 1) * model.nq];
        let v = &motion.qvel[3 * model.nv..4 * model.nv];
        let here = kinematics(&model, q(3), v);
        let [before, after] = [2, 4].map(|t| kinematics(&model, q(t), v));
        for b in 1..model.bodies.len() {
            let of = |k: &[f64], i: usize| k[b * BODY + i];
            let quat = |k: &[f64]| [3, 4, 5, 6].map(|i| of(k, i));
            let turn = differences::turn(quat(&before), quat(&after));
            for (i, turn) in turn.iter().enumerate() {
                let rate = (of(&after, i) - of(&before, i)) * 1e4 / 2.0;
                assert!((of(&here, 7 + i) - rate).abs() < 1e-5, "{b} {i}");
                assert!((of(&here, 10 + i) - turn * 1e4 / 2.0).abs() < 1e-5, "{b} {i}");
            }
        }
        let rest = crate::rest::Rest::new(&model, q(3));
        for (b, pose) in rest.bodies.iter().enumerate() {
            assert_eq!(here[b * BODY..b * BODY + 3], pose.pos);
        }
    }
}

#[test]
fn what_is_written_is_read_back() {
    for model in [walker(), arm()] {
        let made = motion(&model, FRAMES, FPS);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.npz");
        made.write(&model, &path).unwrap();
        let bytes = std::fs::read(&path).unwrap();
        let back = read(&model, "a.npz", &bytes, &MotionFormat::default()).unwrap();
        same(&back, &made, 1e-12);
        assert_eq!(back.qpos, made.qpos);
        assert!(back.notes.is_empty(), "{:?}", back.notes);
        assert!((back.duration() - 79.0 / FPS).abs() < 1e-12);
        // Once more: what was read is written alike.
        back.write(&model, &path).unwrap();
        let again = read(&model, "a.npz", &std::fs::read(&path).unwrap(), &MotionFormat::default());
        same(&again.unwrap(), &back, 1e-12);
        let other = if model.joints[0].kind == JointKind::Free { arm() } else { walker() };
        assert!(back.write(&other, &path).unwrap_err().to_string().contains("not of this robot"));
    }
}

#[test]
fn files_of_mjlab_and_tables_hold_the_same_motion() {
    for model in [walker(), arm()] {
        let made = motion(&model, FRAMES, FPS);
        let bytes = File::mjlab(&model, &made).bytes();
        let mjlab = read(&model, "a.npz", &bytes, &MotionFormat::default()).unwrap();
        same(&mjlab, &made, 1e-12);
        assert!(mjlab.notes.iter().any(|n| n.contains("bodies in the robot's order")));
        let rows = table(&model, &made);
        let key = MotionFormat { fps: Some(FPS), ..MotionFormat::default() };
        let csv = read(&model, "a.csv", file::text(&rows).as_bytes(), &key).unwrap();
        // Text is exact; the velocities are the same differences.
        same(&csv, &made, 1e-9);
        // Columns in another order, named by a key, and by a first line.
        let names: Vec<String> =
            model.joints.iter().filter(|j| j.is_scalar()).map(|j| j.name.clone()).collect();
        let lead = rows[0].len() - names.len();
        let turned = |row: &Vec<f64>| -> Vec<f64> {
            row[..lead].iter().chain(row[lead..].iter().rev()).copied().collect()
        };
        let turned: Vec<Vec<f64>> = rows.iter().map(turned).collect();
        let names: Vec<String> = names.into_iter().rev().collect();
        let key = MotionFormat { joints: names.clone(), ..key };
        let csv = read(&model, "a.csv", file::text(&turned).as_bytes(), &key).unwrap();
        same(&csv, &made, 1e-9);
        let root = ["x", "y", "z", "qx", "qy", "qz", "qw"].map(str::to_string);
        let header = [&root[..lead], &names].concat().join(", ");
        let text = format!("{header}\r\n{}\n\n", file::text(&turned));
        let csv = read(&model, "a.csv", text.as_bytes(), &key).unwrap();
        same(&csv, &made, 1e-9);
        // All of them backwards: the root's w first, behind the joints.
        let names = [
            &["root_x", "base_pos_y", "Z", "quat_x", "rot_y", "q_z", "QW"].map(str::to_string)
                [..lead],
            &names,
        ]
        .concat();
        let header: Vec<String> = names.into_iter().rev().collect();
        let back: Vec<Vec<f64>> =
            turned.iter().map(|row| row.iter().rev().copied().collect()).collect();
        let text = format!("{}\n{}", header.join(","), file::text(&back));
        let key = MotionFormat { fps: Some(FPS), ..MotionFormat::default() };
        same(&read(&model, "a.csv", text.as_bytes(), &key).unwrap(), &made, 1e-9);
    }
}

#[test]
fn a_motion_without_velocities_and_bodies_gets_them_from_the_joints() {
    let model = walker();
    let made = motion(&model, FRAMES, FPS);
    let mut file = File::holosoma(&model, &made);
    for name in
        ["joint_vel", "body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w", "body_names"]
    {
        file.drop(name);
    }
    let read = read(&model, "a.npz", &file.bytes(), &MotionFormat::default()).unwrap();
    same(&read, &made, 1e-9);
    assert_eq!(read.notes.iter().filter(|n| n.starts_with("computed")).count(), 2);
}

#[test]
fn what_can_be_mended_is_mended_with_a_note() {
    let model = walker();
    let made = motion(&model, FRAMES, FPS);
    let says = |change: &dyn Fn(&mut File), words: &str| {
        let mut file = File::holosoma(&model, &made);
        change(&mut file);
        let motion = read(&model, "a.npz", &file.bytes(), &MotionFormat::default());
        let motion = motion.unwrap_or_else(|e| panic!("{words}: {e}"));
        assert!(motion.notes.iter().any(|n| n.contains(words)), "{words}: {:?}", motion.notes);
        near(&motion.qpos, &made.qpos, 0.1);
        near(&motion.bodies, &made.bodies, 0.15);
    };
    // MuJoCo given an angular velocity of the world for one of the body, as in holosoma's files.
    let twice = |file: &mut File| {
        let mut wrong = made.clone();
        wrong.bodies.clear();
        for t in 0..wrong.frames {
            let q = &made.qpos[t * model.nq..(t + 1) * model.nq];
            let mut v = made.qvel[t * model.nv..(t + 1) * model.nv].to_vec();
            let world = rotate([q[3], q[4], q[5], q[6]], [v[3], v[4], v[5]]);
            v[3..6].copy_from_slice(&world);
            wrong.bodies.extend(kinematics(&model, q, &v));
        }
        let wrong = File::holosoma(&model, &wrong);
        for name in ["body_lin_vel_w", "body_ang_vel_w"] {
            *file.values(name) = wrong.clone().values(name).clone();
        }
    };
    says(&twice, "replaced: body_ang_vel_w");
    says(&twice, "that it takes in the body's frame");
    says(&twice, "follow from the same mistake");
    let lift = |file: &mut File| file.values("body_pos_w").iter_mut().for_each(|x| *x += 0.004);
    says(&lift, "is up to 6.9 mm from where the joints put it");
    let extra = |file: &mut File| {
        file.numbers.push(("object_pos_w", vec![2], vec![0.0; 2]));
    };
    says(&extra, "left aside: arrays object_pos_w");
    let more = |file: &mut File| file.text("body_names")[3] = "left_calf".into();
    says(&more, "left aside: bodies that the robot has not: left_calf");
    says(&more, "computed: bodies that the file has not, from the joints: left_shin");
    let beyond = |file: &mut File| {
        // The knee bends the wrong way by 0.05 rad more than it can.
        let column = 7 + 2;
        let width = file.shape("joint_pos")[1];
        let least = file.values("joint_pos").iter().skip(column).step_by(width);
        let least = least.copied().fold(f64::INFINITY, f64::min);
        let all = file.values("joint_pos").iter_mut().skip(column).step_by(width);
        all.for_each(|x| *x -= least + 0.15);
        for name in ["body_pos_w", "body_quat_w", "body_lin_vel_w", "body_ang_vel_w"] {
            file.drop(name);
        }
    };
    let mut file = File::holosoma(&model, &made);
    beyond(&mut file);
    let motion = read(&model, "a.npz", &file.bytes(), &MotionFormat::default()).unwrap();
    let note = "beyond limits: left_knee by 0.050 rad";
    assert!(motion.notes.iter().any(|n| n.contains(note)), "{:?}", motion.notes);
}

#[test]
fn a_step_of_its_own_changes_nothing_and_another_one_keeps_the_way() {
    let model = walker();
    let made = motion(&model, 31, 30.0);
    assert_eq!(made.resampled(&model, made.step), made);
    let fine = made.resampled(&model, 0.02);
    // One second: 0, 0.02, ... 1.0.
    assert_eq!((fine.frames, fine.step), (51, 0.02));
    for t in [0, 7, 25, 50] {
        let exact = gait(&model, t as f64 * 0.02);
        let q = &fine.qpos[t * model.nq..(t + 1) * model.nq];
        near(q, &exact, 1e-2);
        let length: f64 = q[3..7].iter().map(|x| x * x).sum();
        assert!((length - 1.0).abs() < 1e-14);
        let v = &fine.qvel[t * model.nv..(t + 1) * model.nv];
        assert_eq!(fine.bodies_at(t), kinematics(&model, q, v));
    }
    // Frames that both have are the same, but for rounding.
    let half = made.resampled(&model, made.step / 2.0);
    assert_eq!(half.frames, 61);
    near(&half.qpos[2 * model.nq..3 * model.nq], &made.qpos[model.nq..2 * model.nq], 1e-12);
    // The shorter way, whatever the signs.
    let [a, b] = [0.2, 0.6].map(|angle| about([0.0, 0.0, 1.0], angle));
    let middle = resample::slerp(a, b.map(|x| -x), 0.25);
    near(&middle, &about([0.0, 0.0, 1.0], 0.3), 1e-14);
    for step in [0.0, -1.0, f64::NAN, 1e-12] {
        let same = made.resampled(&model, step);
        assert_eq!((same.frames, same.notes.len()), (31, 1), "{step}");
    }
    assert!(made.bodies_at(31).is_empty());
}

#[test]
fn keys_are_words_and_nothing_else() {
    let key: MotionFormat =
        serde_json::from_str(r#"{"fps": 30, "quat": "xyzw", "joints": ["knee"]}"#).unwrap();
    assert_eq!((key.fps, key.quat), (Some(30.0), Some(QuatOrder::Xyzw)));
    assert!(serde_json::from_str::<MotionFormat>(r#"{"rate": 30}"#).is_err());
    for order in [QuatOrder::Wxyz, QuatOrder::Xyzw] {
        let word = format!("\"{}\"", order.word());
        assert_eq!(serde_json::to_string(&order).unwrap(), word);
        let numbers = [0.1, 0.2, 0.3, 0.4];
        assert_eq!(order.mistaken(order.sorted(numbers)), order.other().sorted(numbers));
    }
}
