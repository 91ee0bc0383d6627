//! The native engine against MuJoCo: accelerations, next states, trajectories.
//!
//! Small reference files lie in `tests/referee/kept`; with the referees' Python
//! (`OSTLER_REFEREE_PYTHON`) the same is done for thousands of states per model, for
//! Gymnasium's models, for generated ones and for trajectories. `TOL_SCALE=0` prints
//! every table of residuals and fails.

#![allow(clippy::unwrap_used)]

mod attached;
mod engine;
mod features;
mod generated;
mod generator;
mod models;
mod pending;
mod reference;
mod saved;
mod shrink;
#[path = "../../../tests/support/mod.rs"]
mod support;
mod trajectories;
mod varied;
mod wraps;
mod xml;
