//! Joints, geoms and inertia of one body.

use super::derive::SpringDamper;
use super::element::{Element, Fault, Note, Read};
use super::geom::{GeomSpec, Shape};
use super::inertia::{Inertia, given_axes};
use super::joint::JointSpec;
use super::material::MaterialSpec;
use super::pose::PoseSpec;
use super::tree::{Item, TreeReader};
use super::unfelt::VisualGeoms;
use super::value::{LIMITED, Limited};
use crate::looks::Look;
use crate::rotation::{IDENTITY, Pose};
use crate::{JointKind, Model};

impl TreeReader<'_, '_> {
    pub(super) fn joint(&mut self, item: &Item, body: usize) -> Read<()> {
        let e = item.element;
        let mut spec = if e.name == "freejoint" {
            JointSpec::free()
        } else {
            self.classes.of(e, item.class)?.joint.clone()
        };
        spec.read(e)?;
        if spec.kind() == JointKind::Free && self.model.bodies[body].parent != 0 {
            return Err(Fault::new(e.at, "a free joint belongs to a body directly in <worldbody>"));
        }
        let number = self.model.joints.len();
        let name = self.names.joint.take(e, "joint", number)?;
        if let Some([timeconst, dampratio]) = spec.springdamper() {
            self.spring_dampers.push(SpringDamper {
                joint: number,
                timeconst,
                dampratio,
                at: e.at,
            });
        }
        let mut joint = spec.resolve(e, item.frame, self.settings.of(e.at), name, body)?;
        self.ranges.push(spec.given_range(self.settings.of(e.at)));
        if let Some(slot) = e.slot {
            self.slots.insert(slot, number);
        }
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

    pub(super) fn check_joints(
        &self,
        id: usize,
        range: std::ops::Range<usize>,
        items: &[Item],
    ) -> Read<()> {
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
                return Err(Fault::new(at, "a body with a free joint has no other joint"));
            }
            if dofs > 6 {
                return Err(Fault::new(at, "a body has at most 6 degrees of freedom"));
            }
            if ball && matches!(joint.kind, JointKind::Ball | JointKind::Hinge) {
                return Err(Fault::new(at, "after a ball joint a body can only have slide joints"));
            }
            ball |= joint.kind == JointKind::Ball;
        }
        Ok(())
    }

    /// Adds the geom; its inertia, if it counts for the body.
    pub(super) fn geom(&mut self, item: &Item, body: usize, infer: bool) -> Read<Option<Inertia>> {
        let e = item.element;
        if e.discarded {
            self.glimpse(item, body);
            return Ok(None);
        }
        let mut spec = self.classes.of(e, item.class)?.geom.clone();
        spec.read(e)?;
        spec.inherit_material(self.assets);
        let [least, most] = self.settings.of(self.place(body)).inertia_groups;
        let counts = infer && (least..=most).contains(&spec.group);
        let named = e.text("name").is_some_and(|n| self.needed.contains(n));
        let compiler = self.settings.of(e.at);
        let discards = compiler.discard_visual;
        if !named && self.skips(&spec, counts) {
            let what = match e.text("name").or(e.text("mesh")) {
                Some(name) => format!("<geom> \"{name}\""),
                None => "<geom>".to_string(),
            };
            self.notes.push(Note {
                at: e.at,
                what,
                why: "a shape that is only seen: no collision, no mass",
            });
            self.model.bodies[body].more_seen |= !spec.is_unseen(self.materials);
            if !discards {
                self.unfelt.count(body, false);
            }
            self.show(item, &spec, body);
            return Ok(None);
        }
        if !named && discards && spec.is_only_seen() {
            // Its inertia is the body's nevertheless.
            let name = e.text("name").unwrap_or("geom").to_string();
            let (_, inertia) =
                spec.resolve(e, item.frame, compiler, self.assets, self.model, name.clone(), body)?;
            self.notes.push(Note {
                at: e.at,
                what: format!("<geom> \"{name}\""),
                why: "discardvisual: of a shape that does not collide its mass alone counts",
            });
            self.model.bodies[body].more_seen |= !spec.is_unseen(self.materials);
            self.show(item, &spec, body);
            return Ok(counts.then_some(inertia));
        }
        self.unfelt.count(body, true);
        let number = self.model.geoms.len();
        let name = self.names.geom.take(e, "geom", number)?;
        let (mut geom, inertia) = spec.resolve(
            e,
            item.frame,
            self.settings.of(e.at),
            self.assets,
            self.model,
            name,
            body,
        )?;
        geom.unseen = spec.is_unseen(self.materials);
        if let Some(material) = spec.colour_material() {
            match self.materials.get(material) {
                Some(material) => geom.rgba = material.colour(),
                // Without <asset> (as in walker2d_v5.xml) MuJoCo refuses; a colour
                // is not worth refusing a robot.
                None => self.notes.push(Note {
                    at: e.attr("material").map_or(e.at, |a| a.at),
                    what: format!("geom/material=\"{material}\""),
                    why: "no such material; the geom is drawn grey",
                }),
            }
        }
        if geom.kind == crate::GeomKind::Plane && self.model.bodies[body].weld != 0 {
            return Err(Fault::new(e.at, "a plane belongs to a body that cannot move"));
        }
        let paint = self.unfelt.paint(&spec, self.materials, self.assets);
        if let (Some(paint), Some(looks)) = (paint, &mut self.unfelt.looks) {
            looks.painted.insert(geom.name.clone(), paint);
        }
        self.model.geoms.push(geom);
        Ok(counts.then_some(inertia))
    }

    /// Keeps the look of a shape that the model leaves out, if pictures want it.
    fn show(&mut self, item: &Item, spec: &GeomSpec, body: usize) {
        let Some(looks) = &mut self.unfelt.looks else {
            return;
        };
        let e = item.element;
        let compiler = self.settings.of(e.at);
        let look = spec.look(e, item.frame, compiler, self.assets, looks, self.model, body);
        let material = spec.colour_material().and_then(|m| self.materials.get(m));
        let look = look.map(|look| Look {
            rgba: material.map_or(look.rgba, MaterialSpec::colour),
            paint: self.unfelt.paint(spec, self.materials, self.assets),
            ..look
        });
        self.unfelt.show(spec.shown_name(e), body, look);
    }

    /// The same of a shape that MuJoCo leaves out, whatever is wrong with it.
    fn glimpse(&mut self, item: &Item, body: usize) {
        if self.unfelt.looks.is_none() {
            return;
        }
        let e = item.element;
        let spec = self.classes.of(e, item.class).and_then(|class| {
            let mut spec = class.geom.clone();
            spec.read(e)?;
            spec.inherit_material(self.assets);
            Ok(spec)
        });
        match spec {
            Ok(spec) => self.show(item, &spec, body),
            Err(fault) => self.unfelt.show("geom".into(), body, Err(fault)),
        }
    }

    /// True for shapes from files that cannot be felt: their files are not read.
    fn skips(&self, spec: &GeomSpec, counts: bool) -> bool {
        let massless = spec.mass == Some(0.0) || spec.mass.is_none() && spec.density == 0.0;
        (spec.mesh.is_some() || !matches!(spec.shape, Shape::Primitive(_)))
            && (!counts || massless)
            && spec.is_only_seen()
    }

    pub(super) fn inertial(&self, item: &Item) -> Read<Inertia> {
        let e = item.element;
        e.required("pos")?;
        e.required("mass")?;
        let mut pose = PoseSpec::default();
        pose.read(e)?;
        let mut frame = pose.resolve(self.settings.of(e.at), e)?;
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
            let axes = given_axes(tensor, self.settings.of(e.at));
            (frame.quat, moments) = axes.map_err(|why| Fault::new(at, why))?;
        }
        Ok(Inertia { mass, frame: item.frame.then(frame), moments })
    }

    /// `<compiler>`'s least values, and impossible inertias.
    pub(super) fn bound_inertia(&mut self, id: usize) -> Read<()> {
        if id == 0 {
            return Ok(());
        }
        let at = self.place(id);
        let compiler = self.settings.of(at);
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
                     never less than the third; correct them, or task.balance_inertia = true \
                     (compiler/balanceinertia) makes them their mean",
                    body.name
                );
                return Err(Fault::new(at, why));
            }
        }
        Ok(())
    }

    /// Moves the frame of a free body without children onto its centre of mass and
    /// principal axes, if the file asks for it (`align`, `alignfree`).
    pub(super) fn align(&mut self, id: usize, items: &[Item]) -> Read<()> {
        let body = &self.model.bodies[id];
        let free = |i: &&Item| matches!(i.element.name.as_str(), "freejoint" | "joint");
        let Some(item) = items.iter().find(free) else {
            return Ok(());
        };
        let joints = &self.model.joints[body.joints.clone()];
        let childless = !items.iter().any(|i| i.element.name == "body");
        if joints.len() != 1 || joints[0].kind != JointKind::Free {
            return Ok(());
        }
        if !aligned(item.element, self.settings.of(self.place(id)).align_free)? {
            return Ok(());
        }
        match childless {
            true => align_frame(self.model, self.unfelt, id),
            // Once they are fused there may be none.
            false => self.with_children.push(joints[0].qpos_adr),
        }
        Ok(())
    }
}

