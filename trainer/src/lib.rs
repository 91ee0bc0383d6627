//! Learners, runs, checkpoints and logs; the program `ostler`, as one crate.
//!
//! It holds nothing of its own; reading order: `ostler-tools` ([`cli`], the commands) ->
//! `ostler-run` ([`run`], a training and its files) -> `ostler-learn` ([`learner`], [`config`]) ->
//! `ostler-machine` ([`torch`], [`memory`]), and across to the collector and the simulation.

pub use ostler_draw as draw;
pub use ostler_learn::{config, drill, environments, learner};
pub use ostler_machine::{memory, torch};
pub use ostler_run::{export, forecast, log, readers, run, stats, supervise};
pub use ostler_tools::{cli, doctor, regress, report, view};
