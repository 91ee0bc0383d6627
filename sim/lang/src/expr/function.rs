//! Functions and their calls.

use super::checker::Checker;
use super::dag::{Dag, Id};
use super::element::Element;
use super::error::ExprError;
use super::signature::{Need, Param, Rule};
use super::value::Value;
use std::ops::Range;

/// How a function becomes operations.
pub enum Body {
    /// Component by component; scalars are repeated.
    Map(fn(&mut Dag, &[Id]) -> Id),
    /// All components of the one argument.
    Fold(fn(&mut Dag, &[Id]) -> Id),
    /// Anything else.
    Special(fn(&mut Checker<'_>, &Call) -> Result<Value, ExprError>),
}

/// One function.
pub struct Function {
    /// Name.
    pub name: &'static str,
    /// Parameters.
    pub params: &'static [Param],
    /// The result, for the table: `3`, `bool`, `one per joint`, ...
    pub gives: &'static str,
    /// Units.
    pub rule: Rule,
    /// One line.
    pub doc: &'static str,
    /// Meaning.
    pub body: Body,
}

impl Function {
    /// `clip(x, lo, hi)`.
    pub fn signature(&self) -> String {
        if self.params.is_empty() {
            return self.name.to_string();
        }
        let mut text = String::new();
        let mut open = 0;
        for (i, p) in self.params.iter().enumerate() {
            let comma = if i > 0 { ", " } else { "" };
            match p.need {
                Need::One => text += &format!("{comma}{}", p.name),
                Need::Optional => {
                    text += &format!("[{comma}{}", p.name);
                    open += 1;
                }
                Need::More => text += &format!("{comma}..."),
            }
        }
        format!("{}({text}{})", self.name, "]".repeat(open))
    }

    /// Fewest and most arguments.
    pub fn counts(&self) -> (usize, usize) {
        let least = self.params.iter().filter(|p| p.need == Need::One).count();
        let many = self.params.iter().any(|p| p.need == Need::More);
        (least, if many { usize::MAX } else { self.params.len() })
    }

    /// The parameter that argument `i` is for.
    pub fn param(&self, i: usize) -> Option<&'static Param> {
        self.params.get(i).or_else(|| self.params.last())
    }
}

/// An argument of a call.
#[derive(Debug, Clone)]
pub enum Arg {
    /// A value.
    Value(Value),
    /// Named elements of the model.
    Elements(Vec<Element>),
    /// A word.
    Word(String),
}

/// A call whose arguments were checked.
pub struct Call {
    /// The called function.
    pub function: &'static Function,
    /// The whole call.
    pub span: Range<usize>,
    /// Arguments and where they are.
    pub args: Vec<(Arg, Range<usize>)>,
}

impl Call {
    /// Where argument `i` is (the call if there is none).
    pub fn span_of(&self, i: usize) -> Range<usize> {
        self.args.get(i).map_or_else(|| self.span.clone(), |a| a.1.clone())
    }

    /// The word that argument `i` is.
    pub fn word(&self, i: usize) -> Option<&str> {
        match self.args.get(i) {
            Some((Arg::Word(word), _)) => Some(word),
            _ => None,
        }
    }

    /// The elements that argument `i` names.
    pub fn elements_of(&self, i: usize) -> &[Element] {
        match self.args.get(i) {
            Some((Arg::Elements(e), _)) => e,
            _ => &[],
        }
    }

    /// The elements that all arguments name; `None` where none names any.
    pub fn elements(&self) -> Option<Vec<Element>> {
        let named = self.args.iter().any(|(arg, _)| matches!(arg, Arg::Elements(_)));
        let all = (0..self.args.len()).flat_map(|i| self.elements_of(i).to_vec());
        named.then(|| all.collect())
    }
}
