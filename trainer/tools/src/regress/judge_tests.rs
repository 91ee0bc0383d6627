//! Verdicts on results made by hand. Every test begins with a case that passes and
//! takes one thing away.

use super::baseline::Baseline;
use super::case::Case;
use super::checks::{Reference, judge_case};
use super::child::Ended;
use super::file::{Aggregate, Bound, Expect, ReturnOf};
use super::judge::{JudgedRun, Raw, judge_run};
use super::metrics::History;
use super::plan::{CasePlan, Length};
use super::verdict::{CaseResult, Exit, Kind, Problem, Verdict};
use std::time::Duration;

pub(super) fn plan() -> CasePlan {
    CasePlan {
        seeds: vec![1, 2, 3],
        amount: Length::Iterations(5),
        limit: Duration::from_secs(60),
        expect: Expect {
            return_at_least: Some(90.0),
            throughput_share: Some(0.8),
            peak_memory_mib: Some(200.0),
            metrics: [("Guard/broken_envs".to_string(), zero())].into(),
            ..Expect::default()
        },
    }
}

fn zero() -> Bound {
    Bound { min: Some(0.0), max: Some(0.0), ..Bound::default() }
}

pub(super) fn case() -> Case {
    Case {
        name: "pole".into(),
        file: "pole.toml".into(),
        description: String::new(),
        config: "../pole.toml".into(),
        set: Vec::new(),
        requires: None,
        full: plan(),
        short: None,
    }
}

/// Five iterations as the program logs them; `change` sees each line's number.
pub(super) fn log(change: impl Fn(usize, String) -> String) -> Result<History, Problem> {
    let line = |n: usize| {
        let text = format!(
            "{{\"iteration\":{n},\"env_steps\":{},\"Train/mean_reward\":{},\"Loss/surrogate\":0.5,\"Guard/broken_envs\":0,\"Perf/total_fps\":{},\"Memory/peak_mib\":150}}\n",
            10 * n,
            20 * n,
            990 + n
        );
        change(n, text)
    };
    let text: String = (1..=5).map(line).collect();
    History::parse(text.as_bytes()).map_err(|why| Problem::new(Kind::DamagedMetrics, why))
}

pub(super) fn raw(seed: u64) -> Raw {
    Raw {
        seed,
        folder: String::new(),
        ended: Ok(Ended {
            exit: Exit::Code(0),
            too_long: false,
            stopped: false,
            seconds: 2.0,
            peak_mib: Some(140.0),
            peak_with_children_mib: 300.0,
        }),
        history: log(|_, line| line),
        against: None,
        evaluated: Some(Ok(100.0 + seed as f64)),
        seconds: 3.0,
    }
}

/// That of a machine on which the code was a hundredth faster.
pub(super) fn baseline() -> Reference {
    with_baseline(1.01 * 993.5)
}

pub(super) fn with_baseline(steps_per_s: f64) -> Reference {
    Reference::Baseline(Baseline { steps_per_s, seeds: 3, date: "2026-11-20".into() })
}

/// The verdict where seed 2 is changed.
pub(super) fn with(plan: &CasePlan, change: impl Fn(&mut Raw)) -> CaseResult {
    against(plan, &baseline(), change)
}

pub(super) fn against(
    plan: &CasePlan,
    reference: &Reference,
    change: impl Fn(&mut Raw),
) -> CaseResult {
    let runs: Vec<JudgedRun> = plan
        .seeds
        .iter()
        .map(|&seed| {
            let mut raw = raw(seed);
            if seed == 2 {
                change(&mut raw);
            }
            judge_run(plan, raw)
        })
        .collect();
    judge_case(&case(), plan, runs, reference)
}

pub(super) fn kinds(result: &CaseResult) -> Vec<Kind> {
    let expected = match result.problems().next() {
        Some(_) => Verdict::Failed,
        None => Verdict::Passed,
    };
    assert_eq!(result.verdict, expected, "{result:?}");
    let mut kinds: Vec<Kind> = result.problems().map(|(_, p)| p.kind).collect();
    kinds.sort();
    kinds.dedup();
    kinds
}

/// The kinds of failure where seed 2 logs something else.
fn logged(change: impl Fn(usize, String) -> String) -> Vec<Kind> {
    kinds(&with(&plan(), |r| r.history = log(&change)))
}

fn exited(exit: Exit) -> impl Fn(&mut Raw) {
    move |r| {
        if let Ok(ended) = &mut r.ended {
            ended.exit = exit.clone();
        }
    }
}

