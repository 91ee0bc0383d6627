//! MJCF files -> [`Model`], strictly. URDF files too: `urdf` rewrites them as MJCF.
//!
//! `source` turns XML into a tree that knows its places and pulls in includes; `check` compares
//! the tree with `schema`: unknown names are refused, features without effect are listed. Then
//! `<compiler>`, `<option>` and `<default>` are read, and with them the `tree` of bodies,
//! contacts, actuators and keyframes, in the order in which they refer to each other. Meaning
//! and defaults are MuJoCo's (XML reference and `mjSpec`); unsupported features are refused by
//! name.

mod actuator;
mod asset;
mod attach;
mod check;
mod compiler;
mod contact;
mod content;
mod dcmotor;
mod defaults;
mod derive;
mod edit;
mod element;
mod encoding;
mod equality;
mod error;
mod files;
mod fluid;
mod fuse;
mod geom;
mod inertia;
mod joint;
mod keyframe;
mod mass;
mod material;
mod muscle;
mod names;
mod options;
mod package;
mod pose;
mod reach;
mod schema;
mod sensor;
mod settings;
mod site;
mod source;
mod tendon;
mod transmission;
mod tree;
mod unfelt;
mod urdf;
mod value;
mod xml;

use super::edit::{Edits, Height, grounds, lowest, plane_height};
use super::looks::{Looks, Surface};
use super::rest::Rest;
use super::rotation::{IDENTITY, Pose};
use super::{Body, Ignored, Mesh, Model, Naming};
use attach::Assembler;
use attach::whole::Whole;
use element::{At, Element, Note, Read};
pub use error::MjcfError;
use names::Names;
pub use package::MANIFEST;
use reach::Reach;
use settings::Settings;
use source::Sources;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use unfelt::VisualGeoms;
pub use urdf::{PlainUrdf, attached as attached_copies, plain as plain_urdf};

/// How a robot's file is read; `..Reading::default()` stands for what is not said.
#[derive(Debug, Clone, Default)]
pub struct Reading<'a> {
    /// Stands for the file, which need not exist then; includes are looked up in its folder.
    pub text: Option<String>,
    /// The model's files lie anywhere in this folder, beside and above its own.
    pub within: Option<&'a Path>,
    /// Additions of a task.
    pub edits: Option<&'a Edits>,
    /// The robot's looks are read, too. A part that cannot be shown is no error:
    /// [`Looks::missing`] names it.
    pub looks: bool,
}

impl Reading<'_> {
    /// Reads an MJCF or URDF file and its includes.
    ///
    /// # Errors
    /// The file cannot be read, is not MJCF, or uses an unsupported feature; the message has the
    /// place and a replacement. An addition cannot be made, which it says by the task's key.
    pub fn read(self, path: &Path) -> Result<(Model, Looks), MjcfError> {
        let text = match self.text {
            Some(text) => text,
            None => opened(path, self.within)?,
        };
        match self.edits {
            Some(edits) => edited(path, self.within, text, self.looks, edits),
            None => Ok(parse_edits(path, self.within, text, self.looks, &Edits::default())?.0),
        }
    }
}

/// Reads a model as its file has it.
///
/// # Errors
/// As [`Reading::read`].
pub fn load(path: &Path) -> Result<Model, MjcfError> {
    Ok(Reading::default().read(path)?.0)
}

/// The same from `text`.
///
/// # Errors
/// As [`Reading::read`].
pub fn parse(path: &Path, text: String) -> Result<Model, MjcfError> {
    Ok(Reading { text: Some(text), ..Reading::default() }.read(path)?.0)
}

/// The file that `name` means beside the robot's file; it lies where the robot's files may.
///
/// # Errors
/// It lies elsewhere.
pub fn beside(robot: &Path, within: Option<&Path>, name: &str) -> Result<PathBuf, String> {
    Reach::new(robot, within).file(name, None)
}

