//! A robot's reflection in a plane: which part becomes which, and how far it is from being the
//! same robot.
//!
//! The plane goes through the world's origin; `axis` is its normal. A reflection turns positions
//! and velocities over, `v -> R v`, and axes of rotation the other way, `w -> -R w`. Parts are
//! compared where the robot's file puts them, in the world's frame: how frames of bodies are
//! turned does not matter. A free body that has no counterpart is put onto the plane.

mod differ;
mod even;
mod names;

use super::rest::Rest;
use super::rotation::{Pose, conjugate, dot, mul, normalized, rotate};
use super::{JointKind, Model, Quat, Vec3};
pub use differ::Difference;
pub use names::Pairs;

/// How far an axis may be from its counterpart's reflection (rad).
const MOST_TURN: f64 = 0.02;

/// Why a robot has no reflection.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum MirrorError {
    /// A body without another on the other side.
    #[error("body \"{body}\" has no counterpart{}", .wanted.as_ref().map(|w| format!(": there is no body \"{w}\" beside it")).unwrap_or_default())]
    NoCounterpart {
        /// Its name.
        body: String,
        /// The name that the other one would have.
        wanted: Option<String>,
    },
    /// Joints of other kinds.
    #[error("the joints of \"{body}\" and \"{other}\" are of different kinds")]
    Joints {
        /// A body's name.
        body: String,
        /// Its counterpart's.
        other: String,
    },
    /// An axis that is not the other's reflection.
    #[error(
        "the axis of joint \"{joint}\" is ({}), the reflection of \"{other}\" has plus or minus \
         ({}) in the world", numbers(.axis), numbers(.wanted)
    )]
    Axis {
        /// A joint's name.
        joint: String,
        /// Its counterpart's.
        other: String,
        /// Its axis in the world.
        axis: Vec3,
        /// The axis that it would have.
        wanted: Vec3,
    },
    /// A body whose reflection is far from its counterpart.
    #[error(
        "the reflection of body \"{body}\" lies {:.0} % of the robot's size from {}", 100.0 * .share,
        if .body == .other { "itself".to_owned() } else { format!("\"{other}\"") }
    )]
    Elsewhere {
        /// Its name.
        body: String,
        /// Its counterpart's; the same name: it is its own.
        other: String,
        /// How far (robot sizes).
        share: f64,
    },
    /// An actuator without another on the other side.
    #[error("actuator \"{0}\" has no counterpart: none moves the other side as it moves its own")]
    Actuator(String),
    /// A pattern that half fits.
    #[error("\"{name}\" fits the pattern \"{pattern}\", but there is no \"{wanted}\"")]
    HalfPattern {
        /// The name of a body, joint or actuator.
        name: String,
        /// The pattern.
        pattern: String,
        /// The name that the other side would have.
        wanted: String,
    },
    /// Patterns of one pair with different numbers of `*`.
    #[error("\"{}\" and \"{}\" have different numbers of *", .0[0], .0[1])]
    Stars([String; 2]),
    /// A pattern that fits nothing.
    #[error("the pattern \"{0}\" fits no body, joint or actuator")]
    Unused(String),
    /// The reflection changes nothing.
    #[error("the reflection changes no joint and no actuator: all of the robot lies in the plane")]
    Nothing,
}

fn numbers(v: &Vec3) -> String {
    v.map(|x| format!("{:.3}", x + 0.0)).join(", ")
}

/// Turns the coordinate `axis` over.
pub fn reflected(axis: usize, mut v: Vec3) -> Vec3 {
    v[axis] = -v[axis];
    v
}

/// The same for an axis of rotation: a vector that is a vector product.
pub fn turned_over(axis: usize, v: Vec3) -> Vec3 {
    reflected(axis, v).map(|x| -x)
}

/// The reflection of a joint's axis in the world.
fn reflected_axis(axis: usize, kind: JointKind, v: Vec3) -> Vec3 {
    match kind {
        JointKind::Slide => reflected(axis, v),
        _ => turned_over(axis, v),
    }
}

/// An orientation between the world and its reflection: `R A R`.
fn reflected_quat(axis: usize, q: Quat) -> Quat {
    let [x, y, z] = turned_over(axis, [q[1], q[2], q[3]]);
    [q[0], x, y, z]
}

