//! Environments whose step is one program, run by the host's stand-in for a device, held
//! against environments on the host.

mod exchange;
mod same;
mod support;
