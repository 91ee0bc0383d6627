//! Arrays of numpy, as mjlab and holosoma write them.
//!
//! ```text
//! fps [1], joint_pos [T, nj], joint_vel [T, nj], body_pos_w [T, nb, 3], body_quat_w [T, nb, 4],
//! body_lin_vel_w [T, nb, 3], body_ang_vel_w [T, nb, 3]        mjlab: no names, the robot's order
//! the same, joint_names, body_names; joint_pos [T, 7 + nj], joint_vel [T, 6 + nj]    holosoma
//! ```
//! The root's columns are a position, a quaternion and two velocities, all in the world.

mod bodies;

use super::error::MotionError;
use super::format::{MotionFormat, QuatOrder};
use super::given::{Bodies, Given, Robot, enough, step, unit};
use super::names::Of;
use crate::rotation::Pose;
use crate::{Quat, Vec3};
use ostler_base::npz::{Npz, Numbers};
use std::io::Cursor;
use std::path::Path;

const READ: [&str; 9] = [
    "fps",
    "joint_pos",
    "joint_vel",
    "body_pos_w",
    "body_quat_w",
    "body_lin_vel_w",
    "body_ang_vel_w",
    "joint_names",
    "body_names",
];

struct Reader<'a, 'b> {
    robot: &'a Robot<'a>,
    npz: Npz<Cursor<&'b [u8]>>,
    order: QuatOrder,
}

/// Reads a file into the robot's order.
pub(super) fn read(
    robot: &Robot<'_>,
    bytes: &[u8],
    format: &MotionFormat,
    notes: &mut Vec<String>,
) -> Result<Given, MotionError> {
    let npz = Npz::read(Path::new("the file"), bytes)?;
    let order = format.quat.unwrap_or(QuatOrder::Wxyz);
    Reader { robot, npz, order }.given(format, notes)
}

impl Reader<'_, '_> {
    fn given(
        mut self,
        format: &MotionFormat,
        notes: &mut Vec<String>,
    ) -> Result<Given, MotionError> {
        let robot = self.robot;
        self.left_aside(notes);
        let step = step(self.fps()?, format.fps)?;
        let positions = self.npz.numbers("joint_pos")?;
        let frames = positions.shape.first().copied().unwrap_or(0);
        enough(robot, "array joint_pos", frames)?;
        let names = self.joint_names(format, notes)?;
        let columns = match &names {
            Some(names) => {
                let of = Of { kind: "joint", place: self.names_place() };
                of.columns(names, &robot.joint_names())?
            }
            None => (0..robot.joints.len()).collect(),
        };
        let nj = columns.len();
        let lead = leading(&positions, "joint_pos", nj, robot.leading().0, names.is_some())?;
        self.finite("joint_pos", &positions, &names, lead)?;
        let joints = picked(&positions, lead, &columns);
        let bodies = self.bodies(frames, notes)?;
        let (root, root_place) = self.root(&positions, lead, bodies.as_ref())?;
        let (joint_velocity, mut root_velocity) = match self.npz.has("joint_vel") {
            false => (None, None),
            true => self.velocities(frames, &columns, &names)?,
        };
        let place = |array: &str| {
            format!("array {array}, body {}", robot.model.bodies[robot.root_body()].name)
        };
        if root_velocity.is_none() && robot.root.is_some() {
            let of_root = bodies.as_ref().and_then(|b| b.velocities_of(robot.root_body()));
            root_velocity =
                of_root.map(|v| (v, [place("body_lin_vel_w"), place("body_ang_vel_w")]));
        }
        let assumed = !self.npz.has("body_names");
        Ok(Given {
            frames,
            step,
            root,
            root_place,
            joints,
            root_velocity,
            joint_velocity,
            bodies,
            last_w: self.order == QuatOrder::Xyzw,
            assumed,
        })
    }

    fn left_aside(&self, notes: &mut Vec<String>) {
        let others: Vec<String> =
            self.npz.names().into_iter().filter(|n| !READ.contains(&n.as_str())).collect();
        if !others.is_empty() {
            notes.push(format!(
                "left aside: arrays {}; a motion is of the robot alone",
                others.join(", ")
            ));
        }
    }

    fn fps(&mut self) -> Result<Option<f64>, MotionError> {
        if !self.npz.has("fps") {
            return Ok(None);
        }
        let fps = self.npz.numbers("fps")?;
        match fps.values.as_slice() {
            [fps] => Ok(Some(*fps)),
            _ => Err(MotionError::new(
                "array fps",
                format!("it has shape {:?}, and holds one number", fps.shape),
                "write fps=[50]",
            )),
        }
    }

