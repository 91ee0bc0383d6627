//! Shapes that hold geoms, and a lower bound of their distances.

use super::super::context::Context;
use super::groups::{Side, side};
use super::shape::half_sizes;
use ostler_model::rotation::{Pose, add, cross, dot, matrix, normalized};
use ostler_model::{GeomKind, Vec3};

/// A shape that holds a geom, in the frame of the body that carries it.
#[derive(Debug, Clone)]
pub(super) enum Held {
    /// All below a plane with this normal.
    Plane,
    /// A sphere around a segment along z: half length, radius.
    Rod(f64, f64),
    /// A box: half sizes.
    Brick(Vec3),
}

/// A geom in the frame that both of a pair are placed in.
#[derive(Debug, Clone)]
pub(super) struct Placed<'a> {
    held: &'a Held,
    centre: Vec3,
    /// Columns.
    axes: [Vec3; 3],
}

impl<'a> Placed<'a> {
    /// A shape in this pose.
    pub(super) fn new(held: &'a Held, pose: Pose) -> Self {
        let rows = matrix(pose.quat);
        Self {
            held,
            centre: pose.pos,
            axes: [0, 1, 2].map(|j| [rows[0][j], rows[1][j], rows[2][j]]),
        }
    }

    /// How far it reaches from its centre along a unit vector.
    fn reach(&self, n: Vec3) -> f64 {
        match self.held {
            Held::Plane => f64::INFINITY,
            Held::Rod(half, radius) => half * dot(self.axes[2], n).abs() + radius,
            Held::Brick(half) => (0..3).map(|i| half[i] * dot(self.axes[i], n).abs()).sum(),
        }
    }

    /// The largest gap along some directions; along any direction it is no more than the
    /// distance.
    pub(super) fn gap(&self, other: &Self) -> f64 {
        let between = from_to(self.centre, other.centre);
        if let Held::Plane = self.held {
            let up = self.axes[2];
            return dot(up, between) - other.reach(up);
        }
        if let Held::Plane = other.held {
            return other.gap(self);
        }
        let mut directions = vec![between];
        match (self.held, other.held) {
            (Held::Rod(..), Held::Rod(..)) => directions.push(self.rods_nearest(other)),
            _ => {
                // The faces, and edges or axes with each other.
                for shape in [self, other] {
                    if let Held::Brick(_) = shape.held {
                        directions.extend(shape.axes);
                    }
                }
                for (a, b) in [0, 1, 2].iter().flat_map(|a| [0, 1, 2].map(|b| (*a, b))) {
                    directions.push(cross(self.axes[a], other.axes[b]));
                }
            }
        }
        let gaps = directions.into_iter().filter_map(normalized).map(|n| {
            let away = dot(n, between).abs();
            away - self.reach(n) - other.reach(n)
        });
        gaps.fold(f64::NEG_INFINITY, f64::max)
    }

    /// From the nearest point of one rod's segment to that of the other's.
    ///
    /// Source: Ericson, Real-Time Collision Detection, 2005, 5.1.9.
    fn rods_nearest(&self, other: &Self) -> Vec3 {
        let half = |shape: &Self| match shape.held {
            Held::Rod(half, _) => *half,
            _ => 0.0,
        };
        let (h1, h2) = (half(self), half(other));
        let (a, b) = (self.axes[2], other.axes[2]);
        let between = from_to(self.centre, other.centre);
        let cosine = dot(a, b);
        let sine2 = 1.0 - cosine * cosine;
        let mut x =
            if sine2 > 1e-9 { (dot(a, between) - cosine * dot(b, between)) / sine2 } else { 0.0 };
        x = x.clamp(-h1, h1);
        let y = (cosine * x - dot(b, between)).clamp(-h2, h2);
        x = (dot(a, between) + cosine * y).clamp(-h1, h1);
        let on = add(self.centre, a.map(|k| k * x));
        from_to(on, add(other.centre, b.map(|k| k * y)))
    }
}

/// The shape that holds a geom; none holds a height field.
pub(super) fn held(c: &Context, g: usize) -> Option<Held> {
    let geom = &c.model.geoms[g];
    let [radius, half, _] = geom.size;
    Some(match geom.kind {
        GeomKind::Plane => match side(c, g) {
            Side::Static(_) => Held::Plane,
            Side::Moving(_) => return None,
        },
        GeomKind::Hfield(_) | GeomKind::Terrain => return None,
        GeomKind::Sphere => Held::Rod(0.0, radius),
        GeomKind::Capsule | GeomKind::Cylinder => Held::Rod(half, radius),
        GeomKind::Box | GeomKind::Ellipsoid | GeomKind::Mesh(_) => {
            Held::Brick(half_sizes(c.model, geom))
        }
    })
}

pub(super) fn norm(v: Vec3) -> f64 {
    dot(v, v).sqrt()
}

pub(super) fn from_to(a: Vec3, b: Vec3) -> Vec3 {
    add(b, a.map(|x| -x))
}