/// A robot's reflection. Vectors are by part: entry `k` says what part `k` becomes.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Mirror {
    /// Normal of the plane: 0 is x, 1 is y, 2 is z.
    pub axis: usize,
    /// Bodies.
    pub bodies: Vec<usize>,
    /// Joints.
    pub joints: Vec<usize>,
    /// Sign of a hinge's or slide's position beyond its reference; 1 of other joints.
    pub signs: Vec<f64>,
    /// Actuators, and the sign of their controls.
    pub actuators: Vec<(usize, f64)>,
    /// Shapes that collide, by their places; others, and those without a counterpart, are their own.
    pub geoms: Vec<usize>,
    /// Sites, likewise.
    pub sites: Vec<usize>,
    /// By body: its counterpart's frame in the reflection of its own.
    turns: Vec<Quat>,
}

impl Mirror {
    /// Finds the reflection: bodies by `pairs` or, where these say nothing, by their places.
    /// With it what differs between the two sides, the largest first.
    ///
    /// # Errors
    /// A part has no counterpart, or one that moves in another way.
    pub fn find(
        model: &Model,
        axis: usize,
        pairs: &Pairs,
    ) -> Result<(Self, Vec<Difference>), MirrorError> {
        pairs.check(model)?;
        let qpos = centred(model, axis);
        let rest = Rest::new(model, &qpos);
        let bodies = paired(model, axis, &rest, pairs)?;
        let turns = bodies.iter().enumerate().map(|(b, &other)| {
            let own = reflected_quat(axis, rest.bodies[b].quat);
            let turn = mul(conjugate(own), rest.bodies[other].quat);
            normalized(turn).unwrap_or(Pose::IDENTITY.quat)
        });
        let mut mirror = Self {
            axis,
            turns: turns.collect(),
            joints: Vec::with_capacity(model.joints.len()),
            signs: Vec::with_capacity(model.joints.len()),
            actuators: Vec::new(),
            geoms: (0..model.geoms.len()).collect(),
            sites: Vec::new(),
            bodies,
        };
        let mut differences = Vec::new();
        for (b, &other) in mirror.bodies.iter().enumerate() {
            let own = model.bodies[b].joints.clone();
            for (j, k) in own.zip(model.bodies[other].joints.clone()) {
                let (sign, turn) = sign(model, axis, &rest, j, k)?;
                mirror.joints.push(k);
                mirror.signs.push(sign);
                if turn > 1e-9 {
                    differences.push(differ::of_joint(model, (j, k), "axis", turn));
                }
            }
        }
        mirror.actuators = mirror.drives(model, &rest)?;
        let still = |(k, &sign): (usize, &f64)| mirror.joints[k] == k && sign == 1.0;
        let scalar = |j: &usize| model.joints[*j].is_scalar();
        let idle = (0..model.joints.len()).filter(scalar).all(|j| still((j, &mirror.signs[j])));
        if idle && mirror.actuators.iter().enumerate().all(|(k, a)| *a == (k, 1.0)) {
            return Err(MirrorError::Nothing);
        }
        differ::in_place(model, &mirror, &rest)?;
        differ::all(model, &mirror, &rest, &mut differences);
        for (g, h) in mirror.shapes(model, &rest) {
            mirror.geoms[g] = h;
        }
        mirror.sites = mirror.places(model, &rest);
        differences.sort_by(|a, b| b.share.total_cmp(&a.share));
        Ok((mirror, differences))
    }

    /// The reflection of a direction in a body's frame, in its counterpart's.
    pub fn direction(&self, body: usize, v: Vec3) -> Vec3 {
        rotate(conjugate(self.turns[body]), reflected(self.axis, v))
    }

