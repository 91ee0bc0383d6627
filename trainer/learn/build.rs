//! Compiles the learner's kernels for hosts, and tells this crate's tests where libtorch is.

#[path = "../build/libtorch.rs"]
mod libtorch;
#[path = "../../sim/build/mirrors.rs"]
mod mirrors;
#[path = "../../sim/build/units.rs"]
mod units;

use std::path::Path;
use std::process::ExitCode;
use units::{AVX2, AVX512, Unit};

const UNITS: [Unit; 3] = [
    unit("portable", &[("OSTLER_LANES", "4")], 2, &[]),
    unit("avx2", &[("OSTLER_LANES", "8")], 3, AVX2),
    unit("avx512", &[("OSTLER_LANES", "16")], 3, AVX512),
];

/// The learner's passes over rows, for one kind of vectors.
const fn unit(
    name: &'static str,
    defines: &'static [(&'static str, &'static str)],
    optimise: u32,
    flags: &'static [&'static str],
) -> Unit {
    Unit { name, file: "../kernels/host.cpp", defines, optimise, flags, of: Some(name) }
}

/// Headers that the engine's kernels share with the learner's.
const BASE: &str = "../../sim/kernels";

/// What the kernels share with Rust.
const MIRRORS: &[mirrors::Header] = &[
    ("activation.cuh", "i32", &[]),
    ("adam.cuh", "usize", &["AdamStep", "AdamConfig"]),
    ("loss.cuh", "usize", &["Columns", "LossTerms", "PpoLoss"]),
    ("finish.cuh", "usize", &["Tally"]),
    ("table.h", "usize", &["Table"]),
    (
        "device.cuh",
        "usize",
        &["LossArgs", "Step", "PpoFinishArgs", "FinishArgs", "AdamArgs", "OrderArgs", "NoiseArgs"],
    ),
];

fn main() -> ExitCode {
    for file in [
        "build.rs",
        "../build/libtorch.rs",
        "../kernels",
        "../../sim/build/mirrors.rs",
        "../../sim/build/units.rs",
    ] {
        println!("cargo:rerun-if-changed={file}");
    }
    for file in ["scalar.cuh", "lanes.cuh", "env/math.cuh", "env/rng.cuh"] {
        println!("cargo:rerun-if-changed={BASE}/{file}");
    }
    if let Err(message) = kernels() {
        eprintln!("error: {message}");
        return ExitCode::FAILURE;
    }
    libtorch::ended(libtorch::link().map(drop))
}

fn kernels() -> Result<(), String> {
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    mirrors::write(Path::new("../kernels"), MIRRORS, &Path::new(&out).join("mirrors.rs"))?;
    let what = "the learner's kernels";
    units::compile_all(&UNITS, &units::sets(), "ostler_learn_", what, Some(BASE))
}
