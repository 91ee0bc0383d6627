//! `sensor(NAME)`: the model's sensors, from the state. Formulas as MuJoCo's
//! (`sim/tests/engine/mjcf_referee` compares them).

use super::fields::{mass_of, tensor, varies};
use super::frames::{Place, centre_of, load, point, point_at, point_vel, point_vel_at, turned};
use super::geometry::weighted;
use crate::expr::checker::Checker;
use crate::expr::dag::{Id, Seen, Source};
use crate::expr::element::Element;
use crate::expr::error::ExprError;
use crate::expr::function::{Body, Call, Function};
use crate::expr::ops::Op;
use crate::expr::signature::{Kind, Rule, more, one};
use crate::expr::unit::Unit;
use crate::expr::value::{Comp, Value};
use ostler_model::{
    Field, FrameQuantity, JointKind, SensorFrame, SensorKind, TendonKind, Transmission,
};

/// The one function.
pub(crate) const SENSOR: Function = Function {
    name: "sensor",
    params: &[one("name", Kind::Sensor), more(Kind::Sensor)],
    gives: "as the sensor",
    rule: Rule::Each("that of the measured quantity"),
    doc: "a sensor of the robot's file, of the present state: joints, tendons, actuators, frames, velocimeter, gyro, magnetometer, rangefinder, subtree, clock; of the state in which the last time step began: accelerometer, force, torque, touch, frames' accelerations, which are zero where an episode begins; noise has no effect",
    body: Body::Special(sensors),
};

/// A measured frame: its body, and its pose there.
type Fixed = (usize, [f64; 3], [f64; 4]);

fn sensors(c: &mut Checker<'_>, call: &Call) -> Result<Value, ExprError> {
    let mut comps = Vec::new();
    for e in call.elements().unwrap_or_default() {
        c.reads(e);
        comps.extend(sensor(c, call, e)?);
    }
    Ok(Value::new(comps))
}