    fn names_place(&self) -> &'static str {
        if self.npz.has("joint_names") { "array joint_names" } else { "key joints" }
    }

    /// Names of the columns of joints; `None`: they are in the robot's order.
    fn joint_names(
        &mut self,
        format: &MotionFormat,
        notes: &mut Vec<String>,
    ) -> Result<Option<Vec<String>>, MotionError> {
        if !self.npz.has("joint_names") {
            if format.joints.is_empty() {
                notes.push(
                    "assumed: joints in the robot's order, as the file has no joint_names; if it is another, give the key joints".into(),
                );
            }
            return Ok((!format.joints.is_empty()).then(|| format.joints.clone()));
        }
        let names = self.npz.texts("joint_names")?;
        if !format.joints.is_empty() && format.joints != names {
            return Err(MotionError::new(
                "key joints",
                "it contradicts the names of the file's joint_names",
                "leave the key out",
            ));
        }
        Ok(Some(names))
    }

    /// Every number of a table must be finite.
    fn finite(
        &self,
        array: &str,
        numbers: &Numbers,
        names: &Option<Vec<String>>,
        lead: usize,
    ) -> Result<(), MotionError> {
        let width = numbers.shape.get(1).copied().unwrap_or(1).max(1);
        let bad = numbers.values.iter().enumerate().find(|(_, x)| !x.is_finite());
        let Some((i, value)) = bad else { return Ok(()) };
        let (frame, column) = (i / width, i % width);
        let name = match (column.checked_sub(lead), names) {
            (None, _) => format!("column {column} (the root's)"),
            (Some(j), Some(names)) => format!("joint {}", names.get(j).map_or("", |n| n)),
            (Some(j), None) => format!("joint {}", self.robot.joint_name(j)),
        };
        Err(not_finite(format!("array {array}, frame {frame}, {name}"), *value))
    }

    /// The root's poses and where they stand; none for robots without a free joint.
    fn root(
        &self,
        positions: &Numbers,
        lead: usize,
        bodies: Option<&Bodies>,
    ) -> Result<(Vec<Pose>, String), MotionError> {
        let robot = self.robot;
        if robot.root.is_none() {
            return Ok((Vec::new(), String::new()));
        }
        let body = robot.root_body();
        let name = &robot.model.bodies[body].name;
        if lead == 7 {
            let width = positions.shape.get(1).copied().unwrap_or(1).max(1);
            let rows = positions.values.chunks_exact(width).enumerate().map(|(t, row)| {
                let place = || format!("array joint_pos, frame {t}, the root's columns 3 to 6");
                let quat = unit(self.order.sorted(four(&row[3..])), place)?;
                Ok(Pose { pos: three(row), quat })
            });
            let poses: Result<_, MotionError> = rows.collect();
            return Ok((poses?, "array joint_pos, the root's columns".into()));
        }
        let column = bodies.and_then(|b| Some((b, b.of.iter().position(|o| *o == body)?)));
        let (bodies, column) = column.ok_or_else(|| {
            MotionError::new(
                format!("the robot's root, body {name}"),
                "the file does not say where it is",
                "add seven columns before the joints of joint_pos (x y z and a quaternion w x y z), or body_pos_w and body_quat_w with this body",
            )
        })?;
        let columns = bodies.of.len();
        let all = bodies.pos.iter().zip(&bodies.quat).skip(column).step_by(columns);
        let poses = all.map(|(pos, quat)| Pose { pos: *pos, quat: *quat }).collect();
        Ok((poses, format!("array body_pos_w, body {name}")))
    }

    /// Velocities of the joints, and of the root where there are columns of it.
    #[allow(clippy::type_complexity)]
    fn velocities(
        &mut self,
        frames: usize,
        columns: &[usize],
        names: &Option<Vec<String>>,
    ) -> Result<(Option<Vec<f64>>, Option<(Vec<[Vec3; 2]>, [String; 2])>), MotionError> {
        let numbers = self.npz.numbers("joint_vel")?;
        let found = numbers.shape.first().copied().unwrap_or(0);
        if numbers.shape.len() == 2 && found != frames {
            return Err(other_length("joint_vel", found, frames));
        }
        let lead =
            leading(&numbers, "joint_vel", columns.len(), self.robot.leading().1, names.is_some())?;
        self.finite("joint_vel", &numbers, names, lead)?;
        let root = (lead == 6).then(|| {
            let width = 6 + columns.len();
            let rows = numbers.values.chunks_exact(width);
            let all = rows.map(|row| [three(row), three(&row[3..])]).collect();
            let place = |c: &str| format!("array joint_vel, the root's columns {c}");
            (all, [place("0 to 2"), place("3 to 5")])
        });
        Ok((Some(picked(&numbers, lead, columns)), root))
    }
}

fn not_finite(place: String, value: f64) -> MotionError {
    let help = "a motion has finite numbers only; see what the program that wrote it divides by";
    MotionError::new(place, format!("the number is {value}"), help)
}

fn other_length(name: &str, found: usize, frames: usize) -> MotionError {
    MotionError::new(
        format!("array {name}"),
        format!("{found} frames, and joint_pos has {frames}"),
        "all arrays of a motion have the same number of frames",
    )
}

/// Leading columns of the root, before `nj` joints: `root` of them or none.
fn leading(
    numbers: &Numbers,
    name: &str,
    nj: usize,
    root: usize,
    named: bool,
) -> Result<usize, MotionError> {
    let columns = match numbers.shape[..] {
        [_, columns] => columns,
        _ => {
            return Err(MotionError::new(
                format!("array {name}"),
                format!("it has shape {:?}, expected [frames, joints]", numbers.shape),
                "check which array this is",
            ));
        }
    };
    match columns.checked_sub(nj) {
        Some(lead) if lead == 0 || lead == root => Ok(lead),
        _ => {
            let whose = if named { "joint_names has" } else { "the robot has" };
            let with = match root {
                0 => String::new(),
                n => format!(", or {} with {n} of the root before them", nj + n),
            };
            Err(MotionError::new(
                format!("array {name}"),
                format!("{columns} columns, and {whose} {nj} joints: expected {nj}{with}"),
                "take the robot that the file is of, or name its columns by joint_names",
            ))
        }
    }
}

/// The joints' columns in the robot's order `[T][nj]`.
fn picked(numbers: &Numbers, lead: usize, columns: &[usize]) -> Vec<f64> {
    let width = numbers.shape.get(1).copied().unwrap_or(1).max(1);
    let rows = numbers.values.chunks_exact(width);
    rows.flat_map(|row| columns.iter().map(move |c| row[lead + c])).collect()
}

fn three(row: &[f64]) -> Vec3 {
    [0, 1, 2].map(|i| row[i])
}

fn four(row: &[f64]) -> Quat {
    [0, 1, 2, 3].map(|i| row[i])
}
