//! A file's claims held against the robot and against each other.

mod bodies;
mod floor;
mod pose;
mod velocities;

pub(super) use bodies::bodies;
pub(super) use floor::{floor, lowest};
pub(super) use pose::{degrees, jumps, limits, outside};
pub(super) use velocities::{Velocity, body_velocities, velocities};

use super::given::{Given, Robot};

/// For the robot's joints the columns that a file would have in breadth-first order, as Isaac
/// Lab lists joints; `None` where that is the robot's own order.
fn breadth_first_joints(robot: &Robot<'_>) -> Option<Vec<usize>> {
    let depths = depths(robot);
    let joints = &robot.joints;
    let mut order: Vec<usize> = (0..joints.len()).collect();
    order.sort_by_key(|j| depths[robot.model.joints[joints[*j]].body]);
    let mut columns = vec![0; order.len()];
    for (column, joint) in order.iter().enumerate() {
        columns[*joint] = column;
    }
    (!columns.is_sorted()).then_some(columns)
}

/// The robot's bodies without the world in breadth-first order.
fn breadth_first_bodies(robot: &Robot<'_>) -> Vec<usize> {
    let depths = depths(robot);
    let mut order: Vec<usize> = (1..robot.model.bodies.len()).collect();
    order.sort_by_key(|b| depths[*b]);
    order
}

/// How many bodies are above each.
fn depths(robot: &Robot<'_>) -> Vec<usize> {
    let mut depths = vec![0; robot.model.bodies.len()];
    for (b, body) in robot.model.bodies.iter().enumerate().skip(1) {
        depths[b] = depths[body.parent] + 1;
    }
    depths
}

/// Columns `[T][n]` in another order.
fn permuted(values: &[f64], columns: &[usize]) -> Vec<f64> {
    let rows = values.chunks_exact(columns.len().max(1));
    rows.flat_map(|row| columns.iter().map(move |c| row[*c])).collect()
}

/// Values of one joint.
fn joint(values: &[f64], joint: usize, of: usize) -> impl Iterator<Item = f64> + '_ {
    values.iter().skip(joint).step_by(of.max(1)).copied()
}

impl Given {
    /// The same with its joints' columns in another order.
    fn with_joints(&self, columns: &[usize]) -> Self {
        Self { joints: permuted(&self.joints, columns), ..self.clone() }
    }
}
