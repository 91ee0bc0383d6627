//! Reads what the kernels share with Rust.

#[path = "../sim/build/ended.rs"]
mod ended;
#[path = "../sim/build/mirrors.rs"]
mod mirrors;

use std::path::Path;
use std::process::ExitCode;

const MIRRORS: &[mirrors::Header] = &[("parts.cuh", "i64", &["TakeArgs", "FlagArgs"])];

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=kernels");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../sim/build/mirrors.rs");
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    ended::ended(mirrors::write(Path::new("kernels"), MIRRORS, &Path::new(&out).join("mirrors.rs")))
}
