//! The workflow files' steps, run as they stand: a long step is replaced by a program that
//! checks its arguments, or by the same program told to list what it would do.

use crate::support::need::{self, Need};
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use yaml_rust2::{Yaml, YamlLoader};

fn root() -> PathBuf {
    crate::common::root().canonicalize().unwrap()
}

/// A page that names a file which is gone misleads whoever follows it.
#[test]
fn every_file_that_a_page_names_exists() {
    let docs = fs::read_dir(root().join("docs")).unwrap();
    let mut pages: Vec<PathBuf> = docs.map(|entry| entry.unwrap().path()).collect();
    pages.extend(["README.md", "CONTRIBUTING.md"].map(|page| root().join(page)));
    pages.retain(|page| page.extension().is_some_and(|e| e == "md"));
    let source = |word: &str| {
        let ends = ["rs", "cuh", "h", "cpp", "py", "toml", "json", "yml"];
        let name = word.rsplit('/').next().unwrap_or(word);
        let ending = name.rsplit_once('.').is_some_and(|(_, e)| ends.contains(&e));
        // Not a pattern, nor a place in the reader's own folders.
        let placeholder = ["NAME", "DIR"].iter().any(|name| word.contains(name));
        let plain = !word.contains(['*', '<', ' ']) && !placeholder;
        word.contains('/') && ending && plain
    };
    let mut count = 0;
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        let prose = text.split("```").step_by(2).collect::<String>();
        // Recipes and the architecture also name folders.
        let all = ["recipes.md", "architecture.md"].map(|name| page.ends_with(name));
        for word in prose.split('`').skip(1).step_by(2) {
            let folder = all.contains(&true) && word.contains('/') && !word.contains(' ');
            if source(word) || folder {
                count += 1;
                assert!(root().join(word).exists(), "{}: {word}", page.display());
            }
        }
    }
    assert!(count > 100, "{count}");
}

/// The reading order: each entry's file exists and has the function that it names.
#[test]
fn the_reading_order_names_files_and_functions_that_exist() {
    let text = fs::read_to_string(root().join("CONTRIBUTING.md")).unwrap();
    let order = text.split("Reading order").nth(1).unwrap();
    let numbered = |line: &&str| line.starts_with(|c: char| c.is_ascii_digit());
    let entries: Vec<&str> = order.lines().filter(numbered).take(10).collect();
    assert_eq!(entries.len(), 10, "{entries:?}");
    for entry in entries {
        let quoted: Vec<&str> = entry.split('`').skip(1).step_by(2).collect();
        let file = root().join(quoted[0]);
        assert!(file.exists(), "{entry}");
        for name in quoted.iter().filter(|q| q.contains("::")) {
            let function = format!("fn {}(", name.split("::").last().unwrap());
            let source = fs::read_to_string(&file).unwrap();
            assert!(source.contains(&function), "{entry}: no {function}");
        }
    }
}

/// `license = "A OR B"` of Cargo.toml: LICENSE-A and LICENSE-B, whole.
#[test]
fn every_licence_that_is_named_has_its_text() {
    let manifest: toml::Table =
        toml::from_str(&fs::read_to_string(root().join("Cargo.toml")).unwrap()).unwrap();
    let named = manifest["workspace"]["package"]["license"].as_str().unwrap();
    for (licence, file, last) in [
        ("MIT", "LICENSE-MIT", "DEALINGS IN THE\nSOFTWARE."),
        ("Apache-2.0", "LICENSE-APACHE", "limitations under the License."),
    ] {
        assert!(named.split(" OR ").any(|l| l == licence), "{named}");
        let text = fs::read_to_string(root().join(file)).unwrap();
        assert!(text.trim_end().ends_with(last), "{file}");
    }
    assert_eq!(named.split(" OR ").count(), 2, "a licence without its text");
}

fn workflow(name: &str) -> Yaml {
    let path = root().join(".github/workflows").join(name);
    let text = fs::read_to_string(path).unwrap();
    YamlLoader::load_from_str(&text).unwrap().remove(0)
}

/// The jobs of a workflow with their names.
fn jobs(workflow: &Yaml) -> Vec<(String, Yaml)> {
    let jobs = workflow["jobs"].as_hash().unwrap().iter();
    let jobs = jobs.map(|(name, job)| (name.as_str().unwrap().to_string(), job.clone()));
    let jobs: Vec<_> = jobs.collect();
    for (name, job) in &jobs {
        assert!(!job["runs-on"].is_badvalue(), "{name}");
        assert!(job["timeout-minutes"].as_i64().unwrap() > 0, "{name}");
    }
    jobs
}

