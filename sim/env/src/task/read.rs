//! How keys of a task are read: parts by name, numbers one for all or one each, names that differ.

use super::elements::Chosen;
use super::team::Team;
use crate::config::{ConfigError, OneOrMany};
use ostler_base::names::select;
use ostler_base::text::obeyed;
use ostler_lang::expr::Definitions;
use ostler_lang::number;
use std::collections::HashSet;

/// Elements of a kind that fit what is written: names, patterns, lists of parts, with the agents'
/// names in them. A pattern means those alone that it `may`. The key is at `path`.
pub(super) fn parts<'a>(
    written: &[String],
    (kind, names): (&str, impl Iterator<Item = &'a str> + Clone),
    may: impl Fn(usize) -> bool,
    defined: &Definitions<'_>,
    team: &Team,
    path: &str,
) -> Result<Chosen, ConfigError> {
    let known = |name: &str| names.clone().any(|n| n == name);
    let mut found = Vec::new();
    for (p, text) in written.iter().enumerate() {
        for pattern in defined.entries(text, known) {
            for agent in team.agents_of(&[&pattern]) {
                let pattern = team.fill(agent, &pattern);
                let all = names.clone().enumerate();
                let mut fits = select(&pattern, kind, all, &format!("{path}[{p}]"))?;
                let named = !pattern.contains('*');
                fits.retain(|e| named || may(*e));
                found.push(Ok((pattern.into_owned(), fits)));
            }
        }
    }
    Chosen::new(found, path)
}

/// One finite number per element.
pub(super) fn spread(
    values: &OneOrMany,
    len: usize,
    what: &str,
    path: &str,
) -> Result<Vec<f32>, ConfigError> {
    match values {
        OneOrMany::One(v) => Ok(vec![number(*v, path)?; len]),
        OneOrMany::Many(list) if list.len() == len => {
            list.iter().map(|&v| number(v, path)).collect()
        }
        OneOrMany::Many(list) => {
            Err(ConfigError::new(path, format!("{} numbers for {len} {what}", list.len()))
                .help(format!("give one number for all, or {len}")))
        }
        OneOrMany::Named(_) => {
            Err(ConfigError::new(path, format!("{what} have no names that a pattern could fit"))
                .help(format!("give one number for all, or {len}")))
        }
    }
}

/// Refuses an empty or repeated name.
pub(super) fn unique(
    seen: &mut HashSet<String>,
    name: &str,
    path: String,
) -> Result<(), ConfigError> {
    if name.is_empty() {
        return Err(ConfigError::new(path, "the name is empty"));
    }
    if let Some(c) = name.chars().find(|c| obeyed(*c)) {
        let why = format!("the name {name:?} holds U+{:04X}, which is not shown", c as u32);
        return Err(ConfigError::new(path, why).help("leave out what nobody can see"));
    }
    if !seen.insert(name.to_string()) {
        return Err(ConfigError::new(path, format!("the name \"{name}\" is used twice")));
    }
    Ok(())
}
