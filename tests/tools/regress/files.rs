//! Wrong files and wrong use: exit code 2, with the place, and nothing is run.

use super::{CASE, Suite, swap};
use crate::common::forked::Forked as _;
use crate::common::{root, text};

fn refused(suite: &Suite, args: &[&str]) -> String {
    let out = suite.run("out", args);
    let err = text(&out);
    assert_eq!(out.status.code(), Some(2), "{err}");
    assert!(!err.contains("panicked"), "{err}");
    let ran = suite.0.path("out/results.json").exists();
    assert!(!ran, "{err}");
    err
}

#[test]
fn mistakes_are_shown_where_they_stand() {
    let short = |part: &str| format!("{CASE}[short]\n{part}");
    for (text, expected) in [
        (
            swap("iterations = 3", "iteration = 3"),
            "one.toml:6:1: unknown key \"iteration\" in [budget]\n  6 | iteration = 3\n    | ^^^^^^^^^\n  did you mean budget.iterations?",
        ),
        (swap("seeds", "seed"), "one.toml:4:1: unknown key \"seed\""),
        (swap("[1]", "[]"), "one.toml:4:9: seeds: one run for each seed"),
        (swap("[1]", "[1, 1]"), "one.toml:4:9: seeds: a seed that is there twice"),
        (swap("[1]", "[-1]"), "one.toml:4:10: seeds[0]: a whole number from 0 on is expected"),
        (swap("[1]", "\"1\""), "one.toml:4:9: seeds takes a list"),
        (swap("iterations = 3", "iterations = 0"), "one.toml:6:14: budget.iterations: 1 or more"),
        (swap("iterations = 3", "iterations = 3\ntime = \"1m\""), "budget: exactly one of"),
        (swap("iterations = 3", "limit = \"1m\""), "one.toml:5:2: budget: exactly one of"),
        (
            swap("iterations = 3", "time = \"soon\""),
            "one.toml:6:8: budget.time: \"soon\" is not a time",
        ),
        (swap("iterations = 3", "time = \"2m\"\nlimit = \"1m\""), "one.toml:7:9: budget.limit"),
        (
            swap("\"training\"", "\"train\""),
            "one.toml:8:13: expect.return_of: \"train\" is not known here",
        ),
        (swap("1.0", "nan"), "one.toml:9:19: expect.return_at_least cannot be nan"),
        (swap("1.0", "1.0\nconfidence = 1.5"), "one.toml:10:14: expect.confidence"),
        (swap("1.0", "1.0\nepisodes = 0"), "one.toml:10:12: expect.episodes"),
        (swap("1.0", "1.0\nthroughput_share = 0"), "one.toml:10:20: expect.throughput_share"),
        (
            format!("requires = \"tpu\"\n{CASE}"),
            "one.toml:1:12: requires: \"tpu\" is not known here",
        ),
        (format!("name = \"../x\"\n{CASE}"), "one.toml:1:8: name: \"../x\" names a folder"),
        (format!("{CASE}[expect.metrics.\"Loss/surrogate\"]\n"), "a bound needs min, max or both"),
        (
            format!("{CASE}[expect.metrics.\"Loss/surrogate\"]\nmin = 2\nmax = 1\n"),
            "min 2 is larger than max 1",
        ),
        (
            format!("{CASE}[expect.metrics.\"Loss/surrogate\"]\nmax = 1\nabsent = 0\n"),
            "only counters below Guard/",
        ),
        (
            format!("{CASE}[expect.metrics.\"Loss/surrogate\"]\nmaxi = 1\n"),
            "one.toml:11:1: unknown key \"maxi\"",
        ),
        (
            swap("../pole.toml", "../pale.toml"),
            "one.toml:2:10: config: there is no file cases/../pale.toml",
        ),
        (
            swap("env.num_envs=16", "env.num_env=16"),
            "cases/one.toml: set[1]: unknown key \"num_env\"",
        ),
        (
            swap("env.num_envs=16", "runner.supervise=true"),
            "one.toml:3:39: set[1]: runner.supervise cannot be set here",
        ),
        (swap("env.num_envs=16", "runner.max_iterations=9"), "the key is budget.iterations"),
        (swap("env.num_envs=16", "seed=9"), "the key is seeds"),
        (short("seeds = [1]\n"), "short.budget"),
        (short("budget.iterations = 1\n"), "short.seeds"),
        ("[expect".into(), "one.toml:1:8: not valid TOML"),
    ] {
        let suite = Suite::of("one", &text);
        let err = refused(&suite, &[]);
        assert!(err.contains(expected), "{expected}\n--- but\n{err}");
    }
}