#[test]
fn a_case_without_fault_passes() {
    let result = with(&plan(), |_| {});
    assert_eq!(kinds(&result), []);
    assert_eq!(result.checks.len(), 4);
    let ret = result.ret.unwrap();
    assert_eq!((ret.mean, ret.n), (102.0, 3));
    // The first fifth is warm-up; the middle of 992 .. 995.
    assert_eq!(result.steps_per_s, Some(993.5));
    assert_eq!(result.peak_memory_mib, Some(150.0));
}

#[test]
fn the_end_of_the_process_counts_whatever_its_metrics_say() {
    let p = plan();
    assert_eq!(kinds(&with(&p, exited(Exit::Code(1)))), [Kind::ExitCode]);
    assert_eq!(kinds(&with(&p, exited(Exit::Code(130)))), [Kind::ExitCode]);
    let killed = exited(Exit::Signal("SIGKILL".into()));
    assert_eq!(kinds(&with(&p, killed)), [Kind::Signal]);
    let slow = |r: &mut Raw| r.ended.as_mut().unwrap().too_long = true;
    assert_eq!(kinds(&with(&p, slow)), [Kind::TimeLimit]);
    let stopped = |r: &mut Raw| r.ended.as_mut().unwrap().stopped = true;
    assert_eq!(kinds(&with(&p, stopped)), [Kind::Interrupted]);
    let never = |r: &mut Raw| r.ended = Err(std::io::Error::other("no memory"));
    assert_eq!(kinds(&with(&p, never)), [Kind::NotStarted]);
}

#[test]
fn nan_and_infinity_in_what_is_checked_fail_the_case() {
    for tag in ["Guard/broken_envs", "Perf/total_fps", "Loss/surrogate"] {
        for n in 1..=5 {
            let key = format!("\"{tag}\":");
            let found = logged(|line, text| match line == n {
                true => {
                    let at = text.find(&key).unwrap() + key.len();
                    let end = at + text[at..].find([',', '}']).unwrap();
                    format!("{}null{}", &text[..at], &text[end..])
                }
                false => text,
            });
            // Numbers may be late, but a bounded metric may not, nor may what is timed.
            let late = n == 1 && tag != "Guard/broken_envs";
            let expected: &[Kind] = match tag {
                _ if late => &[],
                // Then there is no throughput to compare, either.
                "Perf/total_fps" => &[Kind::MissingMetric, Kind::NotFinite],
                _ => &[Kind::NotFinite],
            };
            assert_eq!(found, expected, "{tag} in iteration {n}");
        }
    }
    let bad = |value: f64| {
        let p = plan();
        kinds(&with(&p, |r| r.evaluated = Some(Ok(value))))
    };
    for value in [f64::NAN, f64::INFINITY, f64::NEG_INFINITY] {
        assert_eq!(bad(value), [Kind::MissingMetric, Kind::NotFinite], "{value}");
    }
    let nan = Problem::new(Kind::NotFinite, "the evaluation");
    let found = kinds(&with(&plan(), |r| r.evaluated = Some(Err(nan.clone()))));
    assert_eq!(found, [Kind::MissingMetric, Kind::NotFinite]);
}

#[test]
fn nan_that_is_allowed_passes_only_where_nothing_is_bounded() {
    let mut p = plan();
    p.expect.nan_allowed = vec!["Loss/*".into(), "Guard/*".into()];
    let gone = |what: &'static str| {
        move |r: &mut Raw| {
            r.history = log(|n, l| match n {
                3 => l.replace(what, "null"),
                _ => l,
            });
        }
    };
    assert_eq!(kinds(&with(&p, gone("0.5"))), []);
    let bounded = with(&p, |r| {
        r.history = log(|_, l| l.replace("broken_envs\":0", "broken_envs\":null"));
    });
    assert_eq!(kinds(&bounded), [Kind::NotFinite]);
}

#[test]
fn a_missing_metric_fails_the_case() {
    for (tag, n) in [("Guard/broken_envs", 3), ("Perf/total_fps", 5)] {
        let found = logged(|line, text| match line == n {
            true => text.replace(tag, "Else/where"),
            false => text,
        });
        assert_eq!(found, [Kind::MissingMetric], "{tag}");
    }
    let none = |r: &mut Raw| r.evaluated = None;
    assert_eq!(kinds(&with(&plan(), none)), [Kind::MissingMetric]);
    let mut training = plan();
    training.expect.return_of = ReturnOf::Training;
    let without = |r: &mut Raw| {
        r.evaluated = None;
        r.history = log(|_, l| l.replace("Train/mean_reward", "Train/reward"));
    };
    assert_eq!(kinds(&with(&training, without)), [Kind::MissingMetric]);
    let mut long = plan();
    long.expect.warm_up = Some(5);
    assert_eq!(kinds(&with(&long, |_| {})), [Kind::MissingMetric]);
}

