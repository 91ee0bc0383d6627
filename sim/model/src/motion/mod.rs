//! Motions to imitate: files of poses over time, held against the robot before they are used.
//!
//! [`read`] takes arrays of numpy as mjlab and holosoma write them, and tables of text as
//! Unitree publishes them. Such files say little about themselves: the order of joints, of
//! bodies and of a quaternion's numbers, the frames of velocities. A wrong guess trains a
//! policy for nothing. So every claim of a file that another one of its claims can contradict
//! is compared with it, and the error names the place, the cause and a remedy.
//!
//! `npz` and `csv` bring a file into the robot's order (`given`), `check` holds it against
//! the robot, `differences` takes velocities from positions, `resample` gives it another step,
//! `write` writes it; `examine` and `mend`
//! are for `ostler motion`.

mod check;
mod csv;
mod differences;
mod error;
mod examine;
mod format;
mod given;
mod mend;
mod names;
mod npz;
mod resample;
#[cfg(test)]
mod tests;
mod write;

pub use error::MotionError;
pub use examine::{Beyond, Examination, Speed, Stance};
use format::MOST;
pub use format::{BODY, MotionFormat, QuatOrder};

use crate::Model;
use crate::rest::Rest;
use crate::rotation::{Pose, conjugate, rotate};
use given::{Given, Robot};

/// A motion of a robot, frame by frame, in the order of the model's joints and bodies.
#[derive(Debug, Clone, PartialEq)]
pub struct Motion {
    /// Name, as a rule its file's.
    pub name: String,
    /// Time between two frames (s).
    pub step: f64,
    /// Number of frames T, 2 or more in a file.
    pub frames: usize,
    /// Generalised positions `[T][nq]`.
    pub qpos: Vec<f64>,
    /// Generalised velocities `[T][nv]`; of a free joint linear in the world, angular in the
    /// body's frame, as MuJoCo has them.
    pub qvel: Vec<f64>,
    /// Every body, the world too `[T][nbody][13]`; see [`BODY`].
    pub bodies: Vec<f64>,
    /// What was assumed, replaced or left aside, one line each with the remedy.
    pub notes: Vec<String>,
}

impl Motion {
    /// Bodies of one frame `[nbody][13]`; empty where there is no such frame.
    pub fn bodies_at(&self, frame: usize) -> &[f64] {
        let width = self.bodies.len() / self.frames.max(1);
        self.bodies.get(frame * width..(frame + 1) * width).unwrap_or_default()
    }

    /// Length (s): from the first frame to the last.
    pub fn duration(&self) -> f64 {
        self.frames.saturating_sub(1) as f64 * self.step
    }
}

/// Reads a motion of this robot; `name` is the file's, for messages and for what it is: `.npz`,
/// `.csv`. Every joint must be a hinge or a slide, but for one free joint at the root.
///
/// # Errors
/// The file is damaged, is of another robot, contradicts itself or cannot be understood
/// without a key of `format`; the robot has other joints; the motion takes more than 2 GiB.
pub fn read(
    model: &Model,
    name: &str,
    bytes: &[u8],
    format: &MotionFormat,
) -> Result<Motion, MotionError> {
    let motion = checked(model, name, bytes, format);
    motion.map_err(|e| MotionError { file: name.to_string(), ..e })
}

fn checked(
    model: &Model,
    name: &str,
    bytes: &[u8],
    format: &MotionFormat,
) -> Result<Motion, MotionError> {
    let robot = Robot::new(model)?;
    let mut notes = Vec::new();
    let given = match kind(name, bytes)? {
        Kind::Npz => npz::read(&robot, bytes, format, &mut notes)?,
        Kind::Csv => csv::read(&robot, bytes, format, &mut notes)?,
    };
    check::degrees(&robot, &given)?;
    check::jumps(&robot, &given, &mut notes)?;
    let poses = given.poses(&robot);
    match &given.bodies {
        Some(bodies) => check::bodies(&robot, &given, bodies, &poses, format, &mut notes)?,
        None => check::floor(&robot, &given)?,
    }
    check::limits(&robot, &given, &mut notes)?;
    let velocity = check::velocities(&robot, &given, &mut notes)?;
    Ok(assembled(&robot, name, &given, &velocity, &poses, notes))
}

