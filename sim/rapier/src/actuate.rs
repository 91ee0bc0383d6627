//! Actuators as generalised forces.
//!
//! rapier has no input for a generalised force, but a joint spring
//! `-k (c - rest)` is one: with `k = 2^-40` and `rest = force * 2^40` it gives the
//! force exactly (both scalings are exact in binary, and `c` is lost in rounding).
//! It acts in joint coordinates, so it turns with the joint through rapier's
//! substeps, which a torque on the bodies would not.
//!
//! Position and velocity servos are affine in the joint's position and velocity.
//! Where their slope opposes the motion it is handed to rapier as a spring and
//! damper, which rapier integrates implicitly: a stiff servo is then stable at any
//! time step. The force at the start of the step is MuJoCo's in every case; where a
//! force range clamps, the force is constant over the step.

use super::build::{CoordinatePlace, Layout, Scalar, Spatial};
use super::kinematics::{add, cross, rotate};
use super::sets::Sets;
use ostler_model::{Actuator, JointKind, Model};

/// A spring this soft is no spring: see the module's text. 2^-40.
const FEEBLE: f32 = 1.0 / 1_099_511_627_776.0;
/// Forces beyond this (N or N m) count as this: 2^60 keeps all products finite.
const FORCE_MAX: f32 = 1.152_921_5e18;

/// An actuator in single precision.
#[derive(Debug, Clone, Copy)]
struct Act {
    index: usize,
    ctrlrange: Option<[f32; 2]>,
    forcerange: Option<[f32; 2]>,
    gain: [f32; 3],
    bias: [f32; 3],
    gear: [f32; 6],
}

/// A slide or hinge with actuators.
#[derive(Debug, Clone)]
struct ScalarDrive {
    at: Scalar,
    stiffness: f32,
    springref: f32,
    damping: f32,
    range: Option<[f32; 2]>,
    acts: Vec<Act>,
}

/// A ball or free joint with actuators.
#[derive(Debug, Clone)]
struct SpatialDrive {
    at: Spatial,
    free: bool,
    acts: Vec<Act>,
}

/// All joints with actuators.
#[derive(Debug, Clone, Default)]
pub(super) struct Drives {
    scalars: Vec<ScalarDrive>,
    spatials: Vec<SpatialDrive>,
}

fn clamp(x: f32, range: Option<[f32; 2]>) -> f32 {
    match range {
        Some([lo, hi]) => x.max(lo).min(hi),
        None => x,
    }
}

impl Act {
    fn new(index: usize, a: &Actuator) -> Self {
        let r = |r: Option<[f64; 2]>| r.map(|r| r.map(|x| x as f32));
        Self {
            index,
            ctrlrange: r(a.ctrlrange),
            forcerange: r(a.forcerange),
            gain: a.gain.map(|x| x as f32),
            bias: a.bias.map(|x| x as f32),
            gear: a.gear.map(|x| x as f32),
        }
    }

    /// Force, and its slopes against length and velocity (0 where it is clamped).
    /// Source: MuJoCo, Computation, "Actuation model".
    fn force(&self, ctrl: &[f32], length: f32, velocity: f32) -> (f32, f32, f32) {
        let u = clamp(ctrl[self.index], self.ctrlrange);
        let affine = |c: &[f32; 3]| c[0] + c[1] * length + c[2] * velocity;
        let free = affine(&self.gain) * u + affine(&self.bias);
        let force = clamp(free, self.forcerange);
        if force == free {
            (force, self.gain[1] * u + self.bias[1], self.gain[2] * u + self.bias[2])
        } else {
            (force, 0.0, 0.0)
        }
    }
}

impl Drives {
    pub(super) fn new(model: &Model, layout: &Layout) -> Self {
        let mut drives = Self::default();
        for (j, joint) in model.joints.iter().enumerate() {
            let acts: Vec<Act> = model
                .actuators
                .iter()
                .enumerate()
                .filter(|(_, a)| a.joint() == Some(j))
                .map(|(i, a)| Act::new(i, a))
                .collect();
            if acts.is_empty() {
                continue;
            }
            let of = |list: &[Spatial]| list.iter().find(|s| s.qvel == joint.dof_adr).copied();
            match joint.kind {
                JointKind::Slide | JointKind::Hinge => {
                    if let Some(at) = layout.scalars.iter().find(|s| s.qvel == joint.dof_adr) {
                        drives.scalars.push(ScalarDrive {
                            at: *at,
                            stiffness: joint.stiffness as f32,
                            springref: joint.springref as f32,
                            damping: joint.damping as f32,
                            range: joint.actfrcrange.map(|r| r.map(|x| x as f32)),
                            acts,
                        });
                    }
                }
                JointKind::Ball | JointKind::Free => {
                    let free = joint.kind == JointKind::Free;
                    if let Some(at) = of(if free { &layout.frees } else { &layout.balls }) {
                        drives.spatials.push(SpatialDrive { at, free, acts });
                    }
                }
            }
        }
        drives
    }

