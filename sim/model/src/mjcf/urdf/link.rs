//! Parts of a URDF link.

use super::part::{attr, list_others, made, numbers, only, origin, place_attrs, renamed};
use crate::mjcf::compiler::{Compiler, Dir};
use crate::mjcf::element::{At, Attr, Element, Fault, Note, Read};
use crate::mjcf::reach::{By, Candidate, Reach};
use crate::mjcf::source::read_bytes;
use crate::rotation::matrix;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// What `<geometry>` may be.
const SHAPES: [&str; 5] = ["box", "cylinder", "sphere", "capsule", "mesh"];

/// What tells files apart: not where they lie, so that a copy means the same.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum Content {
    Hash([u8; 32]),
    Name(PathBuf),
}

/// What tells meshes apart: the file and how its name ends, which says how it is read; the
/// scale's bits; whether the mesh is left out.
type Identity = (Content, String, [u64; 3], bool);

/// Finds the files of meshes.
pub(super) struct MeshFiles<'a> {
    compiler: Compiler,
    reach: &'a Reach,
}

impl<'a> MeshFiles<'a> {
    /// `model`: with the `<compiler>`s that count.
    pub(crate) fn new(model: &Element, reach: &'a Reach) -> Self {
        let mut compiler = Compiler::default();
        for e in model.children_named("compiler") {
            // What is wrong with it is said where the model is read.
            let _ = compiler.read(e);
        }
        Self { compiler, reach }
    }

    /// The file that `name` means, or the place where it is missing.
    ///
    /// # Errors
    /// It is out of reach.
    pub(crate) fn find(&self, name: &str) -> Result<Candidate, String> {
        let (reach, folder) = (self.reach, self.reach.folder());
        let candidates = reach.candidates(&self.compiler, folder, Dir::Mesh, name);
        reach.first(&candidates, name)
    }
}

/// State that links share: colours, meshes, names of geoms.
pub(super) struct Links<'a> {
    /// Shapes that are only seen are left out, but for pictures.
    discard: bool,
    colours: BTreeMap<String, String>,
    files: MeshFiles<'a>,
    meshes: Vec<Element>,
    /// Names of the meshes.
    known: BTreeMap<Identity, String>,
    /// What is in the files that were read.
    contents: BTreeMap<PathBuf, Content>,
    /// The address of each file that was taken for one in a package.
    addresses: BTreeMap<PathBuf, (String, bool)>,
    names: BTreeSet<String>,
}

impl<'a> Links<'a> {
    pub(crate) fn new(root: &Element, discard: bool, files: MeshFiles<'a>) -> Read<Self> {
        let mut links = Self {
            discard,
            colours: BTreeMap::new(),
            files,
            meshes: Vec::new(),
            known: BTreeMap::new(),
            contents: BTreeMap::new(),
            addresses: BTreeMap::new(),
            names: BTreeSet::new(),
        };
        links.materials(root)?;
        Ok(links)
    }

    /// Colours of named materials, the first of each name, wherever they stand.
    fn materials(&mut self, e: &Element) -> Read<()> {
        if e.name == "material"
            && let (Some(name), Some(colour)) = (e.text("name"), only(e, "color")?)
        {
            let rgba = colour.required("rgba")?.to_string();
            self.colours.entry(name.to_string()).or_insert(rgba);
        }
        e.children.iter().try_for_each(|c| self.materials(c))
    }

    /// The meshes that were met.
    pub(crate) fn assets(self, at: At) -> Element {
        let mut asset = made("asset", at);
        asset.children = self.meshes;
        asset
    }

