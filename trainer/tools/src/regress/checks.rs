//! From judged runs to the verdict on their case. A value that one of them lacks fails
//! the check that needs it.

use super::baseline::Baseline;
use super::case::Case;
use super::file::Bound;
use super::judge::{JudgedRun, range};
use super::plan::CasePlan;
use super::verdict::{CaseResult, Check, Kind, Problem, Trial, Verdict};
use ostler_run::stats::{AgainstThreshold, interquartile, interval, median};

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
    Baseline(Baseline),
    /// Another program, which ran beside each seed.
    Beside,
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
    let against = all(|t| t.steps_per_s_against);
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
    let asked = expect.throughput_share.is_some();
    let compared = compare(&speeds, &against, reference);
    if let Some(least) = expect.throughput_share {
        checks.push(check_throughput(&compared, least, reference));
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
        return_interquartile: middle_half,
        steps_per_s: middle(&speeds),
        throughput_share: compared.ok().and_then(|c| c.share).filter(|_| asked),
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

/// A case's speed, by the clock, and what it is compared with.
struct Compared {
    /// Environment steps per second, the median over the seeds.
    found: f64,
    /// As a share of the baseline, where there is one.
    share: Option<f64>,
    /// The baseline in words.
    with: String,
}

/// # Errors
/// A seed lacks its speed, or that of the program beside it.
fn compare(
    speeds: &Result<Vec<f64>, Problem>,
    against: &Result<Vec<f64>, Problem>,
    reference: &Reference,
) -> Result<Compared, Problem> {
    let none = || Problem::new(Kind::MissingMetric, "no throughput to compare");
    let speeds = speeds.as_ref().map_err(Problem::clone)?;
    let found = median(speeds).ok_or_else(none)?;
    let (share, with) = match reference {
        Reference::Baseline(of) => {
            let with = format!("the baseline {:.0} steps/s of {}", of.steps_per_s, of.date);
            (Some(found / of.steps_per_s), with)
        }
        Reference::Beside => {
            // Each with the one at its side: what slowed one down slowed both.
            let against = against.as_ref().map_err(Problem::clone)?;
            let shares: Vec<f64> = std::iter::zip(speeds, against).map(|(a, b)| a / b).collect();
            (Some(median(&shares).ok_or_else(none)?), "the program beside it".into())
        }
        Reference::None { .. } | Reference::Update => (None, String::new()),
    };
    Ok(Compared { found, share, with })
}

fn check_throughput(
    compared: &Result<Compared, Problem>,
    least: f64,
    reference: &Reference,
) -> Check {
    let Compared { found, share, with } = match compared {
        Ok(compared) => compared,
        Err(problem) => return Check::failed(THROUGHPUT, problem.clone()),
    };
    let found = format!("{found:.0} steps/s");
    match (share, reference) {
        (Some(share), _) if *share >= least => {
            Check::passed(THROUGHPUT, format!("{found}, {share:.3} of {with}, at least {least}"))
        }
        (Some(share), _) => {
            let why = format!("{found}, {share:.3} of {with}, expected at least {least}");
            Check::failed(THROUGHPUT, Problem::new(Kind::Throughput, why))
        }
        (None, Reference::None { class, required }) => {
            let why = format!("{found}, no baseline for \"{class}\"");
            match required {
                true => {
                    let why = format!("{why}; --update-baselines writes one");
                    Check::failed(THROUGHPUT, Problem::new(Kind::NoBaseline, why))
                }
                false => Check::skipped(THROUGHPUT, why),
            }
        }
        (None, _) => Check::passed(THROUGHPUT, format!("{found}, measured for the baseline")),
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
