//! Checks of the arrays that come from Python.

use numpy::{PyReadonlyArrayDyn, PyReadwriteArray1, PyReadwriteArray2, PyUntypedArrayMethods};
use ostler_sim::env::{ActionSpace, EnvSpec};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Copies actions, an array `[N][A]` for each agent (or choices `[N]` as indices), into `to`,
/// the rows `[N][M][A]` of all; columns beyond an agent's own stay as they are.
///
/// # Errors
/// Not one for each agent; another shape; a number that is not finite; a choice that there is
/// not.
pub fn take_actions(
    from: &[PyReadonlyArrayDyn<'_, f32>],
    spec: &EnvSpec,
    to: &mut [f32],
) -> PyResult<()> {
    let agents = spec.agents_per_env();
    if from.len() != agents {
        let why = format!("actions of {} agents, of whom there are {agents}", from.len());
        return Err(PyValueError::new_err(why));
    }
    for (m, array) in from.iter().enumerate() {
        let space = space_of(spec, m);
        has_shape(array.shape(), spec, m)?;
        let own = Own::new(spec, m);
        // A slice is there of columns that lie side by side, too.
        match array.as_slice() {
            Ok(numbers) if array.is_c_contiguous() && agents == 1 => to.copy_from_slice(numbers),
            Ok(numbers) if array.is_c_contiguous() => {
                let rows = numbers.chunks_exact(space.width().max(1));
                own.rows(to).zip(rows).for_each(|(to, x)| to.copy_from_slice(x));
            }
            _ => {
                let array = array.as_array();
                let mut numbers = array.iter();
                for to in own.rows(to) {
                    to.iter_mut().zip(&mut numbers).for_each(|(to, x)| *to = *x);
                }
            }
        }
    }
    check(spec, to)
}

/// Where an agent's actions are in the rows of all.
struct Own {
    world: usize,
    first: usize,
    width: usize,
}

impl Own {
    fn new(spec: &EnvSpec, agent: usize) -> Self {
        let width = spec.action.width();
        Self {
            world: width * spec.agents_per_env(),
            first: agent * width,
            width: space_of(spec, agent).width(),
        }
    }

    fn rows<'a>(&self, all: &'a mut [f32]) -> impl Iterator<Item = &'a mut [f32]> + use<'a> {
        let own = self.first..self.first + self.width;
        let worlds = all.chunks_exact_mut(self.world.max(1));
        worlds.map(move |world| &mut world[own.clone()])
    }
}

/// What an agent's actions are.
pub fn space_of(spec: &EnvSpec, agent: usize) -> ActionSpace {
    spec.agents.get(agent).map_or(spec.action, |own| own.action)
}

/// As messages call an agent's actions.
pub fn name_of(spec: &EnvSpec, agent: usize) -> String {
    match spec.agents.get(agent) {
        Some(own) => format!("actions[\"{}\"]", own.name),
        None => "actions".to_string(),
    }
}

/// # Errors
/// An agent's actions have another shape than `given`.
pub fn has_shape(given: &[usize], spec: &EnvSpec, agent: usize) -> PyResult<()> {
    let n = spec.num_envs;
    let (fits, wanted) = match space_of(spec, agent) {
        ActionSpace::Continuous(width) => (given == [n, width], format!("({n}, {width})")),
        ActionSpace::Discrete(_) => (given == [n], format!("({n},)")),
    };
    if fits {
        return Ok(());
    }
    let given: Vec<String> = given.iter().map(usize::to_string).collect();
    let given = match given.as_slice() {
        [one] => format!("({one},)"),
        all => format!("({})", all.join(", ")),
    };
    let name = name_of(spec, agent);
    let why = format!("{name} have the shape {wanted}, these have {given}");
    Err(PyValueError::new_err(why))
}

fn check(spec: &EnvSpec, actions: &mut [f32]) -> PyResult<()> {
    // All at once first, in a loop of which compilers make vectors.
    const EXPONENT: u32 = 0x7f80_0000;
    let exponents = actions.iter().map(|x| x.to_bits() & EXPONENT);
    let finite = exponents.fold(0, u32::max) < EXPONENT;
    for agent in 0..spec.agents_per_env() {
        let space = space_of(spec, agent);
        let name = || name_of(spec, agent);
        let mut rows = Own::new(spec, agent).rows(actions).enumerate();
        let wrong = match space {
            ActionSpace::Continuous(_) if finite => None,
            ActionSpace::Continuous(_) => rows.find_map(|(env, row)| {
                let entry = row.iter().position(|x| !x.is_finite())?;
                let x = row[entry];
                Some(format!("{}[{env}, {entry}] is {x}, not a finite number", name()))
            }),
            ActionSpace::Discrete(count) => rows.find_map(|(env, row)| {
                let choice = |x: f32| x >= 0.0 && x < count as f32 && x.fract() == 0.0;
                let x = row.iter().copied().find(|x| !choice(*x))?;
                let last = count - 1;
                Some(format!("{}[{env}] is {x}, choices are 0 to {last}", name()))
            }),
        };
        if let Some(why) = wrong {
            return Err(PyValueError::new_err(why));
        }
    }
    Ok(())
}

/// The numbers of a result's rows `[R][width]`.
///
/// # Errors
/// Another shape; numbers that do not lie side by side.
pub fn rows<'a, T: numpy::Element>(
    name: &str,
    array: &'a mut PyReadwriteArray2<'_, T>,
    shape: [usize; 2],
) -> PyResult<&'a mut [T]> {
    if array.shape() != shape {
        let why = format!("{name} has the shape {:?}, not {shape:?}", array.shape());
        return Err(PyValueError::new_err(why));
    }
    // A slice is there of columns that lie side by side, too.
    match array.is_c_contiguous() {
        true => Ok(array.as_slice_mut()?),
        false => Err(PyValueError::new_err(format!("{name} lie in another order"))),
    }
}

/// The numbers of a result's column `[R]`.
///
/// # Errors
/// As [`rows`].
pub fn column<'a, T: numpy::Element>(
    name: &str,
    array: &'a mut PyReadwriteArray1<'_, T>,
    len: usize,
) -> PyResult<&'a mut [T]> {
    if array.shape() != [len] {
        let why = format!("{name} has the shape {:?}, not [{len}]", array.shape());
        return Err(PyValueError::new_err(why));
    }
    Ok(array.as_slice_mut()?)
}
