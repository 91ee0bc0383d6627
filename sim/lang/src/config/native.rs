//! `[[task.native]]`: functions of a C++ header.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;
use std::sync::Arc;

/// `[[task.native]]`: a function of a C++ header, for what expressions cannot say. It is
/// compiled into the environments of a host and of a GPU, and called for every environment in
/// every control step.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct NativeTerm {
    /// Name, read as `native.NAME`. With `{agent}` in it there is one of every agent.
    pub name: String,
    /// The header: a `.cuh`, `.h` or `.hpp` file in the configuration's folder or below it.
    pub file: String,
    /// The function; one of the term's name without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub function: Option<String>,
    /// Expressions whose values it gets, one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub inputs: Vec<String>,
    /// Numbers that it gives.
    #[serde(default = "one")]
    pub outputs: usize,
    /// Unit of all its outputs, or of each; without it they fit every unit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<NativeUnit>,
    /// Numbers that it remembers from step to step; zeros where an episode begins.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub memory: usize,
    /// BLAKE3 of the header and of the files that it includes, in hexadecimal; where it is
    /// given, other files are refused. A run's own configuration has it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub checksum: Option<String>,
}

impl NativeTerm {
    /// The function's name in the header.
    pub fn function(&self) -> &str {
        self.function.as_deref().unwrap_or(&self.name)
    }
}

/// `unit` of a native function.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(title = "a unit such as \"m/s\", or a list with a unit for each output")]
pub enum NativeUnit {
    /// Of all outputs.
    All(String),
    /// Of each.
    Each(Vec<String>),
}

/// The headers of a task's native functions as they were read, and what may be done with them.
/// No file can say that: whoever reads a configuration does
/// ([`read_headers`](crate::config::read_headers)).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct NativeCode {
    /// One for each `[[task.native]]`, in order.
    pub headers: Vec<Arc<Header>>,
    /// What may be done with them.
    pub leave: Leave,
}

/// What may be done with the code of a task's headers, which has all rights of the user.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Leave {
    /// Nothing: no environments can be built.
    #[default]
    Refused,
    /// The task may be described. Environments can be built, and nothing is compiled: what
    /// the functions give is NaN.
    Describe,
    /// The code may be compiled and run.
    Run,
}

/// A header with the files that it includes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    /// The file.
    pub path: PathBuf,
    /// Names relative to the header's folder, and texts; the header first, then the files that
    /// it includes in the order in which they are.
    pub files: Vec<(String, String)>,
}

fn one() -> usize {
    1
}

fn is_zero(x: &usize) -> bool {
    *x == 0
}
