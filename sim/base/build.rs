//! Numbers of the kernels' headers for Rust.

#[path = "../build/ended.rs"]
mod ended;
#[path = "../build/mirrors.rs"]
mod mirrors;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../build/mirrors.rs");
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    let to = Path::new(&out).join("mirrors.rs");
    ended::ended(mirrors::write(Path::new("../kernels"), &[("env/rng.cuh", "u32", &[])], &to))
}
