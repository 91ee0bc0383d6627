//! The C functions that `sim/kernels/sym.cuh` calls.
//!
//! They work on the recorder that [`record`] has put up for the calling thread.
//! Numbers for values are [`Val::raw`]; whatever is wrong with one is kept as the
//! recording's error, never undefined.

use super::node::Val;
use super::program::{Array, Program};
use super::record::{Recorder, TapeError};
use crate::kernels;
use std::cell::RefCell;
use std::ffi::{CStr, c_char};

thread_local! {
    static CURRENT: RefCell<Option<Recorder>> = const { RefCell::new(None) };
}

/// Handed out instead of a value that cannot be had; using it is an error too.
pub const NO_VALUE: u32 = u32::MAX;

/// With this bit, a number stands for an element as the open function finds it, by its
/// place in all arrays one behind the other: it is loaded where it is used first.
pub const ELEMENT: u32 = kernels::SYM_ELEMENT;

/// The value behind a number; none if it is an element that cannot be had.
fn value(recorder: &mut Recorder, raw: u32) -> Option<Val> {
    match raw {
        NO_VALUE => Some(Val::from_raw(raw)),
        _ if raw & ELEMENT != 0 => recorder.found(raw & !ELEMENT),
        _ => Some(Val::from_raw(raw)),
    }
}

/// Runs `body` and returns its recording of this thread.
///
/// # Errors
/// The first mistake of the recording; a recording within a recording.
pub fn record(arrays: Vec<Array>, body: impl FnOnce()) -> Result<Program, TapeError> {
    /// Takes the recorder down even if `body` panics.
    struct Down;
    impl Drop for Down {
        fn drop(&mut self) {
            CURRENT.with(|current| current.take());
        }
    }
    let busy = CURRENT.with(|current| {
        let mut current = current.borrow_mut();
        let busy = current.is_some();
        if !busy {
            *current = Some(Recorder::new(arrays));
        }
        busy
    });
    if busy {
        return Err(TapeError::Busy);
    }
    let down = Down;
    body();
    let recorder = CURRENT.with(|current| current.take());
    drop(down);
    recorder.ok_or(TapeError::Busy)?.finish()
}

/// Records one function on this thread: for kernels that are called from Rust one
/// by one. Without a recorder only `body` runs.
pub fn function(name: &str, body: impl FnOnce()) {
    with((), |recorder| recorder.begin(name));
    body();
    with((), Recorder::end);
}

fn with<T>(otherwise: T, body: impl FnOnce(&mut Recorder) -> T) -> T {
    CURRENT.with(|current| match current.try_borrow_mut() {
        Ok(mut current) => match current.as_mut() {
            Some(recorder) => body(recorder),
            None => otherwise,
        },
        Err(_) => otherwise,
    })
}

/// An operation's operands, if each is a value of the open function and of the kind
/// asked for (`true`: a mask).
fn operands<const N: usize>(
    recorder: &mut Recorder,
    what: &'static str,
    raw: [u32; N],
    masks: [bool; N],
) -> Option<[Val; N]> {
    // Operations after a mistake are not recorded: a robot that is too large ends here.
    if recorder.error().is_some() {
        return None;
    }
    let mut values = [Val::from_raw(NO_VALUE); N];
    for (value, raw) in values.iter_mut().zip(raw) {
        *value = self::value(recorder, raw)?;
    }
    for (value, mask) in values.into_iter().zip(masks) {
        if !recorder.graph().holds(value) {
            recorder.fail(TapeError::UnknownValue { raw: value.raw() });
            return None;
        }
        if recorder.graph().node(value).is_mask() != mask {
            recorder.fail(TapeError::Kind { what });
            return None;
        }
    }
    Some(values)
}

/// Checks that what has just been computed may be: anything but a constant needs an
/// open function.
fn result(recorder: &mut Recorder, what: &'static str, value: Option<Val>) -> u32 {
    let Some(value) = value else { return NO_VALUE };
    let graph = recorder.graph();
    let constant = graph.constant(value).is_some() || graph.known_mask(value).is_some();
    if graph.nodes().len() >= Val::MAX_NODES {
        recorder.fail(TapeError::TooLarge);
        return NO_VALUE;
    }
    if !constant && !recorder.is_open() {
        recorder.fail(TapeError::NoFunction { what });
        return NO_VALUE;
    }
    value.raw()
}

/// A constant.
#[unsafe(no_mangle)]
pub extern "C" fn ostler_sym_const(value: f64) -> u32 {
    with(NO_VALUE, |r| {
        let value = r.graph().number(value);
        result(r, "a constant", Some(value))
    })
}

