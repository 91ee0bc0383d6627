//! Appearance of a robot beyond its physics: read for pictures alone.

use super::{Geom, GeomKind, HField, Mesh, Quat, Vec3};
use std::collections::BTreeMap;

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
    /// Texture coordinates, (0, 0) at a picture's upper left corner.
    pub coords: Vec<[f32; 2]>,
    /// Indices into `coords` of each face's corners; empty where there are none.
    pub coord_faces: Vec<[u32; 3]>,
}

/// How a texture lies on shapes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TextureKind {
    /// A picture that repeats in both directions (`2d`).
    Flat,
    /// Six sides of a cube around a shape (`cube`, `skybox`): +x, -x, +y, -y, +z, -z, one below
    /// the other; or one square for all of them.
    Cube,
}

/// A picture that shapes are painted with, as MuJoCo keeps it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Texture {
    /// Name.
    pub name: String,
    /// How it lies on shapes.
    pub kind: TextureKind,
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Red, green and blue, row by row from the top: `[height][width][3]`.
    pub data: Vec<u8>,
    /// Width and height of the picture in the file, or as the file asks for it, where that was
    /// too large to keep.
    pub reduced: Option<[usize; 2]>,
}

/// What a material paints a shape with, beyond its colour.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Paint {
    /// [`Looks::textures`]`[i]`.
    pub texture: usize,
    /// `texrepeat`: how often a flat texture is repeated over the shape.
    pub repeat: [f32; 2],
    /// `texuniform`: repeated over lengths, not over the shape.
    pub uniform: bool,
}

/// A texture that shapes should have and do not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Plain {
    /// Name of the material, the texture or the mesh whose texture coordinates are wrong.
    pub name: String,
    /// The place in the model's file, and the mistake.
    pub why: String,
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
    /// Colour; a texture's is multiplied with it.
    pub rgba: [f32; 4],
    /// Texture.
    pub paint: Option<Paint>,
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
    /// Textures of these shapes and of the model's geoms.
    pub textures: Vec<Texture>,
    /// Textures of [`Model::geoms`](super::Model::geoms), by name: those that have one.
    pub painted: BTreeMap<String, Paint>,
    /// Geoms that cannot be shown.
    pub missing: Vec<Missing>,
    /// Textures that cannot be shown: their shapes keep their colour.
    pub plain: Vec<Plain>,
    /// The model was a URDF: its collision shapes are not drawn where it has visual shapes.
    pub urdf: bool,
}

impl Texture {
    /// The mean colour: red, green, blue, 0 to 1.
    pub fn mean(&self) -> [f32; 3] {
        let mut sum = [0_u64; 3];
        for pixel in self.data.chunks_exact(3) {
            for (sum, byte) in sum.iter_mut().zip(pixel) {
                *sum += u64::from(*byte);
            }
        }
        let count = (self.data.len() / 3).max(1) as f64;
        sum.map(|s| (s as f64 / (255.0 * count)) as f32)
    }
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
            ..Surface::default()
        }
    }
}
