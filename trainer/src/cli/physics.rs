//! `ostler physics`: the dynamics at given states.

use super::engine::{EngineArg, PrecisionArg};
use crate::log::errln;
use crate::run::RunError;
use clap::Args;
use ostler_sim::model::mjcf;
use ostler_sim::referee::states::{StateTable, write_evaluation};
use std::path::PathBuf;
use std::sync::Arc;

/// Flags of `ostler physics`.
#[derive(Debug, Args)]
pub struct PhysicsArgs {
    /// Any MJCF file
    #[arg(value_name = "MODEL.xml")]
    model: PathBuf,
    /// Folder that holds the model's files, if not its own
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// States, written by numpy.savez: qpos (K,nq), qvel (K,nv), ctrl (K,nu) and, for
    /// models with activations, act (K,na), float32 or float64
    #[arg(long, value_name = "IN.npz")]
    states: PathBuf,
    /// Results, as float64: qacc (K,nv) and, after one step with the model's
    /// own time step and integrator, qpos_next (K,nq), qvel_next (K,nv), act_next
    /// (K,na); ncon and fault (K) as int32
    #[arg(long, value_name = "OUT.npz")]
    out: PathBuf,
    /// Physics engine
    #[arg(long, value_enum, default_value_t = EngineArg::Native)]
    backend: EngineArg,
    /// Scalar type; the default is f64 for native, f32 for rapier
    #[arg(long, value_enum)]
    precision: Option<PrecisionArg>,
}

/// Reads, evaluates, writes.
pub fn run(args: &PhysicsArgs) -> Result<i32, RunError> {
    let precision = args.backend.precision(args.precision)?;
    let model = Arc::new(mjcf::load_within(&args.model, args.folder.as_deref())?);
    let states = StateTable::read(&args.states, &model)?;
    let evaluation = args.backend.evaluate(&model, precision, &states.view())?;
    write_evaluation(&args.out, &model, &evaluation)?;
    let broken = evaluation.fault.iter().filter(|f| **f != 0).count();
    if broken > 0 {
        errln!(
            "warning: {broken} of {} states are broken after the step: see \"fault\" in {}",
            states.count,
            args.out.display()
        );
    }
    Ok(0)
}
