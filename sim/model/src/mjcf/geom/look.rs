//! Appearance of geoms that are only seen.

use super::{Assets, Compiler, GeomSpec, Shape};
use crate::Model;
use crate::looks::{Look, LookKind, Looks};
use crate::mjcf::element::{Element, Read};
use crate::rotation::Pose;

impl GeomSpec {
    /// A shape that is only seen, in its body's frame.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn look(
        &self,
        e: &Element,
        frame: Pose,
        compiler: &Compiler,
        assets: &mut Assets,
        looks: &mut Looks,
        model: &mut Model,
        body: usize,
    ) -> Read<Look> {
        let at = |attr: &str| e.attr(attr).map_or(e.at, |a| a.value_at(0));
        let (kind, pose, size) = match (self.shape, &self.mesh, &self.hfield) {
            (Shape::Mesh, Some(name), None) => {
                let known = looks.surfaces.iter().position(|s| s.name == *name);
                let index = match known {
                    Some(index) => index,
                    None => {
                        let surface = assets.triangles(name, at("mesh"))?;
                        looks.surfaces.push(surface);
                        looks.surfaces.len() - 1
                    }
                };
                let pose = self.pose.resolve(compiler, e)?;
                (LookKind::Surface(index), pose, [0.0; 3])
            }
            (Shape::HeightField, None, Some(name)) => {
                let index = assets.hfield(name, at("hfield"), &mut looks.hfields)?;
                let pose = self.pose.resolve(compiler, e)?;
                (LookKind::HField(index), pose, [0.0; 3])
            }
            _ => {
                let form = self.form(e, compiler, assets, model)?;
                (LookKind::Primitive(form.kind), form.pose, form.size)
            }
        };
        let pose = frame.then(pose);
        Ok(Look {
            name: self.shown_name(e),
            kind,
            body,
            pos: pose.pos,
            quat: pose.quat,
            size,
            group: self.group,
            rgba: self.rgba.map(|c| c as f32),
            paint: None,
        })
    }

    /// Name of a shape without a place in the model.
    pub(crate) fn shown_name(&self, e: &Element) -> String {
        let name = e.text("name").or(self.mesh.as_deref());
        name.or(self.hfield.as_deref()).unwrap_or("geom").to_string()
    }
}
