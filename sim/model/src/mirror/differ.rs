//! What differs between the two sides of a robot.

use super::{Mirror, MirrorError, reflected};
use crate::rest::Rest;
use crate::rotation::{Pose, cross, dot, rotate, turned};
use crate::{Geom, GeomKind, Joint, Model, Vec3};

/// Smaller differences are those of a file's digits.
const LEAST: f64 = 1e-7;

/// How far from its counterpart the reflection of a body that moves may be, in robot sizes. Farther
/// away the plane or the pairs are others.
const MOST_APART: f64 = 0.25;
/// From here on a reflection that is nearer to the body itself than to its counterpart is no chance.
const SMALL_APART: f64 = 0.05;

/// Something that is not the reflection of its counterpart.
#[derive(Debug, Clone, PartialEq)]
pub struct Difference {
    /// Of what: `inertia of body "left_foot"`.
    pub what: String,
    /// The name of the counterpart; the same name: it is its own.
    pub other: String,
    /// How large: relative to the value, of places to the robot's size, of axes in radians.
    pub share: f64,
}

impl std::fmt::Display for Difference {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { what, other, share } = self;
        let per_cent = 100.0 * share;
        let digits = if per_cent < 0.01 { 4 } else { 2 };
        match what.ends_with(&format!("\"{other}\"")) {
            true => write!(f, "{what} differs from its own reflection by {per_cent:.digits$} %"),
            false => {
                write!(
                    f,
                    "{what} differs from the reflection of \"{other}\" by {per_cent:.digits$} %"
                )
            }
        }
    }
}

pub(super) fn of_joint(
    model: &Model,
    (j, k): (usize, usize),
    what: &str,
    share: f64,
) -> Difference {
    let [own, other] = [&model.joints[j], &model.joints[k]];
    Difference {
        what: format!("{what} of joint \"{}\"", other.name),
        other: own.name.clone(),
        share,
    }
}

/// How far two numbers are from each other, in shares of the larger; infinities are equal.
fn apart(a: f64, b: f64) -> f64 {
    if a == b { 0.0 } else { (a - b).abs() / a.abs().max(b.abs()) }
}

/// The largest of these.
fn most(all: impl IntoIterator<Item = f64>) -> f64 {
    all.into_iter().fold(0.0, f64::max)
}

/// A range under a sign.
pub(super) fn signed(range: [f64; 2], sign: f64) -> [f64; 2] {
    if sign < 0.0 { [-range[1], -range[0]] } else { range }
}

/// How far two ranges are from each other, in shares of the first one's width.
fn ranges(a: Option<[f64; 2]>, b: Option<[f64; 2]>, sign: f64) -> f64 {
    match (a, b) {
        (None, None) => 0.0,
        (Some(a), Some(b)) => {
            let b = signed(b, sign);
            let width = (a[1] - a[0]).abs().max(1e-9);
            let one = |k: usize| if a[k] == b[k] { 0.0 } else { (a[k] - b[k]).abs() / width };
            one(0).max(one(1))
        }
        _ => 1.0,
    }
}

/// How unlike two actuators are, of which the second moves the first one's other side with
/// `sign`.
pub(super) fn of_actuators(model: &Model, (u, v): (usize, usize), sign: f64) -> f64 {
    let [a, b] = [&model.actuators[u], &model.actuators[v]];
    let law = most(a.gain.iter().zip(b.gain).map(|(x, y)| apart(*x, y)));
    // A bias of its own pushes the other way; those by length and velocity follow them.
    let bias = apart(a.bias[0], sign * b.bias[0])
        .max(apart(a.bias[1], b.bias[1]))
        .max(apart(a.bias[2], b.bias[2]));
    let kind = f64::from(u8::from(
        (a.dynamics, a.dynprm, a.muscle, a.enabled, &a.motor)
            != (b.dynamics, b.dynprm, b.muscle, b.enabled, &b.motor),
    ));
    [
        law,
        bias,
        kind,
        ranges(a.ctrlrange, b.ctrlrange, sign),
        ranges(a.forcerange, b.forcerange, sign),
    ]
    .into_iter()
    .fold(0.0, f64::max)
}