fn sensor(c: &mut Checker<'_>, call: &Call, e: Element) -> Result<Vec<Comp>, ExprError> {
    let model = c.scope.model;
    let sensor = &model.sensors[e.index];
    let refuse = |why: &str| {
        let what = format!("the sensor \"{}\" cannot be read: {why}", sensor.name);
        ExprError::new(call.span.clone(), what)
    };
    let ids = |ids: &[Id], unit: &str| same(ids, Unit::parse(unit).unwrap_or(Unit::Any));
    let mut clipped = true;
    let found = match &sensor.kind {
        SensorKind::Unsupported(why) => return Err(refuse(why)),
        SensorKind::Accelerometer(_)
        | SensorKind::Force(_)
        | SensorKind::Torque(_)
        | SensorKind::Touch(_)
        | SensorKind::Frame { quantity: FrameQuantity::LinAcc | FrameQuantity::AngAcc, .. } => {
            return Ok(read(c, e.index));
        }
        SensorKind::JointPos(j) => linear(c, &[(*j, 1.0)], false, None),
        SensorKind::JointVel(j) => linear(c, &[(*j, 1.0)], true, None),
        SensorKind::BallQuat(j) => {
            clipped = false;
            let first = model.joints[*j].qpos_adr;
            let q: [Id; 4] =
                std::array::from_fn(|k| c.dag.load(Source::World(Seen::Qpos), first + k));
            ids(&q, "-")
        }
        SensorKind::BallAngVel(j) => {
            let first = model.joints[*j].dof_adr;
            let v: [Id; 3] =
                std::array::from_fn(|k| c.dag.load(Source::World(Seen::Qvel), first + k));
            ids(&v, "rad/s")
        }
        SensorKind::TendonPos(t) | SensorKind::TendonVel(t) => {
            let TendonKind::Fixed(joints) = &model.tendons[*t].kind else {
                return Err(refuse("it measures a spatial tendon"));
            };
            let velocity = matches!(sensor.kind, SensorKind::TendonVel(_));
            linear(c, joints, velocity, Some(Unit::Any))
        }
        SensorKind::ActuatorPos(a) | SensorKind::ActuatorVel(a) => {
            let velocity = matches!(sensor.kind, SensorKind::ActuatorVel(_));
            let Some(joints) = lengthens(model, *a) else {
                return Err(refuse(
                    "it measures an actuator that acts on no hinge, slide or fixed tendon",
                ));
            };
            linear(c, &joints, velocity, Some(Unit::Any))
        }
        SensorKind::ActuatorFrc(a) => {
            let joint = model.actuators[*a].joint().map(|j| model.joints[j].kind);
            let unit = match joint {
                Some(JointKind::Hinge) => "N m",
                Some(JointKind::Slide) => "N",
                _ => "any",
            };
            let force = c.dag.load(Source::World(Seen::ActuatorForce), *a);
            ids(&[force], unit)
        }
        SensorKind::Frame { quantity, frame, relative } => {
            clipped = matches!(
                quantity,
                FrameQuantity::Pos | FrameQuantity::LinVel | FrameQuantity::AngVel
            );
            let frame = fixed(c, *frame);
            let relative = relative.map(|r| fixed(c, r));
            of_frame(c, *quantity, frame, relative)
        }
        SensorKind::Velocimeter(s) => {
            let frame = fixed(c, SensorFrame::Site(*s));
            let v = point_vel(c, frame.0, frame.1);
            ids(&back(c, frame, v), "m/s")
        }
        SensorKind::Gyro(s) => {
            let frame = fixed(c, SensorFrame::Site(*s));
            let w = load(c, Source::World(Seen::BodyAngVel), frame.0);
            ids(&back(c, frame, w), "rad/s")
        }
        SensorKind::Rangefinder(s) => match super::rays::rangefinder(c, *s) {
            Ok(distance) => ids(&[distance], "m"),
            Err(what) => {
                return Err(refuse(&format!("its ray may meet {what}, which is not supported")));
            }
        },
        SensorKind::Magnetometer(s) => {
            let field = model.options.magnetic.map(|x| c.dag.constant(x));
            let frame = fixed(c, SensorFrame::Site(*s));
            ids(&back(c, frame, field), "any")
        }
        SensorKind::SubtreeCom(b) => ids(&subtree(c, *b, point_at), "m"),
        SensorKind::SubtreeLinVel(b) => ids(&subtree(c, *b, point_vel_at), "m/s"),
        SensorKind::SubtreeAngMom(b) => ids(&momentum(c, *b), "kg m^2/s"),
        SensorKind::Clock => {
            let (steps, dt) = (c.dag.load(Source::Step, 0), c.dag.load(Source::StepDt, 0));
            ids(&[c.dag.mul(steps, dt)], "s")
        }
    };
    Ok(match clipped {
        false => found,
        true => clip(c, sensor.cutoff, found),
    })
}

/// Components within `cutoff`; 0 is none.
fn clip(c: &mut Checker<'_>, cutoff: f64, found: Vec<Comp>) -> Vec<Comp> {
    if cutoff <= 0.0 {
        return found;
    }
    let (low, high) = (c.dag.constant(-cutoff), c.dag.constant(cutoff));
    let clip = |comp: Comp| {
        let most = c.dag.two(Op::Min, comp.node, high);
        Comp { node: c.dag.two(Op::Max, most, low), ..comp }
    };
    found.into_iter().map(clip).collect()
}

/// A sensor that is measured while the worlds step.
fn read(c: &mut Checker<'_>, index: usize) -> Vec<Comp> {
    let model = c.scope.model;
    let sensor = &model.sensors[index];
    let unit = match &sensor.kind {
        SensorKind::Force(_) | SensorKind::Touch(_) => "N",
        SensorKind::Torque(_) => "N m",
        SensorKind::Frame { quantity: FrameQuantity::AngAcc, .. } => "rad/s^2",
        _ => "m/s^2",
    };
    let unit = Unit::parse(unit).unwrap_or(Unit::Any);
    let first = model.measured_before(index);
    let numbers = (first..first + sensor.kind.measured())
        .map(|row| Comp { node: c.dag.load(Source::World(Seen::Sensordata), row), unit })
        .collect();
    clip(c, sensor.cutoff, numbers)
}

