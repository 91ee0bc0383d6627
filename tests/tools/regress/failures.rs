//! Each way to fail, by a real training that fails in that way. The returns are above
//! their thresholds wherever they are known: a harness that looked only at them would
//! pass all of these.

use super::{CASE, Suite, failing, kinds, set, swap};
use crate::common::metrics;

#[test]
fn a_case_without_fault_passes() {
    let text =
        format!("{}[expect.metrics.\"Guard/broken_envs\"]\nmax = 0\n", swap("[1]", "[1, 2]"));
    let (results, said) = Suite::of("one", &text).ends(0, "out", &[]);
    let case = &results["cases"][0];
    assert_eq!(case["verdict"], "passed");
    assert_eq!(kinds(case), [""; 0]);
    assert_eq!(case["return"]["n"], 2);
    assert!(case["return"]["low"].as_f64() < case["return"]["mean"].as_f64());
    assert_eq!(case["runs"][1]["seed"], 2);
    assert_eq!(case["runs"][1]["iterations"], 3);
    assert!(case["peak_memory_mib"].as_f64().unwrap() > 50.0);
    assert!(case["steps_per_s"].as_f64().unwrap() > 0.0);
    assert!(said.starts_with("ok      one"), "{said}");
}

#[test]
fn seeds_are_what_differs_between_runs() {
    let suite = Suite::of("one", &swap("[1]", "[1, 2]"));
    suite.ends(0, "out", &[]);
    suite.ends(0, "again", &["--jobs", "2"]);
    let last = |run: &str| {
        let rows = metrics(&suite.0.path(run));
        rows.last().unwrap()["Train/mean_reward"].as_f64().unwrap()
    };
    assert_ne!(last("out/one/seed_1"), last("out/one/seed_2"));
    assert_eq!(last("out/one/seed_2"), last("again/one/seed_2"));
}

#[test]
fn an_evaluation_judges_the_last_checkpoint() {
    let text = swap("return_of = \"training\"", "episodes = 7");
    let (results, _) = Suite::of("one", &text).ends(0, "out", &[]);
    let of_evaluation = results["cases"][0]["return"]["mean"].as_f64().unwrap();
    assert!(of_evaluation >= 1.0);
    let (results, _) = Suite::of("one", CASE).ends(0, "out", &[]);
    let of_training = results["cases"][0]["return"]["mean"].as_f64().unwrap();
    assert_ne!(of_evaluation, of_training);
}

#[test]
fn a_return_below_its_threshold() {
    let text = swap("return_at_least = 1.0", "return_at_least = 1e6");
    assert_eq!(failing(&text, &[]), ["return"]);
}

#[test]
fn a_return_that_neither_holds_nor_fails_for_certain() {
    // Two seeds say little: their interval is 12.7 standard deviations wide to either side.
    let text = swap("[1]", "[1, 2]")
        .replace("return_at_least = 1.0", "return_at_least = 1.0\nconfidence = 0.9999");
    assert_eq!(failing(&text, &[]), ["uncertain"]);
    let allowed = text + "allow_uncertain = true\n";
    Suite::of("one", &allowed).ends(0, "out", &[]);
}

#[test]
fn a_trainer_that_ends_with_an_exit_code() {
    let text =
        set("'fault.inject=[\"fail allocation phase=update iteration=3\"]', \"back_off.factor=1\"");
    let kinds = failing(&text, &[]);
    assert_eq!(kinds, ["exit_code"]);
    // A configuration that is refused when the run starts: the same.
    assert_eq!(
        failing(&set("'device=\"cuda:0\"'"), &[]),
        ["exit_code", "missing_metric", "missing_metric"]
    );
}

#[test]
fn a_trainer_that_dies_after_its_last_metric() {
    let text = set("'fault.inject=[\"kill phase=save iteration=3\"]'");
    let suite = Suite::of("one", &text);
    let (results, said) = suite.ends(1, "out", &[]);
    let run = &results["cases"][0]["runs"][0];
    assert_eq!(run["iterations"], 3, "all metrics are there");
    assert_eq!(results["cases"][0]["checks"][0]["verdict"], "passed");
    assert_eq!(run["exit"]["signal"], "SIGKILL");
    assert_eq!(kinds(&results["cases"][0]), ["signal"]);
    assert!(said.contains("died of SIGKILL"), "{said}");
}

#[test]
fn a_trainer_that_dies_in_the_middle() {
    let text = set("'fault.inject=[\"abort phase=update iteration=2\"]'");
    assert_eq!(failing(&text, &[]), ["signal"]);
}

#[test]
fn a_metric_that_is_never_a_number() {
    // No episode ends in two steps of an environment, so there is no mean return.
    let text = r#"
config = "../pole.toml"
set = ["runner.num_steps_per_env=1", "runner.init_at_random_ep_len=false"]
seeds = [1]
budget.iterations = 1
"#;
    let suite = Suite::of("one", text);
    let (results, said) = suite.ends(1, "out", &[]);
    let rows = metrics(&suite.0.path("out/one/seed_1"));
    assert!(rows.iter().all(|r| r["Train/mean_reward"].is_null()));
    let kinds = kinds(&results["cases"][0]);
    assert!(!kinds.is_empty() && kinds.iter().all(|k| k == "not_finite"), "{kinds:?}");
    assert!(said.contains("Train/mean_reward was never finite"), "{said}");
    // As a bounded metric and as the return, too.
    let bounded = format!(
        "{text}[expect]\nnan_allowed = [\"*\"]\n[expect.metrics.\"Train/mean_reward\"]\nmin = 0\n"
    );
    assert_eq!(failing(&bounded, &[]), ["not_finite"]);
    let returned = format!(
        "{text}[expect]\nnan_allowed = [\"*\"]\nreturn_of = \"training\"\nreturn_at_least = 0\n"
    );
    assert_eq!(failing(&returned, &[]), ["not_finite", "missing_metric"]);
    let allowed = format!("{text}[expect]\nnan_allowed = [\"Train/*\"]\n");
    Suite::of("one", &allowed).ends(0, "out", &[]);
}

