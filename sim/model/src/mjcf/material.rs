//! `<material>`: a colour, and for pictures a texture.

use super::element::{At, Element, Fault, Read};
use super::value::BOOL;
use std::collections::BTreeMap;
use std::rc::Rc;

/// Attributes of a material.
#[derive(Debug, Clone)]
pub(super) struct MaterialSpec {
    pub rgba: [f64; 4],
    /// Name of the texture.
    pub texture: Option<String>,
    /// Where that stands.
    pub at: At,
    pub repeat: [f64; 2],
    pub uniform: bool,
    /// A mistake in what only pictures need.
    pub fault: Option<Rc<Fault>>,
}

impl Default for MaterialSpec {
    fn default() -> Self {
        Self {
            rgba: [1.0; 4],
            texture: None,
            at: At::START,
            repeat: [1.0; 2],
            uniform: false,
            fault: None,
        }
    }
}

/// Materials by name.
pub(super) type Materials = BTreeMap<String, MaterialSpec>;

impl MaterialSpec {
    /// Overwrites the values that the element sets.
    pub(crate) fn read(&mut self, e: &Element) -> Read<()> {
        e.array("rgba", &mut self.rgba)?;
        if let Err(fault) = self.texture(e) {
            self.fault = Some(Rc::new(fault));
        }
        Ok(())
    }

    fn texture(&mut self, e: &Element) -> Read<()> {
        let layer = |role| {
            let mut layers = e.children_named("layer");
            let of = layers.find(|l| l.text("role") == Some(role));
            of.and_then(|l| l.text("texture"))
        };
        let texture = e.text("texture").or_else(|| layer("rgb"));
        if let Some(name) = texture.or_else(|| layer("rgba")) {
            self.texture = Some(name.to_string());
            self.at = e.at;
        }
        e.array("texrepeat", &mut self.repeat)?;
        e.keyword("texuniform", BOOL, &mut self.uniform)
    }

    /// Puts `prefix` before the name of its texture.
    pub(crate) fn prefix_assets(&mut self, prefix: &str) {
        if let Some(name) = &mut self.texture {
            name.insert_str(0, prefix);
        }
    }

    /// The colour.
    pub(crate) fn colour(&self) -> [f32; 4] {
        self.rgba.map(|c| c as f32)
    }
}

/// The materials of `root`. `class`: what a material starts from.
pub(super) fn read(
    root: &Element,
    class: impl Fn(&Element) -> Read<MaterialSpec>,
) -> Read<Materials> {
    let mut all = Materials::new();
    for e in root.children_named("asset").flat_map(|a| a.children_named("material")) {
        // A class is not worth refusing a robot for that nothing but a colour comes from.
        let mut spec = class(e).unwrap_or_default();
        spec.read(e)?;
        if let Some(name) = e.text("name")
            && all.insert(name.to_string(), spec).is_some()
        {
            let why = format!("there are two <material> called \"{name}\"");
            return Err(Fault::new(e.at, why));
        }
    }
    Ok(all)
}
