//! `extends = "base.toml"` and `include = ["part.toml"]`: other files under a configuration.
//!
//! The base comes first, then the parts in their order, then the file itself. Tables are
//! merged key by key. Lists of tables whose elements have names are merged by name: an
//! element of a known name is changed key by key, others are added behind. Everything else is
//! replaced. At the end elements with `enabled = false` are dropped.

use super::error::Diagnostic;
use super::source::{self, Entry, Node, Origin, Sources, Value};
use ostler_base::names::nearest;
use std::collections::{HashMap, HashSet};
use std::path::{Path, PathBuf};

const EXTENDS: &str = "extends";
const INCLUDE: &str = "include";
const ENABLED: &str = "enabled";
/// Most files under a configuration: those that have been read, and those that wait for what they
/// ask for. Each waits on the stack.
const MOST_FILES: usize = 64;
/// Most bytes of all of them.
const MOST_BYTES: usize = 8 << 20;
/// What a file says about itself, and another one does not take over.
const OWN: [&str; 2] = ["name", "description"];
/// Paths that are relative to the file that has them: tables and key.
const PATHS: [[&str; 2]; 2] = [["task", "robot"], ["task", "robot_folder"]];

/// Puts the files that `root`, the document at `path`, asks for under it. Returns them in the
/// order in which they count, each as it is reached from the working directory.
///
/// # Errors
/// A file cannot be read, is no TOML, or asks for itself.
pub(crate) fn expand(
    root: &mut Node,
    sources: &mut Sources,
    path: &Path,
) -> Result<Vec<PathBuf>, Diagnostic> {
    let mut files = Files {
        sources,
        main: path.parent().unwrap_or(Path::new("")).to_path_buf(),
        open: vec![whole(path)],
        all: Vec::new(),
        bytes: 0,
    };
    files.under(root, Path::new(""))?;
    Ok(files.all)
}

/// A name by which a file is recognised.
fn whole(path: &Path) -> PathBuf {
    std::fs::canonicalize(path).unwrap_or_else(|_| path.to_path_buf())
}

struct Files<'a> {
    sources: &'a mut Sources,
    /// The folder of the configuration.
    main: PathBuf,
    /// Files that are being read, the outermost first.
    open: Vec<PathBuf>,
    all: Vec<PathBuf>,
    bytes: usize,
}

/// A file that is asked for.
struct Wanted {
    path: String,
    origin: Origin,
}

