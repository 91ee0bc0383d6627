//! A run's end in words, from what it left behind.

use crate::common::process::names;
use crate::common::{Place, metrics, tensors, text};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::Output;

/// Two cells of the table.
pub struct Seen {
    pub did: String,
    pub lost: String,
}

impl Seen {
    /// With more to the first cell, and to the second.
    pub fn and(mut self, did: &str, lost: Option<String>) -> Self {
        self.did = format!("{}; {did}", self.did);
        match lost {
            Some(lost) if self.lost == NOTHING => self.lost = lost,
            Some(lost) => self.lost = format!("{}, {lost}", self.lost),
            None => {}
        }
        self
    }
}

/// Iterations of every run here.
pub const ITERATIONS: u64 = 6;
/// Its environments, where a case has no others.
const ENVS: u64 = 8;
const NOTHING: &str = "nothing";

/// A run that was given its fault, and has ended.
pub struct Tried {
    pub place: Place,
    pub run: PathBuf,
    pub output: Output,
    /// Environments that it was to have.
    pub envs: u64,
}

/// Trains with arguments of this case.
pub fn train(more: &[&str]) -> Tried {
    let n = format!("runner.max_iterations={ITERATIONS}");
    let mut args = vec!["train", "pole.toml", "--quiet", "--out", "a"];
    args.extend([n.as_str(), "runner.save_interval=2", "log.curve=false"]);
    // A best evaluation would be a checkpoint more.
    args.push("runner.eval_interval=0");
    args.extend(more);
    let place = Place::new();
    let output = place.run(&args);
    Tried::new(place, output)
}

/// Trains with one drill.
pub fn drill(fault: &str) -> Tried {
    train(&["--inject", fault])
}

impl Tried {
    /// A run in the folder `a`.
    pub fn new(place: Place, output: Output) -> Self {
        let run = place.path("a");
        Self { place, run, output, envs: ENVS }
    }

    pub fn err(&self) -> String {
        text(&self.output)
    }

    /// The end, asserted: the exit code, and that nothing panicked on the way out.
    pub fn ends(self, code: i32) -> Self {
        let err = self.err();
        assert_eq!(self.output.status.code(), Some(code), "{err}");
        assert!(!err.contains("panicked at trainer"), "{err}");
        self
    }

    /// The run of most cases: it goes to its end.
    pub fn goes_on(self) -> Seen {
        let this = self.ends(0);
        let (err, recorded) = (this.err(), metrics(&this.run).len() as u64);
        assert_eq!(recorded, ITERATIONS, "{err}");
        this.look()
    }

    /// The actions and losses of the run, from its exit code, its folder and its log.
    pub fn look(&self) -> Seen {
        let status = self.output.status;
        let code = status.code();
        if !self.run.is_dir() {
            let code = code.map_or("a signal".into(), |c| format!("exit code {c}"));
            return Seen {
                did: format!("refused with {code}; no folder was made"),
                lost: NOTHING.into(),
            };
        }
        let (mut did, mut lost) = words(&self.run, self.envs);
        let recorded = recorded(&self.run);
        let saved = saved(&self.run).pop();
        let done = recorded.max(saved.unwrap_or(0));
        let whole = done == planned(&self.run);
        let end = match (code, status.signal()) {
            (Some(0), _) if whole => "went on".into(),
            (Some(0), _) => "ended early".into(),
            (Some(130), _) if saved == Some(done) => {
                "saved its last iteration, exit code 130".into()
            }
            (Some(code), _) if whole => format!("trained to its end, exit code {code}"),
            (Some(code), _) => format!("stopped with exit code {code}"),
            (None, Some(libc::SIGKILL)) => "died of SIGKILL".into(),
            (None, signal) => format!("died of signal {}", signal.unwrap_or(0)),
        };
        let log = std::fs::read_to_string(self.run.join("log.txt")).unwrap_or_default();
        for (line, said) in SAID {
            match log.matches(line).count() {
                0 => {}
                1 => did.push(format!("said once that {said}")),
                n => did.push(format!("said {n} times that {said}")),
            }
        }
        if !names(self.run.join("failure")).is_empty() {
            did.push("wrote a report".into());
        }
        if recorded < done {
            lost.push("the later records of metrics".into());
        }
        if saved.is_none() {
            lost.push("every checkpoint".into());
        }
        if lost.is_empty() {
            lost.push(NOTHING.into());
        }
        let did = match did.is_empty() {
            true => end,
            false => format!("{end}: {}", did.join("; ")),
        };
        Seen { did, lost: lost.join(", ") }
    }

