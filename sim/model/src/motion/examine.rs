//! What a motion asks of its robot: limits, speeds, and how it stands on the floor z = 0.

use super::check::{lowest, outside};
use super::{BODY, Motion};
use crate::rotation::{Pose, add, cross};
use crate::{Geom, GeomKind, JointKind, Model, Transmission, Vec3};

/// Shapes whose lowest point comes this near to the floor (m) are looked at.
const NEAR: f64 = 0.05;
/// A shape touches the floor while it is this near to it, or to the lowest that it comes (m).
const TOUCH: f64 = 0.02;
const ABOVE_LOWEST: f64 = 0.01;

/// What a motion asks of its robot.
#[derive(Debug, Clone, PartialEq)]
pub struct Examination {
    /// Joints beyond their limits, the worst first.
    pub beyond: Vec<Beyond>,
    /// The greatest speed of every joint that moves, the fastest first.
    pub speeds: Vec<Speed>,
    /// The greatest speed of the root (m/s), the frame, and likewise of its turning (rad/s).
    pub root: Option<[(f64, usize); 2]>,
    /// Shapes that can touch the floor and come near it, the lowest first.
    pub floor: Vec<Stance>,
    /// Height of the robot's lowest point over the clip (m), and the frame.
    pub lowest: (f64, usize),
}

/// A joint beyond its limits.
#[derive(Debug, Clone, PartialEq)]
pub struct Beyond {
    /// The joint.
    pub joint: usize,
    /// By how much at the most (rad, m), and in which frame.
    pub most: f64,
    /// That frame.
    pub frame: usize,
    /// In how many frames it is beyond them.
    pub frames: usize,
}

/// The greatest speed of a joint.
#[derive(Debug, Clone, PartialEq)]
pub struct Speed {
    /// The joint.
    pub joint: usize,
    /// Its speed (rad/s, m/s).
    pub most: f64,
    /// The frame.
    pub frame: usize,
    /// The speed at which its motor has no effort any more, where the robot says one.
    pub limit: Option<f64>,
}

/// How a shape meets the floor.
#[derive(Debug, Clone, PartialEq)]
pub struct Stance {
    /// The shape.
    pub geom: usize,
    /// The lowest height of its lowest point (m); below 0 it sinks in.
    pub lowest: f64,
    /// That frame.
    pub frame: usize,
    /// Frames in which it touches the floor: within 2 cm of it, or 1 cm of its lowest height.
    pub touching: usize,
    /// Horizontal speed of the point below its middle while it touches: the mean and the
    /// greatest (m/s); 0 for a foot that stands.
    pub sliding: [f64; 2],
    /// The frame of the greatest.
    pub fastest: usize,
}

impl Motion {
    /// Looks at every frame of a motion of this robot.
    pub fn examined(&self, model: &Model) -> Examination {
        let joints = || model.joints.iter().enumerate().filter(|(_, j)| j.is_scalar());
        let mut beyond: Vec<Beyond> = joints()
            .filter_map(|(j, joint)| {
                let range = joint.range?;
                let all = self.qpos.iter().skip(joint.qpos_adr).step_by(model.nq.max(1));
                // A limit that was rounded to single precision is none that is exceeded.
                let all = all.map(|q| outside(range, *q)).enumerate().filter(|(_, x)| *x > 1e-4);
                let mut out = Beyond { joint: j, most: 0.0, frame: 0, frames: 0 };
                for (t, most) in all {
                    out.frames += 1;
                    if most > out.most {
                        (out.most, out.frame) = (most, t);
                    }
                }
                (out.frames > 0).then_some(out)
            })
            .collect();
        beyond.sort_by(|a, b| b.most.total_cmp(&a.most));
        let mut speeds: Vec<Speed> = joints()
            .map(|(j, joint)| {
                let all = self.qvel.iter().skip(joint.dof_adr).step_by(model.nv.max(1));
                let (most, frame) = greatest(all.map(|v| v.abs()));
                Speed { joint: j, most, frame, limit: motor_speed(model, j) }
            })
            .collect();
        speeds.sort_by(|a, b| b.most.total_cmp(&a.most));
        let free = model.joints.iter().find(|j| j.kind == JointKind::Free);
        let root = free.map(|joint| {
            [0, 3].map(|k| {
                let rows = self.qvel.chunks_exact(model.nv);
                greatest(rows.map(|v| length(&v[joint.dof_adr + k..joint.dof_adr + k + 3])))
            })
        });
        let heights = self.heights(model);
        let (low, frame) = greatest(heights.iter().map(|h| -h));
        let mut floor: Vec<Stance> =
            (0..model.geoms.len()).filter_map(|g| self.stance(model, g)).collect();
        floor.sort_by(|a, b| a.lowest.total_cmp(&b.lowest));
        Examination { beyond, speeds, root, floor, lowest: (-low, frame) }
    }

