//! Where programs, tests and benchmarks look for libtorch when they start, for the build script
//! of every crate that links it.
//!
//! The launcher (`cargo run --bin train`) puts libtorch at `.libtorch/torch`;
//! `.cargo/config.toml` hands that path to every build as `LIBTORCH`.

use std::path::PathBuf;

/// libtorch's folder.
///
/// # Errors
/// There is none, or not all of it.
pub fn folder() -> Result<PathBuf, String> {
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    let libtorch = std::env::var_os("LIBTORCH").ok_or("LIBTORCH is not set")?;
    let libtorch = std::path::absolute(PathBuf::from(libtorch)).map_err(|e| e.to_string())?;
    let header = libtorch.join("include/ATen/Context.h");
    match header.is_file() {
        true => Ok(libtorch),
        false => {
            Err(format!("no libtorch at {}: {} is missing", libtorch.display(), header.display()))
        }
    }
}

/// Arguments for the linker.
///
/// # Errors
/// As [`folder`].
pub fn link() -> Result<PathBuf, String> {
    let libtorch = folder()?;
    // DT_RPATH, not DT_RUNPATH: it comes before LD_LIBRARY_PATH, so a torch of
    // another version named there for other programs cannot be picked up.
    println!("cargo:rustc-link-arg=-Wl,--disable-new-dtags");
    // See machine/src/torch/shim.cpp: failures of calls that take numbers must not become panics.
    for function in ["ats_free", "get_and_reset_last_err"] {
        println!("cargo:rustc-link-arg=-Wl,--wrap={function}");
    }
    println!("cargo:rerun-if-env-changed=OSTLER_DIST");
    if std::env::var_os("OSTLER_DIST").is_some() {
        // `cargo xtask dist`: no path of this machine. The wheel has the program in
        // site-packages/ostler/bin, the tarball in bin beside a folder for libtorch.
        for place in ["../../torch/lib", "../libtorch/lib"] {
            println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/{place}");
        }
        return Ok(libtorch);
    }
    println!("cargo:rustc-link-arg=-Wl,-rpath,{}", libtorch.join("lib").display());
    // Relative to target/PROFILE/ostler and target/PROFILE/deps/test-*: keeps
    // working after the checkout has been moved.
    for up in ["../..", "../../.."] {
        println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/{up}/.libtorch/torch/lib");
    }
    Ok(libtorch)
}

/// What a build script ends with.
pub fn ended(result: Result<(), String>) -> std::process::ExitCode {
    match result {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(message) => {
            eprintln!(
                "error: {message}\nhelp: run `cargo run --bin train -- --fetch-only` once, which \
                 puts libtorch at .libtorch/torch, or set LIBTORCH to a libtorch of the version \
                 in README.md"
            );
            std::process::ExitCode::FAILURE
        }
    }
}
