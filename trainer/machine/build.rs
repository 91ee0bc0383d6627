//! Compiles the C++ shim over libtorch, and tells this crate's tests where libtorch is.

#[path = "../build/libtorch.rs"]
mod libtorch;
#[path = "../../sim/build/units.rs"]
mod units;

use std::path::PathBuf;
use std::process::ExitCode;

const SHIMS: [&str; 6] = [
    "src/torch/shim.cpp",
    "src/torch/device.cpp",
    "src/torch/peers.cpp",
    "src/torch/pinned.cpp",
    "src/torch/stream.cpp",
    "src/torch/watch.cpp",
];

/// In place of Gloo's headers, which libtorch's wheel includes and does not have.
const GLOO: &str = "src/torch/gloo.h";
const GLOO_HEADERS: [&str; 5] =
    ["algorithm", "common/error", "context", "rendezvous/store", "transport/device"];

fn main() -> ExitCode {
    libtorch::ended(build())
}

fn build() -> Result<(), String> {
    let others = [
        "build.rs",
        "../build/libtorch.rs",
        "../../sim/build/units.rs",
        "src/torch/guarded.h",
        GLOO,
    ];
    for file in SHIMS.iter().chain(&others) {
        println!("cargo:rerun-if-changed={file}");
    }
    let libtorch = libtorch::link()?;
    if units::only_read() {
        return Ok(());
    }
    cc::Build::new()
        .cpp(true)
        .std("c++17")
        .define("_GLIBCXX_USE_CXX11_ABI", "1")
        .include(libtorch.join("include"))
        .include(libtorch.join("include/torch/csrc/api/include"))
        .include(gloo()?)
        // libtorch's own headers warn; ours are few enough to be read.
        .warnings(false)
        .files(SHIMS)
        .try_compile("ostler_torch_shim")
        .map_err(|e| format!("the shim over libtorch does not compile: {e}"))
}

/// A folder with headers by the names of Gloo's.
fn gloo() -> Result<PathBuf, String> {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").ok_or("OUT_DIR is not set")?);
    let own = std::path::absolute(GLOO).map_err(|e| e.to_string())?;
    for header in GLOO_HEADERS {
        let file = out.join("gloo").join(header).with_extension("h");
        let at = |e| format!("{}: {e}", file.display());
        std::fs::create_dir_all(file.parent().unwrap_or(&out)).map_err(at)?;
        std::fs::write(&file, format!("#include \"{}\"\n", own.display())).map_err(at)?;
    }
    Ok(out)
}
