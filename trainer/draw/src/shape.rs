//! Where a ray meets a shape, in the shape's own frame.

use super::ground::Ground;
use super::math::{V3, v3};
use super::mesh::Mesh;
use ostler_sim::model::GeomKind;
use std::sync::Arc;

/// A solid in its own frame; axes along z, sizes as in MJCF.
#[derive(Debug, Clone, PartialEq)]
pub enum Shape {
    /// Radius.
    Sphere(f32),
    /// Radius, half-length of the straight part.
    Capsule(f32, f32),
    /// Semi-axes.
    Ellipsoid(V3),
    /// Radius, half-length.
    Cylinder(f32, f32),
    /// Half-extents.
    Box(V3),
    /// The upper side of z = 0; half-extents, which may be infinite.
    Plane([f32; 2]),
    /// Triangles.
    Mesh(Arc<Mesh>),
    /// Ground without an end.
    Ground(Arc<Ground>),
}

/// Where a ray meets a shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Touch {
    /// Distance along the ray, in lengths of its direction.
    pub t: f32,
    /// The unit normal there, on the side that the ray comes from.
    pub normal: V3,
    /// A mesh's texture coordinates there, and how much they change over a metre.
    pub coords: Option<([f32; 2], f32)>,
}

impl Shape {
    /// The shape of a geom; `None` for meshes, height fields and terrains, which are
    /// more than their size.
    pub fn new(kind: GeomKind, size: [f64; 3]) -> Option<Shape> {
        let s: V3 = size.into();
        Some(match kind {
            GeomKind::Mesh(_) | GeomKind::Hfield(_) | GeomKind::Terrain => return None,
            GeomKind::Plane => {
                let half = |x: f32| if x > 0.0 { x } else { f32::INFINITY };
                Shape::Plane([half(s.x), half(s.y)])
            }
            GeomKind::Sphere => Shape::Sphere(s.x),
            GeomKind::Capsule => Shape::Capsule(s.x, s.y),
            GeomKind::Ellipsoid => Shape::Ellipsoid(s),
            GeomKind::Cylinder => Shape::Cylinder(s.x, s.y),
            GeomKind::Box => Shape::Box(s),
        })
    }

    /// Half-extents of the bounding box.
    pub fn half(&self) -> V3 {
        match *self {
            Shape::Sphere(r) => v3(r, r, r),
            Shape::Capsule(r, h) => v3(r, r, r + h),
            Shape::Ellipsoid(s) | Shape::Box(s) => s,
            Shape::Cylinder(r, h) => v3(r, r, h),
            Shape::Plane([x, y]) => v3(x, y, 0.0),
            Shape::Mesh(ref mesh) => mesh.half(),
            Shape::Ground(_) => v3(f32::INFINITY, f32::INFINITY, 0.0),
        }
    }

    /// Radius of the sphere around the origin that holds the shape.
    pub fn radius(&self) -> f32 {
        match *self {
            Shape::Capsule(r, h) => r + h,
            Shape::Ellipsoid(s) => s.x.max(s.y).max(s.z),
            Shape::Mesh(ref mesh) => mesh.radius(),
            _ => self.half().norm(),
        }
    }

    /// Where the ray `o + t d` enters. `d` need not be of unit length. `None` if it misses or
    /// starts inside.
    pub fn touch(&self, o: V3, d: V3) -> Option<Touch> {
        if let Shape::Mesh(mesh) = self {
            return mesh.touch(o, d);
        }
        self.hit(o, d).map(|(t, normal)| Touch { t, normal, coords: None })
    }

    /// Whether the ray `o + t d` enters it anywhere.
    pub fn blocks(&self, o: V3, d: V3) -> bool {
        match self {
            Shape::Mesh(mesh) => mesh.blocks(o, d),
            _ => self.hit(o, d).is_some(),
        }
    }

    /// Distance along the ray `o + t d` to where it enters, and the unit normal
    /// there. `d` need not be of unit length. `None` if it misses or starts inside.
    pub fn hit(&self, o: V3, d: V3) -> Option<(f32, V3)> {
        match *self {
            Shape::Sphere(r) => sphere(o, d, r).map(|t| (t, (o + d * t) * (1.0 / r))),
            Shape::Ellipsoid(s) => {
                let inv = v3(1.0 / s.x, 1.0 / s.y, 1.0 / s.z);
                let t = sphere(o.times(inv), d.times(inv), 1.0)?;
                Some((t, (o + d * t).times(inv).times(inv).unit()))
            }
            Shape::Box(s) => cuboid(o, d, s),
            Shape::Mesh(ref mesh) => mesh.hit(o, d),
            Shape::Ground(ref ground) => ground.hit(o, d),
            Shape::Plane([x, y]) => {
                let t = -o.z / d.z;
                let p = o + d * t;
                let met = d.z < 0.0 && t > 0.0 && p.x.abs() <= x && p.y.abs() <= y;
                met.then_some((t, v3(0.0, 0.0, 1.0)))
            }
            Shape::Capsule(r, h) => {
                if let Some(t) = tube(o, d, r)
                    && (o.z + t * d.z).abs() <= h
                {
                    let p = o + d * t;
                    return Some((t, v3(p.x, p.y, 0.0) * (1.0 / r)));
                }
                // The nearer of the two ends; both are needed, as a ray along the
                // axis passes through both.
                let end = |z: f32| sphere(o - v3(0.0, 0.0, z), d, r).map(|t| (t, z));
                let (t, z) = match (end(h), end(-h)) {
                    (Some(a), Some(b)) => {
                        if a.0 <= b.0 {
                            a
                        } else {
                            b
                        }
                    }
                    (a, b) => a.or(b)?,
                };
                Some((t, (o + d * t - v3(0.0, 0.0, z)) * (1.0 / r)))
            }
            Shape::Cylinder(r, h) => {
                if let Some(t) = tube(o, d, r)
                    && (o.z + t * d.z).abs() <= h
                {
                    let p = o + d * t;
                    return Some((t, v3(p.x, p.y, 0.0) * (1.0 / r)));
                }
                let side = -d.z.signum();
                let t = (side * h - o.z) / d.z;
                let p = o + d * t;
                (t > 0.0 && p.x * p.x + p.y * p.y <= r * r).then_some((t, v3(0.0, 0.0, side)))
            }
        }
    }
}