    /// The height of the robot's lowest point in every frame (m).
    pub fn heights(&self, model: &Model) -> Vec<f64> {
        (0..self.frames).map(|t| lowest(model, &self.poses(t))).collect()
    }

    fn poses(&self, frame: usize) -> Vec<Pose> {
        let bodies = self.bodies_at(frame).chunks_exact(BODY);
        bodies.map(|b| Pose { pos: [b[0], b[1], b[2]], quat: [b[3], b[4], b[5], b[6]] }).collect()
    }

    /// How a shape meets the floor; `None`: it does not.
    fn stance(&self, model: &Model, index: usize) -> Option<Stance> {
        let geom = &model.geoms[index];
        if !meets_floor(model, geom) {
            return None;
        }
        let at = |t: usize| {
            let body = &self.bodies_at(t)[geom.body * BODY..(geom.body + 1) * BODY];
            let frame = Pose {
                pos: [body[0], body[1], body[2]],
                quat: [body[3], body[4], body[5], body[6]],
            };
            let pose = frame.then(Pose { pos: geom.pos, quat: geom.quat });
            let low = -geom.reach(model, pose, [0.0, 0.0, -1.0]);
            let point: Vec3 = [pose.pos[0], pose.pos[1], low];
            let arm = [0, 1, 2].map(|i| point[i] - frame.pos[i]);
            let speed =
                add([body[7], body[8], body[9]], cross([body[10], body[11], body[12]], arm));
            (low, speed[0].hypot(speed[1]))
        };
        let all: Vec<(f64, f64)> = (0..self.frames).map(at).collect();
        let (low, frame) = greatest(all.iter().map(|a| -a.0));
        let lowest = -low;
        if lowest > NEAR {
            return None;
        }
        let touches = |low: f64| low <= TOUCH.max(lowest + ABOVE_LOWEST);
        let speeds = || all.iter().map(|(low, speed)| if touches(*low) { *speed } else { 0.0 });
        let touching = all.iter().filter(|a| touches(a.0)).count();
        let (most, fastest) = greatest(speeds());
        let mean = speeds().sum::<f64>() / touching.max(1) as f64;
        Some(Stance { geom: index, lowest, frame, touching, sliding: [mean, most], fastest })
    }
}

/// Whether a shape of the robot collides with a floor: with the planes and grounds of its file,
/// or with anything where that has none.
fn meets_floor(model: &Model, geom: &Geom) -> bool {
    let ground =
        |g: &Geom| matches!(g.kind, GeomKind::Plane | GeomKind::Hfield(_) | GeomKind::Terrain);
    if model.bodies[geom.body].weld == 0 || ground(geom) {
        return false;
    }
    let meets = |floor: &Geom| {
        geom.contype & floor.conaffinity != 0 || floor.contype & geom.conaffinity != 0
    };
    let mut grounds = model.geoms.iter().filter(|g| ground(g)).peekable();
    match grounds.peek() {
        Some(_) => grounds.any(meets),
        None => geom.contype != 0 || geom.conaffinity != 0,
    }
}

/// The speed at which the motor of a joint has no effort any more.
fn motor_speed(model: &Model, joint: usize) -> Option<f64> {
    let drives = |t: &Transmission| matches!(t, Transmission::Joint(j) | Transmission::JointInParent(j) if *j == joint);
    let of = model.actuators.iter().filter(|a| drives(&a.transmission));
    let falls = of.filter_map(|a| Some(a.motor.as_ref()?.law.limit()?.fall?[1]));
    falls.reduce(f64::min)
}

/// The greatest number and where it stands; the least number there is where there are none.
fn greatest(all: impl Iterator<Item = f64>) -> (f64, usize) {
    all.enumerate().fold((f64::NEG_INFINITY, 0), |a, (i, x)| if x > a.0 { (x, i) } else { a })
}

fn length(v: &[f64]) -> f64 {
    v.iter().map(|x| x * x).sum::<f64>().sqrt()
}
