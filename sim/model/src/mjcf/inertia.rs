//! Mass and inertia of shapes, and principal axes.

use super::compiler::Compiler;
use crate::rotation::{EPS, IDENTITY, Pose, dot, matrix, mul, normalized};
use crate::{GeomKind, Quat, Vec3};
use std::f64::consts::PI;

/// MuJoCo's smallest mass and moment.
pub(super) const MIN_VALUE: f64 = 1e-15;

/// Mass, place of the centre of mass and of the principal axes, and the moments.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Inertia {
    pub mass: f64,
    pub frame: Pose,
    pub moments: Vec3,
}

/// Volume of a shape (m^3), or with `shell` its surface (m^2).
pub(super) fn volume(kind: GeomKind, size: Vec3, shell: bool) -> f64 {
    let [a, b, c] = size;
    match (kind, shell) {
        (GeomKind::Plane | GeomKind::Mesh(_) | GeomKind::Hfield(_) | GeomKind::Terrain, _) => 0.0,
        (GeomKind::Sphere, false) => 4.0 / 3.0 * PI * a * a * a,
        (GeomKind::Sphere, true) => 4.0 * PI * a * a,
        (GeomKind::Capsule, false) => PI * a * a * (2.0 * b + 4.0 / 3.0 * a),
        (GeomKind::Capsule, true) => 4.0 * PI * a * (a + b),
        (GeomKind::Cylinder, false) => 2.0 * PI * a * a * b,
        (GeomKind::Cylinder, true) => 2.0 * PI * a * (a + 2.0 * b),
        (GeomKind::Ellipsoid, false) => 4.0 / 3.0 * PI * a * b * c,
        (GeomKind::Ellipsoid, true) => {
            // Thomsen's approximation, as MuJoCo.
            let p = 1.6075;
            let sum = (a * b).powf(p) + (b * c).powf(p) + (c * a).powf(p);
            4.0 * PI * (sum / 3.0).powf(1.0 / p)
        }
        (GeomKind::Box, false) => 8.0 * a * b * c,
        (GeomKind::Box, true) => 8.0 * (a * b + b * c + c * a),
    }
}

/// Principal moments of inertia of a shape of the given mass about its centre.
pub(super) fn moments(kind: GeomKind, size: Vec3, mass: f64, shell: bool) -> Vec3 {
    let [a, b, c] = size;
    let around_z = |across: f64, along: f64| [across, across, along];
    match (kind, shell) {
        (GeomKind::Plane | GeomKind::Mesh(_) | GeomKind::Hfield(_) | GeomKind::Terrain, _) => {
            [0.0; 3]
        }
        (GeomKind::Sphere, shell) => [mass * a * a * if shell { 2.0 / 3.0 } else { 0.4 }; 3],
        (GeomKind::Capsule, false) => {
            // A cylinder of height 2b and two half balls whose centres of mass
            // lie 3a/8 outside its ends.
            let ball = mass * 2.0 * a / (2.0 * a + 3.0 * b);
            let tube = mass - ball;
            around_z(
                tube * (a * a / 4.0 + b * b / 3.0) + ball * (0.4 * a * a + b * b + 0.75 * a * b),
                tube * a * a / 2.0 + ball * 0.4 * a * a,
            )
        }
        (GeomKind::Capsule, true) => {
            let ball = mass * a / (a + b);
            let tube = mass - ball;
            // A half sphere's centre of mass lies a/2 outside the end.
            around_z(
                tube * (a * a / 2.0 + b * b / 3.0) + ball * (2.0 / 3.0 * a * a + b * b + a * b),
                tube * a * a + ball * 2.0 / 3.0 * a * a,
            )
        }
        (GeomKind::Cylinder, false) => {
            around_z(mass * (a * a / 4.0 + b * b / 3.0), mass * a * a / 2.0)
        }
        (GeomKind::Cylinder, true) => {
            let lids = mass * a / (a + 2.0 * b);
            let tube = mass - lids;
            around_z(
                tube * (a * a / 2.0 + b * b / 3.0) + lids * (a * a / 4.0 + b * b),
                tube * a * a + lids * a * a / 2.0,
            )
        }
        (GeomKind::Ellipsoid, false) => {
            [b * b + c * c, a * a + c * c, a * a + b * b].map(|s| mass * s / 5.0)
        }
        (GeomKind::Ellipsoid, true) => {
            // The difference of two ellipsoids whose semi-axes differ by 1e-6 m,
            // as MuJoCo approximates it.
            let grown = size.map(|s| s + 1e-6);
            let (inner, outer) = (volume(kind, size, false), volume(kind, grown, false));
            let density = mass / (outer - inner);
            let small = moments(kind, size, inner * density, false);
            let large = moments(kind, grown, outer * density, false);
            [0, 1, 2].map(|i| large[i] - small[i])
        }
        (GeomKind::Box, false) => {
            [b * b + c * c, a * a + c * c, a * a + b * b].map(|s| mass * s / 3.0)
        }
        (GeomKind::Box, true) => box_shell(size, mass),
    }
}

