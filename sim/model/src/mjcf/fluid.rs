//! Forces of a surrounding fluid on an ellipsoid.

use crate::{GeomKind, Vec3};
use std::f64::consts::PI;

/// Nodes of the 15-point Gauss-Kronrod rule on 0..1 up to the middle, to which the
/// others lie symmetrically, and their weights; with as many digits as MuJoCo's.
const KRONROD: [(f64, f64); 8] = [
    (0.00427231, 0.01146766),
    (0.02544604, 0.03154605),
    (0.06756779, 0.05239501),
    (0.12923441, 0.07032663),
    (0.20695638, 0.08450236),
    (0.29707742, 0.09517529),
    (0.39610752, 0.10221647),
    (0.5, 0.10474107),
];

/// Tuck's integral over l from 0 to infinity of `a b c / sqrt((a^2 + l)^3 (b^2 + l)
/// (c^2 + l))`, the added-mass factor of an ellipsoid along `a`. The interval is
/// mapped to 0..1 by `l = x^3 / (1 - x)^2` (MuJoCo, Computation, "Fluid forces",
/// ellipsoid model, added mass).
fn kappa([a, b, c]: Vec3) -> f64 {
    let scale = (a * a * a * b * c).powf(0.4);
    let term = |x: f64, weight: f64| {
        let rest = 1.0 - x;
        let l = scale * x * x * x / (rest * rest);
        let slope = x * x * (3.0 - x) / (rest * rest * rest);
        let grown = |axis: f64| 1.0 + l / (axis * axis);
        let root = (grown(a) * grown(b) * grown(c)).sqrt();
        scale * slope * weight / (grown(a) * root)
    };
    let sum: f64 = KRONROD
        .iter()
        .map(|(node, weight)| {
            let mirrored = if *node < 0.5 { term(1.0 - node, *weight) } else { 0.0 };
            term(*node, *weight) + mirrored
        })
        .sum();
    sum / (a * a)
}

/// `Geom::fluid` of a shape with `fluidshape="ellipsoid"` and the five `fluidcoef`.
pub(super) fn interaction(kind: GeomKind, size: Vec3, coefs: [f64; 5]) -> [f64; 11] {
    const LEAST: f64 = crate::rotation::EPS;
    let axes = kind.semi_axes(size);
    let volume = 4.0 / 3.0 * PI * axes[0] * axes[1] * axes[2];
    let k = [0, 1, 2].map(|i| kappa([axes[i], axes[(i + 1) % 3], axes[(i + 2) % 3]]));
    let square = axes.map(|a| a * a);
    let mut out = [0.0; 11];
    out[..5].copy_from_slice(&coefs);
    for i in 0..3 {
        out[5 + i] = volume * k[i] / (2.0 - k[i]).max(LEAST);
        let (u, v) = ((i + 1) % 3, (i + 2) % 3);
        let difference = square[u] - square[v];
        let denominator = 2.0 * difference + (square[u] + square[v]) * (k[u] - k[v]);
        let factor = difference * difference * (k[v] - k[u]).abs() / denominator.abs().max(LEAST);
        out[8 + i] = volume * factor / 5.0;
    }
    out
}
