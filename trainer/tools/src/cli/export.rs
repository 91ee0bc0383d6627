//! `ostler export`: a trained policy as a file for a robot's own program.

use clap::Args;
use ostler_run::export::{Format, Request, export};
use ostler_run::log::outln;
use ostler_run::run::{RunError, error::OK, load_run};
use std::path::PathBuf;

/// Flags of `ostler export`.
#[derive(Debug, Args)]
pub(crate) struct ExportArgs {
    /// A run's folder, runs/NAME/latest, or one checkpoint file
    run: PathBuf,
    /// Kinds of files
    #[arg(long, value_enum, value_delimiter = ',', default_value = "onnx")]
    format: Vec<Format>,
    /// Folder of the files [default: the run's folder, export/]
    #[arg(long, value_name = "FOLDER")]
    out: Option<PathBuf>,
    /// Beginning of the files' names, and of C functions' [default: the run's name]
    #[arg(long)]
    name: Option<String>,
    /// Whose policy it is, of several agents
    #[arg(long)]
    agent: Option<String>,
    /// Control steps of test vectors in the manifest
    #[arg(long, default_value_t = 32, value_name = "N", value_parser = clap::value_parser!(u32).range(0..=1_000_000))]
    vectors: u32,
    /// C: an observation that is handed in, because a robot cannot measure it
    #[arg(long, value_name = "TERM")]
    input: Vec<String>,
}

/// Exports and prints the files' paths.
pub(crate) fn run(args: &ExportArgs) -> Result<i32, RunError> {
    let mut run = load_run(&args.run)?;
    run.settle(None)?;
    ostler_machine::torch::init(run.config.learner_threads())?;
    let mut formats: Vec<Format> = Vec::new();
    for format in &args.format {
        if !formats.contains(format) {
            formats.push(*format);
        }
    }
    let request = Request {
        formats: &formats,
        name: args.name.as_deref(),
        out: args.out.as_deref(),
        agent: args.agent.as_deref(),
        inputs: &args.input,
        vectors: args.vectors as usize,
    };
    for path in export(&run, &request)? {
        outln!("{}", path.display());
    }
    Ok(OK)
}
