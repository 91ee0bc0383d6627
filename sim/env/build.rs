//! Lists of the kernels' headers for Rust.

#[path = "../build/columns.rs"]
mod columns;
#[path = "../build/ended.rs"]
mod ended;

use std::path::Path;
use std::process::ExitCode;

fn main() -> ExitCode {
    for file in ["build.rs", "../build/columns.rs", "../kernels/env/stats.h"] {
        println!("cargo:rerun-if-changed={file}");
    }
    let out = std::env::var_os("OUT_DIR").unwrap_or_default();
    let (from, to) = (Path::new("../kernels/env/stats.h"), Path::new(&out).join("stats.rs"));
    ended::ended(columns::write(from, columns::STATS, &to))
}
