//! `[task.names]`: lists of parts.

use crate::expr::element::ElementKind;
use ostler_base::ConfigError;
use ostler_base::names::{matches, meant};
use ostler_model::Model;

/// Most entries of a list.
const MOST: usize = 1024;

/// A list of names of the robot's parts, or of pieces of such names.
#[derive(Debug, Clone)]
pub struct List {
    /// Its name.
    pub name: String,
    /// The entries as they are written.
    pub written: Vec<String>,
    /// The entries with the names that patterns stand for, each once.
    pub entries: Vec<String>,
}

/// Kinds of parts whose names a pattern may stand for, the first that it fits counts.
const KINDS: [ElementKind; 6] = [
    ElementKind::Body,
    ElementKind::Site,
    ElementKind::Geom,
    ElementKind::Joint,
    ElementKind::Actuator,
    ElementKind::Sensor,
];

impl List {
    /// Expands patterns: a pattern stands for all names of the first kind that it fits, in
    /// the model's order, the world left out. Other entries are taken as they are: they may
    /// be pieces of names.
    pub(super) fn new(
        model: &Model,
        name: &str,
        written: &[String],
        path: &str,
    ) -> Result<Self, ConfigError> {
        if written.is_empty() {
            return Err(ConfigError::new(path, "the list is empty")
                .help(format!("{name} = [\"FL\", \"FR\"], for example")));
        }
        let mut entries: Vec<String> = Vec::new();
        for (i, entry) in written.iter().enumerate() {
            let path = format!("{path}[{i}]");
            if entry.is_empty() || entry.contains(['{', '}']) {
                let why = format!("\"{entry}\" cannot be an entry");
                return Err(ConfigError::new(path, why)
                    .help("names of the robot's parts, pieces of them, or patterns with *"));
            }
            let found = match entry.contains('*') {
                true => fitting(model, entry, &path)?,
                false => vec![entry.clone()],
            };
            for one in found {
                if entries.contains(&one) {
                    let why = format!("\"{one}\" is in the list already");
                    return Err(ConfigError::new(path, why).help("every entry stands once"));
                }
                entries.push(one);
            }
        }
        if entries.len() > MOST {
            let why = format!("{} entries are too many", entries.len());
            return Err(ConfigError::new(path, why).help(format!("at most {MOST}")));
        }
        Ok(Self { name: name.to_string(), written: written.to_vec(), entries })
    }

    /// For messages: the first entries.
    pub(crate) fn summary(&self) -> String {
        const SHOWN: usize = 8;
        let more = if self.entries.len() > SHOWN { ", ..." } else { "" };
        let shown = self.entries.len().min(SHOWN);
        self.entries[..shown].join(", ") + more
    }
}

/// Names that fit `pattern`.
fn fitting(model: &Model, pattern: &str, path: &str) -> Result<Vec<String>, ConfigError> {
    for kind in KINDS {
        let skipped = usize::from(kind == ElementKind::Body);
        let names = kind.names(model).into_iter().skip(skipped);
        let fit = names.filter(|n| !n.is_empty() && matches(pattern, n));
        let mut found: Vec<String> = Vec::new();
        for name in fit {
            // Two elements of one name cannot be told apart.
            if !found.iter().any(|f| f == name) {
                found.push(name.to_string());
            }
        }
        if !found.is_empty() {
            return Ok(found);
        }
    }
    let why = format!("nothing of the robot fits \"{pattern}\"");
    let all = KINDS.iter().flat_map(|k| k.names(model));
    let error = ConfigError::new(path, why);
    Err(match meant(pattern, all) {
        Some(help) => error.help(help),
        None => error.help("a pattern fits bodies, sites, geoms, joints, actuators or sensors"),
    })
}
