//! A second parser, mjcf-rs, reads the shipped robots as we do.
//!
//! It knows names, poses, joints, shapes and actuators; solver parameters and
//! most options are beyond it (MuJoCo itself checks those: `mjcf_referee`).

use mjcf_rs::body::{GeomType, JointType};
use mjcf_rs::extras::ActuatorKind;
use ostler_sim::model::{GeomKind, JointKind, Model, mjcf};
use std::path::{Path, PathBuf};

fn robots() -> impl Iterator<Item = PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs/robots");
    std::fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.extension().is_some_and(|e| e == "xml"))
}

#[track_caller]
fn same(ours: &[f64], theirs: &[f64], what: &str) {
    let equal = ours.len() == theirs.len()
        && ours.iter().zip(theirs).all(|(a, b)| (a - b).abs() <= 1e-12 * (1.0 + b.abs()));
    assert!(equal, "{what}: {ours:?}, mjcf-rs has {theirs:?}");
}

#[test]
fn mjcf_rs_reads_the_shipped_robots_alike() {
    let mut read = 0;
    for path in robots() {
        let ours = mjcf::load(&path).unwrap();
        // mjcf-rs passes over <attach>.
        if ours.sources.len() > 1 {
            continue;
        }
        let theirs = mjcf_rs::Model::from_file(&path).unwrap();
        compare(&ours, &theirs);
        read += 1;
    }
    assert!(read >= 7);
}

fn compare(ours: &Model, theirs: &mjcf_rs::Model) {
    assert_eq!(theirs.name.as_deref(), Some(ours.name.as_str()));
    same(&[ours.options.timestep], &[theirs.option.timestep], "timestep");
    same(&ours.options.gravity, &theirs.option.gravity, "gravity");
    assert_eq!(ours.bodies.len(), theirs.bodies.len(), "{}", ours.name);
    for (id, entry) in theirs.bodies_iter() {
        let (b, t) = (&ours.bodies[id], &entry.body);
        let what = &b.name;
        if id > 0 {
            assert_eq!(t.name.as_deref(), Some(what.as_str()));
            assert_eq!(entry.parent, Some(b.parent), "{what}");
            same(&b.pos, &t.pose.translation.to_array(), what);
        }
        if let Some(inertial) = &t.inertial {
            same(&[b.mass], &[inertial.mass], what);
        }
        joints(ours, b.joints.clone(), &t.joints);
        geoms(ours, b.geoms.clone(), &t.geoms);
    }
    actuators(ours, theirs);
    assert_eq!(ours.keyframes.len(), theirs.keyframes.len());
    for (k, t) in ours.keyframes.iter().zip(&theirs.keyframes) {
        assert_eq!(t.name.as_deref(), Some(k.name.as_str()));
        same(&k.qpos, &t.qpos, "qpos of a keyframe");
    }
}

fn joints(m: &Model, range: std::ops::Range<usize>, theirs: &[mjcf_rs::body::Joint]) {
    assert_eq!(range.len(), theirs.len());
    for (j, t) in m.joints[range].iter().zip(theirs) {
        let what = j.name.as_str();
        assert_eq!(t.name.as_deref(), Some(what));
        let kind = match t.type_ {
            JointType::Hinge => JointKind::Hinge,
            JointType::Slide => JointKind::Slide,
            JointType::Ball => JointKind::Ball,
            JointType::Free => JointKind::Free,
        };
        assert_eq!(j.kind, kind, "{what}");
        same(&j.pos, &t.pos, what);
        if matches!(kind, JointKind::Hinge | JointKind::Slide) {
            let norm = t.axis.iter().map(|x| x * x).sum::<f64>().sqrt();
            same(&j.axis, &t.axis.map(|x| x / norm), what);
        }
        assert_eq!(j.range.is_some(), t.limited.resolve(true, t.range.is_some()), "{what}");
        if let (Some(a), Some(b)) = (j.range, t.range) {
            same(&a, &b, what);
        }
        same(
            &[j.damping, j.stiffness, j.armature, j.springref, j.reference, j.margin],
            &[t.damping, t.stiffness, t.armature, t.springref, t.ref_, t.margin],
            what,
        );
    }
}

fn geoms(m: &Model, range: std::ops::Range<usize>, theirs: &[mjcf_rs::body::Geom]) {
    assert_eq!(range.len(), theirs.len());
    for (g, t) in m.geoms[range].iter().zip(theirs) {
        let what = g.name.as_str();
        assert_eq!(t.name.as_deref(), Some(what));
        let (kind, sizes) = match t.type_ {
            GeomType::Plane => (GeomKind::Plane, 3),
            GeomType::Sphere => (GeomKind::Sphere, 1),
            GeomType::Capsule => (GeomKind::Capsule, 2),
            GeomType::Ellipsoid => (GeomKind::Ellipsoid, 3),
            GeomType::Cylinder => (GeomKind::Cylinder, 2),
            GeomType::Box => (GeomKind::Box, 3),
            other => panic!("{what}: {other:?}"),
        };
        assert_eq!(g.kind, kind, "{what}");
        match t.fromto {
            Some(ends) => {
                let length: f64 =
                    (0..3).map(|i| (ends[i] - ends[i + 3]).powi(2)).sum::<f64>().sqrt();
                same(&g.size[..2], &[t.size[0], 0.5 * length], what);
                let middle: Vec<_> = (0..3).map(|i| 0.5 * (ends[i] + ends[i + 3])).collect();
                same(&g.pos, &middle, what);
            }
            None => {
                same(&g.size[..sizes], &t.size[..sizes], what);
                same(&g.pos, &t.pose.translation.to_array(), what);
                // mjcf-rs loses an orientation that comes from a default class.
                if g.kind != GeomKind::Cylinder {
                    let r = t.pose.rotation;
                    let dot = g.quat[0] * r.w + g.quat[1] * r.x + g.quat[2] * r.y + g.quat[3] * r.z;
                    same(&[dot.abs()], &[1.0], what);
                }
            }
        }
        assert_eq!(
            (g.contype, g.conaffinity, g.condim, g.priority),
            (t.contype, t.conaffinity, t.condim, t.priority),
            "{what}"
        );
        same(&g.friction, &t.friction, what);
        same(&[g.margin], &[t.margin], what);
    }
}

fn actuators(ours: &Model, theirs: &mjcf_rs::Model) {
    assert_eq!(ours.nu(), theirs.actuators.len());
    for (a, t) in ours.actuators.iter().zip(&theirs.actuators) {
        let what = a.name.as_str();
        assert_eq!(t.name.as_deref(), Some(what));
        assert_eq!(t.joint.as_deref(), Some(ours.joints[a.joint().unwrap()].name.as_str()));
        same(&a.gear, &t.gear, what);
        assert_eq!(a.ctrlrange, t.ctrl_range, "{what}");
        assert_eq!(a.forcerange, t.force_range, "{what}");
        match t.kind {
            ActuatorKind::Motor => same(&a.gain, &[1.0, 0.0, 0.0], what),
            ActuatorKind::Position => {
                same(&[a.gain[0], -a.bias[1]], &[t.kp.unwrap(); 2], what);
                same(&[-a.bias[2]], &[t.kv.unwrap()], what);
            }
            other => panic!("{what}: {other:?}"),
        }
    }
}
