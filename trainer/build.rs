//! Compiles the learner's kernels for hosts and the C++ shim over libtorch, and tells the
//! programs where libtorch is.
//!
//! The launcher (`cargo run --bin train`) puts libtorch at `.libtorch/torch`;
//! `.cargo/config.toml` hands that path to every build as `LIBTORCH`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

const WAY_OUT: &str = "run `cargo run --bin train -- --fetch-only` once, which puts libtorch at \
     .libtorch/torch, or set LIBTORCH to a libtorch of the version in README.md";

const SHIMS: [&str; 4] = [
    "src/torch/shim.cpp",
    "src/torch/device.cpp",
    "src/torch/stream.cpp",
    "src/torch/watch.cpp",
];

/// Name, numbers in a vector, optimisation, instructions.
type Unit = (&'static str, &'static str, u32, &'static [&'static str]);

const UNITS: [Unit; 3] = [
    ("portable", "4", 2, &[]),
    ("avx2", "8", 3, &["-mavx2", "-mfma"]),
    (
        "avx512",
        "16",
        3,
        &[
            "-mavx512f",
            "-mavx512dq",
            "-mavx512vl",
            "-mavx2",
            "-mfma",
            // GCC 12 takes its own headers' undefined registers for mistakes.
            "-Wno-uninitialized",
            "-Wno-maybe-uninitialized",
        ],
    ),
];

/// What the engine's kernels share with the learner's.
const BASE: &str = "../sim/kernels";

fn main() -> ExitCode {
    if let Err(message) = kernels() {
        eprintln!(
            "error: {message}\nhelp: the learner's kernels need a C++17 compiler, such as g++ 9 \
             or newer (Debian, Ubuntu: `apt install g++`); CXX names another one"
        );
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

/// The learner's passes over rows, once for each kind of vectors.
fn kernels() -> Result<(), String> {
    println!("cargo:rerun-if-changed=kernels");
    for file in ["scalar.cuh", "lanes.cuh"] {
        println!("cargo:rerun-if-changed={BASE}/{file}");
    }
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?;
    for (name, lanes, optimise, flags) in UNITS {
        // Objects are named after files, and all are of the same file.
        let folder = Path::new(&out).join(name);
        std::fs::create_dir_all(&folder)
            .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
        let mut build = cc::Build::new();
        build
            .out_dir(&folder)
            .cpp(true)
            .std("c++17")
            // Kernels are slow without it, whatever the profile.
            .opt_level(optimise)
            .debug(false)
            .cpp_link_stdlib(None)
            .include(BASE)
            .define("OSTLER_NAME", name)
            .define("OSTLER_LANES", lanes)
            .file("kernels/host.cpp");
        for flag in [
            "-ffp-contract=off",
            "-fno-math-errno",
            "-fno-trapping-math",
            "-fno-exceptions",
            "-fno-rtti",
            "-Wno-psabi",
            "-Wno-unused-function",
            "-Wno-unused-parameter",
        ]
        .iter()
        .chain(flags)
        {
            build.flag(flag);
        }
        build
            .try_compile(&format!("ostler_learn_{name}"))
            .map_err(|e| format!("the learner's kernels \"{name}\" do not compile: {e}"))?;
    }
    Ok(())
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
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", lib.display());
    // Relative to target/PROFILE/ostler and target/PROFILE/deps/test-*: keeps
    // working after the checkout has been moved.
    for up in ["../..", "../../.."] {
        println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/{up}/.libtorch/torch/lib");
    }
}
