//! Compiles the learner's kernels for hosts and the C++ shim over libtorch, and tells the
//! programs where libtorch is.
//!
//! The launcher (`cargo run --bin train`) puts libtorch at `.libtorch/torch`;
//! `.cargo/config.toml` hands that path to every build as `LIBTORCH`.

#[path = "../sim/build/mirrors.rs"]
mod mirrors;
#[path = "../sim/build/units.rs"]
mod units;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use units::{AVX2, AVX512, Unit};

const WAY_OUT: &str = "run `cargo run --bin train -- --fetch-only` once, which puts libtorch at \
     .libtorch/torch, or set LIBTORCH to a libtorch of the version in README.md";

const SHIMS: [&str; 5] = [
    "src/torch/shim.cpp",
    "src/torch/device.cpp",
    "src/torch/pinned.cpp",
    "src/torch/stream.cpp",
    "src/torch/watch.cpp",
];

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
    Unit { name, file: "kernels/host.cpp", defines, optimise, flags, of: Some(name) }
}

/// Headers that the engine's kernels share with the learner's.
const BASE: &str = "../sim/kernels";

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
    println!("cargo:rerun-if-changed=kernels");
    println!("cargo:rerun-if-changed=../sim/build/mirrors.rs");
    println!("cargo:rerun-if-changed=../sim/build/units.rs");
    for file in ["scalar.cuh", "lanes.cuh", "env/math.cuh", "env/rng.cuh"] {
        println!("cargo:rerun-if-changed={BASE}/{file}");
    }
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    let written =
        mirrors::write(Path::new("kernels"), MIRRORS, &Path::new(&out).join("mirrors.rs"));
    let what = "the learner's kernels";
    if let Err(message) = written.and_then(|()| {
        units::compile_all(&UNITS, &units::sets(), "ostler_learn_", what, Some(BASE))
    }) {
        eprintln!("error: {message}");
        return ExitCode::FAILURE;
    }
    match build() {
        Ok(()) => ExitCode::SUCCESS,
        Err(message) => {
            eprintln!("error: {message}\nhelp: {WAY_OUT}");
            ExitCode::FAILURE
        }
    }
}

fn build() -> Result<(), String> {
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    println!("cargo:rerun-if-changed=build.rs");
    for file in SHIMS.iter().chain(&["src/torch/guarded.h"]) {
        println!("cargo:rerun-if-changed={file}");
    }
    let libtorch = std::env::var_os("LIBTORCH").ok_or("LIBTORCH is not set")?;
    let libtorch = std::path::absolute(PathBuf::from(libtorch)).map_err(|e| e.to_string())?;
    let header = libtorch.join("include/ATen/Context.h");
    if !header.is_file() {
        return Err(format!(
            "no libtorch at {}: {} is missing",
            libtorch.display(),
            header.display()
        ));
    }
    rpath(&libtorch.join("lib"));
    // See shim.cpp: failures of calls that take numbers must not become panics.
    for function in ["ats_free", "get_and_reset_last_err"] {
        println!("cargo:rustc-link-arg=-Wl,--wrap={function}");
    }
    // See tests/gpu/runtime.rs: libtorch is to find the test's functions before CUDA's.
    for functions in ["cuda*", "__cuda*"] {
        println!("cargo:rustc-link-arg-tests=-Wl,--export-dynamic-symbol={functions}");
    }
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

/// Where programs, tests and benchmarks look for libtorch when they start.
fn rpath(lib: &Path) {
    // DT_RPATH, not DT_RUNPATH: it comes before LD_LIBRARY_PATH, so a torch of
    // another version named there for other programs cannot be picked up.
    println!("cargo:rustc-link-arg=-Wl,--disable-new-dtags");
    println!("cargo:rerun-if-env-changed=OSTLER_DIST");
    if std::env::var_os("OSTLER_DIST").is_some() {
        // `cargo xtask dist`: no path of this machine. The wheel has the program in
        // site-packages/ostler/bin, the tarball in bin beside a folder for libtorch.
        for place in ["../../torch/lib", "../libtorch/lib"] {
            println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/{place}");
        }
        return;
    }
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
    // Relative to target/PROFILE/ostler and target/PROFILE/deps/test-*: keeps
    // working after the checkout has been moved.
    for up in ["../..", "../../.."] {
        println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/{up}/.libtorch/torch/lib");
    }
}
