//! Expressions within whole tasks. The robot and the states are those of the language's own tests.

#[path = "../../../../lang/src/expr/tests/fixture.rs"]
#[allow(dead_code, reason = "the language's own tests use the rest")]
mod fixture;
mod generate;
mod named;
mod page;
mod tasks;
mod vary;
