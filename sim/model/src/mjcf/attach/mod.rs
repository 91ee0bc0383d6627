//! `<attach>` and `<replicate>`: a model and the models it attaches become one tree.
//!
//! The rest of the reader sees `<frame>`s that hold copies with names of their own, and
//! longer sections. Order, names and the choice of elements are MuJoCo's: sections are read
//! before the bodies; a copy takes with it, from the sections as they are at that
//! moment, what refers to it.

mod find;
mod grow;
mod keys;
mod limits;
mod names;
mod refs;
mod sections;
pub(super) mod whole;

use super::compiler::Compiler;
use super::defaults::Classes;
use super::element::{Element, Fault, Note, Read};
use super::error::MjcfError;
use super::options;
use super::reach::Reach;
use super::settings::Settings;
use super::source::{MAX_FILES, Sources, read_text};
use super::{check, files, schema, urdf};
use crate::Options;
use find::{find_all, missing};
use grow::Grower;
use limits::Limits;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use whole::Whole;

/// Models attached by attached models, at most.
const MAX_NESTING: usize = 20;

/// Reads models and their attached models.
pub(super) struct Assembler<'a> {
    pub sources: &'a mut Sources,
    pub settings: &'a mut Settings,
    pub notes: &'a mut Vec<Note>,
    /// Files that assets name.
    pub files: Vec<PathBuf>,
    /// The first file is a URDF.
    pub urdf: bool,
    /// Models that are being read: one cannot attach itself.
    open: Vec<PathBuf>,
    limits: Limits,
}

impl<'a> Assembler<'a> {
    pub(crate) fn new(
        sources: &'a mut Sources,
        settings: &'a mut Settings,
        notes: &'a mut Vec<Note>,
    ) -> Self {
        Self {
            sources,
            settings,
            notes,
            files: Vec::new(),
            urdf: false,
            open: Vec::new(),
            limits: Limits::new(),
        }
    }

    /// The model that `text` in `path` describes.
    pub(crate) fn model(
        &mut self,
        path: &Path,
        text: String,
        reach: &Reach,
    ) -> Result<Whole, MjcfError> {
        let root = self.sources.parse(path, text, reach)?;
        let (mut root, compiler) =
            self.understand(root, reach).map_err(|f| self.sources.error(f))?;
        let mut attaches = Vec::new();
        find_all(&root, "attach", &mut attaches);
        attaches.retain(|a| a.text("model").is_some());
        let foreign: BTreeSet<&str> = attaches.iter().filter_map(|a| a.text("model")).collect();
        if let Some(first) = attaches.first().filter(|_| !compiler.own_options) {
            let why = "attached models leave compiler/conflict as \"warning\" here: this file's \
                       <option> holds; write into it what is wanted and leave conflict out";
            return Err(self.sources.error(Fault::new(first.at, why)));
        }
        let mut models = BTreeMap::new();
        let assets: Vec<Element> =
            root.children_named("asset").flat_map(|a| a.children_named("model")).cloned().collect();
        for e in &assets {
            match e.text("name").filter(|n| !foreign.contains(n)) {
                Some(_) => self.unused(path, e, reach),
                None if foreign.is_empty() => self.unused(path, e, reach),
                None => {
                    let (name, model) = self.attached(path, e, reach)?;
                    match foreign.contains(name.as_str()) {
                        false => self.note_unused(e),
                        true if models.insert(name.clone(), model).is_some() => {
                            let why = format!("there are two models called \"{name}\"");
                            return Err(self.sources.error(Fault::new(e.at, why)));
                        }
                        true => {}
                    }
                }
            }
        }
        for attr in attaches.iter().filter_map(|a| a.attr("model")) {
            if !models.contains_key(&attr.value) {
                let names = assets.iter().filter_map(|e| e.text("name"));
                let names = names.chain(models.keys().map(String::as_str));
                let why = missing("<model>", &attr.value, names);
                return Err(self.sources.error(Fault::new(attr.value_at(0), why)));
            }
        }
        let read = self.whole(&mut root, &compiler, models);
        read.map_err(|f| self.sources.error(f))
    }

