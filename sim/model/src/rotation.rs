//! Rotations in double precision, `(w, x, y, z)`, used while a model is read.

/// A position or direction `[x, y, z]`.
pub type Vec3 = [f64; 3];
/// A unit quaternion `[w, x, y, z]`.
pub type Quat = [f64; 4];

/// Below this a vector has no direction.
pub(crate) const EPS: f64 = 1e-14;

/// The rotation that changes nothing.
pub(crate) const IDENTITY: Quat = [1.0, 0.0, 0.0, 0.0];

/// Scales to unit length; `None` if there is nothing to scale.
pub fn normalized<const N: usize>(v: [f64; N]) -> Option<[f64; N]> {
    let norm = v.iter().map(|x| x * x).sum::<f64>().sqrt();
    (norm >= EPS && norm.is_finite()).then(|| v.map(|x| x / norm))
}

/// Scalar product.
pub fn dot(a: Vec3, b: Vec3) -> f64 {
    a[0] * b[0] + a[1] * b[1] + a[2] * b[2]
}

/// Vector product.
pub fn cross(a: Vec3, b: Vec3) -> Vec3 {
    [a[1] * b[2] - a[2] * b[1], a[2] * b[0] - a[0] * b[2], a[0] * b[1] - a[1] * b[0]]
}

/// `a + b`.
pub fn add(a: Vec3, b: Vec3) -> Vec3 {
    [a[0] + b[0], a[1] + b[1], a[2] + b[2]]
}

/// The inverse of a unit quaternion.
pub(crate) fn conjugate(q: Quat) -> Quat {
    [q[0], -q[1], -q[2], -q[3]]
}

/// First `b`, then `a`.
pub fn mul(a: Quat, b: Quat) -> Quat {
    [
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    ]
}

/// `v` turned by the unit quaternion `q`.
pub fn rotate(q: Quat, v: Vec3) -> Vec3 {
    let m = matrix(q);
    [dot(m[0], v), dot(m[1], v), dot(m[2], v)]
}

/// Rows of the rotation matrix of the unit quaternion `q`.
pub fn matrix(q: Quat) -> [Vec3; 3] {
    let [w, x, y, z] = q;
    [
        [w * w + x * x - y * y - z * z, 2.0 * (x * y - w * z), 2.0 * (x * z + w * y)],
        [2.0 * (x * y + w * z), w * w - x * x + y * y - z * z, 2.0 * (y * z - w * x)],
        [2.0 * (x * z - w * y), 2.0 * (y * z + w * x), w * w - x * x - y * y + z * z],
    ]
}

/// Rotation by `angle` (rad) about the unit `axis`.
pub fn about(axis: Vec3, angle: f64) -> Quat {
    let (s, c) = (0.5 * angle).sin_cos();
    [c, s * axis[0], s * axis[1], s * axis[2]]
}

/// The smallest rotation that takes +z to the unit vector `to`; half a turn
/// about x for -z, as MuJoCo chooses.
pub(crate) fn z_to(to: Vec3) -> Quat {
    let axis = cross([0.0, 0.0, 1.0], to);
    let sine = dot(axis, axis).sqrt();
    let axis = if sine < 1e-10 { [1.0, 0.0, 0.0] } else { axis.map(|x| x / sine) };
    about(axis, sine.atan2(to[2]))
}

/// The unit quaternion of the orthonormal frame with axes `x`, `y`, `z`
/// (Shepperd's method: divide by the largest component).
pub(crate) fn from_axes(x: Vec3, y: Vec3, z: Vec3) -> Quat {
    let trace = x[0] + y[1] + z[2];
    let q = if trace > 0.0 {
        let w = 0.5 * (1.0 + trace).sqrt();
        let k = 0.25 / w;
        [w, k * (y[2] - z[1]), k * (z[0] - x[2]), k * (x[1] - y[0])]
    } else if x[0] > y[1] && x[0] > z[2] {
        let i = 0.5 * (1.0 + x[0] - y[1] - z[2]).sqrt();
        let k = 0.25 / i;
        [k * (y[2] - z[1]), i, k * (y[0] + x[1]), k * (z[0] + x[2])]
    } else if y[1] > z[2] {
        let j = 0.5 * (1.0 - x[0] + y[1] - z[2]).sqrt();
        let k = 0.25 / j;
        [k * (z[0] - x[2]), k * (y[0] + x[1]), j, k * (z[1] + y[2])]
    } else {
        let l = 0.5 * (1.0 - x[0] - y[1] + z[2]).sqrt();
        let k = 0.25 / l;
        [k * (x[1] - y[0]), k * (z[0] + x[2]), k * (z[1] + y[2]), l]
    };
    normalized(q).unwrap_or(IDENTITY)
}

/// A position and an orientation in a parent's frame.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pose {
    pub pos: Vec3,
    pub quat: Quat,
}

impl Pose {
    /// No displacement.
    pub const IDENTITY: Self = Self { pos: [0.0; 3], quat: IDENTITY };

    /// `child`, given in this frame, in the parent's frame.
    pub fn then(self, child: Self) -> Self {
        if self == Self::IDENTITY {
            return child;
        }
        Self {
            pos: self.point(child.pos),
            quat: normalized(mul(self.quat, child.quat)).unwrap_or(IDENTITY),
        }
    }

    /// The parent's frame in this one.
    pub fn inverse(self) -> Self {
        let quat = conjugate(self.quat);
        Self { pos: rotate(quat, self.pos.map(|x| -x)), quat }
    }

    /// A point of this frame in the parent's frame.
    pub fn point(self, p: Vec3) -> Vec3 {
        add(self.pos, rotate(self.quat, p))
    }
}

/// `R diag(moments) R^T` as xx yy zz xy xz yz.
pub fn turned(moments: Vec3, quat: Quat) -> [f64; 6] {
    let r = matrix(quat);
    let entry = |i: usize, j: usize| (0..3).map(|k| r[i][k] * moments[k] * r[j][k]).sum::<f64>();
    [entry(0, 0), entry(1, 1), entry(2, 2), entry(0, 1), entry(0, 2), entry(1, 2)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_and_quaternion_agree() {
        for (axis, angle) in [
            ([1.0, 0.0, 0.0], 3.1),
            ([0.0, 1.0, 0.0], 3.0),
            ([0.0, 0.0, 1.0], -2.9),
            ([0.6, 0.0, 0.8], 0.4),
        ] {
            let q = about(axis, angle);
            let axes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]].map(|e| rotate(q, e));
            let back = from_axes(axes[0], axes[1], axes[2]);
            let d: f64 = back.iter().zip(q).map(|(a, b)| a * b).sum();
            assert!((d.abs() - 1.0).abs() < 1e-14, "{q:?} {back:?}");
        }
    }

    #[test]
    fn z_goes_where_it_is_told() {
        for to in [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [0.6, 0.0, 0.8]] {
            let z = rotate(z_to(to), [0.0, 0.0, 1.0]);
            assert!(z.iter().zip(to).all(|(a, b)| (a - b).abs() < 1e-15));
        }
    }
}
