//! The pose in which episodes begin, by the tables and expressions of a task that is not built
//! yet.

use bytemuck::Zeroable;
use ostler_base::memory::MemoryError;
use ostler_engine::device::Address;
use ostler_engine::kernels::{Calls, EnvArgs, Ground};
use ostler_engine::phases::api;
use ostler_engine::physics::State;
use ostler_engine::state::{Sizes, Tables};
use ostler_lang::expr::{Column, Columns, Inputs, Program, Scratch};
use ostler_model::Model;
use std::ffi::c_void;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The expressions, and what they read of one environment.
struct Context<'a> {
    exprs: &'a [&'a Program],
    inputs: Inputs<'a>,
    scratch: Scratch,
}

/// The positions in which an episode begins. The expressions read these commands, random
/// numbers and parameters.
///
/// # Errors
/// There is no memory.
pub(super) fn draw_pose(
    model: &Model,
    tables: &Tables,
    sizes: &Sizes,
    exprs: &[&Program],
    [commands, random, params]: [&[f32]; 3],
    step_dt: f32,
) -> Result<Vec<f32>, MemoryError> {
    let (mut qpos, mut qvel) = (vec![0.0_f32; sizes.nq], vec![0.0_f32; sizes.nv]);
    let mut act = vec![0.0_f32; sizes.na];
    let mut value = vec![0.0_f32; sizes.nstartvalue];
    let mut world = State::new(model, 1)?;
    for (row, x) in world.varied.iter_mut().zip(model.varied_numbers()) {
        *row = x as f32;
    }
    let mut args =
        EnvArgs { n: 1, size: sizes.words(), tables: tables.addresses(), ..EnvArgs::zeroed() };
    args.buffers.new_qpos = qpos.as_mut_ptr() as Address;
    args.buffers.new_qvel = qvel.as_mut_ptr() as Address;
    args.buffers.new_act = act.as_mut_ptr() as Address;
    args.buffers.start_value = value.as_mut_ptr() as Address;
    args.physics.world = world.addresses_mut();
    // What no expression of a start may read.
    let none = Column::of(&[]);
    let columns = Columns {
        stride: 1,
        world: world.floats().map(|x| Column::of(x)),
        ctrl: none,
        action: none,
        last_action: none,
        history: none,
        shown: none,
        native: none,
        scan: none,
        // On level ground.
        stand: Column::of(&[0.0; 4]),
        motion: none,
        ground: Ground::zeroed(),
        command: Column::of(commands),
        random: Column::of(random),
        step: Column::of(&[]),
        params,
        step_dt,
        max_steps: 1,
    };
    let mut context = Context {
        exprs,
        // SAFETY: the columns live as long as this call, and the kernel writes none of them
        // while an expression is evaluated.
        inputs: unsafe { Inputs::new(columns, 0, 1) },
        scratch: Scratch::default(),
    };
    let calls = Calls { context: (&raw mut context).cast(), eval, inject: None, native, failed: 0 };
    // SAFETY: it reads the tables of reset terms and of the robot, and writes positions,
    // velocities, values and the world's frames, which are of these sizes; `calls` has the
    // context of `eval`.
    unsafe { (api().draw_pose)(&args, &calls) };
    Ok(qpos)
}

/// No expression of a start reads a native function.
unsafe extern "C" fn native(_: *mut c_void, _: u32, _: u32) {}

/// The value of an expression `[components][BLOCK]`, which stays until the next call.
///
/// # Safety
/// `context` is a [`Context`], which nothing else uses meanwhile, and the expression one of it.
unsafe extern "C" fn eval(context: *mut c_void, _: u32, expr: u32) -> *const f32 {
    // SAFETY: the caller's promise.
    let Context { exprs, inputs, scratch } = unsafe { &mut *context.cast::<Context<'_>>() };
    let program = exprs[expr as usize];
    let evaluated = AssertUnwindSafe(|| program.eval(inputs, scratch).as_ptr());
    match catch_unwind(evaluated) {
        Ok(values) => values,
        // It must not unwind through the kernel: the pose is then no number.
        Err(_) => {
            scratch.registers.clear();
            scratch.registers.resize(program.scratch_len(), f32::NAN);
            scratch.registers.as_ptr()
        }
    }
}
