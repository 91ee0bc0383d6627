//! Joints of a URDF, and those that follow others.

use super::part::{attr, list_others, made, numbers, only, renamed};
use crate::mjcf::element::{Element, Fault, Note, Read};
use crate::rotation::{matrix, normalized, z_to};
use std::collections::BTreeMap;

/// The MJCF joints of a URDF joint.
pub(super) fn joints(e: &Element, body: &mut Element, notes: &mut Vec<Note>) -> Read<()> {
    let name = e.required("name")?;
    let kind = e.required("type")?;
    let mut axis = [1.0, 0.0, 0.0];
    if let Some(part) = only(e, "axis")? {
        part.required("xyz")?;
        part.array("xyz", &mut axis)?;
    }
    let (limit, dynamics) = (only(e, "limit")?, only(e, "dynamics")?);
    let known = ["axis", "limit", "dynamics", "origin", "parent", "child", "mimic"];
    list_others(e, &known, notes);
    let mut made_joints = Vec::new();
    let mut add = |suffix: &str, kind: &str, axis: Option<[f64; 3]>| {
        let mut joint = made("joint", e.at);
        joint.attrs.push(attr("name", &format!("{name}{suffix}"), e.at));
        joint.attrs.push(attr("type", kind, e.at));
        if let Some(axis) = axis {
            joint.attrs.push(attr("axis", &numbers(&axis), e.at));
        }
        made_joints.push(joint);
    };
    match kind {
        "revolute" | "continuous" => add("", "hinge", Some(axis)),
        "prismatic" => add("", "slide", Some(axis)),
        "fixed" => return Ok(()),
        "floating" => add("", "free", None),
        "spherical" => add("", "ball", None),
        "planar" => {
            let z = normalized(axis)
                .ok_or_else(|| Fault::new(e.at, "the axis has no direction (zero)"))?;
            let rows = matrix(z_to(z));
            add("_TX", "slide", Some([rows[0][0], rows[1][0], rows[2][0]]));
            add("_TY", "slide", Some([rows[0][1], rows[1][1], rows[2][1]]));
            add("_RZ", "hinge", Some(axis));
        }
        _ => {
            let why = format!(
                "joint type \"{kind}\" is not one of revolute, continuous, prismatic, fixed, \
                 floating, planar, spherical"
            );
            return Err(Fault::new(e.at, why));
        }
    }
    if let Some(dynamics) = dynamics {
        for joint in &mut made_joints {
            for (theirs, ours) in [("damping", "damping"), ("friction", "frictionloss")] {
                joint.attrs.extend(dynamics.attr(theirs).map(|a| renamed(a, ours)));
            }
        }
    }
    if limit.is_none() && matches!(kind, "revolute" | "prismatic") {
        notes.push(Note {
            at: e.at,
            what: format!("<joint type=\"{kind}\">"),
            why: "it has no <limit>: the joint has no end, as in MuJoCo",
        });
    }
    if let (Some(limit), Some(first)) = (limit, made_joints.first_mut()) {
        let (mut range, mut effort) = ([0.0; 2], 0.0);
        let lower = limit.end("lower", &mut range[0])?;
        let upper = limit.end("upper", &mut range[1])?;
        limit.end("effort", &mut effort)?;
        if kind == "continuous" {
            if lower || upper {
                notes.push(Note {
                    at: limit.at,
                    what: "limit".into(),
                    why: "a continuous joint has no ends: lower and upper are not used, as in \
                          MuJoCo; write type=\"revolute\" for a joint that ends there",
                });
            }
            first.attrs.push(attr("limited", "false", limit.at));
        } else {
            first.attrs.push(attr("range", &numbers(&range), limit.at));
        }
        if kind != "continuous" && (lower != upper || range[0] >= range[1]) {
            if lower || upper || matches!(kind, "revolute" | "prismatic") {
                notes.push(Note {
                    at: limit.at,
                    what: "limit".into(),
                    why: "lower is not below upper, or one is missing: the joint has no limit, as \
                          in MuJoCo",
                });
            }
            first.attrs.push(attr("limited", "false", limit.at));
        }
        let effort = f64::abs(effort);
        if effort > 0.0 && !matches!(kind, "floating" | "spherical") {
            let range = numbers(&[-effort, effort]);
            first.attrs.push(attr("actuatorfrcrange", &range, limit.at));
        }
        if let Some(velocity) = limit.attr("velocity") {
            notes.push(Note {
                at: velocity.at,
                what: "limit/velocity".into(),
                why: "MuJoCo does not limit speeds",
            });
        }
    }
    body.children.extend(made_joints);
    Ok(())
}

/// `<equality>` with the joints that follow others: position = multiplier * other + offset.
pub(super) fn mimics(root: &Element, notes: &mut Vec<Note>) -> Read<Option<Element>> {
    let mut all = made("equality", root.at);
    let joints = root.children_named("joint");
    let kinds: BTreeMap<_, _> =
        joints.filter_map(|j| Some((j.text("name")?, j.text("type")))).collect();
    let scalar = ["revolute", "continuous", "prismatic"];
    let turns = |kind: Option<&str>| kind.is_some_and(|k| scalar.contains(&k));
    let mut leaders = BTreeMap::new();
    for joint in root.children_named("joint") {
        let Some(mimic) = only(joint, "mimic")? else {
            continue;
        };
        let (mut multiplier, mut offset) = (1.0, 0.0);
        mimic.scalar("multiplier", &mut multiplier)?;
        mimic.scalar("offset", &mut offset)?;
        let other = mimic.required("joint")?;
        let Some(kind) = kinds.get(other) else {
            notes.push(Note {
                at: mimic.at,
                what: format!("<mimic> of \"{other}\""),
                why: "there is no such joint: its joint follows nothing, as in MuJoCo",
            });
            continue;
        };
        if !turns(joint.text("type")) {
            notes.push(Note {
                at: mimic.at,
                what: "<mimic>".into(),
                why: "its joint is not revolute, continuous or prismatic: it follows nothing, as \
                      in MuJoCo",
            });
            continue;
        }
        if !turns(*kind) {
            notes.push(Note {
                at: mimic.at,
                what: format!("<mimic> of \"{other}\""),
                why: "that is not revolute, continuous or prismatic: nothing follows it, as in \
                      MuJoCo",
            });
            continue;
        }
        let follower = joint.required("name")?;
        leaders.insert(follower, (other, mimic.at));
        let mut equality = made("joint", mimic.at);
        equality.attrs.push(attr("joint1", follower, mimic.at));
        equality.attrs.push(attr("joint2", other, mimic.at));
        let coefficients = numbers(&[offset, multiplier, 0.0, 0.0, 0.0]);
        equality.attrs.push(attr("polycoef", &coefficients, mimic.at));
        all.children.push(equality);
    }
    let mut seen = BTreeMap::new();
    for &start in leaders.keys() {
        let mut joint = start;
        while let Some((leader, at)) = leaders.get(joint) {
            match seen.insert(joint, start) {
                Some(walk) if walk == start => {
                    let why = format!(
                        "<mimic>: joint \"{joint}\" follows itself, by way of \"{leader}\""
                    );
                    return Err(Fault::new(*at, why));
                }
                Some(_) => break,
                None => joint = leader,
            }
        }
    }
    Ok((!all.children.is_empty()).then_some(all))
}
