//! Lengths of tendons and moment arms of tendons and actuators in one pose.
//!
//! The same as `sim/kernels/tendon.cuh` and `actuator.cuh` compute from state to state,
//! once per model and dense. Source: MuJoCo, Computation, "Actuation model".

use super::Piece;
use super::rest::Rest;
use super::rotation::{Pose, add, conjugate, cross, dot, rotate};
use super::{Geom, GeomKind, JointKind, Model, Site, TendonKind, Transmission, Vec3};
use crate::wrap::wrap;
use nalgebra::DVector;

/// A point of a body.
type Point = (usize, Vec3);

/// Straight parts of a string's way around a geom.
const ARC: usize = 8;

fn along(a: Vec3, b: Vec3, share: f64) -> Vec3 {
    [0, 1, 2].map(|i| a[i] + share * (b[i] - a[i]))
}

fn sub(a: Vec3, b: Vec3) -> Vec3 {
    [a[0] - b[0], a[1] - b[1], a[2] - b[2]]
}

/// Whether a spatial tendon winds around this geom, and whether it is a cylinder.
pub fn winds(geom: &Geom) -> Option<bool> {
    match geom.kind {
        GeomKind::Sphere => Some(false),
        GeomKind::Cylinder => Some(true),
        _ => None,
    }
}

/// Length of a tendon in the pose `qpos (nq)`.
pub fn tendon_length(model: &Model, tendon: usize, qpos: &[f64]) -> f64 {
    match &model.tendons[tendon].kind {
        TendonKind::Fixed(joints) => {
            let part = |(j, coef): &(usize, f64)| coef * qpos[model.joints[*j].qpos_adr];
            joints.iter().map(part).sum()
        }
        TendonKind::Spatial(_) => Rest::new(model, qpos).string_length(tendon),
    }
}

/// Lengths of all tendons in the pose `qpos (nq)`.
pub(crate) fn tendon_lengths(model: &Model, qpos: &[f64]) -> Vec<f64> {
    let rest = Rest::new(model, qpos);
    let tendons = model.tendons.iter().enumerate();
    tendons
        .map(|(t, tendon)| match tendon.kind {
            TendonKind::Fixed(_) => tendon_length(model, t, qpos),
            TendonKind::Spatial(_) => rest.string_length(t),
        })
        .collect()
}

