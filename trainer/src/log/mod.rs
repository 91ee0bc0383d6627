//! Metrics, TensorBoard events, progress line, learning curve.

pub mod curve;
pub mod metrics;
pub mod progress;
pub mod sinks;
pub mod tensorboard;
pub mod trace;
