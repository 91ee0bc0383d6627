//! Formulas in f64 of reductions, quaternions and dm_control's sigmoids.

use super::golden::Formula;
use super::view::{View, apply, matrix, norm, transpose};
use std::f64::consts::PI;

pub const GOLDEN: &[(&str, Formula)] = &[
    ("var(qvel)", |v| vec![variance(&v.dq(0..9))]),
    ("std(action)", |v| vec![variance(&v.action()).sqrt()]),
    ("[argmax(action), argmin(action)]", |v| {
        let a = v.action();
        let place = |best: f64| a.iter().position(|x| *x == best).unwrap() as f64;
        let (low, high) = (f64::min, f64::max);
        vec![
            place(a.iter().copied().fold(f64::MIN, high)),
            place(a.iter().copied().fold(f64::MAX, low)),
        ]
    }),
    ("count(action > [0.5, 0, -0.5])", |v| {
        let a = v.action();
        vec![f64::from(u8::from(a[0] > 0.5) + u8::from(a[1] > 0.0) + u8::from(a[2] > -0.5))]
    }),
    ("quat_mul(quat(torso), quat(foot_1))", |v| hamilton(v.quat(1), v.quat(2)).to_vec()),
    ("quat_inv(2 * quat(torso))", |v| {
        let [w, x, y, z] = v.quat(1);
        vec![w / 2.0, -x / 2.0, -y / 2.0, -z / 2.0]
    }),
    ("quat_angle(quat(torso))", |v| vec![turn(matrix(v.quat(1)))]),
    ("quat_angle(quat(torso), quat(foot_2))", |v| vec![turn(times(v.mat(1), transpose(v.mat(3))))]),
    ("quat_rotvec(quat(torso))", |v| rotation_vector(v.quat(1))),
    ("quat_rotvec([1, 1e-9, 0, 0])", |_| vec![2e-9, 0.0, 0.0]),
    ("quat_box_minus(quat(torso), quat(foot_1))", |v| {
        let [w, x, y, z] = v.quat(2);
        rotation_vector(hamilton(v.quat(1), [w, -x, -y, -z]))
    }),
    ("quat_yaw(quat(torso))", |v| {
        let m = v.mat(1);
        let half = m[1][0].atan2(m[0][0]) / 2.0;
        vec![half.cos(), 0.0, 0.0, half.sin()]
    }),
    ("quat_matrix(quat(torso))", |v| v.mat(1).concat()),
    ("quat_6d(quat(torso))", |v| v.mat(1).iter().flat_map(|row| [row[0], row[1]]).collect()),
    ("quat_matrix(quat_axis_angle([0, 0, 5], 0.3))", |_| {
        let (s, c) = 0.3f64.sin_cos();
        vec![c, -s, 0.0, s, c, 0.0, 0.0, 0.0, 1.0]
    }),
    ("quat_matrix(quat_from_rpy(roll(torso), pitch(torso), yaw(torso)))", |v| v.mat(1).concat()),
    (
        "[tolerance(height(torso), 0.5, 1, 0.6, linear), tolerance(height(torso), 0.5, 1, 0.6, linear, 0)]",
        |v| sigmoids(v, |x| below_one((1.0 - 0.1) * x, |y| 1.0 - y), |x| below_one(x, |y| 1.0 - y)),
    ),
    (
        "[tolerance(height(torso), 0.5, 1, 0.6, hyperbolic), tolerance(height(torso), 0.5, 1, 0.6, hyperbolic, 0.3)]",
        |v| {
            let of = |v: f64| move |x: f64| 1.0 / (x * (1.0 / v).acosh()).cosh();
            sigmoids(v, of(0.1), of(0.3))
        },
    ),
    (
        "[tolerance(height(torso), 0.5, 1, 0.6, long_tail), tolerance(height(torso), 0.5, 1, 0.6, long_tail, 0.3)]",
        |v| {
            let of = |v: f64| move |x: f64| 1.0 / ((x * (1.0 / v - 1.0).sqrt()).powi(2) + 1.0);
            sigmoids(v, of(0.1), of(0.3))
        },
    ),
    (
        "[tolerance(height(torso), 0.5, 1, 0.6, reciprocal), tolerance(height(torso), 0.5, 1, 0.6, reciprocal, 0.3)]",
        |v| {
            let of = |v: f64| move |x: f64| 1.0 / (x.abs() * (1.0 / v - 1.0) + 1.0);
            sigmoids(v, of(0.1), of(0.3))
        },
    ),
    (
        "[tolerance(height(torso), 0.5, 1, 0.6, cosine), tolerance(height(torso), 0.5, 1, 0.6, cosine, 0)]",
        |v| {
            let of = |v: f64| {
                move |x: f64| {
                    let scale = (2.0 * v - 1.0).acos() / PI;
                    below_one(x * scale, |y| (1.0 + (PI * y).cos()) / 2.0)
                }
            };
            sigmoids(v, of(0.1), of(0.0))
        },
    ),
    (
        "[tolerance(height(torso), 0.5, 1, 0.6, quadratic), tolerance(height(torso), 0.5, 1, 0.6, quadratic, 0)]",
        |v| {
            let of = |v: f64| move |x: f64| below_one(x * (1.0 - v).sqrt(), |y| 1.0 - y * y);
            sigmoids(v, of(0.1), of(0.0))
        },
    ),
    (
        "[tolerance(height(torso), 0.5, 1, 0.6, tanh_squared), tolerance(height(torso), 0.5, 1, 0.6, \"tanh_squared\", 0.3)]",
        |v| {
            let of = |v: f64| move |x: f64| 1.0 - (x * (1.0 - v).sqrt().atanh()).tanh().powi(2);
            sigmoids(v, of(0.1), of(0.3))
        },
    ),
    (
        "[tolerance(height(torso), 0.5, 1, 0.6, gaussian), tolerance(height(torso), 0.5, 1, 0.6, gaussian, 0.3)]",
        |v| {
            let of = |v: f64| move |x: f64| (-0.5 * (x * (-2.0 * v.ln()).sqrt()).powi(2)).exp();
            sigmoids(v, of(0.1), of(0.3))
        },
    ),
];

