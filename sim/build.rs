//! Compiles the generic physics kernels, one for each instruction set.

use std::process::ExitCode;

/// Name, definition, flags.
const KERNELS: [(&str, &str, &[&str]); 5] = [
    ("portable", "OSTLER_LANES=8", &["-Wno-psabi"]),
    ("avx2", "OSTLER_LANES=8", &["-mavx2", "-mfma"]),
    (
        "avx512",
        "OSTLER_LANES=16",
        &["-mavx512f", "-mavx512dq", "-mavx512vl", "-mavx2", "-mfma"],
    ),
    ("double", "OSTLER_DOUBLE", &[]),
    ("trace", "", &["-Wno-psabi", "-Wno-unused-function"]),
];

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=kernels");
    println!("cargo:rerun-if-changed=build.rs");
    let results = std::thread::scope(|scope| {
        let compiles = KERNELS.map(|kernel| scope.spawn(move || compile(kernel)));
        compiles.map(|compile| {
            compile
                .join()
                .unwrap_or_else(|_| Err("the compile's thread panicked".into()))
        })
    });
    for result in results {
        if let Err(error) = result {
            eprintln!(
                "error: {error}\nhelp: the physics kernels need a C++17 compiler, such as g++ 9 \
                 or newer (Debian, Ubuntu: `apt install g++`); CXX names another one"
            );
            return ExitCode::FAILURE;
        }
    }
    ExitCode::SUCCESS
}

fn compile((name, define, flags): (&str, &str, &[&str])) -> Result<(), String> {
    // Each in a folder of its own: all come from the same file, and objects are named
    // after files.
    let folder = std::env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?;
    let folder = std::path::Path::new(&folder).join(name);
    std::fs::create_dir_all(&folder)
        .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let mut build = cc::Build::new();
    build
        .out_dir(&folder)
        .cpp(true)
        .std("c++17")
        // Kernels are slow without it, whatever the profile.
        .opt_level(if name == "trace" { 1 } else { 2 })
        .debug(false)
        // Nothing of the C++ library is used.
        .cpp_link_stdlib(None)
        .file(if name == "trace" {
            "kernels/trace.cpp"
        } else {
            "kernels/host.cpp"
        });
    if name != "trace" {
        let (key, value) = define.split_once('=').unwrap_or((define, ""));
        build.define("OSTLER_NAME", name).define(key, value);
    }
    for flag in [
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-fno-exceptions",
        "-fno-rtti",
        "-Wno-unused-parameter",
        "-Wno-maybe-uninitialized",
    ]
    .iter()
    .chain(flags)
    {
        build.flag(flag);
    }
    build
        .try_compile(&format!("ostler_kernel_{name}"))
        .map_err(|e| format!("the {name} physics kernel does not compile: {e}"))
}
