//! Three-vectors and rotations in f32, as much as pictures need.

use std::ops::{Add, AddAssign, Mul, Neg, Sub};

/// A vector, point or linear colour.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct V3 {
    /// x or red.
    pub x: f32,
    /// y or green.
    pub y: f32,
    /// z or blue.
    pub z: f32,
}

/// Shorthand for [`V3`].
pub const fn v3(x: f32, y: f32, z: f32) -> V3 {
    V3 { x, y, z }
}

impl V3 {
    /// Scalar product.
    pub fn dot(self, o: V3) -> f32 {
        self.x * o.x + self.y * o.y + self.z * o.z
    }

    /// Vector product.
    pub fn cross(self, o: V3) -> V3 {
        v3(self.y * o.z - self.z * o.y, self.z * o.x - self.x * o.z, self.x * o.y - self.y * o.x)
    }

    /// Length.
    pub fn norm(self) -> f32 {
        self.dot(self).sqrt()
    }

    /// Unit vector of the same direction; +z for a vector without one.
    pub fn unit(self) -> V3 {
        let n = self.norm();
        if n > 1e-20 { self * (1.0 / n) } else { v3(0.0, 0.0, 1.0) }
    }

    /// Entry by entry.
    pub fn map(self, f: impl Fn(f32) -> f32) -> V3 {
        v3(f(self.x), f(self.y), f(self.z))
    }

    /// Product entry by entry.
    pub fn times(self, o: V3) -> V3 {
        v3(self.x * o.x, self.y * o.y, self.z * o.z)
    }

    /// `self` at 0, `o` at 1.
    pub fn lerp(self, o: V3, t: f32) -> V3 {
        self + (o - self) * t
    }

    /// All entries are finite.
    pub fn is_finite(self) -> bool {
        self.x.is_finite() && self.y.is_finite() && self.z.is_finite()
    }
}

impl From<[f64; 3]> for V3 {
    fn from(a: [f64; 3]) -> V3 {
        v3(a[0] as f32, a[1] as f32, a[2] as f32)
    }
}

impl Add for V3 {
    type Output = V3;
    fn add(self, o: V3) -> V3 {
        v3(self.x + o.x, self.y + o.y, self.z + o.z)
    }
}

impl AddAssign for V3 {
    fn add_assign(&mut self, o: V3) {
        *self = *self + o;
    }
}

impl Sub for V3 {
    type Output = V3;
    fn sub(self, o: V3) -> V3 {
        v3(self.x - o.x, self.y - o.y, self.z - o.z)
    }
}

impl Neg for V3 {
    type Output = V3;
    fn neg(self) -> V3 {
        v3(-self.x, -self.y, -self.z)
    }
}

impl Mul<f32> for V3 {
    type Output = V3;
    fn mul(self, s: f32) -> V3 {
        v3(self.x * s, self.y * s, self.z * s)
    }
}

/// A rotation matrix, by columns: the local axes seen from outside.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rot {
    /// Columns.
    pub c: [V3; 3],
}

impl Rot {
    /// Any rotation whose z axis points along `z`.
    pub fn with_z(z: V3) -> Rot {
        let z = z.unit();
        let other = if z.x.abs() < 0.5 { v3(1.0, 0.0, 0.0) } else { v3(0.0, 1.0, 0.0) };
        let x = other.cross(z).unit();
        Rot { c: [x, z.cross(x), z] }
    }

    /// From a quaternion (w, x, y, z), which need not be exactly of unit length.
    pub fn from_quat(q: [f32; 4]) -> Rot {
        let n = q.iter().map(|v| v * v).sum::<f32>();
        let s = if n > 1e-20 { 2.0 / n } else { 0.0 };
        let [w, x, y, z] = q;
        Rot {
            c: [
                v3(1.0 - s * (y * y + z * z), s * (x * y + w * z), s * (x * z - w * y)),
                v3(s * (x * y - w * z), 1.0 - s * (x * x + z * z), s * (y * z + w * x)),
                v3(s * (x * z + w * y), s * (y * z - w * x), 1.0 - s * (x * x + y * y)),
            ],
        }
    }

    /// Local to outside.
    pub fn apply(&self, v: V3) -> V3 {
        self.c[0] * v.x + self.c[1] * v.y + self.c[2] * v.z
    }

    /// Outside to local.
    pub fn inverse(&self, v: V3) -> V3 {
        v3(self.c[0].dot(v), self.c[1].dot(v), self.c[2].dot(v))
    }

    /// First `o`, then `self`.
    pub fn then(&self, o: &Rot) -> Rot {
        Rot { c: o.c.map(|c| self.apply(c)) }
    }
}

/// A frame: rotation, then translation.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Frame {
    /// Axes.
    pub rot: Rot,
    /// Origin.
    pub pos: V3,
}

impl Frame {
    /// From a position and a quaternion (w, x, y, z).
    pub fn new(pos: impl Into<V3>, quat: [f64; 4]) -> Frame {
        Frame { rot: Rot::from_quat(quat.map(|v| v as f32)), pos: pos.into() }
    }

    /// A point from local to outside.
    pub fn point(&self, p: V3) -> V3 {
        self.rot.apply(p) + self.pos
    }

    /// The frame of something that has pose `inner` in this frame.
    pub fn then(&self, inner: &Frame) -> Frame {
        Frame { rot: self.rot.then(&inner.rot), pos: self.point(inner.pos) }
    }

    /// All entries are finite.
    pub fn is_finite(&self) -> bool {
        self.pos.is_finite() && self.rot.c.iter().all(|c| c.is_finite())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quarter_turn_about_z_takes_x_to_y() {
        let h = std::f32::consts::FRAC_1_SQRT_2;
        let rot = Rot::from_quat([h, 0.0, 0.0, h]);
        let y = rot.apply(v3(1.0, 0.0, 0.0));
        assert!((y - v3(0.0, 1.0, 0.0)).norm() < 1e-6, "{y:?}");
        assert!((rot.inverse(y) - v3(1.0, 0.0, 0.0)).norm() < 1e-6);
        // Length of the quaternion does not matter.
        let long = Rot::from_quat([3.0 * h, 0.0, 0.0, 3.0 * h]);
        assert!((long.apply(v3(1.0, 2.0, 3.0)) - rot.apply(v3(1.0, 2.0, 3.0))).norm() < 1e-5);
    }
}