fn variance(x: &[f64]) -> f64 {
    let mean = x.iter().sum::<f64>() / x.len() as f64;
    x.iter().map(|x| (x - mean).powi(2)).sum::<f64>() / x.len() as f64
}

/// Products in Hamilton's table.
fn hamilton(a: [f64; 4], b: [f64; 4]) -> [f64; 4] {
    [
        a[0] * b[0] - a[1] * b[1] - a[2] * b[2] - a[3] * b[3],
        a[0] * b[1] + a[1] * b[0] + a[2] * b[3] - a[3] * b[2],
        a[0] * b[2] - a[1] * b[3] + a[2] * b[0] + a[3] * b[1],
        a[0] * b[3] + a[1] * b[2] - a[2] * b[1] + a[3] * b[0],
    ]
}

fn times(a: [[f64; 3]; 3], b: [[f64; 3]; 3]) -> [[f64; 3]; 3] {
    let columns = transpose(b).map(|column| apply(a, column));
    transpose(columns)
}

/// The angle of a rotation matrix, by its antisymmetric part and its trace.
fn turn(m: [[f64; 3]; 3]) -> f64 {
    let sine = [m[2][1] - m[1][2], m[0][2] - m[2][0], m[1][0] - m[0][1]];
    norm(&sine).atan2(m[0][0] + m[1][1] + m[2][2] - 1.0)
}

/// Axis times angle of a quaternion that turns by at most pi.
fn rotation_vector(q: [f64; 4]) -> Vec<f64> {
    let q = if q[0] < 0.0 { q.map(|x| -x) } else { q };
    let size = norm(&q[1..]);
    let angle = 2.0 * size.atan2(q[0]);
    q[1..].iter().map(|x| x / size * angle).collect()
}

/// `_sigmoids` where its argument is below 1, else 0.
fn below_one(x: f64, f: impl Fn(f64) -> f64) -> f64 {
    if x.abs() < 1.0 { f(x) } else { 0.0 }
}

/// `tolerance` of dm_control with the bounds 0.5 and 1 m, a margin of 0.6 m and two sigmoids.
fn sigmoids(v: &View<'_>, a: impl Fn(f64) -> f64, b: impl Fn(f64) -> f64) -> Vec<f64> {
    let z = v.pos(1)[2];
    if (0.5..=1.0).contains(&z) {
        return vec![1.0; 2];
    }
    let d = if z < 0.5 { 0.5 - z } else { z - 1.0 } / 0.6;
    vec![a(d), b(d)]
}
