//! The state, controls and time.

use crate::expr::checker::Checker;
use crate::expr::dag::{Id, Seen, Source};
use crate::expr::element::{Element, ElementKind};
use crate::expr::error::ExprError;
use crate::expr::function::{Body, Call, Function};
use crate::expr::ops::Op;
use crate::expr::signature::{Kind, Rule, more, one};
use crate::expr::unit::Unit;
use crate::expr::value::{Comp, Value};
use ostler_model::{Joint, JointKind};

/// A value without arguments.
macro_rules! value {
    ($name:literal, $gives:literal, $unit:literal, $doc:literal, $body:expr) => {
        Function {
            name: $name,
            params: &[],
            gives: $gives,
            rule: Rule::Fixed($unit),
            doc: $doc,
            body: Body::Special($body),
        }
    };
}

/// One number per joint or actuator; all of them without arguments.
macro_rules! per_element {
    ($name:literal, $kind:expr, $gives:literal, $rule:expr, $doc:literal, $body:expr) => {
        Function {
            name: $name,
            params: &[more($kind)],
            gives: $gives,
            rule: $rule,
            doc: $doc,
            body: Body::Special($body),
        }
    };
}

/// The table.
pub(crate) const TABLE: &[Function] = &[
    Function {
        name: "qpos",
        params: &[],
        gives: "nq",
        rule: Rule::Each("m, rad or -, component by component"),
        doc: "all generalised positions in MuJoCo's order; cut it as `qpos[2:]`",
        body: Body::Special(|c, _| Ok(qpos(c))),
    },
    Function {
        name: "qvel",
        params: &[],
        gives: "nv",
        rule: Rule::Each("m/s or rad/s, component by component"),
        doc: "all generalised velocities; a free joint's are linear (world frame), then angular (body frame)",
        body: Body::Special(|c, _| Ok(qvel(c))),
    },
    per_element!(
        "joint_pos",
        Kind::Joint,
        "one per joint",
        Rule::Each("rad (hinge) or m (slide)"),
        "positions of hinge and slide joints; all of them without names",
        |c, call| Ok(joints(c, call, load_q))
    ),
    per_element!(
        "joint_pos_rel",
        Kind::Joint,
        "one per joint",
        Rule::Each("rad (hinge) or m (slide)"),
        "joint positions minus those of the default pose (`task.default_pose`)",
        |c, call| {
            if c.scope.pose.is_empty() {
                let why = "the pose that this is relative to follows from this term";
                return Err(ExprError::new(call.span.clone(), why).help(
                    "task.default_pose = \"initial\" or \"keyframe(NAME)\" names another; \
                     joint_pos(...) is absolute",
                ));
            }
            Ok(joints(c, call, relative))
        }
    ),
    per_element!(
        "joint_vel",
        Kind::Joint,
        "one per joint",
        Rule::Each("rad/s (hinge) or m/s (slide)"),
        "velocities of hinge and slide joints; all of them without names",
        |c, call| Ok(joints(c, call, |c, j| rate(c, j, Source::World(Seen::Qvel), "s")))
    ),
    per_element!(
        "joint_acc",
        Kind::Joint,
        "one per joint",
        Rule::Each("rad/s^2 (hinge) or m/s^2 (slide)"),
        "accelerations of hinge and slide joints in the last time step (RK4: the mean of its stages); all of them without names; zero where an episode begins; not with rapier",
        |c, call| Ok(joints(c, call, |c, j| rate(c, j, Source::World(Seen::Qacc), "s^2")))
    ),
    per_element!(
        "joint_limit_lower",
        Kind::Joint,
        "one per joint",
        Rule::Each("rad (hinge) or m (slide)"),
        "lower limits of joints; minus infinity where there is none",
        |c, call| Ok(joints(c, call, |c, j| limit(c, j, 0, f64::NEG_INFINITY)))
    ),
    per_element!(
        "joint_limit_upper",
        Kind::Joint,
        "one per joint",
        Rule::Each("rad (hinge) or m (slide)"),
        "upper limits of joints; infinity where there is none",
        |c, call| Ok(joints(c, call, |c, j| limit(c, j, 1, f64::INFINITY)))
    ),
    Function {
        name: "joint_limit_excess",
        params: &[one("share", Kind::Value), more(Kind::Joint)],
        gives: "one per joint",
        rule: Rule::Each("rad (hinge) or m (slide)"),
        doc: "how far positions are beyond the middle `share` of their joints' ranges: 0.9 for limits softer by 5 % at each end; 0 within them and without limits; all joints without names",
        body: Body::Special(|c, call| {
            let share = c.value(call, 0)?;
            c.scalar(call, &share, 0)?;
            let known = c.dag.value(share.at(0).node);
            if known.is_some_and(|share| !(share > 0.0 && share <= 1.0)) {
                let why = "this share of a joint's range is not above 0 and at most 1";
                return Err(ExprError::new(call.span_of(0), why)
                    .help("0.9 is the usual factor of soft limits"));
            }
            Ok(joints(c, call, |c, j| excess(c, j, share.at(0).node)))
        }),
    },
    per_element!(
        "actuator_force",
        Kind::Actuator,
        "one per actuator",
        Rule::Each("N m (hinge) or N (slide)"),
        "forces of actuators after clamping, before the gear; all of them without names",
        |c, call| Ok(actuators(c, call, Source::World(Seen::ActuatorForce), true))
    ),
    per_element!(
        "activation",
        Kind::Actuator,
        "one per actuator that has one",
        Rule::Fixed("any"),
        "activations of actuators (MuJoCo's `act`): of muscles, filters, integrators; all of them without names",
        activations
    ),
    per_element!(
        "ctrl",
        Kind::Actuator,
        "one per actuator",
        Rule::Fixed("any"),
        "controls the actuators were given; all of them without names",
        |c, call| Ok(actuators(c, call, Source::Ctrl, false))
    ),
    super::sensors::SENSOR,
    value!(
        "action",
        "A",
        "any",
        "the policy's output of this step, clipped, before scaling",
        |c, _| Ok(action(c, Source::Action))
    ),
    value!(
        "last_action",
        "A",
        "any",
        "the action of the step before; zero after a reset",
        |c, _| Ok(action(c, Source::LastAction))
    ),
    value!("action_rate", "A", "any", "action - last_action", |c, _| {
        let (now, before) = (action(c, Source::Action), action(c, Source::LastAction));
        let ids: Vec<_> =
            (now.ids().into_iter().zip(before.ids())).map(|(a, b)| c.dag.sub(a, b)).collect();
        Ok(Value::vector(ids, Unit::Any))
    }),
    value!("time", "1", "s", "time since the episode began", |c, _| {
        let (steps, dt) = (c.dag.load(Source::Step, 0), c.dag.load(Source::StepDt, 0));
        Ok(Value::scalar(c.dag.mul(steps, dt), unit("s")))
    }),
    value!("step_count", "1", "-", "control steps since the episode began", |c, _| {
        Ok(Value::scalar(c.dag.load(Source::Step, 0), Unit::NONE))
    }),
    value!("step_dt", "1", "s", "duration of a control step", |c, _| Ok(Value::scalar(
        c.dag.load(Source::StepDt, 0),
        unit("s")
    ))),
    value!(
        "episode_progress",
        "1",
        "-",
        "share of the episode's time that has passed, 0 to 1",
        |c, _| {
            let (steps, most) = (c.dag.load(Source::Step, 0), c.dag.load(Source::MaxSteps, 0));
            Ok(Value::scalar(c.dag.div(steps, most), Unit::NONE))
        }
    ),
];