/// All differences, in no order.
pub(super) fn all(model: &Model, mirror: &Mirror, rest: &Rest<'_>, found: &mut Vec<Difference>) {
    let size = extent(model, rest);
    let mut note = |what: &str, kind: &str, name: &str, other: &str, share: f64| {
        // A comparison of nothing with nothing is not a number.
        if share > LEAST {
            let what = format!("{what} of {kind} \"{name}\"");
            found.push(Difference { what, other: other.to_string(), share });
        }
    };
    // Every pair once.
    let once = |(part, other): &(usize, &usize)| part <= *other;
    for (b, &other) in mirror.bodies.iter().enumerate().skip(1).filter(once) {
        let [x, y] = [b, other].map(|b| Inertial::of(model, rest, b));
        let names = (model.bodies[other].name.as_str(), model.bodies[b].name.as_str());
        let wanted = x.reflected(mirror.axis);
        note("mass", "body", names.0, names.1, apart(wanted.mass, y.mass));
        let gap = length([0, 1, 2].map(|k| wanted.centre[k] - y.centre[k]));
        note("centre of mass", "body", names.0, names.1, gap / size);
        let norm = wanted.tensor.iter().map(|x| x * x).sum::<f64>().sqrt();
        let off = wanted.tensor.iter().zip(y.tensor).map(|(a, b)| (a - b).powi(2)).sum::<f64>();
        note("inertia", "body", names.0, names.1, off.sqrt() / norm.max(1e-12));
        let carried = apart(model.bodies[b].gravcomp, model.bodies[other].gravcomp);
        note("gravcomp", "body", names.0, names.1, carried);
    }
    for (j, &k) in mirror.joints.iter().enumerate().filter(once) {
        let (own, other, sign) = (&model.joints[j], &model.joints[k], mirror.signs[j]);
        for (what, share) in joint(model, own, other, sign) {
            note(what, "joint", &other.name, &own.name, share);
        }
        if own.is_scalar() && own.kind == crate::JointKind::Hinge {
            let at = |j: &Joint| rest.bodies[j.body].point(j.pos);
            let axis = rotate(rest.bodies[other.body].quat, other.axis);
            let wanted = reflected(mirror.axis, at(own));
            let gap = [0, 1, 2].map(|i| at(other)[i] - wanted[i]);
            note("place", "joint", &other.name, &own.name, length(cross(axis, gap)) / size);
        }
    }
    let actuators = mirror.actuators.iter().enumerate();
    for (u, &(v, sign)) in actuators.filter(|(u, (v, _))| u <= v) {
        let [own, other] = [&model.actuators[u], &model.actuators[v]];
        let share = of_actuators(model, (u, v), sign);
        note("law", "actuator", &other.name, &own.name, share);
    }
    geoms(model, mirror, rest, size, &mut note);
    let o = &model.options;
    let turned = super::turned_over(mirror.axis, o.magnetic);
    for (what, is, wanted) in [
        ("gravity", o.gravity, reflected(mirror.axis, o.gravity)),
        ("wind", o.wind, reflected(mirror.axis, o.wind)),
        ("magnetic", o.magnetic, turned),
    ] {
        let gap = length([0, 1, 2].map(|k| is[k] - wanted[k]));
        // The magnetic field is there by default, along z; only magnetometers feel it.
        if what != "magnetic" || magnetic(model) {
            note(what, "option", what, what, gap / length(is).max(1e-12));
        }
    }
}

