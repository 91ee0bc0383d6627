//! Values that can be written in more than one way.

use super::source::{Node, Value};
use toml::Value as Schema;

/// Keys of a simulation that take more than one kind of value.
pub(super) fn special(path: &str) -> Option<Kind> {
    match path {
        "sim.threads" => Some(Kind::Auto),
        "task.start_height" => Some(Kind::Height),
        "task.floor.friction"
        | "task.contact.friction"
        | "task.observation.scale"
        | "task.event.mean"
        | "task.event.std"
        | "task.event.probability"
        | "task.event.interval_s"
        | "task.event.duration_s" => Some(Kind::NumberOrList),
        "agents.policies" => Some(Kind::Policies),
        "task.start.until" => Some(Kind::Texts),
        "task.native.unit" => Some(Kind::Units),
        _ => None,
    }
}

/// Shorter forms of a value, beside the one that the exemplar has.
pub(super) fn shorter(path: &str) -> &'static [Form] {
    match path {
        "task.observation.noise"
        | "task.observation.bias"
        | "task.observation.critic.noise"
        | "task.observation.critic.bias"
        | "task.observation.noise.uniform"
        | "task.observation.bias.uniform"
        | "task.observation.critic.noise.uniform"
        | "task.observation.critic.bias.uniform" => &[Form::Number, Form::Pair],
        "task.action.scale"
        | "task.action.offset"
        | "task.action.stiffness"
        | "task.action.damping"
        | "task.actuator.stiffness"
        | "task.actuator.damping"
        | "task.actuator.effort_limit"
        | "task.actuator.saturation_effort"
        | "task.actuator.velocity_limit"
        | "task.actuator.armature"
        | "task.actuator.friction"
        | "task.reset.normal"
        | "task.reset.value" => &[Form::Number, Form::Numbers],
        "task.command.resample_s" => &[Form::Pair],
        "task.action.clip"
        | "task.reset.uniform"
        | "task.reset.log_uniform"
        | "task.reset.scale" => &[Form::Pair, Form::Pairs],
        "task.action.delay"
        | "task.actuator.delay"
        | "task.actuator.delay.steps"
        | "task.action.delay.steps"
        | "task.observation.delay"
        | "task.observation.critic.delay"
        | "task.observation.delay.steps"
        | "task.observation.critic.delay.steps" => &[Form::Whole, Form::WholePair],
        _ => &[],
    }
}

/// A form of a value.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Form {
    Number,
    Numbers,
    Pair,
    Pairs,
    Whole,
    WholePair,
}

impl Form {
    pub fn fits(self, node: &Node) -> bool {
        let number = |n: &Node| match n.value {
            Value::Int(_) => true,
            Value::Float(x) => x.is_finite(),
            _ => false,
        };
        let whole = |n: &Node| matches!(n.value, Value::Int(i) if u32::try_from(i).is_ok());
        let list = |fits: &dyn Fn(&Node) -> bool, len: Option<usize>| match &node.value {
            Value::Array(items) => items.iter().all(fits) && len.is_none_or(|n| n == items.len()),
            _ => false,
        };
        match self {
            Self::Number => number(node),
            Self::Whole => whole(node),
            Self::Numbers => list(&number, None),
            Self::Pair => list(&number, Some(2)),
            Self::Pairs => list(&|n| Self::Pair.fits(n), None),
            Self::WholePair => list(&whole, Some(2)),
        }
    }

    pub fn words(self) -> &'static str {
        match self {
            Self::Number => "a finite number",
            Self::Numbers => "a list of such",
            Self::Pair => "a range [low, high]",
            Self::Pairs => "a list of such",
            Self::Whole => "a whole number from 0 on",
            Self::WholePair => "a range [least, most] of whole numbers from 0 on",
        }
    }

    /// The kind of the exemplar's form.
    pub fn of(schema: &Schema) -> &'static str {
        match schema {
            Schema::Float(_) => "a number",
            Schema::Integer(_) => "a whole number",
            Schema::Boolean(_) => "true or false",
            Schema::String(_) => "text in quotes",
            Schema::Array(_) => "a list",
            _ => "a table",
        }
    }
}

/// Kinds of values of keys that take more than one kind.
#[derive(Debug, Clone, Copy)]
pub enum Kind {
    /// `"auto"`, or a whole number from 1 on.
    Auto,
    /// `"auto"`, or a whole number; 0 for none.
    AutoOrNone,
    /// A number, or a list of such.
    NumberOrList,
    /// A range, or a list of such.
    Ranges,
    /// `"auto"`, or a number.
    Height,
    /// Who shares a policy.
    Policies,
    /// Text, or a list of such.
    Texts,
    /// A table that may hold anything.
    Anything,
    /// A unit, or a list of such.
    Units,
}

impl Kind {
    /// Whether a value is of the kind; the kind in words.
    pub(super) fn judge(self, value: &Value) -> (bool, &'static str) {
        let finite = |value: &Value| match value {
            Value::Int(_) => true,
            Value::Float(x) => x.is_finite(),
            _ => false,
        };
        let number = |n: &Node| finite(&n.value);
        match self {
            Self::Anything => (matches!(value, Value::Table(_)), "a table"),
            Self::Auto => (
                match value {
                    Value::Int(i) => *i >= 1,
                    Value::Str(s) => s == "auto",
                    _ => false,
                },
                "\"auto\" or a whole number, 1 or more",
            ),
            Self::AutoOrNone => (
                match value {
                    Value::Int(i) => *i >= 0,
                    Value::Str(s) => s == "auto",
                    _ => false,
                },
                "\"auto\" or a whole number, 0 for none",
            ),
            Self::NumberOrList => (
                match value {
                    Value::Array(items) => items.iter().all(number),
                    _ => finite(value),
                },
                "a finite number or a list of such",
            ),
            Self::Ranges => (
                match value {
                    Value::Array(items) if items.iter().all(number) => items.len() == 2,
                    Value::Array(items) => items.iter().all(|n| match &n.value {
                        Value::Array(pair) => pair.len() == 2 && pair.iter().all(number),
                        _ => false,
                    }),
                    _ => false,
                },
                "[low, high], a list of such, or a table of such",
            ),
            Self::Height => (
                matches!(value, Value::Str(s) if s == "auto") || finite(value),
                "\"auto\" or a finite number (m)",
            ),
            Self::Policies => (
                match value {
                    Value::Str(s) => s == "shared" || s == "separate",
                    Value::Array(items) => items.iter().all(|n| matches!(n.value, Value::Str(_))),
                    _ => false,
                },
                "\"shared\", \"separate\" or a list with a policy's name for each agent",
            ),
            Self::Texts | Self::Units => (
                match value {
                    Value::Str(_) => true,
                    Value::Array(items) => items.iter().all(|n| matches!(n.value, Value::Str(_))),
                    _ => false,
                },
                match self {
                    Self::Units => "a unit such as \"m/s\", or a list with a unit for each output",
                    _ => "text in quotes, or a list of such",
                },
            ),
        }
    }
}
