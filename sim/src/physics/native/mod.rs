//! The native engine: MuJoCo's semantics from one C++ source, specialised for the
//! robot.

pub mod tape;
