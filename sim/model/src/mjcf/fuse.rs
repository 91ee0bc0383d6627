//! `compiler/fusestatic`: bodies that cannot move relative to their parents become
//! part of them.

use super::element::{At, Element, Fault, Read};
use super::inertia::{Inertia, combine};
use super::unfelt::VisualGeoms;
use crate::rotation::Pose;
use crate::{Body, Model};
use std::collections::BTreeSet;

/// Names of bodies that contacts, constraints, sensors, actuators and skins refer to, and of those
/// that bear the sites of force and torque sensors, which measure what holds them: these stay, and
/// those whose own attributes say so.
fn needed(root: &Element, model: &Model) -> Read<BTreeSet<String>> {
    let inside = |section: &'static str| {
        let sections = root.children_named(section);
        sections.flat_map(|s| &s.children)
    };
    let bodies = |kind, name| {
        move |e: &Element| {
            let of_body = matches!(e.text(kind), Some("body" | "xbody"));
            e.text(name).filter(|_| of_body).map(str::to_string)
        }
    };
    let bearer = |e: &Element| {
        let holds = matches!(e.name.as_str(), "force" | "torque");
        let name = e.text("site").filter(|_| holds)?;
        let site = model.sites.iter().find(|s| s.name == name)?;
        Some(model.bodies[site.body].name.clone())
    };
    let named = |e: &Element, attr| e.text(attr).map(str::to_string);
    let joined = (["contact", "equality", "sensor"].into_iter().flat_map(inside))
        .flat_map(|e| [named(e, "body1"), named(e, "body2")]);
    let sensed = inside("sensor").flat_map(|e| {
        [
            named(e, "body"),
            bodies("objtype", "objname")(e),
            bodies("reftype", "refname")(e),
            bearer(e),
        ]
    });
    let skins = ["asset", "deformable"].into_iter().flat_map(inside);
    let skinned =
        skins.flat_map(|skin| skin.children_named("bone")).map(|bone| named(bone, "body"));
    let pulled = inside("actuator").map(|e| named(e, "body"));
    let mut all: BTreeSet<_> =
        joined.chain(sensed).chain(skinned).chain(pulled).flatten().collect();
    let mut below: Vec<_> = root.children_named("worldbody").collect();
    while let Some(e) = below.pop() {
        below.extend(&e.children);
        let apart = e.text("fuse") == Some("false")
            || e.text("mocap") == Some("true")
            || e.text("sleep").is_some_and(|t| t != "auto");
        if e.name == "body" && apart {
            let why = "a body that stays apart (fuse=\"false\", mocap or sleep) needs a name";
            all.insert(named(e, "name").ok_or_else(|| Fault::new(e.at, why))?);
        }
    }
    Ok(all)
}

/// Whether a body's mass would move otherwise as a part of its parent.
fn feels_otherwise(body: &Body, parent: &Body, model: &Model) -> bool {
    let medium = model.options.density > 0.0 || model.options.viscosity > 0.0;
    body.mass >= super::inertia::MIN_VALUE && (medium || body.gravcomp != parent.gravcomp)
        || medium && body.geoms.clone().any(|g| model.geoms[g].fluid.is_some())
}

fn frame(body: &Body) -> Pose {
    Pose { pos: body.pos, quat: body.quat }
}

fn inertia(body: &Body, around: Pose) -> Inertia {
    Inertia {
        mass: body.mass,
        frame: around.then(Pose { pos: body.ipos, quat: body.iquat }),
        moments: body.inertia,
    }
}

