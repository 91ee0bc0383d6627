//! Puts attached subtrees and replicas into a model's tree.

use super::super::compiler::Compiler;
use super::super::defaults::{Classes, MAIN};
use super::super::element::{Element, Fault, MAX_DEPTH, Note, Read};
use super::find::{at_target, everything, find, find_all, height, missing, target, words};
use super::keys;
use super::limits::{Limits, Size, size};
use super::names::{Names, Naming};
use super::sections::Sections;
use super::whole::{Pending, Whole};
use crate::rotation::{Pose, normalized};
use crate::{Options, Vec3};
use std::collections::{BTreeMap, BTreeSet};

/// A body or frame that can be copied, with the class around it.
type Found = (Element, String);

/// One model while it grows, in the order of its file.
pub(super) struct Grower<'a> {
    compiler: &'a Compiler,
    classes: Classes,
    models: &'a mut BTreeMap<String, Whole>,
    notes: &'a mut Vec<Note>,
    limits: &'a mut Limits,
    /// The part of the tree that was read, and all sections.
    names: Names,
    sections: Sections,
    assets: Vec<Element>,
    pending: Vec<Pending>,
    /// Attachments from the file's own tree: wanted, and as far as read.
    wanted: BTreeSet<(&'static str, String)>,
    own: BTreeMap<(&'static str, String), Found>,
}

impl<'a> Grower<'a> {
    pub(crate) fn new(
        compiler: &'a Compiler,
        classes: Classes,
        models: &'a mut BTreeMap<String, Whole>,
        notes: &'a mut Vec<Note>,
        limits: &'a mut Limits,
    ) -> Self {
        Self {
            compiler,
            classes,
            models,
            notes,
            limits,
            names: Names::default(),
            sections: Sections::default(),
            assets: Vec::new(),
            pending: Vec::new(),
            wanted: BTreeSet::new(),
            own: BTreeMap::new(),
        }
    }

    /// The whole of the model `root`.
    pub(crate) fn grow(mut self, mut root: Element, options: Options) -> Read<Whole> {
        let mut attaches = Vec::new();
        find_all(&root, "attach", &mut attaches);
        for e in attaches.iter().filter(|e| e.text("model").is_none()) {
            self.wanted.extend(target(e)?);
        }
        self.sections = Sections::take(&mut root, &mut self.names);
        for section in root.children.iter_mut().filter(|c| c.name == "worldbody") {
            self.contents(section, MAIN, 1)?;
        }
        if let Some(first) = self.assets.first() {
            let mut assets = Element::made("asset", first.at);
            assets.children = self.assets;
            root.children.push(assets);
        }
        self.sections.put(&mut root);
        Ok(Whole { root, classes: self.classes, options, pending: self.pending, grown: true })
    }

    /// Replaces the attached and replicated elements in `parent`.
    fn contents(&mut self, parent: &mut Element, class: &str, depth: usize) -> Read<()> {
        let children = std::mem::take(&mut parent.children);
        for mut child in children {
            match child.name.as_str() {
                "attach" => {
                    let piece = self.attach(&child, depth)?;
                    parent.children.push(piece);
                }
                "replicate" => {
                    let copies = self.replicate(child, class, depth)?;
                    parent.children.extend(copies);
                }
                kind @ ("body" | "frame") => {
                    let kind = if kind == "body" { "body" } else { "frame" };
                    self.names.add_element(&child);
                    let inner = child.text("childclass").unwrap_or(class).to_string();
                    self.contents(&mut child, &inner, depth + 1)?;
                    let key = (kind, child.text("name").unwrap_or_default().to_string());
                    if self.wanted.contains(&key) {
                        self.limits.take(size(&child), child.at)?;
                        self.own.insert(key, (child.clone(), class.to_string()));
                    }
                    parent.children.push(child);
                }
                _ => {
                    self.names.add_element(&child);
                    parent.children.push(child);
                }
            }
        }
        Ok(())
    }

    /// A frame with the content of an `<attach>`.
    fn attach(&mut self, e: &Element, depth: usize) -> Read<Element> {
        let prefix = e.attr("prefix").ok_or_else(|| {
            let why = "<attach> needs prefix=\"...\": what the names of the copy start with";
            Fault::new(e.at, why)
        })?;
        let mut naming =
            Naming { prefix: prefix.value.clone(), suffix: String::new(), classes: None };
        let Some(name) = e.text("model") else {
            return self.attach_own(e, &naming, depth);
        };
        let Some(mut model) = self.models.remove(name) else {
            let names = self.models.keys().map(String::as_str);
            let why = missing("<model>", name, names);
            let at = e.attr("model").map_or(e.at, |a| a.value_at(0));
            return Err(Fault::new(at, why));
        };
        // Two models may come with the same prefix, and with none.
        let prefix = &naming.prefix;
        let mut classes = prefix.clone();
        while classes.is_empty() || self.classes.get(&format!("{classes}{MAIN}"), e.at).is_ok() {
            classes.push_str("attached/");
        }
        self.classes.adopt(&model.classes, &classes, prefix);
        naming.classes = Some(classes);
        let piece = self.foreign(e, &mut model, &naming, depth);
        self.models.insert(name.to_string(), model);
        piece
    }

    fn foreign(
        &mut self,
        e: &Element,
        model: &mut Whole,
        naming: &Naming,
        depth: usize,
    ) -> Read<Element> {
        let pending = keys::pending(model, &naming.prefix, self.limits)?;
        self.pending.extend(pending);
        let (inside, class) = match target(e)? {
            Some((kind, name)) if kind == "body" && name == "world" => {
                let mut world = Element::made("body", e.at);
                world.set("name", "world");
                world.children = everything(&mut model.root);
                (vec![world], MAIN.to_string())
            }
            None => (everything(&mut model.root), MAIN.to_string()),
            Some((kind, name)) => {
                let worlds = model.root.children.iter_mut();
                let mut worlds = worlds.filter(|c| c.name == "worldbody");
                let Some((found, class)) = worlds.find_map(|w| find(w, kind, &name, MAIN)) else {
                    let mut names = Names::default();
                    names.add_tree(&model.root);
                    let why = missing(kind, &name, names.of_kind(kind));
                    let why = format!("{why} in the attached model");
                    return Err(Fault::new(at_target(e), why));
                };
                let piece = found.clone();
                keys::forget(found);
                (vec![piece], class)
            }
        };
        let mut theirs = Sections::take(&mut model.root, &mut Names::default());
        for asset in model.root.children_named("asset").flat_map(|a| &a.children) {
            let kind = asset.name.as_str();
            if matches!(kind, "mesh" | "hfield" | "material" | "texture") {
                let mut asset = asset.clone();
                naming.assets(&mut asset)?;
                self.limits.take(size(&asset), e.at)?;
                self.assets.push(asset);
            }
        }
        let class = naming.class(&class);
        let piece = self.place(e, inside, Some(&class), naming, Some(&mut theirs), depth)?;
        theirs.put(&mut model.root);
        Ok(piece)
    }

    /// A second copy of something in this file.
    fn attach_own(&mut self, e: &Element, naming: &Naming, depth: usize) -> Read<Element> {
        let Some(target) = target(e)? else {
            let why = "<attach> without model needs body=\"...\" or frame=\"...\", something \
                       of this file that stands before";
            return Err(Fault::new(e.at, why));
        };
        let Some((found, class)) = self.own.get(&target).cloned() else {
            let names = self.names.of_kind(target.0);
            let why = missing(target.0, &target.1, names.filter(|n| *n != target.1));
            let why = format!("{why} is complete before this place");
            return Err(Fault::new(at_target(e), why));
        };
        if keys::known(&found) {
            let why = "what has a keyframe of an attached model cannot be attached again; \
                       attach that model again";
            return Err(Fault::new(at_target(e), why));
        }
        self.place(e, vec![found], Some(&class), naming, None, depth)
    }

    /// A frame around `inside`, named anew, and the elements that refer to it.
    fn place(
        &mut self,
        e: &Element,
        inside: Vec<Element>,
        class: Option<&str>,
        naming: &Naming,
        theirs: Option<&mut Sections>,
        depth: usize,
    ) -> Read<Element> {
        let mut frame = Element::made("frame", e.at);
        frame.children = inside;
        self.limits.take(size(&frame), e.at)?;
        if depth + height(&frame) > MAX_DEPTH {
            let why = format!("elements are nested more than {MAX_DEPTH} deep");
            return Err(Fault::new(e.at, why));
        }
        naming.tree(&mut frame);
        if let Some(class) = class {
            frame.set("childclass", class);
        }
        self.names.add_tree(&frame);
        self.sections.copy(theirs, naming, &mut self.names, self.limits, self.notes, e.at)?;
        Ok(frame)
    }

    /// The frames of a `<replicate>`.
    fn replicate(&mut self, mut e: Element, class: &str, depth: usize) -> Read<Vec<Element>> {
        e.required("count")?;
        let mut count = 0;
        e.unsigned("count", &mut count)?;
        let (mut offset, mut euler): (Vec3, Vec3) = ([0.0; 3], [0.0; 3]);
        e.array("offset", &mut offset)?;
        e.array("euler", &mut euler)?;
        let separator = e.text("sep").unwrap_or_default().to_string();
        let digits = count.to_string().len();
        let class = e.text("childclass").unwrap_or(class).to_string();
        if let Some(attr) = e.attr("childclass") {
            self.classes.get(&attr.value, attr.value_at(0))?;
        }
        self.contents(&mut e, &class, depth + 1)?;
        // Refused before anything is copied; each copy is counted where it is placed.
        let inside: Size = e.children.iter().map(size).sum();
        let mut ahead = *self.limits;
        ahead.take(inside.times(count as usize), e.at)?;

        let mut copies = Vec::new();
        let mut pos = [0.0; 3];
        for i in 0..count {
            let quat = self.compiler.euler(euler.map(|x| x * f64::from(i)));
            let quat = normalized(quat).unwrap_or(quat);
            let naming = Naming {
                prefix: String::new(),
                suffix: format!("{separator}{i:0digits$}"),
                classes: None,
            };
            let inside = e.children.clone();
            if i == 0 {
                keys::forget(&mut e);
            }
            let mut frame = self.place(&e, inside, Some(&class), &naming, None, depth)?;
            frame.set("pos", &words(&pos));
            frame.set("quat", &words(&quat));
            copies.push(frame);
            pos = Pose { pos, quat }.point(offset);
        }
        if self.sections.len() > 0 {
            self.limits.look(self.names.len(), e.at)?;
            self.limits.look(self.sections.len(), e.at)?;
        }
        let before = match self.sections.len() {
            0 => Names::default(),
            _ => self.names.clone(),
        };
        e.children.iter().for_each(|c| self.names.remove_tree(c));
        self.sections.forget(&before, &mut self.names);
        let names = &self.names;
        self.own.retain(|(kind, name), _| names.has(kind, name));
        Ok(copies)
    }
}
