//! All cases of a folder, their runs one after the other or several at once.

use super::baseline::{Baseline, Baselines, key};
use super::case::Case;
use super::checks::{Reference, THROUGHPUT, judge_case, not_run};
use super::child::Stop;
use super::folder::Chosen;
use super::judge::JudgedRun;
use super::machine::Machine;
use super::report;
use super::trial;
use super::verdict::{CaseResult, Kind, Problem, Verdict};
use ostler_run::log::outln;
use ostler_run::run::RunError;
use ostler_run::supervise::process;
use serde::Serialize;
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// Options of `ostler regress`.
#[derive(Debug, Clone)]
pub struct Options {
    /// The folder of cases.
    pub dir: PathBuf,
    /// Their short form.
    pub short: bool,
    /// Results.
    pub out: PathBuf,
    /// The file of baselines.
    pub baselines: PathBuf,
    /// It is written instead of compared with.
    pub update_baselines: bool,
    /// Another program whose speed, beside it, is the baseline.
    pub against: Option<PathBuf>,
    /// No baseline is a failure.
    pub require_baseline: bool,
    /// Without a GPU, cases that require one are skipped.
    pub allow_missing_gpu: bool,
    /// Runs at the same time, 1 or more.
    pub jobs: usize,
}

/// Numbers of cases.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// All.
    pub cases: usize,
    /// Passed.
    pub passed: usize,
    /// Failed.
    pub failed: usize,
    /// Skipped.
    pub skipped: usize,
    /// Not run, or not to the end, because the runner was stopped.
    pub not_run: usize,
}

/// Everything that is reported.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Suite {
    /// Version of this layout.
    pub version: u32,
    /// The program's.
    pub ostler: &'static str,
    /// The folder of cases.
    pub dir: String,
    /// In their short form.
    pub short: bool,
    /// When it began.
    pub started: String,
    /// How long it took (s).
    pub seconds: f64,
    /// Processor time of the runner and of all runs that have ended (s).
    pub processor_seconds: f64,
    /// Where.
    pub machine: Machine,
    /// A signal stopped it.
    pub interrupted: bool,
    /// Numbers of cases.
    pub counts: Counts,
    /// The cases, in order.
    pub cases: Vec<CaseResult>,
}

impl Suite {
    /// Whether nothing failed and nothing is left.
    pub fn passed(&self) -> bool {
        self.counts.failed == 0 && self.counts.not_run == 0 && !self.interrupted
    }
}

/// State that the threads share.
struct State {
    left: VecDeque<(usize, usize)>,
    /// By case, then by seed.
    judged: Vec<Vec<Option<JudgedRun>>>,
    results: Vec<Option<CaseResult>>,
    /// The first report that could not be written.
    failure: Option<RunError>,
}

struct Runner<'a> {
    options: &'a Options,
    cases: &'a [Chosen],
    machine: Machine,
    baselines: Baselines,
    stop: &'a Stop,
    started: String,
    clock: Instant,
    state: Mutex<State>,
}

/// Runs `cases` and writes the reports, after every case anew: they survive the runner. Prints a
/// line for each case.
///
/// # Errors
/// The baselines cannot be used, or the results not be written.
pub fn run(options: &Options, cases: &[Chosen], stop: &Stop) -> Result<Suite, RunError> {
    let runner = Runner {
        options,
        cases,
        machine: Machine::here(options.jobs),
        baselines: Baselines::read(&options.baselines)?,
        stop,
        started: jiff::Zoned::now().to_string(),
        clock: Instant::now(),
        state: Mutex::new(State {
            left: VecDeque::new(),
            judged: cases.iter().map(|c| vec![None; c.plan.seeds.len()]).collect(),
            results: vec![None; cases.len()],
            failure: None,
        }),
    };
    runner.plan();
    runner.report()?;
    std::thread::scope(|threads| {
        for _ in 0..options.jobs.max(1) {
            threads.spawn(|| runner.work());
        }
    });
    runner.stopped();
    let suite = runner.report()?;
    if let Some(e) = runner.lock().failure.take() {
        return Err(e);
    }
    if options.update_baselines {
        runner.update(&suite)?;
    }
    Ok(suite)
}

