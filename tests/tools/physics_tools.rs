//! `ostler physics`, `ostler compare`, `ostler bench physics`: the tools that take any
//! MJCF file.

use crate::common::Place;
use ostler_sim::referee::npz::{Expected, Npz, NpzWriter};
use serde_json::Value;

/// The engines at hand.
const BACKENDS: [&str; 2] = ["rapier", "native"];
const CARTPOLE: &str = "robots/cartpole.xml";

/// Writes `in.npz` with `count` states of the cart-pole.
fn states(place: &Place, count: usize, single: bool) {
    let mut file = NpzWriter::create(&place.path("in.npz")).unwrap();
    for (name, width) in [("qpos", 2), ("qvel", 2), ("ctrl", 1)] {
        let values: Vec<f64> = (0..count * width).map(|i| 0.125 * i as f64).collect();
        if single {
            let values: Vec<f32> = values.iter().map(|x| *x as f32).collect();
            file.array(name, &[count, width], &values).unwrap();
        } else {
            file.array(name, &[count, width], &values).unwrap();
        }
    }
    file.finish().unwrap();
}

/// An array of a file.
fn array(place: &Place, file: &str, name: &str, columns: usize) -> (Vec<f64>, usize) {
    let expected = Expected { rows: None, columns: Some(columns), label: "n" };
    let mut file = Npz::open(&place.path(file)).unwrap();
    file.finite(name, expected).unwrap()
}

fn physics<'a>(model: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let mut args = vec!["physics", model, "--states", "in.npz", "--out", "out.npz"];
    args.extend(more);
    args
}

#[test]
fn states_in_accelerations_and_next_states_out() {
    let place = Place::new();
    for backend in BACKENDS {
        states(&place, 70, false);
        place.ok(&physics(CARTPOLE, &["--backend", backend]));
        let (qacc, rows) = array(&place, "out.npz", "qacc", 2);
        assert_eq!((qacc.len(), rows), (140, 70));
        let (qvel, _) = array(&place, "in.npz", "qvel", 2);
        let (qvel_next, rows) = array(&place, "out.npz", "qvel_next", 2);
        assert_eq!(rows, 70);
        assert_ne!(qvel, qvel_next);
        assert_eq!(array(&place, "out.npz", "qpos_next", 2).1, 70);
        let mut file = Npz::open(&place.path("out.npz")).unwrap();
        assert_eq!(file.counts("ncon", 70).unwrap(), [0; 70]);
        // The same numbers in single precision are the same states.
        states(&place, 70, true);
        place.ok(&physics(CARTPOLE, &["--backend", backend]));
        assert_eq!(array(&place, "out.npz", "qacc", 2).0, qacc);
    }
}

#[test]
fn wrong_files_are_refused_with_what_was_found_and_expected() {
    let place = Place::new();
    let says = |args: &[&str], words: &[&str]| {
        let text = place.fails(2, args);
        for word in words {
            assert!(text.contains(word), "{text} lacks {word}");
        }
    };
    let args = physics(CARTPOLE, &["--backend", "rapier"]);
    says(&args, &["cannot read in.npz"]);
    std::fs::write(place.path("in.npz"), "not a zip").unwrap();
    says(&args, &["in.npz is no .npz file"]);
    let write = |arrays: &[(&str, &[usize], &[f64])]| {
        let mut file = NpzWriter::create(&place.path("in.npz")).unwrap();
        for (name, shape, values) in arrays {
            file.array(name, shape, values).unwrap();
        }
        file.finish().unwrap();
    };
    write(&[("qpos", &[1, 3], &[0.0; 3])]);
    says(&args, &["qpos has shape [1, 3]", "[K,nq] with nq = 2"]);
    write(&[("qpos", &[1, 2], &[0.0; 2]), ("qvel", &[2, 2], &[0.0; 4])]);
    says(&args, &["qvel has shape [2, 2]", "K = 1"]);
    write(&[("qpos", &[1, 2], &[0.0; 2]), ("qvel", &[1, 2], &[0.0; 2])]);
    says(&args, &["no array \"ctrl\"", "[K,nu] with nu = 1", "it has qpos, qvel"]);
    write(&[("qpos", &[2, 2], &[0.0, 0.0, 0.0, f64::INFINITY])]);
    says(&args, &["qpos[1,1] is inf"]);
    states(&place, 1, false);
    let mut double = args.clone();
    double.extend(["--precision", "f64"]);
    says(&double, &["rapier computes in single precision"]);
    let nowhere =
        ["physics", CARTPOLE, "--states", "in.npz", "--out", "none/out.npz", "--backend", "rapier"];
    says(&nowhere, &["cannot write none/out.npz"]);
    assert!(!place.path("out.npz").exists());
}

#[test]
fn bench_physics_prints_its_rate_and_its_kernel() {
    let place = Place::new();
    for backend in BACKENDS {
        let out = place.ok(&[
            "bench",
            "physics",
            CARTPOLE,
            "--backend",
            backend,
            "--num-envs",
            "16",
            "--threads",
            "1",
            "--seconds",
            "0.05",
            "--json",
        ]);
        let out: Value = serde_json::from_str(&out).unwrap();
        assert!(out["physics_steps_per_s"].as_f64().unwrap() > 0.0, "{out}");
        assert!(!out["kernel"].as_str().unwrap().is_empty(), "{out}");
        assert_eq!(out["num_envs"], 16);
        assert_eq!(out["threads"], 1);
    }
    let out = place.ok(&[
        "bench",
        "physics",
        CARTPOLE,
        "--instructions",
        "portable",
        "--threads",
        "1",
        "--seconds",
        "0.05",
        "--json",
    ]);
    let out: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(out["kernel"], "generic-portable");
}

#[test]
fn compare_without_mujoco_names_the_way_out() {
    let place = Place::new();
    let text = place.fails(2, &["compare", CARTPOLE, "--python", "/nowhere/python"]);
    for word in ["/nowhere/python", "pip install mujoco", "--python", "OSTLER_REFEREE_PYTHON"] {
        assert!(text.contains(word), "{text} lacks {word}");
    }
}

#[test]
fn compare_tells_an_engine_that_is_not_mujoco_from_mujoco() {
    let Some(python) = crate::support::referee::referee_python() else {
        return;
    };
    let place = Place::new();
    let python = python.display().to_string();
    let args = [
        "compare",
        CARTPOLE,
        "--python",
        &python,
        "--states",
        "60",
        "--backend",
        "rapier",
        "--seed",
        "3",
        "--json",
    ];
    let out = place.run(&args);
    assert_eq!(out.status.code(), Some(1), "{}", crate::common::text(&out));
    let out: Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!(out["same"], false);
    let table = &out["tables"][0];
    assert_eq!(table["states"], 60);
    let kinds: u64 =
        table["rows"].as_array().unwrap().iter().map(|r| r["states"].as_u64().unwrap()).sum();
    assert_eq!(kinds, 60);
    // Of limits: both have their own softness.
    assert_eq!(table["rows"][1]["kind"], "limits");
    assert!(table["rows"][1]["qacc"]["max"].as_f64().unwrap() > 1e-3);
    assert!(!table["beyond"].as_array().unwrap().is_empty());
    // A line for eyes.
    let out = place.run(args.split_last().unwrap().1);
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    assert!(text.contains("DIFFERS from MuJoCo"), "{text}");
}
