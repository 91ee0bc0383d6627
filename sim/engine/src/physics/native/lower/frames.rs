//! Frames that nearly coincide count as one, as in MuJoCo.
//!
//! A geom or site within 1e-6 of its body's frame or of the body's inertial frame has
//! exactly that frame in MuJoCo's kinematics (`geom_sameframe`, `mj_local2Global`),
//! and an inertial frame within 1e-6 of the body's is the body's (`body_sameframe`).
//! Robots whose files were written with seven digits move by as much.

use ostler_model::{Model, Quat, Vec3};
use std::borrow::Cow;

/// Below this, entry by entry, positions (m) and quaternions are the same.
const NEAR: f64 = 1e-6;

/// A place on a body.
type Pose = (Vec3, Quat);

const NULL: Pose = ([0.0; 3], [1.0, 0.0, 0.0, 0.0]);

fn same_place(a: Vec3, b: Vec3) -> bool {
    a.iter().zip(b).all(|(x, y)| (x - y).abs() < NEAR)
}

/// A quaternion and its negative are the same.
fn same_turn(a: Quat, b: Quat) -> bool {
    let plus = a.iter().zip(b).all(|(x, y)| (x - y).abs() < NEAR);
    plus || a.iter().zip(b).all(|(x, y)| (x + y).abs() < NEAR)
}

/// `pose` with what it shares with the first of `frames` that it shares anything with:
/// both parts, or the orientation alone.
fn snapped(pose: Pose, frames: &[Pose]) -> Pose {
    for frame in frames {
        if same_turn(pose.1, frame.1) {
            let place = same_place(pose.0, frame.0);
            return (if place { frame.0 } else { pose.0 }, frame.1);
        }
    }
    pose
}

/// The model as kinematics see it.
pub(crate) fn merged(model: &Model) -> Cow<'_, Model> {
    let mut seen = Cow::Borrowed(model);
    for (i, body) in model.bodies.iter().enumerate() {
        let own = (body.ipos, body.iquat);
        let new = snapped(own, &[NULL]);
        if new != own {
            let body = &mut seen.to_mut().bodies[i];
            (body.ipos, body.iquat) = new;
        }
    }
    let inertial = |b: usize| {
        let body = &model.bodies[b];
        (body.ipos, body.iquat)
    };
    for (i, geom) in model.geoms.iter().enumerate() {
        let own = (geom.pos, geom.quat);
        let new = snapped(own, &[NULL, inertial(geom.body)]);
        if new != own {
            let geom = &mut seen.to_mut().geoms[i];
            (geom.pos, geom.quat) = new;
        }
    }
    for (i, site) in model.sites.iter().enumerate() {
        let own = (site.pos, site.quat);
        let new = snapped(own, &[NULL, inertial(site.body)]);
        if new != own {
            let site = &mut seen.to_mut().sites[i];
            (site.pos, site.quat) = new;
        }
    }
    seen
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pose_takes_over_what_it_nearly_shares() {
        let tilted = ([0.1, 0.0, 0.0], [0.8, 0.6, 0.0, 0.0]);
        let near = ([0.1 + 9e-7, 0.0, 0.0], [-0.8, -0.6 - 9e-7, 0.0, 0.0]);
        assert_eq!(snapped(near, &[NULL, tilted]), tilted);
        let aside = ([0.1 + 2e-6, 0.0, 0.0], near.1);
        assert_eq!(snapped(aside, &[NULL, tilted]), (aside.0, tilted.1));
        let turned = (tilted.0, [0.8, 0.6, 2e-6, 0.0]);
        assert_eq!(snapped(turned, &[NULL, tilted]), turned);
        assert_eq!(snapped(([0.0; 3], [1.0, 9e-7, 0.0, 0.0]), &[NULL]), NULL);
    }
}
