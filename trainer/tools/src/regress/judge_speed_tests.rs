//! Verdicts on throughputs made by hand.

use super::checks::{Reference, judge_case};
use super::judge::judge_run;
use super::judge_tests::{against, case, kinds, log, plan, raw, with, with_baseline};
use super::verdict::{Exit, Kind, Verdict};

#[test]
fn throughput_is_compared_with_the_baseline_of_the_class() {
    let at = |share: f64| {
        let mut p = plan();
        p.expect.throughput_share = Some(share);
        kinds(&with(&p, |_| {}))
    };
    // 1 of 1.01.
    assert_eq!(at(0.99), []);
    assert_eq!(at(1.0), [Kind::Throughput]);
    let of = |steps_per_s: f64| kinds(&against(&plan(), &with_baseline(steps_per_s), |_| {}));
    // 993.5 of them, at least 0.8.
    assert_eq!(of(1240.0), []);
    assert_eq!(of(1243.0), [Kind::Throughput]);
    let none = |required| Reference::None { class: "here".into(), required };
    let without = against(&plan(), &none(false), |_| {});
    assert_eq!(kinds(&without), []);
    assert_eq!(without.throughput_share, None);
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
}

/// The other program's log, `pace` times as fast as the run's.
fn beside(pace: f64) -> impl Fn(usize, String) -> String {
    move |n, line| {
        let fps = |pace: f64| format!("\"Perf/total_fps\":{}", pace * (990 + n) as f64);
        line.replace(&fps(1.0), &fps(pace))
    }
}

#[test]
fn a_program_beside_it_is_compared_seed_by_seed() {
    // One that is half as fast on its machine's bad day is compared with that day.
    let judged = |paces: [f64; 3]| {
        let p = plan();
        let runs = std::iter::zip(&p.seeds, paces).map(|(&seed, pace)| {
            let mut raw = raw(seed);
            let day = [1.0, 0.5, 3.0][seed as usize % 3];
            raw.history = log(beside(day));
            raw.against =
                Some((Ok(super::judge_tests::raw(1).ended.unwrap()), log(beside(day * pace))));
            judge_run(&p, raw)
        });
        judge_case(&case(), &p, runs.collect(), &Reference::Beside)
    };
    let same = judged([1.0; 3]);
    assert_eq!(kinds(&same), []);
    assert!((same.throughput_share.unwrap() - 1.0).abs() < 1e-12);
    // The median counts.
    assert_eq!(kinds(&judged([1.0, 1.0, 2.0])), []);
    assert_eq!(kinds(&judged([1.0, 1.3, 2.0])), [Kind::Throughput]);
}

#[test]
fn a_program_beside_it_that_fails_is_no_baseline() {
    let fails = |exit: Exit, log_of: &dyn Fn(usize, String) -> String| {
        let result = against(&plan(), &Reference::Beside, |r| {
            let mut ended = raw(1).ended.unwrap();
            ended.exit = exit.clone();
            r.against = Some((Ok(ended), log(log_of)));
        });
        kinds(&result)
    };
    // The seeds without any lack it, too.
    assert_eq!(fails(Exit::Code(0), &|_, l| l), [Kind::MissingMetric]);
    let died = fails(Exit::Signal("SIGKILL".into()), &|_, l| l);
    assert_eq!(died, [Kind::Signal, Kind::MissingMetric]);
    let mute = fails(Exit::Code(0), &|_, l| l.replace("total_fps", "fps"));
    assert_eq!(mute, [Kind::MissingMetric]);
}
