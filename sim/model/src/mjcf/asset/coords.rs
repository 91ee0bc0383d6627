//! Texture coordinates of meshes, read for pictures alone: a mistake in them is none in the mesh.

use crate::mjcf::element::{Element, Fault, Read};

/// Texture coordinates as a file gives them, (0, 0) at a picture's upper left corner.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Coords {
    /// Each.
    pub points: Vec<[f32; 2]>,
    /// Indices of the faces' corners among them, as many as faces; empty: those of vertices.
    pub faces: Vec<[usize; 3]>,
    /// Why there are none.
    pub wrong: Option<String>,
}

impl Coords {
    /// Takes those of the element where the file has none. None are left where they are wrong.
    ///
    /// # Errors
    /// They are wrong.
    pub(crate) fn settle(&mut self, e: &Element, vertices: usize) -> Read<()> {
        let done = self.checked(e, vertices);
        if done.is_err() {
            *self = Self::default();
        }
        done
    }

    fn checked(&mut self, e: &Element, vertices: usize) -> Read<()> {
        let fault = |why: String| {
            let at = e.attr("texcoord").or(e.attr("file"));
            Fault::new(at.map_or(e.at, |a| a.value_at(0)), why)
        };
        if let Some(why) = self.wrong.take() {
            return Err(fault(why));
        }
        if let (true, Some(values)) = (self.points.is_empty(), e.numbers("texcoord")?) {
            let pairs = values.chunks_exact(2);
            if !pairs.remainder().is_empty() {
                return Err(fault("texcoord needs a multiple of two numbers".into()));
            }
            self.points = pairs.map(|p| [p[0] as f32, p[1] as f32]).collect();
            self.faces.clear();
        }
        let count = self.points.len();
        if self.faces.is_empty() && count != 0 && count != vertices {
            return Err(fault(format!(
                "{count} texture coordinates for {vertices} vertices; each has one"
            )));
        }
        if self.points.iter().flatten().any(|x| !x.is_finite()) {
            return Err(fault("a texture coordinate is not finite".into()));
        }
        Ok(())
    }
}