    /// The reflection of positions `(nq)`.
    pub fn qpos(&self, model: &Model, from: &[f64], to: &mut [f64]) {
        for (j, joint) in model.joints.iter().enumerate() {
            let other = &model.joints[self.joints[j]];
            let (q, out) = (&from[joint.qpos_adr..], &mut to[other.qpos_adr..]);
            let turn = self.turns[joint.body];
            let quat = |q: &[f64]| reflected_quat(self.axis, [q[0], q[1], q[2], q[3]]);
            match joint.kind {
                JointKind::Hinge | JointKind::Slide => {
                    let beyond = q[0] - model.qpos0[joint.qpos_adr];
                    out[0] = model.qpos0[other.qpos_adr] + self.signs[j] * beyond;
                }
                JointKind::Ball => {
                    let turned = mul(mul(conjugate(turn), quat(q)), turn);
                    out[..4].copy_from_slice(&turned);
                }
                JointKind::Free => {
                    out[..3].copy_from_slice(&reflected(self.axis, [q[0], q[1], q[2]]));
                    out[3..7].copy_from_slice(&mul(quat(&q[3..]), turn));
                }
            }
        }
    }

    /// The reflection of velocities or accelerations `(nv)`.
    pub fn qvel(&self, model: &Model, from: &[f64], to: &mut [f64]) {
        for (j, joint) in model.joints.iter().enumerate() {
            let other = &model.joints[self.joints[j]];
            let (v, out) = (&from[joint.dof_adr..], &mut to[other.dof_adr..]);
            let back = conjugate(self.turns[joint.body]);
            let turning = |v: &[f64]| rotate(back, turned_over(self.axis, [v[0], v[1], v[2]]));
            match joint.kind {
                JointKind::Hinge | JointKind::Slide => out[0] = self.signs[j] * v[0],
                JointKind::Ball => out[..3].copy_from_slice(&turning(v)),
                JointKind::Free => {
                    out[..3].copy_from_slice(&reflected(self.axis, [v[0], v[1], v[2]]));
                    out[3..6].copy_from_slice(&turning(&v[3..]));
                }
            }
        }
    }

    /// The reflection of controls `(nu)`.
    pub fn ctrl(&self, from: &[f64], to: &mut [f64]) {
        for (&(other, sign), x) in self.actuators.iter().zip(from) {
            to[other] = sign * x;
        }
    }

    /// The reflection of activations `(na)`.
    pub fn act(&self, model: &Model, from: &[f64], to: &mut [f64]) {
        for (actuator, &(other, sign)) in model.actuators.iter().zip(&self.actuators) {
            if let (Some(own), Some(place)) = (actuator.act_adr, model.actuators[other].act_adr) {
                to[place] = sign * from[own];
            }
        }
    }

    /// Counterparts of actuators: those that move the other side as they move their own.
    fn drives(&self, model: &Model, rest: &Rest<'_>) -> Result<Vec<(usize, f64)>, MirrorError> {
        let rows: Vec<Vec<f64>> =
            (0..model.nu()).map(|u| rest.actuator_jacobian(u).iter().copied().collect()).collect();
        let mut taken = vec![false; rows.len()];
        let mut all = Vec::with_capacity(rows.len());
        for (u, row) in rows.iter().enumerate() {
            let mut wanted = vec![0.0; model.nv];
            self.qvel(model, row, &mut wanted);
            let size = wanted.iter().fold(1e-12f64, |a, x| a.max(x.abs()));
            let off = |v: usize, sign: f64| {
                let apart = rows[v].iter().zip(&wanted).map(|(a, b)| (a - sign * b).abs());
                apart.fold(0.0, f64::max) / size
            };
            let fits = (0..rows.len()).filter(|&v| !taken[v]).flat_map(|v| [(v, 1.0), (v, -1.0)]);
            // Of several at one joint the one that is most alike.
            let alike = |&(v, sign): &(usize, f64)| {
                differ::of_actuators(model, (u, v), sign) + off(v, sign)
            };
            let fits = fits.filter(|&(v, sign)| off(v, sign) < 0.05);
            let best = fits.min_by(|a, b| alike(a).total_cmp(&alike(b)));
            let (v, sign) =
                best.ok_or_else(|| MirrorError::Actuator(model.actuators[u].name.clone()))?;
            taken[v] = true;
            all.push((v, sign));
        }
        Ok(all)
    }
}

/// The initial pose with free bodies that have no counterpart in the plane.
fn centred(model: &Model, axis: usize) -> Vec<f64> {
    let mut qpos = model.qpos0.clone();
    let free = model.joints.iter().filter(|j| j.kind == JointKind::Free);
    let at: Vec<Vec3> =
        free.clone().map(|j| [0, 1, 2].map(|k| model.qpos0[j.qpos_adr + k])).collect();
    for (joint, own) in free.zip(&at) {
        let there = reflected(axis, *own);
        let near = |p: &Vec3| p.iter().zip(&there).all(|(a, b)| (a - b).abs() < 1e-6);
        if !at.iter().any(near) {
            qpos[joint.qpos_adr + axis] = 0.0;
        }
    }
    qpos
}

