//! `<worldbody>`: the tree of bodies, flattened parents first.

use super::compiler::{Compiler, FromGeoms};
use super::defaults::Classes;
use super::geom::{GeomSpec, Shape};
use super::inertia::{Inertia, combine, principal_axes};
use super::joint::JointSpec;
use super::pose::PoseSpec;
use super::source::{At, Element, Fault, Read};
use super::{Names, Note};
use crate::model::rotation::{IDENTITY, Pose};
use crate::model::{Body, JointKind, Model};
use std::collections::BTreeMap;

/// What the tree's elements need to be understood, and where they go.
pub(super) struct TreeReader<'a> {
    pub compiler: &'a Compiler,
    pub classes: &'a Classes,
    /// Colours of materials.
    pub materials: &'a BTreeMap<String, [f32; 4]>,
    pub model: &'a mut Model,
    pub names: &'a mut Names,
    pub notes: &'a mut Vec<Note>,
    /// Where each body stands, for later checks.
    pub places: &'a mut Vec<At>,
}

/// An element of a body, with the frames around it resolved.
struct Item<'a> {
    element: &'a Element,
    frame: Pose,
    class: &'a str,
    in_frame: bool,
}

impl TreeReader<'_> {
    /// Reads one `<worldbody>`; the world is body 0.
    ///
    /// Geoms and sites of bodies stand in body order, so that a second
    /// `<worldbody>` with geoms of its own cannot be appended: `sections` are all.
    pub fn world(&mut self, sections: &[&Element]) -> Read<()> {
        let mut items = Vec::new();
        for section in sections {
            if let Some(attr) = section.attrs.first() {
                return Err(Fault::new(attr.at, "<worldbody> has no attributes"));
            }
            self.collect(
                section,
                Pose::IDENTITY,
                super::defaults::MAIN,
                false,
                &mut items,
            )?;
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
        in_frame: bool,
        items: &mut Vec<Item<'a>>,
    ) -> Read<()> {
        for element in &parent.children {
            if element.name == "frame" {
                let mut spec = PoseSpec::default();
                spec.read(element)?;
                let inner = frame.then(spec.resolve(self.compiler, element)?);
                let class = self.childclass(element, class)?;
                self.collect(element, inner, class, true, items)?;
            } else {
                items.push(Item {
                    element,
                    frame,
                    class,
                    in_frame,
                });
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
        items
            .iter()
            .filter(|i| i.element.name == "body")
            .try_for_each(|i| self.body(i, parent))
    }

    fn body(&mut self, item: &Item, parent: usize) -> Read<()> {
        let e = item.element;
        let mut pose = PoseSpec::default();
        pose.read(e)?;
        let pose = item.frame.then(pose.resolve(self.compiler, e)?);
        let class = self.childclass(e, item.class)?;
        let id = self.model.bodies.len();
        let name = self.names.body.take(e, "body", id)?;
        self.places.push(e.at);
        self.model.bodies.push(Body {
            name,
            parent,
            pos: pose.pos,
            quat: pose.quat,
            mass: 0.0,
            ipos: [0.0; 3],
            iquat: IDENTITY,
            inertia: [0.0; 3],
            joints: 0..0,
            geoms: 0..0,
            weld: self.model.bodies[parent].weld,
        });
        let mut items = Vec::new();
        self.collect(e, Pose::IDENTITY, class, false, &mut items)?;
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
        let infer = id > 0
            && (explicit.is_none() && self.compiler.inertia_from_geoms == FromGeoms::Auto
                || self.compiler.inertia_from_geoms == FromGeoms::Always);

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
            let site = spec.resolve(item.element, item.frame, self.compiler, name, id)?;
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
        self.bound_inertia(id)
    }

    fn joint(&mut self, item: &Item, body: usize) -> Read<()> {
        let e = item.element;
        let mut spec = if e.name == "freejoint" {
            JointSpec::free()
        } else {
            self.classes.of(e, item.class)?.joint.clone()
        };
        spec.read(e)?;
        if spec.kind() == JointKind::Free && self.model.bodies[body].parent != 0 {
            return Err(Fault::new(
                e.at,
                "a free joint belongs to a body directly in <worldbody>",
            ));
        }
        let number = self.model.joints.len();
        let name = self.names.joint.take(e, "joint", number)?;
        let mut joint = spec.resolve(e, item.frame, self.compiler, name, body)?;
        joint.qpos_adr = self.model.nq;
        joint.dof_adr = self.model.nv;
        self.model.nq += joint.kind.nq();
        self.model.nv += joint.kind.nv();
        match joint.kind {
            JointKind::Free => {
                let b = &self.model.bodies[body];
                self.model.qpos0.extend(b.pos.iter().chain(&b.quat));
            }
            JointKind::Ball => self.model.qpos0.extend(IDENTITY),
            JointKind::Slide | JointKind::Hinge => self.model.qpos0.push(joint.reference),
        }
        self.model.joints.push(joint);
        Ok(())
    }

    fn check_joints(&self, id: usize, range: std::ops::Range<usize>, items: &[Item]) -> Read<()> {
        let joints = &self.model.joints[range];
        let mut places = items
            .iter()
            .map(|i| i.element)
            .filter(|e| e.name == "joint" || e.name == "freejoint")
            .map(|e| e.at);
        let mut ball = false;
        let mut dofs = 0;
        for joint in joints {
            let at = places.next().unwrap_or(self.place(id));
            dofs += joint.kind.nv();
            if joint.kind == JointKind::Free && joints.len() > 1 {
                return Err(Fault::new(
                    at,
                    "a body with a free joint has no other joint",
                ));
            }
            if dofs > 6 {
                return Err(Fault::new(at, "a body has at most 6 degrees of freedom"));
            }
            if ball && matches!(joint.kind, JointKind::Ball | JointKind::Hinge) {
                return Err(Fault::new(
                    at,
                    "after a ball joint a body can only have slide joints",
                ));
            }
            ball |= joint.kind == JointKind::Ball;
        }
        Ok(())
    }

    /// Adds the geom; its inertia, if it counts for the body.
    fn geom(&mut self, item: &Item, body: usize, infer: bool) -> Read<Option<Inertia>> {
        let e = item.element;
        let mut spec = self.classes.of(e, item.class)?.geom.clone();
        spec.read(e)?;
        let [least, most] = self.compiler.inertia_groups;
        let counts = infer && (least..=most).contains(&spec.group);
        if self.skips(&spec, counts) {
            let what = match e.text("name").or(e.text("mesh")) {
                Some(name) => format!("<geom> \"{name}\""),
                None => "<geom>".to_string(),
            };
            self.notes.push(Note {
                at: e.at,
                what,
                why: "a shape that is only seen: no collision, no mass",
            });
            return Ok(None);
        }
        let number = self.model.geoms.len();
        let name = self.names.geom.take(e, "geom", number)?;
        let (mut geom, inertia) = spec.resolve(e, item.frame, self.compiler, name, body)?;
        if let Some(material) = spec.material() {
            match self.materials.get(material) {
                Some(colour) => geom.rgba = *colour,
                // Without <asset> (as in walker2d_v5.xml) MuJoCo refuses; a colour
                // is not worth refusing a robot.
                None => self.notes.push(Note {
                    at: e.attr("material").map_or(e.at, |a| a.at),
                    what: format!("geom/material=\"{material}\""),
                    why: "no such material; the geom is drawn grey",
                }),
            }
        }
        if geom.kind == crate::model::GeomKind::Plane && self.model.bodies[body].weld != 0 {
            return Err(Fault::new(
                e.at,
                "a plane belongs to a body that cannot move",
            ));
        }
        self.model.geoms.push(geom);
        Ok(counts.then_some(inertia))
    }

    /// True for shapes that are not supported and cannot be felt.
    fn skips(&self, spec: &GeomSpec, counts: bool) -> bool {
        let massless = spec.mass == Some(0.0) || spec.mass.is_none() && spec.density == 0.0;
        !matches!(spec.shape, Shape::Primitive(_))
            && spec.contype == 0
            && spec.conaffinity == 0
            && (!counts || massless)
    }

    fn inertial(&self, item: &Item) -> Read<Inertia> {
        let e = item.element;
        if item.in_frame {
            return Err(Fault::new(
                e.at,
                "put <inertial> into the body itself, not into a <frame>",
            ));
        }
        e.required("pos")?;
        e.required("mass")?;
        let mut pose = PoseSpec::default();
        pose.read(e)?;
        let mut frame = pose.resolve(self.compiler, e)?;
        let (mut mass, mut moments, mut full) = (0.0, [0.0; 3], [0.0; 6]);
        e.scalar("mass", &mut mass)?;
        e.array::<3>("diaginertia", &mut moments)?;
        if e.array("fullinertia", &mut full)? {
            if e.attr("quat").is_some() || pose.has_alternative() || e.attr("diaginertia").is_some()
            {
                return Err(Fault::new(
                    e.at,
                    "fullinertia already says the axes and moments; leave out orientation and \
                     diaginertia",
                ));
            }
            let [xx, yy, zz, xy, xz, yz] = full;
            let tensor = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]];
            let at = e.attr("fullinertia").map_or(e.at, |a| a.value_at(0));
            (frame.quat, moments) = principal_axes(tensor).map_err(|why| Fault::new(at, why))?;
        }
        Ok(Inertia {
            mass,
            frame,
            moments,
        })
    }

    /// `<compiler>`'s least values, and what no rigid body can have.
    fn bound_inertia(&mut self, id: usize) -> Read<()> {
        if id == 0 {
            return Ok(());
        }
        let at = self.place(id);
        let compiler = self.compiler;
        let body = &mut self.model.bodies[id];
        body.mass = body.mass.max(compiler.bound_mass);
        body.inertia = body.inertia.map(|i| i.max(compiler.bound_inertia));
        let sane = |x: f64| x.is_finite() && x >= 0.0;
        if !sane(body.mass) || !body.inertia.iter().all(|i| sane(*i)) {
            let why = format!(
                "body \"{}\" has mass {} kg and moments {:?} kg m^2; they cannot be negative",
                body.name, body.mass, body.inertia
            );
            return Err(Fault::new(at, why));
        }
        let [a, b, c] = body.inertia;
        if a + b < c || a + c < b || b + c < a {
            if compiler.balance_inertia {
                body.inertia = [(a + b + c) / 3.0; 3];
            } else {
                let why = format!(
                    "body \"{}\": moments {a}, {b}, {c} kg m^2 are impossible, the sum of two is \
                     never less than the third; correct them or set compiler/balanceinertia",
                    body.name
                );
                return Err(Fault::new(at, why));
            }
        }
        Ok(())
    }

    fn place(&self, body: usize) -> At {
        self.places[body]
    }
}
