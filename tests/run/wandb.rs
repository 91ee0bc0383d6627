//! `[log.wandb]` with clients of all sorts, none of them real: a script stands in the place of
//! Python. `python/tests/test_learners.py` has the real one.

use crate::common::process::{kill, wait};
use crate::common::{Place, TASK, assert_same_bits, text};
use serde_json::Value;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Answers as the real one does, and keeps what it is told, each start by itself.
const GOOD: &str = r#"
n=0; while ! mkdir "$HERE/told$n" 2>/dev/null; do n=$((n + 1)); done
read -r first; printf '%s\n' "$first" > "$HERE/told$n/first"
echo $$ > "$HERE/told$n/pid"
echo '{"id": "x", "url": null}'
cat > "$HERE/told$n/lines"
echo '{"id": "x", "url": null}'
echo end > "$HERE/told$n/end"
"#;

struct Client {
    place: Place,
}

impl Client {
    /// A task whose client is this script of a shell.
    fn new(script: &str, timeout_s: f64) -> Self {
        let table = format!("[log.wandb]\npython = \"./client\"\ntimeout_s = {timeout_s:?}\n");
        let place = Place::with(&format!("{TASK}{table}project = \"poles\"\ntags = [\"a\"]\n"));
        let here = place.0.path().display().to_string();
        let text = format!("#!/bin/sh\nHERE='{here}'\n{script}");
        let file = place.path("client");
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
        Self { place }
    }

    /// Trains three iterations into `a`; what was said, and how long it took.
    fn train(&self, more: &[&str]) -> (String, Duration) {
        let clock = Instant::now();
        let mut args = vec!["train", "pole.toml", "--allow-native", "--out", "a"];
        args.extend(more);
        let out = self.place.run(&args);
        assert!(out.status.success(), "{}", text(&out));
        let lines = crate::common::metrics(&self.place.path("a"));
        assert_eq!(lines.len(), 3);
        (text(&out), clock.elapsed())
    }

    fn told(&self, start: usize, file: &str) -> String {
        let file = self.place.path(&format!("told{start}")).join(file);
        std::fs::read_to_string(&file).unwrap_or_else(|e| panic!("{file:?}: {e}"))
    }
}

fn warned(said: &str) -> Vec<&str> {
    let lines = said.lines().filter(|l| l.contains("log.wandb"));
    lines.filter(|l| l.contains("WARN")).collect()
}

fn json(line: &str) -> Value {
    serde_json::from_str(line).unwrap_or_else(|e| panic!("{line}: {e}"))
}

/// Whether a process is gone, or nothing of it but its exit code is left.
fn gone(pid: i32) -> Option<()> {
    crate::common::process::parent_of(pid).is_none().then_some(())
}

#[test]
fn the_client_gets_the_lines_of_metrics_and_a_run_that_goes_on_is_the_same_one() {
    let client = Client::new(GOOD, 20.0);
    let (said, _) = client.train(&[]);
    assert_eq!(warned(&said), [""; 0], "{said}");
    let run = client.place.path("a");
    let first = json(&client.told(0, "first"));
    assert_eq!(first["project"], "poles");
    assert_eq!(first["mode"], "offline");
    assert_eq!((&first["name"], &first["tags"][0]), (&"a".into(), &"a".into()));
    assert_eq!(first["config"]["ppo"]["gamma"], 0.99);
    assert_eq!(first["dir"], run.to_str().unwrap());
    let metrics = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    assert_eq!(client.told(0, "lines"), format!("{metrics}{{\"exit\":0}}\n"));

    let more = ["train", "--resume", "a", "--allow-native", "runner.max_iterations=5", "--quiet"];
    client.place.ok(&more);
    let lines = client.told(1, "lines");
    let iterations: Vec<Value> = lines.lines().map(|l| json(l)["iteration"].clone()).collect();
    assert_eq!(iterations, [4.into(), 5.into(), Value::Null]);
    assert_eq!(json(&client.told(1, "first"))["id"], first["id"]);
    let id = first["id"].as_str().unwrap();
    assert!(id.len() == 8 && id.chars().all(|c| c.is_ascii_alphanumeric()), "{id}");
}

#[test]
fn numbers_are_those_of_a_run_without_it() {
    let client = Client::new(GOOD, 20.0);
    client.train(&[]);
    client.place.train("b", 3, &["log.wandb.mode=disabled"]);
    assert_same_bits(&client.place.path("a"), &client.place.path("b"));
    assert!(!client.place.path("b/wandb").exists());
}

#[test]
fn without_the_client_one_warning_says_what_to_install() {
    let script = r#"read x; echo '{"error": "No module named wandb", "missing": true}'"#;
    let client = Client::new(script, 20.0);
    let (said, _) = client.train(&[]);
    let warnings = warned(&said);
    assert_eq!(warnings.len(), 1, "{said}");
    let remedy = "client -m pip install wandb, or name a Python that has it in log.wandb.python";
    assert!(warnings[0].contains(remedy), "{said}");
    assert!(warnings[0].contains("the training goes on without it"), "{said}");

    let refused =
        r#"read x; echo '{"error": "UsageError: api_key not configured", "missing": false}'"#;
    let (said, _) = Client::new(refused, 20.0).train(&[]);
    assert!(warned(&said)[0].contains("`wandb login`"), "{said}");

    std::fs::remove_file(client.place.path("client")).unwrap();
    std::fs::remove_dir_all(client.place.path("a")).unwrap();
    let (said, _) = client.train(&[]);
    assert!(warned(&said)[0].contains("cannot start"), "{said}");
}

