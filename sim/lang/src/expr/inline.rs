//! Named expressions (`[task.let]`) where they are used: their operations stand there, as if
//! they had been written out; equal ones are computed once.

use super::checker::Checker;
use super::error::ExprError;
use super::place::{Argument, Place};
use super::tree::{Node, NodeRef};
use super::value::Value;
use std::ops::Range;
use std::rc::Rc;

impl<'a> Checker<'a> {
    /// The value of a named value.
    pub(super) fn named_value(
        &mut self,
        index: usize,
        span: &Range<usize>,
    ) -> Result<Value, ExprError> {
        let own = &self.scope.defined.lets[index];
        if let Some(parameters) = &own.parameters {
            let error = ExprError::new(span.clone(), format!("`{}` needs its arguments", own.name));
            return Err(error.help(format!("write {}({})", own.name, parameters.join(", "))));
        }
        let key = (index, Rc::clone(&self.place.entries), self.place.meant);
        if let Some((known, by_name)) = self.values.get(&key) {
            self.by_name |= by_name;
            return Ok(known.clone());
        }
        let before = std::mem::take(&mut self.by_name);
        let value = self.inside(index, Rc::from([]), None)?;
        self.values.insert(key, (value.clone(), self.by_name));
        self.by_name |= before;
        Ok(value)
    }

    /// A call of a named function.
    pub(super) fn named_call(
        &mut self,
        index: usize,
        args: &[NodeRef],
        span: &Range<usize>,
    ) -> Result<Value, ExprError> {
        let own = &self.scope.defined.lets[index];
        let Some(parameters) = &own.parameters else {
            let error =
                ExprError::new(span.clone(), format!("`{}` is a value, not a function", own.name));
            return Err(error.help(format!("write {} alone", own.name)));
        };
        if parameters.len() != args.len() {
            let takes = match parameters.len() {
                1 => "1 argument".to_string(),
                n => format!("{n} arguments"),
            };
            let error = ExprError::new(
                span.clone(),
                format!("`{}` takes {takes}, this is {}", own.name, args.len()),
            );
            return Err(error.help(format!("write {}", own.key)));
        }
        let arguments = parameters.iter().zip(args).map(|(name, &node)| Argument {
            name,
            node,
            place: self.place.clone(),
            value: None.into(),
        });
        let arguments = arguments.collect();
        let caller = Rc::new((self.place.clone(), span.start));
        self.inside(index, arguments, Some(caller))
    }

    /// The value of a named expression's text.
    fn inside(
        &mut self,
        index: usize,
        arguments: Rc<[Argument<'a>]>,
        caller: Option<Rc<(Place<'a>, usize)>>,
    ) -> Result<Value, ExprError> {
        let own = &self.scope.defined.lets[index];
        let place = Place {
            tree: &own.body.tree,
            text: own.text,
            of: Some(index),
            arguments,
            base: self.place.entries.len(),
            caller,
            ..self.place.clone()
        };
        let value = self.at_place(place, |c| c.check(own.body.root));
        value.map_err(|e| e.inside_of(own.key))
    }

    /// The value of argument `index` of the function whose text is being checked.
    pub(super) fn argument_value(&mut self, index: usize) -> Result<Value, ExprError> {
        let arguments = Rc::clone(&self.place.arguments);
        let argument = &arguments[index];
        if let Some(value) = &*argument.value.borrow() {
            return Ok(value.clone());
        }
        let value = self.of_argument(argument, |c| c.check(argument.node))?;
        *argument.value.borrow_mut() = Some(value.clone());
        Ok(value)
    }

    /// Does `work` where the argument was written; errors are of that text.
    pub(super) fn of_argument<T>(
        &mut self,
        argument: &Argument<'a>,
        work: impl FnOnce(&mut Self) -> Result<T, ExprError>,
    ) -> Result<T, ExprError> {
        let writer = argument.place.of.map(|w| self.scope.defined.lets[w].key);
        let done = self.at_place(argument.place.clone(), work);
        done.map_err(|e| e.settled_in(writer))
    }

    /// The name that argument `index` is, for `{parameter}`.
    pub(super) fn name_of_argument(
        &mut self,
        index: usize,
        span: Range<usize>,
    ) -> Result<String, ExprError> {
        let arguments = Rc::clone(&self.place.arguments);
        let argument = &arguments[index];
        let (node, written) = &argument.place.tree.nodes[argument.node];
        match node {
            Node::Name(name) | Node::Text(name) => {
                // The argument may itself be a parameter where it was written.
                let passed = argument.place.argument(name);
                self.of_argument(argument, |c| match (passed, node) {
                    (Some(outer), Node::Name(_)) => c.name_of_argument(outer, written.clone()),
                    _ => c.fill(name, written).map(|name| name.into_owned()),
                })
            }
            _ => {
                let what = argument.name;
                Err(ExprError::new(
                    span,
                    format!("`{{{what}}}` stands for a name, but the argument is none"),
                )
                .help(format!("write {what} for its value")))
            }
        }
    }
}