/// Refuses a reflection that puts a body with joints far from its counterpart: physics alone may
/// not tell two arms that point the same way from their reflection in the wrong plane.
pub(super) fn in_place(model: &Model, mirror: &Mirror, rest: &Rest<'_>) -> Result<(), MirrorError> {
    let size = extent(model, rest);
    let centre = |b: usize| rest.bodies[b].point(model.bodies[b].ipos);
    let from = |at: Vec3, b: usize| [0, 1, 2].map(|k| centre(b)[k] - at[k]);
    let moving: Vec<usize> =
        (1..model.bodies.len()).filter(|b| !model.bodies[*b].joints.is_empty()).collect();
    // The plane of a robot that is bolted beside the origin goes through the robot.
    let mut shifts: Vec<f64> = moving
        .iter()
        .map(|&b| from(reflected(mirror.axis, centre(b)), mirror.bodies[b])[mirror.axis])
        .collect();
    shifts.sort_by(f64::total_cmp);
    let middle = |k: usize| shifts.get(k).copied().unwrap_or(0.0);
    let (low, high) = (middle(shifts.len().saturating_sub(1) / 2), middle(shifts.len() / 2));
    let shift = 0.0f64.clamp(low, high);
    for b in moving {
        let other = mirror.bodies[b];
        let mut there = reflected(mirror.axis, centre(b));
        there[mirror.axis] += shift;
        let [apart, own] = [other, b].map(|b| length(from(there, b)) / size);
        let astray = other != b && apart > SMALL_APART && apart >= own;
        if apart > MOST_APART || astray {
            let [body, other] = [b, other].map(|b| model.bodies[b].name.clone());
            return Err(MirrorError::Elsewhere { body, other, share: apart });
        }
    }
    Ok(())
}

fn magnetic(model: &Model) -> bool {
    model.sensors.iter().any(|s| matches!(s.kind, crate::SensorKind::Magnetometer(_)))
}

