//! Appearance of a robot beyond its physics: read for pictures alone.

use super::{Geom, GeomKind, HField, Mesh, Quat, Vec3};

/// Triangles as a file gives them, with the asset's scale.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Surface {
    /// Name of the mesh.
    pub name: String,
    /// Vertices (m).
    pub vertices: Vec<[f32; 3]>,
    /// Indices into `vertices`, counter-clockwise seen from outside where the file is
    /// right.
    pub faces: Vec<[u32; 3]>,
}

/// Shape of a [`Look`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LookKind {
    /// As a geom's; neither a mesh nor a height field.
    Primitive(GeomKind),
    /// [`Looks::surfaces`]`[i]`.
    Surface(usize),
    /// [`Looks::hfields`]`[i]`.
    HField(usize),
}

/// A shape that is only seen: [`Model::geoms`](super::Model::geoms) lacks it.
#[derive(Debug, Clone, PartialEq)]
pub struct Look {
    /// Name of the geom, or of its mesh.
    pub name: String,
    /// Shape.
    pub kind: LookKind,
    /// The body it is fixed to.
    pub body: usize,
    /// Position in the body's frame (m).
    pub pos: Vec3,
    /// Orientation in the body's frame.
    pub quat: Quat,
    /// A primitive's size (m), see [`GeomKind`].
    pub size: Vec3,
    /// Visualisation group.
    pub group: i32,
    /// Colour.
    pub rgba: [f32; 4],
}

/// A shape that should be seen and cannot be.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Missing {
    /// Name of the geom or of its mesh.
    pub name: String,
    /// The body it is fixed to.
    pub body: usize,
    /// The place in the model's file, and the mistake.
    pub why: String,
}

/// Looks of a robot beyond the shapes of its physics. [`Looks::default`] adds
/// nothing: meshes then look like their convex hulls.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Looks {
    /// Shapes that are only seen, in body order.
    pub shapes: Vec<Look>,
    /// Triangles of these shapes, as they stand in the shape's frame.
    pub surfaces: Vec<Surface>,
    /// Terrains of these shapes.
    pub hfields: Vec<HField>,
    /// Triangles of [`Model::meshes`](super::Model::meshes), as many, in the mesh's own
    /// frame.
    pub meshes: Vec<Surface>,
    /// Geoms that cannot be shown.
    pub missing: Vec<Missing>,
    /// The model was a URDF: its collision shapes are not drawn where it has visual shapes.
    pub urdf: bool,
}

impl Geom {
    /// True if it can touch anything by its collision bits.
    pub fn collides(&self) -> bool {
        self.contype != 0 || self.conaffinity != 0
    }
}

impl Mesh {
    /// The convex hull, which collides.
    pub fn hull(&self) -> Surface {
        Surface {
            name: self.name.clone(),
            vertices: self.vertices.clone(),
            faces: self.faces.clone(),
        }
    }
}
