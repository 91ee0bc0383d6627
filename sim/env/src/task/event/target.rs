//! The quantities that events change: `friction(*_foot)[0]`, `mass(trunk)`, `vel(trunk)`.

use crate::config::ConfigError;
use crate::task::read::{Names, Parts, free_joint};
use ostler_base::names::nearest;
use ostler_model::{Actuator, Field, Model, MotorLaw, Varied};

/// What an event acts on.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Target {
    /// Components of a field of some elements.
    Fields {
        /// The elements.
        varied: Vec<Varied>,
        /// Which components of each.
        components: Vec<usize>,
    },
    /// Fields of one element after the other, all of an element's in proportion.
    Scaled(Vec<Vec<Varied>>),
    /// Mass, centre of mass and inertia of bodies together.
    Pseudo(Vec<usize>),
    /// Velocity of a body with a free joint: its number, the components.
    Push(usize, Vec<usize>),
}

/// A quantity: its name, the elements that it is of, components.
struct Quantity {
    name: &'static str,
    /// For messages.
    kind: &'static str,
    field: Option<Field>,
    /// Components of the field that it means.
    part: std::ops::Range<usize>,
    /// Which numbers are possible.
    least: f64,
}

const fn quantity(
    name: &'static str,
    kind: &'static str,
    field: Option<Field>,
    part: std::ops::Range<usize>,
    least: f64,
) -> Quantity {
    Quantity { name, kind, field, part, least }
}

const ANY: f64 = f64::NEG_INFINITY;
/// Masses and moments of inertia are above zero: single precision's least for a robot.
const POSITIVE: f64 = 1e-9;

/// All quantities, as `set` names them.
const QUANTITIES: [Quantity; 21] = [
    quantity("friction", "geom", Some(Field::Friction), 0..3, 0.0),
    quantity("mass", "body", Some(Field::Mass), 0..1, POSITIVE),
    quantity("com", "body", Some(Field::Com), 0..3, ANY),
    quantity("inertia", "body", Some(Field::Moments), 0..3, POSITIVE),
    quantity("density", "body", None, 0..1, POSITIVE),
    quantity("pseudo_inertia", "body", None, 0..10, ANY),
    quantity("armature", "joint", Some(Field::Armature), 0..1, 0.0),
    quantity("damping", "joint", Some(Field::Damping), 0..1, 0.0),
    quantity("frictionloss", "joint", Some(Field::Frictionloss), 0..1, 0.0),
    quantity("stiffness", "joint", Some(Field::Stiffness), 0..1, 0.0),
    quantity("joint_offset", "joint", Some(Field::Qpos0), 0..1, ANY),
    quantity("kp", "actuator", Some(Field::Kp), 0..1, 0.0),
    quantity("kd", "actuator", Some(Field::Kd), 0..1, 0.0),
    quantity("gain", "actuator", Some(Field::Gain), 0..1, ANY),
    quantity("strength", "actuator", None, 0..1, 0.0),
    quantity("effort_limit", "actuator", Some(Field::Effort), 0..1, 0.0),
    quantity("gravity", "", Some(Field::Gravity), 0..3, ANY),
    quantity("vel", "body", None, 0..6, ANY),
    quantity("force", "body", Some(Field::Wrench), 0..3, ANY),
    quantity("torque", "body", Some(Field::Wrench), 3..6, ANY),
    quantity("wrench", "body", Some(Field::Wrench), 0..6, ANY),
];

/// A target with what is possible for its numbers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Parsed {
    pub target: Target,
    /// As `set` names the quantity.
    pub quantity: &'static str,
    /// Least possible number.
    pub least: f64,
}

/// Splits `name(names)[index]`.
struct Text<'t> {
    name: &'t str,
    names: &'t str,
    index: Option<&'t str>,
}

