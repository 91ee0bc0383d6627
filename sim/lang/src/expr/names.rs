//! Names that stand alone, commands, parameters, components.

use super::checker::Checker;
use super::dag::Source;
use super::element::ElementKind;
use super::elements::kind_of;
use super::error::ExprError;
use super::function::Call;
use super::signature::Kind;
use super::tree::{Node, NodeRef};
use super::unit::{UNITS, Unit};
use super::value::{Comp, Value};
use super::{foreign, functions};
use ostler_base::names::nearest;
use std::ops::Range;

impl Checker<'_> {
    /// A name that stands alone.
    pub(super) fn name(&mut self, name: &str, span: &Range<usize>) -> Result<Value, ExprError> {
        match name {
            "true" | "false" => {
                let value = f64::from(u8::from(name == "true"));
                return Ok(Value::truth(vec![self.dag.constant(value)]));
            }
            "command" => return self.commands(span),
            "param" => {
                return Err(
                    ExprError::new(span.clone(), "which parameter?").help(self.params_help())
                );
            }
            "state" => {
                return Err(ExprError::new(span.clone(), "which state?").help(self.states_help()));
            }
            "native" => {
                let error = ExprError::new(span.clone(), "which native function?");
                return Err(error.help(self.natives_help()));
            }
            "motion" => {
                let error = ExprError::new(span.clone(), "what of the reference motion?");
                return Err(error.help(MOTION));
            }
            "event" => {
                return Err(ExprError::new(span.clone(), "which event?").help(self.events_help()));
            }
            _ => {}
        }
        if let Some(argument) = self.place.argument(name) {
            return self.argument_value(argument);
        }
        if let Some(named) = self.scope.defined.find(name) {
            return self.named_value(named, span);
        }
        if let Some(f) = functions::find(name) {
            if f.counts().0 == 0 {
                return self.apply(Call { function: f, span: span.clone(), args: Vec::new() });
            }
            return Err(ExprError::new(span.clone(), format!("`{name}` needs its arguments"))
                .help(format!("write {}", f.signature())));
        }
        Err(self.unknown(name, span, false))
    }

    /// Whether a name is no value and no function.
    fn means_nothing(&self, name: &str) -> bool {
        self.place.argument(name).is_none()
            && self.scope.defined.find(name).is_none()
            && functions::find(name).is_none()
    }

    /// An error for a name that means nothing; `owner`: it stands before `.NAME`.
    fn unknown(&self, name: &str, span: &Range<usize>, owner: bool) -> ExprError {
        if let Some(kind) = kind_of(self.scope.model, name) {
            let write = match kind {
                ElementKind::Joint => format!("joint_pos({name}) or joint_vel({name})"),
                ElementKind::Actuator => format!("actuator_force({name}) or ctrl({name})"),
                ElementKind::Sensor => format!("sensor({name})"),
                _ => format!("pos({name}), lin_vel({name}) or another function of it"),
            };
            let noun = kind.noun();
            let a = if kind == ElementKind::Actuator { "an" } else { "a" };
            return ExprError::new(span.clone(), format!("`{name}` is {a} {noun}, not a value"))
                .help(format!("write {write}"));
        }
        let defined = self.scope.defined;
        if defined.list(name).is_some() {
            let error =
                ExprError::new(span.clone(), format!("`{name}` is a list of names, not a value"));
            return error.help(format!(
                "write height({name}) or another function of its parts, or each({name}, ...)"
            ));
        }
        let error = ExprError::new(span.clone(), format!("unknown name `{name}`"));
        if let Some(advice) = foreign::lookup(name) {
            return error.help(advice);
        }
        if self.scope.commands.iter().any(|c| c.0 == name) {
            return error.help(format!("the command is written command.{name}"));
        }
        if self.scope.params.iter().any(|p| p == name) {
            return error.help(format!("the parameter is written param.{name}"));
        }
        if let Some(what) = foreign::term(name).filter(|_| owner) {
            return ExprError::new(span.clone(), format!("{what} cannot be read in an expression"))
                .help("[task.let] gives an expression a name that several terms can read");
        }
        // What takes arguments has no parts without them.
        let names = functions::all()
            .filter(|f| !owner || f.counts().0 == 0)
            .map(|f| f.name)
            .chain(["command", "param", "state", "native", "event", "motion"])
            .chain(["true", "false"].into_iter().filter(|_| !owner))
            .chain(self.place.arguments.iter().map(|a| a.name))
            .chain(defined.let_names())
            .chain(defined.list_names());
        let elements = [ElementKind::Body, ElementKind::Joint];
        let model = elements.iter().flat_map(|k| k.names(self.scope.model)).filter(|_| !owner);
        match nearest(name, names.chain(model)) {
            Some(near) => error.help(match functions::find(near) {
                Some(f) => format!("did you mean {}?", f.signature()),
                None => format!("did you mean `{near}`?"),
            }),
            None => error.help(
                "values are qpos, qvel, action, command.NAME, param.NAME and functions such as \
                 joint_pos(JOINT), pos(BODY); all are listed in docs/task-functions.md",
            ),
        }
    }

    /// A quoted name outside of a function that takes one.
    pub(super) fn quoted(&self, text: &str, span: &Range<usize>) -> ExprError {
        let error = ExprError::new(span.clone(), "a quoted name is not a value");
        match kind_of(self.scope.model, text) {
            Some(ElementKind::Joint) => error.help(format!("write joint_pos(\"{text}\")")),
            Some(ElementKind::Actuator) => error.help(format!("write ctrl(\"{text}\")")),
            Some(ElementKind::Sensor) => error.help(format!("write sensor(\"{text}\")")),
            Some(_) => error.help(format!("write pos(\"{text}\") or another function of it")),
            None => error.help("quotes are for names of bodies, joints, ... as arguments"),
        }
    }

    /// All commands, one after the other.
    fn commands(&mut self, span: &Range<usize>) -> Result<Value, ExprError> {
        if self.scope.commands.is_empty() {
            return Err(ExprError::new(span.clone(), "this task has no commands")
                .help("add a [[task.command]]"));
        }
        let mut comps = Vec::new();
        for (name, width, text) in self.scope.commands {
            let Some(unit) = Unit::parse(text) else {
                return Err(ExprError::new(
                    span.clone(),
                    format!("the command \"{name}\" has the unknown unit \"{text}\""),
                )
                .help(UNITS));
            };
            for _ in 0..*width {
                let node = self.dag.load(Source::Command, comps.len());
                comps.push(Comp { node, unit });
            }
        }
        Ok(Value::new(comps))
    }

    fn params_help(&self) -> String {
        match self.scope.params {
            [] => "this task has no [task.params]".into(),
            names => format!("write param.NAME; there are: {}", names.join(", ")),
        }
    }

    fn states_help(&self) -> String {
        match self.scope.defined.states[..] {
            [] => "this task has no [[task.state]]".into(),
            ref names => format!("write state.NAME; there are: {}", names.join(", ")),
        }
    }

    /// `state.name`.
    fn state(&mut self, name: &str, span: &Range<usize>) -> Result<Value, ExprError> {
        if let Some(value) = self.scope.history.state(name, &mut self.dag) {
            return Ok(value);
        }
        let declared = &self.scope.defined.states;
        if declared.contains(&name) {
            let why = format!("the state \"{name}\" has no value here yet");
            return Err(ExprError::new(span.clone(), why)
                .help("an `init` may read the states before its own; write this one later"));
        }
        let error = ExprError::new(span.clone(), format!("no state called \"{name}\""));
        let made = self.scope.history.state_names();
        let names = made.iter().map(String::as_str);
        Err(error.help(match nearest(name, names.chain(declared.iter().copied())) {
            Some(near) => format!("did you mean state.{near}?"),
            None => self.states_help(),
        }))
    }

    /// `a.name`: a command, a parameter, a state or components.
    fn natives_help(&self) -> String {
        let names: Vec<&str> = self.native_names().collect();
        match names[..] {
            [] => "this task has no [[task.native]]".into(),
            _ => format!("write native.NAME; there are: {}", names.join(", ")),
        }
    }

    fn native_names(&self) -> impl Iterator<Item = &str> {
        self.scope.defined.natives.iter().map(|n| n.name.as_str())
    }

    /// The outputs of a native function.
    fn native(&mut self, name: &str, span: &Range<usize>) -> Result<Value, ExprError> {
        let Some(native) = self.scope.defined.native(name) else {
            let why = format!("no native function called \"{name}\"");
            let help = match nearest(name, self.native_names()) {
                Some(near) => format!("did you mean native.{near}?"),
                None => self.natives_help(),
            };
            return Err(ExprError::new(span.clone(), why).help(help));
        };
        let comps = native
            .units
            .iter()
            .enumerate()
            .map(|(i, &unit)| Comp { node: self.dag.load(Source::Native, native.first + i), unit });
        Ok(Value::new(comps.collect()))
    }

    pub(super) fn member(
        &mut self,
        of: NodeRef,
        name: &str,
        name_span: &Range<usize>,
    ) -> Result<Value, ExprError> {
        let (node, span) = &self.place.tree.nodes[of];
        match node {
            Node::Name("param") => {
                let Some(i) = self.scope.params.iter().position(|p| p == name) else {
                    let error = ExprError::new(
                        name_span.clone(),
                        format!("no parameter called \"{name}\""),
                    );
                    let near = nearest(name, self.scope.params.iter().map(String::as_str));
                    return Err(error.help(match near {
                        Some(near) => format!("did you mean param.{near}?"),
                        None => self.params_help(),
                    }));
                };
                let node = self.dag.load(Source::Param, i);
                return Ok(Value::scalar(node, Unit::Any));
            }
            Node::Name("state") => return self.state(name, name_span),
            Node::Name("native") => return self.native(name, name_span),
            Node::Name("event") => return self.event(name, name_span),
            Node::Name("motion") => return self.motion(name, name_span, span),
            Node::Name("command") => {
                let all = self.commands(span)?;
                let mut first = 0;
                for (command, width, _) in self.scope.commands {
                    if command == name {
                        return Ok(Value::new(all.comps[first..first + width].to_vec()));
                    }
                    first += width;
                }
                if !name.chars().all(|c| "xyzw".contains(c)) {
                    let names: Vec<&str> =
                        self.scope.commands.iter().map(|c| c.0.as_str()).collect();
                    let help = match nearest(name, names.iter().copied()) {
                        Some(near) => format!("did you mean command.{near}?"),
                        None => format!("there are: {}", names.join(", ")),
                    };
                    return Err(ExprError::new(
                        name_span.clone(),
                        format!("no command called \"{name}\""),
                    )
                    .help(help));
                }
            }
            Node::Name(
                "np" | "numpy" | "torch" | "math" | "self" | "env" | "data" | "asset" | "robot",
            ) => {
                return Err(ExprError::new(
                    span.clone(),
                    "names stand alone here, without anything in front",
                )
                .help(foreign::lookup(name).unwrap_or("such as qpos, action, lin_vel(torso)")));
            }
            Node::Name(owner) if self.means_nothing(owner) => {
                return Err(self.unknown(owner, span, true));
            }
            _ => {}
        }
        let value = self.check(of)?;
        swizzle(&value, name, name_span)
    }

    /// `motion.name` without arguments.
    fn motion(
        &mut self,
        name: &str,
        name_span: &Range<usize>,
        span: &Range<usize>,
    ) -> Result<Value, ExprError> {
        let whole = span.start..name_span.end;
        match functions::of_motion(name) {
            Some(f) if f.counts().0 == 0 => {
                self.apply(Call { function: f, span: whole, args: Vec::new() })
            }
            Some(f) => Err(ExprError::new(whole, format!("`{}` needs its arguments", f.name))
                .help(format!("write {}", f.signature()))),
            None => Err(unknown_motion(name, name_span)),
        }
    }

    /// An error for a call of something that is no function.
    pub(super) fn unknown_function(&self, name: &str, span: &Range<usize>) -> ExprError {
        if matches!(name, "command" | "param" | "state" | "native" | "event") {
            return ExprError::new(span.clone(), format!("`{name}` is not a function"))
                .help(format!("write {name}.NAME"));
        }
        if Kind::called(name).is_some() {
            return ExprError::new(span.clone(), format!("`{name}` is a name, not a value"))
                .help(format!("pos({name}(NAME)), for example"));
        }
        let error = ExprError::new(span.clone(), format!("unknown function `{name}`"));
        if let Some(advice) = foreign::lookup(name) {
            return error.help(advice);
        }
        let defined = self.scope.defined;
        let names = functions::all().map(|f| f.name).chain(defined.let_names());
        let Some(near) = nearest(name, names) else {
            return error.help("every function is listed in docs/task-functions.md");
        };
        let own = defined.find(near).map(|own| defined.lets[own].key.to_string());
        let written = functions::find(near).map(|f| f.signature()).or(own);
        error.help(format!("did you mean {}?", written.as_deref().unwrap_or(near)))
    }

    /// For messages.
    fn events_help(&self) -> String {
        match &self.scope.events.events[..] {
            [] => "this task has no [[task.event]]".into(),
            all => {
                let names: Vec<&str> = all.iter().map(|e| e.name.as_str()).collect();
                format!("write event.NAME; there are: {}", names.join(", "))
            }
        }
    }

    /// `event.name`: what the event drew.
    fn event(&mut self, name: &str, span: &Range<usize>) -> Result<Value, ExprError> {
        let events = self.scope.events;
        let Some(index) = events.events.iter().position(|e| e.name == name) else {
            let error = ExprError::new(span.clone(), format!("no event called \"{name}\""));
            let near = nearest(name, events.events.iter().map(|e| e.name.as_str()));
            return Err(error.help(match near {
                Some(near) => format!("did you mean event.{near}?"),
                None => self.events_help(),
            }));
        };
        let units = &events.events[index].units;
        if units.is_empty() {
            let why = format!("the event \"{name}\" draws no numbers");
            return Err(ExprError::new(span.clone(), why).help("give it a range"));
        }
        let first = events.row(index);
        let each = units.iter().enumerate();
        let comps =
            each.map(|(i, &unit)| Comp { node: self.dag.load(Source::Shown, first + i), unit });
        Ok(Value::new(comps.collect()))
    }
}

