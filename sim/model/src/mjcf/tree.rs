//! `<worldbody>`: the tree of bodies, flattened parents first.

use super::asset::Assets;
use super::compiler::FromGeoms;
use super::defaults::Classes;
use super::derive::SpringDamper;
use super::element::{At, Element, Fault, Note, Read};
use super::inertia::combine;
use super::material::Materials;
use super::names::Names;
use super::pose::PoseSpec;
use super::settings::Settings;
use super::unfelt::VisualGeoms;
use super::value::{BOOL, Keywords};
use crate::rotation::Pose;
use crate::{Body, Model};
use std::collections::{BTreeMap, BTreeSet};

/// `fuse.rs` reads it again.
/// Of what is done unless it is switched off.
const FUSE: Keywords<bool> = &[("auto", true), ("false", false)];

/// Context of the tree's elements, and where they go.
pub(super) struct TreeReader<'a, 'b> {
    pub settings: &'a Settings,
    pub classes: &'a Classes,
    pub materials: &'a Materials,
    pub assets: &'a mut Assets<'b>,
    /// Geoms that others refer to by name: they stay whatever they are.
    pub needed: &'a BTreeSet<&'b str>,
    pub model: &'a mut Model,
    pub names: &'a mut Names,
    /// Geoms that the model leaves out.
    pub unfelt: &'a mut VisualGeoms,
    pub notes: &'a mut Vec<Note>,
    /// Places in qpos of free joints whose bodies have children and ask for alignment.
    pub with_children: &'a mut Vec<usize>,
    /// Where each body stands, for later checks.
    pub places: &'a mut Vec<At>,
    /// Joints whose spring and damper follow from the robot's inertia.
    pub spring_dampers: &'a mut Vec<SpringDamper>,
    /// Each joint's range as the file gives it, which need not be a limit.
    pub ranges: &'a mut Vec<[f64; 2]>,
    /// Joints that keyframes of attached models know.
    pub slots: &'a mut BTreeMap<u32, usize>,
}

/// An element of a body, with the frames around it resolved.
pub(super) struct Item<'a> {
    pub element: &'a Element,
    pub frame: Pose,
    pub class: &'a str,
}

impl TreeReader<'_, '_> {
    /// Reads one `<worldbody>`; the world is body 0.
    ///
    /// Geoms and sites of bodies stand in body order, so that a second
    /// `<worldbody>` with geoms of its own cannot be appended: `sections` are all.
    pub(crate) fn world(&mut self, sections: &[&Element]) -> Read<()> {
        let mut items = Vec::new();
        for section in sections {
            if let Some(attr) = section.attrs.first() {
                return Err(Fault::new(attr.at, "<worldbody> has no attributes"));
            }
            self.collect(section, Pose::IDENTITY, super::defaults::MAIN, &mut items)?;
        }
        self.body_content(0, &items)?;
        self.children(0, &items)
    }