fn split<'t>(text: &'t str, path: &str) -> Result<Text<'t>, ConfigError> {
    let wrong = |why: &str| {
        Err(ConfigError::new(path, format!("\"{text}\" {why}"))
            .help("write QUANTITY(PATTERN), such as \"mass(trunk)\" or \"friction(*_foot)[0]\""))
    };
    let text = text.trim();
    let (head, index) = match text.strip_suffix(']') {
        Some(rest) => match rest.rsplit_once('[') {
            Some((head, index)) => (head.trim_end(), Some(index.trim())),
            None => return wrong("closes a bracket that is not open"),
        },
        None => (text, None),
    };
    let Some((name, inner)) = head.split_once('(') else {
        return Ok(Text { name: head, names: "", index });
    };
    let Some(inner) = inner.strip_suffix(')') else {
        return wrong("has a bracket that is not closed");
    };
    Ok(Text { name: name.trim(), names: inner.trim(), index })
}

/// The components that `[0]`, `[0:2]` or nothing means, of `width`.
fn components(index: Option<&str>, width: usize, path: &str) -> Result<Vec<usize>, ConfigError> {
    let Some(text) = index else {
        return Ok((0..width).collect());
    };
    let end = |s: &str, none: usize| match s.trim() {
        "" => Some(none),
        s => s.parse::<usize>().ok(),
    };
    let range = match text.split_once(':') {
        Some((a, b)) => end(a, 0).zip(end(b, width)),
        None => text.parse::<usize>().ok().map(|i| (i, i + 1)),
    };
    match range {
        Some((a, b)) if a < b && b <= width => Ok((a..b).collect()),
        _ => Err(ConfigError::new(path, format!("there is no component [{text}]")).help(
            match width {
                1 => "it is one number: leave the brackets out".to_string(),
                n => format!("components are [0] to [{}], or a slice such as [0:2]", n - 1),
            },
        )),
    }
}

/// The parts that a quantity may be of; a pattern means those whose number can change.
fn parts<'m>(model: &'m Model, q: &Quantity) -> Parts<'m> {
    match q.kind {
        "body" if q.name == "vel" => Parts::floating(model),
        "body" => Parts::bodies(model),
        "joint" => Parts::driven(model),
        "geom" => Parts::geoms(model),
        _ if ["kp", "kd"].contains(&q.name) => Parts::servos(model),
        _ if q.name == "gain" => Parts::motors(model),
        _ if q.name == "strength" => Parts::strong(model),
        _ => Parts::actuators(model),
    }
}

/// The target that `set` means.
pub(super) fn parse(
    model: &Model,
    names: Names<'_>,
    set: &str,
    path: &str,
) -> Result<Parsed, ConfigError> {
    let text = split(set, path)?;
    let Some(q) = QUANTITIES.iter().find(|q| q.name == text.name) else {
        let names = QUANTITIES.iter().map(|q| q.name);
        let error = ConfigError::new(path, format!("no event sets \"{}\"", text.name));
        return Err(error.help(match nearest(text.name, names.clone()) {
            Some(near) => format!("did you mean \"{near}\"?"),
            None => format!("events set: {}", names.collect::<Vec<_>>().join(", ")),
        }));
    };
    if q.kind.is_empty() != text.names.is_empty() {
        let error = ConfigError::new(
            path,
            match q.kind {
                "" => format!("{} is the world's and takes no name", q.name),
                "actuator" => format!("{} needs the name of an actuator", q.name),
                kind => format!("{} needs the name of a {kind}", q.name),
            },
        );
        return Err(error.help(match q.kind {
            "" => format!("write \"{}\"", q.name),
            _ => format!("write \"{}(NAME)\" or \"{}(*)\"", q.name, q.name),
        }));
    }
    let wanted = components(text.index, q.part.len(), path)?;
    let found = match q.kind {
        "" => vec![0],
        _ => names.several(text.names, &parts(model, q), path)?.all,
    };
    possible(model, q, &found, path)?;
    let target = match (q.name, q.field) {
        ("density" | "strength", _) => Target::Scaled(
            found.into_iter().map(|element| together(model, q.name, element)).collect(),
        ),
        ("pseudo_inertia", _) if text.index.is_some() => {
            return Err(ConfigError::new(path, "pseudo_inertia has no components")
                .help("range = { alpha = [-0.1, 0.1] } changes the mass alone"));
        }
        ("pseudo_inertia", _) => Target::Pseudo(found),
        (_, Some(field)) => Target::Fields {
            varied: found.into_iter().map(|element| Varied { field, element }).collect(),
            components: wanted.into_iter().map(|k| q.part.start + k).collect(),
        },
        _ => match found[..] {
            [body] => Target::Push(body, wanted),
            _ => {
                return Err(ConfigError::new(
                    path,
                    format!("{} pushes one body, this is {}", q.name, found.len()),
                )
                .help("write an event for each"));
            }
        },
    };
    Ok(Parsed { target, quantity: q.name, least: q.least })
}

