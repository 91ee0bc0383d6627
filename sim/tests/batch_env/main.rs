//! `BatchEnv` over an engine that can be followed by hand.

#![allow(clippy::unwrap_used)]

mod actions;
mod broken;
mod change;
mod episodes;
mod keep;
mod memory;
mod mistakes;
mod point_mass;
mod pose;
mod repeat;
mod resets;
mod steady;
