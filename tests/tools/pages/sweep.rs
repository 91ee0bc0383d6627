//! `examples/sweep.py`, with Optuna itself.

use crate::common::root;
use crate::support::need::Need;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// A Python with Optuna: the learners' own, else the one at hand.
fn python() -> Result<PathBuf, String> {
    let named = std::env::var_os("OSTLER_LEARNERS_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or_else(|| "python3".into());
    let found = Command::new(&python).args(["-c", "import optuna"]).current_dir("/").output();
    match found {
        Ok(out) if out.status.success() => Ok(python),
        Ok(_) => Err(format!("{} has no optuna", python.display())),
        Err(e) => Err(format!("{}: {e}", python.display())),
    }
}

#[test]
fn a_sweep_goes_on_where_it_stopped_with_other_draws() {
    let Some(python) = Need::Learners.or_skip(python()) else {
        return;
    };
    let root = root();
    let root = root.canonicalize().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let sweep = |config: &Path, trials: &str| -> Output {
        let mut command = Command::new(&python);
        command
            .arg(root.join("examples/sweep.py"))
            .arg(config)
            .args(["--ostler", env!("CARGO_BIN_EXE_ostler")])
            .args(["--trials", trials, "--iterations", "2", "--episodes", "2"]);
        command.current_dir(folder.path()).output().unwrap()
    };
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let rate = |trial: u32| -> String {
        let file = format!("sweep/cartpole/trial_{trial:04}/config.toml");
        let text = std::fs::read_to_string(folder.path().join(file)).unwrap();
        let rate = text.lines().find(|l| l.starts_with("learning_rate"));
        rate.unwrap().to_string()
    };

    let cartpole = root.join("configs/cartpole.toml");
    let first = sweep(&cartpole, "1");
    assert!(first.status.success(), "{}", text(&first.stderr));
    let said = text(&first.stdout);
    assert!(said.contains("in sweep/cartpole/trial_0000"), "{said}");
    // One more, and another one.
    let second = sweep(&cartpole, "2");
    assert!(second.status.success(), "{}", text(&second.stderr));
    assert_ne!(rate(0), rate(1));
    // There are as many as were asked for.
    let third = sweep(&cartpole, "2");
    assert!(third.status.success(), "{}", text(&third.stderr));
    assert!(!folder.path().join("sweep/cartpole/trial_0002").exists());

    // A mistake is said once, in the program's words.
    let wrong = folder.path().join("wrong.toml");
    std::fs::write(&wrong, "[env]\nnum_env = 3\n").unwrap();
    let out = sweep(&wrong, "5");
    let said = text(&out.stderr);
    assert_eq!(out.status.code(), Some(1), "{said}");
    assert_eq!(said.matches("did you mean env.num_envs?").count(), 1);
}
