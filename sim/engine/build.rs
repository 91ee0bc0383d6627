//! Compiles the kernels that know neither robot nor task.

#[path = "../build/columns.rs"]
mod columns;
#[path = "../build/ended.rs"]
mod ended;
#[path = "../build/mirrors.rs"]
mod mirrors;
#[path = "../build/texts.rs"]
mod texts;
#[path = "../build/units.rs"]
mod units;

use std::path::Path;
use std::process::ExitCode;
use units::{AVX2, AVX512, Unit};

/// Kernels of the engine whose collisions are those of `collide.cpp`.
const ELSEWHERE: (&str, &str) = ("OSTLER_COLLIDE_ELSEWHERE", "1");

const UNITS: [Unit; 10] = [
    Unit {
        name: "portable",
        file: "../kernels/host.cpp",
        defines: &[("OSTLER_LANES", "4"), ELSEWHERE],
        optimise: 2,
        flags: &[],
        of: Some("portable"),
    },
    Unit {
        name: "avx2",
        file: "../kernels/host.cpp",
        defines: &[("OSTLER_LANES", "8"), ELSEWHERE],
        optimise: 3,
        flags: AVX2,
        of: Some("avx2"),
    },
    Unit {
        name: "avx512",
        file: "../kernels/host.cpp",
        defines: &[("OSTLER_LANES", "16"), ELSEWHERE],
        optimise: 3,
        flags: AVX512,
        of: Some("avx512"),
    },
    // For comparisons, not for speed.
    Unit {
        name: "double",
        file: "../kernels/host.cpp",
        defines: &[("OSTLER_DOUBLE", ""), ELSEWHERE],
        optimise: 1,
        flags: &[],
        of: Some("double"),
    },
    Unit {
        name: "f32",
        file: "../kernels/collide.cpp",
        defines: &[("OSTLER_REAL", "float")],
        optimise: 2,
        flags: &[],
        of: None,
    },
    Unit {
        name: "f64",
        file: "../kernels/collide.cpp",
        defines: &[("OSTLER_REAL", "double")],
        optimise: 1,
        flags: &[],
        of: Some("double"),
    },
    Unit {
        name: "env_portable",
        file: "../kernels/env.cpp",
        defines: &[ELSEWHERE],
        optimise: 2,
        flags: &[],
        of: Some("portable"),
    },
    Unit {
        name: "env_avx2",
        file: "../kernels/env.cpp",
        defines: &[ELSEWHERE],
        optimise: 3,
        flags: AVX2,
        of: Some("avx2"),
    },
    Unit {
        name: "env_avx512",
        file: "../kernels/env.cpp",
        defines: &[ELSEWHERE],
        optimise: 3,
        flags: AVX512,
        of: Some("avx512"),
    },
    Unit {
        name: "trace",
        file: "../kernels/trace.cpp",
        defines: &[],
        optimise: 0,
        flags: &[],
        of: None,
    },
];

/// What the kernels share with Rust.
const MIRRORS: &[mirrors::Header] = &[
    ("api.h", "i32", &["OstlerKernel"]),
    ("integrate.cuh", "usize", &["Solver"]),
    ("collide/ground.cuh", "u32", &["Ground"]),
    ("step.cuh", "u32", &["StepArgs", "EvalArgs"]),
    ("env/args.cuh", "u32", &["EnvArgs"]),
    ("env/draw.cuh", "u32", &[]),
    ("env/terms.cuh", "u32", &["Calls"]),
    ("env/native.cuh", "u32", &["OstlerNative"]),
    ("env.cpp", "u32", &["OstlerEnv"]),
    ("env/all.cuh", "u32", &[]),
    ("env/event.cuh", "u32", &[]),
    ("env/flag.cuh", "u32", &[]),
    ("env/ground.cuh", "u32", &[]),
    ("env/motion.cuh", "u32", &[]),
    ("env/rng.cuh", "u32", &[]),
    ("actuator.cuh", "i32", &[]),
    ("contact_sensor.cuh", "i32", &[]),
    ("derive.cuh", "i32", &[]),
    ("fluid.cuh", "usize", &[]),
    ("general.cuh", "i32", &[]),
    ("meter.cuh", "i32", &[]),
    ("motor.cuh", "i32", &[]),
    ("rows.cuh", "i32", &[]),
    ("smooth.cuh", "i32", &[]),
    ("sym.cuh", "u32", &[]),
    ("tables.cuh", "usize", &[]),
    ("vary.cuh", "i32", &[]),
];

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=../kernels");
    for file in ["build.rs", "../build"] {
        println!("cargo:rerun-if-changed={file}");
    }
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    ended::ended(write_lists(Path::new("../kernels"), Path::new(&out)).and_then(|()| {
        units::compile_all(&UNITS, &units::sets(), "ostler_kernel_", "the physics kernels", None)
    }))
}

/// The kernels' lists and texts for Rust.
fn write_lists(kernels: &Path, out: &Path) -> Result<(), String> {
    columns::write(&kernels.join("state.h"), columns::STATE, &out.join("columns.rs"))?;
    columns::write(&kernels.join("env/stats.h"), columns::STATS, &out.join("stats.rs"))?;
    columns::write(&kernels.join("tables.cuh"), columns::ROBOT, &out.join("robot.rs"))?;
    mirrors::write(kernels, MIRRORS, &out.join("mirrors.rs"))?;
    texts::write(kernels, &out.join("texts.rs"))
}
