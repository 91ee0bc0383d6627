//! The expression language of tasks: text -> checked program -> values of a block
//! of environments. The language is described in `docs/task-expressions.md`.

mod agents;
mod call;
mod check;
mod contacts;
mod dag;
mod define;
mod each;
mod elements;
mod emit;
mod events;
mod foreign;
mod functions;
mod history;
mod inline;
mod inputs;
mod lex;
mod names;
mod operators;
mod ops;
mod parse;
mod place;
mod program;
mod start;
mod tree;
mod unit;
mod value;

pub(crate) use agents::PLACEHOLDERS;
pub use contacts::Contacts;
pub use dag::{Seen, Source};
pub use define::is_name;
pub use define::{Declared, Definitions, Let, LetRow, List};
pub use elements::matches;
pub use emit::literal;
pub use events::{EventNumbers, EventValue};
pub use functions::field_unit;
pub use functions::reference;
pub use functions::{Body, Function, Kind, Param, Rule, drawn_of_numbers, one};
pub use history::{Cell, History, HistoryBuilder, Kind as Remembered, StateRow};
pub use inputs::{Buffers, Inputs};
pub use inputs::{Column, Columns};
pub use ops::Op;
pub use ostler_engine::phases::BLOCK;
pub use program::Code;
pub use program::Step;
pub use start::reads;
pub use start::{Draws, Start};
pub use unit::Unit;

use crate::config::ConfigError;
use ostler_model::Model;

/// Names an expression can use besides the model's.
#[derive(Debug, Clone)]
pub struct Scope<'a> {
    /// Bodies, joints, geoms, sites, actuators, sensors.
    pub model: &'a Model,
    /// The pose that relative positions refer to `(nq)`; empty where the expression is one of
    /// those that decide it.
    pub pose: &'a [f64],
    /// `command.NAME`: name, number of components, unit (`""`: any).
    pub commands: &'a [(String, usize, String)],
    /// `param.NAME`, in the order of [`Buffers::params`].
    pub params: &'a [String],
    /// Width of `action` and `last_action`.
    pub action_width: usize,
    /// Several agents, where the task has some.
    pub agents: Option<Agents<'a>>,
    /// History of the expressions; the same for all of a task.
    pub history: &'a HistoryBuilder,
    /// Contacts that the expressions read; likewise.
    pub contacts: &'a Contacts,
    /// Events, and which of them the expressions read; likewise.
    pub events: &'a EventNumbers,
    /// Lists of parts, named expressions, names of states.
    pub defined: &'a Definitions<'a>,
    /// The moment, of expressions of an episode's start.
    pub start: Option<Start<'a>>,
}

/// The agents of a task, and the one that an expression is evaluated for.
#[derive(Debug, Clone, Copy)]
pub struct Agents<'a> {
    /// Names of all.
    pub names: &'a [String],
    /// The one that `{agent}` stands for; none in terms that are the world's.
    pub agent: Option<usize>,
    /// All but that one, in the order of `others(...)`; empty without one.
    pub others: &'a [usize],
    /// First row of its `action` and `last_action`.
    pub action_first: usize,
}

/// Error of an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", .help.as_ref().map(|h| format!(" ({h})")).unwrap_or_default())]
pub struct ExprError {
    /// Bytes of the text that are meant.
    pub span: std::ops::Range<usize>,
    /// The mistake.
    pub message: String,
    /// The remedy.
    pub help: Option<String>,
    /// The key of the named expression (`[task.let]`) whose text is meant; `None`: the text
    /// itself.
    pub of: Option<String>,
    /// Keys of named expressions that use that one, the innermost first.
    pub used_by: Vec<String>,
    /// Whether `of` is known.
    settled: bool,
}

impl ExprError {
    fn new(span: std::ops::Range<usize>, message: impl Into<String>) -> Self {
        Self {
            span,
            message: message.into(),
            help: None,
            of: None,
            used_by: Vec::new(),
            settled: false,
        }
    }

    /// The same, on its way out of the named expression `key`.
    fn inside_of(mut self, key: &str) -> Self {
        if !self.settled {
            return self.settled_in(Some(key));
        }
        if self.of.as_deref().is_some_and(|of| of != key) {
            self.used_by.push(key.to_string());
        }
        self
    }

    /// The same, about the text of the named expression `key`, or about the text itself.
    fn settled_in(mut self, key: Option<&str>) -> Self {
        if !self.settled {
            self.of = key.map(str::to_string);
            self.settled = true;
        }
        self
    }

