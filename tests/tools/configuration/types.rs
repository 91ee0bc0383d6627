//! The types of a configuration, read from their source.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};
use syn::{Attribute, Expr, Fields, ImplItem, Item, Lit, Meta, Stmt, Type};

/// A field of a struct, or a variant's content.
pub struct Field {
    /// The key in a file.
    pub key: String,
    pub ty: Type,
    pub docs: String,
    /// `#[serde(default)]`, with the function that it names.
    pub default: Option<Option<String>>,
}

/// A variant of an enum.
pub struct Variant {
    /// As it is written in a file.
    pub word: String,
    pub name: String,
    pub docs: String,
    /// Nothing for a plain word.
    pub content: Vec<Field>,
    /// `#[default]`.
    pub is_default: bool,
}

pub enum Shape {
    Struct(Vec<Field>),
    Enum(Vec<Variant>),
    /// Read from a text, such as `"policy"` or any other name; the default's.
    Text(Option<String>),
}

/// A struct or enum.
pub struct Def {
    pub name: String,
    pub file: PathBuf,
    pub docs: String,
    pub shape: Shape,
    /// All fields have defaults: `#[serde(default)]` of the whole type.
    pub all_default: bool,
    /// The text of `expecting`, without "expected ".
    pub expecting: Option<String>,
}

/// All types of some folders, and what functions and `Default::default` return.
pub struct Types {
    defs: HashMap<String, Vec<Def>>,
    /// The last expression of a function, or of a constant, by file and name.
    functions: BTreeMap<(PathBuf, String), Expr>,
    /// Those of them that other files can use.
    shared: BTreeSet<(PathBuf, String)>,
    /// Of `impl Default`, by file and type.
    defaults: HashMap<(PathBuf, String), Expr>,
}

impl Types {
    pub fn read(folders: &[PathBuf]) -> Self {
        let mut types = Self {
            defs: HashMap::new(),
            functions: BTreeMap::new(),
            shared: BTreeSet::new(),
            defaults: HashMap::new(),
        };
        folders.iter().for_each(|folder| types.folder(folder));
        types
    }

    fn folder(&mut self, folder: &Path) {
        let mut entries: Vec<_> =
            std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
        entries.sort();
        for path in entries {
            if path.is_dir() {
                self.folder(&path);
            } else if path.extension().is_some_and(|e| e == "rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let file = syn::parse_file(&text).unwrap();
                file.items.iter().for_each(|item| self.item(item, &path));
            }
        }
    }

    fn item(&mut self, item: &Item, path: &Path) {
        match item {
            Item::Struct(s) => {
                let container = Serde::of(&s.attrs);
                let shape = match container.text || !derives_deserialize(&s.attrs) {
                    true => Shape::Text(None),
                    false => Shape::Struct(fields(&s.fields)),
                };
                self.def(s.ident.to_string(), path, &s.attrs, shape, container);
            }
            Item::Enum(e) => {
                let container = Serde::of(&e.attrs);
                let variants = e.variants.iter().map(|v| Variant {
                    word: Serde::of(&v.attrs)
                        .rename
                        .unwrap_or_else(|| container.case(&v.ident.to_string())),
                    name: v.ident.to_string(),
                    docs: docs(&v.attrs),
                    content: fields(&v.fields),
                    is_default: v.attrs.iter().any(|a| a.path().is_ident("default")),
                });
                let variants: Vec<Variant> = variants.collect();
                let shape = match container.text {
                    true => {
                        let default = variants.iter().find(|v| v.is_default);
                        Shape::Text(default.map(|v| v.name.to_lowercase()))
                    }
                    false => Shape::Enum(variants),
                };
                self.def(e.ident.to_string(), path, &e.attrs, shape, container);
            }
            Item::Fn(f) => {
                if let Some(Stmt::Expr(e, None)) = f.block.stmts.last() {
                    let key = (path.to_path_buf(), f.sig.ident.to_string());
                    if !matches!(f.vis, syn::Visibility::Inherited) {
                        self.shared.insert(key.clone());
                    }
                    self.functions.insert(key, e.clone());
                }
            }
            Item::Const(c) => {
                let key = (path.to_path_buf(), c.ident.to_string());
                self.functions.insert(key, (*c.expr).clone());
            }
            Item::Impl(i) if i.trait_.as_ref().is_some_and(|t| t.1.is_ident("Default")) => {
                for item in &i.items {
                    if let (ImplItem::Fn(f), Some(name)) = (item, name(&i.self_ty))
                        && let Some(Stmt::Expr(e, None)) = f.block.stmts.last()
                    {
                        self.defaults.insert((path.to_path_buf(), name), e.clone());
                    }
                }
            }
            _ => {}
        }
    }

    fn def(&mut self, name: String, path: &Path, attrs: &[Attribute], shape: Shape, serde: Serde) {
        let def = Def {
            name: name.clone(),
            file: path.to_path_buf(),
            docs: docs(attrs),
            shape,
            all_default: serde.default.is_some(),
            expecting: serde.expecting,
        };
        self.defs.entry(name).or_default().push(def);
    }

