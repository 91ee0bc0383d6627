//! `ostler regress`, from outside: good runs pass, and nothing else does.
//!
//! Reading order: this file (a folder of cases) -> `failures` (each kind of failure) ->
//! `outputs` (reports, several cases) -> `speed` (throughput and its baselines) -> `files`
//! (mistakes in files and arguments) -> `stops` (signals).

mod failures;
mod files;
mod outputs;
mod speed;
mod stops;

use crate::common::Place;
use crate::common::forked::Forked as _;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Output;

/// A case that passes: a run of three iterations of a small cart-pole, in which episodes
/// end.
pub const CASE: &str = r#"
config = "../pole.toml"
set = ["runner.num_steps_per_env=32", "env.num_envs=16"]
seeds = [1]
[budget]
iterations = 3
[expect]
return_of = "training"
return_at_least = 1.0
"#;

/// A folder of cases beside `pole.toml`.
pub struct Suite(pub Place);

impl Suite {
    /// Without a case.
    pub fn empty() -> Self {
        let suite = Self(Place::new());
        std::fs::create_dir(suite.0.path("cases")).unwrap();
        suite
    }

    /// With one case.
    pub fn of(name: &str, text: &str) -> Self {
        let suite = Self::empty();
        suite.case(name, text);
        suite
    }

    /// Writes a case.
    pub fn case(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path(&format!("cases/{name}.toml"));
        std::fs::write(&path, text).unwrap();
        path
    }

    /// `ostler regress cases --out OUT ARGS`, without a GPU.
    pub fn run(&self, out: &str, args: &[&str]) -> Output {
        let mut all = vec!["regress", "cases", "--out", out];
        all.extend(args);
        let mut command = self.0.ostler(&all);
        command.env("CUDA_VISIBLE_DEVICES", "").forked().unwrap()
    }

    /// The same with an exit code to expect; returns the results and standard output.
    pub fn ends(&self, code: i32, out: &str, args: &[&str]) -> (Value, String) {
        let done = self.run(out, args);
        let said = String::from_utf8(done.stdout.clone()).unwrap();
        let err = crate::common::text(&done);
        assert_eq!(done.status.code(), Some(code), "{said}\n{err}");
        assert!(!err.contains("panicked"), "{err}");
        (self.results(out), said)
    }

    /// The results of a suite in `out`.
    pub fn results(&self, out: &str) -> Value {
        let text = self.read(&format!("{out}/results.json"));
        serde_json::from_str(&text).unwrap()
    }

    /// A file of the place.
    pub fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.0.path(name)).unwrap()
    }
}

/// The kinds of all problems of a case, in order.
pub fn kinds(case: &Value) -> Vec<String> {
    let own = case["problem"]["kind"].as_str();
    let list = |key: &str| case[key].as_array().unwrap().clone();
    let runs = list("runs").into_iter().flat_map(|run| {
        let problems = run["problems"].as_array().unwrap().clone();
        problems.into_iter().map(|p| p["kind"].clone())
    });
    let checks = list("checks").into_iter().map(|c| c["kind"].clone());
    let texts = runs.chain(checks).filter_map(|k| Some(k.as_str()?.to_string()));
    own.map(str::to_string).into_iter().chain(texts).collect()
}

/// The kinds of failure of one case that must fail.
pub fn failing(text: &str, args: &[&str]) -> Vec<String> {
    let (results, said) = Suite::of("one", text).ends(1, "out", args);
    let case = &results["cases"][0];
    assert_eq!(case["verdict"], "failed", "{said}");
    let kinds = kinds(case);
    // The line for people says the same.
    assert!(said.starts_with("FAILED  one"), "{said}");
    for kind in &kinds {
        assert!(said.contains(&format!("{kind}: ")), "{kind}\n{said}");
    }
    kinds
}

/// [`CASE`] with one part replaced.
pub fn swap(from: &str, to: &str) -> String {
    assert!(CASE.contains(from), "{from}");
    CASE.replacen(from, to, 1)
}

/// [`CASE`] with more values set.
pub fn set(more: &str) -> String {
    swap("\"env.num_envs=16\"", &format!("\"env.num_envs=16\", {more}"))
}