/// A model file's text.
fn opened(path: &Path, within: Option<&Path>) -> Result<String, MjcfError> {
    if let Some(folder) = within {
        folder
            .read_dir()
            .map_err(|source| MjcfError::Read { path: folder.to_path_buf(), source })?;
    }
    source::read_text(path).map_err(|source| MjcfError::Read { path: path.to_path_buf(), source })
}

/// A model file's text, if its bytes are not that text in UTF-8, which is all that MuJoCo reads.
///
/// # Errors
/// The file cannot be read.
pub fn recoded(path: &Path) -> Result<Option<String>, MjcfError> {
    source::recoded(path).map_err(|source| MjcfError::Read { path: path.to_path_buf(), source })
}

/// Reads a file with additions; once more where these depend on what is in it: a floor of its
/// own, a robot's lowest point.
fn edited(
    path: &Path,
    within: Option<&Path>,
    text: String,
    looks: bool,
    edits: &Edits,
) -> Result<(Model, Looks), MjcfError> {
    let wanted = edits;
    let mut edits = edits.clone();
    let (mut read, added) = parse_edits(path, within, text.clone(), looks, &edits)?;
    let mut again = false;
    let mut needless = None;
    let mut ground = wanted.floor.map(|floor| floor.height);
    let new = |g: &usize| added.floor.as_ref() == Some(&read.0.geoms[*g].name);
    if let Some(geom) = grounds(&read.0).find(|g| !new(g)) {
        ground = plane_height(&read.0, geom);
        if edits.floor.take().is_some() {
            let name = &read.0.geoms[geom].name;
            needless = Some(format!("the file has its own floor, \"{name}\""));
            again = true;
        }
    }
    if edits.height == Some(Height::OnFloor) {
        let refuse = |message: &str| MjcfError::Invalid {
            place: path.display().to_string(),
            message: format!("task.start_height = \"auto\": {message}; write a number (m)"),
        };
        let model = &read.0;
        let body = added.root.as_ref().and_then(|name| match name {
            Some(name) => model.bodies.iter().position(|b| b.name == *name),
            None => (1..model.bodies.len()).find(|b| model.bodies[*b].parent == 0),
        });
        let body = body.ok_or_else(|| refuse("the robot's root is welded to the world"))?;
        let ground = ground.ok_or_else(|| refuse("there is no level floor"))?;
        let bottom = lowest(model, body).ok_or_else(|| refuse("no shape can touch the floor"))?;
        let height = model.bodies[body].pos[2] + ground - bottom;
        edits.height = Some(Height::At(height));
        again = true;
    }
    if again {
        (read, _) = parse_edits(path, within, text, looks, &edits)?;
    }
    let needless = needless.map(|why| ("task.floor", why));
    let needless = needless.into_iter().chain(added.needless);
    let place = path.file_name().unwrap_or_default().to_string_lossy();
    read.0.ignored.extend(needless.map(|(what, why)| Ignored {
        what: what.into(),
        place: place.to_string(),
        why,
    }));
    Ok(read)
}

fn parse_edits(
    path: &Path,
    within: Option<&Path>,
    text: String,
    looks: bool,
    edits: &Edits,
) -> Result<((Model, Looks), edit::Added), MjcfError> {
    let reach = Reach::new(path, within);
    let (mut sources, mut settings) = (Sources::default(), Settings::default());
    let mut notes = Vec::new();
    let mut assembler = Assembler::new(&mut sources, &mut settings, &mut notes);
    let mut whole = assembler.model(path, text, &reach)?;
    let (urdf, named) = (assembler.urdf, std::mem::take(&mut assembler.files));
    let mut unfelt = VisualGeoms::new(looks.then(|| Looks { urdf, ..Looks::default() }));
    let mut added = edit::apply(edits, &mut whole.root).map_err(|f| sources.error(f))?;
    if edits.balance {
        settings.balance_inertia();
    }
    let read = read(&whole, path, &settings, &mut notes, &mut unfelt);
    let mut model = read.map_err(|f| sources.error(f))?;
    model.added = std::mem::take(&mut added.said);
    model.edits = edits.clone();
    model.naming = reach.naming();
    notes.extend(sources.unread.iter().map(|at| Note {
        at: *at,
        what: "what stands behind the root element".into(),
        why: "a file has one; MuJoCo does not read it",
    }));
    notes.sort_by_key(|n| n.at.order());
    model.ignored = notes
        .iter()
        .map(|n| Ignored {
            what: n.what.clone(),
            place: sources.short_place(n.at),
            why: n.why.to_string(),
        })
        .collect();
    let assets = std::mem::take(&mut model.sources);
    model.sources = sources.paths();
    for file in assets.into_iter().chain(named).chain(reach.files()) {
        if !model.sources.contains(&file) {
            model.sources.push(file);
        }
    }
    let looks = unfelt.looks(&sources).unwrap_or_default();
    Ok(((model, looks), added))
}