    /// Checks the file and reads how it is to be understood.
    fn understand(&mut self, root: Element, reach: &Reach) -> Read<(Element, Compiler)> {
        let mut compiler = Compiler::default();
        // Faults of a URDF's translation need no settings, those of the model do.
        let root = match root.name.as_str() {
            "robot" => {
                self.urdf |= self.open.is_empty();
                urdf::translate(&root, reach, self.notes)?
            }
            _ => root,
        };
        if root.name != "mujoco" {
            let hint = match root.name.as_str() {
                "mujocoinclude" => "; this file is meant to be included by another",
                _ => "",
            };
            let why = format!("an MJCF file starts with <mujoco>, not <{}>{hint}", root.name);
            return Err(Fault::new(root.at, why));
        }
        let checked = check::check(&root, &schema::MUJOCO, self.notes);
        let read = root.children_named("compiler").try_for_each(|e| compiler.read(e));
        // A model with faults may be one that nothing attaches: its files are known.
        let files = self.sources.paths();
        self.settings.add(&files, compiler.clone(), reach.clone());
        self.files.extend(files::named(&root, self.settings));
        checked.and(read)?;
        Ok((root, compiler))
    }

    fn whole(
        &mut self,
        root: &mut Element,
        compiler: &Compiler,
        mut models: BTreeMap<String, Whole>,
    ) -> Read<Whole> {
        let mut options = Options::default();
        for e in root.children_named("option") {
            options::read(&mut options, e)?;
        }
        let mut classes = Classes::new();
        for e in root.children_named("default") {
            classes.read(e)?;
        }
        let mut found = Vec::new();
        find_all(root, "attach", &mut found);
        find_all(root, "replicate", &mut found);
        let root = std::mem::replace(root, Element::made("mujoco", root.at));
        if found_none(&root) {
            return Ok(Whole { root, classes, options, pending: Vec::new(), grown: false });
        }
        self.compare_options(&root, &options, &models);
        Grower::new(compiler, classes, &mut models, self.notes, &mut self.limits)
            .grow(root, options)
    }

    /// The model an `<asset><model>` names, and its name.
    fn attached(
        &mut self,
        path: &Path,
        e: &Element,
        reach: &Reach,
    ) -> Result<(String, Whole), MjcfError> {
        let file = e.required("file").map_err(|f| self.sources.error(f))?;
        let at = e.attr("file").map_or(e.at, |a| a.value_at(0));
        let refuse = |s: &Sources, why: String| s.error(Fault::new(at, why));
        let file = reach.file(file, None).map_err(|why| refuse(self.sources, why))?;
        let real = |p: &Path| p.canonicalize().unwrap_or_else(|_| p.to_path_buf());
        self.open.push(real(path));
        if self.open.contains(&real(&file)) {
            let why = format!("{} attaches itself", file.display());
            return Err(refuse(self.sources, why));
        }
        if self.sources.count() >= MAX_FILES || self.open.len() > MAX_NESTING {
            let why = format!("more than {MAX_FILES} files, or models attached too deep");
            return Err(refuse(self.sources, why));
        }
        let text = read_text(&file).map_err(|error| {
            refuse(self.sources, format!("cannot read {}: {error}", file.display()))
        })?;
        let model = self.model(&file, text, &reach.of(&file))?;
        self.open.pop();
        let name = e.text("name").or(model.root.text("model"));
        let name = name.ok_or_else(|| {
            let why = "this model has no name; give it one: name=\"...\"";
            self.sources.error(Fault::new(e.at, why))
        })?;
        Ok((name.to_string(), model))
    }

    /// A model that nothing attaches: MuJoCo opens its files, so they are kept, whatever is
    /// in them.
    fn unused(&mut self, path: &Path, e: &Element, reach: &Reach) {
        let (notes, open) = (self.notes.len(), self.open.len());
        let limits = self.limits;
        let _ = self.attached(path, e, reach);
        self.limits = limits;
        self.notes.truncate(notes);
        self.open.truncate(open);
        self.note_unused(e);
    }

    fn note_unused(&mut self, e: &Element) {
        let name = e.text("name").or(e.text("file")).unwrap_or_default();
        self.notes.push(Note {
            at: e.at,
            what: format!("<model> \"{name}\""),
            why: "no <attach> uses it",
        });
    }

    /// Lists attached models that were made for other options.
    fn compare_options(
        &mut self,
        root: &Element,
        options: &Options,
        models: &BTreeMap<String, Whole>,
    ) {
        for (name, model) in models {
            let other = model.root.children_named("option").next();
            if let Some(other) = other.filter(|_| model.options != *options) {
                debug_assert_ne!(root.at.file(), other.at.file());
                self.notes.push(Note {
                    at: other.at,
                    what: format!("<option> of model \"{name}\""),
                    why: "the options of the file that attaches it hold",
                });
            }
        }
    }
}

fn found_none(root: &Element) -> bool {
    let mut found = Vec::new();
    find_all(root, "attach", &mut found);
    find_all(root, "replicate", &mut found);
    found.is_empty()
}
