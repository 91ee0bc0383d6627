//! A robot with its two sides made alike.

use super::differ::{Inertial, signed};
use super::{Mirror, centred, reflected, reflected_axis, reflected_quat};
use crate::rest::Rest;
use crate::rotation::{Pose, conjugate, from_axes, mul, normalized, rotate};
use crate::{Model, Vec3};
use nalgebra::{Matrix3, SymmetricEigen};

impl Mirror {
    /// The robot in which masses, centres and inertias are means over both sides, and joints,
    /// shapes that are no meshes, and laws of actuators of the one side are reflections of the
    /// other's. What reflects a robot shows here to the last digit, whatever differs in its file.
    pub fn even(&self, model: &Model) -> Model {
        let rest = Rest::new(model, &centred(model, self.axis));
        let mut made = model.clone();
        for (b, &other) in self.bodies.iter().enumerate().skip(1) {
            let [own, there] = [b, other].map(|b| Inertial::of(model, &rest, b));
            let own = own.reflected(self.axis);
            let frame = rest.bodies[other];
            let half = |a: f64, b: f64| 0.5 * (a + b);
            let centre = [0, 1, 2].map(|k| half(own.centre[k], there.centre[k]));
            let tensor = std::array::from_fn(|k| half(own.tensor[k], there.tensor[k]));
            let (moments, axes) = principal(tensor);
            let body = &mut made.bodies[other];
            body.mass = half(own.mass, there.mass);
            body.ipos = frame.inverse().point(centre);
            body.inertia = moments;
            let turned = mul(conjugate(frame.quat), axes);
            body.iquat = normalized(turned).unwrap_or(Pose::IDENTITY.quat);
        }
        for (j, &k) in self.joints.iter().enumerate().filter(|(j, k)| j < k) {
            let (own, sign) = (&model.joints[j], self.signs[j]);
            let (frame, there) = (rest.bodies[own.body], rest.bodies[model.joints[k].body]);
            let to = &mut made.joints[k];
            if own.is_scalar() {
                let axis = reflected_axis(self.axis, own.kind, rotate(frame.quat, own.axis));
                to.axis = rotate(conjugate(there.quat), axis.map(|x| sign * x));
            }
            to.pos = there.inverse().point(reflected(self.axis, frame.point(own.pos)));
            let about = |x: f64, from: f64, to: f64| to + sign * (x - from);
            let (from, onto) = (model.qpos0[own.qpos_adr], model.qpos0[to.qpos_adr]);
            to.range = match own.is_scalar() {
                true => own.range.map(|r| signed(r.map(|x| x - from), sign).map(|x| onto + x)),
                false => own.range,
            };
            to.springref = about(own.springref, own.reference, to.reference);
            (to.damping, to.stiffness) = (own.damping, own.stiffness);
            (to.armature, to.frictionloss) = (own.armature, own.frictionloss);
            to.actfrcrange = own.actfrcrange.map(|range| signed(range, sign));
        }
        for (g, h) in self.shapes(model, &rest).into_iter().filter(|(g, h)| g < h) {
            let own = &model.geoms[g];
            let (frame, there) = (rest.bodies[own.body], rest.bodies[model.geoms[h].body]);
            if matches!(own.kind, crate::GeomKind::Mesh(_)) || own.kind != model.geoms[h].kind {
                continue;
            }
            let pose = frame.then(Pose { pos: own.pos, quat: own.quat });
            let pose = there.inverse().then(Pose {
                pos: reflected(self.axis, pose.pos),
                quat: reflected_quat(self.axis, pose.quat),
            });
            let to = &mut made.geoms[h];
            (to.pos, to.quat, to.size) = (pose.pos, pose.quat, own.size);
        }
        for (u, &(v, sign)) in self.actuators.iter().enumerate().filter(|(u, (v, _))| u < v) {
            let own = &model.actuators[u];
            let to = &mut made.actuators[v];
            (to.gain, to.bias) = (own.gain, own.bias);
            to.bias[0] *= sign;
            let turned = |range: Option<[f64; 2]>| range.map(|range| signed(range, sign));
            (to.ctrlrange, to.forcerange) = (turned(own.ctrlrange), turned(own.forcerange));
        }
        made
    }
}

/// Principal moments and axes of an inertia `xx yy zz xy xz yz`.
fn principal([xx, yy, zz, xy, xz, yz]: [f64; 6]) -> (Vec3, crate::Quat) {
    let eigen = SymmetricEigen::new(Matrix3::new(xx, xy, xz, xy, yy, yz, xz, yz, zz));
    let column = |k: usize| -> Vec3 {
        let c = eigen.eigenvectors.column(k);
        [c[0], c[1], c[2]]
    };
    let (x, y) = (column(0), column(1));
    let moments = [0, 1, 2].map(|k| eigen.eigenvalues[k]);
    (moments, from_axes(x, y, crate::rotation::cross(x, y)))
}