    /// The type of a name as a file means it: of the same file, else of the nearest folder.
    pub fn find(&self, name: &str, from: &Path) -> Option<&Def> {
        let near = |def: &&Def| {
            let pairs = def.file.components().zip(from.components());
            pairs.take_while(|(a, b)| a == b).count()
        };
        self.defs.get(name)?.iter().max_by_key(near)
    }

    /// The result of a function of a file, or of one that the file uses.
    pub fn function(&self, name: &str, from: &Path) -> Option<&Expr> {
        let own = self.functions.get(&(from.to_path_buf(), name.to_string()));
        let beside = || {
            let same = |(file, f): &&(PathBuf, String)| f == name && file.parent() == from.parent();
            self.shared.iter().find(same).and_then(|key| self.functions.get(key))
        };
        own.or_else(beside)
    }

    /// `Default::default` of a type, where it is written out.
    pub fn default_of(&self, def: &Def) -> Option<&Expr> {
        self.defaults.get(&(def.file.clone(), def.name.clone()))
    }
}

/// A type that reads itself is a text in a file.
fn derives_deserialize(attrs: &[Attribute]) -> bool {
    let derives = attrs.iter().filter(|a| a.path().is_ident("derive"));
    let list = derives.filter_map(|a| a.meta.require_list().ok());
    list.into_iter().any(|l| l.tokens.to_string().contains("Deserialize"))
}

fn fields(fields: &Fields) -> Vec<Field> {
    let fields = fields.iter().filter_map(|f| {
        let serde = Serde::of(&f.attrs);
        let own = f.ident.as_ref().map(ToString::to_string).unwrap_or_default();
        (!serde.skip).then(|| Field {
            key: serde.rename.unwrap_or(own),
            ty: f.ty.clone(),
            docs: docs(&f.attrs),
            default: serde.default,
        })
    });
    fields.collect()
}

/// The last name of a path.
pub fn name(ty: &Type) -> Option<String> {
    match ty {
        Type::Path(p) => p.path.segments.last().map(|s| s.ident.to_string()),
        _ => None,
    }
}

/// Documentation in one line, as Markdown.
fn docs(attrs: &[Attribute]) -> String {
    let lines = attrs.iter().filter_map(|a| match &a.meta {
        Meta::NameValue(v) if v.path.is_ident("doc") => match &v.value {
            Expr::Lit(l) => match &l.lit {
                Lit::Str(s) => Some(s.value().trim().to_string()),
                _ => None,
            },
            _ => None,
        },
        _ => None,
    });
    unlink(lines.collect::<Vec<_>>().join(" ").trim())
}

/// Without links to items of the code: `[`x`](y)` and `[`x`]` become `x`.
fn unlink(text: &str) -> String {
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find("[`") {
        let Some(end) = rest[at + 2..].find("`]").map(|e| at + 2 + e) else {
            break;
        };
        // A heading such as `[env]` has its brackets within the quotes.
        out.push_str(&rest[..at]);
        out.push_str(&rest[at + 1..=end]);
        rest = &rest[end + 2..];
        if rest.starts_with('(')
            && let Some(close) = rest.find(')')
        {
            rest = &rest[close + 1..];
        }
    }
    out.push_str(rest);
    out
}

/// What serde's attributes say.
#[derive(Default)]
struct Serde {
    rename: Option<String>,
    rename_all: Option<String>,
    expecting: Option<String>,
    default: Option<Option<String>>,
    skip: bool,
    text: bool,
}

impl Serde {
    fn of(attrs: &[Attribute]) -> Self {
        let mut serde = Self::default();
        for attr in attrs.iter().filter(|a| a.path().is_ident("serde")) {
            attr.parse_nested_meta(|meta| {
                let word = meta.path.require_ident()?.to_string();
                let value = match meta.value() {
                    Ok(value) => Some(value.parse::<syn::LitStr>()?.value()),
                    Err(_) => None,
                };
                match word.as_str() {
                    "rename" => serde.rename = value,
                    "rename_all" => serde.rename_all = value,
                    "expecting" => serde.expecting = value.map(|v| v.replace("expected ", "")),
                    "default" => serde.default = Some(value),
                    "skip" => serde.skip = true,
                    "from" | "try_from" => serde.text = true,
                    _ => {}
                }
                Ok(())
            })
            .unwrap();
        }
        serde
    }

    /// A variant's name as `rename_all` has it.
    fn case(&self, name: &str) -> String {
        match self.rename_all.as_deref() {
            Some("snake_case") => {
                let mut out = String::new();
                for (i, c) in name.chars().enumerate() {
                    if c.is_uppercase() && i > 0 {
                        out.push('_');
                    }
                    out.extend(c.to_lowercase());
                }
                out
            }
            Some("lowercase") => name.to_lowercase(),
            Some("kebab-case") => panic!("{name}: kebab-case"),
            _ => name.to_string(),
        }
    }
}
