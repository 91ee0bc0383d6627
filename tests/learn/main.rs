//! What is learnt, by the real program: learners, collectors, tasks, robots and environments of
//! others.

#![allow(clippy::unwrap_used, reason = "a test says what failed by panicking")]

mod agents;
mod collectors;
#[path = "../common/mod.rs"]
mod common;
mod curriculum;
mod evaluation;
mod events;
mod examples;
mod first_task;
mod gymnasium;
mod imitation;
mod kernels;
mod lab_files;
mod lab_robots;
mod language;
mod motions;
mod motors;
mod natives;
mod off_policy;
mod peers;
mod peers_steps;
mod recurrent;
mod search;
#[path = "../support/mod.rs"]
mod support;
mod symmetry;
mod tiles;
mod training;