#[test]
fn all_files_are_looked_at_before_anything_runs() {
    let suite = Suite::of("one", CASE);
    suite.case("three", &swap("seeds", "sedes"));
    suite.case("two", &swap("iterations", "iterates"));
    let err = refused(&suite, &[]);
    assert!(err.contains("three.toml:4:1") && err.contains("two.toml:6:1"), "{err}");
    // Even those that were not asked for.
    refused(&suite, &["--only", "one"]);
}

#[test]
fn a_suite_of_nothing_is_wrong_use() {
    let suite = Suite::empty();
    assert!(refused(&suite, &[]).contains("nothing would be tested"));
    suite.case("one", CASE);
    let err = refused(&suite, &["--short"]);
    assert!(err.contains("no case of cases has a [short] part"), "{err}");
    let err = refused(&suite, &["--only", "two"]);
    assert!(err.contains("--only two matches no case of cases: one"), "{err}");
    refused(&suite, &["--jobs", "0"]);
    refused(&suite, &["--allow-missing", "memory"]);
    refused(&suite, &["--update-baselines", "--require-baseline"]);
    refused(&suite, &["--against", "ostler", "--update-baselines"]);
    suite.0.fails(2, &["regress"]);
    let err = suite.0.fails(2, &["regress", "nowhere"]);
    assert!(err.contains("cannot look for regression files in nowhere"), "{err}");
}

#[test]
fn two_cases_of_one_name_are_wrong_use() {
    let suite = Suite::of("one", CASE);
    suite.case("two", &format!("name = \"One\"\n{CASE}"));
    let err = refused(&suite, &[]);
    assert!(err.contains("cases/one.toml and cases/two.toml both have a case"), "{err}");
}

#[test]
fn old_results_are_never_taken_for_new_ones() {
    let suite = Suite::of("one", CASE);
    suite.ends(0, "out", &[]);
    let out = suite.run("out", &[]);
    assert_eq!(out.status.code(), Some(2));
    assert!(text(&out).contains("out is not empty: old results"), "{}", text(&out));
}

#[test]
fn damaged_baselines_are_refused() {
    let suite = Suite::of("one", CASE);
    std::fs::write(suite.0.path("cases/baselines.json"), "{\"version\": 1}").unwrap();
    let err = refused(&suite, &[]);
    assert!(err.contains("cases/baselines.json cannot be used"), "{err}");
}

#[test]
fn the_suites_of_the_repository_are_whole() {
    let configs = root().join("configs/regress");
    let suite = Suite::empty();
    for (folder, form) in
        [("", None), ("", Some("--short")), ("gpu", None), ("gpu", Some("--short"))]
    {
        let dir = configs.join(folder);
        let mut args = vec!["regress", dir.to_str().unwrap(), "--list"];
        args.extend(form);
        let list = suite.0.ok(&args);
        assert!(list.lines().count() >= 3, "{list}");
        let gpu = list.lines().filter(|l| l.ends_with(", requires a GPU")).count();
        let expected = if folder.is_empty() { 0 } else { list.lines().count() };
        assert_eq!(gpu, expected, "{list}");
    }
}

#[test]
fn the_gpu_suite_fails_without_a_gpu() {
    let configs = root().join("configs/regress/gpu");
    let suite = Suite::empty();
    let run = |out: &str, more: &[&str]| {
        let mut args = vec!["regress", configs.to_str().unwrap(), "--out", out];
        args.extend(more);
        let mut command = suite.0.ostler(&args);
        let done = command.env("CUDA_VISIBLE_DEVICES", "").forked().unwrap();
        (done.status.code(), suite.results(out))
    };
    let (code, results) = run("failing", &[]);
    assert_eq!(code, Some(1));
    assert_eq!(results["counts"]["failed"], results["counts"]["cases"]);
    for case in results["cases"].as_array().unwrap() {
        assert_eq!(super::kinds(case), ["missing_gpu"]);
    }
    let (code, results) = run("skipping", &["--allow-missing", "gpu"]);
    assert_eq!(code, Some(0));
    assert_eq!(results["counts"]["skipped"], results["counts"]["cases"]);
}
