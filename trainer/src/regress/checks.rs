//! From judged runs to the verdict on their case. A value that one of them lacks fails
//! the check that needs it.

use super::baseline::{Baseline, Throughput};
use super::case::Case;
use super::file::{Bound, Requirement};
use super::judge::{JudgedRun, range};
use super::plan::CasePlan;
use super::verdict::{CaseResult, Check, Kind, Problem, Trial, Verdict};
use super::yardstick;
use crate::stats::{AgainstThreshold, interquartile, interval, median};

/// The name of a case's check of its return.
pub const RETURN: &str = "return";
/// That of its throughput.
pub const THROUGHPUT: &str = "throughput";
/// That of its memory.
pub const PEAK_MEMORY: &str = "peak memory";

/// Reference of the throughput.
#[derive(Debug, Clone, PartialEq)]
pub enum Reference {
    /// The baseline of this class of machine.
    Baseline {
        /// The baseline.
        of: Baseline,
        /// The class.
        class: String,
        /// One that cannot be compared with is a failure.
        required: bool,
    },
    /// There is none for the class, which is named here.
    None {
        /// The class.
        class: String,
        /// That is a failure.
        required: bool,
    },
    /// It is being written.
    Update,
}

/// Judges a case whose runs are judged.
pub fn judge_case(
    case: &Case,
    plan: &CasePlan,
    runs: Vec<JudgedRun>,
    reference: &Reference,
) -> CaseResult {
    let expect = &plan.expect;
    let trials: Vec<&Trial> = runs.iter().map(|r| &r.trial).collect();
    let all = |of: fn(&Trial) -> Option<f64>| -> Result<Vec<f64>, Problem> {
        let none = |t: &Trial| {
            let why = format!("seed {} has no value, so there is nothing to compare", t.seed);
            Problem::new(Kind::MissingMetric, why)
        };
        let finite = |t: &&Trial| of(t).filter(|v| v.is_finite()).ok_or_else(|| none(t));
        trials.iter().map(finite).collect()
    };
    let returns = all(|t| t.ret);
    let speeds = all(|t| t.steps_per_s);
    let rounds = all(|t| t.steps_per_round);
    let peaks = all(|t| t.peak_memory_mib);
    let mut checks = Vec::new();
    let ret = returns.as_ref().ok().and_then(|values| interval(values, expect.confidence));
    let middle_half =
        returns.as_ref().ok().and_then(|values| interquartile(values, expect.confidence));
    if let Some(threshold) = expect.return_at_least {
        checks.push(match &returns {
            Err(problem) => Check::failed(RETURN, problem.clone()),
            Ok(values) => check_return(plan, values, threshold),
        });
    }
    let compared = match &speeds {
        // Without it the log is not whole, whatever is compared.
        Err(problem) => Err(problem.clone()),
        Ok(_) => throughput(case.requires, &speeds, &rounds),
    };
    if let Some(least) = expect.throughput_share {
        // Of a run that failed there may be no throughput; that it failed was said.
        let failed = trials.iter().find(|t| t.steps_per_round.is_none() && !t.problems.is_empty());
        checks.push(match (&compared, failed) {
            (Err(_), Some(trial)) if speeds.is_ok() => {
                let why = format!("seed {} failed, so there is nothing to compare", trial.seed);
                Check::skipped(THROUGHPUT, why)
            }
            (Err(problem), _) => Check::failed(THROUGHPUT, problem.clone()),
            (Ok(found), _) => check_throughput(*found, least, reference),
        });
    }
    let share = match (&compared, reference, expect.throughput_share) {
        (Ok(found), Reference::Baseline { of, .. }, Some(_)) => found.share_of(of.throughput),
        _ => None,
    };
    if let Some(most) = expect.peak_memory_mib {
        checks.push(match &peaks {
            Err(problem) => Check::failed(PEAK_MEMORY, problem.clone()),
            Ok(values) => check_memory(values, most),
        });
    }
    for (i, (tag, bound)) in expect.metrics.iter().enumerate() {
        checks.push(check_bound(tag, bound, i, &runs));
    }
    let well = runs.iter().all(|r| r.trial.problems.is_empty())
        && checks.iter().all(|c| c.verdict != Verdict::Failed)
        && runs.len() == plan.seeds.len();
    CaseResult {
        verdict: match well {
            true => Verdict::Passed,
            false => Verdict::Failed,
        },
        checks,
        ret,
        return_interquartile: middle_half,
        steps_per_s: middle(&speeds),
        throughput: compared.ok().filter(|_| expect.throughput_share.is_some()),
        throughput_share: share,
        peak_memory_mib: peaks.ok().map(|p| p.into_iter().fold(0.0, f64::max)),
        seconds: runs.iter().map(|r| r.trial.seconds).sum(),
        runs: runs.into_iter().map(|r| r.trial).collect(),
        ..blank(case, plan)
    }
}

/// A case of which nothing was run, for `problem`.
pub fn not_run(case: &Case, plan: &CasePlan, verdict: Verdict, problem: Problem) -> CaseResult {
    CaseResult { verdict, problem: Some(problem), ..blank(case, plan) }
}

fn blank(case: &Case, plan: &CasePlan) -> CaseResult {
    CaseResult {
        name: case.name.clone(),
        file: case.file.display().to_string(),
        description: case.description.clone(),
        config: case.config.display().to_string(),
        requires: case.requires,
        verdict: Verdict::NotRun,
        problem: None,
        budget: plan.amount.to_string(),
        runs: Vec::new(),
        checks: Vec::new(),
        ret: None,
        return_interquartile: None,
        return_at_least: plan.expect.return_at_least,
        steps_per_s: None,
        throughput: None,
        throughput_share: None,
        peak_memory_mib: None,
        seconds: 0.0,
    }
}