fn read(
    whole: &Whole,
    path: &Path,
    settings: &Settings,
    notes: &mut Vec<Note>,
    unfelt: &mut VisualGeoms,
) -> Read<Model> {
    let (root, classes) = (&whole.root, &whole.classes);
    let compiler = settings.of(root.at);
    let materials = material::read(root, |e| Ok(classes.of(e, defaults::MAIN)?.material.clone()))?;

    let stem = || path.file_stem().map_or("model".into(), |s| s.to_string_lossy().into_owned());
    let mut model = Model {
        name: root.text("model").map_or_else(stem, str::to_string),
        options: whole.options.clone(),
        bodies: vec![world()],
        joints: Vec::new(),
        geoms: Vec::new(),
        sites: Vec::new(),
        meshes: Vec::new(),
        hfields: Vec::new(),
        terrain: None,
        tendons: Vec::new(),
        equalities: Vec::new(),
        actuators: Vec::new(),
        changed_geoms: Vec::new(),
        edits: Edits::default(),
        networks: Vec::new(),
        contact_sensors: Vec::new(),
        sensors: Vec::new(),
        keyframes: Vec::new(),
        excludes: Vec::new(),
        pairs: Vec::new(),
        skipped: Vec::new(),
        nq: 0,
        nv: 0,
        na: 0,
        qpos0: Vec::new(),
        varied: Vec::new(),
        nderived: 0,
        ignored: Vec::new(),
        added: Vec::new(),
        sources: Vec::new(),
        naming: Naming::default(),
    };
    let mut names = Names::new(root);
    let mut assets = asset::Assets::new(root, settings, classes)?;
    let mut slots = keyframe::Slots::default();
    let needed = needed_geoms(root);
    let mut places = vec![root.at];
    let mut with_children = Vec::new();
    let mut spring_dampers = Vec::new();
    let mut ranges = transmission::Ranges::default();
    let sections: Vec<_> = root.children_named("worldbody").collect();
    tree::TreeReader {
        settings,
        classes,
        materials: &materials,
        assets: &mut assets,
        needed: &needed,
        model: &mut model,
        names: &mut names,
        unfelt,
        notes,
        with_children: &mut with_children,
        places: &mut places,
        spring_dampers: &mut spring_dampers,
        ranges: &mut ranges.joints,
        slots: &mut slots.joints,
    }
    .world(&sections)?;
    assets.unused(&model, notes);
    if let Some(looks) = &mut unfelt.looks {
        for mesh in &model.meshes {
            looks.meshes.push(drawn(mesh, &mut assets, root.at));
        }
    }
    for (mesh, fault) in assets.wrong_coords.drain(..) {
        unfelt.no_coordinates(&mesh, fault);
    }
    model.sources = assets.files;
    if compiler.fuse_static {
        fuse::fuse(&mut model, root, &mut places, unfelt)?;
        content::align_fused(&mut model, unfelt, &with_children);
    }
    model.skipped = unfelt.numbers();
    mass::check(&model, &places)?;
    mass::scale(&mut model, compiler.total_mass);

    for e in root.children_named("contact") {
        contact::read(e, |e| Ok(classes.of(e, defaults::MAIN)?.pair.clone()), &mut model)?;
    }
    for e in root.children_named("tendon").flat_map(|t| &t.children) {
        let mut spec = classes.of(e, defaults::MAIN)?.tendon.clone();
        spec.read(e)?;
        let name = names.tendon.take(e, "tendon", model.tendons.len())?;
        let tendon = spec.resolve(e, settings.of(e.at), name, &model)?;
        ranges.tendons.push(spec.given_range());
        model.tendons.push(tendon);
    }
    derive::tendon_lengths(&mut model);
    read_equalities(root, classes, &mut names, &mut model)?;
    let mut reflected = Vec::new();
    for e in root.children_named("actuator").flat_map(|a| &a.children) {
        let mut spec = classes.of(e, defaults::MAIN)?.actuator.clone();
        spec.read(e)?;
        let name = names.actuator.take(e, "actuator", model.actuators.len())?;
        let actuator = spec.resolve(e, settings.of(e.at), name, &model, &ranges)?;
        let more = spec.reflected(e, &actuator)?;
        more.add_armature(&mut model);
        reflected.push(more);
        if let Some(slot) = e.slot {
            slots.actuators.insert(slot, model.actuators.len());
        }
        model.na += usize::from(actuator.act_adr.is_some());
        model.actuators.push(actuator);
    }
    derive::spring_dampers(&mut model, &spring_dampers)?;
    for more in reflected {
        more.add_damping(&mut model);
    }
    for e in root.children_named("actuator") {
        derive::damping_ratios(&mut model, e.at)?;
        muscle::accelerations(&mut model, e.at)?;
    }
    for e in root.children_named("sensor") {
        let sensors = sensor::read(e, &model);
        model.sensors.extend(sensors);
    }
    for e in root.children_named("keyframe").flat_map(|k| &k.children) {
        let name = names.key.take(e, "key", model.keyframes.len())?;
        let key = keyframe::read(e, name, &model, whole.grown)?;
        model.keyframes.push(key);
    }
    for pending in &whole.pending {
        let name = names.key.take(&pending.key, "key", model.keyframes.len())?;
        let key = keyframe::attached(pending, name, &slots, &model)?;
        model.keyframes.push(key);
    }
    Ok(model)
}

