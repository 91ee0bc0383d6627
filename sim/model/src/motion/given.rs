//! A file's content in the robot's order, before it is checked.

use super::error::MotionError;
use super::format::{BODY, MOST};
use crate::rest::Rest;
use crate::rotation::{Pose, normalized};
use crate::{JointKind, Model, Quat, Vec3};

/// The parts of a robot that files of motions speak of.
pub(super) struct Robot<'a> {
    pub(super) model: &'a Model,
    /// The free joint of its root, if it has one.
    pub(super) root: Option<usize>,
    /// All other joints, in the model's order.
    pub(super) joints: Vec<usize>,
}

impl<'a> Robot<'a> {
    /// # Errors
    /// It has ball joints, or more than one free joint.
    pub(super) fn new(model: &'a Model) -> Result<Self, MotionError> {
        let of = |kind| move |j: &&crate::Joint| j.kind == kind;
        if let Some(ball) = model.joints.iter().find(of(JointKind::Ball)) {
            return Err(MotionError::new(
                format!("the robot, joint {}", ball.name),
                "it is a ball joint, and files of motions have one number for each joint",
                "model it as three hinges",
            ));
        }
        let mut free = model.joints.iter().enumerate().filter(|(_, j)| j.kind == JointKind::Free);
        let root = free.next().map(|(i, _)| i);
        if let Some((_, second)) = free.next() {
            return Err(MotionError::new(
                format!("the robot, joint {}", second.name),
                "it is a second free joint, and files of motions have one root",
                "read the motion with a file that has the robot alone",
            ));
        }
        let joints: Vec<usize> =
            (0..model.joints.len()).filter(|j| model.joints[*j].is_scalar()).collect();
        if joints.is_empty() {
            return Err(MotionError::new(
                "the robot",
                "it has no hinges and no slides",
                "take the file of a robot with joints",
            ));
        }
        Ok(Self { model, root, joints })
    }

    /// Names of its joints without the free one.
    pub(super) fn joint_names(&self) -> Vec<&'a str> {
        self.joints.iter().map(|j| self.model.joints[*j].name.as_str()).collect()
    }

    pub(super) fn joint_name(&self, j: usize) -> &'a str {
        self.joints.get(j).map_or("", |j| &self.model.joints[*j].name)
    }

    /// Names of its bodies without the world.
    pub(super) fn body_names(&self) -> Vec<&'a str> {
        self.model.bodies.iter().skip(1).map(|b| b.name.as_str()).collect()
    }

    /// The body that its free joint moves, or the first one.
    pub(super) fn root_body(&self) -> usize {
        self.root.map_or(1, |j| self.model.joints[j].body)
    }

    /// Leading columns of positions and velocities of the root.
    pub(super) fn leading(&self) -> (usize, usize) {
        if self.root.is_some() { (7, 6) } else { (0, 0) }
    }
}

/// What a file says, in the robot's order.
#[derive(Clone)]
pub(super) struct Given {
    pub(super) frames: usize,
    /// Time between frames (s).
    pub(super) step: f64,
    /// Poses of the root `[T]`; empty for robots without a free joint.
    pub(super) root: Vec<Pose>,
    /// Where they stand in the file.
    pub(super) root_place: String,
    /// Positions of the joints `[T][nj]`.
    pub(super) joints: Vec<f64>,
    /// Linear and angular velocity of the root in the world `[T]`, and where they stand.
    pub(super) root_velocity: Option<(Vec<[Vec3; 2]>, [String; 2])>,
    /// Velocities of the joints `[T][nj]`.
    pub(super) joint_velocity: Option<Vec<f64>>,
    pub(super) bodies: Option<Bodies>,
    /// The quaternions were read with w last.
    pub(super) last_w: bool,
    /// The bodies' order is the robot's by assumption: the file has no names.
    pub(super) assumed: bool,
}

/// Bodies of a file that the robot has, too; the lists are `[T][columns]`.
#[derive(Clone)]
pub(super) struct Bodies {
    /// The robot's body of each column.
    pub(super) of: Vec<usize>,
    pub(super) pos: Vec<Vec3>,
    pub(super) quat: Vec<Quat>,
    pub(super) linear: Option<Vec<Vec3>>,
    pub(super) angular: Option<Vec<Vec3>>,
}