impl Runner<'_> {
    /// A panic of another thread is reported where that one is joined.
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Fills the queue; cases that cannot run here are reported at once.
    fn plan(&self) {
        for (i, chosen) in self.cases.iter().enumerate() {
            let lacks = chosen.case.requires.and_then(|r| self.machine.lacks(r));
            match lacks {
                None => {
                    let seeds = 0..chosen.plan.seeds.len();
                    self.lock().left.extend(seeds.map(|seed| (i, seed)));
                }
                Some(why) => {
                    let verdict = match self.options.allow_missing_gpu {
                        true => Verdict::Skipped,
                        false => Verdict::Failed,
                    };
                    let problem = Problem::new(Kind::MissingGpu, why);
                    let result = not_run(&chosen.case, &chosen.plan, verdict, problem);
                    outln!("{}", report::line(&result));
                    self.lock().results[i] = Some(result);
                }
            }
        }
    }

    fn work(&self) {
        while !self.stop.asked() {
            let Some((i, seed)) = self.lock().left.pop_front() else {
                return;
            };
            let Chosen { case, plan } = &self.cases[i];
            let Options { out, against, .. } = self.options;
            let seed_of = plan.seeds[seed];
            let judged = trial::run(case, plan, seed_of, out, self.stop, against.as_deref());
            let mut state = self.lock();
            state.judged[i][seed] = Some(judged);
            if self.stop.asked() {
                return;
            }
            let all: Option<Vec<JudgedRun>> = state.judged[i].iter().cloned().collect();
            let Some(all) = all else { continue };
            let result = judge_case(case, plan, all, &self.reference(case));
            outln!("{}", report::line(&result));
            state.results[i] = Some(result);
            drop(state);
            if let Err(e) = self.report() {
                self.lock().failure.get_or_insert(e);
                return;
            }
        }
    }

    fn reference(&self, case: &Case) -> Reference {
        if self.options.update_baselines {
            return Reference::Update;
        }
        if self.options.against.is_some() {
            return Reference::Beside;
        }
        let class = &self.machine.class;
        let (class, required) = (class.clone(), self.options.require_baseline);
        let key = key(&case.name, self.options.short);
        match self.baselines.get(&class, &key).cloned() {
            Some(of) => Reference::Baseline(of),
            None => Reference::None { class, required },
        }
    }

    /// Cases that were cut by a signal, with the runs that they had.
    fn stopped(&self) {
        let mut state = self.lock();
        for (i, Chosen { case, plan }) in self.cases.iter().enumerate() {
            if state.results[i].is_some() {
                continue;
            }
            let runs = state.judged[i].iter().flatten().map(|j| j.trial.clone());
            let runs = runs.collect();
            let problem = Problem::new(Kind::Interrupted, "the runner was stopped before its end");
            let result = CaseResult { runs, ..not_run(case, plan, Verdict::NotRun, problem) };
            outln!("{}", report::line(&result));
            state.results[i] = Some(result);
        }
    }

    /// Writes all reports as things stand.
    fn report(&self) -> Result<Suite, RunError> {
        let state = self.lock();
        let waiting = |chosen: &Chosen| {
            let problem = Problem::new(Kind::Interrupted, "it was not done when this was written");
            not_run(&chosen.case, &chosen.plan, Verdict::NotRun, problem)
        };
        let cases: Vec<CaseResult> = std::iter::zip(self.cases, &state.results)
            .map(|(chosen, result)| result.clone().unwrap_or_else(|| waiting(chosen)))
            .collect();
        let count = |v: Verdict| cases.iter().filter(|c| c.verdict == v).count();
        let suite = Suite {
            version: 3,
            ostler: env!("CARGO_PKG_VERSION"),
            dir: self.options.dir.display().to_string(),
            short: self.options.short,
            started: self.started.clone(),
            seconds: self.clock.elapsed().as_secs_f64(),
            processor_seconds: process::processor_time_in_all().as_secs_f64(),
            machine: self.machine.clone(),
            interrupted: self.stop.asked(),
            counts: Counts {
                cases: cases.len(),
                passed: count(Verdict::Passed),
                failed: count(Verdict::Failed),
                skipped: count(Verdict::Skipped),
                not_run: count(Verdict::NotRun),
            },
            cases,
        };
        report::write(&self.options.out, &suite)?;
        Ok(suite)
    }

    /// Writes the baselines of the cases that passed and expect a throughput.
    fn update(&self, suite: &Suite) -> Result<(), RunError> {
        let mut all = self.baselines.clone();
        let date = jiff::Zoned::now().strftime("%Y-%m-%d").to_string();
        let mut written = 0;
        for case in &suite.cases {
            if !case.checks.iter().any(|c| c.name == THROUGHPUT) {
                continue;
            }
            let (Verdict::Passed, Some(steps_per_s)) = (case.verdict, case.steps_per_s) else {
                outln!("no baseline from {}: it did not pass", case.name);
                continue;
            };
            let baseline = Baseline { steps_per_s, seeds: case.runs.len(), date: date.clone() };
            let key = key(&case.name, self.options.short);
            all.set(&self.machine.class, &key, baseline);
            written += 1;
        }
        if written > 0 {
            all.write(&self.options.baselines)?;
        }
        outln!(
            "{written} baselines for \"{}\" in {}",
            self.machine.class,
            self.options.baselines.display()
        );
        Ok(())
    }
}