    /// Inertia and geoms of a link.
    pub(crate) fn content(
        &mut self,
        e: &Element,
        body: &mut Element,
        notes: &mut Vec<Note>,
    ) -> Read<()> {
        let mut colour: Option<String> = None;
        list_others(e, &["inertial", "visual", "collision"], notes);
        for part in &e.children {
            if matches!(part.name.as_str(), "visual" | "collision") {
                list_others(part, &["origin", "geometry", "material"], notes);
                part.children_named("geometry").for_each(|g| list_others(g, &SHAPES, notes));
            }
            match part.name.as_str() {
                "inertial" => {
                    list_others(part, &["origin", "mass", "inertia"], notes);
                    body.children.push(inertial(part)?);
                }
                "visual" => {
                    // A tool writes one for each part of a mesh's file; they are looks alone.
                    let mut materials = part.children_named("material");
                    let first = materials.next();
                    notes.extend(materials.map(|more| Note {
                        at: more.at,
                        what: "a second <material> in <visual>".into(),
                        why: "the first colours the shape",
                    }));
                    if let Some(material) = first {
                        if let Some(own) = only(material, "color")? {
                            colour = Some(own.required("rgba")?.to_string());
                        } else if let Some(named) = self.colours.get(material.required("name")?) {
                            colour = Some(named.clone());
                        }
                    }
                    let geom = self.geom(part, &colour, self.discard, notes);
                    if self.discard {
                        // MuJoCo does not read this part, so it cannot be wrong.
                        body.children
                            .extend(geom.ok().map(|geom| Element { discarded: true, ..geom }));
                    } else {
                        let mut geom = geom?;
                        for (name, value) in [
                            ("contype", "0"),
                            ("conaffinity", "0"),
                            ("group", "1"),
                            ("density", "0"),
                        ] {
                            geom.attrs.push(attr(name, value, part.at));
                        }
                        body.children.push(geom);
                    }
                }
                "collision" => {
                    let geom = self.geom(part, &colour, false, notes)?;
                    body.children.push(geom);
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn geom(
        &mut self,
        e: &Element,
        colour: &Option<String>,
        left_out: bool,
        notes: &mut Vec<Note>,
    ) -> Read<Element> {
        let geometry = only(e, "geometry")?
            .ok_or_else(|| Fault::new(e.at, format!("<{}> needs <geometry>", e.name)))?;
        let known = |e: &&Element| SHAPES.contains(&e.name.as_str());
        let mut shapes = geometry.children.iter().filter(known);
        let (Some(shape), None) = (shapes.next(), shapes.next()) else {
            let other = geometry.children.iter().find(|e| !known(e));
            let place = other.map_or(geometry.at, |e| e.at);
            let other = other.map_or(String::new(), |e| format!("unknown shape <{}>; ", e.name));
            let why = format!("{other}<geometry> holds one of {}", SHAPES.join(", "));
            return Err(Fault::new(place, why));
        };
        let mut geom = made("geom", e.at);
        // The first of a name has it, the others have none.
        if let Some(name) = e.attr("name").filter(|a| !a.value.is_empty())
            && !left_out
            && self.names.insert(name.value.clone())
        {
            geom.attrs.push(renamed(name, "name"));
        }
        let number = |name: &str| -> Read<f64> {
            let mut value = 0.0;
            shape.required(name)?;
            shape.scalar(name, &mut value)?;
            Ok(value)
        };
        let (kind, size) = match shape.name.as_str() {
            "box" => {
                let mut size = [0.0; 3];
                shape.required("size")?;
                shape.array("size", &mut size)?;
                ("box", size.map(|s| 0.5 * s).to_vec())
            }
            "cylinder" => ("cylinder", vec![number("radius")?, 0.5 * number("length")?]),
            "capsule" => ("capsule", vec![number("radius")?, 0.5 * number("length")?]),
            "sphere" => ("sphere", vec![number("radius")?]),
            _ => {
                let name = self.mesh(shape, left_out, notes)?;
                geom.attrs.push(attr("mesh", &name, shape.at));
                ("mesh", Vec::new())
            }
        };
        geom.attrs.push(attr("type", kind, shape.at));
        if !size.is_empty() {
            geom.attrs.push(attr("size", &numbers(&size), shape.at));
        }
        if let Some(rgba) = colour {
            geom.attrs.push(attr("rgba", rgba, e.at));
        }
        place_attrs(e, &mut geom)?;
        Ok(geom)
    }

    /// The name of the mesh asset of a file at a scale.
    fn mesh(&mut self, e: &Element, left_out: bool, notes: &mut Vec<Note>) -> Read<String> {
        let file = e.required("filename")?;
        let mut scale = [1.0; 3];
        e.array("scale", &mut scale)?;
        let last = file.rsplit(['/', '\\']).next().unwrap_or(file);
        let (stem, ending) = last.rsplit_once('.').unwrap_or((last, ""));
        // One that is missing or out of reach is known by its name.
        let place = match self.files.find(file) {
            Ok(found) => {
                let real = found.path.canonicalize().unwrap_or(found.path);
                if let Some(attr) = e.attr("filename") {
                    self.address(attr, &real, &found.by, notes)?;
                }
                real
            }
            Err(_) => PathBuf::from(file),
        };
        let ending = ending.to_ascii_lowercase();
        let content = self.content_of(place, left_out);
        let identity = (content, ending, scale.map(f64::to_bits), left_out);
        if let Some(name) = self.known.get(&identity) {
            return Ok(name.clone());
        }
        let prefix = if left_out { "visual/" } else { "" };
        let taken: BTreeSet<&String> = self.known.values().collect();
        let numbered = (1..).map(|n| format!("{prefix}{stem}{n}"));
        let mut names = std::iter::once(format!("{prefix}{stem}")).chain(numbered);
        let name = names.find(|n| !taken.contains(n)).unwrap_or_default();
        self.known.insert(identity, name.clone());
        let mut mesh = made("mesh", e.at);
        mesh.discarded = left_out;
        mesh.attrs.push(attr("name", &name, e.at));
        mesh.attrs.extend(e.attr("filename").map(|a| renamed(a, "file")));
        mesh.attrs.push(attr("scale", &numbers(&scale), e.at));
        self.meshes.push(mesh);
        Ok(name)
    }

    /// What is in a file; of one that is left out or cannot be read, its name.
    fn content_of(&mut self, file: PathBuf, left_out: bool) -> Content {
        if left_out {
            return Content::Name(file);
        }
        if let Some(known) = self.contents.get(&file) {
            return known.clone();
        }
        let content = match read_bytes(&file) {
            Ok(bytes) => Content::Hash(*blake3::hash(&bytes).as_bytes()),
            Err(_) => Content::Name(file.clone()),
        };
        self.contents.insert(file, content.clone());
        content
    }

    /// Refuses one file for two addresses of packages where it is but a guess for one of them,
    /// and says of a guess that it is one.
    fn address(&mut self, name: &Attr, file: &Path, by: &By, notes: &mut Vec<Note>) -> Read<()> {
        let Some((_, address)) = name.value.split_once("://") else {
            return Ok(());
        };
        let guess = by.is_guess() && file.is_file();
        let package = |address: &str| address.split('/').next().map(str::to_string);
        if let Some((other, guessed)) = self.addresses.get(file) {
            if address != other && (guess || *guessed) {
                let why = format!(
                    "{} would be \"{address}\" and \"{other}\": put each package into a folder of \
                     its name, beside the robot's file or above it",
                    file.display()
                );
                return Err(Fault::new(name.value_at(0), why));
            }
            return Ok(());
        }
        let mut guesses = self.addresses.values().filter(|(_, guessed)| *guessed);
        if guess && guesses.all(|(other, _)| package(other) != package(address)) {
            notes.push(Note {
                at: name.at,
                what: format!("the package's name in \"{}\"", name.value),
                why: "no folder here is known to be that package: one that has such a file is \
                      taken for it",
            });
        }
        let known = (address.to_string(), guess);
        self.addresses.insert(file.to_path_buf(), known);
        Ok(())
    }
}

/// The inertia about the link's axes.
fn inertial(e: &Element) -> Read<Element> {
    let part = |name: &'static str| -> Read<&Element> {
        only(e, name)?.ok_or_else(|| Fault::new(e.at, format!("<inertial> needs <{name}>")))
    };
    let (mass, inertia) = (part("mass")?, part("inertia")?);
    mass.required("value")?;
    let read = |name: &str| -> Read<f64> {
        let mut value = 0.0;
        inertia.required(name)?;
        inertia.scalar(name, &mut value)?;
        Ok(value)
    };
    let (xx, yy, zz) = (read("ixx")?, read("iyy")?, read("izz")?);
    let (xy, xz, yz) = (read("ixy")?, read("ixz")?, read("iyz")?);
    let own = [[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]];
    let pose = origin(e)?;
    let r = matrix(pose.quat);
    let turned = |i: usize, j: usize| -> f64 {
        let term = |k: usize, l: usize| r[i][k] * own[k][l] * r[j][l];
        (0..3).map(|k| (0..3).map(|l| term(k, l)).sum::<f64>()).sum()
    };
    let mut out = made("inertial", e.at);
    out.attrs.push(attr("pos", &numbers(&pose.pos), e.at));
    out.attrs.extend(mass.attr("value").map(|a| renamed(a, "mass")));
    let pairs = [(0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)];
    let full = pairs.map(|(i, j)| turned(i, j));
    // Zeros mean that the inertia is not known.
    let known = own.iter().flatten().any(|x| *x != 0.0);
    out.attrs.push(if known {
        attr("fullinertia", &numbers(&full), inertia.at)
    } else {
        attr("diaginertia", "0 0 0", inertia.at)
    });
    Ok(out)
}

#[cfg(test)]
#[path = "mesh_tests.rs"]
mod tests;
