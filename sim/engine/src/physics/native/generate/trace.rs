//! Runs the kernels' straight parts once and records them (`sim/kernels/trace.cpp`).

use crate::physics::native::tables::{RealTables, RobotTables};
use crate::physics::native::tape::{Array, Program, TapeError, Val, ffi};
use std::alloc::Layout;
use std::ffi::{CStr, c_char, c_int, c_uint, c_ulong, c_void};

unsafe extern "C" {
    fn ostler_trace_bytes(tables: *const c_void) -> c_ulong;
    fn ostler_trace_array(tables: *const c_void, array: c_int, name: *mut *const c_char) -> c_uint;
    fn ostler_trace_run(tables: *const c_void, memory: *mut c_void);
}

/// Arrays that only recorded functions write: constants in them stay constant.
const RECORDED: [&str; 27] = [
    "ref",
    "xpos",
    "xquat",
    "xmat",
    "cdof",
    "vel",
    "acc",
    "mass",
    "smooth",
    "act_force",
    "act_dot",
    "ten_len",
    "ten_j",
    "act_len",
    "act_vel",
    "act_j",
    "act_free",
    "act_sum",
    "tmp",
    "lim_sign",
    "lim_d",
    "lim_aref",
    "fric_aref",
    "row_j",
    "row_d",
    "row_aref",
    "inertia",
];

/// Elements that the recording goes through for the loads of all bodies.
const MAX_PASSES: usize = 1 << 26;

/// Refuses what would be recorded for minutes, or is nothing for a compiler; cheap beside
/// a recording.
fn recordable(plan: &RobotTables) -> Result<(), TapeError> {
    // Each row's entries meet in pairs in the factor of the system, and in the loads of
    // bodies: in a chain of n joints these are a sixth and a third of n^3 products.
    let pairs = plan.hrow_adr.windows(2).map(|w| {
        let entries = u64::try_from(w[1] - w[0]).unwrap_or(0);
        entries * (entries + 1) / 2
    });
    let products = pairs.sum::<u64>();
    // Loads are recorded body by body, each with the whole system before it.
    let bodies = if plan.nwslot > 0 { plan.nb } else { 0 };
    let passes = bodies.saturating_mul(plan.nhess);
    if products > Val::MAX_NODES as u64 / 2 || passes > MAX_PASSES {
        return Err(TapeError::TooLarge);
    }
    Ok(())
}

/// Records `plan`'s robot.
///
/// # Errors
/// It is too large; the recording went wrong.
pub(super) fn record(plan: &RobotTables) -> Result<Program, TapeError> {
    recordable(plan)?;
    let reals = RealTables::<f64>::new(plan);
    let tables = reals.raw(plan);
    let tables: *const c_void = (&raw const tables).cast();
    let mut arrays = Vec::new();
    loop {
        let mut name = std::ptr::null();
        // SAFETY: `tables` is laid out as `Tables<double>` and alive; `name` is
        // written before the call returns.
        let length = unsafe { ostler_trace_array(tables, arrays.len() as c_int, &raw mut name) };
        if name.is_null() {
            break;
        }
        // SAFETY: a constant string of the program.
        let name = unsafe { CStr::from_ptr(name) }.to_string_lossy();
        let member = format!("w.{name}");
        // What contacts pull is added to them.
        let pulled = plan.nstick + plan.sticky > 0 && matches!(&*name, "smooth" | "act_free");
        arrays.push(if RECORDED.contains(&&*name) && !pulled {
            Array::new(member, &[length as usize])
        } else {
            Array::shared(member, &[length as usize])
        });
    }
    // SAFETY: as above.
    let bytes = unsafe { ostler_trace_bytes(tables) } as usize;
    let Ok(layout) = Layout::from_size_align(bytes.max(64), 64) else {
        return Err(TapeError::TooLarge);
    };
    // SAFETY: the layout's size is not 0.
    let memory = unsafe { std::alloc::alloc_zeroed(layout) };
    if memory.is_null() {
        return Err(TapeError::TooLarge);
    }
    let program = ffi::record(arrays, || {
        // SAFETY: `memory` is zeroed, aligned to 64 and as large as was asked for; the
        // tables are those it was asked with.
        unsafe { ostler_trace_run(tables, memory.cast()) }
    });
    // SAFETY: allocated above with this layout, freed once.
    unsafe { std::alloc::dealloc(memory, layout) };
    program
}