    /// As an error of the configuration: `path` is that of the text.
    pub fn at(self, path: String) -> ConfigError {
        let Some(of) = self.of else {
            return ConfigError {
                path,
                span: Some(self.span),
                message: self.message,
                help: self.help,
            };
        };
        let own = format!("task.let.{of}");
        let mut users: Vec<String> =
            (self.used_by.iter()).map(|key| format!("task.let.{key}")).collect();
        users.push(path);
        users.retain(|user| *user != own);
        let message = match users.is_empty() {
            true => self.message,
            false => format!("{} (used by {})", self.message, users.join(", by ")),
        };
        ConfigError { path: own, span: Some(self.span), message, help: self.help }
    }

    fn help(mut self, help: impl Into<String>) -> Self {
        self.help = Some(help.into());
        self
    }
}

/// Kind of a model's element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementKind {
    Body,
    Joint,
    Geom,
    Site,
    Actuator,
    Sensor,
    /// A body and all that hangs on it.
    Subtree,
}

/// An element of the model, by its place in the model's list of that kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Element {
    /// Which list.
    pub kind: ElementKind,
    /// Place in it.
    pub index: usize,
}

/// Type of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum Type {
    /// True or false; 1 or 0 as a number.
    Bool,
    /// `len` numbers of one unit (1: a scalar).
    Num {
        /// Components.
        len: usize,
        /// Unit, for people: `"m/s"`, `"-"` for none, `"any"` where mixed.
        unit: String,
    },
}

impl Type {
    /// Floats per environment.
    pub fn len(&self) -> usize {
        match self {
            Self::Bool => 1,
            Self::Num { len, .. } => *len,
        }
    }

    /// Never: every type has at least one component.
    pub fn is_empty(&self) -> bool {
        false
    }
}

/// A compiled expression: straight-line code over registers of [`BLOCK`] lanes.
#[derive(Debug, Clone)]
pub struct Program {
    ty: Type,
    units: Vec<Unit>,
    truth: bool,
    quat: bool,
    elements: Vec<Element>,
    of_agent: bool,
    code: program::Code,
}

/// Registers of one thread; `eval` allocates nothing once it is large enough.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    /// Registers `[k][BLOCK]`.
    pub registers: Vec<f32>,
    /// Inputs of a native function `[k][BLOCK]`.
    pub inputs: Vec<f32>,
}

impl Program {
    /// Parses and checks `text`.
    ///
    /// # Errors
    /// The first mistake, with the bytes that are meant and, where there is one,
    /// a remedy.
    pub fn compile(text: &str, scope: &Scope<'_>) -> Result<Self, ExprError> {
        Self::compile_for(text, scope, &[])
    }

    /// The same inside `each` of these lists: pairs of a list and one of its entries.
    ///
    /// # Errors
    /// As [`compile`](Self::compile).
    pub fn compile_for(
        text: &str,
        scope: &Scope<'_>,
        entries: &[(usize, usize)],
    ) -> Result<Self, ExprError> {
        let (tree, root) = parse::parse(text)?;
        let mut checker = check::Checker::new(text, &tree, scope);
        checker.place.entries = entries.to_vec().into();
        let value = checker.check(root)?;
        let code = program::generate(&checker.dag, &value.ids()).map_err(|_| {
            ExprError::new(
                0..text.len(),
                format!("this expression needs more than {} registers", program::MAX_REGISTERS),
            )
            .help("split it into several terms")
        })?;
        Ok(Self {
            ty: value.ty(),
            units: value.comps.iter().map(|c| c.unit).collect(),
            truth: value.truth,
            quat: value.quat,
            elements: checker.elements,
            of_agent: checker.of_agent,
            code,
        })
    }

    /// Type of the value.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Units of the components, one by one.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// Whether it is a condition, or several.
    pub fn is_truth(&self) -> bool {
        self.truth
    }

    /// Whether it is a quaternion.
    pub fn is_quat(&self) -> bool {
        self.quat
    }

    /// Its steps.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Elements of the model that the value depends on, in order of appearance.
    pub fn elements(&self) -> &[Element] {
        &self.elements
    }

    /// Whether the value may differ between agents: it mentions the agent, the others or
    /// the agent's own outputs.
    pub fn of_agent(&self) -> bool {
        self.of_agent
    }

    /// Steps of the compiled code: each costs one pass over a block.
    pub fn steps(&self) -> usize {
        self.code.steps.len()
    }

    /// Registers that `eval` needs, in floats.
    pub fn scratch_len(&self) -> usize {
        self.code.registers * BLOCK
    }

    /// Evaluates one block: component `i` of environment `first + lane` is at
    /// `result[i * BLOCK + lane]`; lanes past `len` hold no meaning. A lane's bits
    /// depend on its environment alone.
    ///
    /// # Panics
    /// When `inputs` has fewer rows or environments than the scope the program was
    /// compiled for: a mistake of the caller's, not of the data.
    pub fn eval<'s>(&self, inputs: &Inputs<'_>, scratch: &'s mut Scratch) -> &'s [f32] {
        self.code.eval(inputs, scratch)
    }
}

#[cfg(test)]
mod tests;
