//! Poses and velocities of bodies, sites and geoms.

use super::fields::{field, mass_of, varies};
use super::frames::{
    Place, ang_vel, axis, centre_of, lin_vel, one_minus, point_at, point_vel_at, pos, quat, twice,
    yaw,
};
use crate::expr::checker::Checker;
use crate::expr::dag::Id;
use crate::expr::element::Element;
use crate::expr::error::ExprError;
use crate::expr::function::{Body, Call, Function};
use crate::expr::ops::Op;
use crate::expr::signature::{Kind, Param, Rule, more, one};
use crate::expr::unit::Unit;
use crate::expr::value::Value;
use ostler_model::Field;

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
pub(crate) const TABLE: &[Function] = &[
    per_frame!("pos", "3", "m", "position in the world", |c, e| pos(c, e)),
    per_frame!("height", "1", "m", "world z of the position", |c, e| [pos(c, e)[2]]),
    Function {
        name: "quat",
        params: &[one("name", Kind::Frame)],
        gives: "4",
        rule: Rule::Fixed("-"),
        doc: "orientation as a quaternion (w, x, y, z); `.w` is the first component",
        body: Body::Special(|c, call| {
            let ids = quat(c, single(call, 0)?);
            Ok(Value { quat: true, ..Value::vector(ids, Unit::NONE) })
        }),
    },
    per_frame!("lin_vel", "3", "m/s", "linear velocity in the world's frame", |c, e| lin_vel(c, e)),
    per_frame!("ang_vel", "3", "rad/s", "angular velocity in the world's frame", |c, e| ang_vel(
        c, e
    )),
    per_frame!("lin_vel_body", "3", "m/s", "linear velocity in the element's own frame", |c, e| {
        let (q, v) = (quat(c, e), lin_vel(c, e));
        c.dag.rotate(q, v, true)
    }),
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
    per_frame!("forward", "3", "-", "the element's x axis in the world", |c, e| axis(c, e, 0)),
    per_frame!("up", "3", "-", "the element's z axis in the world", |c, e| axis(c, e, 2)),
    per_frame!("upright", "1", "-", "cosine of the tilt: up(name).z, 1 when upright", |c, e| [
        axis(c, e, 2)[2]
    ]),
    per_frame!("roll", "1", "rad", "turn about x (yaw first, then pitch, then roll)", |c, e| {
        let [w, x, y, z] = quat(c, e);
        let (above, beside) = (twice(c, [w, x], [y, z], false), one_minus(c, x, y));
        [c.dag.two(Op::Atan2, above, beside)]
    }),
    per_frame!("pitch", "1", "rad", "turn about y, -pi/2 to pi/2", |c, e| {
        let [w, x, y, z] = quat(c, e);
        let sine = twice(c, [w, y], [x, z], true);
        let (low, high) = (c.dag.constant(-1.0), c.dag.constant(1.0));
        let sine = c.dag.two(Op::Max, sine, low);
        let sine = c.dag.two(Op::Min, sine, high);
        [c.dag.one(Op::Asin, sine)]
    }),
    per_frame!("yaw", "1", "rad", "turn about z: the heading", |c, e| [yaw(c, e)]),
    Function {
        name: "com",
        params: &[more(Kind::Body)],
        gives: "3",
        rule: Rule::Fixed("m"),
        doc: "centre of mass of bodies in the world; without names of all that moves",
        body: Body::Special(|c, call| centre(c, call, "m", point_at)),
    },
    Function {
        name: "com_vel",
        params: &[more(Kind::Body)],
        gives: "3",
        rule: Rule::Fixed("m/s"),
        doc: "velocity of the centre of mass of bodies; without names of all that moves",
        body: Body::Special(|c, call| centre(c, call, "m/s", point_vel_at)),
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
            format!("`{}` takes one name, this is {}", call.function.name, many.len()),
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

fn projected_gravity(c: &mut Checker<'_>, e: Element) -> [Id; 3] {
    if varies(c, Field::Gravity, 0) {
        return projected(c, e);
    }
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

/// The same where environments have a gravity of their own; straight down without any.
fn projected(c: &mut Checker<'_>, e: Element) -> [Id; 3] {
    let g: [Id; 3] = field(c, Field::Gravity, 0);
    let square = c.dag.dot(&g, &g);
    let size = c.dag.one(Op::Sqrt, square);
    let zero = c.dag.constant(0.0);
    let some = c.dag.two(Op::Lt, zero, size);
    let down: [Id; 3] = std::array::from_fn(|k| {
        let along = c.dag.div(g[k], size);
        let none = c.dag.constant([0.0, 0.0, -1.0][k]);
        c.dag.select(some, along, none)
    });
    let q = quat(c, e);
    c.dag.rotate(q, down, true)
}

/// A quantity of a body's centre of mass.
type OfCentre = fn(&mut Checker<'_>, usize, Place) -> [Id; 3];

/// Mean over bodies, weighted by mass, of what their centres of mass have.
fn centre(c: &mut Checker<'_>, call: &Call, text: &str, of: OfCentre) -> Result<Value, ExprError> {
    let model = c.scope.model;
    let moving = || (1..model.bodies.len()).filter(|&b| model.bodies[b].weld != 0).collect();
    let bodies: Vec<usize> =
        call.elements().map_or_else(moving, |e| e.iter().map(|e| e.index).collect());
    if let [body] = bodies[..] {
        let at = centre_of(c, body);
        return Ok(Value::vector(of(c, body, at), unit(text)));
    }
    match weighted(c, &bodies, of) {
        Some(mean) => Ok(Value::vector(mean, unit(text))),
        None => Err(ExprError::new(call.span.clone(), "these bodies have no mass")),
    }
}

/// The mean over bodies, weighted by mass; none where they have no mass.
pub(super) fn weighted(c: &mut Checker<'_>, bodies: &[usize], of: OfCentre) -> Option<[Id; 3]> {
    let model = c.scope.model;
    let own = bodies.iter().any(|&b| varies(c, Field::Mass, b));
    let total: f64 = bodies.iter().map(|&b| model.bodies[b].mass).sum();
    if !own && total <= 0.0 {
        return None;
    }
    let mut sum: [Vec<Id>; 3] = Default::default();
    let mut masses = Vec::new();
    for &body in bodies {
        if model.bodies[body].mass == 0.0 && !varies(c, Field::Mass, body) {
            continue;
        }
        let place = centre_of(c, body);
        let at = of(c, body, place);
        let share = match own {
            true => mass_of(c, body),
            false => c.dag.constant(model.bodies[body].mass / total),
        };
        masses.push(share);
        for k in 0..3 {
            sum[k].push(c.dag.mul(share, at[k]));
        }
    }
    let mean = sum.map(|s| c.dag.sum(&s));
    if !own {
        return Some(mean);
    }
    let total = c.dag.sum(&masses);
    Some(mean.map(|x| c.dag.div(x, total)))
}
