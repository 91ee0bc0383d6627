//! How kernels are compiled for processors: a file for several kinds of vectors, side by side.
//! `trainer/learn/build.rs` compiles the learner's the same way.
#![allow(dead_code, reason = "not every crate has kernels for several processors")]

#[path = "../base/src/processor.rs"]
mod processor;

use std::path::Path;

/// One file, compiled one way.
pub struct Unit {
    /// Its name, within those of its crate.
    pub name: &'static str,
    /// The file.
    pub file: &'static str,
    /// Macros and their values.
    pub defines: &'static [(&'static str, &'static str)],
    /// Level of optimisation.
    pub optimise: u32,
    /// Instructions.
    pub flags: &'static [&'static str],
    /// The feature that it is for; none: every program has it.
    pub of: Option<&'static str>,
}

/// Instruction sets, each a feature of the crate.
const SETS: [&str; 3] = ["portable", "avx2", "avx512"];

/// The instruction sets that are compiled: those that are features of this build, the portable
/// one where none is. Tells the crate as `cfg(instructions = "avx2")`. A development build is for
/// the machine that makes it: AVX-512, two minutes of its processor time, is left out where this
/// has none.
pub fn sets() -> Vec<&'static str> {
    println!("cargo:rustc-check-cfg=cfg(instructions, values(\"portable\", \"avx2\", \"avx512\"))");
    let mut sets: Vec<_> = SETS.into_iter().filter(|set| feature(set)).collect();
    if development() && processor::widest() != "avx512" {
        sets.retain(|set| *set != "avx512");
    }
    if sets.is_empty() {
        sets.push(SETS[0]);
    }
    for set in &sets {
        println!("cargo:rustc-cfg=instructions=\"{set}\"");
    }
    sets
}

fn development() -> bool {
    std::env::var("PROFILE").is_ok_and(|profile| profile == "debug")
}

fn feature(name: &str) -> bool {
    std::env::var_os(format!("CARGO_FEATURE_{}", name.to_uppercase())).is_some()
}

/// For processors with AVX2 and FMA.
pub const AVX2: &[&str] = &["-mavx2", "-mfma"];
/// For processors with AVX-512 F, DQ and VL.
pub const AVX512: &[&str] = &[
    "-mavx512f",
    "-mavx512dq",
    "-mavx512vl",
    "-mavx2",
    "-mfma",
    // GCC 12 takes its own headers' undefined registers for mistakes.
    "-Wno-uninitialized",
    "-Wno-maybe-uninitialized",
];

/// Whether what is built is only read, as by `cargo xtask lint`, and never linked: under clippy
/// cargo runs every build script once more, and kernels are most of what they do.
pub fn only_read() -> bool {
    println!("cargo:rerun-if-env-changed=OSTLER_ONLY_READ");
    std::env::var_os("OSTLER_ONLY_READ").is_some_and(|value| value == "1")
}

/// Compiles those that this build has into libraries whose names begin with `prefix`; `sets`
/// are its instruction sets, `what` names these kernels in an error, `include` is where further
/// headers are.
pub fn compile_all(
    units: &[Unit],
    sets: &[&str],
    prefix: &str,
    what: &str,
    include: Option<&str>,
) -> Result<(), String> {
    if only_read() {
        return Ok(());
    }
    let results: Vec<Result<(), String>> = std::thread::scope(|scope| {
        let compiles: Vec<_> = units
            .iter()
            .filter(|unit| {
                unit.of.is_none_or(|of| match SETS.contains(&of) {
                    true => sets.contains(&of),
                    false => feature(of),
                })
            })
            .map(|unit| scope.spawn(move || compile(unit, prefix, include)))
            .collect();
        compiles
            .into_iter()
            .map(|compile| {
                compile.join().unwrap_or_else(|_| Err("the compile's thread panicked".into()))
            })
            .collect()
    });
    results.into_iter().collect::<Result<(), _>>().map_err(|e| {
        format!(
            "{what}: {e}\nhelp: they need a C++17 compiler, such as g++ 9 or newer (Debian, \
             Ubuntu: `apt install g++`); CXX names another one"
        )
    })
}

fn compile(unit: &Unit, prefix: &str, include: Option<&str>) -> Result<(), String> {
    // Each in a folder of its own: objects are named after files, and several units
    // are of the same file. The libraries go where the linker looks.
    let out = std::env::var_os("OUT_DIR").ok_or("cargo sets no OUT_DIR")?;
    let folder = Path::new(&out).join(unit.name);
    std::fs::create_dir_all(&folder)
        .map_err(|e| format!("cannot make {}: {e}", folder.display()))?;
    // Kernels are slow without it, whatever the profile; tests run seconds of them, and the
    // second half of the levels' gain takes twice as long to compile.
    let optimise = if development() { unit.optimise.min(1) } else { unit.optimise };
    let mut build = cc::Build::new();
    build
        .out_dir(&folder)
        .cpp(true)
        .std("c++17")
        .opt_level(optimise)
        .debug(false)
        // Nothing of the C++ library is used.
        .cpp_link_stdlib(None)
        .define("OSTLER_NAME", unit.name)
        .file(unit.file);
    if let Some(folder) = include {
        build.include(folder);
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
    // As for specialised kernels; clang has no such thing.
    build.flag_if_supported("-fno-tree-loop-distribute-patterns");
    build
        .try_compile(&format!("{prefix}{}", unit.name))
        .map_err(|e| format!("\"{}\" does not compile: {e}", unit.name))
}
