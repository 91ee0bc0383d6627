//! A run's need of memory before it begins: [`Need`] (an estimate), `probe` (a measurement), `fit`
//! (what follows).

pub mod fit;
mod need;
mod probe;

pub use need::{Need, weights};
