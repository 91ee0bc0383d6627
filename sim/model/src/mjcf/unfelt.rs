//! Shapes that are only seen. The model leaves them out; they are counted, because
//! MuJoCo counts them, and their looks are kept where pictures are wanted.

use super::asset::Assets;
use super::element::Fault;
use super::geom::GeomSpec;
use super::material::Materials;
use super::source::Sources;
use crate::looks::{Look, Looks, Missing, Paint, Plain};
use crate::rotation::Pose;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Geoms that [`Model::geoms`](crate::Model::geoms) lacks.
pub(super) struct VisualGeoms {
    /// All geoms in MuJoCo's order: the body of each, and whether the model has it.
    order: Vec<(usize, bool)>,
    /// Their appearance, if that is wanted.
    pub looks: Option<Looks>,
    /// Faults of those that cannot be shown: their names, bodies and faults.
    faults: Vec<(String, usize, Fault)>,
    /// What cannot be painted: names of materials, textures, meshes, and their faults.
    plain: BTreeMap<String, Rc<Fault>>,
}

impl VisualGeoms {
    /// None so far; `looks` takes their looks, if wanted.
    pub(crate) fn new(looks: Option<Looks>) -> Self {
        Self { order: Vec::new(), looks, faults: Vec::new(), plain: BTreeMap::new() }
    }

    /// Counts a geom of `body`.
    pub(crate) fn count(&mut self, body: usize, kept: bool) {
        self.order.push((body, kept));
    }

    /// Adds the look of a shape, or why it is not known.
    pub(crate) fn show(&mut self, name: String, body: usize, look: Result<Look, Fault>) {
        match (&mut self.looks, look) {
            (Some(looks), Ok(look)) => looks.shapes.push(look),
            (Some(_), Err(fault)) => self.faults.push((name, body, fault)),
            (None, _) => {}
        }
    }

    /// The texture of a geom, if it has one and pictures are wanted.
    pub(crate) fn paint(
        &mut self,
        spec: &GeomSpec,
        materials: &Materials,
        assets: &mut Assets,
    ) -> Option<Paint> {
        let looks = self.looks.as_mut()?;
        let name = spec.material()?;
        let material = materials.get(name)?;
        if let Some(fault) = &material.fault {
            self.plain.insert(name.to_string(), Rc::clone(fault));
        }
        let texture = material.texture.as_deref()?;
        if self.plain.contains_key(texture) {
            return None;
        }
        match assets.texture(texture, material.at, &mut looks.textures) {
            Ok(texture) => Some(Paint {
                texture,
                repeat: material.repeat.map(|r| r as f32),
                uniform: material.uniform,
            }),
            Err(fault) => {
                self.plain.insert(texture.to_string(), Rc::new(fault));
                None
            }
        }
    }

    /// The texture coordinates of a mesh are wrong.
    pub(crate) fn no_coordinates(&mut self, mesh: &str, fault: Fault) {
        self.plain.insert(mesh.to_string(), Rc::new(fault));
    }

    /// Gives all shapes of `body` another pose: `of` the one they had.
    pub(crate) fn place(&mut self, body: usize, of: impl Fn(Pose) -> Pose) {
        let shapes = self.looks.iter_mut().flat_map(|l| &mut l.shapes);
        for look in shapes.filter(|l| l.body == body) {
            let pose = of(Pose { pos: look.pos, quat: look.quat });
            (look.pos, look.quat) = (pose.pos, pose.quat);
        }
    }

    /// Bodies became parts of others: `shift` are their frames in those, `target` their
    /// numbers.
    pub(crate) fn fuse(&mut self, shift: &[Pose], target: &[usize]) {
        for (body, _) in &mut self.order {
            *body = target[*body];
        }
        self.order.sort_by_key(|(body, _)| *body);
        for (body, pose) in shift.iter().enumerate() {
            self.place(body, |own| pose.then(own));
        }
        let shapes = self.looks.iter_mut().flat_map(|l| &mut l.shapes);
        for look in shapes {
            look.body = target[look.body];
        }
        for (_, body, _) in &mut self.faults {
            *body = target[*body];
        }
        if let Some(looks) = &mut self.looks {
            looks.shapes.sort_by_key(|l| l.body);
        }
    }

    /// Numbers that MuJoCo gives the geoms that the model lacks.
    pub(crate) fn numbers(&self) -> Vec<usize> {
        let all = self.order.iter().enumerate();
        all.filter(|(_, (_, kept))| !kept).map(|(i, _)| i).collect()
    }

    /// Visible geoms, with the places of faults.
    pub(crate) fn looks(self, sources: &Sources) -> Option<Looks> {
        let mut looks = self.looks?;
        let missing = self.faults.into_iter().map(|(name, body, fault)| Missing {
            name,
            body,
            why: format!("{}: {}", sources.short_place(fault.at), fault.message),
        });
        looks.missing.extend(missing);
        let plain = self.plain.into_iter().map(|(name, fault)| Plain {
            name,
            why: format!("{}: {}", sources.short_place(fault.at), fault.message),
        });
        looks.plain.extend(plain);
        Some(looks)
    }
}
