//! Velocities from positions, as mjlab's `csv_to_npz` takes them: central differences, one-sided
//! ones at the ends (`torch.gradient`); rotations by the angle between the neighbours of a frame.

use crate::rotation::{conjugate, mul};
use crate::{Quat, Vec3};

/// Rates of `x [T][columns]` per second.
pub(super) fn rates(x: &[f64], columns: usize, step: f64) -> Vec<f64> {
    let frames = x.len() / columns.max(1);
    let mut out = Vec::with_capacity(x.len());
    for t in 0..frames {
        let (a, b) = around(t, frames);
        let time = (b - a).max(1) as f64 * step;
        let row = |t: usize| &x[t * columns..(t + 1) * columns];
        out.extend(row(a).iter().zip(row(b)).map(|(p, q)| (q - p) / time));
    }
    out
}

/// Rates of points `[T]`.
pub(super) fn point_rates(points: &[Vec3], step: f64) -> Vec<Vec3> {
    let frames = points.len();
    let rate = |t| {
        let (a, b) = around(t, frames);
        let time = (b - a).max(1) as f64 * step;
        [0, 1, 2].map(|i| (points[b][i] - points[a][i]) / time)
    };
    (0..frames).map(rate).collect()
}

fn around(t: usize, frames: usize) -> (usize, usize) {
    (t.saturating_sub(1), (t + 1).min(frames - 1))
}

/// Angular velocities of rotations `[T]` in the world (rad/s). Those at the ends are their
/// neighbours'.
pub(super) fn turn_rates(quats: &[Quat], step: f64) -> Vec<Vec3> {
    let frames = quats.len();
    let rate = |t: usize| {
        let inner = if frames > 2 { t.clamp(1, frames - 2) } else { t };
        let (a, b) = around(inner, frames);
        let time = (b - a).max(1) as f64 * step;
        turn(quats[a], quats[b]).map(|x| x / time)
    };
    (0..frames).map(rate).collect()
}

/// The rotation that leads from `a` to `b`, about axes of the world (rad); half a turn at most.
pub(super) fn turn(a: Quat, b: Quat) -> Vec3 {
    let [w, x, y, z] = mul(b, conjugate(a));
    let sign = if w < 0.0 { -1.0 } else { 1.0 };
    let sine = (x * x + y * y + z * z).sqrt();
    if sine < 1e-15 {
        return [0.0; 3];
    }
    let angle = 2.0 * sine.atan2(w.abs());
    [x, y, z].map(|v| sign * v / sine * angle)
}

/// The angle between two orientations (rad).
pub(super) fn angle(a: Quat, b: Quat) -> f64 {
    length(turn(a, b))
}

pub(super) fn length(v: Vec3) -> f64 {
    crate::rotation::dot(v, v).sqrt()
}
