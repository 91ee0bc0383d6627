//! Checks of the arrays that come from Python.

use numpy::{PyReadonlyArrayDyn, PyReadwriteArray1, PyReadwriteArray2, PyUntypedArrayMethods};
use ostler_sim::env::ActionSpace;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

/// Copies actions `[N][A]`, or choices `[N]` as indices, into `to`, `[N * A]`.
///
/// # Errors
/// Another shape; a number that is not finite; a choice that there is not.
pub fn take_actions(
    from: &PyReadonlyArrayDyn<'_, f32>,
    space: ActionSpace,
    num_envs: usize,
    to: &mut [f32],
) -> PyResult<()> {
    let given = from.shape();
    let fits = match space {
        ActionSpace::Continuous(width) => given == [num_envs, width],
        ActionSpace::Discrete(_) => given == [num_envs],
    };
    if !fits {
        let wanted = match space {
            ActionSpace::Continuous(width) => format!("({num_envs}, {width})"),
            ActionSpace::Discrete(_) => format!("({num_envs},)"),
        };
        let given: Vec<String> = given.iter().map(usize::to_string).collect();
        let given = match given.as_slice() {
            [one] => format!("({one},)"),
            all => format!("({})", all.join(", ")),
        };
        let why = format!("actions have the shape {wanted}, these have {given}");
        return Err(PyValueError::new_err(why));
    }
    match from.as_slice() {
        Ok(numbers) => to.copy_from_slice(numbers),
        Err(_) => to
            .iter_mut()
            .zip(from.as_array().iter())
            .for_each(|(to, x)| *to = *x),
    }
    check(space, to)
}

fn check(space: ActionSpace, actions: &[f32]) -> PyResult<()> {
    let wrong = match space {
        ActionSpace::Continuous(width) => {
            // All at once first, in a loop of which compilers make vectors.
            const EXPONENT: u32 = 0x7f80_0000;
            let exponents = actions.iter().map(|x| x.to_bits() & EXPONENT);
            if exponents.fold(0, u32::max) < EXPONENT {
                return Ok(());
            }
            let bad = actions.iter().position(|x| !x.is_finite());
            bad.map(|at| {
                let (env, entry) = (at / width.max(1), at % width.max(1));
                format!(
                    "actions[{env}, {entry}] is {}, not a finite number",
                    actions[at]
                )
            })
        }
        ActionSpace::Discrete(count) => {
            let choice = |x: &f32| *x >= 0.0 && *x < count as f32 && x.fract() == 0.0;
            let bad = actions.iter().position(|x| !choice(x));
            bad.map(|at| {
                format!(
                    "actions[{at}] is {}, choices are 0 to {}",
                    actions[at],
                    count - 1
                )
            })
        }
    };
    wrong.map_or(Ok(()), |why| Err(PyValueError::new_err(why)))
}

/// The numbers of a result's rows `[N][width]`.
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
    Ok(array.as_slice_mut()?)
}

/// The numbers of a result's column `[N]`.
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
