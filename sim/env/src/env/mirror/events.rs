//! The reflection of what events draw.

use crate::config::{Distribution, Operation};
use crate::task::Task;
use crate::task::draw::Draw;
use crate::task::event::{Drawn, Event, Form};
use ostler_model::mirror::Mirror;
use ostler_model::rotation::{Quat, Vec3, rotate};
use ostler_model::{Field, JointKind, Model, Varied};

/// Pairs of axes of products of inertia and of shears, in their order.
const PAIRS: [[usize; 2]; 3] = [[0, 1], [0, 2], [1, 2]];

/// What a drawn number acts on.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Aim {
    /// A number of a field.
    Field(Varied, usize),
    /// A parameter of a body's `pseudo_inertia`.
    Pseudo(usize, usize),
    /// A velocity of a body with a free joint.
    Push(usize, usize),
}

/// A number of an event, what it acts on, and where expressions read it.
struct Number<'a> {
    event: &'a Event,
    drawn: &'a Drawn,
    aim: Option<Aim>,
    place: Option<usize>,
}

/// The numbers of all events.
pub(super) struct Numbers<'a> {
    model: &'a Model,
    mirror: &'a Mirror,
    all: Vec<Number<'a>>,
}

/// What row of all that varies a row becomes, and its sign; none where frames are turned so that
/// no number of the counterpart's is it.
pub(super) fn varied(model: &Model, mirror: &Mirror, row: usize) -> Option<(usize, f32)> {
    let (of, k) = model.varied_at(row)?;
    match reflected(model, mirror, Aim::Field(of, k))? {
        (Aim::Field(other, k), sign) => {
            Some((model.varied_row(other.field, other.element)? + k, sign))
        }
        _ => None,
    }
}

/// The axis that a direction has, and its sign.
fn along(v: Vec3) -> Option<(usize, f32)> {
    let k = (0..3).find(|k| v[*k].abs() > 1.0 - 1e-3)?;
    Some((k, v[k].signum() as f32))
}

/// What the axis `k` of a body's frame is in its counterpart's.
fn axis(mirror: &Mirror, body: usize, k: usize) -> Option<(usize, f32)> {
    let mut unit = [0.0; 3];
    unit[k] = 1.0;
    along(mirror.direction(body, unit))
}

/// The same of a product of two axes.
fn product(mirror: &Mirror, body: usize, pair: usize) -> Option<(usize, f32)> {
    let [a, b] = PAIRS[pair].map(|k| axis(mirror, body, k));
    let ((a, one), (b, other)) = (a?, b?);
    let pair = PAIRS.iter().position(|p| *p == [a.min(b), a.max(b)])?;
    Some((pair, one * other))
}

/// The same of a principal axis.
fn principal(model: &Model, mirror: &Mirror, body: usize, k: usize) -> Option<usize> {
    let mut unit = [0.0; 3];
    unit[k] = 1.0;
    let there = mirror.direction(body, rotate(model.bodies[body].iquat, unit));
    let [w, x, y, z]: Quat = model.bodies[mirror.bodies[body]].iquat;
    Some(along(rotate([w, -x, -y, -z], there))?.0)
}

/// What an aim becomes, and the sign of its numbers.
fn reflected(model: &Model, mirror: &Mirror, aim: Aim) -> Option<(Aim, f32)> {
    let plane = mirror.axis;
    // Of vectors in the world: positions and forces, turns and torques.
    let straight = |k: usize| if k == plane { -1.0 } else { 1.0 };
    let about = |k: usize| if k == plane { 1.0 } else { -1.0 };
    let six = |k: usize| if k < 3 { straight(k) } else { about(k - 3) };
    let found = match aim {
        Aim::Push(joint, k) => (Aim::Push(mirror.joints[joint], k), six(k)),
        Aim::Pseudo(body, k) => {
            let other = mirror.bodies[body];
            let (k, sign) = match k {
                0 => (0, 1.0),
                1..4 => (1 + axis(mirror, body, k - 1)?.0, 1.0),
                4..7 => product(mirror, body, k - 4).map(|(pair, sign)| (4 + pair, sign))?,
                _ => axis(mirror, body, k - 7).map(|(k, sign)| (7 + k, sign))?,
            };
            (Aim::Pseudo(other, k), sign)
        }
        Aim::Field(Varied { field, element }, k) => {
            let (element, k, sign) = match field {
                Field::Gravity => (0, k, straight(k)),
                Field::Mass => (mirror.bodies[element], k, 1.0),
                Field::Wrench => (mirror.bodies[element], k, six(k)),
                Field::Com => {
                    let (k, sign) = axis(mirror, element, k)?;
                    (mirror.bodies[element], k, sign)
                }
                Field::Moments => {
                    (mirror.bodies[element], principal(model, mirror, element, k)?, 1.0)
                }
                Field::Tensor if k < 3 => {
                    (mirror.bodies[element], axis(mirror, element, k)?.0, 1.0)
                }
                Field::Tensor => {
                    let (pair, sign) = product(mirror, element, k - 3)?;
                    (mirror.bodies[element], 3 + pair, sign)
                }
                Field::Friction => {
                    let other = mirror.geoms[element];
                    let [own, there] = [element, other].map(|g| model.geoms[g].body);
                    (there == mirror.bodies[own]).then_some((other, k, 1.0))?
                }
                Field::Armature | Field::Damping | Field::Frictionloss | Field::Stiffness => {
                    (mirror.joints[element], k, 1.0)
                }
                Field::Qpos0 => (mirror.joints[element], k, mirror.signs[element] as f32),
                Field::Kp | Field::Kd | Field::Gain | Field::Effort | Field::Delay => {
                    (mirror.actuators[element].0, k, 1.0)
                }
            };
            (Aim::Field(Varied { field, element }, k), sign)
        }
    };
    Some(found)
}

