//! `BatchEnv` over an engine that can be followed by hand.

mod actions;
mod broken;
mod change;
mod commands;
mod draws;
mod episodes;
mod keep;
mod late;
mod limits;
mod memory;
mod metrics;
mod mistakes;
mod natives;
pub mod point_mass;
mod pose;
mod repeat;
mod resets;
mod starts;
mod states;
mod steady;
