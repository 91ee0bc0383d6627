//! The recorded gradient steps of FastSAC and FlashSAC are those that the peers' own agents take,
//! out of their wheels.

use crate::common::root;
use crate::support::need::Need;
use crate::support::referee;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// A Python with PyTorch: the learners' own, else the one at hand.
fn python() -> Result<PathBuf, String> {
    let named = std::env::var_os("OSTLER_LEARNERS_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or_else(|| "python3".into());
    let found = Command::new(&python).args(["-c", "import torch"]).current_dir("/").output();
    match found {
        Ok(out) if out.status.success() => Ok(python),
        Ok(_) => Err(format!("{} has no torch", python.display())),
        Err(e) => Err(format!("{}: {e}", python.display())),
    }
}

/// Numbers alone may differ, by rounding; how many were compared.
fn same(path: &str, a: &Value, b: &Value) -> usize {
    match (a, b) {
        (Value::Object(a), Value::Object(b)) => {
            assert!(a.keys().eq(b.keys()), "{path}");
            a.iter().map(|(key, a)| same(&format!("{path}.{key}"), a, &b[key])).sum()
        }
        (Value::Array(a), Value::Array(b)) => {
            assert_eq!(a.len(), b.len(), "{path}");
            let each = a.iter().zip(b).enumerate();
            each.map(|(i, (a, b))| same(&format!("{path}[{i}]"), a, b)).sum()
        }
        (Value::Number(a), Value::Number(b)) => {
            let (a, b) = (a.as_f64().unwrap(), b.as_f64().unwrap());
            assert!((a - b).abs() <= 1e-5 * b.abs().max(1.0), "{path}: {a}, recorded {b}");
            1
        }
        _ => {
            assert_eq!(a, b, "{path}");
            0
        }
    }
}

#[test]
fn the_peers_agents_take_the_recorded_steps() {
    let Some(peers) = referee::peers() else { return };
    let Some(python) = Need::Learners.or_skip(python()) else { return };
    let script = root().join("tests/referee/off_policy_peers.py").canonicalize().unwrap();
    let out = Command::new(python).arg(script).arg(peers).current_dir("/").output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let now: Value = serde_json::from_slice(&out.stdout).unwrap();
    let recorded = std::fs::read(root().join("tests/fixtures/off_policy_peers.json")).unwrap();
    let recorded: Value = serde_json::from_slice(&recorded).unwrap();
    assert!(same("", &now, &recorded) > 10_000);
}