/// The one job of a workflow.
fn job(workflow: &Yaml) -> Yaml {
    let mut jobs = jobs(workflow);
    assert_eq!(jobs.len(), 1);
    jobs.remove(0).1
}

/// One of a workflow's jobs.
fn job_named(workflow: &Yaml, name: &str) -> Yaml {
    let mut jobs = jobs(workflow).into_iter();
    jobs.find(|(n, _)| n == name).unwrap().1
}

/// Names and scripts of a job's steps.
fn scripts(job: &Yaml) -> Vec<(String, String)> {
    let steps = job["steps"].as_vec().unwrap();
    let script = |step: &Yaml| {
        assert!(step["uses"].is_badvalue() != step["run"].is_badvalue());
        let run = step["run"].as_str()?.to_string();
        // A `${{` in a script would make a workflow's text part of the script.
        assert!(!run.contains("${{"), "{run}");
        Some((step["name"].as_str().unwrap().to_string(), run))
    };
    steps.iter().filter_map(script).collect()
}

/// A checkout in which nothing is built, and programs in the place of those that take long.
struct Checkout(tempfile::TempDir);

impl Checkout {
    fn new() -> Self {
        let this = Self(tempfile::tempdir().unwrap());
        symlink(root().join("configs"), this.path("configs")).unwrap();
        let note = |name: &str| format!("echo {name} \"$@\" >> {}", this.path("ran").display());
        this.program("bin/cargo", &note("cargo"));
        this.program("bin/rustup", &note("rustup"));
        this.program(".ci/run", &note(".ci/run"));
        this.program(
            "target/release/ostler",
            &format!("{}\nexec {} \"$@\" --list", note("ostler"), env!("CARGO_BIN_EXE_ostler")),
        );
        this.program(
            "bin/python3",
            &format!("{}\nexec env PATH=\"${{PATH#*:}}\" python3 \"$@\" --list", note("python3")),
        );
        this
    }

