//! Learners, runs, checkpoints and logs; the program `ostler`.
//!
//! Reading order: `main` -> [`cli`] -> [`run`] -> [`learner`], and across to the
//! collector and the simulation.

#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod cli;
pub mod config;
pub mod doctor;
pub mod draw;
pub mod drill;
pub mod environments;
pub mod export;
pub mod learner;
pub mod log;
pub mod memory;
#[doc(hidden)]
pub mod readers;
pub mod regress;
pub mod report;
pub mod run;
pub mod stats;
pub mod supervise;
pub mod torch;
pub mod view;
