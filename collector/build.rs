//! Says in a line what to run where there is no libtorch, and tells this crate's tests where it
//! is; trainer's build script does so for programs.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    println!("cargo:rerun-if-env-changed=LIBTORCH_USE_PYTORCH");
    println!("cargo:rerun-if-changed=build.rs");
    let libtorch =
        std::env::var_os("LIBTORCH").and_then(|l| std::path::absolute(PathBuf::from(l)).ok());
    let Some(libtorch) = libtorch else {
        return ExitCode::SUCCESS;
    };
    let lib = libtorch.join("lib");
    // This script needs nothing and is run before torch-sys, whose errors are a page of C++.
    if !lib.is_dir() && std::env::var_os("LIBTORCH_USE_PYTORCH").is_none() {
        // It may come at any time.
        println!("cargo:rerun-if-changed={}", lib.display());
        eprintln!("error: no libtorch at {}: run `cargo xtask libtorch`", libtorch.display());
        return ExitCode::FAILURE;
    }
    // DT_RPATH, not DT_RUNPATH: it comes before LD_LIBRARY_PATH.
    println!("cargo:rustc-link-arg=-Wl,--disable-new-dtags");
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
    ExitCode::SUCCESS
}
