//! `ostler eval`: how good a trained policy is, as numbers.

use super::target::{Target, open};
use crate::run::stage::{Stage, quotas};
use crate::run::{RunError, error::OK};
use clap::Args;
use serde_json::json;
use std::io::Write as _;
use std::path::PathBuf;
use std::time::Instant;

/// Most environments used unless `--num-envs` says otherwise.
const ENVS: usize = 256;

/// Flags of `ostler eval`.
#[derive(Debug, Args)]
pub struct EvalArgs {
    /// A run's folder, runs/NAME/latest, or one checkpoint file
    run: PathBuf,
    /// Episodes; every environment plays the same number of them
    #[arg(long, default_value_t = 1000, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    episodes: u32,
    /// Parallel environments [default: 256, but at most --episodes]
    #[arg(long, alias = "num_envs", value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    num_envs: Option<u32>,
    /// Seed of the episodes' starts [default: 1000 + the run's seed]
    #[arg(long, value_name = "N")]
    seed: Option<u64>,
    /// One JSON object on standard output, everything else on standard error
    #[arg(long)]
    json: bool,
}

/// Returns and lengths of the episodes that count.
#[derive(Debug, Default)]
struct Tally {
    returns: Vec<f64>,
    lengths: Vec<f64>,
}

/// Evaluates and prints.
pub fn run(args: &EvalArgs) -> Result<i32, RunError> {
    let episodes = args.episodes as usize;
    let envs = args.num_envs.map_or(ENVS, |n| n as usize).min(episodes);
    let Target {
        name,
        env,
        mut agent,
        seed,
        checkpoint,
        ..
    } = open(&args.run, None, &[], Some(envs), args.seed)?;
    let mut stage = Stage::new(env)?;
    let limit = u64::from(stage.env().spec().max_episode_steps);
    let mut left = quotas(episodes, envs);
    let rounds = left.iter().max().copied().unwrap_or(0) as u64;
    let mut tally = Tally::default();
    let (mut steps, mut broken) = (0_u64, 0_u64);
    let clock = Instant::now();
    // Broken episodes do not count and start anew: a policy that breaks the physics
    // every time would never be done.
    while left.iter().any(|&l| l > 0) && steps < 2 * limit * rounds {
        let stats = stage.step(&mut agent)?;
        steps += 1;
        broken += stats.faults.iter().sum::<u64>();
        for episode in &stats.finished {
            if let Some(quota) = left.get_mut(episode.env as usize).filter(|q| **q > 0) {
                *quota -= 1;
                tally.returns.push(f64::from(episode.ret));
                tally.lengths.push(f64::from(episode.length));
            }
        }
    }
    let seconds = clock.elapsed().as_secs_f64();
    if tally.returns.len() < episodes {
        eprintln!(
            "warning: only {} of {episodes} episodes were completed; {broken} broke off with a physics fault",
            tally.returns.len()
        );
    }
    if tally.returns.is_empty() {
        eprintln!("error: no episode was completed, so there is nothing to report");
        return Ok(crate::run::error::FAILED);
    }
    let (mean, std) = mean_std(&tally.returns);
    let length = mean_std(&tally.lengths).0;
    let min = tally.returns.iter().copied().fold(f64::INFINITY, f64::min);
    let max = tally
        .returns
        .iter()
        .copied()
        .fold(f64::NEG_INFINITY, f64::max);
    let fps = steps as f64 * envs as f64 / seconds;
    let text = if args.json {
        json!({
            "config": name,
            "checkpoint": checkpoint,
            "seed": seed,
            "num_envs": envs,
            "episodes": tally.returns.len(),
            "mean_return": mean,
            "std_return": std,
            "min_return": min,
            "max_return": max,
            "mean_length": length,
            "broken_episodes": broken,
            "env_steps": steps * envs as u64,
            "env_steps_per_s": fps,
        })
        .to_string()
    } else {
        format!(
            "{name}: mean return {mean:.2} ± {std:.2} (from {min:.2} to {max:.2}) over {} episodes of {length:.1} steps on average, {fps:.0} environment steps/s",
            tally.returns.len()
        )
    };
    // A reader that has gone away is no failure of ours.
    let _ = writeln!(std::io::stdout(), "{text}");
    Ok(OK)
}

/// Mean and standard deviation (divisor n), in f64, in the order given.
fn mean_std(values: &[f64]) -> (f64, f64) {
    let n = values.len() as f64;
    let mean = values.iter().sum::<f64>() / n;
    let variance = values.iter().map(|v| (v - mean).powi(2)).sum::<f64>() / n;
    (mean, variance.sqrt())
}

#[cfg(test)]
mod tests {
    use super::mean_std;

    #[test]
    fn mean_and_deviation_by_hand() {
        assert_eq!(
            mean_std(&[2.0, 4.0, 4.0, 4.0, 5.0, 5.0, 7.0, 9.0]),
            (5.0, 2.0)
        );
    }
}
