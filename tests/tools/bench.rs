//! `ostler bench`: its output, and that libtorch's share of the allocations is a
//! constant of the configuration.

use crate::common::{Place, root};
use crate::support::need;
use serde_json::Value;

fn bench(place: &Place, seconds: &str) -> Value {
    // A policy that stopped at its divergence saves passes, and their allocations: when it
    // does follows from how many iterations there were.
    let never = ["--set", "ppo.kl_stop=0"];
    let out = ["bench", "pole.toml", "--json", "--seconds", seconds];
    let out = place.ok(&[&out[..], &never].concat());
    serde_json::from_str(&out).unwrap()
}

#[test]
fn libtorch_allocates_the_same_number_of_times_in_every_iteration() {
    let place = Place::new();
    // Different times are different numbers of iterations before the count.
    let (short, long) = (bench(&place, "0.02"), bench(&place, "0.3"));
    // None where actions are drawn; those of an update's loss show that they are counted.
    let key = "pole.collection.libtorch_allocations_per_step";
    assert_eq!([&short[key], &long[key]], [0.0; 2], "{key}");
    let key = "pole.learning.libtorch_allocations_per_update";
    assert!(short[key].as_f64().unwrap() > 0.0, "{key} was not counted");
    assert_eq!(short[key], long[key], "{key}");
}

#[test]
fn stages_and_their_shares_add_up() {
    let numbers = bench(&Place::new(), "0.1");
    let get = |key: &str| numbers[format!("pole.{key}")].as_f64().unwrap();
    for key in ["simulation", "collection", "learning", "whole"] {
        assert!(get(&format!("{key}.steps_per_s")) > 0.0, "{key}");
    }
    let stages = get("share.simulation") + get("share.policy");
    assert!((stages - get("share.collection")).abs() < 0.01);
    let all = get("share.collection") + get("share.learning");
    assert!(all > 0.5 && all < 1.001, "{all}");
    assert!(get("share.simulation") > 0.0 && get("memory.rss_mib") > 10.0);
}

#[test]
fn threads_are_measured_one_number_after_another() {
    let place = Place::new();
    let bench = |more: &[&'static str]| {
        let args = ["bench", "pole.toml", "--seconds", "0.02", "--threads"];
        [&args[..], more].concat()
    };
    let table = place.ok(&bench(&["1,2"]));
    let lines: Vec<Vec<&str>> = table.lines().map(|l| l.split_whitespace().collect()).collect();
    assert_eq!(lines.len(), 4, "{table}");
    // The first number's speeds are the measure of the others.
    assert_eq!((lines[2][0], lines[3][0]), ("1", "2"), "{table}");
    for i in [2, 4, 6, 8] {
        assert_eq!(lines[2][i], "1.00", "{table}");
        let of = |row: usize| lines[row][i - 1].parse::<f64>().unwrap();
        let ratio: f64 = lines[3][i].parse().unwrap();
        assert!((of(3) / of(2) - ratio).abs() < 0.01, "{table}");
    }
    let numbers: Value =
        serde_json::from_str(&place.ok(&bench(&["2,1", "--json", "env.num_envs=1024"]))).unwrap();
    let loops = |n: u32| numbers[format!("pole.threads.{n}.fork_joins_per_step")].as_f64().unwrap();
    assert_eq!(loops(1), 0.0, "one thread meets nobody");
    assert!(loops(2) >= 1.0, "{numbers}");
    for wrong in ["0", "2,2", "1,100000"] {
        let said = place.fails(2, &bench(&[wrong]));
        assert!(said.contains("different numbers from 1 to 1024"), "{said}");
    }
    let said = place.fails(2, &bench(&["1", "--set", "learner.threads = 2"]));
    assert!(said.contains("--threads sets learner.threads"), "{said}");
}

/// The referees' Python, or whatever Python there is; `None` after saying that the
/// calling test is skipped.
fn python() -> Option<String> {
    let python = std::env::var("OSTLER_REFEREE_PYTHON").unwrap_or("python3".into());
    let found = need::runs(&python).map(|()| python);
    need::Need::Python.or_skip(found)
}

/// `xtask/gpu/versus.py`, which runs beside other engines on a machine with a GPU.
#[test]
fn the_comparison_with_other_engines_measures_what_is_installed_and_names_the_rest() {
    let root = root();
    let Some(python) = python() else { return };
    let out = std::process::Command::new(&python)
        .arg(root.join("xtask/gpu/versus.py"))
        .args(["--device", "cpu", "--seconds", "0.05", "--ostler"])
        .arg(env!("CARGO_BIN_EXE_ostler"))
        .arg(root.join("configs/robots/half_cheetah.xml"))
        .arg("8")
        .output();
    let out = out.unwrap();
    let error = String::from_utf8_lossy(&out.stderr);
    let found: Value = serde_json::from_slice(&out.stdout)
        .unwrap_or_else(|e| panic!("{e}: {:?}\n{error}", String::from_utf8_lossy(&out.stdout)));
    assert!(out.status.success(), "{found}\n{error}");
    assert_eq!(
        (&found["model"], &found["num_envs"], &found["device"]),
        (&"half_cheetah.xml".into(), &8.into(), &"cpu".into())
    );
    let own = found["ostler.steps_per_s"].as_f64().unwrap();
    assert!(own > 0.0);
    for engine in ["warp", "mjx"] {
        match found[format!("{engine}.steps_per_s")].as_f64() {
            Some(other) => {
                let ratio = found[format!("ratio.{engine}")].as_f64().unwrap();
                assert!((ratio - own / other).abs() < 0.01 * ratio + 0.01, "{found}");
            }
            // Not a skip: the reason in its place is what is tested here.
            None => {
                let why = found[format!("{engine}.missing")].as_str();
                assert!(why.is_some_and(|why| !why.is_empty()), "{engine}: {found}");
            }
        }
    }
}

/// An engine's output while it is loaded is not among the numbers.
#[test]
fn what_other_engines_print_stays_out_of_the_comparison() {
    let root = root();
    let folder = tempfile::tempdir().unwrap();
    let noisy = "import os\nprint('loading')\nos.system('echo from below')\nraise ImportError('not for this test')\n";
    for engine in ["mujoco_warp", "jax"] {
        std::fs::write(folder.path().join(engine).with_extension("py"), noisy).unwrap();
    }
    // The modules that they import first.
    std::fs::write(folder.path().join("mujoco.py"), "").unwrap();
    let Some(python) = python() else { return };
    let out = std::process::Command::new(&python)
        .arg(root.join("xtask/gpu/versus.py"))
        .args(["--device", "cpu", "--only", "warp,mjx"])
        .arg(root.join("configs/robots/half_cheetah.xml"))
        .arg("8")
        .env("PYTHONPATH", folder.path())
        .output();
    let out = out.unwrap();
    let found: Value = serde_json::from_slice(&out.stdout).unwrap();
    for engine in ["warp", "mjx"] {
        assert_eq!(found[format!("{engine}.missing")], "not for this test");
    }
    let error = String::from_utf8_lossy(&out.stderr);
    for text in ["loading", "from below"] {
        assert_eq!(error.matches(text).count(), 2, "{error}");
    }
}
