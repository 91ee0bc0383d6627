//! A quaternion in the wrong order, told by where the robot would be: lying in the air.

use crate::edit::bottom;
use crate::motion::error::MotionError;
use crate::motion::given::{Given, Robot};
use crate::rest::Rest;
use crate::rotation::{Pose, conjugate, mul, rotate};
use crate::{GeomKind, Model};

/// How a clip stands on the floor z = 0.
struct Stand {
    /// Mean distance of the robot's lowest point from the floor (m).
    off: f64,
    /// Mean angle between the root's vertical and that of the initial pose (rad).
    tilt: f64,
}

/// The lowest point of a robot's shapes in one pose (m), of those that collide if there are
/// any; of its bodies' origins where there are no shapes.
pub(in crate::motion) fn lowest(model: &Model, bodies: &[Pose]) -> f64 {
    let moving = |b: usize| model.bodies[b].weld != 0;
    let own = || {
        model.geoms.iter().filter(|g| {
            moving(g.body)
                && !matches!(g.kind, GeomKind::Plane | GeomKind::Hfield(_) | GeomKind::Terrain)
        })
    };
    let collides = own().any(|g| g.contype != 0 || g.conaffinity != 0);
    let shapes = own().filter(|g| !collides || g.contype != 0 || g.conaffinity != 0);
    bottom(model, bodies, shapes).unwrap_or_else(|| {
        let origins = (1..bodies.len()).filter(|b| moving(*b)).map(|b| bodies[b].pos[2]);
        origins.fold(f64::INFINITY, f64::min)
    })
}

/// Compares the clip as it was read with what the other order of its quaternions would mean.
///
/// # Errors
/// The other order puts the robot on its feet, and this one does not.
pub(in crate::motion) fn floor(robot: &Robot<'_>, given: &Given) -> Result<(), MotionError> {
    if robot.root.is_none() {
        return Ok(());
    }
    let as_read = stand(robot, given);
    // What the numbers mean in the other order is known without knowing which one was read:
    // w x y z taken for x y z w, or the reverse.
    let others = [crate::motion::QuatOrder::Wxyz, crate::motion::QuatOrder::Xyzw];
    let order = if given.last_w { others[1] } else { others[0] };
    let mut other = given.clone();
    for pose in &mut other.root {
        pose.quat = order.mistaken(pose.quat);
    }
    let swapped = stand(robot, &other);
    let upright = swapped.tilt + 0.5 < as_read.tilt;
    let lower = swapped.off < 0.7 * as_read.off || swapped.off < 0.05;
    let far = as_read.off > 0.1 && swapped.off < 0.3 * as_read.off && swapped.tilt < as_read.tilt;
    if !(upright && lower || far) {
        return Ok(());
    }
    Err(MotionError::new(
        format!("{}, the quaternion", given.root_place),
        format!(
            "read as {} the robot is tilted by {:.0} degrees in the mean and its lowest point is {:.2} m from the floor; read as {} by {:.0} degrees and {:.2} m",
            order.word(),
            as_read.tilt.to_degrees(),
            as_read.off,
            order.other().word(),
            swapped.tilt.to_degrees(),
            swapped.off
        ),
        format!("say quat = \"{}\" (--quat {})", order.other().word(), order.other().word()),
    ))
}

fn stand(robot: &Robot<'_>, given: &Given) -> Stand {
    let model = robot.model;
    let root = robot.root_body();
    let first = Rest::new(model, &model.qpos0).bodies[root].quat;
    let frames = given.sample();
    let poses = given.poses_at(robot, &frames);
    let (mut off, mut tilt) = (0.0, 0.0);
    for bodies in poses.chunks_exact(model.bodies.len()) {
        off += lowest(model, bodies).abs();
        let up = rotate(mul(bodies[root].quat, conjugate(first)), [0.0, 0.0, 1.0]);
        tilt += up[2].clamp(-1.0, 1.0).acos();
    }
    let count = frames.len().max(1) as f64;
    Stand { off: off / count, tilt: tilt / count }
}
