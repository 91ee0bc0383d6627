//! `<asset>`: meshes, height fields and textures, read when a geom needs them.

mod builtin;
mod coords;
mod cut;
mod hfield;
mod hull;
mod msh;
mod obj;
mod picture;
mod solid;
mod stl;
mod texture;

use super::compiler::Dir;
use super::defaults::{Classes, MAIN};
use super::element::{At, Element, Fault, Note, Read};
use super::settings::Settings;
use super::source::read_bytes;
use super::value::Keywords;
use crate::rotation::{IDENTITY, normalized};
use crate::{HField, Mesh, Model, Vec3, looks};
use coords::Coords;
use ostler_base::names::nearest;
use picture::Budget;
use solid::{Filling, Placing, Solid, Surface};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::rc::Rc;

const FILLING: Keywords<Filling> = &[
    ("convex", Filling::Convex),
    ("exact", Filling::Exact),
    ("legacy", Filling::Legacy),
    ("shell", Filling::Shell),
];

/// Attributes of meshes in classes.
#[derive(Debug, Clone)]
pub(super) struct MeshSpec {
    scale: Vec3,
    filling: Filling,
    most_corners: i32,
    /// The material of geoms that name none.
    material: Option<String>,
}

impl Default for MeshSpec {
    fn default() -> Self {
        Self { scale: [1.0; 3], filling: Filling::Legacy, most_corners: -1, material: None }
    }
}

impl MeshSpec {
    /// Overwrites the values that the element sets.
    pub(crate) fn read(&mut self, e: &Element) -> Read<()> {
        e.array("scale", &mut self.scale)?;
        e.keyword("inertia", FILLING, &mut self.filling)?;
        e.integer("maxhullvert", &mut self.most_corners)?;
        if let Some(name) = e.text("material") {
            self.material = Some(name.to_string());
        }
        if let Some(attr) = e.attr("scale").filter(|_| self.scale.contains(&0.0)) {
            return Err(Fault::new(attr.value_at(0), "scale cannot be 0"));
        }
        Ok(())
    }

    /// Puts `prefix` before the name of its material.
    pub(crate) fn prefix_assets(&mut self, prefix: &str) {
        if let Some(name) = &mut self.material {
            name.insert_str(0, prefix);
        }
    }
}

/// The file's assets by name.
pub(super) struct Assets<'a> {
    settings: &'a Settings,
    classes: &'a Classes,
    meshes: BTreeMap<String, &'a Element>,
    hfields: BTreeMap<String, &'a Element>,
    textures: BTreeMap<String, &'a Element>,
    /// Solids of the meshes in use, in the order of `Model::meshes`.
    solids: Vec<Solid>,
    /// Meshes that primitives were fitted to.
    fitted: BTreeMap<String, Rc<Solid>>,
    /// Files that were read.
    pub files: Vec<PathBuf>,
    /// Bytes that may still be read of files: many assets may name one large file.
    left: u64,
    /// Vertices that may still be made solids of.
    vertices: usize,
    /// The same of files of textures, which only pictures need: they must not use up what
    /// physics needs.
    texture_bytes: u64,
    pixels: Budget,
    /// Meshes whose texture coordinates are wrong.
    pub wrong_coords: Vec<(String, Fault)>,
}

/// Bytes of all files of one model's assets, each as often as it is used.
const MAX_BYTES: u64 = 512 << 20;
/// Vertices of all meshes of one model; one STL file has at most 600,000.
const MAX_VERTICES: usize = 10_000_000;

