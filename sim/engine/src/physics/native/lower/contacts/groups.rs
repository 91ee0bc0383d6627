//! Groups of candidate pairs that one test of two spheres leaves out: those of the same two
//! bodies, or of a static geom and a body (`kernels/collide/broad.cuh`).

use super::super::context::Context;
use super::candidate::Candidate;
use super::crowd::{Crowd, Leaf};
use super::kept_apart::KeptApart;
use super::shape;
use crate::physics::native::tables::RobotTables;
use ostler_model::rotation::{add, dot};
use ostler_model::{GeomKind, Vec3};

/// Groups of fewer pairs are not worth a test of their own.
const WORTH: usize = 2;

/// The two sides of a pair: a moving body each, or a static geom first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Side {
    Static(usize),
    Moving(usize),
}

/// The side of a geom.
pub(super) fn side(c: &Context, g: usize) -> Side {
    match c.tree.carrier[c.model.geoms[g].body].body {
        None => Side::Static(g),
        Some(body) => Side::Moving(body),
    }
}

/// The sides of a candidate, in an order that does not depend on its geoms' types.
pub(super) fn key(c: &Context, candidate: &Candidate) -> [Side; 2] {
    let mut sides = candidate.geoms.map(|g| side(c, g));
    sides.sort();
    sides
}

/// A sphere in the frame of a moving body.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Ball {
    centre: Vec3,
    radius: f64,
}

/// Writes the groups of the pairs in `order`, which are written. Those that `kept_apart`
/// holds are the last ones of their groups. Those of the crowd are the first ones of all.
pub(super) fn write(
    c: &Context,
    order: &[&Candidate],
    kept_apart: &KeptApart,
    crowd: &Crowd,
    plan: &mut RobotTables,
) {
    let held = held(c, order);
    let mut balls: Vec<Option<i32>> = vec![None; held.len()];
    plan.group_adr.push(0);
    let mut leaves = Vec::new();
    let mut first = 0;
    for group in order.chunk_by(|a, b| key(c, a) == key(c, b)) {
        let pairs = first..first + group.len();
        first = pairs.end;
        plan.group_adr.push(first as i32);
        let live = group.iter().filter(|pair| !kept_apart.holds(pair));
        plan.group_live.push((pairs.start + live.count()) as i32);
        let reach = plan.pair_reach[pairs.clone()].iter();
        let reach = reach.copied().fold(0.0, f64::max);
        let mut ball = |body: usize| {
            *balls[body].get_or_insert_with(|| {
                plan.ball_body.push(body as i32);
                plan.ball_pos.extend(held[body].centre);
                plan.nball += 1;
                plan.nball as i32 - 1
            })
        };
        let sides = key(c, group[0]);
        if let ([Side::Static(still), Side::Moving(body)], true) = (sides, crowd.holds(sides)) {
            // From a point of the box.
            let near = shape::near([GeomKind::Sphere; 2], [0.0, held[body].radius], reach);
            let (ball, group) = (ball(body), plan.group_near.len() as i32);
            leaves.push(Leaf { ball, still, group, near });
        }
        let (sides, near) = match sides {
            _ if group.len() < WORTH => ([-1, -1], 0.0),
            [Side::Static(g), Side::Moving(b)] => {
                // The shared ground is looked up below the sphere.
                let kind = match c.model.geoms[g].kind {
                    GeomKind::Terrain => GeomKind::Plane,
                    kind => kind,
                };
                let kinds = [kind, GeomKind::Sphere];
                let still = plan.cg_bound[plan.pair_g1[pairs.start] as usize];
                let near = shape::near(kinds, [still, held[b].radius], reach);
                ([-1, ball(b)], near)
            }
            [Side::Moving(a), Side::Moving(b)] => {
                let bounds = [a, b].map(|body| held[body].radius);
                let near = shape::near([GeomKind::Sphere; 2], bounds, reach);
                ([ball(a), ball(b)], near)
            }
            _ => ([-1, -1], 0.0),
        };
        plan.group_ball.extend(sides);
        plan.group_near.push(near.min(shape::EVERYWHERE));
    }
    plan.ngroup = plan.group_near.len();
    plan.ncrowd = leaves.len();
    crowd.write(&mut leaves, plan);
}

/// A sphere around the geoms of each moving body that are in candidate pairs.
fn held(c: &Context, order: &[&Candidate]) -> Vec<Ball> {
    let mut geoms: Vec<Vec<usize>> = vec![Vec::new(); c.tree.moving.len()];
    for g in order.iter().flat_map(|candidate| candidate.geoms) {
        if let Some(body) = c.tree.carrier[c.model.geoms[g].body].body {
            geoms[body].push(g);
        }
    }
    let around = |mut geoms: Vec<usize>| {
        geoms.sort_unstable();
        geoms.dedup();
        let parts: Vec<Ball> = geoms.iter().flat_map(|g| parts(c, *g)).collect();
        enclosing(&parts)
    };
    geoms.into_iter().map(around).collect()
}

