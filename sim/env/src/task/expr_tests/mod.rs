//! Expressions within whole tasks. The robot, the states and the drawn tasks are those of the
//! language's own tests.

#[path = "../../../../lang/src/expr/tests/fixture.rs"]
mod fixture;
#[path = "../../../../lang/src/expr/tests/generate.rs"]
mod generate;
mod page;
mod tasks;
#[path = "../../../../lang/src/expr/tests/vary.rs"]
mod vary;
