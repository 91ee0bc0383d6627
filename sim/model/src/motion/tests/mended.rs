//! What a motion asks of its robot, and repaired copies.

use super::*;

/// The walker's motion, 7 cm too high, with a knee beyond its limit in some frames.
fn crooked(model: &Model) -> (Motion, usize) {
    let mut made = motion(model, FRAMES, FPS);
    let knee = model.joint("left_knee").unwrap();
    let at = model.joints[knee].qpos_adr;
    for t in 0..FRAMES {
        let q = &mut made.qpos[t * model.nq..(t + 1) * model.nq];
        q[2] += 0.07;
        if (10..15).contains(&t) {
            q[at] = -0.3;
        }
        let v = &made.qvel[t * model.nv..(t + 1) * model.nv];
        let bodies = kinematics(model, &made.qpos[t * model.nq..(t + 1) * model.nq], v);
        let width = bodies.len();
        made.bodies[t * width..(t + 1) * width].copy_from_slice(&bodies);
    }
    (made, knee)
}

#[test]
fn limits_speeds_and_the_floor_are_looked_at() {
    let model = walker();
    let (made, knee) = crooked(&model);
    let found = made.examined(&model);
    assert_eq!(found.beyond.len(), 1);
    let beyond = &found.beyond[0];
    assert_eq!((beyond.joint, beyond.frame, beyond.frames), (knee, 10, 5));
    assert!((beyond.most - 0.2).abs() < 1e-12);
    let [(speed, _), (turning, _)] = found.root.unwrap();
    assert!((0.6..0.8).contains(&speed) && (0.9..2.0).contains(&turning), "{speed} {turning}");
    assert_eq!(found.speeds.len(), 7);
    assert!(found.speeds.is_sorted_by(|a, b| a.most >= b.most));
    let heights = made.heights(&model);
    let low = heights.iter().copied().fold(f64::INFINITY, f64::min);
    assert_eq!((found.lowest.0, heights[found.lowest.1]), (low, low));
    // The floor is where the plane is; neither it nor what is only seen is among the shapes.
    for stance in &found.floor {
        assert!(model.geoms[stance.geom].name.ends_with("foot"), "{stance:?}");
        assert!(stance.sliding[0] <= stance.sliding[1] && stance.touching > 0);
    }
    // A robot on a wall has no floor to be on.
    let model = arm();
    let found = motion(&model, FRAMES, FPS).examined(&model);
    assert!(found.root.is_none() && found.beyond.is_empty());
}

/// A sphere that is drawn over the floor slides as fast as it is drawn; one that rolls does not.
#[test]
fn what_rolls_does_not_slide() {
    let model = parse(
        r#"<body name="ball" pos="0 0 0.1"><freejoint/><geom name="ball" size="0.1"/>
        <body name="tail" pos="0 0 0.5"><joint name="tail" axis="0 0 1"/>
        <geom size="0.01" mass="1"/></body></body>"#,
    );
    for (turning, slides) in [(0.0, 0.3), (3.0, 0.0)] {
        let (mut qpos, mut qvel, mut bodies) = (Vec::new(), Vec::new(), Vec::new());
        for t in 0..10 {
            let mut q = model.qpos0.clone();
            q[0] = 0.3 * 0.02 * f64::from(t);
            let v = [0.3, 0.0, 0.0, 0.0, turning, 0.0, 0.0];
            bodies.extend(kinematics(&model, &q, &v));
            qpos.extend(q);
            qvel.extend(v);
        }
        let notes = Vec::new();
        let made =
            Motion { name: "ball".into(), step: 0.02, frames: 10, qpos, qvel, bodies, notes };
        let found = made.examined(&model);
        let ball = &found.floor[0];
        assert_eq!(ball.touching, 10);
        assert!(ball.lowest.abs() < 1e-12 && (ball.sliding[0] - slides).abs() < 1e-12);
    }
}

#[test]
fn a_repaired_copy_is_within_limits_on_the_floor_and_read_without_a_note() {
    let model = walker();
    let (made, knee) = crooked(&model);
    let before = made.heights(&model).into_iter().fold(f64::INFINITY, f64::min);
    for step in [None, Some(0.02), Some(0.01)] {
        let (fixed, lines) = made.mended(&model, step).unwrap();
        let has = |words: &str| lines.iter().any(|l| l.contains(words));
        assert!(has("clipped left_knee to its limits in 5 frames") || step == Some(0.01));
        assert!(has("moved the whole clip") && has("computed velocities"), "{lines:?}");
        assert_eq!(has("resampled from 80 frames"), step == Some(0.01));
        let found = fixed.examined(&model);
        assert!(found.beyond.is_empty());
        assert!((-0.01..=1e-12).contains(&found.lowest.0), "{} {before}", found.lowest.0);
        let least = model.joints[knee].range.unwrap()[0];
        let at = model.joints[knee].qpos_adr;
        assert!(fixed.qpos.iter().skip(at).step_by(model.nq).all(|q| *q >= least));
        let bytes = File::holosoma(&model, &fixed).bytes();
        let back = read(&model, "a.npz", &bytes, &MotionFormat::default()).unwrap();
        assert!(back.notes.is_empty(), "{:?}", back.notes);
        // Nothing is left to be done.
        let (again, lines) = fixed.mended(&model, None).unwrap();
        assert_eq!((lines.len(), again.frames), (1, fixed.frames), "{lines:?}");
    }
}