/// First positive root of |o + t d| = r.
fn sphere(o: V3, d: V3, r: f32) -> Option<f32> {
    let (a, b) = (d.dot(d), o.dot(d));
    // Measured from the ray's nearest point: exact even from far away, where
    // b^2 - a c would cancel.
    let near = o - d * (b / a);
    let gap = r * r - near.dot(near);
    if gap < 0.0 {
        return None;
    }
    let t = (-b - (gap * a).sqrt()) / a;
    (t > 0.0).then_some(t)
}

/// First positive root of the infinite cylinder x^2 + y^2 = r^2.
fn tube(o: V3, d: V3, r: f32) -> Option<f32> {
    sphere(v3(o.x, o.y, 0.0), v3(d.x, d.y, 0.0), r)
}

fn cuboid(o: V3, d: V3, s: V3) -> Option<(f32, V3)> {
    let mut enter = (f32::NEG_INFINITY, v3(0.0, 0.0, 0.0));
    let mut leave = f32::INFINITY;
    let axes = [
        (o.x, d.x, s.x, v3(1.0, 0.0, 0.0)),
        (o.y, d.y, s.y, v3(0.0, 1.0, 0.0)),
        (o.z, d.z, s.z, v3(0.0, 0.0, 1.0)),
    ];
    for (o, d, s, axis) in axes {
        if d == 0.0 {
            if o.abs() > s {
                return None;
            }
            continue;
        }
        let near = (-s * d.signum() - o) / d;
        if near > enter.0 {
            enter = (near, axis * -d.signum());
        }
        leave = leave.min((s * d.signum() - o) / d);
    }
    (enter.0 > 0.0 && enter.0 <= leave).then_some(enter)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOWN: V3 = v3(0.0, 0.0, -1.0);

    /// Distance from far above and from the side, by hand.
    #[test]
    fn rays_meet_shapes_where_geometry_says() {
        let top = v3(0.0, 0.0, 10.0);
        let side = v3(10.0, 0.0, 0.0);
        let left = v3(-1.0, 0.0, 0.0);
        let all = [
            (Shape::Sphere(1.0), 9.0, 9.0),
            (Shape::Capsule(0.5, 2.0), 7.5, 9.5),
            (Shape::Ellipsoid(v3(1.0, 2.0, 3.0)), 7.0, 9.0),
            (Shape::Cylinder(0.5, 2.0), 8.0, 9.5),
            (Shape::Box(v3(1.0, 2.0, 3.0)), 7.0, 9.0),
        ];
        for (shape, down, across) in all {
            let (t, n) = shape.hit(top, DOWN).unwrap();
            assert!((t - down).abs() < 1e-5, "{shape:?} {t}");
            assert!((n - v3(0.0, 0.0, 1.0)).norm() < 1e-5, "{shape:?} {n:?}");
            let (t, n) = shape.hit(side, left).unwrap();
            assert!((t - across).abs() < 1e-5, "{shape:?} {t}");
            assert!((n - v3(1.0, 0.0, 0.0)).norm() < 1e-5, "{shape:?} {n:?}");
            // Away from it, and past it.
            assert!(shape.hit(top, -DOWN).is_none());
            assert!(shape.hit(top + v3(5.0, 0.0, 0.0), DOWN).is_none());
        }
    }

    /// Every hit lies within the bounding box and sphere that culling relies on.
    #[test]
    fn hits_lie_within_the_bounds() {
        let shapes = [
            Shape::Sphere(0.3),
            Shape::Capsule(0.2, 0.5),
            Shape::Ellipsoid(v3(0.3, 0.4, 0.1)),
            Shape::Cylinder(0.3, 0.2),
            Shape::Box(v3(0.2, 0.3, 0.4)),
        ];
        let mut hits = 0;
        for k in 0..2000u32 {
            let w = ostler_sim::rng::philox_raw([k, 0, 0, 0], [1, 2]);
            let u = w.map(|x| 2.0 * ostler_sim::rng::unit(x) - 1.0);
            let o = v3(u[0], u[1], u[2]).unit() * 2.0;
            let target = v3(u[3], u[0] * u[1] * 3.0, u[2] * u[3] * 3.0) * 0.4;
            let d = (target - o).unit();
            for shape in &shapes {
                let Some((t, n)) = shape.hit(o, d) else {
                    continue;
                };
                hits += 1;
                let (p, h) = (o + d * t, shape.half());
                let e = 1e-4;
                assert!(p.x.abs() <= h.x + e && p.y.abs() <= h.y + e && p.z.abs() <= h.z + e);
                assert!(p.norm() <= shape.radius() + e);
                assert!((n.norm() - 1.0).abs() < 1e-3 && n.dot(d) <= e, "{shape:?}");
            }
        }
        assert!(hits > 2000, "{hits}");
    }
}