    /// The bundle of `cargo xtask gpu-bundle`, with empty programs.
    fn bundle(&self) {
        let part = self.path("target/gpu-bundle/part-1");
        fs::create_dir_all(part.join("bin")).unwrap();
        for file in ["run.py", "bundle.json", "versus.py"] {
            fs::copy(root().join("xtask/gpu").join(file), part.join(file)).unwrap();
        }
        fs::write(part.join("bin/ostler"), "").unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn program(&self, name: &str, script: &str) {
        self.write(name, &format!("#!/bin/bash\nset -e\n{script}\n"));
        fs::set_permissions(self.path(name), fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Runs a step as a hosted runner does.
    fn step(&self, script: &str, env: &[(&str, &str)]) -> Output {
        let path = format!("{}:{}", self.path("bin").display(), std::env::var("PATH").unwrap());
        Command::new("bash")
            .args(["--noprofile", "--norc", "-eo", "pipefail", "-c", script])
            .current_dir(self.0.path())
            .env("PATH", path)
            .env("GITHUB_STEP_SUMMARY", self.path("summary"))
            .envs(env.iter().copied())
            .output()
            .unwrap()
    }

    fn ok(&self, script: &str, env: &[(&str, &str)]) -> String {
        let out = self.step(script, env);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        assert!(out.status.success(), "{script}\n{}", text(&out.stderr));
        text(&out.stdout)
    }

    /// The commands that ran, and the text of the summary; both begin anew.
    fn taken(&self, name: &str) -> String {
        let text = fs::read_to_string(self.path(name)).unwrap_or_default();
        let _ = fs::remove_file(self.path(name));
        text
    }
}

/// The commands that `cargo xtask` knows.
fn known(command: &str) -> bool {
    let source = include_str!("../../xtask/src/bin/xtask.rs");
    let usage = source.split("usage: cargo xtask").nth(1).unwrap();
    let usage = usage.split("\";").next().unwrap();
    let mut commands =
        usage.lines().filter_map(|line| line.strip_prefix("  ")?.split_whitespace().next());
    commands.any(|c| c == command)
}

#[test]
fn steps_on_a_hosted_machine_are_one_command_and_a_summary() {
    let job = job(&workflow("ci.yml"));
    let steps = scripts(&job);
    let place = Checkout::new();
    for (name, script) in &steps {
        place.ok(script, &[]);
        if name == "summary" {
            assert_eq!(place.taken("summary"), "The regression did not start.\n");
            place.write("target/regress/summary.md", "all is well\n");
            place.ok(script, &[]);
            assert_eq!(place.taken("summary"), "all is well\n");
        }
    }
    assert!(steps.iter().any(|(name, _)| name == "summary"));
    let ran = place.taken("ran");
    assert_eq!(ran.lines().last(), Some(".ci/run"), "{ran}");
    let mode = fs::metadata(root().join(".ci/run")).unwrap().permissions().mode();
    assert_eq!(mode & 0o111, 0o111);
    let keys = job["steps"].as_vec().unwrap().iter().filter_map(|s| s["with"]["key"].as_str());
    let files: Vec<&str> = keys.flat_map(|key| key.split('\'').skip(1).step_by(2)).collect();
    assert_eq!(files.len(), 2, "what the cache's key is made of");
    for file in files {
        assert!(root().join(file).is_file(), "{file}");
    }
}

/// `.ci/run` with a cargo that only prints and fails at `fails`; the end of its output, after
/// its table of times, which is the second.
fn ci(says: &str, require: Option<&str>, fails: &str) -> (i32, String, String) {
    ci_with(&[], says, require, fails)
}

/// The same with arguments.
fn ci_with(args: &[&str], says: &str, require: Option<&str>, fails: &str) -> (i32, String, String) {
    let place = tempfile::tempdir().unwrap();
    let at = |name: &str| place.path().join(name);
    for folder in [".ci", "bin", "target/debug"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    fs::copy(root().join(".ci/run"), at(".ci/run")).unwrap();
    fs::write(at("says"), says).unwrap();
    let script = |name: &str, text: &str| {
        fs::write(at(name), format!("#!/bin/bash\n{text}\n")).unwrap();
        fs::set_permissions(at(name), fs::Permissions::from_mode(0o755)).unwrap();
    };
    script("target/debug/ostler", "true");
    let says = "[ \"$2\" != test ] || { cat says; echo \"$OSTLER_REQUIRE\" > required; }";
    script("bin/cargo", &format!("{says}; [ \"$2\" != '{fails}' ] && [ \"$2 $3\" != '{fails}' ]"));
    let path = std::env::var("PATH").unwrap();
    // By name: a script that was just written may still be open in a child of another test.
    let out = Command::new("bash")
        .arg(at(".ci/run"))
        .args(args)
        .env("PATH", format!("{}:{path}", at("bin").display()))
        .env_remove("CARGO_TARGET_DIR")
        .env_remove("OSTLER_REQUIRE")
        .envs(require.map(|list| ("OSTLER_REQUIRE", list)))
        .output()
        .unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let required = fs::read_to_string(at("required")).unwrap();
    let (start, end) = text.rsplit_once("\ntotal ").unwrap();
    let table = start.rsplit_once("\nstep ").unwrap().1.to_string();
    let end = end.split_once("\n\n").unwrap().1;
    (out.status.code().unwrap(), format!("{required}{end}"), table)
}

#[test]
fn ci_ends_with_the_proofs_that_are_due_whose_time_is_apart() {
    let counts = "4 passed, 0 failed, 0 skipped\n";
    for (fails, code) in [("", 0), ("nightly", 1), ("lint", 1)] {
        let (ended, _, table) = ci(counts, Some(""), fails);
        assert_eq!(ended, code, "{fails}");
        let first = |line: &str| line.split_whitespace().next().unwrap().to_string();
        let steps: Vec<String> = table.lines().skip(1).map(first).collect();
        let expected = ["install", "lint", "test", "regress", "before", "proofs"];
        assert_eq!(steps, expected, "{table}");
    }
}

#[test]
fn ci_of_a_change_runs_its_tests_and_nothing_after_them() {
    let counts = "4 passed, 0 failed, 0 skipped\n";
    let (code, end, table) = ci_with(&["--changed", "main"], counts, Some(""), "");
    assert_eq!(code, 0);
    assert!(end.ends_with(counts), "{end}");
    assert!(table.contains("\ntest ") && !table.contains("proofs"), "{table}");
    let (code, ..) = ci_with(&["--changed"], counts, Some(""), "test --changed");
    assert_eq!(code, 1);
}

#[test]
fn ci_ends_with_the_tests_that_did_not_run_and_requires_what_its_machine_has() {
    let skipped = "tests that did not run:\n  gpu: gpu a: no driver\n  ignored: b: minutes\n3 passed, 0 failed, 2 skipped\n";
    let before = "test a ... ok\n\ntest result: ok. 4 passed; 0 failed; 1 ignored\n";
    let (code, end, _) = ci(&format!("{before}{skipped}"), Some("disk"), "");
    assert_eq!((code, end), (0, format!("disk\n{skipped}")));
    let part = "tests that ran in part, in full by `cargo xtask nightly`:\n  a b: 1 of 2 states\n";
    let (code, end, _) = ci(&format!("{before}{part}{skipped}"), Some("disk"), "");
    assert_eq!((code, end), (0, format!("disk\n{part}{skipped}")));
    let none = "4 passed, 0 failed, 0 skipped\n";
    let (code, end, _) = ci(&format!("{before}{none}"), None, "");
    assert_eq!(code, 0);
    let (required, end) = end.split_once('\n').unwrap();
    assert_eq!(end, none);
    let needs = need::parse(required).unwrap_or_else(|e| panic!("{e}"));
    for fetched in [Need::Referee, Need::Peers, Need::Nvrtc, Need::Compiler, Need::Python] {
        assert!(needs.contains(&fetched), "{required}");
    }
    let avx2 = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
    assert_eq!(needs.contains(&Need::Avx2), avx2, "{required}");
    let bf16 = std::is_x86_feature_detected!("avx512bf16");
    assert_eq!(needs.contains(&Need::Bf16), bf16, "{required}");
    assert!(!needs.contains(&Need::Gpu), "{required}");
    let (code, end, _) = ci("no line of counts\n", None, "");
    assert!(code == 1 && end.ends_with("no tests were counted\n"), "{end}");
}

#[test]
fn steps_on_a_machine_with_a_gpu_build_measure_and_report() {
    let job = job(&workflow("gpu.yml"));
    let steps = scripts(&job);
    let step = |name: &str| &steps.iter().find(|(n, _)| n == name).unwrap().1;
    let place = Checkout::new();

    place.ok(step("build"), &[]);
    let ran = place.taken("ran");
    assert!(ran.contains("cargo build --release\n"));
    for line in ran.lines().filter_map(|l| l.strip_prefix("cargo xtask ")) {
        assert!(known(line), "cargo xtask {line}");
    }
    assert!(!known("gpu") && known("ci"), "what the usage says");

    place.bundle();
    let listed = place.ok(step("tests and benchmarks"), &[]);
    assert!(listed.contains("versus, ant"), "{listed}");
    // The last call runs; those before it take the parts.
    let last = listed.rsplit("group 1").next().unwrap();
    assert!(!last.contains("regression"), "{listed}");
    let ran = place.taken("ran");
    let run = "python3 target/gpu-bundle/part-1/run.py --home target/gpu-bundle/home";
    for line in
        [format!("{run} --add\n"), format!("{run} --out target/gpu-results --skip regression\n")]
    {
        assert!(ran.contains(&line), "{line}{ran}");
    }

    // Both flags that the workflow may put there, and no other.
    let flags = job["env"]["BASELINES"].as_str().unwrap();
    let flags: Vec<&str> = flags.split('\'').skip(1).step_by(2).collect();
    assert_eq!(flags, ["--update-baselines", "--require-baseline"]);
    for flag in flags {
        let listed = place.ok(step("regression"), &[("BASELINES", flag)]);
        assert!(listed.contains("cartpole"), "{listed}");
        let expected = format!("ostler regress configs/regress/gpu --out target/regress {flag}\n");
        assert_eq!(place.taken("ran"), expected);
    }
    let unknown = place.step(step("regression"), &[("BASELINES", "--no-such-flag")]);
    assert!(!unknown.status.success(), "arguments are looked at");

    place.ok(step("summary"), &[]);
    let summary = place.taken("summary");
    assert_eq!(summary.matches("it did not start").count(), 2, "{summary}");
    place.write("target/gpu-results/summary.md", "tests\n");
    place.write("target/regress/summary.md", "regression\n");
    place.ok(step("summary"), &[]);
    assert_eq!(place.taken("summary"), "tests\nregression\n");
}

/// A workflow of one time every night, and by hand; never for pull requests.
fn is_nightly(workflow: &Yaml) {
    let on = workflow["on"].as_hash().unwrap();
    let events: Vec<&str> = on.keys().filter_map(Yaml::as_str).collect();
    assert_eq!(events, ["schedule", "workflow_dispatch"]);
    let times = workflow["on"]["schedule"].as_vec().unwrap();
    assert_eq!(times.len(), 1);
    let cron = times[0]["cron"].as_str().unwrap();
    let parts: Vec<&str> = cron.split(' ').collect();
    let [minute, hour, rest @ ..] = parts.as_slice() else {
        panic!("{cron}");
    };
    assert!(minute.parse::<u32>().unwrap() < 60 && hour.parse::<u32>().unwrap() < 24);
    assert_eq!(rest, ["*", "*", "*"]);
    // One night's work ends before the next one's begins.
    for (name, job) in jobs(workflow) {
        assert!(job["timeout-minutes"].as_i64().unwrap() < 24 * 60, "{name}");
    }
}

#[test]
fn the_machine_with_a_gpu_works_every_night_and_never_for_pull_requests() {
    let workflow = workflow("gpu.yml");
    is_nightly(&workflow);
    let job = job(&workflow);
    // A result that is not judged fails, unless somebody asked for new baselines.
    let baselines = job["env"]["BASELINES"].as_str().unwrap();
    assert_eq!(
        baselines,
        "${{ inputs.update_baselines && '--update-baselines' || '--require-baseline' }}"
    );
}

/// Others' steps are named with a version, and may read this repository, no more.
#[test]
fn no_workflow_may_write_nor_takes_what_comes() {
    let folder = root().join(".github/workflows");
    let mut names: Vec<String> = fs::read_dir(folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let known = ["ci.yml", "gpu.yml", "nightly.yml", "pages.yml", "release.yml"];
    assert_eq!(names, known);
    for name in names {
        let workflow = workflow(&name);
        let may = workflow["permissions"].as_hash().unwrap();
        assert_eq!(may.len(), 1, "{name}");
        assert_eq!(workflow["permissions"]["contents"].as_str(), Some("read"));
        for (of, job) in jobs(&workflow) {
            let writers = [("release.yml", "attach"), ("pages.yml", "publish")];
            let writes = writers.contains(&(name.as_str(), of.as_str()));
            assert_eq!(job["permissions"].is_badvalue(), !writes, "{name}");
            let steps = job["steps"].as_vec().unwrap().iter();
            for used in steps.filter_map(|s| s["uses"].as_str()) {
                let (action, version) = used.split_once("@v").unwrap();
                assert!(action.starts_with("actions/"), "{used}");
                assert!(version.parse::<u32>().is_ok(), "{used}");
            }
        }
    }
}

/// What a release gets is built by a job that may not write, and attached by one that runs
/// nothing of the repository.
#[test]
fn a_release_gets_the_wheel_and_the_tarball() {
    let workflow = workflow("release.yml");
    let place = Checkout::new();
    for (_, script) in scripts(&job_named(&workflow, "build")) {
        place.ok(&script, &[]);
    }
    let ran = place.taken("ran");
    assert_eq!(ran.lines().last(), Some("cargo xtask dist"), "{ran}");
    assert!(known("dist"));
    // Tried before it is attached, with the oldest Python that the wheel is for and a newer one.
    let check = job_named(&workflow, "check");
    let pythons = check["strategy"]["matrix"]["python"].as_vec().unwrap();
    let pythons: Vec<&str> = pythons.iter().map(|p| p.as_str().unwrap()).collect();
    let package = fs::read_to_string(root().join("python/pyproject.toml")).unwrap();
    let oldest = format!("requires-python = \">={}\"", pythons[0]);
    assert!(package.contains(&oldest) && pythons.len() > 1, "{pythons:?}");
    let tried = scripts(&check);
    assert_eq!(tried[0].1, "python3 xtask/src/dist/check.py dist");
    let attach = job_named(&workflow, "attach");
    let needs = attach["needs"].as_vec().unwrap();
    assert!(needs.iter().any(|n| n.as_str() == Some("check")));
    assert_eq!(attach["permissions"]["contents"].as_str(), Some("write"));
    let steps = attach["steps"].as_vec().unwrap();
    let uses = steps.iter().filter_map(|s| s["uses"].as_str());
    assert_eq!(uses.collect::<Vec<_>>(), ["actions/download-artifact@v4"]);
    let runs: Vec<_> = steps.iter().filter_map(|s| s["run"].as_str()).collect();
    assert_eq!(runs, ["gh release upload \"$TAG\" dist/*"]);
}

/// The book is built by a version of mdBook that was tried, with links out of it rewritten, and
/// published by a job that runs nothing of the repository.
#[test]
fn the_pages_become_a_book_by_a_pinned_mdbook() {
    let workflow = workflow("pages.yml");
    let build = job_named(&workflow, "build");
    let steps = scripts(&build);
    let step = |name: &str| &steps.iter().find(|(n, _)| n == name).unwrap().1;
    let place = Checkout::new();

    // Fetched where it is missing or another one, and no second time.
    place.program("bin/mdbook", "echo mdbook v0.4.0");
    place.ok(step("mdbook"), &[]);
    let install = "cargo install mdbook --version 0.5.4 --locked --force\n";
    assert_eq!(place.taken("ran"), install);
    place.program("bin/mdbook", "echo mdbook v0.5.4");
    place.ok(step("mdbook"), &[]);
    assert!(!place.path("ran").exists(), "fetched again");
    let cached = build["steps"].as_vec().unwrap().iter();
    let mut keys = cached.filter_map(|s| s["with"]["key"].as_str());
    assert_eq!(keys.next(), Some("mdbook-0.5.4"));

    // mdBook's part is played: a page as it hands it to the preprocessor, and back.
    let book: toml::Table = fs::read_to_string(root().join("book.toml")).unwrap().parse().unwrap();
    let links = book["preprocessor"]["repository"]["command"].as_str();
    symlink(root().join("docs"), place.path("docs")).unwrap();
    let page = r#"[{}, {"items": ["Separator", {"Chapter": {"content": "[a](../LICENSE-MIT) [b](../README.md#x)", "sub_items": []}}]}]"#;
    place.write("page.json", page);
    let rewritten = format!(
        "mkdir -p target/book && env PATH=\"${{PATH#*:}}\" {} < page.json > target/book/a.html",
        links.unwrap()
    );
    place.program("bin/mdbook", &rewritten);
    let at = "https://example.org/ostler/blob/main";
    place.ok(step("book"), &[("OSTLER_REPOSITORY", at)]);
    let made = fs::read_to_string(place.path("target/book/a.html")).unwrap();
    let expected = format!("[a]({at}/LICENSE-MIT) [b]({at}/README.md#x)");
    assert!(made.contains(&expected), "{made}");
    let left = "mkdir -p target/book && echo '<a href=\"../README.html\">' > target/book/a.html";
    place.program("bin/mdbook", left);
    assert!(!place.step(step("book"), &[]).status.success());

    let publish = job_named(&workflow, "publish");
    let steps = publish["steps"].as_vec().unwrap();
    assert!(steps.iter().all(|s| s["run"].is_badvalue()));
    assert!(publish["if"].as_str().unwrap().contains("main"));
    let may = publish["permissions"].as_hash().unwrap();
    let may: Vec<_> = may.keys().filter_map(Yaml::as_str).collect();
    assert_eq!(may, ["pages", "id-token"]);
}

#[test]
fn the_crates_are_held_against_all_that_is_asked_of_them_every_night() {
    let workflow = workflow("nightly.yml");
    is_nightly(&workflow);
    let place = Checkout::new();
    for (_, script) in scripts(&job_named(&workflow, "dependencies")) {
        place.ok(&script, &[]);
    }
    let ran = place.taken("ran");
    let cargo: Vec<&str> = ran.lines().filter(|l| l.starts_with("cargo ")).collect();
    let [install, check] = cargo[..] else {
        panic!("{ran}");
    };
    // A version that was tried with this deny.toml, and the versions that it was tried with.
    let version = install.strip_prefix("cargo install cargo-deny --version ");
    let (version, rest) = version.unwrap().split_once(' ').unwrap();
    assert!(version.split('.').all(|n| n.parse::<u32>().is_ok()), "{version}");
    assert_eq!((version.split('.').count(), rest), (3, "--locked"));
    assert_eq!(check, "cargo deny --locked check advisories licenses bans sources");

    let text = fs::read_to_string(root().join("deny.toml")).unwrap();
    let deny: toml::Table = toml::from_str(&text).unwrap();
    let value = |table: &str, key: &str| deny[table][key].as_str().unwrap();
    assert_eq!(value("advisories", "yanked"), "deny");
    // An advisory that is let pass is a decision, to be taken here too.
    assert_eq!(deny["advisories"]["ignore"].as_array().unwrap().len(), 0);
    assert_eq!(value("bans", "multiple-versions"), "warn");
    assert_eq!(value("bans", "wildcards"), "deny");
    let sources = deny["sources"].as_table().unwrap();
    let kinds = ["unknown-git", "unknown-registry"];
    assert_eq!(sources.keys().collect::<Vec<_>>(), kinds, "others allowed");
    assert!(kinds.iter().all(|kind| value("sources", kind) == "deny"));
    let licences = deny["licenses"]["allow"].as_array().unwrap();
    let licences: Vec<&str> = licences.iter().map(|l| l.as_str().unwrap()).collect();
    assert!(licences.contains(&"MIT") && licences.contains(&"Apache-2.0"));
    for licence in licences {
        assert!(!licence.contains("GPL"), "{licence}");
    }
}

/// Proofs of which `.ci/run` takes a share, in full, whatever the record says.
#[test]
fn every_night_all_proofs_are_run_in_full() {
    let place = Checkout::new();
    for (_, script) in scripts(&job_named(&workflow("nightly.yml"), "proofs")) {
        place.ok(&script, &[]);
    }
    let ran = place.taken("ran");
    assert_eq!(ran.lines().last(), Some("cargo xtask nightly --all"), "{ran}");
    assert!(known("nightly"));
}

/// What a release would get, of a machine that has no crate, and tried as the release's.
#[test]
fn every_night_a_wheel_is_made_from_nothing_and_tried() {
    let wheel = job_named(&workflow("nightly.yml"), "wheel");
    let steps = wheel["steps"].as_vec().unwrap();
    let uses: Vec<_> = steps.iter().filter_map(|s| s["uses"].as_str()).collect();
    assert_eq!(uses, ["actions/checkout@v4"], "no cache");
    let place = Checkout::new();
    let ran = place.path("ran");
    let note =
        format!("ls -A \"$CARGO_HOME\" | wc -l >> {0}; echo cargo \"$@\" >> {0}", ran.display());
    place.program("bin/cargo", &note);
    let scripts = scripts(&wheel);
    let step = |name: &str| &scripts.iter().find(|(n, _)| n == name).unwrap().1;
    place.ok(step("dist"), &[]);
    assert_eq!(place.taken("ran"), "0\ncargo xtask dist\n");
    let check = "python3 xtask/src/dist/check.py target/dist/out";
    assert_eq!(step("check"), check);
    assert!(root().join("xtask/src/dist/check.py").is_file());
}

/// The nightly check of where crates come from, at every change.
#[test]
fn crates_come_from_the_registry_with_a_checksum() {
    let text = fs::read_to_string(root().join("Cargo.lock")).unwrap();
    let lock: toml::Table = toml::from_str(&text).unwrap();
    let packages = lock["package"].as_array().unwrap();
    let table = |file: &Path| -> toml::Table {
        toml::from_str(&fs::read_to_string(file).unwrap()).unwrap()
    };
    let workspace = table(&root().join("Cargo.toml"));
    let members = workspace["workspace"]["members"].as_array().unwrap().iter();
    let name = |folder: &toml::Value| {
        let package = table(&root().join(folder.as_str().unwrap()).join("Cargo.toml"));
        package["package"]["name"].as_str().unwrap().to_owned()
    };
    let mut own: Vec<String> = members.map(name).collect();
    own.sort();
    let mut seen = Vec::new();
    for package in packages {
        let name = package["name"].as_str().unwrap();
        let Some(source) = package.get("source") else {
            seen.push(name);
            continue;
        };
        let source = source.as_str().unwrap();
        assert!(source.starts_with("registry+"), "{name}: {source}");
        let checksum = package["checksum"].as_str().unwrap();
        assert_eq!(checksum.len(), 64, "{name}");
    }
    assert_eq!(seen, own, "others that come from nowhere");
    assert!(packages.len() > own.len());
}
