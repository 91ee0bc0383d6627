//! Shared parts of the whole-system tests: the program, a small task, a folder of its own.

#![allow(dead_code)]

pub mod carts;
pub mod forge;
pub mod forked;
pub mod natives;
pub mod process;

use forked::Forked as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// A cart-pole small enough for a debug build.
pub const TASK: &str = r#"
description = "a small cart-pole for tests"
[sim]
threads = 1
specialize = "off"
[env]
num_envs = 8
decimation = 2
episode_length_s = 0.8
[task]
robot = "robots/cartpole.xml"
[[task.action]]
actuators = ["slide"]
[[task.observation]]
name = "state"
expr = "qpos"
[[task.observation]]
name = "velocity"
expr = "qvel"
[[task.reward]]
name = "alive"
expr = "1"
[[task.termination]]
name = "fallen"
expr = "abs(joint_pos(hinge)) > 0.2"
[[task.reset]]
target = "qpos"
uniform = [-0.01, 0.01]
[actor]
hidden_dims = [16, 16]
obs_normalization = true
[critic]
hidden_dims = [16, 16]
obs_normalization = true
[ppo]
num_mini_batches = 2
num_learning_epochs = 2
[runner]
num_steps_per_env = 16
max_iterations = 3
[learner]
threads = 1
"#;

/// Sections and profiles of the learners with a replay buffer, for the same task.
pub const REPLAY: &str = r#"
[replay]
capacity = 2000
storage = "host"
[sac]
batch_size = 32
num_updates = 1
learning_starts = 200
[td3]
batch_size = 32
num_updates = 1
learning_starts = 200
num_atoms = 21
v_min = 0.0
v_max = 40.0
[profile.sac]
runner.algorithm = "sac"
[profile.td3]
runner.algorithm = "td3"
"#;

/// The repository.
pub fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

/// `ostler`, wherever.
pub fn ostler() -> Command {
    Command::new(env!("CARGO_BIN_EXE_ostler"))
}

/// A folder with `pole.toml` and its robot.
pub struct Place(pub tempfile::TempDir);

impl Place {
    pub fn new() -> Self {
        Self::with(TASK)
    }

    pub fn with(task: &str) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let robots = dir.path().join("robots");
        std::fs::create_dir(&robots).unwrap();
        let source = root().join("configs/robots/cartpole.xml");
        std::fs::copy(source, robots.join("cartpole.xml")).unwrap();
        std::fs::write(dir.path().join("pole.toml"), task).unwrap();
        Self(dir)
    }

    pub fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// `ostler ARGS` in the folder.
    pub fn ostler(&self, args: &[&str]) -> Command {
        let mut command = ostler();
        command.current_dir(self.0.path()).args(args);
        command
    }

    pub fn run(&self, args: &[&str]) -> Output {
        self.ostler(args).forked().unwrap()
    }

    /// `ostler ARGS` below a limit as a shell sets it: `-d KIB` for memory of its own
    /// (RLIMIT_DATA), `-f KIB` for files, the fault of a full disk without a disk.
    pub fn limited(&self, limit: &str, args: &str) -> Output {
        let script = format!("ulimit {limit}; exec \"$0\" \"$@\"");
        Command::new("bash")
            .args(["-c", &script, env!("CARGO_BIN_EXE_ostler")])
            .args(args.split(' '))
            .current_dir(self.0.path())
            .env("TMPDIR", self.0.path())
            .stdin(Stdio::null())
            .output()
            .unwrap()
    }

    /// Runs and expects exit code 0; returns standard output.
    pub fn ok(&self, args: &[&str]) -> String {
        let out = self.run(args);
        assert!(
            out.status.success(),
            "{args:?} ended with {:?}\n{}\n{}",
            out.status,
            String::from_utf8_lossy(&out.stdout),
            text(&out)
        );
        String::from_utf8(out.stdout).unwrap()
    }

    /// Runs and expects an exit code; returns standard error, in which nothing panicked.
    pub fn fails(&self, code: i32, args: &[&str]) -> String {
        let out = self.run(args);
        let err = text(&out);
        assert_eq!(out.status.code(), Some(code), "{args:?}\n{err}");
        assert!(!err.contains("panicked"), "{args:?}\n{err}");
        err
    }

    /// Trains `iterations` into the folder `out`, with more arguments.
    pub fn train(&self, out: &str, iterations: u64, more: &[&str]) -> PathBuf {
        let n = format!("runner.max_iterations={iterations}");
        let mut args = vec!["train", "pole.toml", "--quiet", "--out", out, &n];
        args.extend(more);
        self.ok(&args);
        self.path(out)
    }
}

pub fn text(out: &Output) -> String {
    String::from_utf8_lossy(&out.stderr).into_owned()
}

/// The lines of `metrics.jsonl`.
pub fn metrics(run: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(run.join("metrics.jsonl")).unwrap();
    text.lines().map(|l| serde_json::from_str(l).unwrap()).collect()
}

/// The newest checkpoint: every tensor's name, shape and bytes.
pub fn tensors(run: &Path) -> Vec<(String, Vec<usize>, Vec<u8>)> {
    let bytes = std::fs::read(newest(run)).unwrap();
    let file = safetensors::SafeTensors::deserialize(&bytes).unwrap();
    let mut all: Vec<_> = file
        .tensors()
        .into_iter()
        .map(|(n, t)| (n, t.shape().to_vec(), t.data().to_vec()))
        .collect();
    all.sort();
    all
}

/// The file of the newest checkpoint.
pub fn newest(run: &Path) -> PathBuf {
    let mut files: Vec<PathBuf> = std::fs::read_dir(run.join("checkpoints"))
        .unwrap()
        .map(|e| e.unwrap().path())
        .filter(|p| p.file_name().unwrap().to_str().unwrap().starts_with("iter_"))
        .collect();
    files.sort();
    files.pop().unwrap()
}

/// Fails with the names of the tensors that differ.
pub fn assert_same_bits(a: &Path, b: &Path) {
    let (a, b) = (tensors(a), tensors(b));
    assert_eq!(a.len(), b.len());
    let differing: Vec<&str> =
        a.iter().zip(&b).filter(|(x, y)| x != y).map(|(x, _)| x.0.as_str()).collect();
    assert!(differing.is_empty(), "different bits in {differing:?}");
}