fn same(ids: &[Id], unit: Unit) -> Vec<Comp> {
    ids.iter().map(|&node| Comp { node, unit }).collect()
}

/// Joints and coefficients whose sum is an actuator's length.
fn lengthens(model: &ostler_model::Model, actuator: usize) -> Option<Vec<(usize, f64)>> {
    let actuator = &model.actuators[actuator];
    let gear = actuator.gear[0];
    match actuator.transmission {
        Transmission::Joint(j) | Transmission::JointInParent(j) if model.joints[j].is_scalar() => {
            Some(vec![(j, gear)])
        }
        Transmission::Tendon(t) => match &model.tendons[t].kind {
            TendonKind::Fixed(joints) => Some(joints.iter().map(|(j, x)| (*j, gear * x)).collect()),
            TendonKind::Spatial(_) => None,
        },
        _ => None,
    }
}

/// A sum of joint positions or velocities; `unit`, or that of the one joint.
fn linear(
    c: &mut Checker<'_>,
    joints: &[(usize, f64)],
    velocity: bool,
    unit: Option<Unit>,
) -> Vec<Comp> {
    let mut of_joint = Unit::Any;
    let mut terms = Vec::new();
    for &(j, coefficient) in joints {
        let joint = &c.scope.model.joints[j];
        let hinge = joint.kind == JointKind::Hinge;
        let text = match (hinge, velocity) {
            (true, false) => "rad",
            (true, true) => "rad/s",
            (false, false) => "m",
            (false, true) => "m/s",
        };
        of_joint = Unit::parse(text).unwrap_or(Unit::Any);
        let x = match velocity {
            true => c.dag.load(Source::World(Seen::Qvel), joint.dof_adr),
            false => c.dag.load(Source::World(Seen::Qpos), joint.qpos_adr),
        };
        terms.push(match coefficient == 1.0 {
            true => x,
            false => {
                let k = c.dag.constant(coefficient);
                c.dag.mul(k, x)
            }
        });
    }
    same(&[c.dag.sum(&terms)], unit.unwrap_or(of_joint))
}

fn fixed(c: &Checker<'_>, frame: SensorFrame) -> Fixed {
    let (body, pose) = c.scope.model.carried(frame);
    (body, pose.pos, pose.quat)
}

/// A vector of the world in a frame's own axes.
fn back(c: &mut Checker<'_>, frame: Fixed, v: [Id; 3]) -> [Id; 3] {
    let q = turned(c, frame.0, frame.2);
    c.dag.rotate(q, v, true)
}

fn difference(c: &mut Checker<'_>, a: [Id; 3], b: [Id; 3]) -> [Id; 3] {
    std::array::from_fn(|k| c.dag.sub(a[k], b[k]))
}

fn of_frame(
    c: &mut Checker<'_>,
    quantity: FrameQuantity,
    frame: Fixed,
    relative: Option<Fixed>,
) -> Vec<Comp> {
    let unit = |text: &str| Unit::parse(text).unwrap_or(Unit::Any);
    let (mut v, unit) = match quantity {
        FrameQuantity::Quat => {
            let mut q = turned(c, frame.0, frame.2);
            if let Some(r) = relative {
                let [w, x, y, z] = turned(c, r.0, r.2);
                let inverse =
                    [w, c.dag.one(Op::Neg, x), c.dag.one(Op::Neg, y), c.dag.one(Op::Neg, z)];
                q = super::frames::product(c, inverse, q);
            }
            return same(&q, Unit::NONE);
        }
        FrameQuantity::Pos => (point(c, frame.0, frame.1), unit("m")),
        FrameQuantity::Axis(k) => {
            let q = turned(c, frame.0, frame.2);
            let axis = std::array::from_fn(|i| c.dag.constant(f64::from(u8::from(i == k))));
            (c.dag.rotate(q, axis, false), Unit::NONE)
        }
        FrameQuantity::LinVel => (point_vel(c, frame.0, frame.1), unit("m/s")),
        FrameQuantity::AngVel => (load(c, Source::World(Seen::BodyAngVel), frame.0), unit("rad/s")),
        // Measured, see `read`.
        FrameQuantity::LinAcc | FrameQuantity::AngAcc => return Vec::new(),
    };
    let Some(r) = relative else {
        return same(&v, unit);
    };
    match quantity {
        FrameQuantity::Pos => {
            let origin = point(c, r.0, r.1);
            v = difference(c, v, origin);
        }
        FrameQuantity::LinVel => {
            // Less the velocity that the turning frame has there.
            let (p, origin) = (point(c, frame.0, frame.1), point(c, r.0, r.1));
            let (arm, moving) = (difference(c, p, origin), point_vel(c, r.0, r.1));
            let omega = load(c, Source::World(Seen::BodyAngVel), r.0);
            let turning = c.dag.cross(omega, arm);
            v = difference(c, v, moving);
            v = difference(c, v, turning);
        }
        FrameQuantity::AngVel => {
            let omega = load(c, Source::World(Seen::BodyAngVel), r.0);
            v = difference(c, v, omega);
        }
        _ => {}
    }
    same(&back(c, r, v), unit)
}

