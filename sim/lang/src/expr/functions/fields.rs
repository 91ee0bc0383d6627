//! Numbers of the robot: constants, but for those that events change, which are read of each
//! environment.

use crate::expr::checker::Checker;
use crate::expr::dag::{Id, Seen, Source};
use crate::expr::element::{Element, ElementKind};
use crate::expr::error::ExprError;
use crate::expr::function::{Body, Call, Function};
use crate::expr::signature::{Kind, Rule, more, one};
use crate::expr::unit::Unit;
use crate::expr::value::{Comp, Value};
use ostler_model::{Field, JointKind, Model, MotorLaw, Varied};

/// A field's numbers of each named element.
macro_rules! of_named {
    ($name:literal, $kind:expr, $gives:literal, $rule:expr, $doc:literal, $of:expr) => {
        Function {
            name: $name,
            params: &[one("name", $kind), more($kind)],
            gives: $gives,
            rule: $rule,
            doc: $doc,
            body: Body::Special(|c, call| {
                let of: fn(&mut Checker<'_>, usize) -> Vec<Comp> = $of;
                each(c, call, of)
            }),
        }
    };
}

/// A number of each joint or actuator; all of them without names.
macro_rules! of_all {
    ($name:literal, $kind:expr, $gives:literal, $rule:literal, $doc:literal, $field:expr) => {
        Function {
            name: $name,
            params: &[more($kind)],
            gives: $gives,
            rule: Rule::Each($rule),
            doc: $doc,
            body: Body::Special(|c, call| of_kind(c, call, $kind, $field)),
        }
    };
}

/// The table.
pub(crate) const TABLE: &[Function] = &[
    Function {
        name: "gravity",
        params: &[],
        gives: "3",
        rule: Rule::Fixed("m/s^2"),
        doc: "acceleration of gravity in the world's frame",
        body: Body::Special(|c, _| Ok(Value::new(numbers(c, Field::Gravity, 0, 0..3)))),
    },
    Function {
        name: "mass",
        params: &[more(Kind::Body)],
        gives: "1, or one per body",
        rule: Rule::Fixed("kg"),
        doc: "mass of bodies; without names of all that moves: a base that is fixed to the world does not count",
        body: Body::Special(mass),
    },
    of_named!(
        "com_offset",
        Kind::Body,
        "3 each",
        Rule::Fixed("m"),
        "centre of mass in the body's own frame (MuJoCo's `body_ipos`)",
        |c, b| numbers(c, Field::Com, b, 0..3)
    ),
    of_named!(
        "inertia",
        Kind::Body,
        "6 each",
        Rule::Fixed("kg m^2"),
        "inertia about the centre of mass, in the axes of the body's frame: xx, yy, zz, xy, xz, yz",
        |c, b| {
            let unit = field_unit(c.scope.model, varied(Field::Tensor, b), 0);
            let tensor = tensor(c, b).map(|node| Comp { node, unit });
            tensor.to_vec()
        }
    ),
    of_named!(
        "friction",
        Kind::Geom,
        "3 each",
        Rule::Each("- (sliding), m (torsional, rolling)"),
        "sliding, torsional and rolling friction of geoms (`geom_friction`); `friction(foot)[0]` is the sliding one",
        |c, g| numbers(c, Field::Friction, g, 0..3)
    ),
    of_all!(
        "armature",
        Kind::Joint,
        "one per joint",
        "kg m^2 (hinge) or kg (slide)",
        "rotor inertias of joints; all of them without names",
        Field::Armature
    ),
    of_all!(
        "damping",
        Kind::Joint,
        "one per joint",
        "N m s/rad (hinge) or N s/m (slide)",
        "viscous damping of joints; all of them without names",
        Field::Damping
    ),
    of_all!(
        "frictionloss",
        Kind::Joint,
        "one per joint",
        "N m (hinge) or N (slide)",
        "dry friction of joints; all of them without names",
        Field::Frictionloss
    ),
    of_all!(
        "stiffness",
        Kind::Joint,
        "one per joint",
        "N m/rad (hinge) or N/m (slide)",
        "springs of joints; all of them without names",
        Field::Stiffness
    ),
    of_all!(
        "joint_offset",
        Kind::Joint,
        "one per joint",
        "rad (hinge) or m (slide)",
        "positions in which the bodies are as modelled (`qpos0`); all joints without names",
        Field::Qpos0
    ),
    of_all!(
        "kp",
        Kind::Actuator,
        "one per actuator",
        "N m/rad (hinge) or N/m (slide)",
        "stiffness of position actuators; all of them without names",
        Field::Kp
    ),
    of_all!(
        "kd",
        Kind::Actuator,
        "one per actuator",
        "N m s/rad (hinge) or N s/m (slide)",
        "damping of position actuators; all of them without names",
        Field::Kd
    ),
    of_all!(
        "gain",
        Kind::Actuator,
        "one per actuator",
        "any",
        "forces of motors at a control of 1, before the gear (`gainprm[0]`); all actuators without names",
        Field::Gain
    ),
    of_all!(
        "effort_limit",
        Kind::Actuator,
        "one per actuator",
        "N m (hinge) or N (slide)",
        "most force of actuators, before the gear; infinity where there is no limit",
        Field::Effort
    ),
    of_all!(
        "actuator_delay",
        Kind::Actuator,
        "one per actuator",
        "-",
        "physics steps by which controls arrive late (`delay` of [[task.actuator]])",
        Field::Delay
    ),
    of_named!(
        "external_force",
        Kind::Body,
        "3 each",
        Rule::Fixed("N"),
        "force from outside at the centre of mass, in the world's axes, by an event; else zero",
        |c, b| numbers(c, Field::Wrench, b, 0..3)
    ),
    of_named!(
        "external_torque",
        Kind::Body,
        "3 each",
        Rule::Fixed("N m"),
        "torque from outside, likewise",
        |c, b| numbers(c, Field::Wrench, b, 3..6)
    ),
];

fn varied(field: Field, element: usize) -> Varied {
    Varied { field, element }
}

/// Unit of a number of a field of an element.
pub fn field_unit(model: &Model, of: Varied, number: usize) -> Unit {
    let slides = |joint: Option<usize>| joint.map(|j| model.joints[j].kind == JointKind::Slide);
    let of_joint = |slides: Option<bool>, slide: &'static str, turn: &'static str| match slides {
        Some(true) => slide,
        Some(false) => turn,
        None => "any",
    };
    let joint = || slides(Some(of.element));
    let driven = || {
        let joint = model.actuators[of.element].joint();
        slides(joint.filter(|j| model.joints[*j].is_scalar()))
    };
    let text = match of.field {
        Field::Gravity => "m/s^2",
        Field::Mass => "kg",
        Field::Com => "m",
        Field::Moments | Field::Tensor => "kg m^2",
        Field::Friction if number == 0 => "-",
        Field::Friction => "m",
        Field::Armature => of_joint(joint(), "kg", "kg m^2"),
        Field::Damping => of_joint(joint(), "N s/m", "N m s/rad"),
        Field::Frictionloss => of_joint(joint(), "N", "N m"),
        Field::Stiffness => of_joint(joint(), "N/m", "N m/rad"),
        Field::Qpos0 => of_joint(joint(), "m", "rad"),
        Field::Kp => of_joint(driven(), "N/m", "N m/rad"),
        Field::Kd => of_joint(driven(), "N s/m", "N m s/rad"),
        // Of a control, whose unit is not known.
        Field::Gain => "any",
        Field::Effort => of_joint(driven(), "N", "N m"),
        Field::Delay => "-",
        Field::Wrench if number < 3 => "N",
        Field::Wrench => "N m",
    };
    Unit::parse(text).unwrap_or(Unit::Any)
}

/// A number of a field: a constant, or an environment's own.
fn number(c: &mut Checker<'_>, field: Field, element: usize, k: usize) -> Id {
    let model = c.scope.model;
    match model.varied_row(field, element) {
        Some(row) => c.dag.load(Source::World(Seen::Varied), row + k),
        None => {
            let own = model.field(varied(field, element));
            c.dag.constant(own.get(k).copied().unwrap_or(0.0))
        }
    }
}

/// The first numbers of a field.
pub(crate) fn field<const K: usize>(c: &mut Checker<'_>, field: Field, element: usize) -> [Id; K] {
    std::array::from_fn(|k| number(c, field, element, k))
}

/// Some of a field's numbers, with units.
fn numbers(
    c: &mut Checker<'_>,
    field: Field,
    element: usize,
    which: std::ops::Range<usize>,
) -> Vec<Comp> {
    let model = c.scope.model;
    which
        .map(|k| Comp {
            node: number(c, field, element, k),
            unit: field_unit(model, varied(field, element), k),
        })
        .collect()
}

/// Whether an event changes the field.
pub(crate) fn varies(c: &Checker<'_>, field: Field, element: usize) -> bool {
    c.scope.model.varied_row(field, element).is_some()
}

/// Inertia of a body about its centre of mass, in its frame's axes: xx yy zz xy xz yz.
pub(crate) fn tensor(c: &mut Checker<'_>, body: usize) -> [Id; 6] {
    if !varies(c, Field::Moments, body) {
        return field(c, Field::Tensor, body);
    }
    // R diag(moments) R'
    let moments: [Id; 3] = field(c, Field::Moments, body);
    let r = ostler_model::rotation::matrix(c.scope.model.bodies[body].iquat);
    [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)].map(|(i, j)| {
        let turned = (0..3).map(|k| {
            let by = c.dag.constant(r[i][k] * r[j][k]);
            c.dag.mul(by, moments[k])
        });
        let turned: Vec<Id> = turned.collect();
        c.dag.sum(&turned)
    })
}