    /// `--resume` for one iteration more than there were or, if that is more, to the end
    /// that was planned.
    pub fn resume(&self, more: &[&str]) -> Resumed {
        let (done, newest) = (recorded(&self.run), saved(&self.run).pop());
        let to = match planned(&self.run) {
            n if n < FOR_EVER => n.max(done + 1),
            _ => done + 1,
        };
        let n = format!("runner.max_iterations={to}");
        let args = ["train", "--resume", "a", "--quiet", &n];
        self.place.ok(&[&args, more].concat());
        // Every iteration once, none twice.
        assert_eq!(recorded(&self.run), to);
        let meta = std::fs::read(self.run.join("meta.json")).unwrap();
        let meta: serde_json::Value = serde_json::from_slice(&meta).unwrap();
        Resumed {
            done,
            newest: newest.unwrap(),
            from: meta["resumed_at_iteration"].as_u64().unwrap(),
        }
    }

    /// The same as `goes_on`, and its last checkpoint is that of a run without the fault.
    pub fn same_bits(self) -> Seen {
        let clean = train(&[]).ends(0);
        let bits = tensors(&clean.run) == tensors(&self.run);
        assert!(bits, "other bits\n{}", self.err());
        let seen = self.goes_on();
        assert_eq!(seen.lost, NOTHING);
        Seen { lost: "nothing (same bits)".into(), ..seen }
    }
}

/// Iterations of a run that only a signal ends.
pub const FOR_EVER: u64 = 1_000_000;

/// Messages that a log may contain, with their meanings.
const SAID: [(&str, &str); 6] = [
    ("cannot write metrics", "metrics cannot be written"),
    ("vanished and is made again", "the folder of checkpoints is made again"),
    ("cut short or damaged", "a checkpoint is damaged"),
    ("environments do not fit", "so many environments do not fit"),
    ("cannot write the checkpoint", "a checkpoint cannot be written"),
    ("the run is given up", "it gives up"),
];

/// Where a run went on.
pub struct Resumed {
    /// Iterations before, of which there was a record.
    done: u64,
    /// Iteration of the newest checkpoint before.
    newest: u64,
    from: u64,
}

impl Resumed {
    /// Adds what there is to say.
    pub fn after(&self, seen: Seen) -> Seen {
        let Self { done, from, .. } = *self;
        match done.saturating_sub(from) {
            0 => seen.and("`--resume` went on from there", None),
            n => seen.and(
                &format!("`--resume` went on from iteration {from}"),
                Some(format!("{}, done again", count(n, "iteration", "iterations"))),
            ),
        }
    }

    /// The same after a death at any moment, whose iterations no two tries have alike.
    pub fn after_death(&self, seen: Seen) -> Seen {
        let lost = match self.newest.checked_sub(self.from) {
            Some(0) => "the work since its last checkpoint".into(),
            Some(n) => count(n, "saved iteration", "saved iterations"),
            None => panic!("{} after {}", self.from, self.newest),
        };
        seen.and("`--resume` went on", Some(lost))
    }
}

/// The last iteration of which there is a record; each before has one, too.
pub fn recorded(run: &Path) -> u64 {
    let iterations = metrics(run).into_iter().map(|l| l["iteration"].as_u64());
    let iterations: Vec<u64> = iterations.map(|n| n.unwrap()).collect();
    let last = iterations.len() as u64;
    let all: Vec<u64> = (1..=last).collect();
    assert_eq!(iterations, all, "iterations twice, or left out");
    last
}

