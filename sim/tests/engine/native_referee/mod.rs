//! The native engine against MuJoCo: accelerations, next states, trajectories.
//!
//! Small reference files lie in `tests/referee/kept`; with the referees' Python
//! (`OSTLER_REFEREE_PYTHON`) the same is done for thousands of states per model, for
//! Gymnasium's models, for generated ones and for trajectories. `TOL_SCALE=0` prints
//! every table of residuals and fails.

mod attached;
mod depth;
pub mod engine;
mod features;
mod generated;
mod generator;
mod ground;
mod iterations;
mod models;
pub mod pending;
pub mod reference;
mod saved;
mod shapes;
mod shrink;
mod trajectories;
mod varied;
mod wraps;
mod xml;
