//! Actions of a learner on a GPU.

use super::dlpack::{self, Kind, Taken};
use super::kernels::{Parts, TAKE_DOUBLE, TAKE_FLOAT, TAKE_INT, TAKE_LONG, TakeArgs};
use super::pool::Lease;
use crate::arrays::{has_shape, name_of, space_of};
use ostler_sim::device::{Address, DeviceError};
use ostler_sim::env::{ActionSpace, EnvSpec};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// Takes the actions of every agent.
///
/// # Errors
/// Not one array for each; elsewhere; another shape or kind.
pub fn taken(actions: &[Bound<'_, PyAny>], spec: &EnvSpec, number: i32) -> PyResult<Vec<Taken>> {
    let agents = spec.agents_per_env();
    if actions.len() != agents {
        let why = format!("actions of {} agents, of whom there are {agents}", actions.len());
        return Err(PyValueError::new_err(why));
    }
    let all = actions.iter().enumerate().map(|(agent, array)| {
        let name = name_of(spec, agent);
        let given = dlpack::take(array, &name, number)?;
        has_shape(&given.shape, spec, agent)?;
        let discrete = matches!(space_of(spec, agent), ActionSpace::Discrete(_));
        match number_kind(given.kind, discrete) {
            Some(_) => Ok(given),
            None => {
                let wanted = match discrete {
                    true => "int32 or int64",
                    false => "float32, float64, int32 or int64",
                };
                let why = format!("{name} are {wanted}, these are {}", given.kind.name());
                Err(PyTypeError::new_err(why))
            }
        }
    });
    all.collect()
}

/// How `TakeArgs` counts kinds of numbers.
fn number_kind(kind: Kind, discrete: bool) -> Option<i64> {
    match kind {
        Kind::Float(32) if !discrete => Some(TAKE_FLOAT),
        Kind::Float(64) if !discrete => Some(TAKE_DOUBLE),
        Kind::Int(32) => Some(TAKE_INT),
        Kind::Int(64) => Some(TAKE_LONG),
        _ => None,
    }
}

/// Where the rows of all agents' actions are: the array itself where it has them, else `room`,
/// into which they are copied on the device.
///
/// # Errors
/// The device refuses.
pub fn placed(
    given: &[Taken],
    spec: &EnvSpec,
    parts: &Parts,
    room: &Lease,
) -> Result<Address, DeviceError> {
    let width = spec.action.width() as i64;
    if let [one] = given
        && one.kind == Kind::Float(32)
        && one.strides.first().is_none_or(|row| *row == width)
        && one.strides.get(1).is_none_or(|column| *column == 1)
    {
        return Ok(one.address);
    }
    for (agent, one) in given.iter().enumerate() {
        let own = space_of(spec, agent);
        let discrete = matches!(own, ActionSpace::Discrete(_));
        let args = TakeArgs {
            from: one.address,
            to: room.address(),
            row: one.strides.first().copied().unwrap_or(0),
            column: one.strides.get(1).copied().unwrap_or(0),
            n: spec.num_envs as i64,
            world: width * spec.agents_per_env() as i64,
            first: width * agent as i64,
            width: own.width() as i64,
            kind: number_kind(one.kind, discrete).unwrap_or(TAKE_FLOAT),
        };
        // SAFETY: the shape was compared with the agent's; `room` has the rows of all.
        unsafe { parts.take(&args) }?;
    }
    Ok(room.address())
}