/// Moves the frame of a free body onto its centre of mass and principal axes.
fn align_frame(model: &mut Model, unfelt: &mut VisualGeoms, id: usize) {
    let body = &mut model.bodies[id];
    let adr = model.joints[body.joints.start].qpos_adr;
    let inertial = Pose { pos: body.ipos, quat: body.iquat };
    let pose = Pose { pos: body.pos, quat: body.quat }.then(inertial);
    (body.pos, body.quat) = (pose.pos, pose.quat);
    (body.ipos, body.iquat) = ([0.0; 3], IDENTITY);
    model.qpos0[adr..adr + 3].copy_from_slice(&pose.pos);
    model.qpos0[adr + 3..adr + 7].copy_from_slice(&pose.quat);
    let inverse = inertial.inverse();
    let geoms = model.geoms.iter_mut().filter(|g| g.body == id).map(|g| (&mut g.pos, &mut g.quat));
    let sites = model.sites.iter_mut().filter(|s| s.body == id).map(|s| (&mut s.pos, &mut s.quat));
    for (pos, quat) in geoms.chain(sites) {
        let own = inverse.then(Pose { pos: *pos, quat: *quat });
        (*pos, *quat) = (own.pos, own.quat);
    }
    unfelt.place(id, |own| inverse.then(own));
}

/// The same for free bodies whose joints' places are given and that fusing left without children.
pub(super) fn align_fused(model: &mut Model, unfelt: &mut VisualGeoms, joints: &[usize]) {
    let of = |model: &Model, adr| model.joints.iter().find(|j| j.qpos_adr == adr).map(|j| j.body);
    for &adr in joints {
        match of(model, adr) {
            Some(id) if model.bodies.iter().all(|b| b.parent != id) => {
                align_frame(model, unfelt, id);
            }
            _ => {}
        }
    }
}

/// Whether a `<freejoint>` asks for alignment; `auto` follows the compiler.
fn aligned(e: &Element, auto: bool) -> Read<bool> {
    let mut align = Limited::Auto;
    e.keyword("align", LIMITED, &mut align)?;
    Ok(align == Limited::Yes || align == Limited::Auto && auto)
}
