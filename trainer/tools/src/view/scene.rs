//! What does not change: bodies, shapes with their colours, the floor, the camera.

use crate::view::ground::GroundData;
use crate::view::textures::{PaintData, TextureData, Textures};
use ostler_draw::camera::Camera;
use ostler_draw::math::{Frame, V3};
use ostler_draw::mesh::Mesh;
use ostler_draw::scene::{Scene, Solid, Travel};
use ostler_draw::shape::Shape;
use ostler_sim::Model;
use serde::Serialize;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Bytes of a page's textures at most; of more some are made smaller.
const MOST_OF_TEXTURES: usize = 16 << 20;

/// Numbers of the page that are not text: little-endian, each block on a multiple of four bytes.
#[derive(Debug, Default)]
pub struct Blob(Vec<u8>);

impl Blob {
    /// Appends a block; returns where it begins.
    pub fn push(&mut self, bytes: &[u8]) -> usize {
        let at = self.0.len();
        self.0.extend_from_slice(bytes);
        self.0.resize(self.0.len().next_multiple_of(4), 0);
        at
    }

    /// All of it.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

/// The scene as the page reads it.
#[derive(Debug, Clone, Serialize)]
pub struct SceneData {
    /// Names of the bodies; 0 is the world.
    pub bodies: Vec<String>,
    /// The body that the camera follows, if it does.
    pub root: usize,
    /// Whether the camera follows.
    pub follow: bool,
    /// Shapes.
    pub solids: Vec<SolidData>,
    /// Triangles of shapes.
    pub meshes: Vec<MeshData>,
    /// Pose of the floor: three columns of its axes, its place.
    pub floor: [f32; 12],
    /// Half-extents of the floor (m); none: endless.
    pub floor_half: [Option<f32>; 2],
    /// Ground that environments share; there is no floor then.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub terrain: Option<GroundData>,
    /// The floor's or the terrain's texture; without one it has checks.
    pub floor_paint: Option<PaintData>,
    /// Textures.
    pub textures: Vec<TextureData>,
    /// Where the followed body is in the initial pose (m).
    pub root_pos: [f32; 3],
    /// Where the camera begins (m).
    pub eye: [f32; 3],
    /// What it looks at (m).
    pub target: [f32; 3],
    /// Size of what moves (m).
    pub size: f32,
    /// Weight of everything that moves (N), which forces are drawn by.
    pub weight: f64,
    /// What cannot be drawn.
    pub notes: Vec<String>,
}

/// A shape.
#[derive(Debug, Clone, Serialize)]
pub struct SolidData {
    /// The body it moves with.
    pub body: usize,
    /// Its pose in the body's frame: three columns of its axes, its place (m).
    pub local: [f32; 12],
    /// sphere, capsule, ellipsoid, cylinder, box, plane, mesh.
    pub kind: &'static str,
    /// Sizes as in MJCF (m); of a plane, 0 is endless.
    pub size: [f32; 3],
    /// Index into the meshes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mesh: Option<usize>,
    /// Red, green and blue, linear light.
    pub color: [f32; 3],
    /// Its texture.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub paint: Option<PaintData>,
    /// It is a part of the robot.
    pub robot: bool,
    /// It is a plane or a terrain.
    pub ground: bool,
}

/// Where the triangles of a mesh lie in the blob.
#[derive(Debug, Clone, Serialize)]
pub struct MeshData {
    /// Corners: x, y, z as float32 (m), then their normals as three int8 and a zero.
    pub corners: usize,
    /// How many corners.
    pub count: usize,
    /// Indices of the triangles' corners, uint32.
    pub indices: usize,
    /// How many indices.
    pub index_count: usize,
    /// Texture coordinates of the corners, float32.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub coords: Option<usize>,
}

impl SceneData {
    /// The scene of `model`, whose shapes are those of `scene`; meshes go into `blob`.
    pub fn new(model: &Model, scene: &Scene, blob: &mut Blob) -> Self {
        let camera = Camera::new(scene, 16.0 / 9.0);
        let (eye, target) = camera.start();
        let mut known: BTreeMap<usize, usize> = BTreeMap::new();
        let mut meshes = Vec::new();
        let mut textures = Textures::default();
        let mut solids = Vec::with_capacity(scene.solids.len());
        let is_shape = |s: &&Solid| !matches!(s.shape, Shape::Ground(_));
        for solid in scene.solids.iter().filter(is_shape) {
            let (kind, size) = sizes(&solid.shape);
            let mesh = match &solid.shape {
                Shape::Mesh(mesh) => {
                    Some(*known.entry(Arc::as_ptr(mesh).addr()).or_insert_with(|| {
                        meshes.push(triangles(mesh, blob));
                        meshes.len() - 1
                    }))
                }
                _ => None,
            };
            solids.push(SolidData {
                body: solid.body,
                local: frame(&solid.local),
                kind,
                size,
                mesh,
                color: [solid.color.x, solid.color.y, solid.color.z],
                paint: solid.coat.as_ref().map(|coat| textures.paint(coat)),
                robot: solid.robot,
                ground: solid.ground,
            });
        }
        let gravity = model.options.gravity.iter().map(|g| g * g).sum::<f64>();
        // Bodies of a reference motion come behind the robot's.
        let names = model.bodies.iter().map(|b| b.name.clone());
        let has_copy = scene.solids.iter().any(|s| s.body >= model.bodies.len());
        let copies = model.bodies.iter().filter(|_| has_copy);
        let copies = copies.map(|b| format!("{} of the reference", b.name));
        let moving = model.bodies.iter().filter(|b| b.weld != 0);
        let notes = [&scene.missing, &scene.nothing].into_iter().flatten();
        let mut notes: Vec<String> = notes.cloned().collect();
        let own = scene.solids.iter().find(|s| !is_shape(s)).map(|s| &s.coat);
        let floor_coat = own.unwrap_or(&scene.floor_coat);
        let floor_paint = floor_coat.as_ref().map(|coat| textures.paint(coat));
        let terrain = scene.ground().map(|g| GroundData::new(g.terrain(), blob, &mut notes));
        let textures = textures.pack(MOST_OF_TEXTURES, blob, &mut notes);
        Self {
            bodies: names.chain(copies).collect(),
            root: scene.root,
            follow: scene.travel != Travel::Bounded,
            solids,
            meshes,
            floor: frame(&scene.floor),
            floor_half: scene.floor_half.map(|h| h.is_finite().then_some(h)),
            terrain,
            floor_paint,
            textures,
            root_pos: three(scene.root_pos),
            eye: three(eye),
            target: three(target),
            size: scene.size(),
            weight: moving.map(|b| b.mass).sum::<f64>() * gravity.sqrt(),
            notes,
        }
    }
}

fn three(v: V3) -> [f32; 3] {
    [v.x, v.y, v.z]
}

fn frame(f: &Frame) -> [f32; 12] {
    let [a, b, c] = f.rot.c.map(three);
    let p = three(f.pos);
    std::array::from_fn(|i| [a, b, c, p][i / 3][i % 3])
}

fn sizes(shape: &Shape) -> (&'static str, [f32; 3]) {
    let finite = |x: f32| if x.is_finite() { x } else { 0.0 };
    match *shape {
        Shape::Sphere(r) => ("sphere", [r, 0.0, 0.0]),
        Shape::Capsule(r, h) => ("capsule", [r, h, 0.0]),
        Shape::Ellipsoid(s) => ("ellipsoid", three(s)),
        Shape::Cylinder(r, h) => ("cylinder", [r, h, 0.0]),
        Shape::Box(s) => ("box", three(s)),
        Shape::Plane([x, y]) => ("plane", [finite(x), finite(y), 0.0]),
        Shape::Mesh(ref mesh) => ("mesh", three(mesh.half())),
        // Drawn as what it is.
        Shape::Ground(_) => ("ground", [0.0; 3]),
    }
}

/// A corner: place and texture as bits, light.
type Corner = ([u32; 3], [i8; 3], [u32; 2]);

/// Corners that are the same in place, light and texture are stored once.
fn triangles(mesh: &Mesh, blob: &mut Blob) -> MeshData {
    let mut known: BTreeMap<Corner, u32> = BTreeMap::new();
    let (mut places, mut normals): (Vec<f32>, Vec<i8>) = (Vec::new(), Vec::new());
    let mut coords: Vec<f32> = Vec::new();
    let mut indices: Vec<u32> = Vec::with_capacity(3 * mesh.corners().len());
    for (place, normal, at) in mesh.corners().flatten() {
        let normal = three(normal).map(|n| (127.0 * n).round() as i8);
        let key = (three(place).map(f32::to_bits), normal, at.map(f32::to_bits));
        let next = known.len() as u32;
        let index = *known.entry(key).or_insert_with(|| {
            places.extend(three(place));
            normals.extend(normal);
            normals.push(0);
            coords.extend(at);
            next
        });
        indices.push(index);
    }
    let corners = blob.push(bytemuck::cast_slice(&places));
    blob.push(bytemuck::cast_slice(&normals));
    MeshData {
        corners,
        count: known.len(),
        indices: blob.push(bytemuck::cast_slice(&indices)),
        index_count: indices.len(),
        coords: mesh.has_coords().then(|| blob.push(bytemuck::cast_slice(&coords))),
    }
}
