//! From the measurements of one run to its problems. Nothing here runs anything.
//!
//! A missing value is a problem everywhere: there is no way past a value that is not
//! there. `checks` goes on with the case and all its runs.

use super::child::Ended;
use super::file::{Aggregate, Bound, ReturnOf};
use super::metrics::History;
use super::plan::{CasePlan, Length};
use super::verdict::{Exit, Kind, Problem, Trial};
use ostler_run::stats::median;

/// The tag of steps per second.
const FPS: &str = "Perf/total_fps";
/// The tag of the process's own largest resident size (MiB).
const OWN_PEAK: &str = "Memory/peak_mib";
/// The tag of the run's return.
const TRAINING_RETURN: &str = "Train/mean_reward";

/// Measurements of one run.
#[derive(Debug)]
pub struct Raw {
    /// Its seed.
    pub seed: u64,
    /// Its folder below `--out`.
    pub folder: String,
    /// How its process ended.
    pub ended: std::io::Result<Ended>,
    /// Its log.
    pub history: Result<History, Problem>,
    /// How the program beside it ended, and its log.
    pub against: Option<(std::io::Result<Ended>, Result<History, Problem>)>,
    /// Its evaluation, where there was one.
    pub evaluated: Option<Result<f64, Problem>>,
    /// Training and evaluation together (s).
    pub seconds: f64,
}

/// A run and its metrics, for the checks of the case.
#[derive(Debug, Clone, PartialEq)]
pub struct JudgedRun {
    /// Its report.
    pub trial: Trial,
    /// Its metrics' bounds, in the order of the plan.
    pub bounds: Vec<Result<f64, Problem>>,
}

/// Judges one run by itself.
pub fn judge_run(plan: &CasePlan, raw: Raw) -> JudgedRun {
    let mut problems = Vec::new();
    let mut went_well = false;
    match &raw.ended {
        Err(e) => problems.push(Problem::new(Kind::NotStarted, format!("the run: {e}"))),
        Ok(ended) => match judge_end(plan, ended) {
            Some(problem) => problems.push(problem),
            None => went_well = true,
        },
    }
    let empty = History::default();
    let history = match &raw.history {
        Ok(history) => history,
        Err(problem) => {
            problems.push(problem.clone());
            &empty
        }
    };
    let readable = raw.history.is_ok();
    if went_well && readable {
        problems.extend(judge_budget(plan, history, &raw.ended));
    }
    problems.extend(history.not_finite(&plan.expect.nan_allowed));
    let mut keep = |value: Result<f64, Problem>| match value {
        Ok(value) => Some(value),
        // Without metrics everything is missing: that was said once.
        Err(problem) => {
            if readable && !problems.contains(&problem) {
                problems.push(problem);
            }
            None
        }
    };
    let ret = match (raw.evaluated, plan.expect.return_of) {
        (Some(evaluated), _) => keep(evaluated.and_then(finite)),
        (None, ReturnOf::Training) => keep(history.last(TRAINING_RETURN)),
        // It was not asked for, or the run failed, which was said.
        (None, ReturnOf::Evaluation) => None,
    };
    let steps_per_s = keep(throughput(plan, history));
    let steps_per_s_against = raw.against.and_then(|other| keep(judge_other(plan, other)));
    let own = keep(largest(history, OWN_PEAK));
    let ended = raw.ended.ok();
    let seen = ended.as_ref().and_then(|e| e.peak_mib);
    let peak = match (seen, own) {
        (Some(a), Some(b)) => Some(a.max(b)),
        (a, b) => a.or(b),
    };
    let bounds =
        plan.expect.metrics.iter().map(|(tag, bound)| bounded(tag, bound, history)).collect();
    let trial = Trial {
        seed: raw.seed,
        folder: raw.folder,
        problems,
        exit: ended.as_ref().map(|e| e.exit.clone()),
        seconds: raw.seconds,
        iterations: history.iterations(),
        env_steps: history.env_steps(),
        ret,
        steps_per_s,
        steps_per_s_against,
        peak_memory_mib: peak,
        peak_memory_with_children_mib: ended.map(|e| e.peak_with_children_mib),
        said: Vec::new(),
    };
    JudgedRun { trial, bounds }
}

/// The speed of the program beside the run.
fn judge_other(
    plan: &CasePlan,
    (ended, history): (std::io::Result<Ended>, Result<History, Problem>),
) -> Result<f64, Problem> {
    let about = |p: Problem| Problem::new(p.kind, format!("--against: {}", p.message));
    let ended = ended.map_err(|e| Problem::new(Kind::NotStarted, format!("--against: {e}")))?;
    match judge_end(plan, &ended) {
        Some(problem) => Err(about(problem)),
        None => history.and_then(|history| throughput(plan, &history)).map_err(about),
    }
}

