//! `<equality>`.

use super::element::{Attr, Element, Fault, Read};
use super::joint::{SOLIMP, SOLREF};
use super::names::find;
use super::value::{BOOL, wrong};
use crate::rest::Rest;
use crate::rotation::{IDENTITY, conjugate, mul, normalized, rotate};
use crate::{Equality, EqualityKind, Model, Vec3};

/// Attributes of equality constraints in classes.
#[derive(Debug, Clone)]
pub(super) struct EqualitySpec {
    active: bool,
    solref: [f64; 2],
    solimp: [f64; 5],
}

impl Default for EqualitySpec {
    fn default() -> Self {
        Self { active: true, solref: SOLREF, solimp: SOLIMP }
    }
}

impl EqualitySpec {
    /// Overwrites the values that the element sets.
    pub(crate) fn read(&mut self, e: &Element) -> Read<()> {
        e.keyword("active", BOOL, &mut self.active)?;
        e.fill("solref", 1, &mut self.solref)?;
        e.fill("solimp", 1, &mut self.solimp)?;
        Ok(())
    }

    /// The constraint; `model` has all bodies, joints, sites and tendons, `rest` is
    /// its initial pose.
    pub(crate) fn resolve(
        &self,
        e: &Element,
        name: String,
        model: &Model,
        rest: &Rest,
    ) -> Read<Equality> {
        let kind = match e.name.as_str() {
            "connect" => connect(e, model, rest)?,
            "weld" => weld(e, model, rest)?,
            "joint" => {
                let names = || model.joints.iter().map(|j| j.name.as_str());
                let (joint1, joint2) = two(e, "joint", |a| find(a, "joint", names()))?;
                for (name, joint) in [("joint1", Some(joint1)), ("joint2", joint2)] {
                    if let (Some(joint), Some(attr)) = (joint, e.attr(name))
                        && !model.joints[joint].is_scalar()
                    {
                        return Err(wrong(attr, "is not a hinge or slide joint"));
                    }
                }
                EqualityKind::Joint { joint1, joint2, polycoef: polycoef(e)? }
            }
            _ => {
                let names = || model.tendons.iter().map(|t| t.name.as_str());
                let (tendon1, tendon2) = two(e, "tendon", |a| find(a, "tendon", names()))?;
                EqualityKind::Tendon { tendon1, tendon2, polycoef: polycoef(e)? }
            }
        };
        Ok(Equality { name, kind, active: self.active, solref: self.solref, solimp: self.solimp })
    }
}

fn polycoef(e: &Element) -> Read<[f64; 5]> {
    let mut polycoef = [0.0, 1.0, 0.0, 0.0, 0.0];
    e.fill("polycoef", 1, &mut polycoef)?;
    Ok(polycoef)
}

/// The elements `kind1` and, if it is there, `kind2`.
fn two(
    e: &Element,
    kind: &str,
    find: impl Fn(&Attr) -> Read<usize>,
) -> Read<(usize, Option<usize>)> {
    let first = format!("{kind}1");
    e.required(&first)?;
    let second = e.attr(&format!("{kind}2")).filter(|a| !a.value.is_empty());
    let first = e.attr(&first).ok_or_else(|| Fault::new(e.at, "missing attribute"))?;
    let (a, b) = (find(first)?, second.map(&find).transpose()?);
    match second {
        Some(attr) if b == Some(a) => Err(wrong(attr, "is also the first; a constraint has two")),
        _ => Ok((a, b)),
    }
}

/// The two sides of `<connect>` and `<weld>`.
enum Ends {
    Bodies(usize, usize),
    Sites(usize, usize),
}

fn ends(e: &Element, model: &Model, of_bodies: &[&str]) -> Read<Ends> {
    let Some(site) = e.attr("site1").or(e.attr("site2")) else {
        let names = || model.bodies.iter().map(|b| b.name.as_str());
        let (a, b) = two(e, "body", |attr| find(attr, "body", names()))?;
        if a == 0 && b.is_none() {
            let why = "holds the world to the world; name another body2";
            return Err(Fault::new(e.at, why));
        }
        return Ok(Ends::Bodies(a, b.unwrap_or(0)));
    };
    if let Some(other) = of_bodies.iter().find_map(|n| e.attr(n)) {
        let why = format!("{} and {} do not go together", site.name, other.name);
        return Err(Fault::new(other.at, why));
    }
    e.required("site2")?;
    let names = || model.sites.iter().map(|s| s.name.as_str());
    let (a, b) = two(e, "site", |attr| find(attr, "site", names()))?;
    Ok(Ends::Sites(a, b.unwrap_or(a)))
}

fn connect(e: &Element, model: &Model, rest: &Rest) -> Read<EqualityKind> {
    Ok(match ends(e, model, &["body1", "body2", "anchor"])? {
        Ends::Sites(a, b) => EqualityKind::Connect {
            body1: model.sites[a].body,
            body2: model.sites[b].body,
            anchor1: model.sites[a].pos,
            anchor2: model.sites[b].pos,
        },
        Ends::Bodies(body1, body2) => {
            e.required("anchor")?;
            let mut anchor1 = [0.0; 3];
            e.array("anchor", &mut anchor1)?;
            EqualityKind::Connect {
                body1,
                body2,
                anchor1,
                anchor2: elsewhere(rest, body1, anchor1, body2),
            }
        }
    })
}

fn weld(e: &Element, model: &Model, rest: &Rest) -> Read<EqualityKind> {
    let mut torquescale = 1.0;
    e.scalar("torquescale", &mut torquescale)?;
    Ok(match ends(e, model, &["body1", "body2", "anchor", "relpose"])? {
        Ends::Sites(a, b) => {
            let (a, b) = (&model.sites[a], &model.sites[b]);
            EqualityKind::Weld {
                body1: a.body,
                body2: b.body,
                anchor: b.pos,
                relpos: a.pos,
                relquat: mul(a.quat, conjugate(b.quat)),
                torquescale,
            }
        }
        Ends::Bodies(body1, body2) => {
            let mut anchor = [0.0; 3];
            e.array("anchor", &mut anchor)?;
            let mut relpose = [0.0; 7];
            e.array("relpose", &mut relpose)?;
            let [x, y, z, relquat @ ..] = relpose;
            let (mut relpos, mut relquat) = ([x, y, z], normalized(relquat));
            // Without an orientation the bodies stay as they are at the start.
            if relquat.is_none() {
                relpos = elsewhere(rest, body2, anchor, body1);
                let (one, two) = (rest.bodies[body1].quat, rest.bodies[body2].quat);
                relquat = normalized(mul(conjugate(one), two));
            }
            EqualityKind::Weld {
                body1,
                body2,
                anchor,
                relpos,
                relquat: relquat.unwrap_or(IDENTITY),
                torquescale,
            }
        }
    })
}

/// A point of body `a` in the frame of body `b`.
fn elsewhere(rest: &Rest, a: usize, point: Vec3, b: usize) -> Vec3 {
    let world = rest.bodies[a].point(point);
    let frame = rest.bodies[b];
    let arm = [0, 1, 2].map(|i| world[i] - frame.pos[i]);
    rotate(conjugate(frame.quat), arm)
}