#[test]
fn a_client_that_dies_costs_one_warning_with_what_it_printed() {
    for script in [
        "echo broken by hand >&2; exit 7",
        "read x; echo '{\"id\": \"x\", \"url\": null}'; read x; echo broken by hand >&2; exit 7",
    ] {
        let (said, _) = Client::new(script, 20.0).train(&[]);
        let warnings = warned(&said);
        assert_eq!(warnings.len(), 1, "{said}");
        for part in ["exit status: 7", "broken by hand"] {
            assert!(warnings[0].contains(part), "{said}");
        }
    }
    let (said, _) = Client::new("read x; echo nonsense", 20.0).train(&[]);
    assert!(warned(&said)[0].contains("makes no sense"), "{said}");
}

#[test]
fn a_client_that_hangs_is_ended_and_not_waited_for() {
    // Before it begins; then where it takes nothing; then where it does not finish.
    let begun = "echo '{\"id\": \"x\", \"url\": null}'";
    for script in [
        "exec sleep 1000".to_string(),
        format!("{begun}; exec sleep 1000"),
        format!("{begun}; cat > /dev/null; exec sleep 1000"),
    ] {
        let client = Client::new(&format!("echo $$ > $HERE/pid\n{script}"), 1.0);
        let (said, took) = client.train(&[]);
        assert_eq!(warned(&said).len(), 1, "{said}");
        assert!(said.contains("log.wandb.timeout_s"), "{said}");
        assert!(took < Duration::from_secs(30), "{took:?}");
        let pid = std::fs::read_to_string(client.place.path("pid")).unwrap();
        wait("the end of the client", || gone(pid.trim().parse().unwrap()));
    }
}

#[test]
fn more_lines_than_a_client_takes_are_dropped_and_counted() {
    // It begins when all is over.
    let script = "while ! test -e $HERE/a/curve.png; do sleep 0.05; done\n".to_string() + GOOD;
    let client = Client::new(&script, 300.0);
    let args = "train pole.toml --allow-native --out a runner.max_iterations=2300 env.num_envs=1 \
                runner.num_steps_per_env=2 ppo.num_mini_batches=1 ppo.num_learning_epochs=1 \
                runner.eval_interval=0 actor.hidden_dims=[2] critic.hidden_dims=[2]";
    let out = client.place.run(&args.split_whitespace().collect::<Vec<_>>());
    let said = text(&out);
    assert!(out.status.success(), "{said}");
    let lines = client.told(0, "lines");
    assert_eq!(lines.lines().count(), 2001, "{said}");
    assert!(said.contains("300 iterations came faster"), "{said}");
}

/// A training without end in a group of its own.
fn begin(client: &Client, more: &[&str]) -> std::process::Child {
    use std::os::unix::process::CommandExt;
    let args = "train pole.toml --allow-native --out a runner.max_iterations=1000000";
    let mut command: Command = client.place.ostler(&args.split(' ').collect::<Vec<_>>());
    command.args(more).stderr(Stdio::piped()).process_group(0);
    command.spawn().unwrap()
}

fn file(client: &Client, name: &str) -> PathBuf {
    let file = client.place.path(name);
    wait(name, || file.metadata().is_ok_and(|m| m.len() > 0).then_some(()));
    file
}

#[test]
fn control_c_saves_and_finishes_there_too() {
    let client = Client::new(GOOD, 20.0);
    let run = begin(&client, &[]);
    file(&client, "told0/lines");
    // As a terminal sends it: to all of the group.
    kill(-(run.id() as i32), libc::SIGINT);
    let out = run.wait_with_output().unwrap();
    assert_eq!(out.status.code(), Some(130), "{}", text(&out));
    assert!(client.told(0, "lines").ends_with("{\"exit\":0}\n"));
    assert_eq!(client.told(0, "end"), "end\n");
}

#[test]
fn a_process_that_dies_leaves_no_client_and_the_next_one_goes_on_with_the_run() {
    let client = Client::new(GOOD, 20.0);
    let more = ["runner.max_iterations=12", "runner.save_interval=2"];
    let dies = "fault.inject=[\"kill phase=update iteration=8\"]";
    let args = ["train", "pole.toml", "--allow-native", "--quiet", "--out", "a", dies];
    client.place.ok(&[&args[..], &more].concat());
    let ids = [0, 1].map(|n| json(&client.told(n, "first"))["id"].clone());
    assert_eq!(ids[0], ids[1]);
    let pid = client.told(0, "pid").trim().parse().unwrap();
    wait("the end of the first client", || gone(pid));
    // It saw its input end, without a word of how the run did.
    assert!(!client.told(0, "lines").contains("exit"));
    let lines = client.told(1, "lines");
    assert!(lines.ends_with("{\"exit\":0}\n") && lines.contains("\"iteration\":12,"));
}

#[test]
fn a_configuration_does_not_choose_the_program_that_is_started() {
    let client = Client::new("touch $HERE/started", 20.0);
    let why = client.place.fails(2, &["train", "pole.toml", "--out", "a"]);
    assert!(why.contains("log.wandb.python") && why.contains("--allow-native"), "{why}");
    assert!(!Path::new(&client.place.path("started")).exists());
    let tries = [
        ("log.wandb.timeout_s=0", "log.wandb.timeout_s"),
        ("log.wandb.tags=[\"\"]", "1 to 64 characters"),
        ("log.wandb.mode=\"on\"", "online"),
        ("log.wandb.projekt=\"x\"", "log.wandb.project"),
    ];
    for (set, part) in tries {
        let why = client.place.fails(2, &["check", "pole.toml", "--set", set]);
        assert!(why.contains(part), "{set}: {why}");
    }
}
