//! The native engine: MuJoCo's semantics from one C++ source, specialised for the
//! robot.
//!
//! `lower` turns a model into `tables`, the numbers through which the kernels in
//! `sim/kernels` know a robot. `ffi` calls the kernels, `kernel` chooses one,
//! `engine` steps N worlds with it, `evaluate` asks for the dynamics of given states.

mod choose;
mod diagnose;
mod engine;
mod evaluate;
mod ffi;
pub mod generate;
mod inside;
mod kernel;
pub mod lower;
mod snapshot;
mod solver;
pub mod specialize;
mod stiff;
pub mod tables;
pub mod tape;

pub use choose::{Settled, foresee, settle};
pub use engine::{NativePhysics, new};
pub use evaluate::{EvalOptions, Evaluator, evaluate, evaluate_from};
pub use kernel::{InstructionSet, Unusable};
pub use lower::vary;
pub use solver::solver;

use super::PhysicsError;

impl From<lower::LowerError> for PhysicsError {
    fn from(error: lower::LowerError) -> Self {
        unsupported(format!("{} ({})", error.what, error.remedy))
    }
}

pub fn unsupported(what: String) -> PhysicsError {
    PhysicsError::Unsupported { engine: "native", what }
}
