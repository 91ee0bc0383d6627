//! The phases of a control step on a host: `sim/kernels/env/phases.cuh`, compiled for every
//! instruction set, over blocks of up to 64 environments. Values of expressions come
//! from the interpreter.

use super::inject::Faults;
use crate::task::Task;
use crate::task::native::{Library, Native};
use ostler_engine::kernels::{self, Calls, EnvArgs};
use ostler_engine::phases::api;
use ostler_engine::physics::Stepper;
use ostler_lang::expr::{BLOCK, Inputs, Scratch};
use std::ffi::c_void;
use std::os::raw::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a step ended for a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Outcome {
    /// All episodes go on.
    GoesOn,
    /// Some ended.
    Begins,
    /// Some ended because their environments broke.
    Broke,
}

/// Environments `first..first + len`, at most [`BLOCK`] of them,
/// for the phases of a step.
///
/// # Safety of all that is unsafe here
/// The addresses in `args` are of buffers of the sizes that it has, for environments of this
/// task, which live as long as the block; and no other thread reads or writes entries of its
/// environments meanwhile.
pub(super) struct Block<'a> {
    pub args: &'a EnvArgs,
    pub task: &'a Task,
    pub inputs: Inputs<'a>,
    pub scratch: &'a mut Scratch,
    /// Faults to inject, if there are any.
    pub faults: Option<&'a Faults>,
    /// The task's native functions; none where their code may not be compiled.
    pub natives: Option<&'a Library>,
    pub first: usize,
    pub len: usize,
    /// Whether a part of the step panicked: the environments are broken then.
    pub failed: bool,
}

impl Block<'_> {
    /// Actions to controls; episodes grow older by a step.
    ///
    /// # Safety
    /// See [`Block`].
    pub(crate) unsafe fn act(&mut self) {
        self.guard(|block| {
            // SAFETY: the caller's promise.
            unsafe { block.plain(api().act) };
            if let Some(faults) = block.faults {
                faults.panic(block.first, block.len);
            }
        });
    }

    /// A control step of the physics.
    ///
    /// # Safety
    /// See [`Block`]; `args` has what `stepper` takes.
    pub(crate) unsafe fn step(&mut self, stepper: &dyn Stepper) {
        self.guard(|block| {
            let (args, first, len) = (&block.args.physics, block.first, block.len);
            // SAFETY: the caller's promise.
            unsafe { stepper.step_block(args, first, len) };
        });
    }

    /// Rewards, ends, commands, observations and flags.
    ///
    /// # Safety
    /// See [`Block`].
    pub(crate) unsafe fn finish(&mut self) -> Outcome {
        // SAFETY: the caller's promise.
        let finish = |args, calls, first, len| unsafe { (api().finish)(args, calls, first, len) };
        match self.called(finish) {
            kernels::GO_ON => Outcome::GoesOn,
            kernels::BEGIN_ANEW => Outcome::Begins,
            _ => Outcome::Broke,
        }
    }

    /// New episodes for the environments in the mask, whose worlds are no more than their
    /// columns.
    ///
    /// # Safety
    /// See [`Block`].
    pub(crate) unsafe fn restart(&mut self) {
        // SAFETY: the caller's promise.
        self.called(|args, calls, first, len| unsafe { (api().restart)(args, calls, first, len) });
    }

    /// The part of [`restart`](Self::restart) before the worlds are placed.
    ///
    /// # Safety
    /// See [`Block`].
    pub(crate) unsafe fn start(&mut self) {
        // SAFETY: the caller's promise.
        self.called(|args, calls, first, len| unsafe { (api().start)(args, calls, first, len) });
    }

    /// The part of [`restart`](Self::restart) after the worlds are placed.
    ///
    /// # Safety
    /// See [`Block`].
    pub(crate) unsafe fn begin(&mut self) {
        // SAFETY: the caller's promise.
        self.called(|args, calls, first, len| unsafe { (api().begin)(args, calls, first, len) });
    }

    /// Observations alone, as they come.
    ///
    /// # Safety
    /// See [`Block`].
    pub(crate) unsafe fn observe(&mut self) {
        // SAFETY: the caller's promise.
        self.called(|args, calls, first, len| unsafe { (api().observe)(args, calls, first, len) });
    }

    /// Calls `f`, whose panic breaks the environments.
    fn guard(&mut self, f: impl FnOnce(&mut Self)) {
        let done = catch_unwind(AssertUnwindSafe(|| f(self)));
        self.failed |= done.is_err();
    }

    /// Calls a phase that asks for nothing.
    ///
    /// # Safety
    /// See [`Block`].
    unsafe fn plain(&self, phase: unsafe extern "C" fn(*const EnvArgs, c_int, c_int)) {
        // SAFETY: the caller's promise.
        unsafe { phase(self.args, self.first as c_int, self.len as c_int) }
    }

    /// Calls a phase that asks for values of expressions.
    fn called<T>(
        &mut self,
        phase: impl FnOnce(*const EnvArgs, *const Calls, c_int, c_int) -> T,
    ) -> T {
        let (args, first, len) = (self.args, self.first as c_int, self.len as c_int);
        let mut context = Context {
            calls: Calls {
                context: std::ptr::null_mut(),
                eval,
                inject: self.faults.is_some().then_some(inject),
                native,
                failed: u32::from(self.failed),
            },
            block: self,
        };
        // From here on it is reached through this pointer alone, by the kernel and by what
        // the kernel calls.
        let context: *mut Context<'_, '_> = &raw mut context;
        // SAFETY: it lives until the end of this function.
        let done = unsafe {
            (*context).calls.context = context.cast();
            phase(args, &raw const (*context).calls, first, len)
        };
        // SAFETY: as above.
        self.failed = unsafe { (*context).calls.failed } != 0;
        done
    }
}

