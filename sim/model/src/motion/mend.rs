//! A repaired copy of a motion.

use super::differences::{point_rates, rates, turn_rates};
use super::given::Robot;
use super::{Motion, MotionError, into_body, kinematics};
use crate::{Model, Quat, Vec3};

/// The clip touches the floor with this part of its frames (percent) at or below z = 0.
const PERCENT: usize = 1;
/// A floor nearer than this (m) is right.
const LEVEL: f64 = 1e-4;

impl Motion {
    /// A copy at another step, with joints clipped to their limits, the whole clip moved up or
    /// down so that the lowest points of one frame in a hundred are at or below z = 0, and
    /// velocities and bodies computed anew; and what was changed, a line each.
    ///
    /// # Errors
    /// The robot has joints that files of motions cannot have.
    pub fn mended(
        &self,
        model: &Model,
        step: Option<f64>,
    ) -> Result<(Self, Vec<String>), MotionError> {
        let robot = Robot::new(model)?;
        let mut lines = Vec::new();
        let mut out = self.clone();
        if let Some(step) = step {
            out = self.resampled(model, step);
            if out.step != self.step {
                lines.push(format!(
                    "resampled from {} frames at {:.4} s to {} frames at {:.4} s",
                    self.frames, self.step, out.frames, out.step
                ));
            }
        }
        for j in &robot.joints {
            let joint = &model.joints[*j];
            let Some([low, high]) = joint.range else { continue };
            let mut clipped = (0, 0.0_f64);
            for q in out.qpos.iter_mut().skip(joint.qpos_adr).step_by(model.nq) {
                let inside = q.max(low).min(high);
                if inside != *q {
                    clipped = (clipped.0 + 1, clipped.1.max((inside - *q).abs()));
                    *q = inside;
                }
            }
            if clipped.0 > 0 {
                lines.push(format!(
                    "clipped {} to its limits in {} frames, by {:.4} at the most",
                    joint.name, clipped.0, clipped.1
                ));
            }
        }
        out.renew(model, &robot);
        if let Some(root) = robot.root {
            let mut heights = out.heights(model);
            heights.sort_by(f64::total_cmp);
            let low = heights.get(heights.len() * PERCENT / 100).copied().unwrap_or(0.0);
            if low.is_finite() && low.abs() > LEVEL {
                let at = model.joints[root].qpos_adr + 2;
                out.qpos.iter_mut().skip(at).step_by(model.nq).for_each(|z| *z -= low);
                out.renew(model, &robot);
                let way = if low > 0.0 { "down" } else { "up" };
                lines.push(format!(
                    "moved the whole clip {way} by {:.4} m: its lowest points (1st percentile) were at z = {low:.4} m",
                    low.abs()
                ));
            }
        }
        lines.push("computed velocities and bodies anew from the positions".into());
        Ok((out, lines))
    }

    /// Velocities and bodies of the positions.
    fn renew(&mut self, model: &Model, robot: &Robot<'_>) {
        if self.frames == 0 {
            return;
        }
        let (nq, nv) = (model.nq, model.nv);
        let row = |t: usize| &self.qpos[t * nq..(t + 1) * nq];
        let joints: Vec<f64> = (0..self.frames)
            .flat_map(|t| robot.joints.iter().map(move |j| (t, *j)))
            .map(|(t, j)| row(t)[model.joints[j].qpos_adr])
            .collect();
        let nj = robot.joints.len();
        let moved = rates(&joints, nj, self.step);
        let mut qvel = vec![0.0; self.frames * nv];
        for (v, moved) in qvel.chunks_exact_mut(nv).zip(moved.chunks_exact(nj)) {
            for (j, rate) in robot.joints.iter().zip(moved) {
                v[model.joints[*j].dof_adr] = *rate;
            }
        }
        if let Some(root) = robot.root {
            let (q, d) = (model.joints[root].qpos_adr, model.joints[root].dof_adr);
            let pos: Vec<Vec3> =
                (0..self.frames).map(|t| [0, 1, 2].map(|i| row(t)[q + i])).collect();
            let quat: Vec<Quat> =
                (0..self.frames).map(|t| [3, 4, 5, 6].map(|i| row(t)[q + i])).collect();
            let linear = point_rates(&pos, self.step);
            let angular = turn_rates(&quat, self.step);
            let frames = qvel.chunks_exact_mut(nv).zip(quat);
            for ((v, quat), (linear, angular)) in frames.zip(linear.iter().zip(&angular)) {
                v[d..d + 3].copy_from_slice(linear);
                v[d + 3..d + 6].copy_from_slice(&into_body(quat, *angular));
            }
        }
        let state = |t: usize| kinematics(model, row(t), &qvel[t * nv..(t + 1) * nv]);
        self.bodies = (0..self.frames).flat_map(state).collect();
        self.qvel = qvel;
    }
}
