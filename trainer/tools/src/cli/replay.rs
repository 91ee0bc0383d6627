//! `ostler replay`: shows a failure again from its report.

use clap::Args;
use ostler_run::log::outln;
use ostler_run::run::RunError;
use ostler_run::run::error::{FAILED, OK};
use ostler_run::run::failure::{Replay, Seen, remedy};
use std::path::PathBuf;

/// Flags of `ostler replay`.
#[derive(Debug, Args)]
pub(crate) struct ReplayArgs {
    /// A report: RUN/failure/iter_00000012_broken_envs
    #[arg(value_name = "FOLDER")]
    folder: PathBuf,
    /// Show the positions and velocities of this environment until it breaks
    #[arg(long, value_name = "N")]
    env: Option<usize>,
}

/// Replays; exit code 0 if the same environments broke in the same way.
pub(crate) fn run(args: &ReplayArgs) -> Result<i32, RunError> {
    let mut replay = Replay::open(&args.folder)?;
    let report = replay.report().clone();
    if let Some(env) = args.env.filter(|env| *env >= report.num_envs) {
        return Err(RunError::Usage(format!(
            "--env {env}: the report has environments 0 to {}",
            report.num_envs.saturating_sub(1)
        )));
    }
    outln!("iteration {}: {}", report.iteration, report.what);
    outln!("{} environments, {} control steps from its start\n", report.num_envs, replay.steps());
    let mut seen: Vec<Seen> = Vec::new();
    while let Some(broken) = replay.step()? {
        if let Some(env) = args.env
            && !seen.iter().any(|s| s.env as usize == env)
        {
            let (qpos, qvel) = replay.state(env);
            outln!("step {:3}  qpos {qpos:.4?}\n          qvel {qvel:.4?}", replay.done() - 1);
        }
        for b in &broken {
            if seen.len() < report.breaks.len().max(1) {
                outln!(
                    "step {:3}  environment {:5}  {}  ({}, control step {} of its episode)",
                    b.step,
                    b.env,
                    b.cause,
                    b.value,
                    b.age
                );
            }
        }
        seen.extend(broken);
    }
    let expected = &report.breaks;
    let same = seen.len() >= expected.len() && seen.iter().zip(expected).all(|(a, b)| a == b);
    outln!("");
    match seen.first() {
        None => outln!("nothing broke"),
        Some(first) => {
            outln!("first: {} in environment {}", first.cause, first.env);
            outln!(
                "what usually mends it: {}",
                remedy(&first.cause, replay.model(), replay.config())
            );
        }
    }
    outln!(
        "{}",
        if same {
            "the same as in the report"
        } else {
            "NOT the same as in the report: another program, kernel or processor?"
        }
    );
    Ok(if same { OK } else { FAILED })
}