impl<'a> Assets<'a> {
    /// Lists the assets of `root`.
    pub(crate) fn new(
        root: &'a Element,
        settings: &'a Settings,
        classes: &'a Classes,
    ) -> Read<Self> {
        let list = |kind: &'static str| -> Read<BTreeMap<String, &'a Element>> {
            let mut found = BTreeMap::new();
            for e in root.children_named("asset").flat_map(|a| a.children_named(kind)) {
                let name = match name_of(e) {
                    // A sky needs no name.
                    Err(_) if kind == "texture" => continue,
                    name => name?,
                };
                if found.insert(name.clone(), e).is_some() {
                    let why = format!("there are two <{kind}> called \"{name}\"");
                    return Err(Fault::new(e.at, why));
                }
            }
            Ok(found)
        };
        Ok(Self {
            settings,
            classes,
            meshes: list("mesh")?,
            hfields: list("hfield")?,
            textures: list("texture")?,
            solids: Vec::new(),
            fitted: BTreeMap::new(),
            files: Vec::new(),
            left: MAX_BYTES,
            vertices: MAX_VERTICES,
            texture_bytes: MAX_BYTES,
            pixels: Budget::new(),
            wrong_coords: Vec::new(),
        })
    }

    /// The mesh `name` and its index in `model`, which it enters on first use.
    pub(crate) fn mesh(&mut self, name: &str, at: At, model: &mut Model) -> Read<(usize, &Solid)> {
        if let Some(known) = model.meshes.iter().position(|m| m.name == name) {
            return Ok((known, &self.solids[known]));
        }
        let solid = self.solid(name, at)?;
        model.meshes.push(Mesh {
            name: name.to_string(),
            pos: solid.frame.pos,
            quat: solid.frame.quat,
            vertices: solid.vertices.clone(),
            faces: solid.faces.clone(),
            surface: solid.surface.clone(),
        });
        self.solids.push(solid);
        let index = self.solids.len() - 1;
        Ok((index, &self.solids[index]))
    }

    /// The mesh `name` as a solid, for a primitive that is fitted to it.
    pub(crate) fn fitted(&mut self, name: &str, at: At) -> Read<Rc<Solid>> {
        if let Some(known) = self.fitted.get(name) {
            return Ok(Rc::clone(known));
        }
        let solid = Rc::new(self.solid(name, at)?);
        self.fitted.insert(name.to_string(), Rc::clone(&solid));
        Ok(solid)
    }

    fn solid(&mut self, name: &str, at: At) -> Read<Solid> {
        let (e, spec) = self.spec(name, at)?;
        if spec.most_corners != -1 {
            let at = e.attr("maxhullvert").map_or(e.at, |a| a.at);
            let why = "a hull of limited corners is not supported; simplify the mesh instead";
            return Err(Fault::new(at, why));
        }
        let placing = placing(e, &spec)?;
        let surface = self.surface(e, false)?;
        let fault = |why: String| Fault::new(e.at, format!("mesh \"{name}\": {why}"));
        if surface.vertices.len() < 4 {
            return Err(fault("needs at least four vertices".into()));
        }
        let left = self.vertices.checked_sub(surface.vertices.len());
        self.vertices = left.ok_or_else(|| {
            let why = format!("the model's meshes have more than {MAX_VERTICES} vertices in all");
            fault(why)
        })?;
        Solid::new(&surface, placing, spec.filling).map_err(fault)
    }

    fn spec(&self, name: &str, at: At) -> Read<(&'a Element, MeshSpec)> {
        let e = find(&self.meshes, "mesh", name, at)?;
        let mut spec = self.classes.of(e, MAIN)?.mesh.clone();
        spec.read(e)?;
        Ok((e, spec))
    }

    /// The material of mesh `name`; none of one that cannot be read, which may not be needed.
    pub(crate) fn material(&self, name: &str) -> Option<String> {
        let e = self.meshes.get(name)?;
        self.spec(name, e.at).ok()?.1.material
    }

    /// The triangles of mesh `name`, placed as its geoms have them, for pictures.
    pub(crate) fn triangles(&mut self, name: &str, at: At) -> Read<looks::Surface> {
        let (e, spec) = self.spec(name, at)?;
        let placing = placing(e, &spec)?;
        let mut surface = self.surface(e, true)?;
        if let Err(fault) = surface.coords.settle(e, surface.vertices.len()) {
            self.wrong_coords.push((name.to_string(), fault));
        }
        let shown = placing.triangles(surface);
        let mut shown = shown.map_err(|why| Fault::new(e.at, format!("mesh \"{name}\": {why}")))?;
        shown.name = name.to_string();
        Ok(shown)
    }

