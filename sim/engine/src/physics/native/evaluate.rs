//! Dynamics of given states: for comparisons with other engines.

use super::choose::{choose, tell};
use super::ffi::{self, Functions, Linked, Robot};
use super::kernel::InstructionSet;
use super::lower::{LowerOptions, lower};
use super::tables::{RobotTables, Scalar};
use super::unsupported;
use crate::config::{SimConfig, Specialize};
use crate::device::Address;
use crate::kernels::{EvalArgs, Ground, Solver};
use crate::physics::evaluate::{Evaluation, Precision, States};
use crate::physics::{PhysicsError, fault, ground};
use bytemuck::Zeroable;
use ostler_base::memory::{MemoryError, zeroed};
use ostler_model::{Model, Options};

/// How states are evaluated.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EvalOptions {
    /// Most Newton iterations.
    pub iterations: u32,
    /// 0: constraints are solved to the end. Else as MuJoCo with so many iterations, and so many
    /// trials of a step's length at most.
    pub trials: u32,
    /// The solver's tolerance (MuJoCo's meaning: scaled improvement of the cost).
    pub tolerance: f64,
    /// Which kernel; `None` is the widest the processor has. Double precision has
    /// one only.
    pub instruction_set: Option<InstructionSet>,
    /// In single precision: the robot's specialised kernel (`wait`), one that is in the cache
    /// (`auto`), or the generic one (`off`). Without `instruction_set`.
    pub specialize: Specialize,
    /// Overrides of the model's options.
    pub lower: LowerOptions,
}

impl Default for EvalOptions {
    fn default() -> Self {
        Self {
            iterations: 100,
            trials: 0,
            tolerance: 1e-15,
            instruction_set: None,
            specialize: Specialize::Off,
            lower: LowerOptions::default(),
        }
    }
}

impl EvalOptions {
    /// The solver as a file's `<option>` has it.
    pub fn as_written(options: &Options) -> Self {
        let (iterations, trials) = (options.iterations, options.ls_iterations.max(1));
        Self { iterations, trials, tolerance: options.tolerance, ..Self::default() }
    }
}

/// Evaluates the native engine's dynamics at `states`.
///
/// # Errors
/// Something in the model is not supported, wrong lengths, no memory.
pub fn evaluate(
    model: &Model,
    options: &EvalOptions,
    precision: Precision,
    states: &States<'_>,
) -> Result<Evaluation, PhysicsError> {
    evaluate_from(model, options, precision, states, None)
}

/// The same, where the solver begins with the accelerations `start` `[K, nv]`, zeros without them:
/// they matter where it does not go to the end.
///
/// # Errors
/// As [`evaluate`].
pub fn evaluate_from(
    model: &Model,
    options: &EvalOptions,
    precision: Precision,
    states: &States<'_>,
    start: Option<&[f64]>,
) -> Result<Evaluation, PhysicsError> {
    Evaluator::new(model, options, precision)?.evaluate(states, start)
}

/// A model's tables, made once for many evaluations.
#[derive(Debug)]
pub struct Evaluator<'a> {
    model: &'a Model,
    robot: Prepared,
    options: EvalOptions,
}

#[derive(Debug)]
enum Prepared {
    Single(Robot<f32>),
    Double(Robot<f64>),
}

impl<'a> Evaluator<'a> {
    /// # Errors
    /// Something in the model is not supported, no memory.
    pub fn new(
        model: &'a Model,
        options: &EvalOptions,
        precision: Precision,
    ) -> Result<Self, PhysicsError> {
        let plan = lower(model, &options.lower)?;
        let robot = match (precision, options.instruction_set) {
            (Precision::F64, _) => {
                let double = ffi::linked(Linked::Double).ok_or(PhysicsError::NoDouble)?;
                Prepared::Double(robot(double, plan)?)
            }
            (Precision::F32, Some(set)) => Prepared::Single(robot(set.generic()?, plan)?),
            (Precision::F32, None) => {
                let config = SimConfig { specialize: options.specialize, ..SimConfig::default() };
                let choice = choose(&plan, &config, &mut tell())?;
                if let (Specialize::Wait, Some(note)) = (options.specialize, choice.note) {
                    return Err(unsupported(note));
                }
                Prepared::Single(robot(choice.functions, plan)?)
            }
        };
        Ok(Self { model, robot, options: *options })
    }

    /// As [`evaluate_from`].
    ///
    /// # Errors
    /// Wrong lengths, no memory.
    pub fn evaluate(
        &self,
        states: &States<'_>,
        start: Option<&[f64]>,
    ) -> Result<Evaluation, PhysicsError> {
        let ground = ground(self.model.terrain.as_deref());
        match &self.robot {
            Prepared::Single(robot) => run(robot, ground, &self.options, states, start),
            Prepared::Double(robot) => run(robot, ground, &self.options, states, start),
        }
    }
}

fn robot<T: Scalar>(
    functions: impl Into<Functions>,
    plan: RobotTables,
) -> Result<Robot<T>, PhysicsError> {
    Robot::new(functions, plan).ok_or_else(|| unsupported("a kernel of another version".into()))
}