/// Iterations of the checkpoints, in order.
pub fn saved(run: &Path) -> Vec<u64> {
    let number = |name: &String| {
        let name = name.strip_prefix("iter_")?;
        name.strip_suffix(".safetensors")?.parse().ok()
    };
    let all = names(run.join("checkpoints"));
    let mut all: Vec<u64> = all.iter().filter_map(number).collect();
    all.sort_unstable();
    all
}

/// `runner.max_iterations` of the run's own configuration.
fn planned(run: &Path) -> u64 {
    let text = std::fs::read_to_string(run.join("config.toml")).unwrap();
    let config: toml::Value = toml::from_str(&text).unwrap();
    let n = config["runner"]["max_iterations"].as_integer().unwrap();
    n as u64
}

fn count(n: u64, one: &str, more: &str) -> String {
    match n {
        1 => format!("1 {one}"),
        n => format!("{n} {more}"),
    }
}

/// Sums a tag over all iterations.
fn sum(lines: &[serde_json::Value], tag: &str) -> u64 {
    let of = |l: &serde_json::Value| l[tag].as_f64().unwrap_or(0.0);
    lines.iter().map(of).sum::<f64>() as u64
}

/// Events and losses, from metrics and log, of a run that was to have so many environments.
fn words(run: &Path, envs: u64) -> (Vec<String>, Vec<String>) {
    let lines = metrics(run);
    let log = std::fs::read_to_string(run.join("log.txt")).unwrap_or_default();
    let (mut did, mut lost) = (Vec::new(), Vec::new());
    let restarts = log.matches("supervisor: the training").count();
    if restarts > 0 {
        did.push(format!("started again ({restarts}x)"));
    }
    let broken = sum(&lines, "Guard/broken_envs");
    if broken > 0 {
        let mut causes: Vec<String> = lines
            .iter()
            .flat_map(|l| l.as_object().unwrap().keys())
            .filter_map(|k| k.strip_prefix("Guard/"))
            .filter(|k| k.contains('/'))
            .map(|k| format!("`{k}`"))
            .collect();
        causes.sort();
        causes.dedup();
        did.push(format!("reset and masked the environment ({})", causes.join(", ")));
    }
    let skipped = sum(&lines, "Guard/skipped_minibatches");
    if skipped > 0 {
        did.push(format!("skipped {}", count(skipped, "minibatch", "minibatches")));
    }
    let back = lines.last().map_or(0, |l| sum(std::slice::from_ref(l), "Guard/roll_backs"));
    if back > 0 {
        did.push(format!("rolled back to good weights ({back}x)"));
        let thrown = lines.iter().filter(|l| l["Loss/surrogate"].is_null()).count();
        if thrown > 0 {
            lost.push(count(thrown as u64, "iteration", "iterations"));
        } else {
            lost.push("the weights since the last good ones".into());
        }
    } else {
        if broken > 0 {
            let some = count(broken, "environment step", "environment steps");
            lost.push(format!("{some} of {}", lines.len() * 128));
        }
        if skipped > 0 {
            let all = lines.len() * 4;
            let some = count(skipped, "minibatch", "minibatches");
            lost.push(format!("{some} of {all}"));
        }
    }
    let sizes: Vec<u64> =
        lines.iter().map(|l| sum(std::slice::from_ref(l), "Perf/num_envs")).collect();
    let mut steps = sizes.clone();
    steps.dedup();
    // How many fit where there were too many is the machine's.
    if steps.first().is_some_and(|&n| n < envs) {
        did.push("took as many environments as fit".into());
    } else if steps.len() > 1 {
        let words: Vec<String> = steps.iter().map(u64::to_string).collect();
        did.push(format!("environments: {}", words.join(" -> ")));
    }
    let records = lines
        .iter()
        .map(|l| l["Guard/lost_log_records"].as_f64().unwrap_or(0.0))
        .fold(0.0, f64::max);
    if records > 0.0 {
        lost.push("log records".into());
    }
    (did, lost)
}