/// A unit written in this module's own text.
fn unit(text: &str) -> Unit {
    Unit::parse(text).unwrap_or(Unit::Any)
}

/// (rad) for hinges, (m) for slides.
fn length(joint: &Joint) -> Unit {
    match joint.kind {
        JointKind::Hinge => Unit::RAD,
        _ => unit("m"),
    }
}

fn qpos(c: &mut Checker<'_>) -> Value {
    let m = unit("m");
    let mut units = vec![Unit::NONE; c.scope.model.nq];
    for j in &c.scope.model.joints {
        let here = &mut units[j.qpos_adr..];
        match j.kind {
            JointKind::Free => here[..3].fill(m),
            JointKind::Ball => {}
            JointKind::Slide | JointKind::Hinge => here[0] = length(j),
        }
    }
    whole(c, Source::World(Seen::Qpos), units)
}

fn qvel(c: &mut Checker<'_>) -> Value {
    let mut units = vec![unit("rad/s"); c.scope.model.nv];
    for j in &c.scope.model.joints {
        match j.kind {
            JointKind::Free => units[j.dof_adr..j.dof_adr + 3].fill(unit("m/s")),
            JointKind::Slide => units[j.dof_adr] = unit("m/s"),
            JointKind::Ball | JointKind::Hinge => {}
        }
    }
    whole(c, Source::World(Seen::Qvel), units)
}

fn whole(c: &mut Checker<'_>, source: Source, units: Vec<Unit>) -> Value {
    for index in 0..c.scope.model.joints.len() {
        c.reads(Element { kind: ElementKind::Joint, index });
    }
    let comps = (units.into_iter().enumerate())
        .map(|(i, unit)| Comp { node: c.dag.load(source, i), unit })
        .collect();
    Value::new(comps)
}

