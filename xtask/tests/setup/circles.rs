//! Files of a crate that import each other in a loop can be read in no order. There are few, and
//! none is large.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use syn::visit::{self, Visit};

/// Files that a loop may have.
const MOST: usize = 6;

/// The path of a module from its crate's root.
type Module = Vec<String>;

/// What a file defines and names.
#[derive(Default)]
struct File {
    defined: BTreeSet<String>,
    /// Names that `use` brings here, and what they mean; `*` brings all.
    imported: Vec<(String, Vec<String>, bool)>,
    /// Paths in its code.
    named: Vec<Vec<String>>,
}

fn is_test(attrs: &[syn::Attribute]) -> bool {
    attrs.iter().any(|a| {
        a.path().is_ident("cfg")
            && a.parse_args::<syn::Path>().is_ok_and(|only| only.is_ident("test"))
    })
}

impl File {
    fn import(&mut self, tree: &syn::UseTree, before: &[String], public: bool) {
        let with = |name: &syn::Ident| [before, &[name.to_string()]].concat();
        match tree {
            syn::UseTree::Path(p) => self.import(&p.tree, &with(&p.ident), public),
            syn::UseTree::Group(g) => {
                g.items.iter().for_each(|tree| self.import(tree, before, public));
            }
            syn::UseTree::Name(n) if n.ident == "self" => {
                let name = before.last().cloned().unwrap_or_default();
                self.imported.push((name, before.to_vec(), public));
            }
            syn::UseTree::Name(n) => {
                self.imported.push((n.ident.to_string(), with(&n.ident), public));
            }
            syn::UseTree::Rename(r) => {
                self.imported.push((r.rename.to_string(), with(&r.ident), public));
            }
            syn::UseTree::Glob(_) => self.imported.push(("*".into(), before.to_vec(), public)),
        }
    }
}

impl<'a> Visit<'a> for File {
    fn visit_item(&mut self, item: &'a syn::Item) {
        let (attrs, name) = match item {
            syn::Item::Use(u) => {
                if !is_test(&u.attrs) {
                    self.import(&u.tree, &[], !matches!(u.vis, syn::Visibility::Inherited));
                }
                return;
            }
            syn::Item::Fn(x) => (&x.attrs, Some(&x.sig.ident)),
            syn::Item::Struct(x) => (&x.attrs, Some(&x.ident)),
            syn::Item::Enum(x) => (&x.attrs, Some(&x.ident)),
            syn::Item::Union(x) => (&x.attrs, Some(&x.ident)),
            syn::Item::Trait(x) => (&x.attrs, Some(&x.ident)),
            syn::Item::Type(x) => (&x.attrs, Some(&x.ident)),
            syn::Item::Const(x) => (&x.attrs, Some(&x.ident)),
            syn::Item::Static(x) => (&x.attrs, Some(&x.ident)),
            syn::Item::Mod(x) => (&x.attrs, x.content.is_some().then_some(&x.ident)),
            syn::Item::Impl(x) => (&x.attrs, None),
            syn::Item::Macro(x) => (&x.attrs, x.ident.as_ref()),
            _ => return visit::visit_item(self, item),
        };
        if !is_test(attrs) {
            self.defined.extend(name.map(ToString::to_string));
            visit::visit_item(self, item);
        }
    }

    fn visit_path(&mut self, path: &'a syn::Path) {
        if path.leading_colon.is_none() {
            self.named.push(path.segments.iter().map(|s| s.ident.to_string()).collect());
        }
        visit::visit_path(self, path);
    }

    // `pub(in path)` imports nothing.
    fn visit_visibility(&mut self, _: &'a syn::Visibility) {}
}

/// The files of a crate.
struct Crate(BTreeMap<Module, File>);

impl Crate {
    fn read(src: &Path) -> Self {
        let mut files = BTreeMap::new();
        let mut folders = vec![src.to_path_buf()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(&folder).unwrap() {
                let path = entry.unwrap().path();
                let stem = path.file_stem().unwrap().to_string_lossy().into_owned();
                // Tests may know everything.
                if stem.ends_with("tests") || path.starts_with(src.join("bin")) {
                } else if path.is_dir() {
                    folders.push(path);
                } else if path.extension().is_some_and(|e| e == "rs") {
                    let below = path.strip_prefix(src).unwrap().with_extension("");
                    let mut module: Module =
                        below.iter().map(|p| p.to_string_lossy().into_owned()).collect();
                    if ["mod", "lib"].contains(&stem.as_str()) {
                        module.pop();
                    }
                    let text = std::fs::read_to_string(&path).unwrap();
                    let parsed = syn::parse_file(&text);
                    let mut file = File::default();
                    file.visit_file(&parsed.unwrap_or_else(|e| panic!("{}: {e}", path.display())));
                    files.insert(module, file);
                }
            }
        }
        Self(files)
    }