#[test]
fn an_early_end_fails_the_case() {
    let cut = |r: &mut Raw| {
        r.history = log(|n, l| if n == 5 { String::new() } else { l });
    };
    assert_eq!(kinds(&with(&plan(), cut)), [Kind::EndedEarly]);
    let mut steps = plan();
    steps.amount = Length::EnvSteps { steps: 50, iterations: 5 };
    assert_eq!(kinds(&with(&steps, |_| {})), []);
    steps.amount = Length::EnvSteps { steps: 51, iterations: 5 };
    assert_eq!(kinds(&with(&steps, |_| {})), [Kind::EndedEarly]);
    let mut time = plan();
    time.amount = Length::Time(Duration::from_secs(2));
    assert_eq!(kinds(&with(&time, |_| {})), []);
    time.amount = Length::Time(Duration::from_millis(2100));
    assert_eq!(kinds(&with(&time, |_| {})), [Kind::EndedEarly]);
}

#[test]
fn metrics_that_cannot_be_read_fail_the_case() {
    let found = logged(|n, l| if n == 5 { l.replace('\n', "") } else { l });
    assert_eq!(found, [Kind::DamagedMetrics, Kind::MissingMetric]);
}

#[test]
fn a_return_is_proven_good_proven_bad_or_uncertain() {
    // 101, 102, 103: 95 % interval 102 ± 2.484.
    let at = |threshold: f64, uncertain: bool| {
        let mut p = plan();
        p.expect.return_at_least = Some(threshold);
        p.expect.allow_uncertain = uncertain;
        kinds(&with(&p, |_| {}))
    };
    assert_eq!(at(99.5, false), []);
    assert_eq!(at(99.6, false), [Kind::Uncertain]);
    assert_eq!(at(104.4, false), [Kind::Uncertain]);
    assert_eq!(at(104.4, true), []);
    assert_eq!(at(104.5, true), [Kind::Return]);
    assert_eq!(at(104.5, false), [Kind::Return]);
}

#[test]
fn memory_is_the_largest_that_was_seen_or_logged() {
    let at = |most: f64, seen: Option<f64>| {
        let mut p = plan();
        p.expect.peak_memory_mib = Some(most);
        let size = |r: &mut Raw| r.ended.as_mut().unwrap().peak_mib = seen;
        kinds(&with(&p, size))
    };
    assert_eq!(at(150.0, Some(140.0)), []);
    assert_eq!(at(149.0, Some(140.0)), [Kind::Memory]);
    assert_eq!(at(150.0, Some(150.1)), [Kind::Memory]);
    assert_eq!(at(150.0, None), []);
}

#[test]
fn bounds_hold_for_each_value_for_the_sum_or_for_the_mean() {
    let at = |bound: Bound| {
        let mut p = plan();
        p.expect.metrics = [("Train/mean_reward".to_string(), bound)].into();
        kinds(&with(&p, |_| {}))
    };
    // 20, 40, 60, 80, 100
    let bound = |min: f64, max: f64, of: Aggregate, last: Option<u64>| Bound {
        min: Some(min),
        max: Some(max),
        last,
        of,
        absent: None,
    };
    assert_eq!(at(bound(20.0, 100.0, Aggregate::Each, None)), []);
    assert_eq!(at(bound(21.0, 100.0, Aggregate::Each, None)), [Kind::Bound]);
    assert_eq!(at(bound(20.0, 99.0, Aggregate::Each, None)), [Kind::Bound]);
    assert_eq!(at(bound(80.0, 100.0, Aggregate::Each, Some(2))), []);
    assert_eq!(at(bound(80.0, 100.0, Aggregate::Each, Some(3))), [Kind::Bound]);
    assert_eq!(at(bound(300.0, 300.0, Aggregate::Sum, None)), []);
    assert_eq!(at(bound(299.0, 299.5, Aggregate::Sum, None)), [Kind::Bound]);
    assert_eq!(at(bound(90.0, 90.0, Aggregate::Mean, Some(2))), []);
    assert_eq!(at(bound(91.0, 99.0, Aggregate::Mean, Some(2))), [Kind::Bound]);
    // More iterations are to be checked than there are.
    assert_eq!(at(bound(0.0, 999.0, Aggregate::Each, Some(6))), [Kind::MissingMetric]);
}

#[test]
fn a_run_that_is_not_there_is_no_pass() {
    let p = plan();
    let runs = vec![judge_run(&p, raw(1)), judge_run(&p, raw(3))];
    let result = judge_case(&case(), &p, runs, &baseline());
    assert_eq!(result.verdict, Verdict::Failed);
    assert_eq!(judge_case(&case(), &p, Vec::new(), &baseline()).verdict, Verdict::Failed);
}