#[test]
fn a_metric_that_stops_being_a_number() {
    // Every minibatch of the second update is skipped, so its losses are means of nothing.
    let text = set("'fault.inject=[\"nan parameter[5] update=2\"]'");
    let suite = Suite::of("one", &text);
    let (results, said) = suite.ends(1, "out", &[]);
    let rows = metrics(&suite.0.path("out/one/seed_1"));
    assert!(rows[0]["Loss/surrogate"].is_f64());
    assert!(rows[1]["Loss/surrogate"].is_null());
    assert!(rows[2]["Loss/surrogate"].is_f64());
    let kinds = kinds(&results["cases"][0]);
    assert!(!kinds.is_empty() && kinds.iter().all(|k| k == "not_finite"), "{kinds:?}");
    assert!(said.contains("Loss/surrogate is not finite in iteration 2"), "{said}");
}

#[test]
fn a_metric_that_is_missing() {
    for tag in ["Train/mean_rewards", "Guard/nan/joint/hinge"] {
        let text = format!("{CASE}[expect.metrics.\"{tag}\"]\nmax = 1e9\n");
        assert_eq!(failing(&text, &[]), ["missing_metric"], "{tag}");
    }
    // A counter that is left out while it is 0.
    let text = format!("{CASE}[expect.metrics.\"Guard/nan/joint/hinge\"]\nmax = 0\nabsent = 0\n");
    Suite::of("one", &text).ends(0, "out", &[]);
}

#[test]
fn a_guard_that_counts_something() {
    let drill = set("'fault.inject=[\"nan qpos[1] env=3 step=50\"]'");
    let text = format!("{drill}[expect.metrics.\"Guard/broken_envs\"]\nmax = 0\n");
    assert_eq!(failing(&text, &[]), ["bound"]);
    let text = format!(
        "{drill}[expect.metrics.\"Guard/nan/joint/hinge\"]\nof = \"sum\"\nabsent = 0\nmin = 1\nmax = 1\n"
    );
    Suite::of("one", &text).ends(0, "out", &[]);
}

#[test]
fn a_run_that_ends_before_its_budget() {
    // Without normalisers no steps go before the first iteration.
    let plain = "\"actor.obs_normalization=false\", \"critic.obs_normalization=false\"";
    // Memory fails, the run goes on with half of its environments and ends with code 0.
    let drill = "'fault.inject=[\"fail allocation phase=collect iteration=2\"]'";
    let text = set(&format!("{plain}, {drill}")).replace("iterations = 3", "env_steps = 1536");
    let suite = Suite::of("one", &text);
    let (results, _) = suite.ends(1, "out", &[]);
    let run = &results["cases"][0]["runs"][0];
    assert_eq!((&run["exit"]["code"], &run["iterations"]), (&0.into(), &3.into()));
    assert_eq!(kinds(&results["cases"][0]), ["ended_early"]);
    let whole = set(plain).replace("iterations = 3", "env_steps = 1536");
    let (results, _) = Suite::of("one", &whole).ends(0, "out", &[]);
    assert_eq!(results["cases"][0]["runs"][0]["iterations"], 3);
}

#[test]
fn a_run_that_takes_too_long() {
    let text = swap("iterations = 3", "iterations = 100_000_000\nlimit = \"2s\"");
    assert_eq!(failing(&text, &[]), ["time_limit"]);
}

#[test]
fn a_run_that_trains_for_a_time_does() {
    let text = swap("iterations = 3", "time = \"2s\"");
    let (results, _) = Suite::of("one", &text).ends(0, "out", &[]);
    assert!(results["cases"][0]["runs"][0]["iterations"].as_u64().unwrap() > 3);
}

#[test]
fn too_much_memory() {
    assert_eq!(failing(&format!("{CASE}peak_memory_mib = 20\n"), &[]), ["memory"]);
    Suite::of("one", &format!("{CASE}peak_memory_mib = 4000\n")).ends(0, "out", &[]);
}

#[test]
fn a_gpu_that_is_not_there() {
    let text = format!("requires = \"cuda\"\n{CASE}");
    assert_eq!(failing(&text, &[]), ["missing_gpu"]);
    let suite = Suite::of("one", &text);
    let (results, said) = suite.ends(0, "out", &["--allow-missing", "gpu"]);
    assert_eq!(results["cases"][0]["verdict"], "skipped");
    assert_eq!(results["counts"]["skipped"], 1);
    assert!(said.starts_with("SKIPPED one"), "{said}");
    assert!(said.contains("1 SKIPPED of 1 cases"), "{said}");
    assert!(suite.read("out/summary.md").contains("**SKIPPED**"));
    assert!(suite.read("out/junit.xml").contains("<skipped"));
    assert!(!suite.0.path("out/one").exists(), "nothing was run");
}