    /// A path from the crate's root; none where it leads out of the crate.
    fn absolute(&self, module: &Module, path: &[String]) -> Option<Vec<String>> {
        let ups = path.iter().take_while(|p| *p == "super").count();
        match path.first()?.as_str() {
            "crate" => Some(path[1..].to_vec()),
            "self" => Some([module, &path[1..]].concat()),
            "super" => {
                let end = module.len().checked_sub(ups)?;
                Some([&module[..end], &path[ups..]].concat())
            }
            first => {
                let own = [module.as_slice(), &[first.to_string()]].concat();
                self.0.contains_key(&own).then(|| [module, path].concat())
            }
        }
    }

    /// The file that defines what a path from the root means, through what others show again.
    fn file_of(&self, path: &[String], depth: usize) -> Option<Module> {
        let longest = (0..=path.len()).rev().find(|k| self.0.contains_key(&path[..*k]))?;
        let (module, rest) = (path[..longest].to_vec(), &path[longest..]);
        let file = &self.0[&module];
        let Some(name) = rest.first().filter(|n| !file.defined.contains(*n)) else {
            return Some(module);
        };
        for (shown, meant, public) in &file.imported {
            if *public && depth < 8 && (shown == name || shown == "*") {
                let all = if shown == "*" { [meant, rest].concat() } else { meant.clone() };
                let found = self.absolute(&module, &all).and_then(|p| self.file_of(&p, depth + 1));
                if let Some(found) = found
                    && (shown != "*" || self.0[&found].defined.contains(name))
                {
                    return Some(found);
                }
            }
        }
        Some(module)
    }

    /// The files that one needs.
    fn needs(&self, module: &Module) -> BTreeSet<Module> {
        let file = &self.0[module];
        let mut paths = Vec::new();
        for (_, path, public) in &file.imported {
            // What it shows of its own folder is no need.
            let own = self.absolute(module, path).is_some_and(|p| p.starts_with(module));
            if !(*public && own) {
                paths.push(path.clone());
            }
        }
        for path in file.named.iter().filter(|p| p.len() > 1) {
            let brought = file.imported.iter().find(|(name, ..)| *name == path[0]);
            paths.push(match brought {
                Some((_, meant, _)) => [meant, &path[1..]].concat(),
                None => path.clone(),
            });
        }
        let found = paths.iter().filter_map(|p| self.absolute(module, p));
        let files = found.filter_map(|p| self.file_of(&p, 0));
        files.filter(|f| f != module).collect()
    }

    /// Loops of files, the largest first.
    fn circles(&self) -> Vec<BTreeSet<Module>> {
        let mut reached: BTreeMap<&Module, BTreeSet<Module>> = BTreeMap::new();
        let needs: BTreeMap<&Module, _> = self.0.keys().map(|m| (m, self.needs(m))).collect();
        for module in self.0.keys() {
            let mut seen = BTreeSet::new();
            let mut next = vec![module];
            while let Some(at) = next.pop() {
                next.extend(needs[at].iter().filter(|to| seen.insert((*to).clone())));
            }
            reached.insert(module, seen);
        }
        let mut circles = BTreeSet::new();
        for (module, to) in &reached {
            let back = to.iter().filter(|t| reached[t].contains(*module));
            let circle: BTreeSet<Module> = back.cloned().collect();
            if circle.len() > 1 {
                circles.insert(circle);
            }
        }
        let mut circles: Vec<_> = circles.into_iter().collect();
        circles.sort_by_key(|c| std::cmp::Reverse(c.len()));
        circles
    }
}

/// `src` of every package.
fn sources() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let folders = ["sim", "trainer"].iter().flat_map(|f| std::fs::read_dir(root.join(f)).unwrap());
    let inner = folders.map(|entry| entry.unwrap().path());
    let outer = ["sim", "collector", "trainer", "python", "xtask"].map(|f| root.join(f));
    let sources = inner.chain(outer).map(|folder| folder.join("src"));
    sources.filter(|src| src.join("lib.rs").is_file()).collect()
}

#[test]
fn no_circle_of_imports_has_more_than_six_files() {
    let sources = sources();
    assert!(sources.len() >= 16, "{sources:?}");
    for src in sources {
        for circle in Crate::read(&src).circles() {
            let files: Vec<String> = circle.iter().map(|m| m.join("::")).collect();
            println!("{} of {}: {}", files.len(), src.display(), files.join(" "));
            assert!(files.len() <= MOST, "{}: {files:?} import each other", src.display());
        }
    }
}

#[test]
fn a_circle_is_found_through_what_others_show_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    };
    file("lib.rs", "mod a; mod b; pub use b::Shown;");
    file("a.rs", "use crate::Shown; pub struct Own(Shown);");
    file("b/mod.rs", "mod c; pub use c::*;");
    file("b/c.rs", "pub struct Shown(Box<super::super::a::Own>);");
    let circles = Crate::read(dir.path()).circles();
    let names = |c: &BTreeSet<Module>| c.iter().map(|m| m.join("::")).collect::<Vec<_>>();
    assert_eq!(circles.iter().map(names).collect::<Vec<_>>(), [["a", "b::c"]]);
    // Tests may.
    file("b/c.rs", "pub struct Shown; #[cfg(test)] mod tests { use crate::a::Own; }");
    assert!(Crate::read(dir.path()).circles().is_empty());
}
