//! `[task.let]`: named expressions.

use super::{Definitions, is_name};
use crate::expr::parse;
use crate::expr::tree::{Node, NodeRef, Tree};
use ostler_base::ConfigError;

/// Most parameters of a function.
const MOST_PARAMETERS: usize = 16;

/// A named expression.
#[derive(Debug)]
pub struct Let<'a> {
    /// Its key: `moving`, `near(error2, std)`.
    pub key: &'a str,
    /// The key without parameters.
    pub name: &'a str,
    /// Names of its parameters; `None` of a value.
    pub parameters: Option<Vec<&'a str>>,
    /// The expression.
    pub text: &'a str,
    pub(crate) body: LetBody<'a>,
}

/// A parsed expression.
#[derive(Debug)]
pub(crate) struct LetBody<'a> {
    pub(crate) tree: Tree<'a>,
    pub(crate) root: NodeRef,
}

impl<'a> Let<'a> {
    /// Reads key and text.
    pub(super) fn new(key: &'a str, text: &'a str) -> Result<Self, ConfigError> {
        let path = format!("task.let.{key}");
        let malformed = |why: String| {
            ConfigError::new(path.clone(), why).help("write NAME, or \"NAME(x, y)\" for a function")
        };
        let (name, parameters) = match key.split_once('(') {
            None => (key.trim(), None),
            Some((name, rest)) => {
                let Some(inner) = rest.trim_end().strip_suffix(')') else {
                    return Err(malformed("the bracket does not end".into()));
                };
                let all: Vec<&str> = inner.split(',').map(str::trim).collect();
                if all == [""] {
                    return Err(malformed("a function without parameters".into()));
                }
                (name.trim(), Some(all))
            }
        };
        for (i, one) in parameters.iter().flatten().enumerate() {
            let before = &parameters.as_deref().unwrap_or_default()[..i];
            if !is_name(one) || super::KEYWORDS.contains(one) {
                return Err(malformed(format!("\"{one}\" cannot be a parameter's name")));
            }
            if before.contains(one) {
                return Err(malformed(format!("two parameters are called \"{one}\"")));
            }
        }
        if parameters.as_ref().is_some_and(|p| p.len() > MOST_PARAMETERS) {
            return Err(malformed(format!("more than {MOST_PARAMETERS} parameters")));
        }
        let parsed = parse::parse(text).map_err(|e| e.at(path.clone()))?;
        let own =
            Self { key, name, parameters, text, body: LetBody { tree: parsed.0, root: parsed.1 } };
        for parameter in own.parameters.iter().flatten() {
            if !own.mentions(parameter) {
                let why = format!("the parameter \"{parameter}\" is not used");
                return Err(ConfigError::new(path, why).help("use it, or leave it out"));
            }
        }
        Ok(own)
    }

    /// Where it is written.
    pub fn path(&self) -> String {
        format!("task.let.{}", self.key)
    }

    /// Whether a name of its text is, or has in braces, this one.
    fn mentions(&self, parameter: &str) -> bool {
        let inside = format!("{{{parameter}}}");
        self.body.tree.nodes.iter().any(|(node, _)| match node {
            Node::Name(name) => *name == parameter || name.contains(&inside),
            Node::Text(name) | Node::Call { name, .. } | Node::Member { name, .. } => {
                name.contains(&inside)
            }
            _ => false,
        })
    }

    /// Other named expressions that it mentions.
    fn uses<'s>(&'s self, all: &'s Definitions<'a>) -> impl Iterator<Item = usize> + 's {
        let own = self.parameters.as_deref().unwrap_or_default();
        self.body.tree.nodes.iter().filter_map(move |(node, _)| match node {
            Node::Name(name) if !own.contains(name) => all.find(name),
            Node::Call { name, .. } => all.find(name),
            _ => None,
        })
    }
}

impl Definitions<'_> {
    /// Named expressions that one mentions.
    pub(crate) fn used_by(&self, own: usize) -> impl Iterator<Item = usize> {
        self.lets[own].uses(self)
    }

    /// Refuses expressions that need themselves.
    pub(super) fn refuse_circles(&self) -> Result<(), ConfigError> {
        #[derive(Clone, Copy, PartialEq)]
        enum Seen {
            No,
            Open,
            Done,
        }
        let uses: Vec<Vec<usize>> = (self.lets.iter()).map(|l| l.uses(self).collect()).collect();
        let mut seen = vec![Seen::No; uses.len()];
        for start in 0..uses.len() {
            // Of each that is being looked at: which of its uses comes next.
            let mut open = vec![(start, 0)];
            if seen[start] != Seen::No {
                continue;
            }
            seen[start] = Seen::Open;
            while let Some((at, next)) = open.last_mut() {
                let Some(&to) = uses[*at].get(*next) else {
                    seen[*at] = Seen::Done;
                    open.pop();
                    continue;
                };
                *next += 1;
                match seen[to] {
                    Seen::Done => {}
                    Seen::No => {
                        seen[to] = Seen::Open;
                        open.push((to, 0));
                    }
                    Seen::Open => {
                        let from = open.iter().position(|o| o.0 == to).unwrap_or(0);
                        let mut circle: Vec<&str> =
                            open[from..].iter().map(|o| self.lets[o.0].name).collect();
                        circle.push(self.lets[to].name);
                        let why = format!("is defined by itself: {}", circle.join(" -> "));
                        return Err(ConfigError::new(self.lets[to].path(), why)
                            .help("a value that refers to its own past is a [[task.state]]"));
                    }
                }
            }
        }
        Ok(())
    }
}
