//! How keys of a task are read: parts by name, numbers one for all or one each, names that differ.

use super::elements::Chosen;
use super::team::{AgentIndex, Team};
use crate::config::{ConfigError, OneOrMany};
use ostler_base::names::{few, listed, matches, select};
use ostler_base::text::obeyed;
use ostler_lang::expr::{Definitions, PLACEHOLDERS};
use ostler_lang::number;
use ostler_model::{JointKind, Model};
use std::collections::{BTreeSet, HashSet};

/// Parts of a robot that a key may name.
pub(super) struct Parts<'m> {
    /// What they are.
    kind: &'static str,
    /// Their numbers and names.
    all: Vec<(usize, &'m str)>,
    /// What a pattern means of them, where it does not mean all.
    patterns: Option<(&'static str, BTreeSet<usize>)>,
}

impl<'m> Parts<'m> {
    fn new(kind: &'static str, names: impl Iterator<Item = &'m str>) -> Self {
        Self { kind, all: names.enumerate().collect(), patterns: None }
    }

    /// A pattern means those alone that it `may`: `what` in words.
    fn patterns(mut self, what: &'static str, may: impl Fn(usize) -> bool) -> Self {
        let meant = self.all.iter().map(|(i, _)| *i).filter(|i| may(*i));
        self.patterns = Some((what, meant.collect()));
        self
    }

    /// All their names, in words.
    pub(super) fn exist(&self) -> String {
        let names: Vec<&str> = self.all.iter().map(|(_, name)| *name).collect();
        match names.is_empty() {
            true => format!("the robot has no {}s", self.kind),
            false => format!("the robot has: {}", names.join(", ")),
        }
    }

    pub(super) fn geoms(model: &'m Model) -> Self {
        Self::new("geom", model.geoms.iter().map(|g| g.name.as_str()))
    }

    pub(super) fn actuators(model: &'m Model) -> Self {
        Self::new("actuator", model.actuators.iter().map(|a| a.name.as_str()))
    }

    /// The same where a pattern means position actuators alone.
    pub(super) fn servos(model: &'m Model) -> Self {
        let may = |u: usize| model.actuators[u].is_servo();
        Self::actuators(model).patterns("position actuator", may)
    }

    /// The same where a pattern means motors alone.
    pub(super) fn motors(model: &'m Model) -> Self {
        Self::actuators(model).patterns("motor", |u| model.actuators[u].is_motor())
    }

    /// The same where a pattern means both.
    pub(super) fn strong(model: &'m Model) -> Self {
        let may = |u: usize| model.actuators[u].is_servo() || model.actuators[u].is_motor();
        Self::actuators(model).patterns("motor or position actuator", may)
    }

    pub(super) fn keyframes(model: &'m Model) -> Self {
        Self::new("keyframe", model.keyframes.iter().map(|k| k.name.as_str()))
    }

    pub(super) fn joints(model: &'m Model) -> Self {
        Self::new("joint", model.joints.iter().map(|j| j.name.as_str()))
    }

    /// The same where a pattern means hinges and slides alone.
    pub(super) fn driven(model: &'m Model) -> Self {
        Self::joints(model).patterns(SCALAR, |j| model.joints[j].is_scalar())
    }

    /// Hinges and slides.
    pub(super) fn scalars(model: &'m Model) -> Self {
        let mut all = Self::joints(model);
        all.kind = SCALAR;
        all.all.retain(|(j, _)| model.joints[*j].is_scalar());
        all
    }

    /// Bodies; a pattern means those that move.
    pub(super) fn bodies(model: &'m Model) -> Self {
        let all = Self::new("body", model.bodies.iter().map(|b| b.name.as_str()));
        all.patterns("body that moves", |b| model.bodies[b].weld != 0)
    }

    /// Bodies; a pattern means those with a free joint.
    pub(super) fn floating(model: &'m Model) -> Self {
        Self::bodies(model).patterns("body with a free joint", |b| free_joint(model, b).is_some())
    }
}

/// A joint with one coordinate, in words.
const SCALAR: &str = "hinge or slide joint";

/// The free joint of a body.
pub(super) fn free_joint(model: &Model, body: usize) -> Option<usize> {
    model.bodies[body].joints.clone().find(|j| model.joints[*j].kind == JointKind::Free)
}

/// What names in the keys of a task may be besides names and patterns: lists of `[task.names]`,
/// alone or in braces, agents' names, several with commas.
#[derive(Clone, Copy)]
pub struct Names<'a> {
    pub defined: &'a Definitions<'a>,
    pub team: &'a Team,
    /// Whose name `{agent}` is; without one it is all agents'.
    pub agent: AgentIndex,
}

/// A name or pattern, and what fits it.
type Found = (String, Vec<usize>);

