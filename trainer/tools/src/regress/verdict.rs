//! How things end: kinds of failure, problems of a run, checks of a case.

use ostler_run::stats::Interval;
use serde::Serialize;

/// Kind of a problem. None of them is ever passed over.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Kind {
    /// The process could not be started or waited for.
    NotStarted,
    /// It ended with an exit code other than 0.
    ExitCode,
    /// It died of a signal.
    Signal,
    /// It took longer than its limit and was killed.
    TimeLimit,
    /// It ended well, but before its budget.
    EndedEarly,
    /// `metrics.jsonl` cannot be read or has gaps.
    DamagedMetrics,
    /// Something that is checked was not logged.
    MissingMetric,
    /// NaN or infinite.
    NotFinite,
    /// `ostler eval` failed or did not complete its episodes.
    Evaluation,
    /// The return is below its threshold.
    Return,
    /// The threshold is within the return's confidence interval.
    Uncertain,
    /// Too slow against the baseline.
    Throughput,
    /// There is nothing to compare with, and there must be.
    NoBaseline,
    /// Too much memory.
    Memory,
    /// A metric is out of its bounds.
    Bound,
    /// The case needs a GPU and there is none.
    MissingGpu,
    /// The runner was stopped.
    Interrupted,
}

impl Kind {
    /// As it is written in all outputs.
    pub fn name(self) -> &'static str {
        match self {
            Self::NotStarted => "not_started",
            Self::ExitCode => "exit_code",
            Self::Signal => "signal",
            Self::TimeLimit => "time_limit",
            Self::EndedEarly => "ended_early",
            Self::DamagedMetrics => "damaged_metrics",
            Self::MissingMetric => "missing_metric",
            Self::NotFinite => "not_finite",
            Self::Evaluation => "evaluation",
            Self::Return => "return",
            Self::Uncertain => "uncertain",
            Self::Throughput => "throughput",
            Self::NoBaseline => "no_baseline",
            Self::Memory => "memory",
            Self::Bound => "bound",
            Self::MissingGpu => "missing_gpu",
            Self::Interrupted => "interrupted",
        }
    }

    /// A threshold that was missed is a failure, everything else an error: the two
    /// words of JUnit.
    pub fn is_missed_threshold(self) -> bool {
        matches!(
            self,
            Self::Return | Self::Uncertain | Self::Throughput | Self::Memory | Self::Bound
        )
    }
}

/// Something that went wrong.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Problem {
    /// The kind of problem.
    pub kind: Kind,
    /// In a sentence, with numbers.
    pub message: String,
}

impl Problem {
    /// A problem.
    pub fn new(kind: Kind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into() }
    }
}

impl std::fmt::Display for Problem {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.kind.name(), self.message)
    }
}

/// How a case or a check ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// All is well.
    Passed,
    /// It is not.
    Failed,
    /// Left out, as was asked for.
    Skipped,
    /// Not done when the runner was stopped.
    NotRun,
}

/// One expectation.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Check {
    /// `return`, `throughput`, `peak memory`, or a metric's tag.
    pub name: String,
    /// How it ended.
    pub verdict: Verdict,
    /// Why it failed.
    pub kind: Option<Kind>,
    /// Found and expected numbers.
    pub message: String,
}

impl Check {
    /// It holds.
    pub fn passed(name: &str, message: impl Into<String>) -> Self {
        Self { name: name.into(), verdict: Verdict::Passed, kind: None, message: message.into() }
    }

    /// It does not.
    pub fn failed(name: &str, problem: Problem) -> Self {
        Self {
            name: name.into(),
            verdict: Verdict::Failed,
            kind: Some(problem.kind),
            message: problem.message,
        }
    }

    /// It could not be made, and that is no failure.
    pub fn skipped(name: &str, message: impl Into<String>) -> Self {
        Self { verdict: Verdict::Skipped, ..Self::passed(name, message) }
    }
}

/// How a process ended.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Exit {
    /// By an exit code.
    Code(i32),
    /// By a signal: `SIGKILL`.
    Signal(String),
}

/// One run of a case, judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Trial {
    /// Its seed.
    pub seed: u64,
    /// Its folder, below `--out`.
    pub folder: String,
    /// Problems of the run.
    pub problems: Vec<Problem>,
    /// How the run ended; none where it was not started.
    pub exit: Option<Exit>,
    /// Training and evaluation together (s).
    pub seconds: f64,
    /// Iterations on record.
    pub iterations: u64,
    /// Environment steps on record.
    pub env_steps: u64,
    /// Its return.
    #[serde(rename = "return")]
    pub ret: Option<f64>,
    /// Median of `Perf/total_fps` after the warm-up.
    pub steps_per_s: Option<f64>,
    /// The same of the program beside it, with `--against`.
    pub steps_per_s_against: Option<f64>,
    /// Largest resident memory of the training process (MiB).
    pub peak_memory_mib: Option<f64>,
    /// The same with all that it started, such as compilers (MiB).
    pub peak_memory_with_children_mib: Option<f64>,
    /// The last lines that it said, where something went wrong.
    pub said: Vec<String>,
}

/// A case, judged.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct CaseResult {
    /// Its name.
    pub name: String,
    /// Its file.
    pub file: String,
    /// Its description.
    pub description: String,
    /// The configuration.
    pub config: String,
    /// Requirement on the machine.
    pub requires: Option<super::file::Requirement>,
    /// How it ended.
    pub verdict: Verdict,
    /// Why it was not run.
    pub problem: Option<Problem>,
    /// How long each run was to train.
    pub budget: String,
    /// Its runs, in the order of the seeds.
    pub runs: Vec<Trial>,
    /// Its expectations.
    pub checks: Vec<Check>,
    /// The return over all seeds; none where one is missing.
    #[serde(rename = "return")]
    pub ret: Option<Interval>,
    /// The interquartile mean of the returns over all seeds, with its bootstrap interval;
    /// none where a seed is missing. Nothing is judged by it.
    pub return_interquartile: Option<Interval>,
    /// The threshold of the return.
    pub return_at_least: Option<f64>,
    /// Median over the seeds (environment steps/s).
    pub steps_per_s: Option<f64>,
    /// That as a share of the baseline's.
    pub throughput_share: Option<f64>,
    /// Largest over the seeds (MiB).
    pub peak_memory_mib: Option<f64>,
    /// All runs together (s).
    pub seconds: f64,
}

impl CaseResult {
    /// Everything that went wrong, runs first.
    pub fn problems(&self) -> impl Iterator<Item = (String, Problem)> {
        let own = self.problem.iter().map(|p| ("case".to_string(), p.clone()));
        let runs = self.runs.iter().flat_map(|r| {
            let name = format!("seed {}", r.seed);
            r.problems.iter().map(move |p| (name.clone(), p.clone()))
        });
        let checks = self.checks.iter().filter_map(|c| {
            let problem = Problem::new(c.kind?, c.message.clone());
            Some((c.name.clone(), problem))
        });
        own.chain(runs).chain(checks)
    }
}
