//! Quaternions (w, x, y, z).

use super::frames;
use crate::expr::checker::Checker;
use crate::expr::dag::Id;
use crate::expr::error::ExprError;
use crate::expr::function::{Body, Call, Function};
use crate::expr::ops::Op;
use crate::expr::signature::{Kind, Rule, one, optional};
use crate::expr::unit::Unit;
use crate::expr::value::Value;

/// The table.
pub(crate) const TABLE: &[Function] = &[
    Function {
        name: "quat_mul",
        params: &[one("a", Kind::Quat), one("b", Kind::Quat)],
        gives: "4",
        rule: Rule::Fixed("-"),
        doc: "product: the turn b, then the turn a",
        body: Body::Special(|c, call| {
            let (a, b) = (c.value(call, 0)?.array(), c.value(call, 1)?.array());
            let product = frames::product(c, a, b);
            Ok(quaternion(product))
        }),
    },
    Function {
        name: "quat_inv",
        params: &[one("q", Kind::Quat)],
        gives: "4",
        rule: Rule::Fixed("-"),
        doc: "inverse: the turn back",
        body: Body::Special(inverse),
    },
    Function {
        name: "quat_angle",
        params: &[one("a", Kind::Quat), optional("b", Kind::Quat)],
        gives: "1",
        rule: Rule::Fixed("rad"),
        doc: "angle of the turn, 0 to pi; with b, of the turn between the two (`quat_error_magnitude` of Isaac Lab)",
        body: Body::Special(angle),
    },
    Function {
        name: "quat_rotvec",
        params: &[one("q", Kind::Quat)],
        gives: "3",
        rule: Rule::Fixed("rad"),
        doc: "rotation vector: axis times angle, an angle of at most pi",
        body: Body::Special(|c, call| {
            let q = c.value(call, 0)?.array();
            Ok(rotation_vector(c, q))
        }),
    },
    Function {
        name: "quat_box_minus",
        params: &[one("a", Kind::Quat), one("b", Kind::Quat)],
        gives: "3",
        rule: Rule::Fixed("rad"),
        doc: "rotation vector of the turn from b to a, in the world's axes if both are quat(BODY)",
        body: Body::Special(|c, call| {
            let (a, b) = (c.value(call, 0)?.array(), c.value(call, 1)?.array());
            let back = conjugate(c, b);
            let between = frames::product(c, a, back);
            Ok(rotation_vector(c, between))
        }),
    },
    Function {
        name: "quat_yaw",
        params: &[one("q", Kind::Quat)],
        gives: "4",
        rule: Rule::Fixed("-"),
        doc: "the heading alone: a turn about z by yaw (`yaw_quat` of Isaac Lab)",
        body: Body::Special(heading),
    },
    Function {
        name: "quat_matrix",
        params: &[one("q", Kind::Quat)],
        gives: "9",
        rule: Rule::Fixed("-"),
        doc: "rotation matrix, row by row: [:3] is the first row",
        body: Body::Special(|c, call| {
            let m = matrix(c, call)?;
            Ok(Value::vector(m.into_iter().flatten(), Unit::NONE))
        }),
    },
    Function {
        name: "quat_6d",
        params: &[one("q", Kind::Quat)],
        gives: "6",
        rule: Rule::Fixed("-"),
        doc: "the first two columns of the rotation matrix, row by row: `matrix_from_quat(q)[..., :2]` of Isaac Lab and mjlab, flattened",
        body: Body::Special(|c, call| {
            let m = matrix(c, call)?;
            let ids = m.into_iter().flat_map(|[x, y, _]| [x, y]);
            Ok(Value::vector(ids, Unit::NONE))
        }),
    },
    Function {
        name: "quat_axis_angle",
        params: &[one("axis", Kind::Vec3), one("angle", Kind::Value)],
        gives: "4",
        rule: Rule::Fixed("-"),
        doc: "turn by an angle [rad] about an axis of any length",
        body: Body::Special(axis_angle),
    },
    Function {
        name: "quat_from_rpy",
        params: &[one("roll", Kind::Value), one("pitch", Kind::Value), one("yaw", Kind::Value)],
        gives: "4",
        rule: Rule::Fixed("-"),
        doc: "turn by roll about x, then pitch about y, then yaw about z, all of the world [rad]",
        body: Body::Special(from_rpy),
    },
];

fn quaternion(ids: [Id; 4]) -> Value {
    Value { quat: true, ..Value::vector(ids, Unit::NONE) }
}

fn conjugate(c: &mut Checker<'_>, [w, x, y, z]: [Id; 4]) -> [Id; 4] {
    let [x, y, z] = [x, y, z].map(|i| c.dag.one(Op::Neg, i));
    [w, x, y, z]
}

/// Conjugate over squared length: also of one that is not of unit length.
fn inverse(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let q = c.value(call, 0)?.array();
    let norm2 = c.dag.dot(&q, &q);
    let back = conjugate(c, q);
    Ok(quaternion(back.map(|i| c.dag.div(i, norm2))))
}

