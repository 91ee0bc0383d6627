//! Collection in other threads keeps its promises, whatever the threads do.

#![allow(clippy::disallowed_methods)]

mod pace;
mod robots;
mod same;
mod support;
mod trouble;