/// The fields that a factor of `quantity` scales together.
fn together(model: &Model, quantity: &str, element: usize) -> Vec<Varied> {
    let fields = match quantity {
        "density" => vec![Field::Mass, Field::Moments],
        _ if model.actuators[element].is_motor() => vec![Field::Gain],
        _ => vec![Field::Kp, Field::Kd],
    };
    fields.into_iter().map(|field| Varied { field, element }).collect()
}

fn is_network(actuator: &Actuator) -> bool {
    let law = actuator.motor.as_ref().map(|motor| &motor.law);
    matches!(law, Some(MotorLaw::Network { .. }))
}

/// Refuses elements that have no such quantity.
fn possible(model: &Model, q: &Quantity, found: &[usize], path: &str) -> Result<(), ConfigError> {
    let refused = |why: String, help: &str| Err(ConfigError::new(path, why).help(help));
    for &i in found {
        match q.name {
            "kp" | "kd" | "strength" if is_network(&model.actuators[i]) => {
                let name = &model.actuators[i].name;
                return refused(
                    format!("\"{name}\" is a network and has no {}", q.name),
                    "actuators with model = \"pd\" or \"dc_motor\" have gains",
                );
            }
            "kp" | "kd" if !model.actuators[i].is_servo() => {
                let name = &model.actuators[i].name;
                return refused(
                    format!("\"{name}\" has no {}: it is no position actuator", q.name),
                    "position actuators have gains",
                );
            }
            "gain" if !model.actuators[i].is_motor() => {
                let name = &model.actuators[i].name;
                return refused(
                    format!("\"{name}\" is no motor: gain(...) is that of motors alone"),
                    "kp(...) and kd(...) are the gains of position actuators",
                );
            }
            "strength" if !model.actuators[i].is_servo() && !model.actuators[i].is_motor() => {
                let Actuator { name, element, .. } = &model.actuators[i];
                return refused(
                    format!("\"{name}\" is a <{element}>: its force cannot be scaled"),
                    "motors and position actuators have a strength",
                );
            }
            "joint_offset" if !model.joints[i].is_scalar() => {
                let name = &model.joints[i].name;
                return refused(
                    format!("\"{name}\" is a ball or free joint and has no offset"),
                    "name hinge and slide joints",
                );
            }
            _ if q.kind == "body" && model.bodies[i].weld == 0 => {
                let name = &model.bodies[i].name;
                return refused(
                    format!("body \"{name}\" does not move: its {} changes nothing", q.name),
                    "name bodies with joints, or such that are fixed to them",
                );
            }
            "vel" if free_joint(model, i).is_none() => {
                let name = &model.bodies[i].name;
                return refused(
                    format!("body \"{name}\" has no free joint to be pushed at"),
                    "name a body with a free joint, or apply a force(BODY)",
                );
            }
            _ => {}
        }
    }
    Ok(())
}
