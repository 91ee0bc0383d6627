//! A motion as a file that Ostler and holosoma read.

use super::given::Robot;
use super::{BODY, Motion, MotionError};
use crate::Model;
use crate::rotation::rotate;
use ostler_base::npz::NpzWriter;
use std::path::Path;

impl Motion {
    /// Writes the motion with names of joints and bodies: `joint_pos` has the root's position
    /// and quaternion `(w, x, y, z)` before the joints, `joint_vel` its velocities, both in the
    /// world.
    ///
    /// # Errors
    /// The file cannot be written; the motion is not of this robot.
    pub fn write(&self, model: &Model, path: &Path) -> Result<(), MotionError> {
        let named = |e: MotionError| MotionError { file: path.display().to_string(), ..e };
        let unwritten = |e: ostler_base::npz::NpzError| {
            named(MotionError::new("the file", e.to_string(), "choose another path"))
        };
        let robot = Robot::new(model).map_err(named)?;
        let (t, nbody) = (self.frames, model.bodies.len());
        let fits = self.qpos.len() == t * model.nq
            && self.qvel.len() == t * model.nv
            && self.bodies.len() == t * nbody * BODY;
        if !fits {
            let what = "the motion is not of this robot";
            return Err(named(MotionError::new("the motion", what, "read it with this robot")));
        }
        let (mut pos, mut vel) = (Vec::new(), Vec::new());
        for t in 0..t {
            let qpos = &self.qpos[t * model.nq..(t + 1) * model.nq];
            let qvel = &self.qvel[t * model.nv..(t + 1) * model.nv];
            if let Some(root) = robot.root {
                let joint = &model.joints[root];
                let q = &qpos[joint.qpos_adr..joint.qpos_adr + 7];
                let v = &qvel[joint.dof_adr..joint.dof_adr + 6];
                pos.extend(q);
                vel.extend(&v[..3]);
                vel.extend(rotate([q[3], q[4], q[5], q[6]], [v[3], v[4], v[5]]));
            }
            pos.extend(robot.joints.iter().map(|j| qpos[model.joints[*j].qpos_adr]));
            vel.extend(robot.joints.iter().map(|j| qvel[model.joints[*j].dof_adr]));
        }
        let (q, v) = robot.leading();
        let nj = robot.joints.len();
        let part = |from: usize, to: usize| -> Vec<f64> {
            let frames = self.bodies.chunks_exact(nbody * BODY);
            frames
                .flat_map(|f| f.chunks_exact(BODY).skip(1).flat_map(|b| &b[from..to]))
                .copied()
                .collect()
        };
        let put = || {
            let mut file = NpzWriter::create(path)?;
            file.array("fps", &[1], &[1.0 / self.step])?;
            file.texts("joint_names", &robot.joint_names())?;
            file.texts("body_names", &robot.body_names())?;
            file.array("joint_pos", &[t, q + nj], &pos)?;
            file.array("joint_vel", &[t, v + nj], &vel)?;
            for (name, from, to) in [
                ("body_pos_w", 0, 3),
                ("body_quat_w", 3, 7),
                ("body_lin_vel_w", 7, 10),
                ("body_ang_vel_w", 10, 13),
            ] {
                file.array(name, &[t, nbody - 1, to - from], &part(from, to))?;
            }
            file.finish()
        };
        put().map_err(unwritten)
    }
}
