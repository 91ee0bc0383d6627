//! The recorded gradient steps of FastSAC, FlashSAC and amp-rsl-rl's discriminator are those that
//! the peers' own classes take, out of their wheels.

use crate::common::root;
use crate::support::need::Need;
use crate::support::referee;
use serde_json::Value;
use std::path::PathBuf;
use std::process::Command;

/// A Python with this package, PyTorch or what needs it: the learners' own, else the one at hand.
fn python(with: &str) -> Result<PathBuf, String> {
    let named = std::env::var_os("OSTLER_LEARNERS_PYTHON").map(PathBuf::from);
    let python = named.unwrap_or_else(|| "python3".into());
    let import = format!("import {with}");
    let found = Command::new(&python).args(["-c", &import]).current_dir("/").output();
    match found {
        Ok(out) if out.status.success() => Ok(python),
        Ok(_) => Err(format!("{} has no {with}", python.display())),
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

/// Runs a script of the referee's, and compares at least so many numbers with those recorded.
fn recorded(python: Result<PathBuf, String>, name: &str, numbers: usize) {
    let Some(peers) = referee::peers() else { return };
    let Some(python) = Need::Learners.or_skip(python) else { return };
    let script = root().join(format!("tests/referee/{name}.py")).canonicalize().unwrap();
    let out = Command::new(python).arg(script).arg(peers).current_dir("/").output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    let now: Value = serde_json::from_slice(&out.stdout).unwrap();
    let recorded = std::fs::read(root().join(format!("tests/fixtures/{name}.json"))).unwrap();
    let recorded: Value = serde_json::from_slice(&recorded).unwrap();
    assert!(same("", &now, &recorded) > numbers);
}

#[test]
fn the_peers_agents_take_the_recorded_steps() {
    recorded(python("torch"), "off_policy_peers", 10_000);
}

#[test]
fn amp_rsl_rls_discriminator_takes_the_recorded_steps() {
    recorded(python("rsl_rl, torch"), "amp_peers", 900);
}
