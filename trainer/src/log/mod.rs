//! Metrics, TensorBoard events, progress line, learning curve.