fn check_return(plan: &CasePlan, values: &[f64], threshold: f64) -> Check {
    let Some(i) = interval(values, plan.expect.confidence) else {
        let why = "no return to compare";
        return Check::failed(RETURN, Problem::new(Kind::MissingMetric, why));
    };
    let percent = 100.0 * i.confidence;
    let found = match (i.low, i.high) {
        (Some(low), Some(high)) => format!(
            "mean {:.2} of {} seeds, {percent} % interval {low:.2} to {high:.2}",
            i.mean, i.n
        ),
        _ => format!("{:.2} with one seed", i.mean),
    };
    match i.against(threshold) {
        AgainstThreshold::Above => Check::passed(RETURN, format!("{found}, at least {threshold}")),
        AgainstThreshold::Below => {
            let why = format!("{found}, expected at least {threshold}");
            Check::failed(RETURN, Problem::new(Kind::Return, why))
        }
        AgainstThreshold::Within if plan.expect.allow_uncertain => {
            let why = format!("{found}: it holds the threshold {threshold}, which is allowed");
            Check::passed(RETURN, why)
        }
        AgainstThreshold::Within => {
            let why = format!(
                "{found}: it holds the threshold {threshold}, so neither is proven; more seeds narrow it, expect.allow_uncertain lets it pass"
            );
            Check::failed(RETURN, Problem::new(Kind::Uncertain, why))
        }
    }
}

/// The median over the seeds; none where one is missing.
fn middle(values: &Result<Vec<f64>, Problem>) -> Option<f64> {
    values.as_ref().ok().and_then(|values| median(values))
}

/// Numbers of a case that are compared: a GPU's steps by the clock, the median over the seeds; a
/// processor's by the reference workload, the least of the seeds.
///
/// # Errors
/// A seed lacks it.
pub fn throughput(
    requires: Option<Requirement>,
    speeds: &Result<Vec<f64>, Problem>,
    rounds: &Result<Vec<f64>, Problem>,
) -> Result<Throughput, Problem> {
    let none = || Problem::new(Kind::MissingMetric, "no throughput to compare");
    match requires {
        Some(Requirement::Cuda) => {
            let all = speeds.as_ref().map_err(Problem::clone)?;
            let steps_per_s = median(all).ok_or_else(none)?;
            Ok(Throughput::Clock { steps_per_s })
        }
        None => {
            // Programs that disturb the workload's caches more than the run's make a seed look
            // faster, by up to a third; nothing makes one look as much slower.
            let all = rounds.as_ref().map_err(Problem::clone)?;
            let least = all.iter().copied().reduce(f64::min);
            Ok(Throughput::Reference {
                steps_per_round: least.ok_or_else(none)?,
                yardstick: yardstick::VERSION,
            })
        }
    }
}

fn check_throughput(found: Throughput, least: f64, reference: &Reference) -> Check {
    let (class, required, why) = match reference {
        Reference::Update => {
            let message = format!("{found}, measured for the baseline");
            return Check::passed(THROUGHPUT, message);
        }
        Reference::None { class, required } => (class, *required, "no baseline"),
        Reference::Baseline { of, class, required } => match found.share_of(of.throughput) {
            Some(share) => return compare(found, share, least, of),
            None => (class, *required, "the baseline has another unit than is measured now"),
        },
    };
    let why = format!("{found}, {why} for \"{class}\"");
    match required {
        true => {
            let why = format!("{why}; --update-baselines writes one");
            Check::failed(THROUGHPUT, Problem::new(Kind::NoBaseline, why))
        }
        false => Check::skipped(THROUGHPUT, why),
    }
}

fn compare(found: Throughput, share: f64, least: f64, baseline: &Baseline) -> Check {
    let was = baseline.throughput;
    let found = format!("{found}, {share:.3} of the baseline {was}");
    match share >= least {
        true => Check::passed(THROUGHPUT, format!("{found}, at least {least}")),
        false => {
            let why = format!("{found} of {}, expected at least {least}", baseline.date);
            Check::failed(THROUGHPUT, Problem::new(Kind::Throughput, why))
        }
    }
}

fn check_memory(values: &[f64], most: f64) -> Check {
    let peak = values.iter().copied().fold(0.0, f64::max);
    let found = format!("{peak:.1} MiB");
    match peak <= most {
        true => Check::passed(PEAK_MEMORY, format!("{found}, at most {most}")),
        false => {
            let why = format!("{found}, expected at most {most}");
            Check::failed(PEAK_MEMORY, Problem::new(Kind::Memory, why))
        }
    }
}

fn check_bound(tag: &str, bound: &Bound, i: usize, runs: &[JudgedRun]) -> Check {
    let mut found = Vec::new();
    for run in runs {
        let seed = run.trial.seed;
        match run.bounds.get(i) {
            Some(Ok(value)) => found.push(value.to_string()),
            Some(Err(problem)) => {
                let why = format!("seed {seed}: {}", problem.message);
                return Check::failed(tag, Problem::new(problem.kind, why));
            }
            None => {
                let why = format!("seed {seed}: {tag} was not looked at");
                return Check::failed(tag, Problem::new(Kind::MissingMetric, why));
            }
        }
    }
    Check::passed(tag, format!("{}, {}", found.join(", "), range(bound)))
}
