//! The native engine: MuJoCo's semantics from one C++ source, specialised for the
//! robot.
//!
//! `lower` turns a model into `tables`, the numbers through which the kernels in
//! `sim/kernels` know a robot.

pub mod lower;
pub mod tables;
pub mod tape;
