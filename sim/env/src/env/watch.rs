//! What somebody who watches environments sees of them beside their worlds, and how he
//! interferes: commands that are given instead of drawn, pushes.

use super::BatchEnv;
use crate::task::CommandSpec;
use ostler_engine::physics::Part;
use ostler_model::JointKind;

/// Share of a push that joints of a fixed robot need not follow: keeps the velocities of joints
/// that can hardly move the point finite.
const DAMPING: f64 = 1e-3;

impl BatchEnv {
    /// The task's commands, in the order of their components in [`commands`](Self::commands).
    pub fn command_specs(&self) -> Vec<CommandSpec> {
        self.task.commands.specs()
    }

    /// Components of all commands of environment `e`.
    pub fn commands(&self, e: usize) -> impl Iterator<Item = f32> + '_ {
        column(&self.live.episodes.command, e, self.spec.num_envs)
    }

    /// Weighted reward terms of the episode so far, of environment `e`.
    pub fn reward_sums(&self, e: usize) -> impl Iterator<Item = f32> + '_ {
        column(&self.live.episodes.sums, e, self.spec.num_envs)
    }

    /// Clipped outputs of all agents in the last step, of environment `e`.
    pub fn actions(&self, e: usize) -> impl Iterator<Item = f32> + '_ {
        column(&self.live.episodes.action, e, self.spec.num_envs)
    }

    /// Controls of the last step `[nu][N]`.
    pub fn controls(&self) -> &[f32] {
        &self.work.columns.ctrl
    }

    /// Physics steps of a control step.
    pub fn decimation(&self) -> usize {
        self.decimation
    }

    /// Why environment `e`, whose episode ended in the last step, ended: index into
    /// [`EnvSpec::termination_names`](super::EnvSpec::termination_names).
    pub fn ended_by(&self, e: usize) -> Option<usize> {
        let columns = &self.work.columns;
        let cause = match *columns.ended.get(e)? {
            0 => *columns.cut.get(e)?,
            ended => ended,
        };
        Some(cause as usize)
    }

    /// The clip of the reference that environment `e` follows: index into those of
    /// [`Task::reference`](crate::task::Task); none without a reference.
    pub fn clip(&self, e: usize) -> Option<usize> {
        (*self.live.episodes.follow.get(e)? as usize).checked_sub(1)
    }

    /// Whether a termination ended the episode of environment `e` in the last step; of an
    /// environment whose episode went on it means nothing.
    pub fn failed(&self, e: usize) -> bool {
        self.work.columns.ended.get(e).is_some_and(|ended| *ended != 0)
    }

    /// Bodies of the reference motion that environment `e` follows, beside the robot: place (m) and
    /// quaternion (w, x, y, z) of each; nothing without a reference.
    pub fn reference_poses(&self, e: usize) -> impl Iterator<Item = [f32; 7]> + '_ {
        let (episodes, n) = (&self.live.episodes, self.spec.num_envs);
        let at = |rows: &[u32], k: usize| rows.get(k * n + e).copied().unwrap_or(0) as usize;
        let clip = at(&episodes.follow, 0).saturating_sub(1);
        let stand: Vec<f32> = column(&episodes.stand, e, n).collect();
        let reference = &self.task.reference;
        reference.poses(clip, at(&episodes.follow, 1)).map(move |mut pose| {
            pose.iter_mut().zip(stand.iter().take(3)).for_each(|(x, more)| *x += more);
            pose
        })
    }

    /// From the next step on the command number `command` of [`command_specs`](Self::command_specs)
    /// has these components in all environments, in new episodes, too; `None`: the task draws it
    /// again. Returns whether there is such a command with so many components.
    pub fn hold_command(&mut self, command: usize, values: Option<&[f32]>) -> bool {
        let specs = self.command_specs();
        let Some(spec) = specs.get(command) else {
            return false;
        };
        let fits = |v: &[f32]| v.len() == spec.ranges.len() && v.iter().all(|x| x.is_finite());
        if values.is_some_and(|v| !fits(v)) {
            return false;
        }
        let own = (self.task).tables(&self.model, self.spec.step_dt, self.spec.max_episode_steps);
        self.task.hold_command(&mut self.tables, &own, spec.first, values);
        true
    }

    /// Changes the velocity of a point (m, world) of `body` in environment `e` by `change` (m/s,
    /// world): of the whole robot where its root is free, else by the joints between the body and
    /// the world. Returns whether anything moves: the engine may not let itself be touched, or
    /// the body may be fixed.
    pub fn push(&mut self, e: usize, body: usize, point: [f32; 3], change: [f32; 3]) -> bool {
        let finite = change.iter().chain(&point).all(|x| x.is_finite());
        if !self.physics.can_be_poked() || e >= self.spec.num_envs || !finite {
            return false;
        }
        let moves = self.velocities(e, body, point.map(f64::from), change.map(f64::from));
        for &(dof, more) in &moves {
            let at = dof * self.spec.num_envs + e;
            let now = self.physics.state().qvel.get(at).copied();
            if let Some(now) = now {
                self.physics.poke(e, Part::Qvel(dof), now + more as f32);
            }
        }
        !moves.is_empty()
    }

    /// Degrees of freedom and what is added to their velocities.
    fn velocities(&self, e: usize, body: usize, p: [f64; 3], v: [f64; 3]) -> Vec<(usize, f64)> {
        let state = self.physics.state();
        let n = self.spec.num_envs;
        let mut slopes: Vec<(usize, [f64; 3])> = Vec::new();
        let mut b = body;
        while b != 0 {
            let Some(own) = self.model.bodies.get(b) else {
                return Vec::new();
            };
            let get = |rows: &[f32], i: usize| rows.get(i * n + e).map_or(0.0, |x| f64::from(*x));
            let at: [f64; 3] = std::array::from_fn(|i| get(&state.body_pos, 3 * b + i));
            let turn: [f64; 4] = std::array::from_fn(|i| get(&state.body_quat, 4 * b + i));
            for joint in &self.model.joints[own.joints.clone()] {
                let axis = rotate(turn, joint.axis);
                let dof = joint.dof_adr;
                match joint.kind {
                    // The whole robot flies: its other joints stay as they are.
                    JointKind::Free => return (0..3).map(|i| (dof + i, v[i])).collect(),
                    JointKind::Slide => slopes.push((dof, axis)),
                    JointKind::Hinge => {
                        let anchor = rotate(turn, joint.pos);
                        let arm = std::array::from_fn(|i| p[i] - at[i] - anchor[i]);
                        slopes.push((dof, cross(axis, arm)));
                    }
                    JointKind::Ball => {}
                }
            }
            b = own.parent;
        }
        least(&slopes, v)
    }
}

