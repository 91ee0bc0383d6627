//! Poses and velocities of bodies and of frames fixed to them.

use super::fields::{field, varies};
use crate::expr::checker::Checker;
use crate::expr::dag::{Id, Seen, Source};
use crate::expr::element::{Element, ElementKind};
use crate::expr::ops::Op;
use ostler_model::Field;

/// The body an element is fixed to, and its pose in the body's frame.
fn fixed(c: &Checker<'_>, e: Element) -> (usize, [f64; 3], [f64; 4]) {
    let model = c.scope.model;
    match e.kind {
        ElementKind::Site => {
            let s = &model.sites[e.index];
            (s.body, s.pos, s.quat)
        }
        ElementKind::Geom => {
            let g = &model.geoms[e.index];
            (g.body, g.pos, g.quat)
        }
        _ => (e.index, [0.0; 3], [1.0, 0.0, 0.0, 0.0]),
    }
}

/// A body's quantity.
pub(crate) fn load<const K: usize>(c: &mut Checker<'_>, source: Source, body: usize) -> [Id; K] {
    c.reads(Element { kind: ElementKind::Body, index: body });
    std::array::from_fn(|k| c.dag.load(source, K * body + k))
}

/// A place in a body's frame; none is its origin.
pub(crate) type Place = Option<[Id; 3]>;

fn placed(c: &mut Checker<'_>, at: [f64; 3]) -> Place {
    (at != [0.0; 3]).then(|| at.map(|x| c.dag.constant(x)))
}

/// The centre of mass of a body, in its frame: an environment's own where events move it.
pub(crate) fn centre_of(c: &mut Checker<'_>, body: usize) -> Place {
    match varies(c, Field::Com, body) {
        true => Some(field(c, Field::Com, body)),
        false => placed(c, c.scope.model.bodies[body].ipos),
    }
}

/// A point fixed to a body: its offset from the body's origin in the world.
fn offset(c: &mut Checker<'_>, body: usize, at: Place) -> Place {
    let at = at?;
    let q = load(c, Source::World(Seen::BodyQuat), body);
    Some(c.dag.rotate(q, at, false))
}

/// World position of a point fixed to a body.
pub(crate) fn point(c: &mut Checker<'_>, body: usize, at: [f64; 3]) -> [Id; 3] {
    let at = placed(c, at);
    point_at(c, body, at)
}

/// The same, of a place that may be an environment's own.
pub(crate) fn point_at(c: &mut Checker<'_>, body: usize, at: Place) -> [Id; 3] {
    let origin: [Id; 3] = load(c, Source::World(Seen::BodyPos), body);
    match offset(c, body, at) {
        None => origin,
        Some(r) => std::array::from_fn(|k| c.dag.add(origin[k], r[k])),
    }
}

/// v + omega x r
pub(crate) fn point_vel(c: &mut Checker<'_>, body: usize, at: [f64; 3]) -> [Id; 3] {
    let at = placed(c, at);
    point_vel_at(c, body, at)
}

/// The same, of a place that may be an environment's own.
pub(crate) fn point_vel_at(c: &mut Checker<'_>, body: usize, at: Place) -> [Id; 3] {
    let origin: [Id; 3] = load(c, Source::World(Seen::BodyLinVel), body);
    let Some(r) = offset(c, body, at) else {
        return origin;
    };
    let omega = load(c, Source::World(Seen::BodyAngVel), body);
    let turning = c.dag.cross(omega, r);
    std::array::from_fn(|k| c.dag.add(origin[k], turning[k]))
}

/// Position of an element in the world.
pub(crate) fn pos(c: &mut Checker<'_>, e: Element) -> [Id; 3] {
    c.reads(e);
    let (body, at, _) = fixed(c, e);
    point(c, body, at)
}

/// Linear velocity of an element, world frame.
pub(crate) fn lin_vel(c: &mut Checker<'_>, e: Element) -> [Id; 3] {
    c.reads(e);
    let (body, at, _) = fixed(c, e);
    point_vel(c, body, at)
}

/// Angular velocity of an element, world frame.
pub(crate) fn ang_vel(c: &mut Checker<'_>, e: Element) -> [Id; 3] {
    c.reads(e);
    let body = fixed(c, e).0;
    load(c, Source::World(Seen::BodyAngVel), body)
}

/// Orientation in the world: the body's times the element's own.
pub(crate) fn quat(c: &mut Checker<'_>, e: Element) -> [Id; 4] {
    c.reads(e);
    let (body, _, own) = fixed(c, e);
    turned(c, body, own)
}

/// Orientation of what has the orientation `own` in a body's frame.
pub(crate) fn turned(c: &mut Checker<'_>, body: usize, own: [f64; 4]) -> [Id; 4] {
    let a: [Id; 4] = load(c, Source::World(Seen::BodyQuat), body);
    if own == [1.0, 0.0, 0.0, 0.0] {
        return a;
    }
    let b = own.map(|x| c.dag.constant(x));
    product(c, a, b)
}

/// First b, then a.
pub(crate) fn product(c: &mut Checker<'_>, a: [Id; 4], b: [Id; 4]) -> [Id; 4] {
    let d = &mut c.dag;
    // Hamilton's product: (s, u)(t, v) = (s t - u.v, s v + t u + u x v).
    let (u, v) = ([a[1], a[2], a[3]], [b[1], b[2], b[3]]);
    let (real, dot) = (d.mul(a[0], b[0]), d.dot(&u, &v));
    let w = d.sub(real, dot);
    let cross = d.cross(u, v);
    let [x, y, z] = std::array::from_fn(|k| {
        let (p, q) = (d.mul(a[0], v[k]), d.mul(b[0], u[k]));
        d.sum(&[p, q, cross[k]])
    });
    [w, x, y, z]
}

/// The element's x (0) or z (2) axis in the world.
pub(crate) fn axis(c: &mut Checker<'_>, e: Element, k: usize) -> [Id; 3] {
    let q = quat(c, e);
    match k {
        // The columns of the rotation matrix.
        0 => {
            let x = one_minus(c, q[2], q[3]);
            let y = twice(c, [q[1], q[2]], [q[0], q[3]], false);
            let z = twice(c, [q[1], q[3]], [q[0], q[2]], true);
            [x, y, z]
        }
        _ => {
            let x = twice(c, [q[1], q[3]], [q[0], q[2]], false);
            let y = twice(c, [q[2], q[3]], [q[0], q[1]], true);
            [x, y, one_minus(c, q[1], q[2])]
        }
    }
}

/// Heading.
pub(crate) fn yaw(c: &mut Checker<'_>, e: Element) -> Id {
    let [w, x, y, z] = quat(c, e);
    let (above, beside) = (twice(c, [w, z], [x, y], false), one_minus(c, y, z));
    c.dag.two(Op::Atan2, above, beside)
}

/// 2 (a0 a1 +- b0 b1)
pub(crate) fn twice(c: &mut Checker<'_>, a: [Id; 2], b: [Id; 2], minus: bool) -> Id {
    let d = &mut c.dag;
    let (p, q) = (d.mul(a[0], a[1]), d.mul(b[0], b[1]));
    let sum = if minus { d.sub(p, q) } else { d.add(p, q) };
    let two = d.constant(2.0);
    d.mul(two, sum)
}

/// 1 - 2 (a^2 + b^2)
pub(crate) fn one_minus(c: &mut Checker<'_>, a: Id, b: Id) -> Id {
    let double = twice(c, [a, a], [b, b], false);
    let one = c.dag.constant(1.0);
    c.dag.sub(one, double)
}