/// Length of the imaginary part, and size of the real one.
fn sine_and_cosine(c: &mut Checker<'_>, [w, x, y, z]: [Id; 4]) -> (Id, Id) {
    let u = [x, y, z];
    let square = c.dag.dot(&u, &u);
    (c.dag.one(Op::Sqrt, square), c.dag.one(Op::Abs, w))
}

/// 2 atan2(|u|, |w|)
fn angle(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let mut q = c.value(call, 0)?.array();
    if call.args.len() > 1 {
        let b = c.value(call, 1)?.array();
        let back = conjugate(c, b);
        q = frames::product(c, q, back);
    }
    let (sine, cosine) = sine_and_cosine(c, q);
    let half = c.dag.two(Op::Atan2, sine, cosine);
    let two = c.dag.constant(2.0);
    Ok(Value::scalar(c.dag.mul(two, half), Unit::RAD))
}

/// u angle / |u| with the sign of w; 2 u where |u| is next to nothing.
fn rotation_vector(c: &mut Checker<'_>, q: [Id; 4]) -> Value {
    let (sine, cosine) = sine_and_cosine(c, q);
    let d = &mut c.dag;
    let half = d.two(Op::Atan2, sine, cosine);
    let (two, none, tiny) = (d.constant(2.0), d.constant(0.0), d.constant(1e-6));
    let angle = d.mul(two, half);
    let ratio = d.div(angle, sine);
    let small = d.two(Op::Lt, sine, tiny);
    let size = d.select(small, two, ratio);
    let minus = d.one(Op::Neg, size);
    let negative = d.two(Op::Lt, q[0], none);
    let factor = d.select(negative, minus, size);
    let ids = [q[1], q[2], q[3]].map(|i| d.mul(i, factor));
    Value::vector(ids, Unit::RAD)
}

fn heading(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let [w, x, y, z] = c.value(call, 0)?.array();
    let above = frames::twice(c, [w, z], [x, y], false);
    let beside = frames::one_minus(c, y, z);
    let yaw = c.dag.two(Op::Atan2, above, beside);
    let (sine, cosine) = of_half(c, yaw);
    let none = c.dag.constant(0.0);
    Ok(quaternion([cosine, none, none, sine]))
}

/// Sine and cosine of half an angle.
fn of_half(c: &mut Checker<'_>, angle: Id) -> (Id, Id) {
    let d = &mut c.dag;
    let part = d.constant(0.5);
    let half = d.mul(part, angle);
    (d.one(Op::Sin, half), d.one(Op::Cos, half))
}

fn matrix(c: &mut Checker<'_>, call: &Call) -> Result<[[Id; 3]; 3], ExprError> {
    let [w, x, y, z] = c.value(call, 0)?.array();
    Ok([
        [
            frames::one_minus(c, y, z),
            frames::twice(c, [x, y], [w, z], true),
            frames::twice(c, [x, z], [w, y], false),
        ],
        [
            frames::twice(c, [x, y], [w, z], false),
            frames::one_minus(c, x, z),
            frames::twice(c, [y, z], [w, x], true),
        ],
        [
            frames::twice(c, [x, z], [w, y], true),
            frames::twice(c, [y, z], [w, x], false),
            frames::one_minus(c, x, y),
        ],
    ])
}

/// An argument that is a single angle.
fn plain_angle(c: &Checker<'_>, call: &Call, i: usize) -> Result<Id, ExprError> {
    let v = c.value(call, i)?;
    c.scalar(call, &v, i)?;
    c.number(&v, call.span_of(i), &format!("`{}`", call.function.name))?;
    if !v.comps[0].unit.is_plain() {
        let why = format!(
            "`{}` takes an angle here, this is in [{}]",
            call.function.name, v.comps[0].unit
        );
        return Err(ExprError::new(call.span_of(i), why).help("angles are in rad"));
    }
    Ok(v.comps[0].node)
}

fn axis_angle(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let axis: [Id; 3] = c.value(call, 0)?.array();
    let angle = plain_angle(c, call, 1)?;
    let (sine, cosine) = of_half(c, angle);
    let d = &mut c.dag;
    let square = d.dot(&axis, &axis);
    let (norm, tiny) = (d.one(Op::Sqrt, square), d.constant(1e-12));
    let length = d.two(Op::Max, norm, tiny);
    let [x, y, z] = axis.map(|i| {
        let part = d.div(i, length);
        d.mul(sine, part)
    });
    Ok(quaternion([cosine, x, y, z]))
}

fn from_rpy(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let none = c.dag.constant(0.0);
    let mut turns = Vec::with_capacity(3);
    for i in 0..3 {
        let angle = plain_angle(c, call, i)?;
        let (sine, cosine) = of_half(c, angle);
        let mut turn = [cosine, none, none, none];
        turn[i + 1] = sine;
        turns.push(turn);
    }
    let tilt = frames::product(c, turns[1], turns[0]);
    let all = frames::product(c, turns[2], tilt);
    Ok(quaternion(all))
}