/// Counterparts of bodies, from the world outwards.
fn paired(
    model: &Model,
    axis: usize,
    rest: &Rest<'_>,
    pairs: &Pairs,
) -> Result<Vec<usize>, MirrorError> {
    let mut partner = vec![0; model.bodies.len()];
    let mut taken = vec![false; model.bodies.len()];
    let kinds = |b: usize| -> Vec<JointKind> {
        model.joints[model.bodies[b].joints.clone()].iter().map(|j| j.kind).collect()
    };
    let centre = |b: usize| rest.bodies[b].point(model.bodies[b].ipos);
    // A name that calls for a body that is nowhere says nothing about sides.
    let partners = |b: usize| -> Vec<String> {
        let mut all = pairs.partners(&model.bodies[b].name);
        if !pairs.are_given() {
            all.retain(|name| model.bodies.iter().any(|body| body.name == *name));
        }
        all
    };
    for b in 1..model.bodies.len() {
        let body = &model.bodies[b];
        let above = partner[body.parent];
        let beside = |c: &usize| model.bodies[*c].parent == above && !taken[*c];
        let beside: Vec<usize> = (1..model.bodies.len()).filter(beside).collect();
        let wanted = partners(b);
        let named = beside.iter().find(|c| wanted.contains(&model.bodies[**c].name));
        let there = reflected(axis, centre(b));
        let far = |c: &usize| {
            let apart = [0, 1, 2].map(|k| centre(*c)[k] - there[k]);
            dot(apart, apart)
        };
        let alike = beside.iter().filter(|&&c| kinds(c) == kinds(b));
        // A body that one of two names calls for is that one's, and one with a side's name that
        // is not in the plane has another beside it.
        let sided = !pairs.partners(&body.name).is_empty();
        let free = alike.filter(|c| !sided || **c != b || far(c) < 1e-6).filter(|c| {
            let calls = partners(**c);
            calls.is_empty() || calls.contains(&body.name)
        });
        let nearest = free.min_by(|a, b| far(a).total_cmp(&far(b)));
        let other = match (named, wanted.first()) {
            (Some(&c), _) => c,
            (None, Some(name)) if pairs.are_given() => {
                let (body, wanted) = (body.name.clone(), Some(name.clone()));
                return Err(MirrorError::NoCounterpart { body, wanted });
            }
            (None, _) => *nearest.ok_or_else(|| MirrorError::NoCounterpart {
                body: body.name.clone(),
                wanted: pairs.partners(&body.name).first().cloned(),
            })?,
        };
        if kinds(other) != kinds(b) {
            let (body, other) = (body.name.clone(), model.bodies[other].name.clone());
            return Err(MirrorError::Joints { body, other });
        }
        partner[b] = other;
        taken[other] = true;
    }
    Ok(partner)
}

/// The sign of joint `k` beside the reflection of joint `j`, and the angle between their axes.
fn sign(
    model: &Model,
    axis: usize,
    rest: &Rest<'_>,
    j: usize,
    k: usize,
) -> Result<(f64, f64), MirrorError> {
    let [own, other] = [&model.joints[j], &model.joints[k]];
    if !own.is_scalar() {
        return Ok((1.0, 0.0));
    }
    let world = |j: &crate::Joint| rotate(rest.bodies[j.body].quat, j.axis);
    let wanted = reflected_axis(axis, own.kind, world(own));
    let cosine = dot(world(other), wanted);
    let turn = cosine.abs().min(1.0).acos();
    // Rounding makes an angle of 1e-8.
    let turn = if turn < 1e-7 { 0.0 } else { turn };
    if turn > MOST_TURN {
        return Err(MirrorError::Axis {
            joint: other.name.clone(),
            other: own.name.clone(),
            axis: world(other),
            wanted,
        });
    }
    Ok((cosine.signum(), turn))
}

#[cfg(test)]
mod tests;