impl Files<'_> {
    /// Puts what `node` asks for under it. `folder`: that of its file, from the main one's.
    fn under(&mut self, node: &mut Node, folder: &Path) -> Result<(), Diagnostic> {
        let wanted = self.wanted(node)?;
        let mut base: Option<Node> = None;
        for want in wanted {
            let part = self.read(&want, folder)?;
            match &mut base {
                Some(base) => merge(base, part),
                None => base = Some(part),
            }
        }
        if let Some(mut base) = base {
            let own = std::mem::replace(node, base.clone());
            merge(&mut base, own);
            *node = base;
        }
        Ok(())
    }

    /// Takes `extends` and `include` out.
    fn wanted(&self, node: &mut Node) -> Result<Vec<Wanted>, Diagnostic> {
        let mut all = Vec::new();
        for key in [EXTENDS, INCLUDE] {
            let Some(entry) = take(node, key) else {
                continue;
            };
            let items = match entry.node.value {
                Value::Array(items) if key == INCLUDE => items,
                _ => vec![entry.node],
            };
            for item in items {
                let Value::Str(path) = item.value else {
                    let kind = item.value.kind();
                    let message = format!("{key} takes the path of a file, this is {kind}");
                    return Err(Diagnostic::at(self.sources, &item.origin, message));
                };
                all.push(Wanted { path, origin: item.origin });
            }
        }
        Ok(all)
    }

    /// A file with all that it asks for.
    fn read(&mut self, want: &Wanted, folder: &Path) -> Result<Node, Diagnostic> {
        let refuse = |sources: &Sources, message: String| {
            Err(Diagnostic::at(sources, &want.origin, message))
        };
        // The first that is open is the configuration itself.
        if self.all.len() + self.open.len() > MOST_FILES {
            let message = format!("more than {MOST_FILES} files, with those that they extend");
            return refuse(self.sources, message);
        }
        // Messages show lines of such files, which of others are nobody's business.
        if Path::new(&want.path).extension().is_none_or(|end| end != "toml") {
            let message =
                format!("\"{}\" is no configuration: it does not end in .toml", want.path);
            return refuse(self.sources, message);
        }
        // As it is written from the main file's folder.
        let relative = folder.join(&want.path);
        let path = self.main.join(&relative);
        let identity = whole(&path);
        if let Some(at) = self.open.iter().position(|open| *open == identity) {
            let name = |p: &PathBuf| {
                let name = p.file_name().unwrap_or_default();
                name.to_string_lossy().into_owned()
            };
            let mut round: Vec<String> = self.open[at..].iter().map(name).collect();
            round.extend(round.first().cloned());
            let message = format!("a file cannot be part of itself: {}", round.join(" -> "));
            return refuse(self.sources, message);
        }
        // Nor of what a link leads to.
        if identity.extension().is_none_or(|end| end != "toml") {
            let message = format!("\"{}\" leads to a file that does not end in .toml", want.path);
            return refuse(self.sources, message);
        }
        let text = match source::read(&path) {
            Ok(text) => text,
            Err(why) => {
                let mut found = Diagnostic::at(self.sources, &want.origin, why.message);
                if let Some(near) = near(&path) {
                    found = found.help(format!("did you mean \"{near}\"?"));
                } else {
                    let help = "paths are relative to the file that has them";
                    found = found.help(help);
                }
                return Err(found);
            }
        };
        self.bytes += text.len();
        if self.bytes > MOST_BYTES {
            let message = format!("more than {MOST_BYTES} bytes are too many for a configuration");
            return refuse(self.sources, message);
        }
        let label = path.display().to_string();
        let source = self.sources.add(&label, &text, false);
        let mut node = self.sources.parse(source)?;
        for key in OWN {
            take(&mut node, key);
        }
        let folder = relative.parent().unwrap_or(Path::new("")).to_path_buf();
        move_paths(&mut node, &folder);
        self.open.push(identity);
        self.under(&mut node, &folder)?;
        self.open.pop();
        self.all.push(path);
        Ok(node)
    }
}

/// A file in the same folder with a similar name.
fn near(path: &Path) -> Option<String> {
    let wanted = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
    let entries = std::fs::read_dir(folder.unwrap_or(Path::new("."))).ok()?;
    // A folder may hold anything: some hundreds are enough for a guess.
    let names = entries.take(512).filter_map(|e| e.ok()?.file_name().into_string().ok());
    let names: Vec<String> = names.filter(|n| n.ends_with(".toml")).collect();
    nearest(wanted, names.iter().map(String::as_str)).map(String::from)
}

/// Takes a key out of a table.
fn take(node: &mut Node, key: &str) -> Option<Entry> {
    let Value::Table(entries) = &mut node.value else {
        return None;
    };
    let at = entries.iter().position(|e| e.key == key)?;
    Some(entries.remove(at))
}

/// Paths of a file in `folder` become relative to the main file's.
fn move_paths(node: &mut Node, folder: &Path) {
    if folder.as_os_str().is_empty() {
        return;
    }
    for [table, key] in PATHS {
        let Value::Table(entries) = &mut node.value else {
            return;
        };
        let inner = entries.iter_mut().find(|e| e.key == table);
        let Some(Value::Table(keys)) = inner.map(|e| &mut e.node.value) else {
            continue;
        };
        let entry = keys.iter_mut().find(|e| e.key == key);
        if let Some(Value::Str(path)) = entry.map(|e| &mut e.node.value)
            && !path.is_empty()
        {
            *path = folder.join(&*path).to_string_lossy().into_owned();
        }
    }
    let Value::Table(entries) = &mut node.value else {
        return;
    };
    let task = entries.iter_mut().find(|e| e.key == "task");
    let Some(Value::Table(keys)) = task.map(|e| &mut e.node.value) else {
        return;
    };
    let native = keys.iter_mut().find(|e| e.key == "native");
    let Some(Value::Array(terms)) = native.map(|e| &mut e.node.value) else {
        return;
    };
    for term in terms {
        let Value::Table(keys) = &mut term.value else {
            continue;
        };
        let file = keys.iter_mut().find(|e| e.key == "file");
        if let Some(Value::Str(path)) = file.map(|e| &mut e.node.value)
            && !path.is_empty()
        {
            *path = folder.join(&*path).to_string_lossy().into_owned();
        }
    }
}