/// Whether `b` is distributed as `a` with a sign.
fn alike(a: &Draw, b: &Draw, sign: f32) -> bool {
    if sign > 0.0 || a == b && a.range == [0.0; 2] {
        return a == b;
    }
    let turned = |[low, high]: [f32; 2]| [-high, -low];
    let numbers = b.range == turned(a.range) && b.mean == -a.mean && b.std == a.std;
    match a.distribution {
        Distribution::Uniform
        | Distribution::Normal
        | Distribution::TruncatedNormal
        | Distribution::Beta => a.distribution == b.distribution && numbers,
        Distribution::Choice => {
            let each = |draw: &Draw, sign: f32| {
                let before = std::iter::once(0.0).chain(draw.shares.iter().copied());
                let each = draw.choices.iter().zip(draw.shares.iter().zip(before));
                let mut each: Vec<(f32, f32)> =
                    each.map(|(x, (to, from))| (sign * x, to - from)).collect();
                each.sort_by(|a, b| a.0.total_cmp(&b.0));
                each
            };
            let (own, there) = (each(a, -1.0), each(b, 1.0));
            let near = |(a, b): (&(f32, f32), &(f32, f32))| a.0 == b.0 && (a.1 - b.1).abs() < 1e-5;
            b.distribution == Distribution::Choice
                && own.len() == there.len()
                && own.iter().zip(&there).all(near)
        }
        Distribution::LogUniform | Distribution::Exponential | Distribution::Bernoulli => false,
    }
}

impl<'a> Numbers<'a> {
    pub(super) fn new(model: &'a Model, mirror: &'a Mirror, task: &'a Task) -> Self {
        let mut places = task.events.places();
        let mut all = Vec::new();
        for event in &task.events.events {
            for (i, drawn) in event.drawn.iter().enumerate() {
                let aim = match event.form {
                    Form::Fields => model.varied_at(drawn.row).map(|(of, k)| Aim::Field(of, k)),
                    // Ten of each body, the first in the row of its mass.
                    Form::Pseudo => {
                        let first = event.drawn.get(i - i % 10);
                        let of = first.and_then(|first| model.varied_at(first.row));
                        of.map(|(of, _)| Aim::Pseudo(of.element, i % 10))
                    }
                    Form::Push => {
                        let free = |j: &ostler_model::Joint| {
                            j.kind == JointKind::Free
                                && (j.dof_adr..j.dof_adr + 6).contains(&drawn.row)
                        };
                        let joint = model.joints.iter().position(free);
                        joint.map(|j| Aim::Push(j, drawn.row - model.joints[j].dof_adr))
                    }
                };
                all.push(Number { event, drawn, aim, place: places.next().flatten() });
            }
        }
        Self { model, mirror, all }
    }

    /// The number that a number becomes, and its sign.
    fn counterpart(&self, own: &Number<'_>) -> Option<(&Number<'a>, f32)> {
        let (aim, sign) = reflected(self.model, self.mirror, own.aim?)?;
        let sign = if own.drawn.operation == Operation::Scale { 1.0 } else { sign };
        let same = |n: &&Number<'_>| {
            n.aim == Some(aim)
                && n.drawn.operation == own.drawn.operation
                && n.event.when == own.event.when
        };
        Some((self.all.iter().find(same)?, sign))
    }

    /// What a number that expressions read becomes, and its sign.
    pub(super) fn shown(&self, place: usize) -> Option<(usize, f32)> {
        let own = self.all.iter().find(|n| n.place == Some(place))?;
        let (other, sign) = self.counterpart(own)?;
        // Of several that share a draw the first has a place.
        let shares = |n: &&Number<'_>| {
            n.drawn.word == other.drawn.word && std::ptr::eq(n.event, other.event)
        };
        let shown = other.place.or_else(|| self.all.iter().filter(shares).find_map(|n| n.place));
        Some((shown?, sign))
    }

    /// The name of the event that an expression reads at a place.
    pub(super) fn event_at(&self, place: usize) -> Option<&str> {
        self.all.iter().find(|n| n.place == Some(place)).map(|n| n.event.name.as_str())
    }

    /// Whether the counterpart of a number is drawn as it is.
    fn even(&self, own: &Number<'_>) -> bool {
        let Some((other, sign)) = self.counterpart(own) else {
            return false;
        };
        let (a, b) = (own.event, other.event);
        // One draw for both cannot have two signs.
        let torn = sign < 0.0 && own.drawn.word == other.drawn.word && own.aim != other.aim;
        let timed = a.interval == b.interval && a.hold == b.hold;
        timed && !torn && alike(&own.drawn.draw, &other.drawn.draw, sign)
    }

    /// Events, with what they set, that do not draw the same for both sides, each once.
    pub(super) fn one_sided(&self) -> Vec<(String, String)> {
        let mut found: Vec<(String, String)> = Vec::new();
        for own in self.all.iter().filter(|own| !self.even(own)) {
            let event = (own.event.name.clone(), own.event.set.clone());
            if !found.contains(&event) && !own.event.set.is_empty() {
                found.push(event);
            }
        }
        found
    }
}
