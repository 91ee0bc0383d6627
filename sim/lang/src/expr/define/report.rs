//! Definitions as `ostler check` shows them.

use super::Definitions;
use crate::expr::checker::Checker;
use crate::expr::draws::{Draws, Start};
use crate::expr::error::ExprError;
use crate::expr::history::HistoryBuilder;
use crate::expr::scope::Scope;
use crate::expr::value::Type;
use ostler_base::ConfigError;

/// A named expression, for people.
#[derive(Debug, Clone, PartialEq)]
pub struct LetRow {
    /// `moving`, `near(error2, std)`.
    pub key: String,
    /// Its text.
    pub expr: String,
    /// Its type; `None` of a function, whose type depends on its arguments.
    pub ty: Option<Type>,
    /// Lists of which an entry must be given, by `each(LIST, ...)` around it.
    pub inside: Vec<String>,
}

impl Definitions<'_> {
    /// Checks every value by itself, also those that nothing uses, and says what they are.
    /// One that speaks of an entry of a list is checked for the list's first. `scopes`: the
    /// world's or an agent's; a value has to be sound in one of them.
    ///
    /// # Errors
    /// A mistake in one of them.
    pub fn rows(&self, scopes: &[Scope<'_>]) -> Result<Vec<LetRow>, ConfigError> {
        let mut rows = Vec::with_capacity(self.lets.len());
        for (i, own) in self.lets.iter().enumerate() {
            let mut row = LetRow {
                key: own.key.to_string(),
                expr: own.text.to_string(),
                ty: None,
                inside: Vec::new(),
            };
            if own.parameters.is_none() {
                let mut first = None;
                let found = scopes.iter().find_map(|scope| match self.tried(i, scope) {
                    Ok(found) => Some(found),
                    Err(e) => {
                        first.get_or_insert(e);
                        None
                    }
                });
                (row.ty, row.inside) = match (found, first) {
                    (Some((ty, inside)), _) => (Some(ty), inside),
                    (None, Some(e)) => return Err(e.at(own.path())),
                    (None, None) => (None, Vec::new()),
                };
            }
            rows.push(row);
        }
        Ok(rows)
    }
    /// The type of a value by itself, and the lists of which it takes an entry.
    fn tried(&self, own: usize, scope: &Scope<'_>) -> Result<(Type, Vec<String>), ExprError> {
        // What it remembers is not remembered unless a term uses it.
        let history: HistoryBuilder = scope.history.clone();
        let readings = scope.readings.clone();
        let events = scope.events.clone();
        let draws = Draws::default();
        let start = Start { draws: &draws, of: "", drawing: false };
        let scope = Scope {
            history: &history,
            readings: &readings,
            start: Some(start),
            events: &events,
            ..scope.clone()
        };
        let body = &self.lets[own].body;
        let mut checker = Checker::new(self.lets[own].text, &body.tree, &scope).trying(own);
        let value = checker.check(body.root)?;
        let free = checker.free.iter().map(|&l| self.lists[l].name.clone());
        Ok((value.ty(), free.collect()))
    }
}
