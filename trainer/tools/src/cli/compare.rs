//! `ostler compare`: does this engine mean the same by a robot as MuJoCo does?

use super::engine::EngineArg;
use clap::Args;
use ostler_run::log::{errln, outln};
use ostler_run::run::RunError;
use ostler_sim::model::Solver;
use ostler_sim::model::mjcf::Reading;
use ostler_sim::physics::evaluate::Precision;
use ostler_sim::physics::native::{self, EvalOptions};
use ostler_sim::referee::mujoco::{MuJoCo, RefereeError};
use ostler_sim::referee::names;
use ostler_sim::referee::residual::{Gate, Table, compare};
use ostler_sim::referee::states::Reference;
use serde_json::json;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;

/// Exit code: the engine and MuJoCo differ.
const DIFFERENT: i32 = 1;

/// Flags of `ostler compare`.
#[derive(Debug, Args)]
pub(crate) struct CompareArgs {
    /// Any MJCF or URDF file
    #[arg(value_name = "MODEL")]
    model: PathBuf,
    /// Folder that holds the model's files, if not its own
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Random states: half met in roll-outs, half scattered near floor and limits
    #[arg(long, default_value_t = 2000, value_name = "N", value_parser = clap::value_parser!(u32).range(2..=1_000_000))]
    states: u32,
    /// Seed of the states
    #[arg(long, default_value_t = 0, value_name = "N")]
    seed: u64,
    /// Python that has mujoco and numpy; the default is OSTLER_REFEREE_PYTHON, then
    /// python3 and python
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Take the solver as the file has it: its kind, iterations and tolerances, in states of
    /// roll-outs. Shows how far the engine's converged solution is from that, and how far the
    /// engine is with task.option.iterations = "file"; judges nothing
    #[arg(long)]
    as_written: bool,
    /// Physics engine
    #[arg(long, value_enum, default_value_t = EngineArg::Native)]
    backend: EngineArg,
    /// Keep MuJoCo's states and answers in this file
    #[arg(long, value_name = "OUT.npz")]
    keep: Option<PathBuf>,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// Compares and prints; the exit code is 1 where they differ.
pub(crate) fn run(args: &CompareArgs) -> Result<i32, RunError> {
    let within = args.folder.as_deref();
    let reading = Reading { within, ..Reading::default() };
    let model = Arc::new(reading.read(&args.model)?.0);
    let mut mujoco = MuJoCo::start(args.python.as_deref())?;
    let file = match &args.keep {
        Some(path) => path.clone(),
        None => mujoco.scratch("reference.npz"),
    };
    let count = args.states as usize;
    if std::io::stderr().is_terminal() {
        errln!("MuJoCo computes {count} states of {}, each some times ...", model.name);
    }
    let answer = mujoco.states(&args.model, within, &file, count, args.seed, args.as_written)?;
    names::check(&model, &answer["robot"]).map_err(|why| {
        let path = args.model.display();
        RefereeError::Refused(format!("reads another robot in {path}: {why}"))
    })?;
    let reference = Reference::read(&file, &model)?;
    let precisions: &[(&str, Precision)] = match args.backend {
        EngineArg::Native if cfg!(feature = "double") => {
            &[("f64", Precision::F64), ("f32", Precision::F32)]
        }
        EngineArg::Native => {
            errln!(
                "note: single precision alone, which is exact to some 1e-4: `cargo build --release` builds double precision, too"
            );
            &[("f32", Precision::F32)]
        }
        EngineArg::Rapier => &[("f32", Precision::F32)],
    };
    let mut tables = Vec::new();
    for (label, precision) in precisions {
        let states = reference.states.view();
        let ours = args.backend.evaluate(&model, *precision, &states)?;
        tables.push(compare(&model, label, &ours, &reference, Gate::of(*precision)));
        if args.as_written
            && args.backend == EngineArg::Native
            && model.options.solver == Solver::Newton
        {
            let options = EvalOptions::as_written(&model.options);
            let start = Some(reference.warmstart.as_slice());
            let ours = native::evaluate_from(&model, &options, *precision, &states, start)?;
            let label = format!("{label}, iterations as in the file");
            tables.push(compare(&model, &label, &ours, &reference, Gate::of(*precision)));
        }
    }
    let same = tables.iter().all(|t| t.beyond.is_empty());
    let left_out = count.saturating_sub(reference.states.count);
    if args.json {
        let all = json!({
            "model": model.name, "mujoco": mujoco.version, "states": reference.states.count,
            "left_out": left_out, "unstable": answer["unstable"],
            "seed": args.seed, "same": same, "as_written": args.as_written, "tables": tables,
        });
        outln!("{all}");
    } else {
        print(args, &model, &mujoco, &tables);
        if left_out > 0 {
            outln!(
                "{left_out} of {count} states are left out: MuJoCo's own step breaks or warns in them"
            );
        }
    }
    if let Some(why) = answer["unstable"].as_str() {
        errln!("note: all states are scattered ones, none is of a roll-out: {why}");
    }
    for pair in answer["touching"].as_array().into_iter().flatten() {
        if let (Some(a), Some(b)) = (pair[0].as_str(), pair[1].as_str()) {
            errln!(
                "note: {a} and {b} only just touch in {} of {count} states, by less than single \
                 precision tells: MuJoCo has a contact there, and this engine may have none. A gap \
                 between them, some depth or an <exclude> makes both the same",
                pair[2]
            );
        }
    }
    for line in model.ignored_lines() {
        errln!("note: without effect: {line}");
    }
    Ok(if same || args.as_written { 0 } else { DIFFERENT })
}

fn print(args: &CompareArgs, model: &ostler_sim::Model, mujoco: &MuJoCo, tables: &[Table]) {
    outln!(
        "{}: {} states (seed {}), nq {}, nv {}, nu {}, against MuJoCo {}",
        model.name,
        args.states,
        args.seed,
        model.nq,
        model.nv,
        model.nu(),
        mujoco.version
    );
    outln!(
        "relative error, largest entry of a state          qacc                                  next state"
    );
    for table in tables {
        outln!("{table}");
    }
    if args.as_written {
        let o = &model.options;
        outln!(
            "MuJoCo as the file is written: solver {:?}, iterations {}, tolerance {}, ls_iterations {}",
            o.solver,
            o.iterations,
            o.tolerance,
            o.ls_iterations
        );
    }
    for table in tables {
        match table.beyond.as_slice() {
            _ if args.as_written => {
                let (qacc, next) = (table.qacc, table.next);
                outln!(
                    "{}: next state differs by {:.1e} in half of the states, {:.1e} in 99 %; qacc by \
                     {:.1e}, {:.1e}",
                    table.label,
                    next.median,
                    next.p99,
                    qacc.median,
                    qacc.p99
                );
            }
            [] => outln!("{}: means the same here as in MuJoCo", table.label),
            beyond => outln!("{}: DIFFERS from MuJoCo: {}", table.label, beyond.join("; ")),
        }
    }
}
