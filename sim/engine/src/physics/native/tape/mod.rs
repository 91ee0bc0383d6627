//! A symbolic recording of the kernels' arithmetic, and its printing as
//! straight-line C++.
//!
//! The generic kernels are templates over a scalar type. Instantiated with `Sym`
//! (`sim/kernels/sym.cuh`) and run once for a robot, every operation they do lands
//! on a tape through the C functions of [`ffi`]: loops unroll by themselves, and the
//! robot's constants enter as constants, so that products with zero and one vanish (`fold`).
//! The remaining operations are printed ([`mod@print`]) and compiled for that robot.
//!
//! Reading order: [`node`] (the entries of a tape) -> [`graph`] (each value once) -> `fold`
//! (simplification) -> [`program`] (functions, loads, stores, constants) -> [`record`] ->
//! [`order`], [`mod@print`] (C++ again). [`eval`] interprets a tape, for tests.
//!
//! Recorded code gives the same bits as the generic kernel's except for the sign of
//! a zero, for what operands that are not finite would have given, and for
//! arithmetic between constants, which is done in double precision.

mod chunk;
pub mod eval;
pub mod ffi;
mod fold;
pub mod graph;
mod hex;
pub mod node;
pub mod order;
pub mod print;
pub mod program;
pub mod record;
mod sign;
#[cfg(test)]
mod tests;

pub use eval::Real;
pub use graph::Graph;
pub(crate) use hex::literal;
pub use node::{Node, Val};
pub use order::Order;
pub use print::{Printer, Style};
pub use program::{Array, Counts, Function, Init, Program, Store};
pub use record::{Recorder, TapeError};
