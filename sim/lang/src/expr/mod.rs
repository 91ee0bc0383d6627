//! The expression language of tasks: text -> checked program -> values of a block
//! of environments. The language is described in `docs/task-expressions.md`.

mod agents;
mod arguments;
mod braces;
mod call;
mod check;
mod checker;
mod dag;
mod define;
mod draws;
mod each;
mod element;
mod elements;
mod emit;
mod error;
mod events;
mod foreign;
mod function;
mod functions;
mod history;
mod inline;
mod inputs;
mod lex;
mod looks;
mod names;
mod operators;
mod ops;
mod parse;
mod place;
mod program;
mod readings;
mod scope;
mod signature;
mod start;
mod tree;
mod unit;
mod value;

pub use dag::{Seen, Source};
pub use define::is_name;
pub use define::{Declared, Definitions, Let, LetRow, List};
pub use draws::{Draws, Start};
pub use element::{Element, ElementKind};
pub use emit::literal;
pub use error::ExprError;
pub use events::{EventNumbers, EventValue};
pub use function::{Body, Function};
pub use functions::field_unit;
pub use functions::reference;
pub use history::{Cell, History, HistoryBuilder, Kind as Remembered, StateRow};
pub use inputs::{Buffers, Inputs};
pub use inputs::{Column, Columns};
pub use looks::{Look, LookOf, Looks};
pub use ops::Op;
pub use ostler_engine::phases::BLOCK;
pub use place::PLACEHOLDERS;
pub use program::{Code, Program, Scratch, Step};
pub use readings::{Readings, Scan, ScanKind};
pub use scope::{Agents, Scope};
pub use signature::{Kind, Param, Rule, one};
pub use start::reads;
pub use unit::Unit;
pub use value::Type;

use checker::Checker;
use parse::parse;
use program::{MAX_REGISTERS, generate};

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
        let (tree, root) = parse(text)?;
        let mut checker = Checker::new(text, &tree, scope);
        checker.place.entries = entries.to_vec().into();
        let value = checker.check(root)?;
        // Infinite is a robot's own number: a force without a limit.
        if value.ids().into_iter().any(|id| checker.dag.value(id).is_some_and(f32::is_nan)) {
            return Err(ExprError::new(0..text.len(), "this is no number (NaN) in every state")
                .help("0 / 0, a logarithm or a root of a negative number?"));
        }
        let code = generate(&checker.dag, &value.ids()).map_err(|_| {
            ExprError::new(
                0..text.len(),
                format!("this expression needs more than {MAX_REGISTERS} registers"),
            )
            .help("split it into several terms")
        })?;
        Ok(Self {
            ty: value.ty(),
            units: value.comps.iter().map(|c| c.unit).collect(),
            truth: value.truth,
            quat: value.quat,
            elements: checker.elements,
            shared: checker.shared,
            of_agent: checker.of_agent,
            code,
        })
    }
}

#[cfg(test)]
mod tests;