/// Three pairs of rectangular plates at the distances of the half-extents.
fn box_shell(half: Vec3, mass: f64) -> Vec3 {
    let area = half[0] * half[1] + half[1] * half[2] + half[2] * half[0];
    let mut total = [0.0; 3];
    for normal in 0..3 {
        let (u, v) = ((normal + 1) % 3, (normal + 2) % 3);
        let plates = mass * half[u] * half[v] / area;
        let (iu, iv) = (half[u] * half[u] / 3.0, half[v] * half[v] / 3.0);
        let offset = half[normal] * half[normal];
        total[normal] += plates * (iu + iv);
        total[u] += plates * (iv + offset);
        total[v] += plates * (iu + offset);
    }
    total
}

/// One body's worth of parts. A single part is taken as it is, so that its
/// principal axes stay its own. `None`: no part has mass. `Err`: no principal axes.
pub(super) fn combine(parts: &[Inertia]) -> Result<Option<Inertia>, &'static str> {
    let heavy: Vec<_> = parts.iter().filter(|p| p.mass > EPS).collect();
    match heavy[..] {
        [] => return Ok(None),
        [one] => return Ok(Some(*one)),
        _ => {}
    }
    let mass: f64 = heavy.iter().map(|p| p.mass).sum();
    let mut centre = [0.0; 3];
    for p in &heavy {
        for (c, x) in centre.iter_mut().zip(p.frame.pos) {
            *c += p.mass * x;
        }
    }
    let centre = centre.map(|c| c / mass);
    let mut full = [[0.0; 3]; 3];
    for p in &heavy {
        let d = [0, 1, 2].map(|i| p.frame.pos[i] - centre[i]);
        let own = tensor(p.frame.quat, p.moments);
        for i in 0..3 {
            for j in 0..3 {
                let steiner = if i == j { dot(d, d) } else { 0.0 } - d[i] * d[j];
                full[i][j] += own[i][j] + p.mass * steiner;
            }
        }
    }
    let (quat, moments) = principal_axes(full)?;
    Ok(Some(Inertia { mass, frame: Pose { pos: centre, quat }, moments }))
}

/// The inertia tensor with principal `moments` along the axes of `quat`.
pub(super) fn tensor(quat: Quat, moments: Vec3) -> [Vec3; 3] {
    let r = matrix(quat);
    [0, 1, 2].map(|i| [0, 1, 2].map(|j| (0..3).map(|k| r[i][k] * moments[k] * r[j][k]).sum()))
}

/// Principal axes and moments, largest first, of a body's inertia.
pub(super) fn principal_axes(m: [Vec3; 3]) -> Result<(Quat, Vec3), &'static str> {
    let (quat, moments) = eigen(m, BODY)?;
    if !moments[2].is_finite() || moments[2] < EPS {
        return Err("inertia must have positive principal moments");
    }
    Ok((quat, moments))
}

