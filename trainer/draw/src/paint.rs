//! Textures on shapes: where a point of a shape lies on a picture.
//!
//! Source: MuJoCo 3.12, `settexture` of `src/render/classic/render_gl3.c` and the shapes of
//! `render_context.c`; three.js has the same in `view/page/paint.js`.

use super::math::{V3, v3};
use super::picture::Picture;
use super::scene::linear;
use super::shape::{Shape, Touch};
use ostler_sim::model::looks::Paint;
use std::f32::consts::{PI, TAU};
use std::sync::Arc;

/// A texture on a shape.
#[derive(Debug, Clone, PartialEq)]
pub struct Coat {
    /// The texture.
    pub picture: Arc<Picture>,
    /// The colour that it is multiplied with, as the file has it.
    pub tint: [f32; 3],
    /// How it lies.
    pub lie: Lie,
}

/// How a texture lies on a shape.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Lie {
    /// Along z: pictures for x and y (1/m), and where the shape's origin is.
    Flat([f32; 2], [f32; 2]),
    /// Once around a primitive, or over every side of a box, so many times.
    Around([f32; 2]),
    /// By the coordinates that a mesh has, so many times.
    Coords([f32; 2]),
    /// By the direction from the middle, in sizes of the shape, times these.
    Cube(V3),
}

impl Coat {
    /// `paint` on `shape`; `tint` is the shape's own colour.
    pub fn new(picture: Arc<Picture>, paint: &Paint, tint: [f32; 3], shape: &Shape) -> Coat {
        let half = shape.half();
        let uniform = |size: f32| {
            if paint.uniform && size > 0.0 { size } else { 1.0 }
        };
        let given = paint.repeat.map(|r| if r > 0.0 { r } else { 1.0 });
        let [x, y] = [half.x, half.y].map(|h| if h.is_finite() { h } else { 0.0 });
        let repeat = [given[0] * uniform(x), given[1] * uniform(y)];
        let lie = match shape {
            _ if picture.cube => Lie::Cube(stretch(shape, paint.uniform)),
            Shape::Plane(_) | Shape::Ground(_) => {
                let whole = x > 0.0 && y > 0.0;
                // From the corner; of an endless plane from its origin.
                let shift = if whole { 0.0 } else { 0.5 };
                let side = |k: usize, half: f32| match half > 0.0 {
                    true => (0.5 * repeat[k] / half, 0.5 * repeat[k] - shift),
                    false => (0.5 * repeat[k], -shift),
                };
                let ((a, c), (b, d)) = (side(0, x), side(1, y));
                Lie::Flat([a, -b], [c, d])
            }
            Shape::Mesh(mesh) if mesh.has_coords() => Lie::Coords(repeat),
            Shape::Mesh(_) => {
                let per = |k: usize, half: f32| match paint.uniform {
                    true => 0.5 * paint.repeat[k],
                    false => 0.5 * paint.repeat[k] / half.max(1e-9),
                };
                Lie::Flat([per(0, x), -per(1, y)], [-0.5; 2])
            }
            _ => Lie::Around(repeat),
        };
        Coat { picture, tint, lie }
    }

    /// The mean colour, linear light.
    pub fn mean(&self) -> V3 {
        self.tinted(self.picture.mean)
    }

