//! From judged runs to the verdict on their case. A value that one of them lacks fails
//! the check that needs it.

use super::baseline::Baseline;
use super::case::Case;
use super::file::Bound;
use super::judge::{Judged, range};
use super::plan::Plan;
use super::stats::{Against, interval, median};
use super::verdict::{CaseResult, Check, Kind, Problem, Trial, Verdict};

/// The name of a case's check of its return.
pub const RETURN: &str = "return";
/// That of its throughput.
pub const THROUGHPUT: &str = "throughput";
/// That of its memory.
pub const PEAK_MEMORY: &str = "peak memory";

/// What the throughput is compared with.
#[derive(Debug, Clone, PartialEq)]
pub enum Reference {
    /// The baseline of this class of machine.
    Baseline(Baseline),
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
    plan: &Plan,
    runs: Vec<Judged>,
    reference: &Reference,
) -> CaseResult {
    let expect = &plan.expect;
    let trials: Vec<&Trial> = runs.iter().map(|r| &r.trial).collect();
    let all = |of: fn(&Trial) -> Option<f64>| -> Result<Vec<f64>, Problem> {
        let none = |t: &Trial| {
            let why = format!(
                "seed {} has no value, so there is nothing to compare",
                t.seed
            );
            Problem::new(Kind::MissingMetric, why)
        };
        let finite = |t: &&Trial| of(t).filter(|v| v.is_finite()).ok_or_else(|| none(t));
        trials.iter().map(finite).collect()
    };
    let returns = all(|t| t.ret);
    let speeds = all(|t| t.steps_per_s);
    let peaks = all(|t| t.peak_memory_mib);
    let mut checks = Vec::new();
    let ret = returns
        .as_ref()
        .ok()
        .and_then(|values| interval(values, expect.confidence));
    if let Some(threshold) = expect.return_at_least {
        checks.push(match &returns {
            Err(problem) => Check::failed(RETURN, problem.clone()),
            Ok(values) => check_return(plan, values, threshold),
        });
    }
    let speed = speeds.as_ref().ok().and_then(|values| median(values));
    if let Some(share) = expect.throughput_share {
        checks.push(match &speeds {
            Err(problem) => Check::failed(THROUGHPUT, problem.clone()),
            Ok(values) => check_throughput(values, share, reference),
        });
    }
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
        steps_per_s: speed,
        baseline_steps_per_s: match reference {
            Reference::Baseline(b) => Some(b.steps_per_s),
            _ => None,
        },
        peak_memory_mib: peaks.ok().map(|p| p.into_iter().fold(0.0, f64::max)),
        seconds: runs.iter().map(|r| r.trial.seconds).sum(),
        runs: runs.into_iter().map(|r| r.trial).collect(),
        ..blank(case, plan)
    }
}

/// A case of which nothing was run, for `problem`.
pub fn not_run(case: &Case, plan: &Plan, verdict: Verdict, problem: Problem) -> CaseResult {
    CaseResult {
        verdict,
        problem: Some(problem),
        ..blank(case, plan)
    }
}

fn blank(case: &Case, plan: &Plan) -> CaseResult {
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
        return_at_least: plan.expect.return_at_least,
        steps_per_s: None,
        baseline_steps_per_s: None,
        peak_memory_mib: None,
        seconds: 0.0,
    }
}

fn check_return(plan: &Plan, values: &[f64], threshold: f64) -> Check {
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
        Against::Above => Check::passed(RETURN, format!("{found}, at least {threshold}")),
        Against::Below => {
            let why = format!("{found}, expected at least {threshold}");
            Check::failed(RETURN, Problem::new(Kind::Return, why))
        }
        Against::Within if plan.expect.allow_uncertain => {
            let why = format!("{found}: it holds the threshold {threshold}, which is allowed");
            Check::passed(RETURN, why)
        }
        Against::Within => {
            let why = format!(
                "{found}: it holds the threshold {threshold}, so neither is proven; more seeds narrow it, expect.allow_uncertain lets it pass"
            );
            Check::failed(RETURN, Problem::new(Kind::Uncertain, why))
        }
    }
}

fn check_throughput(values: &[f64], share: f64, reference: &Reference) -> Check {
    let Some(speed) = median(values) else {
        let why = "no throughput to compare";
        return Check::failed(THROUGHPUT, Problem::new(Kind::MissingMetric, why));
    };
    match reference {
        Reference::Update => Check::passed(
            THROUGHPUT,
            format!("{speed:.0} steps/s, measured for the baseline"),
        ),
        Reference::None { class, required } => {
            let why = format!("{speed:.0} steps/s, no baseline for \"{class}\"");
            match required {
                true => {
                    let why = format!("{why}; --update-baselines writes one");
                    Check::failed(THROUGHPUT, Problem::new(Kind::NoBaseline, why))
                }
                false => Check::skipped(THROUGHPUT, why),
            }
        }
        Reference::Baseline(b) => {
            let (got, was) = (speed / b.steps_per_s, b.steps_per_s);
            let found = format!("{speed:.0} steps/s, {got:.2} of the baseline {was:.0}");
            match got >= share {
                true => Check::passed(THROUGHPUT, found),
                false => {
                    let why = format!("{found} of {}, expected at least {share}", b.date);
                    Check::failed(THROUGHPUT, Problem::new(Kind::Throughput, why))
                }
            }
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

fn check_bound(tag: &str, bound: &Bound, i: usize, runs: &[Judged]) -> Check {
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