/// The same of an inertia that stands in a file. A least moment that is zero but for rounding is
/// one for `compiler/boundinertia` to raise, as in MuJoCo.
pub(super) fn given_axes(m: [Vec3; 3], compiler: &Compiler) -> Result<(Quat, Vec3), String> {
    let largest = m.iter().flatten().fold(0.0_f64, |a, x| a.max(x.abs()));
    let (quat, moments) = eigen(m, BODY)?;
    let sum: f64 = moments.iter().sum();
    let zero = EPS * largest.max(1.0);
    if moments[2] >= EPS || compiler.bound_inertia > 0.0 && moments[2] >= -zero {
        return Ok((quat, moments.map(|x| x.max(0.0))));
    }
    if compiler.balance_all && sum > EPS {
        return Ok((quat, [sum / 3.0; 3]));
    }
    let [a, b, c] = moments.map(|x| if x.abs() < zero { 0.0 } else { x });
    Err(format!(
        "principal moments of {a:.3e}, {b:.3e}, {c:.3e} kg m^2 are impossible, all have to be \
         positive; correct the inertia, or task.balance_inertia = true makes them their mean"
    ))
}

/// What MuJoCo's compiler takes for zero and for equal, of a tensor's largest entry. Found by
/// experiment with 4.0.0: its answers tell after which turn it ended.
pub(super) struct Tolerance {
    /// Numbers off the diagonal that are as small end the turns.
    off_diagonal: f64,
    /// By how much moments have to differ to be exchanged.
    different: f64,
}

/// Of a body. They decide the axes of one whose moments are equal but for rounding, and a medium
/// acts along these axes.
pub(super) const BODY: Tolerance = Tolerance { off_diagonal: 4e-15, different: 1e-12 };
/// Of a mesh, whose axes are thus exact to some 1e-7.
pub(super) const MESH: Tolerance = Tolerance { off_diagonal: 1e-7, different: 1e-7 };

/// Axes and eigenvalues, largest first, of a symmetric tensor: Jacobi's turns about the
/// axis that the largest entry off the diagonal calls for, as a quaternion, as MuJoCo's
/// compiler does (`mjuu_eig3`).
pub(super) fn eigen(m: [Vec3; 3], tolerance: Tolerance) -> Result<(Quat, Vec3), &'static str> {
    if m.iter().flatten().any(|x| !x.is_finite()) {
        return Err("inertia is not finite");
    }
    let largest = m.iter().flatten().fold(0.0_f64, |a, x| a.max(x.abs()));
    let mut quat = IDENTITY;
    let mut moments = [m[0][0], m[1][1], m[2][2]];
    for _ in 0..500 {
        let axes = matrix(quat);
        let product = |i: usize, j: usize| -> f64 {
            let of = |k: usize| (0..3).map(|l| m[k][l] * axes[l][j]).sum::<f64>();
            (0..3).map(|k| axes[k][i] * of(k)).sum()
        };
        moments = [0, 1, 2].map(|i| product(i, i));
        let off = [product(1, 2), product(0, 2), product(0, 1)];
        // The last of equals.
        let about = if off[2].abs() > off[1].abs() && off[2].abs() > off[0].abs() {
            2
        } else if off[1].abs() > off[0].abs() {
            1
        } else {
            0
        };
        if off[about].abs() <= tolerance.off_diagonal * largest {
            break;
        }
        let (row, column) = [(1, 2), (0, 2), (0, 1)][about];
        let tau = (moments[column] - moments[row]) / (2.0 * off[about]);
        let sign = if tau >= 0.0 { 1.0 } else { -1.0 };
        let tangent = sign / (tau.abs() + (1.0 + tau * tau).sqrt());
        let cosine = 1.0 / (1.0 + tangent * tangent).sqrt();
        // The sine of half the angle, from the sine: 1 - cosine cancels.
        let half = tangent.abs() * cosine / (2.0 + 2.0 * cosine).sqrt();
        let half = half * if about == 1 { sign } else { -sign };
        let mut turn = [(1.0 - half * half).sqrt(), 0.0, 0.0, 0.0];
        turn[about + 1] = half;
        quat = turned(quat, turn);
    }
    for first in [0, 1, 0] {
        if moments[first] + tolerance.different * largest < moments[first + 1] {
            moments.swap(first, first + 1);
            // A quarter turn about the third axis.
            let mut turn = [std::f64::consts::FRAC_1_SQRT_2, 0.0, 0.0, 0.0];
            turn[(first + 2) % 3 + 1] = turn[0];
            quat = turned(quat, turn);
        }
    }
    Ok((quat, moments))
}

fn turned(quat: Quat, turn: Quat) -> Quat {
    let q = mul(quat, normalized(turn).unwrap_or(IDENTITY));
    normalized(q).unwrap_or(IDENTITY)
}