/// Spheres whose hull holds a geom, in the frame of the body that carries it.
fn parts(c: &Context, g: usize) -> Vec<Ball> {
    let geom = &c.model.geoms[g];
    let pose = c.tree.fixed(geom.body, geom.pos, geom.quat);
    let at = |p: Vec3, radius: f64| Ball { centre: pose.point(p), radius };
    let [x, y, z] = geom.size;
    let corners = |[x, y, z]: Vec3| {
        let sign = |bit: usize| move |i: usize| if i & bit == 0 { -1.0 } else { 1.0 };
        let corner = |i| at([sign(1)(i) * x, sign(2)(i) * y, sign(4)(i) * z], 0.0);
        (0..8).map(corner).collect()
    };
    match geom.kind {
        GeomKind::Sphere => vec![at([0.0; 3], x)],
        GeomKind::Capsule => [-y, y].map(|z| at([0.0, 0.0, z], x)).into(),
        GeomKind::Ellipsoid => vec![at([0.0; 3], x.max(y).max(z))],
        GeomKind::Box => corners([x, y, z]),
        GeomKind::Cylinder => corners([x, x, y]),
        GeomKind::Mesh(i) => {
            let vertices = c.model.meshes[i].vertices.iter();
            vertices.map(|v| at(v.map(f64::from), 0.0)).collect()
        }
        GeomKind::Plane | GeomKind::Hfield(_) | GeomKind::Terrain => {
            vec![at([0.0; 3], f64::INFINITY)]
        }
    }
}

/// A sphere around others, at most a few per cent larger than the least.
///
/// Source: Badoiu, Clarkson, Smaller core-sets for balls, 2003: the centre goes towards the
/// farthest part, by less and less.
fn enclosing(parts: &[Ball]) -> Ball {
    const TURNS: usize = 200;
    let far = |centre: Vec3, part: &Ball| {
        let gap = from_to(centre, part.centre);
        dot(gap, gap).sqrt() + part.radius
    };
    let radius = |centre: Vec3| parts.iter().map(|p| far(centre, p)).fold(0.0, f64::max);
    let mut centre = parts.first().map_or([0.0; 3], |p| p.centre);
    let mut best = (radius(centre), centre);
    if best.0.is_infinite() {
        return Ball { centre, radius: best.0 };
    }
    for turn in 1..=TURNS {
        let farthest = parts.iter().max_by(|a, b| far(centre, a).total_cmp(&far(centre, b)));
        let Some(part) = farthest else { break };
        // The farthest point of it.
        let gap = from_to(centre, part.centre);
        let length = dot(gap, gap).sqrt();
        let whole = if length > 0.0 { 1.0 + part.radius / length } else { 0.0 };
        centre = add(centre, gap.map(|x| x * whole / (turn as f64 + 1.0)));
        let now = radius(centre);
        if now < best.0 {
            best = (now, centre);
        }
    }
    let (radius, centre) = best;
    Ball { centre, radius }
}

fn from_to(a: Vec3, b: Vec3) -> Vec3 {
    add(b, a.map(|x| -x))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sphere_around_others_holds_them_and_is_small() {
        let ball = |centre, radius| Ball { centre, radius };
        // Two of them: the least one is known.
        let two = [ball([0.0, 0.0, 0.0], 1.0), ball([4.0, 0.0, 0.0], 0.5)];
        let all = enclosing(&two);
        assert!((2.75..2.85).contains(&all.radius), "{all:?}");
        // A cube's corners.
        let corners = |i: u32| [i & 1, i >> 1 & 1, i >> 2].map(|bit| f64::from(bit) + 10.0);
        let cube: Vec<Ball> = (0..8).map(|i| ball(corners(i), 0.0)).collect();
        let all = enclosing(&cube);
        let least = 0.75_f64.sqrt();
        assert!((least - 1e-12..least * 1.02).contains(&all.radius), "{all:?}");
        for part in two.iter().chain(&cube) {
            assert!(enclosing(&[*part]).radius == part.radius);
        }
        // One inside another.
        let nested = [ball([1.0, 0.0, 0.0], 5.0), ball([2.0, 0.0, 0.0], 1.0)];
        assert!(enclosing(&nested).radius <= 5.0 + 1e-12);
        assert_eq!(enclosing(&[]).radius, 0.0);
    }
}
