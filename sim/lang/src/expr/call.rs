//! Calls: matching arguments with parameters, applying the table's unit rules.

use super::checker::{Checker, Steps};
use super::dag::{Dag, Id};
use super::element::{Element, ElementKind};
use super::elements::{kind_of, resolve};
use super::error::ExprError;
use super::function::{Arg, Body, Call, Function};
use super::functions;
use super::signature::{Kind, Rule};
use super::tree::{Node, NodeRef};
use super::unit::Unit;
use super::value::{Comp, Value};
use ostler_base::names::{listed, nearest};
use std::ops::Range;

impl Checker<'_> {
    /// `name(args)`.
    pub(super) fn call(
        &mut self,
        name: &str,
        name_span: &Range<usize>,
        args: &[NodeRef],
        span: &Range<usize>,
    ) -> Result<Value, ExprError> {
        if let ("each", [list, of]) = (name, args) {
            return self.over_list(*list, *of, span);
        }
        if let Some(named) = self.scope.defined.find(name) {
            return self.named_call(named, args, span);
        }
        if let ("each" | "others", [of]) = (name, args) {
            return self.over_agents(name, *of, span);
        }
        // `each` is of lists or of agents: what this task has is meant.
        let of_agents = self.scope.agents.is_some() && self.scope.defined.lists.is_empty();
        let mut all = functions::all().filter(|f| f.name == name);
        let found = match of_agents {
            true => all.next_back(),
            false => all.next(),
        };
        let Some(f) = found else {
            return Err(self.unknown_function(name, name_span));
        };
        let (least, most) = f.counts();
        if args.len() < least || args.len() > most {
            let wants = match (least, most) {
                (0, 0) => "no arguments".to_string(),
                (1, 1) => "1 argument".to_string(),
                (a, b) if a == b => format!("{a} arguments"),
                (a, usize::MAX) => format!("{a} or more arguments"),
                (a, b) => format!("{a} to {b} arguments"),
            };
            let at = args.get(most).map_or_else(|| span.clone(), |&a| self.span(a));
            return Err(ExprError::new(
                at,
                format!("`{name}` takes {wants}, this is {}", args.len()),
            )
            .help(match f.params.first().map(|p| p.kind) {
                Some(Kind::Touch) if args.len() > most => {
                    format!("write {}; several names are a list: {name}([a, b, c])", f.signature())
                }
                _ => format!("write {}", f.signature()),
            }));
        }
        let mut checked = Vec::with_capacity(args.len());
        for (i, &arg) in args.iter().enumerate() {
            let kind = f.param(i).map_or(Kind::Value, |p| p.kind);
            let span = self.span(arg);
            let arg = if kind == Kind::Word {
                Arg::Word(self.word(f, arg)?)
            } else if kind == Kind::Counted {
                Arg::Value(self.counted(f, arg)?)
            } else if kind == Kind::Latest {
                Arg::Value(self.of_last_step(f, arg)?)
            } else if kind == Kind::Ahead {
                // The time comes before it.
                let own = std::mem::take(&mut checked);
                let call = Call { function: f, span: self.span(arg), args: own };
                let value = self.of_later(&call, f, arg)?;
                checked = call.args;
                Arg::Value(value)
            } else if kind.elements().is_empty() {
                Arg::Value(self.argument(f, kind, arg)?)
            } else {
                Arg::Elements(self.names(f, kind, arg)?)
            };
            checked.push((arg, span));
        }
        self.apply(Call { function: f, span: span.clone(), args: checked })
    }

    /// A condition that is counted in every physics step.
    fn counted(&mut self, f: &Function, arg: NodeRef) -> Result<Value, ExprError> {
        self.of_steps(Steps::Counted, |c| c.argument(f, Kind::Bool, arg))
    }

    /// A value of the reference later on, by the time that is the call's first argument.
    fn of_later(&mut self, call: &Call, f: &Function, arg: NodeRef) -> Result<Value, ExprError> {
        let ahead = functions::steps_ahead(self, call)?;
        // Named expressions mean another frame there.
        let values = std::mem::take(&mut self.values);
        let before = self.ahead;
        self.ahead += ahead;
        let value = self.argument(f, Kind::Value, arg);
        self.ahead = before;
        self.values = values;
        value
    }

    /// A value whose contacts are those of the last physics step.
    fn of_last_step(&mut self, f: &Function, arg: NodeRef) -> Result<Value, ExprError> {
        let latest = std::mem::replace(&mut self.latest, false);
        let value = self.of_steps(Steps::Last, |c| c.argument(f, Kind::Value, arg))?;
        if !std::mem::replace(&mut self.latest, latest) {
            let why = "`latest` is of contacts, and this reads none";
            return Err(ExprError::new(self.span(arg), why)
                .help("all else is of the last physics step as it is"));
        }
        Ok(value)
    }

    /// What `check` makes of an expression where contacts are those of `steps`.
    fn of_steps(
        &mut self,
        steps: Steps,
        check: impl FnOnce(&mut Self) -> Result<Value, ExprError>,
    ) -> Result<Value, ExprError> {
        // Named expressions mean other contacts there.
        let values = std::mem::take(&mut self.values);
        let before = std::mem::replace(&mut self.steps, steps);
        let value = check(self);
        self.steps = before;
        self.values = values;
        value
    }

    /// An argument that is a value.
    fn argument(&mut self, f: &Function, kind: Kind, arg: NodeRef) -> Result<Value, ExprError> {
        let value = self.check(arg)?;
        let who = format!("`{}`", f.name);
        let wanted = match kind {
            Kind::Bool => {
                self.condition(&value, self.span(arg), &who)?;
                return Ok(value);
            }
            Kind::Vec3 => 3,
            Kind::Quat => 4,
            _ => return Ok(value),
        };
        if value.len() == wanted {
            return Ok(value);
        }
        let message = format!("{who} takes a {} here, this is {}", kind.noun(), value.describe());
        Err(ExprError::new(self.span(arg), message).help(format!("write {}", f.signature())))
    }

    /// An argument that is a word: bare, quoted, or a parameter that stands for one.
    fn word(&mut self, f: &Function, arg: NodeRef) -> Result<String, ExprError> {
        let (node, span) = &self.place.tree.nodes[arg];
        match node {
            Node::Name(name) => match self.place.argument(name) {
                Some(argument) => self.name_of_argument(argument, span.clone()),
                None => Ok(self.fill(name, span)?.into_owned()),
            },
            Node::Text(name) => Ok(self.fill(name, span)?.into_owned()),
            _ => {
                let why = format!("`{}` takes a word here", f.name);
                Err(ExprError::new(span.clone(), why).help(format!("write {}", f.signature())))
            }
        }
    }

    /// An argument that names elements: a bare or quoted name, or a list of them.
    fn names(&mut self, f: &Function, kind: Kind, arg: NodeRef) -> Result<Vec<Element>, ExprError> {
        let (node, span) = &self.place.tree.nodes[arg];
        match node {
            Node::Name(name) | Node::Text(name) => {
                let bare = matches!(node, Node::Name(_));
                if let Some(argument) = self.place.argument(name).filter(|_| bare) {
                    let arguments = std::rc::Rc::clone(&self.place.arguments);
                    let argument = &arguments[argument];
                    return self.of_argument(argument, |c| c.names(f, kind, argument.node));
                }
                let name = self.fill(name, span)?;
                let found = self.elements_called(&name, f, kind, span)?;
                self.shares(&found, kind);
                Ok(found)
            }
            Node::Call { name, args, .. } if Kind::called(name).is_some() => {
                self.names_of_kind(f, kind, name, args, span)
            }
            Node::Call { name, args, .. } if *name == "subtree" && kind == Kind::Touch => {
                let [body] = args[..] else {
                    let why = format!("`subtree` takes 1 argument, this is {}", args.len());
                    return Err(ExprError::new(span.clone(), why).help("write subtree(body)"));
                };
                let mut all = self.names(f, Kind::Body, body)?;
                for e in &mut all {
                    e.kind = ElementKind::Subtree;
                }
                Ok(all)
            }
            Node::List(items) => {
                let (mut all, mut named) = (Vec::new(), Vec::new());
                for &item in items {
                    let found = self.names(f, kind, item)?;
                    if let ([one], Node::Name(_) | Node::Text(_)) =
                        (&found[..], &self.place.tree.nodes[item].0)
                    {
                        let span = self.span(item);
                        let written = &self.place.text[span.clone()];
                        if named.contains(one) && !written.contains('*') {
                            let why = format!("{written} is in the list twice");
                            return Err(ExprError::new(span, why).help("every name stands once"));
                        }
                        named.push(*one);
                    }
                    all.extend(found);
                }
                Ok(all)
            }
            _ => {
                let text = &self.place.text[span.clone()];
                let help = if kind_of(self.scope.model, text).is_some() {
                    format!("this name needs quotes: \"{text}\"")
                } else {
                    format!("write {}, with a name or a pattern such as \"foot_*\"", f.signature())
                };
                let message = format!("`{}` takes the name of a {}", f.name, kind.noun());
                Err(ExprError::new(span.clone(), message).help(help))
            }
        }
    }

    /// `site(name)`: the elements of one kind alone.
    fn names_of_kind(
        &mut self,
        f: &Function,
        kind: Kind,
        word: &str,
        args: &[NodeRef],
        span: &Range<usize>,
    ) -> Result<Vec<Element>, ExprError> {
        let ([name], Some(own)) = (args, Kind::called(word)) else {
            let why = format!("`{word}` takes 1 argument, this is {}", args.len());
            return Err(ExprError::new(span.clone(), why)
                .help(format!("write {word}(name); several are a list: {word}([a, b])")));
        };
        if !own.elements().iter().all(|e| kind.elements().contains(e)) {
            let why = format!("`{}` takes a {}, this is a {word}", f.name, kind.noun());
            return Err(ExprError::new(span.clone(), why).help(format!("write {}", f.signature())));
        }
        self.names(f, own, *name)
    }

    /// Notes which of these elements share their names with others that could be meant.
    fn shares(&mut self, found: &[Element], kind: Kind) {
        let model = self.scope.model;
        for &e in found {
            let name = e.kind.names(model)[e.index];
            let others = kind.elements().iter().filter(|k| **k != e.kind);
            for &other in others.filter(|k| k.names(model).contains(&name)) {
                if !self.shared.contains(&(e, other)) {
                    self.shared.push((e, other));
                }
            }
        }
    }

    /// The elements that `name` means: a part of the robot or a pattern, else a list of
    /// `[task.names]`.
    fn elements_called(
        &self,
        name: &str,
        f: &Function,
        kind: Kind,
        span: &Range<usize>,
    ) -> Result<Vec<Element>, ExprError> {
        let (model, defined) = (self.scope.model, self.scope.defined);
        let is_part = |name: &str| {
            let kinds = kind.elements().iter();
            kinds.clone().any(|k| k.names(model).contains(&name))
        };
        if name.contains(',') && !is_part(name) {
            let mut all = Vec::new();
            for one in listed(name) {
                all.extend(self.elements_called(one, f, kind, span)?);
            }
            return Ok(all);
        }
        let Some(list) = defined.list(name).filter(|_| !is_part(name)) else {
            let found = resolve(model, name, kind, f.name, span.clone());
            let near = nearest(name, defined.list_names());
            return found.map_err(|e| match (near, &e.help) {
                (Some(near), None) => e.help(format!("did you mean the list {near}?")),
                _ => e,
            });
        };
        let list = &defined.lists[list];
        let mut all = Vec::new();
        for entry in &list.written {
            let found = resolve(model, entry, kind, f.name, span.clone());
            let found = found.map_err(|mut e| {
                e.message = format!("{}, an entry of task.names.{}", e.message, list.name);
                e
            })?;
            all.extend(found);
        }
        Ok(all)
    }

    /// Applies a function to checked arguments.
    pub(super) fn apply(&mut self, call: Call) -> Result<Value, ExprError> {
        let value = match &call.function.body {
            Body::Map(f) => self.map_rule(&call, f)?,
            Body::Fold(f) => self.fold_rule(&call, f)?,
            Body::Special(f) => f(self, &call)?,
        };
        if value.len() == 0 {
            let name = call.function.name;
            return Err(ExprError::new(call.span, format!("`{name}` is empty here"))
                .help(format!("the model \"{}\" has nothing for it", self.scope.model.name)));
        }
        Ok(value)
    }

    /// [`Body::Map`].
    pub(super) fn map_rule(
        &mut self,
        call: &Call,
        f: &fn(&mut Dag, &[Id]) -> Id,
    ) -> Result<Value, ExprError> {
        let values = self.values(call)?;
        for (i, value) in values.iter().enumerate() {
            self.number(value, call.span_of(i), &format!("`{}`", call.function.name))?;
        }
        if matches!(call.function.rule, Rule::Same) {
            return self.map_same(call, &values, f);
        }
        self.zip(call, &values, |d, x| {
            let ids: Vec<Id> = x.iter().map(|c| c.node).collect();
            let unit = unit_of(call, x[0].unit)?;
            Ok(Comp { node: f(d, &ids), unit })
        })
    }

    fn fold_rule(
        &mut self,
        call: &Call,
        f: &fn(&mut Dag, &[Id]) -> Id,
    ) -> Result<Value, ExprError> {
        let v = self.value(call, 0)?;
        let unit = match call.function.rule {
            Rule::Product => v.comps.iter().map(|c| c.unit).fold(Unit::NONE, Unit::times),
            _ => unit_of(call, v.shared_unit())?,
        };
        let ids = v.ids();
        Ok(Value::scalar(f(&mut self.dag, &ids), unit))
    }
}

/// The table's rule for functions whose unit depends on one argument.
fn unit_of(call: &Call, unit: Unit) -> Result<Unit, ExprError> {
    let plain = || {
        if unit.is_plain() {
            return Ok(());
        }
        let message = format!("`{}` takes a pure number, this is in [{unit}]", call.function.name);
        Err(ExprError::new(call.span_of(0), message)
            .help("divide by a constant that says the scale"))
    };
    Ok(match call.function.rule {
        Rule::Plain => {
            plain()?;
            Unit::NONE
        }
        Rule::Angle => {
            plain()?;
            Unit::RAD
        }
        Rule::Power(p) => unit.power(p),
        Rule::Fixed(text) => Unit::parse(text).unwrap_or(Unit::Any),
        Rule::Compare(text) => Unit::parse(text).unwrap_or(Unit::Any),
        Rule::Keep | Rule::Same | Rule::Shared | Rule::Product | Rule::Each(_) => unit,
    })
}