    /// `coords`: with texture coordinates, which pictures need.
    fn surface(&mut self, e: &Element, coords: bool) -> Read<Surface> {
        if e.text("file").is_some() {
            for name in ["vertex", "face"] {
                if let Some(attr) = e.attr(name) {
                    let why = format!("{name} and file both describe the mesh; keep one");
                    return Err(Fault::new(attr.at, why));
                }
            }
            let (path, bytes) = self.load(e)?;
            let name = path.to_string_lossy().to_ascii_lowercase();
            let surface = if name.ends_with(".stl") {
                stl::read(&bytes)
            } else if name.ends_with(".msh") {
                msh::read(&bytes, coords)
            } else if name.ends_with(".obj") {
                obj::read(&String::from_utf8_lossy(&bytes), coords)
            } else {
                Err("only .stl (binary), .obj and .msh files are supported".into())
            };
            let at = e.attr("file").map_or(e.at, |a| a.value_at(0));
            return surface.map_err(|why| Fault::new(at, format!("{}: {why}", path.display())));
        }
        let triples = |name: &str| -> Read<Vec<[f64; 3]>> {
            let Some(values) = e.numbers(name)? else {
                return Ok(Vec::new());
            };
            if values.len() % 3 != 0 {
                let at = e.attr(name).map_or(e.at, |a| a.value_at(0));
                let why = format!("{name} needs a multiple of three numbers");
                return Err(Fault::new(at, why));
            }
            let chunks = values.chunks_exact(3);
            Ok(chunks.map(|c| [c[0], c[1], c[2]]).collect())
        };
        let whole = |x: f64| {
            let at = e.attr("face").map_or(e.at, |a| a.value_at(0));
            (x >= 0.0 && x.fract() == 0.0)
                .then_some(x as usize)
                .ok_or_else(|| Fault::new(at, format!("face: {x} is not the number of a vertex")))
        };
        Ok(Surface {
            vertices: triples("vertex")?.iter().map(|v| v.map(|x| x as f32)).collect(),
            faces: triples("face")?
                .into_iter()
                .map(|[a, b, c]| Ok([whole(a)?, whole(b)?, whole(c)?]))
                .collect::<Read<_>>()?,
            coords: Coords::default(),
        })
    }

    /// Index in `hfields` of the height field `name`, which it enters on first use.
    pub(crate) fn hfield(&mut self, name: &str, at: At, hfields: &mut Vec<HField>) -> Read<usize> {
        if let Some(known) = hfields.iter().position(|h| h.name == name) {
            return Ok(known);
        }
        let e = find(&self.hfields, "hfield", name, at)?;
        let mut size = [0.0; 4];
        e.required("size")?;
        e.array("size", &mut size)?;
        if size.iter().any(|s| *s <= 0.0) {
            return Err(Fault::new(
                e.attr("size").map_or(e.at, |a| a.value_at(0)),
                "size must be positive: half-extents x and y, height, depth of the base [m]",
            ));
        }
        let fault = |why: String| Fault::new(e.at, format!("hfield \"{name}\": {why}"));
        let grid = if e.text("file").is_some() {
            let (path, bytes) = self.load(e)?;
            hfield::file(&path.to_string_lossy(), &bytes).map_err(fault)?
        } else {
            hfield::inline(e)?
        };
        let field = grid.field(name.to_string(), size).map_err(fault)?;
        hfields.push(field);
        Ok(hfields.len() - 1)
    }