fn run<T: Scalar + Zeroable + Into<f64>>(
    robot: &Robot<T>,
    ground: Ground,
    options: &EvalOptions,
    states: &States<'_>,
    start: Option<&[f64]>,
) -> Result<Evaluation, PhysicsError> {
    let plan = robot.plan();
    let (nq, nv, nu, na, nvary) = (plan.nq, plan.nv, plan.nu, plan.na, plan.nvary);
    let k = states.qpos.len() / nq.max(1);
    let rest = vec![0.0; k * nv];
    let start = start.unwrap_or(&rest);
    for (name, rows, width) in [
        ("qpos", states.qpos, nq),
        ("qvel", states.qvel, nv),
        ("ctrl", states.ctrl, nu),
        ("act", states.act, na),
        ("varied numbers", states.varied, nvary),
        ("accelerations", start, nv),
    ] {
        if rows.len() != k * width {
            return Err(unsupported(format!(
                "{} numbers of {name} for {k} states of {width}",
                rows.len()
            )));
        }
    }
    let mut work =
        robot.work().map_err(|bytes| MemoryError { what: "the physics kernel".into(), bytes })?;
    let columns = |name: &str, rows: &[f64], width: usize| -> Result<Vec<T>, MemoryError> {
        let mut out = zeroed::<T>(name, rows.len())?;
        for (e, row) in rows.chunks(width.max(1)).enumerate() {
            for (i, x) in row.iter().enumerate() {
                out[i * k + e] = T::round(*x);
            }
        }
        Ok(out)
    };
    let qpos = columns("qpos", states.qpos, nq)?;
    let qvel = columns("qvel", states.qvel, nv)?;
    let ctrl = columns("ctrl", states.ctrl, nu)?;
    let act = columns("act", states.act, na)?;
    let varied = columns("varied numbers", states.varied, nvary)?;
    let mut qacc = columns("qacc", start, nv)?;
    let nsense = robot.plan().nsense;
    let mut sense = zeroed::<T>("sensordata", nsense * k)?;
    let mut qpos_next = zeroed::<T>("qpos", nq * k)?;
    let mut qvel_next = zeroed::<T>("qvel", nv * k)?;
    let mut act_next = zeroed::<T>("act", na * k)?;
    let mut ncon = zeroed::<u32>("ncon", k)?;
    let mut iterations = zeroed::<u32>("iterations", k)?;
    let mut flags = zeroed::<u32>("flags", k)?;
    let args = EvalArgs {
        stride: i32::try_from(k).map_err(|_| unsupported(format!("{k} states at once")))?,
        solver: Solver {
            iterations: i32::try_from(options.iterations).unwrap_or(i32::MAX),
            trials: i32::try_from(options.trials).unwrap_or(i32::MAX),
            tolerance: options.tolerance,
        },
        reserved: 0,
        ground,
        qpos: qpos.as_ptr() as Address,
        qvel: qvel.as_ptr() as Address,
        act: act.as_ptr() as Address,
        ctrl: ctrl.as_ptr() as Address,
        varied: varied.as_ptr() as Address,
        qacc: qacc.as_mut_ptr() as Address,
        sense: sense.as_mut_ptr() as Address,
        qpos_next: qpos_next.as_mut_ptr() as Address,
        qvel_next: qvel_next.as_mut_ptr() as Address,
        act_next: act_next.as_mut_ptr() as Address,
        ncon: ncon.as_mut_ptr() as Address,
        iterations: iterations.as_mut_ptr() as Address,
        flags: flags.as_mut_ptr() as Address,
        met: 0,
    };
    // SAFETY: `work` is this robot's; the buffers are [rows][k] as laid out above,
    // borrowed here alone until the call returns.
    unsafe { robot.evaluate(&mut work, &args, k) };
    let rows = |columns: &[T], width: usize| -> Vec<f64> {
        (0..k)
            .flat_map(|e| (0..width).map(move |i| (i, e)))
            .map(|(i, e)| columns[i * k + e].into())
            .collect()
    };
    Ok(Evaluation {
        qacc: rows(&qacc, nv),
        sensordata: rows(&sense, nsense),
        qpos_next: rows(&qpos_next, nq),
        qvel_next: rows(&qvel_next, nv),
        act_next: rows(&act_next, na),
        fault: (0..k)
            .map(|e| {
                let finite = |columns: &[T]| {
                    columns.iter().skip(e).step_by(k).all(|x| (*x).into().is_finite())
                };
                let bits =
                    if finite(&qpos_next) && finite(&qvel_next) { 0 } else { fault::NON_FINITE };
                bits | if flags[e] & 1 != 0 { fault::ENGINE } else { 0 }
            })
            .collect(),
        no_room: flags.iter().map(|f| f & 1 != 0).collect(),
        ncon,
        iterations,
    })
}

#[cfg(test)]
#[path = "evaluate_tests.rs"]
mod tests;
