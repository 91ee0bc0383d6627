//! Evidence of a world that broke.

use super::limits::farthest;
use super::{Limits, State, fault};

/// Numbers from here on count as infinite: nothing that is left of a robot is so far or
/// so fast, and their squares are no longer numbers.
pub const HUGE: f32 = 1e30;

/// One number of a world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Part {
    /// Entry of `qpos`.
    Qpos(usize),
    /// Entry of `qvel`.
    Qvel(usize),
    /// An actuator's state.
    Activation(usize),
    /// An actuator's control.
    Control(usize),
    /// Speed of a body's frame, linear (m/s) or angular (rad/s).
    BodySpeed(usize),
    /// Distance of a body's frame from the origin (m).
    BodyPosition(usize),
    /// The engine gave up without a number to show for it.
    Engine,
}

/// The number that broke a world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Evidence {
    /// Which.
    pub part: Part,
    /// The fault.
    pub value: f32,
}

/// Whether no step can be taken with this number.
pub fn is_bad(x: f32) -> bool {
    x.is_nan() || x.abs() >= HUGE
}

/// The first bad number.
pub(crate) fn bad(numbers: impl Iterator<Item = f32>) -> Option<(usize, f32)> {
    numbers.enumerate().find(|(_, x)| is_bad(*x))
}

/// The largest number by its magnitude.
pub fn largest(numbers: impl Iterator<Item = f32>) -> Option<(usize, f32)> {
    numbers.enumerate().max_by(|a, b| a.1.abs().total_cmp(&b.1.abs()))
}

/// The first of these velocities, then positions, that is bad.
pub fn bad_state(
    qpos: impl Iterator<Item = f32>,
    qvel: impl Iterator<Item = f32>,
) -> Option<Evidence> {
    let of = |part: fn(usize) -> Part| move |(i, value)| Evidence { part: part(i), value };
    bad(qvel).map(of(Part::Qvel)).or_else(|| bad(qpos).map(of(Part::Qpos)))
}

/// Evidence in the state and the controls `[nu][N]` of a broken world; the largest numbers
/// where nobody knows the limits.
pub fn of_state(
    state: &State,
    env: usize,
    ctrl: &[f32],
    limits: Option<&Limits>,
) -> Option<Evidence> {
    let column = |buffer: &'_ [f32]| {
        let numbers: Vec<f32> = buffer.iter().skip(env).step_by(state.num_envs).copied().collect();
        numbers.into_iter()
    };
    let bits = *state.fault.get(env)?;
    if let Some(found) = bad_state(column(&state.qpos), column(&state.qvel)) {
        return Some(found);
    }
    if bits & fault::SPEED != 0 {
        let numbers = column(&state.qvel);
        let (i, value) = match limits {
            Some(limits) => farthest(numbers, &limits.speed)?,
            None => largest(numbers)?,
        };
        let part = Part::Qvel(i);
        return Some(Evidence { part, value });
    }
    if bits & fault::POSITION != 0 {
        let numbers = column(&state.qpos);
        let (i, value) = match limits {
            Some(limits) => farthest(numbers, &limits.position)?,
            None => largest(numbers)?,
        };
        let part = Part::Qpos(i);
        return Some(Evidence { part, value });
    }
    if bits & fault::CONTROL != 0 {
        let (i, value) = bad(column(ctrl))?;
        let part = Part::Control(i);
        return Some(Evidence { part, value });
    }
    (bits & fault::ENGINE != 0).then_some(Evidence { part: Part::Engine, value: f32::NAN })
}