impl Given {
    /// Generalised positions of a frame `(nq)`.
    pub(super) fn qpos(&self, robot: &Robot<'_>, frame: usize) -> Vec<f64> {
        let mut qpos = robot.model.qpos0.clone();
        if let (Some(root), Some(pose)) = (robot.root, self.root.get(frame)) {
            let at = robot.model.joints[root].qpos_adr;
            qpos[at..at + 3].copy_from_slice(&pose.pos);
            qpos[at + 3..at + 7].copy_from_slice(&pose.quat);
        }
        let nj = robot.joints.len();
        for (j, value) in robot.joints.iter().zip(&self.joints[frame * nj..(frame + 1) * nj]) {
            qpos[robot.model.joints[*j].qpos_adr] = *value;
        }
        qpos
    }

    /// Poses of all bodies by forward kinematics `[T][nbody]`.
    pub(super) fn poses(&self, robot: &Robot<'_>) -> Vec<Pose> {
        let pose = |t| Rest::new(robot.model, &self.qpos(robot, t)).bodies;
        (0..self.frames).flat_map(pose).collect()
    }

    /// The same of some frames only.
    pub(super) fn poses_at(&self, robot: &Robot<'_>, frames: &[usize]) -> Vec<Pose> {
        let pose = |t: &usize| Rest::new(robot.model, &self.qpos(robot, *t)).bodies;
        frames.iter().flat_map(pose).collect()
    }

    /// Frames of the whole clip, 64 at the most, evenly.
    pub(super) fn sample(&self) -> Vec<usize> {
        let count = self.frames.min(64);
        (0..count).map(|i| i * (self.frames - 1) / (count - 1).max(1)).collect()
    }
}

/// Checks how many frames there are before room is made for what follows from them.
pub(super) fn enough(robot: &Robot<'_>, place: &str, frames: usize) -> Result<(), MotionError> {
    if frames < 2 {
        return Err(MotionError::new(
            place,
            format!("{frames} frames, and a motion has 2 or more"),
            "check that the first index is the frame",
        ));
    }
    let model = robot.model;
    // Positions, velocities and bodies, and the poses that they are compared with.
    let numbers = model.nq + model.nv + model.bodies.len() * (2 * BODY);
    let bytes = (frames as u64).saturating_mul(8).saturating_mul(numbers as u64);
    if bytes > MOST {
        return Err(MotionError::new(
            place,
            format!("{frames} frames of this robot take {} MiB, more than 2 GiB", bytes >> 20),
            "cut the motion into several files",
        ));
    }
    Ok(())
}

/// Frames per second as the file and the key have them, as the time between two frames (s).
pub(super) fn step(file: Option<f64>, key: Option<f64>) -> Result<f64, MotionError> {
    let told = "give it: fps = 50 (--fps 50)";
    let right = |fps: f64, place: &str| match fps {
        _ if (1.0..=10_000.0).contains(&fps) => Ok(()),
        _ => Err(MotionError::new(
            place,
            format!("{fps} frames per second; 1 to 10000 are read"),
            told,
        )),
    };
    if let Some(fps) = file {
        right(fps, "array fps")?;
    }
    if let Some(fps) = key {
        right(fps, "key fps")?;
    }
    match (file, key) {
        (Some(file), Some(key)) if (file - key).abs() > 1e-3 * file => Err(MotionError::new(
            "array fps",
            format!("the file has {file} frames per second, and the key fps says {key}"),
            "leave the key out, or correct the file if it is wrong",
        )),
        (Some(fps), _) | (None, Some(fps)) => Ok(1.0 / fps),
        (None, None) => Err(MotionError::new(
            "the file",
            "it does not say how many frames a second has",
            format!("{told}; Unitree's LAFAN1 tables have 30"),
        )),
    }
}

/// A quaternion of unit length, scaled where it is off by rounding.
pub(super) fn unit(quat: Quat, place: impl Fn() -> String) -> Result<Quat, MotionError> {
    let square: f64 = quat.iter().map(|x| x * x).sum();
    // What was scaled once stays as it is, bit by bit.
    if (square - 1.0).abs() < 1e-12 {
        return Ok(quat);
    }
    let length = square.sqrt();
    match normalized(quat) {
        Some(quat) if (length - 1.0).abs() < 1e-2 => Ok(quat),
        _ => Err(MotionError::new(
            place(),
            format!("the quaternion ({}) has length {length:.4}, not 1", list(&quat)),
            "check which columns hold it; scale it to length 1 if it is the right one",
        )),
    }
}

fn list(numbers: &[f64]) -> String {
    let texts: Vec<String> = numbers.iter().map(|x| format!("{x:.4}")).collect();
    texts.join(", ")
}
