//! Distances along rays, as MuJoCo's `rangefinder` measures them (`engine_ray.c`).

use super::frames::{point, turned};
use crate::expr::checker::Checker;
use crate::expr::dag::{Dag, Id};
use crate::expr::ops::Op;
use ostler_model::{Geom, GeomKind, rotation};

/// Squares below this are 0: MuJoCo's `mjMINVAL`.
const LEAST: f64 = 1e-15;

/// A ray, in the frame of what it may meet.
#[derive(Clone, Copy)]
struct Ray {
    from: [Id; 3],
    along: [Id; 3],
}

/// The distance from a site along its z axis to the first visible geom that is not of the
/// site's own body; -1 where there is none.
///
/// # Errors
/// Objects that a ray might meet and cannot: a mesh, a height field, a shape that was not kept.
pub(crate) fn rangefinder(c: &mut Checker<'_>, site: usize) -> Result<Id, String> {
    let model = c.scope.model;
    let site = &model.sites[site];
    let from = point(c, site.body, site.pos);
    let q = turned(c, site.body, site.quat);
    let z = [0.0, 0.0, 1.0].map(|x| c.dag.constant(x));
    let along = c.dag.rotate(q, z, false);
    let mut nearest = c.dag.constant(f64::INFINITY);
    let seen = |g: &&Geom| g.body != site.body && !g.unseen;
    let mut others = (model.bodies.iter().enumerate()).filter(|(b, _)| *b != site.body);
    if let Some((_, body)) = others.find(|(_, body)| body.more_seen) {
        return Err(format!("a shape of \"{}\" that is only seen", body.name));
    }
    for geom in model.geoms.iter().filter(seen) {
        let centre = point(c, geom.body, geom.pos);
        let axes = turned(c, geom.body, geom.quat);
        let d = &mut c.dag;
        let offset = std::array::from_fn(|k| d.sub(from[k], centre[k]));
        let ray = Ray { from: d.rotate(axes, offset, true), along: d.rotate(axes, along, true) };
        let met = match geom.kind {
            GeomKind::Plane => plane(d, ray, geom.size),
            GeomKind::Sphere => round(d, ray, [geom.size[0]; 3]),
            GeomKind::Ellipsoid => round(d, ray, geom.size),
            GeomKind::Capsule => capsule(d, ray, geom.size),
            GeomKind::Cylinder => cylinder(d, ray, geom.size),
            GeomKind::Box => cuboid(d, ray, geom.size),
            GeomKind::Terrain => {
                let ray = [site.pos, rotation::rotate(site.quat, [0.0, 0.0, 1.0])];
                let met = super::terrain::distance(c, site.body, ray)?;
                nearest = c.dag.two(Op::Min, nearest, met);
                continue;
            }
            GeomKind::Mesh(_) | GeomKind::Hfield(_) => {
                return Err(format!("the mesh or height field \"{}\"", geom.name));
            }
        };
        nearest = c.dag.two(Op::Min, nearest, met);
    }
    let none = c.dag.constant(-1.0);
    let far = c.dag.constant(f64::from(f32::MAX));
    let met = c.dag.two(Op::Le, nearest, far);
    Ok(c.dag.select(met, nearest, none))
}

/// `x` where `holds`, else no distance.
fn only(d: &mut Dag, holds: Id, x: Id) -> Id {
    let none = d.constant(f64::INFINITY);
    d.select(holds, x, none)
}

/// `|x| <= most`.
fn within(d: &mut Dag, x: Id, most: f64) -> Id {
    let (size, most) = (d.one(Op::Abs, x), d.constant(most));
    d.two(Op::Le, size, most)
}

/// `from + x * along`, component `k`.
fn at(d: &mut Dag, ray: Ray, x: Id, k: usize) -> Id {
    let way = d.mul(x, ray.along[k]);
    d.add(ray.from[k], way)
}

/// Both solutions of `a x^2 + 2 b x + c = 0`, of which `(b^2 - a c)` is given; none of
/// them counts where there are none or they lie behind.
fn roots(d: &mut Dag, a: Id, b: Id, discriminant: Id) -> [Id; 2] {
    let least = d.constant(LEAST);
    let some = d.two(Op::Le, least, discriminant);
    let root = d.one(Op::Sqrt, discriminant);
    let b = d.one(Op::Neg, b);
    let zero = d.constant(0.0);
    [d.sub(b, root), d.add(b, root)].map(|x| {
        let x = d.div(x, a);
        let ahead = d.two(Op::Le, zero, x);
        let counts = d.two(Op::And, some, ahead);
        only(d, counts, x)
    })
}