/// Components by letters: `.x`, `.xy`, `.zyx`.
fn swizzle(value: &Value, name: &str, span: &Range<usize>) -> Result<Value, ExprError> {
    let letters = if value.quat { "wxyz" } else { "xyzw" };
    let picked: Option<Vec<usize>> = name.chars().map(|c| letters.find(c)).collect();
    let Some(picked) = picked.filter(|p| p.len() <= 4) else {
        return Err(ExprError::new(span.clone(), format!("`.{name}` is not a component"))
            .help("components are .x .y .z .w and runs of them such as .xy; others [0], [2:5]"));
    };
    let n = value.len();
    if !(2..=4).contains(&n) {
        let help = if n == 1 {
            "it is a number already".to_string()
        } else {
            format!("write [0] to [{}], or a slice such as [2:5]", n - 1)
        };
        return Err(
            ExprError::new(span.clone(), format!("`.{name}` of {}", value.describe())).help(help)
        );
    }
    if let Some(i) = picked.iter().find(|&&i| i >= n) {
        let letter = &letters[*i..=*i];
        return Err(ExprError::new(span.clone(), format!("a vector of {n} has no .{letter}"))
            .help(format!(
                "it has .{}",
                letters[..n].split("").filter(|l| !l.is_empty()).collect::<Vec<_>>().join(" .")
            )));
    }
    Ok(Value {
        comps: picked.into_iter().map(|i| value.comps[i]).collect(),
        truth: value.truth,
        quat: value.quat && name == "wxyz",
    })
}

/// What can be read of the reference motion.
const MOTION: &str = "write motion.joint_pos, motion.joint_vel, motion.pos(BODY), \
                      motion.quat(BODY), motion.lin_vel(BODY) or motion.ang_vel(BODY)";

/// An error for something that the reference motion has not.
pub(super) fn unknown_motion(name: &str, span: &Range<usize>) -> ExprError {
    ExprError::new(span.clone(), format!("the reference motion has no `{name}`")).help(MOTION)
}