impl Rest<'_> {
    /// Length of a spatial tendon.
    fn string_length(&self, tendon: usize) -> f64 {
        let pieces = self.model.tendons[tendon].kind.pieces();
        pieces.iter().map(|p| self.piece(p).0 / p.divisor).sum()
    }

    fn site(&self, site: usize) -> (usize, Pose) {
        let Site { body, pos, quat, .. } = self.model.sites[site];
        (body, self.bodies[body].then(Pose { pos, quat }))
    }

    /// Length of a piece of string, and its straight parts: from and to.
    fn piece(&self, piece: &Piece) -> (f64, Vec<[Point; 2]>) {
        let [from, to] = piece.sites.map(|s| {
            let (body, pose) = self.site(s);
            (body, pose.pos)
        });
        let length = |a: Vec3, b: Vec3| dot(sub(b, a), sub(b, a)).sqrt();
        let straight = || (length(from.1, to.1), vec![[from, to]]);
        let Some((geom, side)) = piece.around else {
            return straight();
        };
        let geom = &self.model.geoms[geom];
        let pose = self.bodies[geom.body].then(Pose { pos: geom.pos, quat: geom.quat });
        let local = |p: Vec3| rotate(conjugate(pose.quat), sub(p, pose.pos));
        let side = side.map(|s| local(self.site(s).1.pos));
        let cylinder = geom.kind == GeomKind::Cylinder;
        let Some(w) = wrap(local(from.1), local(to.1), side, geom.size[0], cylinder) else {
            return straight();
        };
        let [a, b] = w.touch.map(|p| (geom.body, pose.point(p)));
        (w.length, vec![[from, a], [b, to]])
    }

    /// Adds the generalised forces of a force at a point of a body and a torque on it `(nv)`.
    fn press(&self, (body, at): Point, force: Vec3, torque: Vec3, row: &mut DVector<f64>) {
        for (d, shift, turn) in self.jacobian(body, at) {
            row[d] += dot(shift, force) + dot(turn, torque);
        }
    }

    /// The ways of all spatial tendons, as straight parts from and to points in the world (m):
    /// always as many, also where a string does not touch what it can wind around.
    pub fn strings(&self) -> impl Iterator<Item = [Vec3; 2]> + '_ {
        let pieces = self.model.tendons.iter().flat_map(|tendon| tendon.kind.pieces());
        pieces.flat_map(|piece| {
            let ways = self.piece(&piece).1;
            let ([first, ..], [.., last]) = (&ways[..], &ways[..]) else {
                return Vec::new();
            };
            let Some((geom, _)) = piece.around else {
                return vec![[first[0].1, last[1].1]];
            };
            let points = |k: usize| match ways.len() {
                1 => along(first[0].1, first[1].1, k as f64 / (ARC + 2) as f64),
                _ if k == 0 => first[0].1,
                _ if k > ARC + 1 => last[1].1,
                _ => self.on(geom, first[1].1, last[0].1, (k - 1) as f64 / ARC as f64),
            };
            (0..ARC + 2).map(|k| [points(k), points(k + 1)]).collect()
        })
    }

    /// The point on a sphere or cylinder at a share of the way between two on it.
    fn on(&self, geom: usize, from: Vec3, to: Vec3, share: f64) -> Vec3 {
        let geom = &self.model.geoms[geom];
        let pose = self.bodies[geom.body].then(Pose { pos: geom.pos, quat: geom.quat });
        let [a, b] = [from, to].map(|p| rotate(conjugate(pose.quat), sub(p, pose.pos)));
        let turns = if geom.kind == GeomKind::Cylinder { 2 } else { 3 };
        let radius = |p: Vec3| p[..turns].iter().map(|x| x * x).sum::<f64>().sqrt();
        let mut p = along(a, b, share);
        let longer = radius(a) / radius(p);
        if longer.is_finite() {
            p[..turns].iter_mut().for_each(|x| *x *= longer);
        }
        pose.point(p)
    }

    /// How a tendon's length changes per degree of freedom `(nv)`.
    pub fn tendon_jacobian(&self, tendon: usize) -> DVector<f64> {
        let mut row = DVector::zeros(self.model.nv);
        let kind = &self.model.tendons[tendon].kind;
        if let TendonKind::Fixed(joints) = kind {
            for (joint, coef) in joints {
                row[self.model.joints[*joint].dof_adr] += coef;
            }
        }
        for piece in kind.pieces() {
            for [from, to] in self.piece(&piece).1 {
                let way = sub(to.1, from.1);
                let length = dot(way, way).sqrt();
                // A joint that moves both ends leaves the distance as it is.
                if from.0 == to.0 || length < super::rest::MIN_VALUE {
                    continue;
                }
                let unit = way.map(|x| x / length / piece.divisor);
                self.press(to, unit, [0.0; 3], &mut row);
                self.press(from, unit.map(|x| -x), [0.0; 3], &mut row);
            }
        }
        row
    }

    /// How an actuator's length changes per degree of freedom `(nv)`.
    pub fn actuator_jacobian(&self, actuator: usize) -> DVector<f64> {
        let actuator = &self.model.actuators[actuator];
        let mut row = DVector::zeros(self.model.nv);
        let gear: [f64; 6] = actuator.gear;
        let [force, torque] = [[gear[0], gear[1], gear[2]], [gear[3], gear[4], gear[5]]];
        match actuator.transmission {
            Transmission::Joint(j) | Transmission::JointInParent(j) => {
                let joint = &self.model.joints[j];
                let first = joint.dof_adr;
                let [fixed, axis] = match joint.kind {
                    JointKind::Hinge | JointKind::Slide => {
                        row[first] = gear[0];
                        return row;
                    }
                    JointKind::Ball => [None, Some(force)],
                    JointKind::Free => [Some(force), Some(torque)],
                };
                let mut at = first;
                for (part, vector) in [fixed, axis].into_iter().flatten().enumerate() {
                    let turned = part + 1 == joint.kind.nv() / 3;
                    let in_parent = matches!(actuator.transmission, Transmission::JointInParent(_));
                    let q = &self.model.qpos0[joint.qpos_adr + joint.kind.nq() - 4..];
                    let vector = if turned && in_parent {
                        rotate(conjugate([q[0], q[1], q[2], q[3]]), vector)
                    } else {
                        vector
                    };
                    for x in vector {
                        row[at] = x;
                        at += 1;
                    }
                }
            }
            Transmission::Tendon(t) => row = self.tendon_jacobian(t) * gear[0],
            Transmission::Site { site, reference } => {
                let (body, pose) = self.site(site);
                let (other, frame) = reference.map_or((body, pose), |r| self.site(r));
                let [force, torque] = [force, torque].map(|v| rotate(frame.quat, v));
                self.press((body, pose.pos), force, torque, &mut row);
                if reference.is_some() {
                    let mut back = DVector::zeros(self.model.nv);
                    self.press((other, frame.pos), force, torque, &mut back);
                    // A joint that moves both does not move one relative to the other.
                    let above: Vec<usize> = self.jacobian(body, pose.pos).map(|c| c.0).collect();
                    let shared: Vec<usize> = self
                        .jacobian(other, frame.pos)
                        .map(|c| c.0)
                        .filter(|d| above.contains(d))
                        .collect();
                    row -= back;
                    for d in shared {
                        row[d] = 0.0;
                    }
                }
            }
            Transmission::SliderCrank { crank, slider, length } => {
                let (body, pin) = self.site(crank);
                let (other, frame) = self.site(slider);
                let axis = rotate(frame.quat, [0.0, 0.0, 1.0]);
                let vec = sub(pin.pos, frame.pos);
                let along = dot(vec, axis);
                let det = along * along + length * length - dot(vec, vec);
                let (mut by_vec, mut by_axis) = (axis, vec);
                if det > 0.0 {
                    let root = det.sqrt();
                    let away = 1.0 - along / root;
                    by_vec = add(axis.map(|x| x * away), vec.map(|x| x / root));
                    by_axis = vec.map(|x| x * away);
                }
                let [by_vec, by_axis] = [by_vec, by_axis].map(|v| v.map(|x| x * gear[0]));
                self.press((body, pin.pos), by_vec, [0.0; 3], &mut row);
                let back = by_vec.map(|x| -x);
                self.press((other, frame.pos), back, cross(axis, by_axis), &mut row);
            }
            // Without contacts it has none.
            Transmission::Body(_) => {}
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    /// Over a drum and past it: as long as the tendon is, less what chords of arcs lack.
    #[test]
    fn the_parts_of_a_string_are_as_long_as_the_tendon() {
        for (high, touches) in [(0.1, true), (0.4, false)] {
            let text = format!(
                r#"<mujoco><worldbody>
                     <geom name="drum" type="cylinder" size="0.2 0.3" euler="90 0 0" pos="0 0 1"/>
                     <site name="left" pos="-1 0 {high}"/><site name="side" pos="0 0 2"/>
                     <body pos="1 0 {high}"><joint type="slide"/><geom size="0.1"/><site name="right"/></body>
                     <body pos="0 1 0"><joint type="slide"/><geom size="0.1"/><site name="far"/></body>
                   </worldbody>
                   <tendon><spatial><site site="left"/><geom geom="drum" sidesite="side"/>
                     <site site="right"/><site site="far"/></spatial></tendon></mujoco>"#,
                high = if touches { 1.0 } else { 1.0 + high }
            );
            let model = crate::mjcf::parse(Path::new("t.xml"), text).unwrap();
            let rest = Rest::new(&model, &model.qpos0);
            let parts: Vec<[Vec3; 2]> =
                Rest::posed(&model, rest.bodies.clone()).strings().collect();
            assert_eq!(parts.len(), ARC + 3);
            assert!(parts.windows(2).all(|w| w[0][1] == w[1][0]), "{parts:?}");
            let length = |[a, b]: &[Vec3; 2]| dot(sub(*b, *a), sub(*b, *a)).sqrt();
            let whole = tendon_length(&model, 0, &model.qpos0);
            let short = whole - parts.iter().map(length).sum::<f64>();
            assert!((-1e-9..1e-4).contains(&short), "{short} of {whole}");
            assert_eq!(short > 1e-9, touches, "{short}");
        }
    }
}
