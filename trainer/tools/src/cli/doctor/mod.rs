//! `ostler doctor`: what this machine has for trainings, and what it lacks.

mod kernels;

use crate::cli::config::ConfigArgs;
use crate::doctor::{Finding, Verdict, Wanted, examine};
use clap::Args;
use ostler_learn::config::Device;
use ostler_run::log::outln;
use ostler_run::run::RunError;
use ostler_run::run::error::{FAILED, OK};
use serde_json::json;
use std::path::PathBuf;

/// Flags of `ostler doctor`.
#[derive(Debug, Args)]
pub(crate) struct DoctorArgs {
    #[command(flatten)]
    config: ConfigArgs,
    /// Needs of configurations' programs (all in configs/) on a GPU: registers,
    /// local memory, spills. Needs CUDA's compiler and no GPU
    #[arg(long, num_args = 0.., value_name = "CONFIG")]
    kernels: Option<Vec<PathBuf>>,
    /// With --kernels: sm_90 and the like instead of the GPUs here, or the usual ones
    #[arg(long, value_name = "SM", requires = "kernels")]
    arch: Vec<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Looks and prints; fails where the configuration needs what is not there.
pub(crate) fn run(args: &DoctorArgs) -> Result<i32, RunError> {
    let (file, overrides) = args.config.split()?;
    if let Some(files) = &args.kernels {
        let files: Vec<PathBuf> = file.iter().chain(files).cloned().collect();
        return kernels::run(&files, &overrides, &args.arch, args.json);
    }
    let wanted = match &file {
        Some(file) => Wanted::of(file, &overrides),
        None => Wanted::on(device(&args.config, overrides.len())?),
    };
    let findings = examine(&wanted);
    let worst = findings.iter().map(|f| f.verdict).max();
    let worst = worst.unwrap_or(Verdict::Ok);
    if args.json {
        outln!("{:#}", json!({ "verdict": worst, "findings": findings }));
    } else {
        for finding in &findings {
            print(finding);
        }
    }
    Ok(match worst {
        Verdict::Problem => FAILED,
        Verdict::Ok | Verdict::Warning => OK,
    })
}

/// Without a configuration there is nothing else to ask for.
fn device(args: &ConfigArgs, overrides: usize) -> Result<Device, RunError> {
    let usage = |why: String| Err(RunError::Usage(why));
    match &args.device {
        Some(text) if overrides == 1 => Device::parse(text).or_else(usage),
        None if overrides == 0 => Ok(Device::Auto),
        _ => usage("values belong to a configuration: `ostler doctor CONFIG key=value`".into()),
    }
}

fn print(f: &Finding) {
    outln!("{:8} {:10} {}", f.verdict.name(), f.subject, f.found);
    if let Some(remedy) = &f.remedy {
        outln!("{:19} -> {remedy}", "");
    }
}