    /// Sets the forces of the next time step. `ctrl (nu)` is finite; `forces (nu)`
    /// receives each actuator's force before the gear. False when a force is not
    /// finite (it then counts as zero).
    #[must_use]
    pub(super) fn apply(
        &self,
        sets: &mut Sets,
        ctrl: &[f32],
        qpos: &[f32],
        qvel: &[f32],
        forces: &mut [f32],
    ) -> bool {
        let mut finite = true;
        for drive in &self.scalars {
            finite &= drive.apply(sets, ctrl, qpos, qvel, forces);
        }
        for drive in &self.spatials {
            finite &= drive.apply(sets, ctrl, qpos, qvel, forces);
        }
        finite
    }
}

impl ScalarDrive {
    fn apply(
        &self,
        sets: &mut Sets,
        ctrl: &[f32],
        qpos: &[f32],
        qvel: &[f32],
        forces: &mut [f32],
    ) -> bool {
        let (q, v) = (qpos[self.at.qpos], qvel[self.at.qvel]);
        let (mut force, mut slope_q, mut slope_v) = (0.0, 0.0, 0.0);
        for act in &self.acts {
            let gear = act.gear[0];
            let (f, by_length, by_velocity) = act.force(ctrl, gear * q, gear * v);
            forces[act.index] = f;
            force += gear * f;
            slope_q += gear * gear * by_length;
            slope_v += gear * gear * by_velocity;
        }
        let clamped = clamp(force, self.range);
        let finite = clamped.is_finite() && slope_q.is_finite() && slope_v.is_finite();
        if clamped != force || !finite {
            (slope_q, slope_v) = (0.0, 0.0);
        }
        let force = if finite { clamped.clamp(-FORCE_MAX, FORCE_MAX) } else { 0.0 };
        // Only slopes that oppose the motion are stable to integrate implicitly.
        let (k, d) = ((-slope_q).max(0.0), (-slope_v).max(0.0));
        let constant = force + k * q + d * v + self.stiffness * self.springref;
        let stiffness = self.stiffness + k;
        let at = &self.at;
        let (spring, rest) = if stiffness > 0.0 {
            let constant = constant - stiffness * at.reference;
            (stiffness, at.sign * constant / stiffness)
        } else {
            (FEEBLE, at.sign * constant / FEEBLE)
        };
        if let Some(multibody) = sets.multibody_joints.get_multibody_mut_internal(at.place.tree) {
            multibody.damping_mut()[at.dof] = self.damping + d;
            if let Some(link) = multibody.link_mut(at.place.link) {
                link.joint.set_spring(at.axis, spring, rest);
            }
        }
        finite
    }
}

impl SpatialDrive {
    fn apply(
        &self,
        sets: &mut Sets,
        ctrl: &[f32],
        qpos: &[f32],
        qvel: &[f32],
        forces: &mut [f32],
    ) -> bool {
        let q = &qpos[self.at.qpos..];
        let v = &qvel[self.at.qvel..];
        let quat = if self.free { [q[3], q[4], q[5], q[6]] } else { [q[0], q[1], q[2], q[3]] };
        let n = if self.free { 6 } else { 3 };
        let mut total = [0.0_f32; 6];
        for act in &self.acts {
            let dot = |x: &[f32]| (0..n).map(|i| act.gear[i] * x[i]).sum::<f32>();
            let length = if self.free { 0.0 } else { dot(&turn_of(quat)) };
            let (f, _, _) = act.force(ctrl, length, dot(v));
            forces[act.index] = f;
            for (sum, gear) in total.iter_mut().zip(&act.gear[..n]) {
                *sum += gear * f;
            }
        }
        let finite = total.iter().all(|x| x.is_finite());
        if !finite {
            total = [0.0; 6];
        }
        total = total.map(|x| x.clamp(-FORCE_MAX, FORCE_MAX));
        let [a, b, c, d, e, f] = total;
        if self.free {
            // The force acts at the body's origin, rapier's coordinate is the centre
            // of mass; the torque is in the body's frame, rapier's in the world's.
            let arm = rotate(quat, self.at.com.map(|x| -x));
            let torque = add(cross(arm, [a, b, c]), rotate(quat, [d, e, f]));
            push(sets, self.at.place, 0, &[a, b, c, torque[0], torque[1], torque[2]]);
        } else {
            push(sets, self.at.place, 3, &rotate(quat, [a, b, c]));
        }
        finite
    }
}

/// A constant force on consecutive axes of a link's joint.
fn push(sets: &mut Sets, place: CoordinatePlace, first: usize, force: &[f32]) {
    if let Some(multibody) = sets.multibody_joints.get_multibody_mut_internal(place.tree)
        && let Some(link) = multibody.link_mut(place.link)
    {
        for (i, f) in force.iter().enumerate() {
            link.joint.set_spring(first + i, FEEBLE, f / FEEBLE);
        }
    }
}

/// Axis times angle of a unit quaternion.
pub(super) fn turn_of(q: [f32; 4]) -> [f32; 3] {
    let sin = (q[1] * q[1] + q[2] * q[2] + q[3] * q[3]).sqrt();
    if sin < 1e-12 {
        return [0.0; 3];
    }
    let mut angle = 2.0 * sin.atan2(q[0]);
    if angle > std::f32::consts::PI {
        angle -= std::f32::consts::TAU;
    }
    [q[1], q[2], q[3]].map(|x| x * angle / sin)
}