    /// The colour of `shape`, linear light, where a ray with unit direction `d` in the shape's
    /// frame touches it; `across`: how wide (m) what is seen there as one is.
    pub fn color(&self, shape: &Shape, at: &Touch, p: V3, d: V3, across: f32) -> V3 {
        let n = at.normal;
        let side = n.cross(d).unit();
        let away = n.cross(side);
        let along = across / d.dot(n).abs().max(0.02);
        let seen = match self.lie {
            Lie::Flat(scale, shift) => {
                let [a, b] =
                    [side * across, away * along].map(|s| [s.x * scale[0], s.y * scale[1]]);
                let place = [p.x * scale[0] + shift[0], p.y * scale[1] + shift[1]];
                self.picture.flat(place, a, b)
            }
            Lie::Around(repeat) => {
                let place = around(shape, p, n);
                let step = |s: V3| {
                    let next = around(shape, p + s, n);
                    // Not once around: there are seams.
                    [0, 1].map(|k| {
                        let by = next[k] - place[k];
                        (by - by.round()) * repeat[k]
                    })
                };
                let [a, b] = [step(side * across), step(away * along)];
                let place = [place[0] * repeat[0], place[1] * repeat[1]];
                self.picture.flat(place, a, b)
            }
            Lie::Coords(repeat) => {
                let Some((place, per)) = at.coords else {
                    return self.mean();
                };
                let by = per * (across * along).sqrt();
                let place = [place[0] * repeat[0], place[1] * repeat[1]];
                self.picture.flat(place, [by * repeat[0], 0.0], [0.0, by * repeat[1]])
            }
            Lie::Cube(times) => {
                let at = direction(shape, p).times(times);
                let step = |s: V3| (direction(shape, p + s).times(times) - at).norm();
                let by = (step(side * across) * step(away * along)).sqrt();
                self.picture.cube(at, by)
            }
        };
        self.tinted(seen)
    }

    fn tinted(&self, seen: [f32; 3]) -> V3 {
        linear([0, 1, 2].map(|i| seen[i] * self.tint[i]))
    }
}

/// Factors of [`direction`]: without `texuniform` a primitive counts as of size 1.
fn stretch(shape: &Shape, uniform: bool) -> V3 {
    let one = v3(1.0, 1.0, 1.0);
    match shape {
        _ if !uniform => one,
        Shape::Capsule(r, h) => v3(*r, *r, *h),
        Shape::Plane(_) | Shape::Ground(_) => one,
        _ => shape.half(),
    }
}

/// Where a point of a primitive lies on a picture that goes around it once, from 0 to 1.
fn around(shape: &Shape, p: V3, n: V3) -> [f32; 2] {
    let turn = |x: f32, y: f32| {
        let part = y.atan2(x) / TAU;
        if part < 0.0 { part + 1.0 } else { part }
    };
    let below = |z: f32| 0.5 - z.clamp(-1.0, 1.0).asin() / PI;
    match *shape {
        Shape::Sphere(r) => [turn(p.x, p.y), below(p.z / r)],
        Shape::Ellipsoid(s) => [turn(p.x / s.x, p.y / s.y), below(p.z / s.z)],
        Shape::Capsule(r, h) => {
            // Each end has the picture once more.
            let end = |z: f32| 2.0 * (z / r).clamp(0.0, 1.0).asin() / PI;
            let v = match p.z {
                z if z > h => 1.0 - end(z - h),
                z if z < -h => end(-h - z),
                z => 0.5 - 0.5 * z / h,
            };
            [turn(p.x, p.y), v]
        }
        Shape::Cylinder(r, h) => match n.z.abs() > 0.5 {
            true => [0.5 + 0.5 * p.x / r, 0.5 + 0.5 * p.y / r],
            false => [turn(p.x, p.y), 0.5 - 0.5 * p.z / h],
        },
        Shape::Box(s) => {
            let [x, y, z] = [p.x / s.x, p.y / s.y, p.z / s.z];
            let (a, b) = if n.z.abs() > 0.5 {
                (x, y)
            } else if n.x.abs() > 0.5 {
                (y, z)
            } else {
                (x, z)
            };
            [0.5 + 0.5 * a, 0.5 - 0.5 * b]
        }
        Shape::Plane(_) | Shape::Mesh(_) | Shape::Ground(_) => [0.0; 2],
    }
}

/// From the middle to a point, of a primitive in its sizes.
fn direction(shape: &Shape, p: V3) -> V3 {
    match *shape {
        Shape::Sphere(r) => p * (1.0 / r),
        Shape::Ellipsoid(s) | Shape::Box(s) => v3(p.x / s.x, p.y / s.y, p.z / s.z),
        Shape::Cylinder(r, h) => v3(p.x / r, p.y / r, p.z / h),
        Shape::Capsule(r, h) => {
            let beyond = (p.z.abs() - h).max(0.0) / r;
            let z = (p.z / h).clamp(-1.0, 1.0) + beyond * p.z.signum();
            v3(p.x / r, p.y / r, z)
        }
        Shape::Plane(_) | Shape::Mesh(_) | Shape::Ground(_) => p,
    }
}