/// Puts `over` over `base`: tables key by key, lists of named elements by their names; an empty
/// list empties the other.
pub(super) fn merge(base: &mut Node, over: Node) {
    let named = |items: &[Node]| items.iter().all(|n| identity(n).is_some());
    match (&mut base.value, over.value) {
        (Value::Table(base), Value::Table(over)) => {
            let keys = base.iter().enumerate();
            let places: HashMap<String, usize> = keys.map(|(i, e)| (e.key.clone(), i)).collect();
            for entry in over {
                match places.get(&entry.key) {
                    Some(&at) => {
                        base[at].key_origin = entry.key_origin;
                        merge(&mut base[at].node, entry.node);
                    }
                    None => base.push(entry),
                }
            }
        }
        (Value::Array(base), Value::Array(over))
            if !base.is_empty() && !over.is_empty() && named(base) && named(&over) =>
        {
            let name = |n: &Node| identity(n).map(|(a, b)| (a.to_string(), b.to_string()));
            // Terms of one name are of different agents; one alone is meant without them, too.
            let mut places = HashMap::new();
            let mut of_name: HashMap<_, Vec<usize>> = HashMap::new();
            for (i, item) in base.iter().enumerate() {
                places.entry((name(item), agents(item))).or_insert(i);
                of_name.entry(name(item)).or_default().push(i);
            }
            let mut over_of_name: HashMap<_, usize> = HashMap::new();
            over.iter().for_each(|item| *over_of_name.entry(name(item)).or_default() += 1);
            let mut seen = HashSet::new();
            for item in over {
                // Two of one file are not one: both stay, and the name is used twice.
                if !seen.insert((name(&item), agents(&item))) {
                    base.push(item);
                    continue;
                }
                let name = name(&item);
                let alone = match of_name.get(&name).map(Vec::as_slice) {
                    Some(&[one]) if over_of_name.get(&name) == Some(&1) => Some(one),
                    _ => None,
                };
                match places.get(&(name, agents(&item))).copied().or(alone) {
                    Some(at) => merge(&mut base[at], item),
                    None => base.push(item),
                }
            }
        }
        (here, value) => *here = value,
    }
    base.origin = over.origin;
}

/// What tells an element of a list from the others: its `name` (of observations with their
/// group), or the `key` of a schedule.
fn identity(node: &Node) -> Option<(&str, &str)> {
    let text = |key: &str| match node.get(key).map(|e| &e.node.value) {
        Some(Value::Str(s)) => Some(s.as_str()),
        _ => None,
    };
    let group = text("group").filter(|g| *g != "policy");
    Some((text("name").or_else(|| text("key"))?, group.unwrap_or("")))
}

/// The agents that an element is of, where it says so: two may then have one name.
fn agents(node: &Node) -> Vec<String> {
    let Some(Value::Array(all)) = node.get("agents").map(|e| &e.node.value) else {
        return Vec::new();
    };
    let text = |n: &Node| match &n.value {
        Value::Str(s) => Some(s.clone()),
        _ => None,
    };
    all.iter().filter_map(text).collect()
}

/// Drops elements of lists with `enabled = false`, and the key from the others.
pub(super) fn drop_disabled(node: &mut Node) {
    match &mut node.value {
        Value::Table(entries) => entries.iter_mut().for_each(|e| drop_disabled(&mut e.node)),
        Value::Array(items) => {
            let off = |n: &Node| {
                let key = n.get(ENABLED).map(|e| &e.node.value);
                matches!(key, Some(Value::Bool(false)))
            };
            items.retain(|n| !off(n));
            for item in items {
                if matches!(item.get(ENABLED).map(|e| &e.node.value), Some(Value::Bool(true))) {
                    take(item, ENABLED);
                }
                drop_disabled(item);
            }
        }
        _ => {}
    }
}
