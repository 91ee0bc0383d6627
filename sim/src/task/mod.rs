//! Tasks written as data: expressions over the state, compiled once, evaluated
//! over blocks of environments.

pub mod expr;