impl Names<'_> {
    /// The names and patterns that `text` stands for, none where it is an empty list. What a part
    /// that is `known` fits is taken as it is.
    pub(super) fn spelled(&self, text: &str, known: impl Fn(&str) -> bool) -> Vec<String> {
        let written = if known(text) { vec![text] } else { listed(text) };
        let entries = written.into_iter().flat_map(|one| self.defined.entries(one, &known));
        let mut all = Vec::new();
        for entry in entries {
            let agents = match self.agent {
                Some(_) => vec![self.agent],
                None => self.team.agents_of(&[&entry]),
            };
            all.extend(agents.into_iter().map(|a| self.team.fill(a, &entry).into_owned()));
        }
        all
    }

    /// The same of names of these parts, at `path`.
    pub(super) fn patterns(
        &self,
        text: &str,
        parts: &Parts<'_>,
        path: &str,
    ) -> Result<Vec<String>, ConfigError> {
        let known = |text: &str| parts.all.iter().any(|(_, name)| matches(text, name));
        let spelled = self.spelled(text, known);
        match spelled.is_empty() {
            true => Err(ConfigError::new(path, "the list is empty")),
            false => Ok(spelled),
        }
    }

    /// All that `text` means of these parts, name by name; it is at `path`.
    fn found(&self, text: &str, parts: &Parts<'_>, path: &str) -> Result<Vec<Found>, ConfigError> {
        let spelled = self.patterns(text, parts, path)?;
        let found = spelled.into_iter().map(|pattern| {
            let mut found = select(&pattern, parts.kind, parts.all.iter().copied(), path)?;
            if let Some((what, meant)) = parts.patterns.as_ref().filter(|_| pattern.contains('*')) {
                found.retain(|i| meant.contains(i));
                if found.is_empty() {
                    let why = format!("no {what} fits \"{pattern}\"");
                    let help = format!("a pattern means every {what} that it fits");
                    return Err(ConfigError::new(path, why).help(help));
                }
            }
            Ok((pattern, found))
        });
        found.collect()
    }

    /// What a list of names means; it is at `path`.
    pub(super) fn parts(
        &self,
        written: &[String],
        parts: &Parts<'_>,
        path: &str,
    ) -> Result<Chosen, ConfigError> {
        let mut found = Vec::new();
        for (i, text) in written.iter().enumerate() {
            found.extend(self.found(text, parts, &format!("{path}[{i}]"))?);
        }
        Chosen::new(found, path)
    }

    /// The same of a text in which all of them stand.
    pub(super) fn several(
        &self,
        text: &str,
        parts: &Parts<'_>,
        path: &str,
    ) -> Result<Chosen, ConfigError> {
        Chosen::new(self.found(text, parts, path)?, path)
    }

    /// The one part that `text` means.
    pub(super) fn one(
        &self,
        text: &str,
        parts: &Parts<'_>,
        path: &str,
    ) -> Result<usize, ConfigError> {
        let found = self.several(text, parts, path)?.all;
        let [one] = found[..] else {
            let fits = parts.all.iter().filter(|(i, _)| found.contains(i));
            let fits: Vec<&str> = fits.map(|(_, name)| *name).collect();
            return Err(ambiguous(text, &fits, path).help(format!("name one {}", parts.kind)));
        };
        Ok(one)
    }
}

/// `text` at `path` means several parts, and one is wanted.
pub(super) fn ambiguous(text: &str, names: &[&str], path: &str) -> ConfigError {
    let why = format!("\"{text}\" means {}: {}", names.len(), few(names, 8));
    ConfigError::new(path, why)
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
    readable(name, &path)?;
    if !seen.insert(name.to_string()) {
        return Err(ConfigError::new(path, format!("the name \"{name}\" is used twice")));
    }
    Ok(())
}

/// Refuses an empty name, one that cannot be seen, and one with a placeholder.
pub(super) fn readable(name: &str, path: &str) -> Result<(), ConfigError> {
    if name.is_empty() {
        return Err(ConfigError::new(path, "the name is empty"));
    }
    if let Some(c) = name.chars().find(|c| obeyed(*c)) {
        let why = format!("the name {name:?} holds U+{:04X}, which is not shown", c as u32);
        return Err(ConfigError::new(path, why).help("leave out what nobody can see"));
    }
    let mut known = PLACEHOLDERS.into_iter().chain(["{agents}"]);
    if let Some(placeholder) = known.find(|p| name.contains(p)) {
        let why =
            format!("the name \"{name}\" has {placeholder} in it, which stands for nobody here");
        let help = "{agent} stands for a name where a term is made for each agent of [agents]";
        return Err(ConfigError::new(path, why).help(help));
    }
    Ok(())
}
