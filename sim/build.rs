//! Compiles the kernels that know neither robot nor task.

#[path = "build/columns.rs"]
mod columns;

use std::path::Path;
use std::process::ExitCode;

/// One file, compiled one way.
struct Unit {
    name: &'static str,
    file: &'static str,
    defines: &'static [(&'static str, &'static str)],
    optimise: u32,
    flags: &'static [&'static str],
}

const AVX2: &[&str] = &["-mavx2", "-mfma"];
const AVX512: &[&str] = &[
    "-mavx512f",
    "-mavx512dq",
    "-mavx512vl",
    "-mavx2",
    "-mfma",
    // GCC 12 takes its own headers' undefined registers for mistakes.
    "-Wno-uninitialized",
    "-Wno-maybe-uninitialized",
];

const UNITS: [Unit; 10] = [
    Unit {
        name: "portable",
        file: "kernels/host.cpp",
        defines: &[("OSTLER_LANES", "4")],
        optimise: 2,
        flags: &[],
    },
    Unit {
        name: "avx2",
        file: "kernels/host.cpp",
        defines: &[("OSTLER_LANES", "8")],
        optimise: 3,
        flags: AVX2,
    },
    Unit {
        name: "avx512",
        file: "kernels/host.cpp",
        defines: &[("OSTLER_LANES", "16")],
        optimise: 3,
        flags: AVX512,
    },
    // For comparisons, not for speed.
    Unit {
        name: "double",
        file: "kernels/host.cpp",
        defines: &[("OSTLER_DOUBLE", "")],
        optimise: 1,
        flags: &[],
    },
    Unit {
        name: "f32",
        file: "kernels/collide.cpp",
        defines: &[("OSTLER_REAL", "float")],
        optimise: 2,
        flags: &[],
    },
    Unit {
        name: "f64",
        file: "kernels/collide.cpp",
        defines: &[("OSTLER_REAL", "double")],
        optimise: 1,
        flags: &[],
    },
    Unit {
        name: "env_portable",
        file: "kernels/env.cpp",
        defines: &[],
        optimise: 2,
        flags: &[],
    },
    Unit {
        name: "env_avx2",
        file: "kernels/env.cpp",
        defines: &[],
        optimise: 3,
        flags: AVX2,
    },
    Unit {
        name: "env_avx512",
        file: "kernels/env.cpp",
        defines: &[],
        optimise: 3,
        flags: AVX512,
    },
    Unit {
        name: "trace",
        file: "kernels/trace.cpp",
        defines: &[],
        optimise: 0,
        flags: &[],
    },
];

fn main() -> ExitCode {
    println!("cargo:rerun-if-changed=kernels");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=build/columns.rs");
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    if let Err(error) = columns::write(Path::new("kernels/state.h"), Path::new(&out)) {
        eprintln!("error: {error}");
        return ExitCode::FAILURE;
    }
    let results = std::thread::scope(|scope| {
        let compiles = UNITS.map(|unit| scope.spawn(move || compile(&unit)));
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

fn compile(unit: &Unit) -> Result<(), String> {
    // Each in a folder of its own: objects are named after files, and several units
    // are of the same file. The libraries go where the linker looks.
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?;
    let folder = Path::new(&out).join(unit.name);
    std::fs::create_dir_all(&folder)
        .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    let mut build = cc::Build::new();
    build
        .out_dir(&folder)
        .cpp(true)
        .std("c++17")
        // Kernels are slow without it, whatever the profile.
        .opt_level(unit.optimise)
        .debug(false)
        // Nothing of the C++ library is used.
        .cpp_link_stdlib(None)
        .define("OSTLER_NAME", unit.name)
        .file(unit.file);
    if unit.file.ends_with("host.cpp") || unit.file.ends_with("env.cpp") {
        build.define("OSTLER_COLLIDE_ELSEWHERE", None);
    }
    for (name, value) in unit.defines {
        build.define(name, *value);
    }
    for flag in [
        "-ffp-contract=off",
        "-fno-math-errno",
        "-fno-trapping-math",
        "-fno-exceptions",
        "-fno-rtti",
        "-Wno-psabi",
        "-Wno-unused-function",
        "-Wno-unused-parameter",
        "-Wno-maybe-uninitialized",
    ]
    .iter()
    .chain(unit.flags)
    {
        build.flag(flag);
    }
    // As for robots' own kernels; clang has no such thing.
    build.flag_if_supported("-fno-tree-loop-distribute-patterns");
    build
        .try_compile(&format!("ostler_kernel_{}", unit.name))
        .map_err(|e| format!("the physics kernel \"{}\" does not compile: {e}", unit.name))
}
