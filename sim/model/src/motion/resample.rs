//! A motion at another step.

use super::{BODY, MOST, Motion, kinematics};
use crate::rotation::{mul, normalized};
use crate::{JointKind, Model, Quat};

/// Steps that are equal to so many parts of themselves are the same.
const SAME: f64 = 1e-9;
/// The last frame is that of a step if it is no farther from it, in steps.
const ON_GRID: f64 = 1e-6;

impl Motion {
    /// The motion with `step` seconds between frames. Positions and velocities lie on the line
    /// between the frames before and after, orientations on the shorter arc; bodies follow from
    /// the joints. Times are 0, step, 2 step, ... up to the last frame's, which is among them where
    /// it lies on this grid: a clip that goes round needs it. (mjlab's `csv_to_npz` leaves it
    /// out.) With the step that it has the motion stays as it is, bit by bit. So it does, with a
    /// note, if `step` is no positive number or would take more than 2 GiB.
    #[must_use]
    pub fn resampled(&self, model: &Model, step: f64) -> Self {
        if (step - self.step).abs() <= SAME * self.step {
            return self.clone();
        }
        let duration = self.duration();
        let bytes = 8.0 * (model.nq + model.nv + BODY * model.bodies.len()) as f64;
        let count = (duration / step + ON_GRID).floor() + 1.0;
        if !(step > 0.0 && count * bytes <= MOST as f64) {
            let mut same = self.clone();
            same.notes.push(format!(
                "not resampled to {step} s: choose a positive step, and one that takes less than 2 GiB"
            ));
            return same;
        }
        let frames = count.max(1.0) as usize;
        let mut out = Self {
            name: self.name.clone(),
            step,
            frames,
            qpos: Vec::with_capacity(frames * model.nq),
            qvel: Vec::with_capacity(frames * model.nv),
            bodies: Vec::with_capacity(frames * BODY * model.bodies.len()),
            notes: self.notes.clone(),
        };
        for i in 0..frames {
            let at = i as f64 * step / self.step;
            let before = (at as usize).min(self.frames.saturating_sub(1));
            let after = (before + 1).min(self.frames.saturating_sub(1));
            let part = at - before as f64;
            let row = |all: &[f64], t: usize, n: usize| all[t * n..(t + 1) * n].to_vec();
            let [a, b] = [before, after].map(|t| row(&self.qpos, t, model.nq));
            let mut qpos = mixed(&a, &b, part);
            for joint in model.joints.iter() {
                let start = joint.qpos_adr
                    + match joint.kind {
                        JointKind::Free => 3,
                        JointKind::Ball => 0,
                        JointKind::Slide | JointKind::Hinge => continue,
                    };
                let four = |q: &[f64]| [0, 1, 2, 3].map(|i| q[start + i]);
                qpos[start..start + 4].copy_from_slice(&slerp(four(&a), four(&b), part));
            }
            let [a, b] = [before, after].map(|t| row(&self.qvel, t, model.nv));
            let qvel = mixed(&a, &b, part);
            out.bodies.extend(kinematics(model, &qpos, &qvel));
            out.qpos.extend(qpos);
            out.qvel.extend(qvel);
        }
        out
    }
}

fn mixed(a: &[f64], b: &[f64], part: f64) -> Vec<f64> {
    a.iter().zip(b).map(|(a, b)| a * (1.0 - part) + b * part).collect()
}

/// A part of the shorter way from `a` to `b`.
pub(super) fn slerp(a: Quat, b: Quat, part: f64) -> Quat {
    let cosine: f64 = a.iter().zip(b).map(|(a, b)| a * b).sum();
    let b = if cosine < 0.0 { b.map(|x| -x) } else { b };
    // The angle between them by its sine and cosine: its cosine alone says little near 0.
    let [w, x, y, z] = mul(b, [a[0], -a[1], -a[2], -a[3]]);
    let angle = (x * x + y * y + z * z).sqrt().atan2(w);
    let weights = match angle.sin() {
        sine if sine < 1e-9 => [1.0 - part, part],
        sine => [((1.0 - part) * angle).sin() / sine, (part * angle).sin() / sine],
    };
    let q = [0, 1, 2, 3].map(|i| weights[0] * a[i] + weights[1] * b[i]);
    normalized(q).unwrap_or(a)
}