    /// The file an asset names, in the model's folder for meshes.
    fn load(&mut self, e: &Element) -> Read<(PathBuf, Vec<u8>)> {
        let attr = e.attr("file").ok_or_else(|| Fault::new(e.at, "missing attribute"))?;
        let at = attr.value_at(0);
        let path = self.settings.file(e.at, Dir::Mesh, &attr.value);
        let path = path.map_err(|why| Fault::new(at, why))?;
        let read = bytes(&path, &mut self.left);
        let bytes = read.map_err(|why| {
            let hint = match attr.value.contains("://") && !path.exists() {
                true => format!(
                    "; a package's folder is looked for beside the robot's file and in the folders \
                     above it, as far as task.robot_folder reaches: in {}",
                    self.settings.reach(e.at).looked()
                ),
                false => String::new(),
            };
            Fault::new(at, format!("{why}{hint}"))
        })?;
        if !self.files.contains(&path) {
            self.files.push(path.clone());
        }
        Ok((path, bytes))
    }

    /// Lists what no geom that touches or weighs something uses.
    pub(crate) fn unused(&self, model: &Model, notes: &mut Vec<Note>) {
        let meshes = self.meshes.iter().filter(|(name, _)| {
            !model.meshes.iter().any(|m| m.name == **name) && !self.fitted.contains_key(*name)
        });
        let hfields =
            self.hfields.iter().filter(|(name, _)| !model.hfields.iter().any(|h| h.name == **name));
        for (name, e) in meshes.chain(hfields).filter(|(_, e)| !e.discarded) {
            notes.push(Note {
                at: e.at,
                what: format!("<{}> \"{name}\"", e.name),
                why: "no geom that collides or has mass uses it",
            });
        }
    }
}

/// The bytes of a file, which `left` is lessened by.
fn bytes(path: &Path, left: &mut u64) -> Result<Vec<u8>, String> {
    let read = read_bytes(path);
    let bytes = read.map_err(|error| {
        let why = match error.kind() {
            std::io::ErrorKind::NotFound => {
                "there is no such file; names count from the folder of the file, or from `meshdir` \
                 or `texturedir` of its <compiler>"
                    .to_string()
            }
            _ => error.to_string(),
        };
        format!("cannot read {}: {why}", path.display())
    })?;
    *left = left.checked_sub(bytes.len() as u64).ok_or_else(|| {
        let most = MAX_BYTES >> 20;
        let path = path.display();
        format!("{path}: files of assets have more than {most} MiB in all")
    })?;
    Ok(bytes)
}

/// How the asset's vertices are placed.
fn placing(e: &Element, spec: &MeshSpec) -> Read<Placing> {
    let mut placing = Placing { refpos: [0.0; 3], refquat: IDENTITY, scale: spec.scale };
    e.array("refpos", &mut placing.refpos)?;
    e.array("refquat", &mut placing.refquat)?;
    placing.refquat = normalized(placing.refquat)
        .ok_or_else(|| Fault::new(e.at, "refquat is zero; no rotation is \"1 0 0 0\""))?;
    Ok(placing)
}

/// The asset's name, or its file's stem.
pub(super) fn name_of(e: &Element) -> Read<String> {
    if let Some(name) = e.text("name") {
        return Ok(name.to_string());
    }
    let file = e.text("file").and_then(|f| {
        let file = f.rsplit(['/', '\\']).next()?;
        Path::new(file).file_stem()?.to_str()
    });
    file.map(str::to_string).ok_or_else(|| {
        let why = format!("<{}> needs name=\"...\" or file=\"...\"", e.name);
        Fault::new(e.at, why)
    })
}

fn find<'a>(
    assets: &BTreeMap<String, &'a Element>,
    kind: &str,
    name: &str,
    at: At,
) -> Read<&'a Element> {
    assets.get(name).copied().ok_or_else(|| {
        let guess = nearest(name, assets.keys().map(String::as_str));
        let guess = guess.map_or(String::new(), |g| format!("; did you mean \"{g}\"?"));
        Fault::new(at, format!("no {kind} called \"{name}\"{guess}"))
    })
}