/// Fuses all bodies without joints, except those that others refer to; `places` are
/// the bodies' and shrink with them.
pub(super) fn fuse(
    model: &mut Model,
    root: &Element,
    places: &mut Vec<At>,
    unfelt: &mut VisualGeoms,
) -> Read<()> {
    let needed = needed(root, model)?;
    let count = model.bodies.len();
    // The body each becomes a part of, and its frame in that body's.
    let mut into: Vec<usize> = (0..count).collect();
    let mut shift = vec![Pose::IDENTITY; count];
    for b in 1..count {
        let old = model.bodies[b].parent;
        let (parent, pose) = (into[old], shift[old].then(frame(&model.bodies[b])));
        let body = &mut model.bodies[b];
        (body.parent, body.pos, body.quat) = (parent, pose.pos, pose.quat);
        if !body.joints.is_empty() || needed.contains(body.name.as_str()) {
            continue;
        }
        // What becomes a part of the world does not move.
        if parent != 0 && feels_otherwise(&model.bodies[b], &model.bodies[parent], model) {
            continue;
        }
        (into[b], shift[b]) = (parent, pose);
        let (mass, more_seen) = (model.bodies[b].mass, model.bodies[b].more_seen);
        model.bodies[parent].more_seen |= more_seen;
        if parent == 0 || mass < super::inertia::MIN_VALUE {
            continue;
        }
        let parts =
            [inertia(&model.bodies[parent], Pose::IDENTITY), inertia(&model.bodies[b], pose)];
        let whole = combine(&parts).map_err(|why| Fault::new(places[b], why))?;
        if let Some(whole) = whole {
            let parent = &mut model.bodies[parent];
            (parent.mass, parent.inertia) = (whole.mass, whole.moments);
            (parent.ipos, parent.iquat) = (whole.frame.pos, whole.frame.quat);
        }
    }

    let kept: Vec<usize> = (0..count).filter(|b| into[*b] == *b).collect();
    let mut number = vec![0; count];
    for (new, old) in kept.iter().enumerate() {
        number[*old] = new;
    }
    let target: Vec<usize> = into.iter().map(|b| number[*b]).collect();
    for geom in &mut model.geoms {
        let pose = shift[geom.body].then(Pose { pos: geom.pos, quat: geom.quat });
        (geom.pos, geom.quat) = (pose.pos, pose.quat);
        geom.body = target[geom.body];
    }
    for site in &mut model.sites {
        let pose = shift[site.body].then(Pose { pos: site.pos, quat: site.quat });
        (site.pos, site.quat) = (pose.pos, pose.quat);
        site.body = target[site.body];
    }
    unfelt.fuse(&shift, &target);
    // A body's own come first, then those of the bodies it took in, in their order.
    model.geoms.sort_by_key(|g| g.body);
    model.sites.sort_by_key(|s| s.body);
    for joint in &mut model.joints {
        joint.body = target[joint.body];
    }
    let mut bodies: Vec<Body> = kept.iter().map(|b| model.bodies[*b].clone()).collect();
    for b in 0..bodies.len() {
        let parent = number[bodies[b].parent];
        let weld = if b == 0 {
            0
        } else if bodies[b].joints.is_empty() {
            bodies[parent].weld
        } else {
            b
        };
        let first = model.geoms.partition_point(|g| g.body < b);
        let end = model.geoms.partition_point(|g| g.body <= b);
        let body = &mut bodies[b];
        (body.parent, body.weld, body.geoms) = (parent, weld, first..end);
    }
    model.bodies = bodies;
    *places = kept.iter().map(|b| places[*b]).collect();
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    /// Mocap bodies have no joints either, and move.
    #[test]
    fn a_mocap_body_stays_a_body() {
        let text = r#"<mujoco><compiler fusestatic="true"/><worldbody>
            <body name="m" mocap="true"><geom size="0.1"/></body>
            <body name="still"><geom size="0.1"/></body>
            <body name="a"><joint/><geom size="0.1"/></body></worldbody></mujoco>"#;
        let model = crate::mjcf::parse(Path::new("a.xml"), text.into()).unwrap();
        let names: Vec<_> = model.bodies.iter().map(|b| b.name.as_str()).collect();
        assert_eq!(names, ["world", "m", "a"]);
    }
}
