//! Definitions as a task's configuration has them.

use super::lets::Let;
use super::lists::List;
use super::{Definitions, KEYWORDS, is_name};
use crate::config::TaskConfig;
use crate::expr::element::ElementKind;
use crate::expr::elements::kind_of;
use crate::expr::error::ExprError;
use crate::expr::foreign::lookup;
use crate::expr::functions;
use crate::expr::tree::Node;
use ostler_base::ConfigError;
use ostler_base::names::nearest;
use ostler_model::Model;

impl<'a> Definitions<'a> {
    /// Checks all definitions of `cfg` but for what depends on where they are used. Patterns
    /// are expanded for `model`; `agents`: names of the agents, if there are several.
    ///
    /// # Errors
    /// A name that cannot be, or is another thing's; an empty list, a pattern that nothing
    /// fits; a text that cannot be parsed; expressions that are defined in a circle.
    pub fn new(model: &Model, cfg: &'a TaskConfig, agents: &[String]) -> Result<Self, ConfigError> {
        let mut all = Self {
            lists: Vec::with_capacity(cfg.names.len()),
            lets: Vec::with_capacity(cfg.lets.len()),
            states: cfg.state.iter().map(|s| s.name.as_str()).collect(),
            natives: Vec::new(),
            motion: super::super::looks::Looks::none(),
        };
        for (name, entries) in &cfg.names {
            let path = format!("task.names.{name}");
            free_name(name, "list", &path)?;
            if agents.contains(name) || ["agent", "each", "other"].contains(&name.as_str()) {
                let why = format!("\"{name}\" is an agent's name, or stands for one");
                return Err(ConfigError::new(path, why).help("give the list another name"));
            }
            if cfg.command.iter().any(|c| c.name == *name) {
                let why = format!("\"{name}\" is a command's name");
                return Err(ConfigError::new(path, why).help("give the list another name"));
            }
            all.lists.push(List::new(model, name, entries, &path)?);
        }
        for (key, text) in &cfg.lets {
            let own = Let::new(key, text)?;
            let path = own.path();
            free_name(own.name, "value", &path)?;
            if all.list(own.name).is_some() {
                let why = format!("\"{}\" is a list of [task.names]", own.name);
                return Err(ConfigError::new(path, why).help("give one of them another name"));
            }
            if let Some(kind) = kind_of(model, own.name) {
                let article = match kind {
                    ElementKind::Actuator => "an",
                    _ => "a",
                };
                let why = format!("\"{}\" is {article} {} of the robot", own.name, kind.noun());
                return Err(ConfigError::new(path, why).help("give the value another name"));
            }
            if all.lets.iter().any(|l| l.name == own.name) {
                let why = format!("\"{}\" is defined twice", own.name);
                return Err(ConfigError::new(path, why)
                    .help("a name has one meaning, whatever its arguments"));
            }
            all.lets.push(own);
        }
        all.refuse_circles()?;
        for own in &all.lets {
            check_calls(own, &all)?;
        }
        Ok(all)
    }
}

/// Refuses names that expressions could not say, or that mean something else already.
fn free_name(name: &str, what: &str, path: &str) -> Result<(), ConfigError> {
    if !is_name(name) {
        let why = format!("\"{name}\" cannot be the name of a {what}");
        return Err(ConfigError::new(path, why).help("letters, digits and _, no digit first"));
    }
    let taken = if KEYWORDS.contains(&name) {
        "a word of the language"
    } else if functions::find(name).is_some() {
        "a function of the language"
    } else {
        return Ok(());
    };
    let help = format!("give the {what} another name");
    Err(ConfigError::new(path, format!("\"{name}\" is {taken}")).help(help))
}

/// Refuses calls of functions that there are not: also in a function that nobody uses.
fn check_calls(own: &Let<'_>, all: &Definitions<'_>) -> Result<(), ConfigError> {
    for (node, _) in &own.body.tree.nodes {
        let Node::Call { name, name_span, .. } = node else {
            continue;
        };
        let known = name.contains('{')
            || functions::find(name).is_some()
            || all.find(name).is_some()
            || ["command", "param", "state", "native"].contains(name);
        if known {
            continue;
        }
        let error = ExprError::new(name_span.clone(), format!("unknown function `{name}`"));
        let advice = lookup(name).map(str::to_string);
        let names = functions::all().map(|f| f.name).chain(all.let_names());
        let near = nearest(name, names).map(|near| match functions::find(near) {
            Some(f) => format!("did you mean {}?", f.signature()),
            None => format!("did you mean {near}?"),
        });
        let error = match advice.or(near) {
            Some(help) => error.help(help),
            None => error.help("every function is listed in docs/task-functions.md"),
        };
        return Err(error.at(own.path()));
    }
    Ok(())
}
