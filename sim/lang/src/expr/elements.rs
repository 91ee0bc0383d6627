//! Names of the model's elements: patterns, lists, and suggestions when a name does not fit.

use super::element::{Element, ElementKind};
use super::error::ExprError;
use super::signature::Kind;
use ostler_base::names::{self, matches};
use ostler_model::{JointKind, Model};
use std::ops::Range;

/// The geoms of a geom, a body or a subtree, ascending.
pub(super) fn geoms_of(model: &Model, e: Element) -> Vec<usize> {
    match e.kind {
        ElementKind::Geom => vec![e.index],
        ElementKind::Body => model.bodies[e.index].geoms.clone().collect(),
        ElementKind::Subtree => {
            let mut inside = vec![false; model.bodies.len()];
            let mut geoms = Vec::new();
            // Parents come first.
            for (b, body) in model.bodies.iter().enumerate() {
                inside[b] = b == e.index || b > 0 && inside[body.parent];
                if inside[b] {
                    geoms.extend(body.geoms.clone());
                }
            }
            geoms.sort_unstable();
            geoms
        }
        _ => Vec::new(),
    }
}

/// Kinds of elements with this name, the usual meaning first.
pub(crate) fn kind_of(model: &Model, name: &str) -> Option<ElementKind> {
    ElementKind::ALL.into_iter().find(|k| k.names(model).contains(&name))
}

fn usable(model: &Model, e: Element) -> bool {
    e.kind != ElementKind::Joint
        || matches!(model.joints[e.index].kind, JointKind::Hinge | JointKind::Slide)
}

/// All elements that `text` (a name, or a pattern with `*`) means for `function`.
/// A pattern means the first kind that it fits, in the model's order, without the
/// world, free and ball joints.
pub(crate) fn resolve(
    model: &Model,
    text: &str,
    kind: Kind,
    function: &str,
    span: Range<usize>,
) -> Result<Vec<Element>, ExprError> {
    let pattern = text.contains('*');
    for &kind in kind.elements() {
        let found: Vec<Element> = kind
            .names(model)
            .iter()
            .enumerate()
            .filter(|(i, name)| {
                matches(text, name) && !(pattern && kind == ElementKind::Body && *i == 0)
            })
            .map(|(index, _)| Element { kind, index })
            .filter(|&e| !pattern || usable(model, e))
            .collect();
        match found.first() {
            None => {}
            Some(&e) if usable(model, e) => {
                // Two elements of one name cannot be told apart; the first counts.
                return Ok(if pattern { found } else { vec![e] });
            }
            Some(&e) => {
                let joint = &model.joints[e.index];
                let body = &model.bodies[joint.body].name;
                let word = if joint.kind == JointKind::Free { "free" } else { "ball" };
                return Err(ExprError::new(
                    span,
                    format!(
                        "`{function}` takes hinge and slide joints, \"{text}\" is a {word} joint"
                    ),
                )
                .help(format!(
                    "its body has pos({body}), quat({body}), lin_vel({body}), ang_vel({body})"
                )));
            }
        }
    }
    Err(unknown(model, text, kind, function, span))
}

fn unknown(model: &Model, text: &str, kind: Kind, function: &str, span: Range<usize>) -> ExprError {
    let noun = kind.noun();
    if let Some(other) = kind_of(model, text) {
        let article = if other == ElementKind::Actuator { "an" } else { "a" };
        let error = ExprError::new(
            span,
            format!(
                "`{function}` takes {} {noun}, \"{text}\" is {article} {}",
                if kind == Kind::Actuator { "an" } else { "a" },
                other.noun()
            ),
        );
        return match meant(model, text, other, kind) {
            Some(help) => error.help(help),
            None => error,
        };
    }
    let names: Vec<&str> = kind.elements().iter().flat_map(|k| k.names(model)).collect();
    let what = if text.contains('*') {
        format!("no {noun} fits the pattern \"{text}\"")
    } else {
        format!("no {noun} called \"{text}\"")
    };
    let error = ExprError::new(span, what);
    if let Some(help) = names::meant(text, names.iter().copied()) {
        return error.help(help);
    }
    match names.len() {
        0 => error.help(format!("the model \"{}\" has none", model.name)),
        n if n <= 16 => error.help(format!("the model has: {}", names.join(", "))),
        n => error.help(format!("the model has {n}: {}, ...", names[..16].join(", "))),
    }
}

/// A related element of the kind that is wanted.
fn meant(model: &Model, text: &str, other: ElementKind, kind: Kind) -> Option<String> {
    let index = other.names(model).iter().position(|n| *n == text)?;
    let body = match other {
        ElementKind::Joint => model.joints[index].body,
        ElementKind::Geom => model.geoms[index].body,
        ElementKind::Site => model.sites[index].body,
        ElementKind::Actuator => {
            let joint = &model.joints[model.actuators[index].joint()?].name;
            return (kind == Kind::Joint).then(|| format!("it drives the joint \"{joint}\""));
        }
        ElementKind::Sensor => return None,
        ElementKind::Body | ElementKind::Subtree => {
            let joints = &model.joints[model.bodies[index].joints.clone()];
            return match (kind, joints) {
                (Kind::Joint, [joint]) => Some(format!("it moves by the joint \"{}\"", joint.name)),
                _ => None,
            };
        }
    };
    let wants_body = kind.elements().contains(&ElementKind::Body);
    let body = &model.bodies[body].name;
    wants_body.then(|| match other {
        ElementKind::Joint => {
            format!("it moves the body \"{body}\"; the joint's own speed is joint_vel({text})")
        }
        _ => format!("it belongs to the body \"{body}\""),
    })
}
