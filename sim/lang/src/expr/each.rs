//! `each(LIST, expr)`: something of every entry of a list of parts.

use super::checker::{Checker, MAX_COMPONENTS};
use super::error::ExprError;
use super::place::Place;
use super::tree::{Node, NodeRef};
use super::value::Value;
use ostler_base::names::nearest;
use std::ops::Range;
use std::rc::Rc;

impl<'a> Checker<'a> {
    /// Its values for all entries, one after the other.
    pub(super) fn over_list(
        &mut self,
        list: NodeRef,
        of: NodeRef,
        span: &Range<usize>,
    ) -> Result<Value, ExprError> {
        let list = self.list_meant(list)?;
        let count = self.scope.defined.lists[list].entries.len();
        let mut values = Vec::with_capacity(count);
        let around = Rc::clone(&self.place.entries);
        for entry in 0..count {
            // An inner list of the same name hides the outer one.
            let outer = around.iter().copied().filter(|b| b.0 != list);
            let place = Place {
                entries: Rc::new(outer.chain([(list, entry)]).collect()),
                ..self.place.clone()
            };
            let value = self.at_place(place, |c| c.check(of));
            values.push(value?);
            self.small(&values, span)?;
        }
        self.concat(values, span.clone())
    }

    /// Refuses vectors that would be too long before the rest of them is checked.
    fn small(&self, values: &[Value], span: &Range<usize>) -> Result<(), ExprError> {
        let len: usize = values.iter().map(Value::len).sum();
        if len <= MAX_COMPONENTS {
            return Ok(());
        }
        let message = format!("this vector has {len} components, and more");
        let most = format!("at most {}", MAX_COMPONENTS);
        Err(ExprError::new(span.clone(), message).help(most))
    }

    /// The list that the first argument of `each` names.
    fn list_meant(&mut self, node: NodeRef) -> Result<usize, ExprError> {
        let (kind, span) = &self.place.tree.nodes[node];
        let defined = self.scope.defined;
        let Node::Name(name) = kind else {
            return Err(ExprError::new(
                span.clone(),
                "`each` takes the name of a list of [task.names] first",
            )
            .help("write each(LIST, expr)"));
        };
        if let Some(argument) = self.place.argument(name) {
            let arguments = Rc::clone(&self.place.arguments);
            let argument = &arguments[argument];
            return self.of_argument(argument, |c| c.list_meant(argument.node));
        }
        if let Some(list) = defined.list(name) {
            return Ok(list);
        }
        let error =
            ExprError::new(span.clone(), format!("no list of [task.names] is called \"{name}\""));
        let near = nearest(name, defined.list_names());
        let all: Vec<&str> = defined.list_names().collect();
        Err(error.help(match near {
            Some(near) => format!("did you mean {near}?"),
            None if all.is_empty() => format!("add {name} = [\"...\"] to [task.names]"),
            None => format!("there are: {}", all.join(", ")),
        }))
    }
}
