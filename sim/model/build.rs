//! What models share with the kernels, and the kernel that winds strings around shapes.

#[path = "../build/columns.rs"]
mod columns;
#[path = "../build/ended.rs"]
mod ended;
#[path = "../build/mirrors.rs"]
mod mirrors;
#[path = "../build/units.rs"]
mod units;

use std::path::Path;
use std::process::ExitCode;
use units::Unit;

const UNITS: [Unit; 1] = [Unit {
    name: "wrap",
    file: "../kernels/wrap.cpp",
    defines: &[],
    optimise: 1,
    flags: &[],
    of: None,
}];

const MIRRORS: &[mirrors::Header] = &[("env/args.cuh", "u32", &[]), ("motor.cuh", "i32", &[])];

fn main() -> ExitCode {
    for file in ["build.rs", "../build/columns.rs", "../build/mirrors.rs", "../build/units.rs"] {
        println!("cargo:rerun-if-changed={file}");
    }
    for header in
        ["wrap.cpp", "wrap.cuh", "scalar.cuh", "lanes.cuh", "space.cuh", "collide/shapes.h"]
    {
        println!("cargo:rerun-if-changed=../kernels/{header}");
    }
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    ended::ended(made(Path::new("../kernels"), Path::new(&out)))
}

fn made(kernels: &Path, out: &Path) -> Result<(), String> {
    columns::write(&kernels.join("collide/shapes.h"), columns::SHAPES, &out.join("shapes.rs"))?;
    mirrors::write(kernels, MIRRORS, &out.join("mirrors.rs"))?;
    units::compile_all(&UNITS, &[], "ostler_model_", "the models' kernel", None)
}