/// Mass of a body.
pub(crate) fn mass_of(c: &mut Checker<'_>, body: usize) -> Id {
    number(c, Field::Mass, body, 0)
}

fn mass(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let model = c.scope.model;
    let ids = match call.elements() {
        Some(bodies) => bodies.iter().map(|e| mass_of(c, e.index)).collect(),
        None => {
            let moving = (0..model.bodies.len()).filter(|&b| model.bodies[b].weld != 0);
            let (vary, stay): (Vec<usize>, Vec<usize>) =
                moving.partition(|&b| varies(c, Field::Mass, b));
            let rest: f64 = stay.iter().map(|&b| model.bodies[b].mass).sum();
            let mut ids = vec![c.dag.constant(rest)];
            ids.extend(vary.into_iter().map(|b| mass_of(c, b)));
            vec![c.dag.sum(&ids)]
        }
    };
    Ok(Value::vector(ids, Unit::parse("kg").unwrap_or(Unit::Any)))
}

fn each(
    c: &mut Checker<'_>,
    call: &Call,
    of: fn(&mut Checker<'_>, usize) -> Vec<Comp>,
) -> Result<Value, ExprError> {
    let mut comps = Vec::new();
    for e in call.elements().unwrap_or_default() {
        c.reads(e);
        comps.extend(of(c, e.index));
    }
    Ok(Value::new(comps))
}

fn of_kind(c: &mut Checker<'_>, call: &Call, kind: Kind, of: Field) -> Result<Value, ExprError> {
    let model = c.scope.model;
    let all: Vec<Element> = match kind {
        Kind::Joint => (0..model.joints.len())
            .filter(|&j| model.joints[j].is_scalar())
            .map(|index| Element { kind: ElementKind::Joint, index })
            .collect(),
        _ => (0..model.nu()).map(|index| Element { kind: ElementKind::Actuator, index }).collect(),
    };
    let mut comps = Vec::new();
    for e in call.elements().unwrap_or(all) {
        if matches!(of, Field::Kp | Field::Kd | Field::Gain) {
            has_gains(c, call, of, e.index)?;
        }
        c.reads(e);
        comps.extend(numbers(c, of, e.index, 0..1));
    }
    Ok(Value::new(comps))
}

/// Refuses actuators without such a gain.
fn has_gains(c: &Checker<'_>, call: &Call, of: Field, actuator: usize) -> Result<(), ExprError> {
    let actuator = &c.scope.model.actuators[actuator];
    let network = actuator.motor.as_ref().map(|m| &m.law);
    let (has, kind) = match of {
        Field::Gain => (actuator.is_motor(), "motor"),
        _ => (actuator.is_servo(), "position actuator"),
    };
    if has && !matches!(network, Some(MotorLaw::Network { .. })) {
        return Ok(());
    }
    let (name, function) = (&actuator.name, call.function.name);
    let why = format!("\"{name}\" has no {function}: it is no {kind}");
    Err(ExprError::new(call.span.clone(), why)
        .help(format!("name some that are: {function}(NAME)")))
}