/// A mask that holds always (`holds` is not 0) or never.
#[unsafe(no_mangle)]
pub extern "C" fn ostler_sym_mask(holds: u32) -> u32 {
    with(NO_VALUE, |r| {
        let value = r.graph().mask(holds != 0);
        result(r, "a mask", Some(value))
    })
}

/// An operation on one value.
#[unsafe(no_mangle)]
pub extern "C" fn ostler_sym_op1(op: u32, a: u32) -> u32 {
    with(NO_VALUE, |r| {
        let what = "an operation on one value";
        let Some([a]) = operands(r, what, [a], [op == kernels::SYM_NOT]) else {
            return NO_VALUE;
        };
        let graph = r.graph();
        let value = match op {
            kernels::SYM_NEG => graph.neg(a),
            kernels::SYM_NOT => a.flip(),
            kernels::SYM_SQRT => graph.sqrt(a),
            kernels::SYM_RECIP => graph.recip(a),
            kernels::SYM_ABS => graph.abs(a),
            kernels::SYM_SIN => graph.sin(a),
            kernels::SYM_COS => graph.cos(a),
            kernels::SYM_RINT => graph.rint(a),
            _ => {
                r.fail(TapeError::UnknownOperation(op));
                return NO_VALUE;
            }
        };
        result(r, what, Some(value))
    })
}

/// An operation on two values.
#[unsafe(no_mangle)]
pub extern "C" fn ostler_sym_op2(op: u32, a: u32, b: u32) -> u32 {
    with(NO_VALUE, |r| {
        let what = "an operation on two values";
        let masks = matches!(op, kernels::SYM_AND | kernels::SYM_OR | kernels::SYM_XOR);
        let Some([a, b]) = operands(r, what, [a, b], [masks; 2]) else {
            return NO_VALUE;
        };
        let graph = r.graph();
        let value = match op {
            kernels::SYM_ADD => graph.add(a, b),
            kernels::SYM_SUB => graph.sub(a, b),
            kernels::SYM_MUL => graph.mul(a, b),
            kernels::SYM_DIV => graph.div(a, b),
            kernels::SYM_MIN => graph.min(a, b),
            kernels::SYM_MAX => graph.max(a, b),
            kernels::SYM_LT => graph.lt(a, b),
            kernels::SYM_LE => graph.le(a, b),
            kernels::SYM_AND => graph.and(a, b),
            kernels::SYM_OR => graph.or(a, b),
            kernels::SYM_XOR => graph.xor(a, b),
            kernels::SYM_ATAN2 => graph.atan2(a, b),
            _ => {
                r.fail(TapeError::UnknownOperation(op));
                return NO_VALUE;
            }
        };
        result(r, what, Some(value))
    })
}

/// An operation on three values.
#[unsafe(no_mangle)]
pub extern "C" fn ostler_sym_op3(op: u32, a: u32, b: u32, c: u32) -> u32 {
    with(NO_VALUE, |r| {
        let what = "an operation on three values";
        let masks = [op == kernels::SYM_SEL, false, false];
        let Some([a, b, c]) = operands(r, what, [a, b, c], masks) else {
            return NO_VALUE;
        };
        let graph = r.graph();
        let value = match op {
            kernels::SYM_FMA => graph.fma(a, b, c),
            kernels::SYM_SEL => graph.sel(a, b, c),
            _ => {
                r.fail(TapeError::UnknownOperation(op));
                return NO_VALUE;
            }
        };
        result(r, what, Some(value))
    })
}

/// Sets an element.
#[unsafe(no_mangle)]
pub extern "C" fn ostler_sym_store(array: u32, index: u32, raw: u32) {
    with((), |r| {
        if r.error().is_some() {
            return;
        }
        if let Some(value) = value(r, raw) {
            r.store(array, index, value);
        }
    });
}

/// Whether a value is a constant.
///
/// # Safety
/// `value` is null or may be written to; a constant is written there.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ostler_sym_is_const(id: u32, value: *mut f64) -> u32 {
    with(0, |r| {
        let Some([id]) = operands(r, "a query", [id], [false]) else {
            return 0;
        };
        let Some(number) = r.graph().constant(id) else {
            return 0;
        };
        if !value.is_null() {
            // SAFETY: not null, hence writable by this function's contract.
            unsafe { value.write(number) };
        }
        1
    })
}

/// Begins a function.
///
/// # Safety
/// `name` is null or ends with a zero byte.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn ostler_sym_begin(name: *const c_char) {
    let name = if name.is_null() {
        String::new()
    } else {
        // SAFETY: not null, hence a C string by this function's contract.
        let name = unsafe { CStr::from_ptr(name) };
        name.to_string_lossy().into_owned()
    };
    with((), |r| r.begin(&name));
}

/// Ends the function.
#[unsafe(no_mangle)]
pub extern "C" fn ostler_sym_end() {
    with((), Recorder::end);
}
