//! Compiles the C++ shim over libtorch, and tells this crate's tests where libtorch is.

#[path = "../build/libtorch.rs"]
mod libtorch;

use std::process::ExitCode;

const SHIMS: [&str; 5] = [
    "src/torch/shim.cpp",
    "src/torch/device.cpp",
    "src/torch/pinned.cpp",
    "src/torch/stream.cpp",
    "src/torch/watch.cpp",
];

fn main() -> ExitCode {
    libtorch::ended(build())
}

fn build() -> Result<(), String> {
    for file in SHIMS.iter().chain(&["build.rs", "../build/libtorch.rs", "src/torch/guarded.h"]) {
        println!("cargo:rerun-if-changed={file}");
    }
    let libtorch = libtorch::link()?;
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .define("_GLIBCXX_USE_CXX11_ABI", "1")
        .include(libtorch.join("include"))
        .include(libtorch.join("include/torch/csrc/api/include"))
        // libtorch's own headers warn; ours are few enough to be read.
        .warnings(false)
        .files(SHIMS)
        .try_compile("ostler_torch_shim")
        .map_err(|e| format!("the shim over libtorch does not compile: {e}"))
}