/// Counts the episodes that ended, or the `starts`, of all environments in the mask, in their
/// order.
///
/// # Safety
/// The addresses in `args` are of buffers and statistics of the sizes that it has, which no
/// other thread touches meanwhile.
pub(super) unsafe fn tally(args: &EnvArgs, starts: bool) {
    // SAFETY: the caller's promise.
    unsafe { (api().tally)(args, starts.into()) }
}

/// Result of a call of the kernel.
#[repr(C)]
struct Context<'b, 'a> {
    calls: Calls,
    block: &'b mut Block<'a>,
}

/// A term's values `[components][BLOCK]`, which stay until the next call.
///
/// # Safety
/// `context` is that of [`Block::called`], and the term one of the task's.
unsafe extern "C" fn eval(context: *mut c_void, kind: u32, term: u32) -> *const f32 {
    // SAFETY: the caller's promise; the kernel holds no reference into it.
    let Context { calls, block } = unsafe { &mut *context.cast::<Context<'_, '_>>() };
    let (task, scratch) = (block.task, &mut *block.scratch);
    if calls.failed == 0 {
        let term = term as usize;
        let evaluated =
            AssertUnwindSafe(|| task.code(kind, term).eval(&block.inputs, scratch).as_ptr());
        match catch_unwind(evaluated) {
            Ok(values) => return values,
            // It must not unwind through the kernel.
            Err(_) => calls.failed = 1,
        }
    }
    // As many as the largest expression has; nobody looks at them.
    let room = task.scratch_len();
    scratch.registers.clear();
    scratch.registers.resize(room, 0.0);
    scratch.registers.as_ptr()
}

/// Calls a native function for the block.
///
/// # Safety
/// As [`eval`]; the function is one of the task's.
unsafe extern "C" fn native(context: *mut c_void, function: u32, stage: u32) {
    // SAFETY: as in `eval`.
    let Context { calls, block } = unsafe { &mut *context.cast::<Context<'_, '_>>() };
    let own = &block.task.natives.functions[function as usize];
    let wanted = match stage {
        kernels::NATIVE_JUDGE => own.judged,
        kernels::NATIVE_SEE => own.seen,
        _ => true,
    };
    if calls.failed != 0 || !wanted {
        return;
    }
    let mut inputs = std::mem::take(&mut block.scratch.inputs);
    let filled = AssertUnwindSafe(|| fill(own, &block.inputs, block.scratch, &mut inputs));
    // It must not unwind through the kernel.
    calls.failed = u32::from(catch_unwind(filled).is_err());
    if calls.failed == 0 {
        match block.natives {
            // SAFETY: the promise of `Block`.
            Some(library) => unsafe {
                let lanes = (block.first, block.len);
                library.call(block.args, (function, stage), lanes, &inputs);
            },
            // SAFETY: as above.
            None => unsafe { not_a_number(block, own, stage) },
        }
    }
    block.scratch.inputs = inputs;
}

/// Evaluates a function's inputs into `[inputs][BLOCK]`.
fn fill(own: &Native, inputs: &Inputs<'_>, scratch: &mut Scratch, to: &mut Vec<f32>) {
    let wanted = own.width() * BLOCK;
    if to.len() < wanted {
        to.resize(wanted, 0.0);
    }
    for input in &own.inputs {
        let values = input.eval(inputs, scratch);
        to[input.first * BLOCK..][..values.len()].copy_from_slice(values);
    }
}

/// The outputs of a function whose code may not be compiled.
///
/// # Safety
/// See [`Block`].
unsafe fn not_a_number(block: &Block<'_>, own: &Native, stage: u32) {
    let args = block.args;
    let mask = (args.buffers.mask as *const u32).wrapping_add(block.first);
    let native = (args.episode.native as *mut f32).wrapping_add(block.first);
    for lane in 0..block.len {
        // SAFETY: the mask of one of the block's environments.
        if stage == kernels::NATIVE_BEGIN && unsafe { *mask.wrapping_add(lane) } == 0 {
            continue;
        }
        for row in own.rows() {
            // SAFETY: an output of one of the block's environments.
            unsafe { *native.wrapping_add(row * args.n as usize + lane) = f32::NAN };
        }
    }
}

/// Overwrites rewards or observations.
///
/// # Safety
/// As [`eval`].
unsafe extern "C" fn inject(context: *mut c_void, kind: u32) {
    // SAFETY: as in `eval`.
    let Context { block, .. } = unsafe { &mut *context.cast::<Context<'_, '_>>() };
    if let Some(faults) = block.faults {
        // SAFETY: the entries are the block's.
        unsafe {
            match kind {
                kernels::TERM_REWARD => {
                    faults.reward(block.args, block.task, block.first, block.len)
                }
                _ => faults.observe(block.args, block.task, block.first, block.len),
            }
        }
    }
}