/// Numbers of a joint and its counterpart.
fn joint(model: &Model, own: &Joint, other: &Joint, sign: f64) -> [(&'static str, f64); 7] {
    let about = |j: &Joint, range: [f64; 2]| range.map(|x| x - model.qpos0[j.qpos_adr]);
    let range = |j: &Joint| match j.is_scalar() {
        true => j.range.map(|r| about(j, r)),
        false => j.range,
    };
    let spring = |j: &Joint| j.springref - j.reference;
    let sprung = own.stiffness != 0.0 && own.is_scalar();
    [
        ("range", ranges(range(own), range(other), sign)),
        ("damping", apart(own.damping, other.damping)),
        ("stiffness", apart(own.stiffness, other.stiffness)),
        ("springref", if sprung { (spring(own) - sign * spring(other)).abs() } else { 0.0 }),
        ("armature", apart(own.armature, other.armature)),
        ("frictionloss", apart(own.frictionloss, other.frictionloss)),
        ("actuatorfrcrange", ranges(own.actfrcrange, other.actfrcrange, sign)),
    ]
}

impl Mirror {
    /// Shapes that collide and their counterparts, found by their places. One without a
    /// counterpart is its own.
    pub(super) fn shapes(&self, model: &Model, rest: &Rest<'_>) -> Vec<(usize, usize)> {
        let collides = |g: &Geom| g.contype != 0 || g.conaffinity != 0;
        let mut taken = vec![false; model.geoms.len()];
        let mut all = Vec::new();
        for (g, own) in model.geoms.iter().enumerate() {
            if !collides(own) || own.kind == GeomKind::Terrain {
                continue;
            }
            let there = &model.bodies[self.bodies[own.body]];
            let far = |h: &usize| shape_apart(model, rest, own, &model.geoms[*h], self.axis);
            let beside = there.geoms.clone().filter(|&h| collides(&model.geoms[h]) && !taken[h]);
            let nearest = beside.min_by(|a, b| far(a).total_cmp(&far(b)));
            if let Some(h) = nearest {
                taken[h] = true;
            }
            all.push((g, nearest.unwrap_or(g)));
        }
        all
    }

    /// Counterparts of sites, found by their places.
    pub(super) fn places(&self, model: &Model, rest: &Rest<'_>) -> Vec<usize> {
        let at = |s: usize| rest.bodies[model.sites[s].body].point(model.sites[s].pos);
        let place = |s: usize| {
            let there = reflected(self.axis, at(s));
            let far = |t: &usize| length([0, 1, 2].map(|k| at(*t)[k] - there[k]));
            let on = |t: &usize| model.sites[*t].body == self.bodies[model.sites[s].body];
            let beside = (0..model.sites.len()).filter(on);
            beside.min_by(|a, b| far(a).total_cmp(&far(b))).unwrap_or(s)
        };
        (0..model.sites.len()).map(place).collect()
    }
}

/// Shapes that collide and differ.
fn geoms(
    model: &Model,
    mirror: &Mirror,
    rest: &Rest<'_>,
    size: f64,
    note: &mut impl FnMut(&str, &str, &str, &str, f64),
) {
    for (g, h) in mirror.shapes(model, rest).into_iter().filter(|(g, h)| g <= h) {
        let (own, other) = (&model.geoms[g], &model.geoms[h]);
        let far = shape_apart(model, rest, own, other, mirror.axis);
        note("shape", "geom", &other.name, &own.name, far / size);
        let numbers = |g: &Geom| {
            let bits = [g.contype, g.conaffinity, g.condim].map(f64::from);
            let friction = g.friction.into_iter().chain(g.solref).chain(g.solimp);
            bits.into_iter().chain(friction).chain([g.margin, g.gap, g.solmix]).collect::<Vec<_>>()
        };
        let share = most(numbers(own).iter().zip(numbers(other)).map(|(a, b)| apart(*a, b)));
        note("contact", "geom", &other.name, &own.name, share);
    }
}

/// How far a shape is from another's reflection (m), by how far both reach in some directions.
fn shape_apart(model: &Model, rest: &Rest<'_>, own: &Geom, other: &Geom, axis: usize) -> f64 {
    let pose = |g: &Geom| rest.bodies[g.body].then(Pose { pos: g.pos, quat: g.quat });
    if own.kind == GeomKind::Plane || other.kind == GeomKind::Plane {
        let plane = |g: &Geom| (rotate(pose(g).quat, [0.0, 0.0, 1.0]), pose(g).pos);
        let ((normal, at), (wanted, there)) = (plane(other), plane(own));
        let wanted = reflected(axis, wanted);
        let off = length([0, 1, 2].map(|k| normal[k] - wanted[k]));
        let both = own.kind == other.kind;
        let gap = dot(normal, at) - dot(wanted, reflected(axis, there));
        return if both { off + gap.abs() } else { f64::INFINITY };
    }
    let steps = [-1.0, 0.0, 1.0];
    let all = steps.iter().flat_map(|x| steps.iter().flat_map(move |y| steps.map(|z| [*x, *y, z])));
    // Not along the axes alone: a box and the cylinder in it reach equally far there.
    let tilted =
        all.filter(|d| *d != [0.0; 3]).map(|[x, y, z]| [x + 0.31 * y, y - 0.17 * z, z + 0.23 * x]);
    most(tilted.map(|d| {
        let (a, b) =
            (own.reach(model, pose(own), d), other.reach(model, pose(other), reflected(axis, d)));
        if a == b { 0.0 } else { (a - b).abs() / length(d) }
    }))
}

/// Mass, centre and inertia of a body in the world.
pub(super) struct Inertial {
    pub mass: f64,
    pub centre: Vec3,
    /// xx yy zz xy xz yz.
    pub tensor: [f64; 6],
}

impl Inertial {
    pub(super) fn of(model: &Model, rest: &Rest<'_>, b: usize) -> Self {
        let body = &model.bodies[b];
        let frame = rest.bodies[b].then(Pose { pos: body.ipos, quat: body.iquat });
        Self { mass: body.mass, centre: frame.pos, tensor: turned(body.inertia, frame.quat) }
    }

    pub(super) fn reflected(&self, axis: usize) -> Self {
        let mut tensor = self.tensor;
        // xy, xz, yz: those with the axis change sign.
        for (entry, pair) in tensor[3..].iter_mut().zip([[0, 1], [0, 2], [1, 2]]) {
            if pair.contains(&axis) {
                *entry = -*entry;
            }
        }
        Self { mass: self.mass, centre: reflected(axis, self.centre), tensor }
    }
}

fn length(v: Vec3) -> f64 {
    dot(v, v).sqrt()
}

/// The robot's size (m): how far its bodies are from each other at most.
fn extent(model: &Model, rest: &Rest<'_>) -> f64 {
    let at = |b: usize| rest.bodies[b].point(model.bodies[b].ipos);
    let moving = || (1..model.bodies.len()).filter(|b| model.bodies[*b].weld != 0);
    let gap = |a: usize, b: usize| length([0, 1, 2].map(|k| at(a)[k] - at(b)[k]));
    let first = moving().next().map_or(0, |b| b);
    most(moving().map(|b| gap(first, b))).max(0.05)
}
