//! The program `ostler`: its commands ([`cli`]), the viewer ([`view`]), reports ([`report`]),
//! `doctor` and the regression suite ([`regress`]).

#![cfg_attr(not(test), warn(unreachable_pub))]
#![cfg_attr(test, allow(clippy::disallowed_methods))]

pub mod cli;
pub mod doctor;
pub mod regress;
pub mod report;
pub mod view;
