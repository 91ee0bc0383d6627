//! The expression language of tasks: text -> checked program -> values of a block
//! of environments. The language is described in `docs/task-language.md`.

use crate::model::Model;
use crate::physics::State;

/// Environments that are evaluated together: one register is `[BLOCK]` floats.
pub const BLOCK: usize = 64;

/// Names an expression can use besides the model's.
#[derive(Debug, Clone)]
pub struct Scope<'a> {
    /// Bodies, joints, geoms, sites, actuators.
    pub model: &'a Model,
    /// `command.NAME`: name, number of components, unit (`""`: any).
    pub commands: &'a [(String, usize, String)],
    /// `param.NAME`, in the order of [`Inputs::params`].
    pub params: &'a [String],
    /// Width of `action` and `last_action`.
    pub action_width: usize,
}

/// What is wrong with an expression.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}{}", .help.as_ref().map(|h| format!(" ({h})")).unwrap_or_default())]
pub struct ExprError {
    /// Bytes of the text that are meant.
    pub span: std::ops::Range<usize>,
    /// What is wrong.
    pub message: String,
    /// What would be right.
    pub help: Option<String>,
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

/// Everything an expression reads, for all environments; `first..first+len` are
/// evaluated (`len <= BLOCK`). Buffers are `[k][N]`.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    /// Physics state.
    pub state: &'a State,
    /// Controls `[nu][N]`.
    pub ctrl: &'a [f32],
    /// Actions of this step `[A][N]`, clipped, before scaling.
    pub action: &'a [f32],
    /// Actions of the step before `[A][N]`; zero after a reset.
    pub last_action: &'a [f32],
    /// Commands, all components of all commands in order `[c][N]`.
    pub command: &'a [f32],
    /// Parameters, the same for all environments.
    pub params: &'a [f32],
    /// Control steps since the episode's start `[N]`.
    pub step: &'a [u32],
    /// Control step [s].
    pub step_dt: f32,
    /// Steps until the time-out.
    pub max_steps: u32,
    /// First environment.
    pub first: usize,
    /// Number of environments.
    pub len: usize,
}

/// A compiled expression.
#[derive(Debug, Clone)]
pub struct Program {
    ty: Type,
}

/// Registers of one thread; `eval` allocates nothing once it is large enough.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    /// Registers `[k][BLOCK]`.
    pub registers: Vec<f32>,
}

impl Program {
    /// Parses and checks `text`.
    pub fn compile(_text: &str, _scope: &Scope<'_>) -> Result<Self, ExprError> {
        todo!()
    }

    /// Type of the value.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Registers that `eval` needs, in floats.
    pub fn scratch_len(&self) -> usize {
        todo!()
    }

    /// Evaluates one block: component `i` of environment `first + lane` is at
    /// `result[i * BLOCK + lane]`; lanes past `len` hold no meaning.
    pub fn eval<'s>(&self, _inputs: &Inputs<'_>, _scratch: &'s mut Scratch) -> &'s [f32] {
        todo!()
    }
}
