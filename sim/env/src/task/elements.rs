//! Numbers and ranges for actuators, joints and components: one for all, one each, or by
//! patterns of their names; and the order in which such elements stand.

use super::read::Names;
use crate::config::{ConfigError, OneOrMany, Ranges};
use ostler_base::names::{matches, meant};
use ostler_lang::{clip_range, exact, open, range};
use std::collections::{BTreeMap, BTreeSet};

/// Elements that a list of names and patterns means: names alone stand in the order in which they
/// are written, and with a pattern among them all stand in the model's order.
#[derive(Debug, Clone, Default)]
pub(super) struct Chosen {
    /// Their numbers, each once.
    pub all: Vec<usize>,
    /// What is written comes to another order than the model's, in which they stand.
    pub mixed: bool,
}

impl Chosen {
    /// What `found` of `written` means, one after the other; the key is at `path`.
    ///
    /// # Errors
    /// A name is written twice.
    pub(crate) fn new(
        found: impl IntoIterator<Item = (String, Vec<usize>)>,
        path: &str,
    ) -> Result<Self, ConfigError> {
        let (mut all, mut patterns) = (Vec::new(), false);
        let (mut named, mut seen) = (BTreeSet::new(), BTreeSet::new());
        for (written, elements) in found {
            let pattern = written.contains('*');
            patterns |= pattern;
            for element in elements {
                if !pattern && !named.insert(element) {
                    let message = format!("\"{written}\" is in the list twice");
                    return Err(ConfigError::new(path, message).help("every name stands once"));
                }
                if seen.insert(element) {
                    all.push(element);
                }
            }
        }
        let mixed = patterns && !all.is_sorted();
        if mixed {
            all.sort_unstable();
        }
        Ok(Self { all, mixed })
    }

    /// Refuses a list of `found` numbers, or `of` whatever else, where nobody can say which one is
    /// whose.
    pub(crate) fn listed(
        mixed: bool,
        found: usize,
        of: &str,
        path: &str,
    ) -> Result<(), ConfigError> {
        if !mixed {
            return Ok(());
        }
        let message = format!(
            "{found} {of} in a list, beside patterns: the elements stand in the model's order, \
             which is not the one written"
        );
        Err(ConfigError::new(path, message).help(
            "write out all names, in the order of the list; or give values by patterns, such as \
             { \"*_hip\" = 1.0, \"*_knee\" = 2.0 }",
        ))
    }
}

/// Elements that get values.
#[derive(Clone, Copy)]
pub(super) struct Elements<'a> {
    /// What they are, in the plural.
    pub what: &'a str,
    /// Names by which patterns find each of them, the best first; empty where they have none.
    pub names: &'a [Vec<&'a str>],
    /// [`Chosen::mixed`].
    pub mixed: bool,
    /// What a key of a table may be.
    pub read: Names<'a>,
}