/// The two crossings of a unit sphere (or, of two components, a circle) about the origin.
/// The discriminant comes from the distance of the line, which keeps its digits far away.
fn crossings(d: &mut Dag, from: &[Id], along: &[Id]) -> [Id; 2] {
    let (a, b) = (d.dot(along, along), d.dot(along, from));
    let off = match (from, along) {
        (&[x, y, z], &[u, v, w]) => {
            let off = d.cross([x, y, z], [u, v, w]);
            d.dot(&off, &off)
        }
        _ => {
            let (p, q) = (d.mul(from[0], along[1]), d.mul(from[1], along[0]));
            let off = d.sub(p, q);
            d.mul(off, off)
        }
    };
    let discriminant = d.sub(a, off);
    roots(d, a, b, discriminant)
}

/// The ray where lengths are counted in `size`.
fn scaled(d: &mut Dag, ray: Ray, size: [f64; 3]) -> Ray {
    let mut each = |v: [Id; 3]| {
        std::array::from_fn(|k| {
            let scale = d.constant(1.0 / size[k]);
            d.mul(v[k], scale)
        })
    };
    Ray { from: each(ray.from), along: each(ray.along) }
}

/// From in front only; within the rendered rectangle where it is not infinite.
fn plane(d: &mut Dag, ray: Ray, size: [f64; 3]) -> Id {
    let (back, zero) = (d.constant(-LEAST), d.constant(0.0));
    let mut holds = d.two(Op::Le, ray.along[2], back);
    let up = d.one(Op::Neg, ray.from[2]);
    let x = d.div(up, ray.along[2]);
    let ahead = d.two(Op::Le, zero, x);
    holds = d.two(Op::And, holds, ahead);
    for (k, half) in size.into_iter().take(2).enumerate().filter(|s| s.1 > 0.0) {
        let place = at(d, ray, x, k);
        let inside = within(d, place, half);
        holds = d.two(Op::And, holds, inside);
    }
    only(d, holds, x)
}

/// A sphere or ellipsoid.
fn round(d: &mut Dag, ray: Ray, size: [f64; 3]) -> Id {
    let ray = scaled(d, ray, size);
    let [near, far] = crossings(d, &ray.from, &ray.along);
    d.two(Op::Min, near, far)
}

/// The first crossing of the side of a cylinder, if that is between its ends. One through
/// which a ray from inside leaves beyond its end is no hit, nor is one behind it.
fn side(d: &mut Dag, ray: Ray, [radius, half, _]: [f64; 3]) -> Id {
    let scale = [radius, radius, 1.0];
    let unit = scaled(d, ray, scale);
    let [near, far] = crossings(d, &unit.from[..2], &unit.along[..2]);
    let x = d.two(Op::Min, near, far);
    let height = at(d, ray, x, 2);
    let inside = within(d, height, half);
    only(d, inside, x)
}

fn capsule(d: &mut Dag, ray: Ray, size: [f64; 3]) -> Id {
    let [radius, half, _] = size;
    let mut nearest = side(d, ray, size);
    for end in [1.0, -1.0] {
        let middle = d.constant(end * half);
        let [x, y, z] = ray.from;
        let shifted = Ray { from: [x, y, d.sub(z, middle)], ..ray };
        let unit = scaled(d, shifted, [radius; 3]);
        for x in crossings(d, &unit.from, &unit.along) {
            // Of the ball only the half beyond the cylinder.
            let height = at(d, ray, x, 2);
            let beyond = match end > 0.0 {
                true => d.two(Op::Le, middle, height),
                false => d.two(Op::Le, height, middle),
            };
            let x = only(d, beyond, x);
            nearest = d.two(Op::Min, nearest, x);
        }
    }
    nearest
}

fn cylinder(d: &mut Dag, ray: Ray, size: [f64; 3]) -> Id {
    let [radius, half, _] = size;
    let mut nearest = side(d, ray, size);
    for end in [1.0, -1.0] {
        let x = face(d, ray, 2, end * half);
        let (p, q) = (at(d, ray, x, 0), at(d, ray, x, 1));
        let off = d.dot(&[p, q], &[p, q]);
        let most = d.constant(radius * radius);
        let inside = d.two(Op::Le, off, most);
        let x = only(d, inside, x);
        nearest = d.two(Op::Min, nearest, x);
    }
    nearest
}

fn cuboid(d: &mut Dag, ray: Ray, size: [f64; 3]) -> Id {
    let mut nearest = d.constant(f64::INFINITY);
    for k in 0..3 {
        for end in [1.0, -1.0] {
            let x = face(d, ray, k, end * size[k]);
            let inside = [(k + 1) % 3, (k + 2) % 3].map(|i| {
                let place = at(d, ray, x, i);
                within(d, place, size[i])
            });
            let inside = d.two(Op::And, inside[0], inside[1]);
            let x = only(d, inside, x);
            nearest = d.two(Op::Min, nearest, x);
        }
    }
    nearest
}

/// Where component `k` is `place`, ahead; no number or infinite where it never is.
fn face(d: &mut Dag, ray: Ray, k: usize, place: f64) -> Id {
    let (place, zero) = (d.constant(place), d.constant(0.0));
    let way = d.sub(place, ray.from[k]);
    let x = d.div(way, ray.along[k]);
    let ahead = d.two(Op::Le, zero, x);
    only(d, ahead, x)
}
