//! The physics kernels of our robots compile for GPUs, without one: NVRTC makes code
//! for sm_80 and sm_90, whose registers, spills and stack are held against the table
//! `needs.json` (what they were when it was last written).

#![allow(clippy::unwrap_used)]

#[path = "../../../tests/support/referee.rs"]
mod referee;

use ostler_sim::model::mjcf;
use ostler_sim::physics::native::generate::generate_cuda;
use ostler_sim::physics::native::lower::{LowerOptions, lower};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

const ROBOTS: [&str; 6] = [
    "cartpole",
    "double_pendulum",
    "hopper",
    "half_cheetah",
    "ant",
    "quadruped",
];
const ARCHITECTURES: [&str; 2] = ["sm_80", "sm_90"];
/// Models of what our robots do not have, compiled for the last only.
const FEATURES: [&str; 5] = [
    "actuator_site_reference",
    "actuator_slidercrank",
    "integrator_implicit_fluid",
    "muscle",
    "tendon_spatial_wrap",
];
/// More than so much above the table is a regression.
const SLACK: f64 = 1.15;

#[test]
fn kernels_compile_for_gpus_within_the_recorded_needs() {
    let Some(python) = referee::referee_python() else {
        return;
    };
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folder = tempfile::tempdir().unwrap();
    let program = |from: &str, name: &str| {
        let model = mjcf::load(&here.join(format!("../{from}/{name}.xml"))).unwrap();
        let plan = lower(&model, &LowerOptions::default()).unwrap();
        let path = folder.path().join(name);
        std::fs::write(&path, generate_cuda(&plan).unwrap()).unwrap();
        path
    };
    let programs = ROBOTS.map(|name| program("configs/robots", name));
    let features = FEATURES.map(|name| program("tests/referee/features", name));
    let mut found = Vec::new();
    for arch in ARCHITECTURES {
        let out = Command::new(&python)
            .arg(here.join("tests/nvrtc/compile.py"))
            .arg(arch)
            .args(&programs)
            .args(features.iter().filter(|_| arch == ARCHITECTURES[1]))
            .output()
            .unwrap();
        assert!(
            out.status.success(),
            "{}",
            String::from_utf8_lossy(&out.stderr)
        );
        for line in String::from_utf8(out.stdout).unwrap().lines() {
            let row: Value = serde_json::from_str(line).unwrap();
            if row.get("missing").is_some() {
                assert!(
                    std::env::var_os("OSTLER_REQUIRE_REFEREE").is_none_or(|v| v != "1"),
                    "the package nvidia-cuda-nvrtc is missing beside {}",
                    python.display()
                );
                eprintln!(
                    "SKIPPED: kernels_compile_for_gpus: no nvidia-cuda-nvrtc beside the referees"
                );
                return;
            }
            assert!(
                row.get("error").is_none(),
                "{arch} {}",
                row["error"].as_str().unwrap_or("")
            );
            println!("{row}");
            if !FEATURES.iter().any(|f| row["program"] == *f) {
                found.push(row);
            }
        }
    }
    let table = here.join("tests/nvrtc/needs.json");
    if std::env::var_os("OSTLER_WRITE_NEEDS").is_some() {
        let rows: Vec<Value> = found
            .iter()
            .map(|r| json!({"program": r["program"], "arch": r["arch"], "registers": r["registers"],
                "stack": r["stack"], "spill_stores": r["spill_stores"], "spill_loads": r["spill_loads"]}))
            .collect();
        std::fs::write(&table, serde_json::to_string_pretty(&rows).unwrap() + "\n").unwrap();
    }
    let recorded: Vec<Value> =
        serde_json::from_str(&std::fs::read_to_string(&table).unwrap()).unwrap();
    for row in &found {
        let was = recorded
            .iter()
            .find(|r| r["program"] == row["program"] && r["arch"] == row["arch"])
            .unwrap_or_else(|| panic!("{table:?} lacks {row}; write it with OSTLER_WRITE_NEEDS=1"));
        for what in ["registers", "stack", "spill_stores", "spill_loads"] {
            let (now, then) = (row[what].as_f64().unwrap(), was[what].as_f64().unwrap());
            assert!(
                now <= then * SLACK + 64.0,
                "{} for {}: {what} {now}, recorded {then}",
                row["program"],
                row["arch"]
            );
        }
    }
}