impl Elements<'_> {
    /// One finite number per element; the key is at `path`.
    pub(crate) fn numbers(&self, values: &OneOrMany, path: &str) -> Result<Vec<f32>, ConfigError> {
        let exact = self.exact(values, path)?;
        Ok(exact.into_iter().map(|x| x as f32).collect())
    }

    /// The same with all their digits.
    pub(crate) fn exact(&self, values: &OneOrMany, path: &str) -> Result<Vec<f64>, ConfigError> {
        self.each(values, path, exact)
    }

    /// The same, infinite ones too.
    pub(crate) fn open(&self, values: &OneOrMany, path: &str) -> Result<Vec<f64>, ConfigError> {
        self.each(values, path, open)
    }

    fn each(
        &self,
        values: &OneOrMany,
        path: &str,
        read: fn(f64, &str) -> Result<f64, ConfigError>,
    ) -> Result<Vec<f64>, ConfigError> {
        match values {
            OneOrMany::One(v) => Ok(vec![read(*v, path)?; self.names.len()]),
            OneOrMany::Many(list) => {
                self.fits(list.len(), "numbers", path)?;
                let each = list.iter().enumerate();
                each.map(|(i, &v)| read(v, &format!("{path}[{i}]"))).collect()
            }
            OneOrMany::Named(table) => self.by_name(table, path, "1.0", read),
        }
    }

    /// One range per element.
    pub(crate) fn ranges(&self, values: &Ranges, path: &str) -> Result<Vec<[f32; 2]>, ConfigError> {
        self.pairs(values, path, range)
    }

    /// What each element is clipped to.
    pub(crate) fn clips(&self, values: &Ranges, path: &str) -> Result<Vec<[f32; 2]>, ConfigError> {
        self.pairs(values, path, clip_range)
    }

    fn pairs(
        &self,
        values: &Ranges,
        path: &str,
        pair: fn([f64; 2], &str) -> Result<[f32; 2], ConfigError>,
    ) -> Result<Vec<[f32; 2]>, ConfigError> {
        match values {
            Ranges::One(ends) => Ok(vec![pair(*ends, path)?; self.names.len()]),
            Ranges::Many(list) => {
                self.fits(list.len(), "ranges", path)?;
                let each = list.iter().enumerate();
                each.map(|(i, &v)| pair(v, &format!("{path}[{i}]"))).collect()
            }
            Ranges::Named(table) => self.by_name(table, path, "[-1.0, 1.0]", pair),
        }
    }

    fn fits(&self, found: usize, of: &str, path: &str) -> Result<(), ConfigError> {
        let (wanted, what) = (self.names.len(), self.what);
        if found == wanted {
            return Chosen::listed(self.mixed, found, of, path);
        }
        let message = format!("{found} {of} for {wanted} {what}");
        let one = of.trim_end_matches('s');
        Err(ConfigError::new(path, message).help(format!("give one {one} for all, or {wanted}")))
    }

    /// The value of the one pattern that each element fits.
    fn by_name<T: Copy, U>(
        &self,
        table: &BTreeMap<String, T>,
        path: &str,
        example: &str,
        read: fn(T, &str) -> Result<U, ConfigError>,
    ) -> Result<Vec<U>, ConfigError> {
        let (what, first) = (self.what, |names: &[&str]| names.first().map(|n| n.to_string()));
        if self.names.iter().any(Vec::is_empty) {
            let message = format!("{what} have no names that a pattern could fit");
            return Err(ConfigError::new(path, message).help("give one value for all, or a list"));
        }
        let known = |text: &str| self.names.iter().flatten().any(|name| matches(text, name));
        let mut keys: Vec<Vec<String>> = Vec::with_capacity(table.len());
        for key in table.keys() {
            let patterns = self.read.spelled(key, known);
            let wrong = patterns.iter().find(|p| !known(p));
            if let Some(pattern) = wrong.or(patterns.is_empty().then_some(key)) {
                let all = || self.names.iter().flatten().copied();
                let help = match meant(pattern, all()) {
                    Some(help) => help,
                    None => format!("there are: {}", all().collect::<Vec<_>>().join(", ")),
                };
                let message = format!("\"{pattern}\" fits none of these {what}");
                return Err(ConfigError::new(path, message).help(help));
            }
            keys.push(patterns);
        }
        let fits = |patterns: &[String], names: &[&str]| {
            patterns.iter().any(|pattern| names.iter().any(|name| matches(pattern, name)))
        };
        let mut all = Vec::with_capacity(self.names.len());
        for names in self.names {
            let of_key = table.iter().zip(&keys).filter(|(_, patterns)| fits(patterns, names));
            let mut found = of_key.map(|(entry, _)| entry);
            let name = first(names).unwrap_or_default();
            let Some((pattern, value)) = found.next() else {
                let message = format!("\"{name}\" fits no pattern");
                let help = format!("add one, such as \"{name}\" = {example}");
                return Err(ConfigError::new(path, message).help(help));
            };
            if let Some((other, _)) = found.next() {
                let message = format!("\"{name}\" fits both \"{pattern}\" and \"{other}\"");
                return Err(ConfigError::new(path, message)
                    .help("every name fits exactly one: make one of them narrower"));
            }
            all.push(read(*value, &format!("{path}.{pattern}"))?);
        }
        Ok(all)
    }
}