fn finite(ret: f64) -> Result<f64, Problem> {
    let bad = || Problem::new(Kind::NotFinite, format!("the return is {ret}"));
    ret.is_finite().then_some(ret).ok_or_else(bad)
}

fn judge_end(plan: &CasePlan, ended: &Ended) -> Option<Problem> {
    let seconds = ended.seconds;
    if ended.stopped {
        let why = "the run was stopped because the runner was";
        return Some(Problem::new(Kind::Interrupted, why));
    }
    if ended.too_long {
        let limit = plan.limit.as_secs_f64();
        let why = format!("the run took longer than {limit} s and was killed");
        return Some(Problem::new(Kind::TimeLimit, why));
    }
    match &ended.exit {
        Exit::Code(0) => None,
        Exit::Code(code) => {
            let why = format!("the run ended with exit code {code} after {seconds:.1} s");
            Some(Problem::new(Kind::ExitCode, why))
        }
        Exit::Signal(signal) => {
            let why = format!("the run died of {signal} after {seconds:.1} s");
            Some(Problem::new(Kind::Signal, why))
        }
    }
}

/// A run that ended well, but before its budget.
fn judge_budget(
    plan: &CasePlan,
    history: &History,
    ended: &std::io::Result<Ended>,
) -> Option<Problem> {
    let (iterations, steps) = (history.iterations(), history.env_steps());
    let short = match plan.amount {
        Length::Iterations(n) => iterations < n,
        // Fewer environments than at the start make fewer steps of an iteration.
        Length::EnvSteps { steps: n, .. } => steps < n,
        Length::Time(time) => ended.as_ref().is_ok_and(|e| e.seconds < time.as_secs_f64()),
    };
    short.then(|| {
        let why = format!(
            "the run ended well, but after {iterations} iterations and {steps} environment steps, before its {}",
            plan.amount
        );
        Problem::new(Kind::EndedEarly, why)
    })
}

/// Iterations at a run's start that do not count for its throughput.
fn warm_up(plan: &CasePlan, history: &History) -> usize {
    let fifth = history.0.len() / 5;
    plan.expect.warm_up.map_or(fifth, |n| n as usize)
}

fn throughput(plan: &CasePlan, history: &History) -> Result<f64, Problem> {
    let values = history.values(FPS, warm_up(plan, history), None)?;
    let none = || Problem::new(Kind::MissingMetric, format!("{FPS} is missing"));
    median(&values).ok_or_else(none)
}

fn largest(history: &History, tag: &str) -> Result<f64, Problem> {
    let values = history.values(tag, 0, None)?;
    Ok(values.into_iter().fold(f64::NEG_INFINITY, f64::max))
}

/// The bounded number of a metric, where it is within its bounds.
fn bounded(tag: &str, bound: &Bound, history: &History) -> Result<f64, Problem> {
    let all = history.0.len();
    let skip = bound.last.map_or(0, |n| all.saturating_sub(n as usize));
    let values = history.values(tag, skip, bound.absent)?;
    if bound.last.is_some_and(|n| values.len() < n as usize) {
        let why = format!("{tag}: fewer than the {} iterations that are checked", values.len());
        return Err(Problem::new(Kind::MissingMetric, why));
    }
    let sum: f64 = values.iter().sum();
    let numbers = match bound.of {
        Aggregate::Each => values,
        Aggregate::Sum => vec![sum],
        Aggregate::Mean => vec![sum / values.len() as f64],
    };
    let (mut worst, mut distance) = (f64::NAN, f64::NEG_INFINITY);
    for (i, &value) in numbers.iter().enumerate() {
        let below = bound.min.map_or(f64::NEG_INFINITY, |min| min - value);
        let above = bound.max.map_or(f64::NEG_INFINITY, |max| value - max);
        let off = below.max(above);
        if off > distance || i == 0 {
            (worst, distance) = (value, off);
        }
    }
    // Written so that a NaN would not pass.
    let within = worst.is_finite() && distance <= 0.0;
    match within {
        true => Ok(worst),
        false => {
            let what = match bound.of {
                Aggregate::Each => "is",
                Aggregate::Sum => "sums to",
                Aggregate::Mean => "has the mean",
            };
            let why = format!("{tag} {what} {worst}, {}", range(bound));
            Err(Problem::new(Kind::Bound, why))
        }
    }
}

pub(super) fn range(bound: &Bound) -> String {
    match (bound.min, bound.max) {
        (Some(min), Some(max)) if min == max => format!("expected {min}"),
        (Some(min), Some(max)) => format!("expected {min} to {max}"),
        (Some(min), None) => format!("expected at least {min}"),
        (None, max) => format!("expected at most {}", max.unwrap_or(f64::NAN)),
    }
}
