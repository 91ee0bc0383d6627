//! Motions of the Unitree G1 out of holosoma's wheel, with mjlab's robot out of its own.

use crate::support::referee::peers;
use ostler_sim::model::mjcf;
use ostler_sim::model::motion::{self, Motion, MotionFormat, QuatOrder};

#[test]
fn motions_of_holosoma_fit_the_robot_of_mjlab() {
    let Some(peers) = peers() else {
        return;
    };
    let robot = peers.join("mjlab/asset_zoo/robots/unitree_g1/xmls/g1.xml");
    let model = mjcf::load(&robot).unwrap();
    let folder = peers.join("holosoma/data/motions/g1_29dof/whole_body_tracking");
    let files = [
        ("motion_crawl_slope.npz", 959),
        ("sub3_largebox_003_mj.npz", 325),
        ("sub3_largebox_003_mj_w_obj.npz", 325),
    ];
    for (name, frames) in files {
        let bytes = std::fs::read(folder.join(name)).unwrap();
        let read = |format: &MotionFormat| motion::read(&model, name, &bytes, format);
        let motion = read(&MotionFormat::default()).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((motion.frames, motion.step), (frames, 0.02));
        let says = |words: &str| {
            let found = motion.notes.iter().any(|n| n.contains(words));
            assert!(found, "{name}: no note of {words}: {:#?}", motion.notes);
        };
        // The robots' files differ by a centimetre in the torso; the root's angular velocity
        // reached MuJoCo in the wrong frame.
        says("torso_link is up to 10");
        says("replaced: body_ang_vel_w");
        says("that it takes in the body's frame");
        says("replaced: body_lin_vel_w");
        says("left aside: bodies that the robot has not: world, pelvis_contour_link");
        assert_eq!(name.contains("w_obj"), motion.notes.iter().any(|n| n.contains("object_pos_w")));
        // What replaces them are the rates of the positions.
        let at = |t: usize, b: usize, k: usize| motion.bodies_at(t)[b * motion::BODY + k];
        for t in (1..frames - 1).step_by(37) {
            for b in 1..model.bodies.len() {
                for k in 0..3 {
                    let rate = (at(t + 1, b, k) - at(t - 1, b, k)) / 0.04;
                    let off = (at(t, b, 7 + k) - rate).abs();
                    assert!(off < 0.1, "{name}, frame {t}, {}: {off}", model.bodies[b].name);
                }
            }
        }
        let other = MotionFormat { quat: Some(QuatOrder::Xyzw), ..MotionFormat::default() };
        let text = read(&other).unwrap_err().to_string();
        assert!(text.contains("read as wxyz all fits"), "{text}");
        let fps = MotionFormat { fps: Some(30.0), ..MotionFormat::default() };
        assert!(read(&fps).unwrap_err().to_string().contains("array fps"));
        mended(&model, &motion);
    }
}

/// A repaired copy is read without a complaint.
fn mended(model: &ostler_sim::Model, motion: &Motion) {
    let (fixed, lines) = motion.mended(model, Some(1.0 / 30.0)).unwrap();
    assert!(lines.iter().any(|l| l.starts_with("resampled from")), "{lines:?}");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("fixed.npz");
    fixed.write(model, &path).unwrap();
    let bytes = std::fs::read(&path).unwrap();
    let back = motion::read(model, "fixed.npz", &bytes, &MotionFormat::default()).unwrap();
    assert!(back.notes.is_empty(), "{:?}", back.notes);
    assert!(back.examined(model).beyond.is_empty());
}
