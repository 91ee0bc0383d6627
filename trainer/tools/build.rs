//! Tells this crate's tests where libtorch is.

#[path = "../build/libtorch.rs"]
mod libtorch;

use std::process::ExitCode;

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=../build/libtorch.rs");
    libtorch::ended(libtorch::link().map(drop))
}
