//! Poses, velocities and contacts of bodies, sites and geoms.

use super::{Body, Function, Kind, Need, Param, Rule, more, one};
use crate::task::expr::check::{Call, Checker, Value};
use crate::task::expr::dag::{Id, Source};
use crate::task::expr::ops::Op;
use crate::task::expr::{Element, ElementKind, ExprError, unit::Unit};

/// One value of `$gives` components for each named element, one after the other.
macro_rules! per_frame {
    ($name:literal, $gives:literal, $unit:literal, $doc:literal, $each:expr) => {
        Function {
            name: $name,
            params: FRAMES,
            gives: $gives,
            rule: Rule::Fixed($unit),
            doc: $doc,
            body: Body::Special(|c, call| {
                each(c, call, $unit, |c, e| {
                    let f: fn(&mut Checker<'_>, Element) -> _ = $each;
                    f(c, e).to_vec()
                })
            }),
        }
    };
}

const FRAMES: &[Param] = &[one("name", Kind::Frame), more(Kind::Frame)];

/// The table.
pub const TABLE: &[Function] = &[
    per_frame!("pos", "3", "m", "position in the world", |c, e| pos(c, e)),
    per_frame!("height", "1", "m", "world z of the position", |c, e| [pos(
        c, e
    )[2]]),
    Function {
        name: "quat",
        params: &[one("name", Kind::Frame)],
        gives: "4",
        rule: Rule::Fixed("-"),
        doc: "orientation as a quaternion (w, x, y, z); `.w` is the first component",
        body: Body::Special(|c, call| {
            let ids = quat(c, single(call, 0)?);
            Ok(Value {
                quat: true,
                ..Value::vector(ids, Unit::NONE)
            })
        }),
    },
    per_frame!(
        "lin_vel",
        "3",
        "m/s",
        "linear velocity in the world's frame",
        |c, e| lin_vel(c, e)
    ),
    per_frame!(
        "ang_vel",
        "3",
        "rad/s",
        "angular velocity in the world's frame",
        |c, e| ang_vel(c, e)
    ),
    per_frame!(
        "lin_vel_body",
        "3",
        "m/s",
        "linear velocity in the element's own frame",
        |c, e| {
            let (q, v) = (quat(c, e), lin_vel(c, e));
            c.dag.rotate(q, v, true)
        }
    ),
    per_frame!(
        "ang_vel_body",
        "3",
        "rad/s",
        "angular velocity in the element's own frame",
        |c, e| {
            let (q, v) = (quat(c, e), ang_vel(c, e));
            c.dag.rotate(q, v, true)
        }
    ),
    per_frame!(
        "lin_vel_yaw",
        "3",
        "m/s",
        "linear velocity in the heading frame: turned back by yaw alone, z stays up",
        |c, e| {
            let yaw = yaw(c, e);
            let v = lin_vel(c, e);
            let (sin, cos) = (c.dag.one(Op::Sin, yaw), c.dag.one(Op::Cos, yaw));
            let x = c.dag.dot(&[cos, sin], &v[..2]);
            let (p, q) = (c.dag.mul(cos, v[1]), c.dag.mul(sin, v[0]));
            [x, c.dag.sub(p, q), v[2]]
        }
    ),
    per_frame!(
        "projected_gravity",
        "3",
        "-",
        "direction of gravity in the element's own frame; (0, 0, -1) when upright",
        projected_gravity
    ),
    per_frame!(
        "forward",
        "3",
        "-",
        "the element's x axis in the world",
        |c, e| axis(c, e, 0)
    ),
    per_frame!(
        "up",
        "3",
        "-",
        "the element's z axis in the world",
        |c, e| axis(c, e, 2)
    ),
    per_frame!(
        "upright",
        "1",
        "-",
        "cosine of the tilt: up(name).z, 1 when upright",
        |c, e| [axis(c, e, 2)[2]]
    ),
    per_frame!(
        "roll",
        "1",
        "rad",
        "turn about x (yaw first, then pitch, then roll)",
        |c, e| {
            let [w, x, y, z] = quat(c, e);
            let (above, beside) = (twice(c, [w, x], [y, z], false), one_minus(c, x, y));
            [c.dag.two(Op::Atan2, above, beside)]
        }
    ),
    per_frame!(
        "pitch",
        "1",
        "rad",
        "turn about y, -pi/2 to pi/2",
        |c, e| {
            let [w, x, y, z] = quat(c, e);
            let sine = twice(c, [w, y], [x, z], true);
            let (low, high) = (c.dag.constant(-1.0), c.dag.constant(1.0));
            let sine = c.dag.two(Op::Max, sine, low);
            let sine = c.dag.two(Op::Min, sine, high);
            [c.dag.one(Op::Asin, sine)]
        }
    ),
    per_frame!("yaw", "1", "rad", "turn about z: the heading", |c, e| [
        yaw(c, e)
    ]),
    Function {
        name: "com",
        params: &[more(Kind::Body)],
        gives: "3",
        rule: Rule::Fixed("m"),
        doc: "centre of mass of bodies in the world; of the whole robot without names",
        body: Body::Special(|c, call| centre(c, call, "m", com)),
    },
    Function {
        name: "com_vel",
        params: &[more(Kind::Body)],
        gives: "3",
        rule: Rule::Fixed("m/s"),
        doc: "velocity of the centre of mass of bodies; of the whole robot without names",
        body: Body::Special(|c, call| centre(c, call, "m/s", com_vel)),
    },
    Function {
        name: "distance",
        params: &[one("a", Kind::Frame), one("b", Kind::Frame)],
        gives: "1",
        rule: Rule::Fixed("m"),
        doc: "distance between two positions",
        body: Body::Special(|c, call| {
            let (a, b) = (pos(c, single(call, 0)?), pos(c, single(call, 1)?));
            let way: [Id; 3] = std::array::from_fn(|k| c.dag.sub(a[k], b[k]));
            let square = c.dag.dot(&way, &way);
            Ok(Value::scalar(c.dag.one(Op::Sqrt, square), unit("m")))
        }),
    },
    Function {
        name: "contact_force",
        params: TOUCHING,
        gives: "1 each",
        rule: Rule::Fixed("N"),
        doc: "sum of normal contact forces, mean over the control step; a body's is that of its own geoms",
        body: Body::Special(|c, call| each(c, call, "N", |c, e| vec![touch(c, e)])),
    },
    Function {
        name: "contact",
        params: TOUCHING,
        gives: "bool each",
        rule: Rule::Fixed("-"),
        doc: "whether anything is touched: contact_force above zero",
        body: Body::Special(|c, call| {
            let mut touching = each(c, call, "-", |c, e| {
                let (force, zero) = (touch(c, e), c.dag.constant(0.0));
                vec![c.dag.two(Op::Lt, zero, force)]
            })?;
            touching.truth = true;
            Ok(touching)
        }),
    },
];

const TOUCHING: &[Param] = &[
    one("name", Kind::Touch),
    Param {
        name: "...",
        kind: Kind::Touch,
        need: Need::More,
    },
];

fn unit(text: &str) -> Unit {
    Unit::parse(text).unwrap_or(Unit::Any)
}

/// The one element an argument names.
fn single(call: &Call, i: usize) -> Result<Element, ExprError> {
    match call.elements_of(i) {
        [e] => Ok(*e),
        many => Err(ExprError::new(
            call.span_of(i),
            format!(
                "`{}` takes one name, this is {}",
                call.function.name,
                many.len()
            ),
        )),
    }
}

fn each(
    c: &mut Checker<'_>,
    call: &Call,
    text: &str,
    of: impl Fn(&mut Checker<'_>, Element) -> Vec<Id>,
) -> Result<Value, ExprError> {
    let mut ids = Vec::new();
    for e in call.elements().unwrap_or_default() {
        ids.extend(of(c, e));
    }
    Ok(Value::vector(ids, unit(text)))
}

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

fn load<const K: usize>(c: &mut Checker<'_>, source: Source, body: usize) -> [Id; K] {
    c.reads(Element {
        kind: ElementKind::Body,
        index: body,
    });
    std::array::from_fn(|k| c.dag.load(source, K * body + k))
}

/// A point fixed to a body: its offset from the body's origin in the world.
fn offset(c: &mut Checker<'_>, body: usize, at: [f64; 3]) -> Option<[Id; 3]> {
    if at == [0.0; 3] {
        return None;
    }
    let q = load(c, Source::BodyQuat, body);
    let at = at.map(|x| c.dag.constant(x));
    Some(c.dag.rotate(q, at, false))
}

fn point(c: &mut Checker<'_>, body: usize, at: [f64; 3]) -> [Id; 3] {
    let origin: [Id; 3] = load(c, Source::BodyPos, body);
    match offset(c, body, at) {
        None => origin,
        Some(r) => std::array::from_fn(|k| c.dag.add(origin[k], r[k])),
    }
}

/// v + omega x r
fn point_vel(c: &mut Checker<'_>, body: usize, at: [f64; 3]) -> [Id; 3] {
    let origin: [Id; 3] = load(c, Source::BodyLinVel, body);
    let Some(r) = offset(c, body, at) else {
        return origin;
    };
    let omega = load(c, Source::BodyAngVel, body);
    let turning = c.dag.cross(omega, r);
    std::array::from_fn(|k| c.dag.add(origin[k], turning[k]))
}

fn pos(c: &mut Checker<'_>, e: Element) -> [Id; 3] {
    c.reads(e);
    let (body, at, _) = fixed(c, e);
    point(c, body, at)
}

fn lin_vel(c: &mut Checker<'_>, e: Element) -> [Id; 3] {
    c.reads(e);
    let (body, at, _) = fixed(c, e);
    point_vel(c, body, at)
}

fn ang_vel(c: &mut Checker<'_>, e: Element) -> [Id; 3] {
    c.reads(e);
    let body = fixed(c, e).0;
    load(c, Source::BodyAngVel, body)
}

/// Orientation in the world: the body's times the element's own.
fn quat(c: &mut Checker<'_>, e: Element) -> [Id; 4] {
    c.reads(e);
    let (body, _, own) = fixed(c, e);
    let a: [Id; 4] = load(c, Source::BodyQuat, body);
    if own == [1.0, 0.0, 0.0, 0.0] {
        return a;
    }
    let b = own.map(|x| c.dag.constant(x));
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

fn axis(c: &mut Checker<'_>, e: Element, k: usize) -> [Id; 3] {
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

fn yaw(c: &mut Checker<'_>, e: Element) -> Id {
    let [w, x, y, z] = quat(c, e);
    let (above, beside) = (twice(c, [w, z], [x, y], false), one_minus(c, y, z));
    c.dag.two(Op::Atan2, above, beside)
}

/// 2 (a0 a1 +- b0 b1)
fn twice(c: &mut Checker<'_>, a: [Id; 2], b: [Id; 2], minus: bool) -> Id {
    let d = &mut c.dag;
    let (p, q) = (d.mul(a[0], a[1]), d.mul(b[0], b[1]));
    let sum = if minus { d.sub(p, q) } else { d.add(p, q) };
    let two = d.constant(2.0);
    d.mul(two, sum)
}

/// 1 - 2 (a^2 + b^2)
fn one_minus(c: &mut Checker<'_>, a: Id, b: Id) -> Id {
    let double = twice(c, [a, a], [b, b], false);
    let one = c.dag.constant(1.0);
    c.dag.sub(one, double)
}

fn projected_gravity(c: &mut Checker<'_>, e: Element) -> [Id; 3] {
    let g = c.scope.model.options.gravity;
    let size = g.iter().map(|x| x * x).sum::<f64>().sqrt();
    if g[0] == 0.0 && g[1] == 0.0 && g[2] <= 0.0 {
        // Straight down (also without gravity): the last row of the matrix, negated.
        let q = quat(c, e);
        let x = twice(c, [q[1], q[3]], [q[0], q[2]], true);
        let y = twice(c, [q[2], q[3]], [q[0], q[1]], false);
        let z = one_minus(c, q[1], q[2]);
        return [x, y, z].map(|v| c.dag.one(Op::Neg, v));
    }
    let down = g.map(|x| c.dag.constant(x / size));
    let q = quat(c, e);
    c.dag.rotate(q, down, true)
}

fn com(c: &mut Checker<'_>, body: usize) -> [Id; 3] {
    let at = c.scope.model.bodies[body].ipos;
    point(c, body, at)
}

fn com_vel(c: &mut Checker<'_>, body: usize) -> [Id; 3] {
    let at = c.scope.model.bodies[body].ipos;
    point_vel(c, body, at)
}

/// Mean over bodies, weighted by mass.
fn centre(
    c: &mut Checker<'_>,
    call: &Call,
    text: &str,
    of: fn(&mut Checker<'_>, usize) -> [Id; 3],
) -> Result<Value, ExprError> {
    let model = c.scope.model;
    let moving = || {
        (1..model.bodies.len())
            .filter(|&b| model.bodies[b].weld != 0)
            .collect()
    };
    let bodies: Vec<usize> = call
        .elements()
        .map_or_else(moving, |e| e.iter().map(|e| e.index).collect());
    if let [body] = bodies[..] {
        return Ok(Value::vector(of(c, body), unit(text)));
    }
    let total: f64 = bodies.iter().map(|&b| model.bodies[b].mass).sum();
    if total <= 0.0 {
        return Err(ExprError::new(
            call.span.clone(),
            "these bodies have no mass",
        ));
    }
    let mut sum: [Vec<Id>; 3] = Default::default();
    for body in bodies {
        let share = model.bodies[body].mass / total;
        if share == 0.0 {
            continue;
        }
        let (at, share) = (of(c, body), c.dag.constant(share));
        for k in 0..3 {
            sum[k].push(c.dag.mul(share, at[k]));
        }
    }
    Ok(Value::vector(sum.map(|s| c.dag.sum(&s)), unit(text)))
}

fn touch(c: &mut Checker<'_>, e: Element) -> Id {
    c.reads(e);
    if e.kind == ElementKind::Geom {
        return c.dag.load(Source::ContactForce, e.index);
    }
    let geoms = c.scope.model.bodies[e.index].geoms.clone();
    let forces: Vec<Id> = geoms.map(|g| c.dag.load(Source::ContactForce, g)).collect();
    if forces.is_empty() {
        c.dag.constant(0.0)
    } else {
        c.dag.sum(&forces)
    }
}