/// The smallest velocities of these degrees of freedom that move a point by `v`; `slopes`: how
/// each moves it. J^T (J J^T + damping)^-1 v.
fn least(slopes: &[(usize, [f64; 3])], v: [f64; 3]) -> Vec<(usize, f64)> {
    let mut a = [[0.0_f64; 3]; 3];
    for (_, s) in slopes {
        for (row, si) in a.iter_mut().zip(s) {
            row.iter_mut().zip(s).for_each(|(x, sj)| *x += si * sj);
        }
    }
    let size = a[0][0] + a[1][1] + a[2][2];
    if size <= 0.0 {
        return Vec::new();
    }
    for (i, row) in a.iter_mut().enumerate() {
        row[i] += DAMPING * size;
    }
    let [x, y, z] = a;
    let det = dot(x, cross(y, z));
    // The rows' cross products are the inverse's columns, as the matrix is symmetric.
    let inverse = [cross(y, z), cross(z, x), cross(x, y)];
    let w: [f64; 3] = std::array::from_fn(|i| inverse.iter().zip(v).map(|(c, v)| c[i] * v).sum());
    let each = slopes.iter().map(|&(dof, s)| (dof, dot(s, w) / det));
    each.filter(|(_, dv)| dv.is_finite()).collect()
}

fn column(rows: &[f32], e: usize, n: usize) -> impl Iterator<Item = f32> + '_ {
    rows.iter().skip(e).step_by(n.max(1)).copied()
}

fn dot(a: [f64; 3], b: [f64; 3]) -> f64 {
    a.iter().zip(b).map(|(a, b)| a * b).sum()
}

fn cross(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// `v` turned by the unit quaternion (w, x, y, z).
fn rotate([w, x, y, z]: [f64; 4], v: [f64; 3]) -> [f64; 3] {
    let q = [x, y, z];
    let t = cross(q, v).map(|c| 2.0 * c);
    let more = cross(q, t);
    std::array::from_fn(|i| v[i] + w * t[i] + more[i])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_point_moves_as_it_is_pushed_where_its_joints_can() {
        // Two slides, at right angles, and a hinge about z at an arm of 2 m along x.
        let slopes = [
            (4, [1.0, 0.0, 0.0]),
            (5, [0.0, 0.0, 1.0]),
            (7, cross([0.0, 0.0, 1.0], [2.0, 0.0, 0.0])),
        ];
        let moved = least(&slopes, [0.5, -1.0, 2.0]);
        let wanted = [(4, 0.5), (5, 2.0), (7, -0.5)];
        for ((dof, v), (same, w)) in moved.iter().zip(wanted) {
            assert!(*dof == same && (v / w - 1.0).abs() < 0.01, "{moved:?}");
        }
        assert!(least(&[], [1.0; 3]).is_empty());
        // What no joint can do is left out, and nothing grows without bounds.
        let one = least(&slopes[..1], [0.0, 3.0, 0.0]);
        assert!(one[0].1.abs() < 1e-9, "{one:?}");
        let turned = rotate([0.5_f64.sqrt(), 0.0, 0.0, 0.5_f64.sqrt()], [1.0, 0.0, 0.0]);
        assert!((turned[1] - 1.0).abs() < 1e-12, "{turned:?}");
    }
}