enum Kind {
    Npz,
    Csv,
}

/// What a file is, by its first bytes and by its name.
fn kind(name: &str, bytes: &[u8]) -> Result<Kind, MotionError> {
    let ends = |end: &str| name.to_ascii_lowercase().ends_with(end);
    let other = |what: &str, help: &str| Err(MotionError::new("the file", what, help));
    let pickle = "a pickle of Python could run any program, and is not read";
    let arrays = "write its arrays with numpy.savez(\"motion.npz\", fps=[50], joint_names=..., joint_pos=..., ...)";
    match bytes {
        [] => other("it is empty", "copy it again"),
        [0x80, 0x02..=0x05, ..] => other(pickle, arrays),
        _ if ends(".pkl") || ends(".pickle") || ends(".pt") => other(pickle, arrays),
        [0x93, b'N', b'U', b'M', ..] => other("it is one array without a name (.npy)", arrays),
        [b'P', b'K', ..] => Ok(Kind::Npz),
        _ if ends(".npz") => Ok(Kind::Npz),
        _ => Ok(Kind::Csv),
    }
}

/// The motion of checked numbers.
fn assembled(
    robot: &Robot<'_>,
    name: &str,
    given: &Given,
    velocity: &check::Velocity,
    poses: &[Pose],
    mut notes: Vec<String>,
) -> Motion {
    let model = robot.model;
    let nbody = model.bodies.len();
    let mut motion = Motion {
        name: name.to_string(),
        step: given.step,
        frames: given.frames,
        qpos: Vec::with_capacity(given.frames * model.nq),
        qvel: Vec::with_capacity(given.frames * model.nv),
        bodies: Vec::with_capacity(given.frames * nbody * BODY),
        notes: Vec::new(),
    };
    for t in 0..given.frames {
        motion.qpos.extend(given.qpos(robot, t));
        motion.qvel.extend(velocity.qvel(robot, given, t));
    }
    let file = given.bodies.as_ref();
    let kept = check::body_velocities(robot, given, &motion, poses, &mut notes);
    for t in 0..given.frames {
        let start = motion.bodies.len();
        motion.bodies.extend(kinematics(
            model,
            &motion.qpos[t * model.nq..(t + 1) * model.nq],
            &motion.qvel[t * model.nv..(t + 1) * model.nv],
        ));
        let Some(file) = file else { continue };
        for (c, body) in file.of.iter().enumerate() {
            let at = start + body * BODY;
            let i = t * file.of.len() + c;
            motion.bodies[at..at + 3].copy_from_slice(&file.pos[i]);
            motion.bodies[at + 3..at + 7].copy_from_slice(&file.quat[i]);
            if let (Some(linear), true) = (&file.linear, kept.linear) {
                motion.bodies[at + 7..at + 10].copy_from_slice(&linear[i]);
            }
            if let (Some(angular), true) = (&file.angular, kept.angular) {
                motion.bodies[at + 10..at + 13].copy_from_slice(&angular[i]);
            }
        }
    }
    motion.notes = notes;
    motion
}

/// All bodies of one state `[nbody][13]`, see [`BODY`]; `qpos (nq)`, `qvel (nv)`.
pub fn kinematics(model: &Model, qpos: &[f64], qvel: &[f64]) -> Vec<f64> {
    let rest = Rest::new(model, qpos);
    let velocities = rest.velocities(qvel);
    let mut out = Vec::with_capacity(BODY * rest.bodies.len());
    for (pose, [linear, angular]) in rest.bodies.iter().zip(velocities) {
        out.extend(pose.pos.iter().chain(&pose.quat).chain(&linear).chain(&angular));
    }
    out
}

/// An angular velocity of the world's frame in that of a body.
fn into_body(quat: crate::Quat, world: crate::Vec3) -> crate::Vec3 {
    rotate(conjugate(quat), world)
}