    /// Everything directly in a body, through `<frame>`s, in file order.
    fn collect<'a>(
        &self,
        parent: &'a Element,
        frame: Pose,
        class: &'a str,
        items: &mut Vec<Item<'a>>,
    ) -> Read<()> {
        for element in &parent.children {
            if element.name == "frame" {
                let mut spec = PoseSpec::default();
                spec.read(element)?;
                let inner = frame.then(spec.resolve(self.settings.of(element.at), element)?);
                let class = self.childclass(element, class)?;
                self.collect(element, inner, class, items)?;
            } else {
                items.push(Item { element, frame, class });
            }
        }
        Ok(())
    }

    fn childclass<'a>(&self, e: &'a Element, around: &'a str) -> Read<&'a str> {
        match e.attr("childclass") {
            Some(attr) => {
                self.classes.get(&attr.value, attr.value_at(0))?;
                Ok(&attr.value)
            }
            None => Ok(around),
        }
    }

    fn children(&mut self, parent: usize, items: &[Item]) -> Read<()> {
        items.iter().filter(|i| i.element.name == "body").try_for_each(|i| self.body(i, parent))
    }

    fn body(&mut self, item: &Item, parent: usize) -> Read<()> {
        let e = item.element;
        let mut pose = PoseSpec::default();
        pose.read(e)?;
        let own = pose.resolve(self.settings.of(e.at), e)?;
        let pose = item.frame.then(own);
        let class = self.childclass(e, item.class)?;
        let id = self.model.bodies.len();
        let name = self.names.body.take(e, "body", id)?;
        let (mut mocap, mut gravcomp, mut simple, mut fuse) = (false, 0.0, true, true);
        e.keyword("mocap", BOOL, &mut mocap)?;
        e.scalar("gravcomp", &mut gravcomp)?;
        e.keyword("simple", FUSE, &mut simple)?;
        e.keyword("fuse", FUSE, &mut fuse)?;
        self.places.push(e.at);
        self.model.bodies.push(Body {
            name,
            parent,
            pos: pose.pos,
            quat: pose.quat,
            mass: 0.0,
            // MuJoCo's values for a body without mass; inverse weights depend on them.
            ipos: own.pos,
            iquat: own.quat,
            inertia: [0.0; 3],
            joints: 0..0,
            geoms: 0..0,
            mocap,
            gravcomp,
            simple,
            weld: self.model.bodies[parent].weld,
            more_seen: false,
        });
        let mut items = Vec::new();
        self.collect(e, Pose::IDENTITY, class, &mut items)?;
        self.body_content(id, &items)?;
        self.children(id, &items)
    }

    /// Joints, geoms, sites and inertia of one body.
    fn body_content(&mut self, id: usize, items: &[Item]) -> Read<()> {
        let first = self.model.joints.len();
        for item in items {
            match item.element.name.as_str() {
                "joint" | "freejoint" | "inertial" if id == 0 => {
                    let why = format!("the world cannot move: no <{}> here", item.element.name);
                    return Err(Fault::new(item.element.at, why));
                }
                "joint" | "freejoint" => self.joint(item, id)?,
                _ => {}
            }
        }
        let joints = first..self.model.joints.len();
        self.check_joints(id, joints.clone(), items)?;
        self.check_mocap(id, &joints)?;
        if !joints.is_empty() {
            self.model.bodies[id].weld = id;
        }
        self.model.bodies[id].joints = joints;

        let mut inertials = items.iter().filter(|i| i.element.name == "inertial");
        let explicit = inertials.next().map(|i| self.inertial(i)).transpose()?;
        if let Some(second) = inertials.next() {
            return Err(Fault::new(
                second.element.at,
                "a body has one <inertial>, this is the second",
            ));
        }
        let from_geoms = self.settings.of(self.place(id)).inertia_from_geoms;
        let infer = id > 0
            && (explicit.is_none() && from_geoms == FromGeoms::Auto
                || from_geoms == FromGeoms::Always);

        let first = self.model.geoms.len();
        let mut parts = Vec::new();
        for item in items.iter().filter(|i| i.element.name == "geom") {
            if let Some(part) = self.geom(item, id, infer)? {
                parts.push(part);
            }
        }
        self.model.bodies[id].geoms = first..self.model.geoms.len();
        for item in items.iter().filter(|i| i.element.name == "site") {
            let mut spec = self.classes.of(item.element, item.class)?.site.clone();
            spec.read(item.element)?;
            let number = self.model.sites.len();
            let name = self.names.site.take(item.element, "site", number)?;
            let compiler = self.settings.of(item.element.at);
            let site = spec.resolve(item.element, item.frame, compiler, name, id)?;
            self.model.sites.push(site);
        }

        let inferred = if infer {
            combine(&parts).map_err(|why| Fault::new(self.place(id), why))?
        } else {
            None
        };
        if let Some(found) = inferred.or(explicit) {
            let body = &mut self.model.bodies[id];
            body.mass = found.mass;
            body.inertia = found.moments;
            (body.ipos, body.iquat) = (found.frame.pos, found.frame.quat);
        }
        self.bound_inertia(id)?;
        self.align(id, items)
    }

    fn check_mocap(&self, id: usize, joints: &std::ops::Range<usize>) -> Read<()> {
        let body = &self.model.bodies[id];
        if body.mocap && (body.parent != 0 || !joints.is_empty()) {
            let why = format!(
                "mocap body \"{}\" must be directly in <worldbody> and have no joint",
                body.name
            );
            return Err(Fault::new(self.place(id), why));
        }
        Ok(())
    }

    pub(super) fn place(&self, body: usize) -> At {
        self.places[body]
    }
}