/// The triangles of a mesh in its own frame; its hull's if they cannot be drawn.
fn drawn(mesh: &Mesh, assets: &mut asset::Assets, at: At) -> Surface {
    let Ok(mut surface) = assets.triangles(&mesh.name, at) else {
        return mesh.hull();
    };
    let own = Pose { pos: mesh.pos, quat: mesh.quat };
    let own = own.inverse();
    for v in &mut surface.vertices {
        *v = own.point(v.map(f64::from)).map(|x| x as f32);
    }
    surface
}

fn read_equalities(
    root: &Element,
    classes: &defaults::Classes,
    names: &mut Names,
    model: &mut Model,
) -> Read<()> {
    let mut read = Vec::new();
    let rest = Rest::new(model, &model.qpos0);
    for e in root.children_named("equality").flat_map(|s| &s.children) {
        let mut spec = classes.of(e, defaults::MAIN)?.equality.clone();
        spec.read(e)?;
        let name = names.equality.take(e, "equality", read.len())?;
        read.push(spec.resolve(e, name, model, &rest)?);
    }
    model.equalities = read;
    Ok(())
}

fn world() -> Body {
    Body {
        name: "world".to_string(),
        parent: 0,
        pos: [0.0; 3],
        quat: IDENTITY,
        mass: 0.0,
        ipos: [0.0; 3],
        iquat: IDENTITY,
        inertia: [0.0; 3],
        joints: 0..0,
        geoms: 0..0,
        mocap: false,
        gravcomp: 0.0,
        simple: true,
        weld: 0,
        more_seen: false,
    }
}

/// Names of geoms that contact pairs refer to.
fn needed_geoms(root: &Element) -> BTreeSet<&str> {
    root.children_named("contact")
        .flat_map(|c| c.children_named("pair"))
        .flat_map(|p| [p.text("geom1"), p.text("geom2")])
        .flatten()
        .collect()
}

#[cfg(test)]
mod tests;