/// A body and all below it.
fn below(c: &Checker<'_>, root: usize) -> Vec<usize> {
    let bodies = &c.scope.model.bodies;
    let mut inside = vec![false; bodies.len()];
    for (b, body) in bodies.iter().enumerate() {
        inside[b] = b == root || b > 0 && inside[body.parent];
    }
    (0..bodies.len()).filter(|b| inside[*b]).collect()
}

/// Mean over a subtree of what its centres of mass have, weighted by mass.
fn subtree(
    c: &mut Checker<'_>,
    root: usize,
    of: fn(&mut Checker<'_>, usize, Place) -> [Id; 3],
) -> [Id; 3] {
    let bodies = below(c, root);
    match weighted(c, &bodies, of) {
        Some(mean) => mean,
        None => {
            let at = centre_of(c, root);
            of(c, root, at)
        }
    }
}

/// Angular momentum of a subtree about its centre of mass.
fn momentum(c: &mut Checker<'_>, root: usize) -> [Id; 3] {
    let model = c.scope.model;
    let (centre, drift) = (subtree(c, root, point_at), subtree(c, root, point_vel_at));
    let mut sum: [Vec<Id>; 3] = Default::default();
    for b in below(c, root) {
        let body = &model.bodies[b];
        let inertias = [Field::Mass, Field::Moments, Field::Tensor];
        let own = inertias.iter().any(|&f| varies(c, f, b));
        if body.mass == 0.0 && body.inertia == [0.0; 3] && !own {
            continue;
        }
        let at = centre_of(c, b);
        let (p, v) = (point_at(c, b, at), point_vel_at(c, b, at));
        let (arm, moving) = (difference(c, p, centre), difference(c, v, drift));
        let orbit = c.dag.cross(arm, moving);
        let spin = spin(c, b);
        let mass = mass_of(c, b);
        for k in 0..3 {
            let orbit = c.dag.mul(mass, orbit[k]);
            sum[k].push(c.dag.add(orbit, spin[k]));
        }
    }
    sum.map(|s| c.dag.sum(&s))
}

/// Angular momentum of a body about its own centre of mass.
fn spin(c: &mut Checker<'_>, b: usize) -> [Id; 3] {
    let body = &c.scope.model.bodies[b];
    let omega = load(c, Source::World(Seen::BodyAngVel), b);
    if varies(c, Field::Moments, b) || varies(c, Field::Tensor, b) {
        let axes = turned(c, b, [1.0, 0.0, 0.0, 0.0]);
        let local = c.dag.rotate(axes, omega, true);
        let [xx, yy, zz, xy, xz, yz] = tensor(c, b);
        let rows = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]];
        let spin = rows.map(|row| c.dag.dot(&row, &local));
        return c.dag.rotate(axes, spin, false);
    }
    let axes = turned(c, b, body.iquat);
    let local = c.dag.rotate(axes, omega, true);
    let spin = std::array::from_fn(|k| {
        let moment = c.dag.constant(body.inertia[k]);
        c.dag.mul(moment, local[k])
    });
    c.dag.rotate(axes, spin, false)
}
