//! Keyframes of attached models: each joint and actuator takes its part along.

use super::super::defaults::{Classes, MAIN};
use super::super::element::{Element, Fault, Read};
use super::super::joint::JointSpec;
use super::limits::Limits;
use super::whole::{Parts, Pending, Whole};

/// A joint's or actuator's slot, and how many numbers it has.
type Share = (u32, usize);

/// The shares of a model's state.
#[derive(Default)]
struct Shares {
    qpos: Vec<Share>,
    qvel: Vec<Share>,
    act: Vec<Share>,
    ctrl: Vec<Share>,
}

/// Keyframes that come with an attached model: its own, with names that start with `prefix`,
/// after those it got from models that it attaches, which keep their names.
pub(super) fn pending(model: &mut Whole, prefix: &str, limits: &mut Limits) -> Read<Vec<Pending>> {
    let mut pending = std::mem::take(&mut model.pending);
    let keys: Vec<Element> =
        model.root.children_named("keyframe").flat_map(|k| k.children.iter().cloned()).collect();
    if keys.is_empty() {
        return Ok(pending);
    }
    let mut shares = Shares::default();
    for section in &mut model.root.children {
        match section.name.as_str() {
            "worldbody" => shares.bodies(section, MAIN, &model.classes, limits)?,
            "actuator" => {
                for e in &mut section.children {
                    let slot = *e.slot.get_or_insert_with(|| limits.slot());
                    let mut spec = model.classes.of(e, MAIN)?.actuator.clone();
                    spec.read(e)?;
                    shares.act.push((slot, usize::from(spec.has_state())));
                    shares.ctrl.push((slot, 1));
                }
            }
            _ => {}
        }
    }
    for e in keys {
        for name in ["mpos", "mquat"] {
            if let Some(attr) = e.attr(name).filter(|a| !a.value.trim().is_empty()) {
                let why = format!("{name} is not supported in keyframes of attached models");
                return Err(Fault::new(attr.at, why));
            }
        }
        let mut key = Element::made("key", e.at);
        let name = format!("{prefix}{}", e.text("name").unwrap_or_default());
        key.set("name", &name);
        let grown = model.grown;
        pending.push(Pending {
            key,
            qpos: split(&e, "qpos", &shares.qpos, grown)?,
            qvel: split(&e, "qvel", &shares.qvel, grown)?,
            act: split(&e, "act", &shares.act, grown)?,
            ctrl: split(&e, "ctrl", &shares.ctrl, grown)?,
        });
    }
    Ok(pending)
}

impl Shares {
    /// Joints within `e`, in the order of the state: a body's own first.
    fn bodies(
        &mut self,
        e: &mut Element,
        class: &str,
        classes: &Classes,
        limits: &mut Limits,
    ) -> Read<()> {
        for child in &mut e.children {
            let inner = child.text("childclass").unwrap_or(class).to_string();
            match child.name.as_str() {
                "body" => {
                    self.joints(child, &inner, classes, limits)?;
                    self.bodies(child, &inner, classes, limits)?;
                }
                "frame" => self.bodies(child, &inner, classes, limits)?,
                _ => {}
            }
        }
        Ok(())
    }

    fn joints(
        &mut self,
        e: &mut Element,
        class: &str,
        classes: &Classes,
        limits: &mut Limits,
    ) -> Read<()> {
        for child in &mut e.children {
            let spec = match child.name.as_str() {
                "freejoint" => JointSpec::free(),
                "joint" => {
                    let mut spec = classes.of(child, class)?.joint.clone();
                    spec.read(child)?;
                    spec
                }
                "frame" => {
                    let inner = child.text("childclass").unwrap_or(class).to_string();
                    self.joints(child, &inner, classes, limits)?;
                    continue;
                }
                _ => continue,
            };
            let slot = *child.slot.get_or_insert_with(|| limits.slot());
            self.qpos.push((slot, spec.kind().nq()));
            self.qvel.push((slot, spec.kind().nv()));
        }
        Ok(())
    }
}

/// The numbers of an attribute, by purpose.
fn split(e: &Element, name: &str, shares: &[Share], grown: bool) -> Read<Parts> {
    let numbers = e.numbers(name)?.unwrap_or_default();
    let needed: usize = shares.iter().map(|(_, n)| n).sum();
    let (given, mut parts) = (numbers.len(), Parts::new());
    if given == 0 {
        return Ok(parts);
    }
    if given > needed || given < needed && !grown {
        let at = e.attr(name).map_or(e.at, |a| a.value_at(0));
        let why = format!("{name} has {given} numbers, this model needs {needed}");
        return Err(Fault::new(at, why));
    }
    let mut rest = numbers.as_slice();
    for (slot, n) in shares {
        let Some((part, others)) = rest.split_at_checked(*n) else {
            break;
        };
        parts.insert(*slot, part.to_vec());
        rest = others;
    }
    Ok(parts)
}

/// Lets the elements of a tree forget their slots: a keyframe knows the first copy.
pub(super) fn forget(e: &mut Element) {
    e.slot = None;
    e.children.iter_mut().for_each(forget);
}

/// True if a keyframe of an attached model sets a joint within `e`.
pub(super) fn known(e: &Element) -> bool {
    e.slot.is_some() || e.children.iter().any(known)
}
