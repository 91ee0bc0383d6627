//! The reference motion of `[[task.reference]]`.

use super::robot::joints;
use crate::expr::checker::Checker;
use crate::expr::dag::{Id, Node, Source};
use crate::expr::error::ExprError;
use crate::expr::function::{Body, Call, Function};
use crate::expr::looks::{Look, LookOf};
use crate::expr::ops::Op;
use crate::expr::signature::{Kind, Rule, more, one};
use crate::expr::unit::Unit;
use crate::expr::value::{Comp, Value};
use ostler_model::JointKind;

/// One number for each named joint, or for all.
macro_rules! of_joints {
    ($name:literal, $unit:literal, $doc:literal, $each:expr) => {
        Function {
            name: $name,
            params: &[more(Kind::Joint)],
            gives: "one per joint",
            rule: Rule::Each($unit),
            doc: $doc,
            body: Body::Special(|c, call| {
                has_reference(c, call)?;
                let value = joints(c, call, $each);
                few(c, call, value)
            }),
        }
    };
}

/// Numbers of a body in the world.
macro_rules! of_body {
    ($name:literal, $gives:literal, $unit:literal, $doc:literal, $of:path) => {
        Function {
            name: $name,
            params: &[one("body", Kind::Body)],
            gives: $gives,
            rule: Rule::Fixed($unit),
            doc: $doc,
            body: Body::Special(|c, call| body(c, call, $of, $unit)),
        }
    };
}

/// The table.
pub(crate) const TABLE: &[Function] = &[
    of_joints!(
        "motion.joint_pos",
        "rad (hinge) or m (slide)",
        "positions of hinge and slide joints in the reference; all of them without names",
        |c, j| {
            let unit = if j.kind == JointKind::Hinge { Unit::RAD } else { unit("m") };
            joint(c, LookOf::JointPos(j.qpos_adr), unit)
        }
    ),
    of_joints!(
        "motion.joint_vel",
        "rad/s (hinge) or m/s (slide)",
        "velocities of hinge and slide joints in the reference; all of them without names",
        |c, j| {
            let unit = if j.kind == JointKind::Hinge { unit("rad/s") } else { unit("m/s") };
            joint(c, LookOf::JointVel(j.dof_adr), unit)
        }
    ),
    of_body!(
        "motion.pos",
        "3",
        "m",
        "where the body's frame is in the reference, in the world; on a terrain beside the place where the episode began",
        LookOf::Pos
    ),
    of_body!(
        "motion.quat",
        "4",
        "-",
        "the body's orientation in the reference (w, x, y, z), in the world",
        LookOf::Quat
    ),
    of_body!(
        "motion.lin_vel",
        "3",
        "m/s",
        "velocity of the body's origin in the reference, in the world",
        LookOf::LinVel
    ),
    of_body!(
        "motion.ang_vel",
        "3",
        "rad/s",
        "the body's angular velocity in the reference, in the world",
        LookOf::AngVel
    ),
    Function {
        name: "ahead",
        params: &[one("seconds", Kind::Value), one("x", Kind::Ahead)],
        gives: "as x",
        rule: Rule::Keep,
        doc: "x with the reference so many seconds later: ahead(0.1, motion.joint_pos), or ahead(2 * step_dt, ...) for two control steps. Between two frames it is interpolated; where a clip ends it stays",
        body: Body::Special(|c, call| c.value(call, 1)),
    },
];

fn unit(text: &str) -> Unit {
    Unit::parse(text).unwrap_or(Unit::Any)
}

/// Refuses a task without a reference.
fn has_reference(c: &Checker<'_>, call: &Call) -> Result<(), ExprError> {
    match c.scope.defined.motion.step() {
        Some(_) => Ok(()),
        None => {
            let name = call.function.name;
            let why = format!("`{name}` is of a reference motion, and this task has none");
            let help = "[[task.reference]] with files = [\"walk.npz\"] gives it one";
            Err(ExprError::new(call.span.clone(), why).help(help))
        }
    }
}

fn joint(c: &mut Checker<'_>, of: LookOf, unit: Unit) -> Comp {
    let row = c.scope.defined.motion.row(Look { of, ahead: c.ahead });
    Comp { node: c.dag.load(Source::Motion, row), unit }
}

/// Refuses more readings than there is room for.
fn few(c: &Checker<'_>, call: &Call, value: Value) -> Result<Value, ExprError> {
    if !c.scope.defined.motion.is_full() {
        return Ok(value);
    }
    let why = "the task reads too many numbers of the reference";
    let help = "read fewer bodies, or fewer times ahead";
    Err(ExprError::new(call.span.clone(), why).help(help))
}

fn body(
    c: &mut Checker<'_>,
    call: &Call,
    of: fn(usize) -> LookOf,
    text: &str,
) -> Result<Value, ExprError> {
    has_reference(c, call)?;
    let &[element] = call.elements_of(0) else {
        let name = call.function.name;
        let why = format!("`{name}` is of one body, these are {}", call.elements_of(0).len());
        let help = format!("each(LIST, {name}({{LIST}})) says it of every body of a list");
        return Err(ExprError::new(call.span_of(0), why).help(help));
    };
    c.reads(element);
    let of = of(element.index);
    let row = c.scope.defined.motion.row(Look { of, ahead: c.ahead });
    let unit = if text == "-" { Unit::NONE } else { unit(text) };
    let value =
        Value::vector((row..row + of.size()).map(|row| c.dag.load(Source::Motion, row)), unit);
    let quat = matches!(of, LookOf::Quat(_));
    few(c, call, Value { quat, ..value })
}

/// How many control steps the reference is ahead in `x` of `ahead(seconds, x)`.
pub(crate) fn steps_ahead(c: &Checker<'_>, call: &Call) -> Result<f32, ExprError> {
    has_reference(c, call)?;
    let seconds = c.value(call, 0)?;
    let step = c.scope.defined.motion.step().unwrap_or(1.0);
    let known = match seconds.ids()[..] {
        [id] => written(c, id, step),
        _ => None,
    };
    match known.filter(|s| s.is_finite() && *s >= 0.0 && s / step < 1e6) {
        // Single precision's error of the quotient is not a part of a frame.
        Some(s) => {
            let steps = s / step;
            let whole = steps.round();
            Ok(if (steps - whole).abs() < 1e-4 { whole } else { steps } as f32)
        }
        None => {
            let why = "`ahead` takes seconds, 0 or more, that are written there";
            Err(ExprError::new(call.span_of(0), why).help(
                "a number, or a multiple of step_dt: ahead(0.1, motion.joint_pos), \
                 ahead(2 * step_dt, motion.joint_pos)",
            ))
        }
    }
}

/// A number, `step_dt`, which is `step`, or a product of such.
fn written(c: &Checker<'_>, id: Id, step: f64) -> Option<f64> {
    match *c.dag.nodes().get(id as usize)? {
        Node::Const(bits) => Some(f64::from(f32::from_bits(bits))),
        Node::Load(Source::StepDt, _) => Some(step),
        Node::Op(Op::Mul, [a, b, _]) => Some(written(c, a, step)? * written(c, b, step)?),
        Node::Load(..) | Node::Op(..) => None,
    }
}
