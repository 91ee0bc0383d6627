//! `ostler report`.

use super::{browser, configs, odd, ostler};
use crate::common::forked::Forked as _;
use serde_json::Value;
use std::path::Path;
use std::sync::LazyLock;

fn run(dir: &Path, args: &[&str]) -> std::process::Output {
    ostler().args(args).current_dir(dir).forked().unwrap()
}

fn ok(dir: &Path, args: &[&str]) {
    let out = run(dir, args);
    let err = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{args:?}: {err}");
}

/// The report of two seeds and of another learning rate, and where it is; one for all tests.
fn report() -> &'static (tempfile::TempDir, String, Value) {
    static REPORT: LazyLock<(tempfile::TempDir, String, Value)> = LazyLock::new(|| {
        let dir = tempfile::tempdir().unwrap();
        let (text, data) = reported(dir.path());
        (dir, text, data)
    });
    &REPORT
}

fn reported(dir: &Path) -> (String, Value) {
    // Little to draw: pictures are others' tests.
    let config = configs().join("cartpole.toml");
    for (name, more) in [("a1", "seed=1"), ("a2", "seed=2"), ("b", "ppo.learning_rate=0.0003")] {
        let long = "runner.max_iterations=4";
        let short = "env.episode_length_s=0.1";
        // An evaluation is longer than the whole run: it is not made unasked.
        let judged = "runner.eval_interval=4";
        let few = "env.num_envs=16";
        let args = ["train", config.to_str().unwrap(), "--quiet", "--out", name];
        ok(dir, &[&args[..], &[more, few, long, short, judged]].concat());
    }
    let evil = "</script><script>document.body.remove()</script>=b";
    ok(dir, &["report", "two seeds=a1", "two seeds=a2", evil, "--html", "r.html"]);
    let text = std::fs::read_to_string(dir.join("r.html")).unwrap();
    let (_, rest) = text.split_once("id=\"data\">").unwrap();
    let data = serde_json::from_str(rest.split_once("</script>").unwrap().0).unwrap();
    (text, data)
}

#[test]
fn a_report_has_what_the_runs_logged_and_in_what_they_differ() {
    let (dir, text, data) = report();
    assert_eq!(text.matches("<script").count(), 3);
    let runs = data["runs"].as_array().unwrap();
    assert_eq!(runs.len(), 3);
    // Each number is that of the run's own metrics.
    for (run, name) in runs.iter().zip(["a1", "a2", "b"]) {
        let lines = std::fs::read_to_string(dir.path().join(name).join("metrics.jsonl")).unwrap();
        for (i, line) in lines.lines().enumerate() {
            let line: Value = serde_json::from_str(line).unwrap();
            assert_eq!(run["steps"][i], line["env_steps"].as_f64().unwrap());
            for tag in
                ["Train/mean_reward", "Loss/value_function", "Perf/total_fps", "Memory/rss_mib"]
            {
                let (ours, theirs) = (&run["tags"][tag][i], &line[tag]);
                match theirs.as_f64() {
                    Some(x) => {
                        assert!((ours.as_f64().unwrap() - x).abs() <= 1e-5 * x.abs(), "{tag}")
                    }
                    None => assert!(ours.is_null(), "{tag}: {ours}"),
                }
            }
        }
        assert!(run["meta"]["command_line"].is_array(), "{}", run["meta"]);
    }
    let bands = data["bands"].as_array().unwrap();
    let both = bands.iter().find(|b| b["label"] == "two seeds" && b["tag"] == "Eval/mean_reward");
    let both = both.unwrap_or_else(|| panic!("{bands:?}"));
    assert_eq!(both["runs"], 2);
    assert!(both["low"][0].as_f64().unwrap() <= both["mean"][0].as_f64().unwrap());
    let rows = data["configs"]["rows"].as_array().unwrap();
    let differs = |r: &&Value| r[1][0] != r[1][1] || r[1][1] != r[1][2];
    let mut keys: Vec<&str> = rows.iter().filter(differs).map(|r| r[0].as_str().unwrap()).collect();
    // The kernel may be named by what the machine has.
    keys.retain(|k| !k.starts_with("sim."));
    assert_eq!(keys, ["ppo.learning_rate", "seed"]);
    assert_eq!(data["pictures"].as_array().unwrap().len(), 2, "one of each label");
}

#[test]
fn a_browser_draws_a_report_and_asks_for_nothing() {
    let Some(mut browser) = browser::open(1200, 900) else {
        return;
    };
    let (dir, _, _) = report();
    let url = format!("file://{}", dir.path().join("r.html").display());
    browser.show(&url);
    assert!(browser.eval("report.plots().length").as_u64().unwrap() > 10);
    browser.eval("document.getElementById('over').value = 'time'; document.getElementById('over').onchange()");
    let title = browser.eval("document.title");
    assert!(title.as_str().unwrap().contains("<script>"), "names are text: {title}");
    assert!(
        browser.eval("document.querySelectorAll('#config tr.differs').length").as_u64() >= Some(2)
    );
    assert!(browser.errors.is_empty(), "{:?}", browser.errors);
    let outside = |r: &&String| **r != url && !r.starts_with("data:");
    assert_eq!(browser.requests.iter().find(outside), None);
}

#[test]
fn what_is_no_run_is_refused() {
    let dir = odd();
    for (args, says) in
        [(["report", "no/such/run"], "no such folder"), (["report", "."], "no metrics.jsonl")]
    {
        let out = run(dir.path(), &args);
        let err = String::from_utf8_lossy(&out.stderr);
        assert_eq!(out.status.code(), Some(2), "{err}");
        assert!(err.contains(says), "{err}");
    }
}
