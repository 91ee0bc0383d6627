//! Mass and inertia of shapes, and principal axes.

use crate::model::rotation::{IDENTITY, Pose, dot, from_axes, matrix, normalized};
use crate::model::{GeomKind, Quat, Vec3};
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
        (GeomKind::Plane | GeomKind::Mesh(_) | GeomKind::HField(_), _) => 0.0,
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
        (GeomKind::Plane | GeomKind::Mesh(_) | GeomKind::HField(_), _) => [0.0; 3],
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
    let heavy: Vec<_> = parts
        .iter()
        .filter(|p| p.mass > crate::model::rotation::EPS)
        .collect();
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
    Ok(Some(Inertia {
        mass,
        frame: Pose { pos: centre, quat },
        moments,
    }))
}

/// The inertia tensor with principal `moments` along the axes of `quat`.
pub(super) fn tensor(quat: Quat, moments: Vec3) -> [Vec3; 3] {
    let r = matrix(quat);
    [0, 1, 2].map(|i| [0, 1, 2].map(|j| (0..3).map(|k| r[i][k] * moments[k] * r[j][k]).sum()))
}

/// Principal axes and moments, largest first, of a body's inertia.
pub(super) fn principal_axes(m: [Vec3; 3]) -> Result<(Quat, Vec3), &'static str> {
    let (quat, moments) = eigen(m)?;
    if !moments[2].is_finite() || moments[2] < crate::model::rotation::EPS {
        return Err("inertia must have positive principal moments");
    }
    Ok((quat, moments))
}

/// Axes and eigenvalues, largest first, of a symmetric tensor (cyclic Jacobi).
pub(super) fn eigen(mut m: [Vec3; 3]) -> Result<(Quat, Vec3), &'static str> {
    // Columns are the axes.
    let mut axes = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]];
    let scale = m.iter().flatten().fold(0.0_f64, |a, x| a.max(x.abs()));
    if !scale.is_finite() {
        return Err("inertia is not finite");
    }
    let off_diagonal = |m: &[Vec3; 3]| m[0][1].abs().max(m[0][2].abs()).max(m[1][2].abs());
    // Jacobi converges quadratically; 60 sweeps are far beyond double precision.
    for _ in 0..60 {
        if off_diagonal(&m) <= 1e-17 * scale {
            break;
        }
        for (p, q) in [(0, 1), (0, 2), (1, 2)] {
            if m[p][q] == 0.0 {
                continue;
            }
            let theta = (m[q][q] - m[p][p]) / (2.0 * m[p][q]);
            let t = theta.signum() / (theta.abs() + (theta * theta + 1.0).sqrt());
            let c = 1.0 / (t * t + 1.0).sqrt();
            let s = t * c;
            for row in &mut m {
                (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
            }
            let (rp, rq) = (m[p], m[q]);
            m[p] = [0, 1, 2].map(|k| c * rp[k] - s * rq[k]);
            m[q] = [0, 1, 2].map(|k| s * rp[k] + c * rq[k]);
            for row in &mut axes {
                (row[p], row[q]) = (c * row[p] - s * row[q], s * row[p] + c * row[q]);
            }
        }
    }
    let mut order = [0, 1, 2];
    // Stable: equal moments keep the order of the body's own axes.
    order.sort_by(|a, b| m[*b][*b].total_cmp(&m[*a][*a]));
    let moments = order.map(|i| m[i][i]);
    let column = |i: usize| [axes[0][i], axes[1][i], axes[2][i]];
    let x = column(order[0]);
    let y = column(order[1]);
    let z = crate::model::rotation::cross(x, y);
    let quat = from_axes(x, y, normalized(z).unwrap_or(z));
    Ok((normalized(quat).unwrap_or(IDENTITY), moments))
}
