//! `ostler regress`: trains the cases of a folder, in processes of its own, and
//! fails where the results are worse than they must be.
//!
//! Reading order: [`mod@file`] and [`case`] (a file's content) -> [`folder`] (which files) ->
//! [`suite`] (all cases, one after the other) -> [`trial`] (one run) -> [`child`] (one
//! process), [`metrics`] (its metrics) -> [`judge`] (what is wrong with a run), [`checks`] (what
//! the runs of a case are worth), [`stats`](ostler_run::stats), [`baseline`], [`machine`] ->
//! [`report`] (JUnit XML, JSON, Markdown).

pub mod baseline;
pub mod case;
pub mod checks;
pub mod child;
pub mod file;
pub mod folder;
pub mod judge;
#[cfg(test)]
mod judge_speed_tests;
#[cfg(test)]
mod judge_tests;
pub mod machine;
pub mod metrics;
#[cfg(test)]
mod metrics_tests;
pub mod plan;
pub mod report;
pub mod suite;
pub mod trial;
pub mod verdict;

pub use folder::{Chosen, find};
pub use suite::{Options, Suite, run};