/// One component for each named joint, or for each hinge and slide.
pub(super) fn joints(
    c: &mut Checker<'_>,
    call: &Call,
    each: impl Fn(&mut Checker<'_>, &Joint) -> Comp,
) -> Value {
    let model = c.scope.model;
    let all = (0..model.joints.len())
        .filter(|&i| matches!(model.joints[i].kind, JointKind::Hinge | JointKind::Slide))
        .map(|index| Element { kind: ElementKind::Joint, index });
    let elements = call.elements().unwrap_or_else(|| all.collect());
    let comps = elements
        .into_iter()
        .map(|e| {
            c.reads(e);
            each(c, &model.joints[e.index])
        })
        .collect();
    Value::new(comps)
}

fn load_q(c: &mut Checker<'_>, j: &Joint) -> Comp {
    Comp { node: c.dag.load(Source::World(Seen::Qpos), j.qpos_adr), unit: length(j) }
}

/// A joint's row of a source that counts by degrees of freedom, per time.
fn rate(c: &mut Checker<'_>, j: &Joint, source: Source, time: &str) -> Comp {
    Comp { node: c.dag.load(source, j.dof_adr), unit: length(j).over(unit(time)) }
}

fn relative(c: &mut Checker<'_>, j: &Joint) -> Comp {
    let now = load_q(c, j);
    let about = c.scope.pose[j.qpos_adr];
    if about == 0.0 {
        return now;
    }
    let about = c.dag.constant(about);
    Comp { node: c.dag.sub(now.node, about), ..now }
}

fn limit(c: &mut Checker<'_>, j: &Joint, side: usize, none: f64) -> Comp {
    Comp { node: c.dag.constant(j.range.map_or(none, |r| r[side])), unit: length(j) }
}

/// Distance from the middle of the joint's range, less `share` of half of it, at least 0.
fn excess(c: &mut Checker<'_>, j: &Joint, share: Id) -> Comp {
    let unit = length(j);
    let Some([low, high]) = j.range else {
        return Comp { node: c.dag.constant(0.0), unit };
    };
    let (now, none) = (load_q(c, j), c.dag.constant(0.0));
    let (middle, half) = (c.dag.constant(0.5 * (low + high)), c.dag.constant(0.5 * (high - low)));
    let away = c.dag.sub(now.node, middle);
    let (away, within) = (c.dag.one(Op::Abs, away), c.dag.mul(share, half));
    let beyond = c.dag.sub(away, within);
    Comp { node: c.dag.two(Op::Max, beyond, none), unit }
}

fn actuators(c: &mut Checker<'_>, call: &Call, source: Source, force: bool) -> Value {
    let model = c.scope.model;
    let all = (0..model.nu()).map(|index| Element { kind: ElementKind::Actuator, index });
    let elements = call.elements().unwrap_or_else(|| all.collect());
    let comps = elements
        .into_iter()
        .map(|e| {
            c.reads(e);
            let joint = model.actuators[e.index].joint();
            let unit = match joint.map(|j| model.joints[j].kind) {
                Some(JointKind::Hinge) if force => unit("N m"),
                Some(JointKind::Slide) if force => unit("N"),
                _ => Unit::Any,
            };
            Comp { node: c.dag.load(source, e.index), unit }
        })
        .collect();
    Value::new(comps)
}

fn activations(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let model = c.scope.model;
    let of = |u: usize| model.actuators[u].act_adr;
    let named = call.elements();
    if let Some(e) = named.iter().flatten().find(|e| of(e.index).is_none()) {
        let name = &model.actuators[e.index].name;
        let why = format!("actuator `{name}` has no activation: its force follows its control");
        return Err(ExprError::new(call.span.clone(), why)
            .help("write ctrl(ACTUATOR) or actuator_force(ACTUATOR)"));
    }
    let all = (0..model.nu()).map(|index| Element { kind: ElementKind::Actuator, index });
    let elements = named.unwrap_or_else(|| all.filter(|e| of(e.index).is_some()).collect());
    if elements.is_empty() {
        let why = "no actuator of this robot has an activation";
        return Err(ExprError::new(call.span.clone(), why).help("write ctrl or actuator_force()"));
    }
    let comps = elements.into_iter().filter_map(|e| {
        c.reads(e);
        Some(c.dag.load(Source::World(Seen::Act), of(e.index)?))
    });
    Ok(Value::vector(comps.collect::<Vec<_>>(), Unit::Any))
}

fn action(c: &mut Checker<'_>, source: Source) -> Value {
    let first = c.scope.agents.map_or(0, |a| a.action_first);
    c.of_agent = true;
    let ids: Vec<_> = (0..c.scope.action_width).map(|i| c.dag.load(source, first + i)).collect();
    Value::vector(ids, Unit::Any)
}
