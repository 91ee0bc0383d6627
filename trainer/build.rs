//! Tells the programs and tests where libtorch is.

#[path = "build/libtorch.rs"]
mod libtorch;

use std::process::ExitCode;

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build/libtorch.rs");
    // See tests/gpu/runtime.rs: libtorch is to find the test's functions before CUDA's.
    for functions in ["cuda*", "__cuda*"] {
        println!("cargo:rustc-link-arg-tests=-Wl,--export-dynamic-symbol={functions}");
    }
    libtorch::ended(libtorch::link().map(drop))
}
