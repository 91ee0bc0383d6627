//! Verdicts on throughputs made by hand.

use super::baseline::Throughput;
use super::checks::{Reference, judge_case};
use super::file::Requirement;
use super::judge::judge_run;
use super::judge_tests::{
    against, baseline, case, kinds, log, measured, plan, raw, with, with_baseline,
};
use super::meter::Measured;
use super::verdict::{Kind, Verdict};
use super::yardstick;

#[test]
fn throughput_is_compared_with_the_baseline_of_the_class() {
    let at = |share: f64| {
        let mut p = plan();
        p.expect.throughput_share = Some(share);
        kinds(&with(&p, |_| {}))
    };
    // 2 steps/round of 2.02.
    assert_eq!(at(0.99), []);
    assert_eq!(at(1.0), [Kind::Throughput]);
    // The clock's figure does not matter.
    let slow_clock = with(&plan(), |r| {
        r.history = log(|_, l| l.replace("\"Perf/total_fps\":9", "\"Perf/total_fps\":1"));
    });
    assert_eq!(kinds(&slow_clock), []);
    // One seed of three may look fast, not all: the least counts.
    let fast = |seeds: u64| {
        let p = plan();
        let runs = p.seeds.iter().map(|&seed| {
            let mut raw = raw(seed);
            if seed <= seeds {
                raw.ended.as_mut().unwrap().measured = Some(measured(1.3));
            } else {
                raw.ended.as_mut().unwrap().measured = Some(measured(1.0 / 1.3));
            }
            judge_run(&p, raw)
        });
        let runs = runs.collect();
        kinds(&judge_case(&case(), &p, runs, &baseline()))
    };
    assert_eq!(fast(3), []);
    assert_eq!(fast(2), [Kind::Throughput]);
    assert_eq!(fast(0), [Kind::Throughput]);
    let none = |required| Reference::None { class: "here".into(), required };
    let without = against(&plan(), &none(false), |_| {});
    assert_eq!(kinds(&without), []);
    let check = without.checks.iter().find(|c| c.name == "throughput");
    assert_eq!(check.unwrap().verdict, Verdict::Skipped);
    assert!(check.unwrap().message.contains("no baseline for \"here\""));
    let required = against(&plan(), &none(true), |_| {});
    assert_eq!(kinds(&required), [Kind::NoBaseline]);
    // A baseline that is to be written does not excuse a value that is missing.
    let missing = against(&plan(), &Reference::Update, |r| {
        r.history = log(|_, l| l.replace("total_fps", "fps"));
    });
    assert_eq!(kinds(&missing), [Kind::MissingMetric]);
    for gone in [None, Some(Measured::default())] {
        let missing = against(&plan(), &Reference::Update, |r| {
            r.ended.as_mut().unwrap().measured = gone.clone();
        });
        assert_eq!(kinds(&missing), [Kind::MissingMetric]);
    }
}

#[test]
fn a_baseline_in_another_unit_is_none() {
    let clock = Throughput::Clock { steps_per_s: 1.0 };
    let old = Throughput::Reference { steps_per_round: 1.0, yardstick: yardstick::VERSION + 1 };
    for throughput in [clock, old] {
        let result = against(&plan(), &with_baseline(throughput), |_| {});
        assert_eq!(kinds(&result), [Kind::NoBaseline]);
        assert_eq!(result.throughput_share, None);
    }
}

#[test]
fn a_gpus_throughput_is_that_of_the_clock() {
    let mut case = case();
    case.requires = Some(Requirement::Cuda);
    let at = |steps_per_s: f64| {
        let p = plan();
        let run = |&seed: &u64| {
            let mut raw = raw(seed);
            raw.ended.as_mut().unwrap().measured = None;
            judge_run(&p, raw)
        };
        let runs = p.seeds.iter().map(run).collect();
        let reference = with_baseline(Throughput::Clock { steps_per_s });
        kinds(&judge_case(&case, &p, runs, &reference))
    };
    // 993.5 of them, at least 0.8.
    assert_eq!(at(1240.0), []);
    assert_eq!(at(1243.0), [Kind::Throughput]);
}
