//! What an expression can name.

use super::define::Definitions;
use super::draws::Start;
use super::events::EventNumbers;
use super::history::HistoryBuilder;
use super::readings::Readings;
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
    /// `param.NAME`, in the order of [`Buffers::params`](super::Buffers::params).
    pub params: &'a [String],
    /// Width of `action` and `last_action`.
    pub action_width: usize,
    /// Several agents, where the task has some.
    pub agents: Option<Agents<'a>>,
    /// History of the expressions; the same for all of a task.
    pub history: &'a HistoryBuilder,
    /// What kernels read for the expressions; likewise.
    pub readings: &'a Readings,
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
