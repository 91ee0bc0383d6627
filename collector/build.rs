//! Tells this crate's tests where libtorch is; trainer's build script does so for
//! programs.

use std::path::PathBuf;

fn main() {
    println!("cargo:rerun-if-env-changed=LIBTORCH");
    println!("cargo:rerun-if-changed=build.rs");
    // Without it torch-sys has failed already, and said why.
    let libtorch =
        std::env::var_os("LIBTORCH").and_then(|l| std::path::absolute(PathBuf::from(l)).ok());
    if let Some(libtorch) = libtorch {
        // DT_RPATH, not DT_RUNPATH: it comes before LD_LIBRARY_PATH.
        println!("cargo:rustc-link-arg=-Wl,--disable-new-dtags");
        println!("cargo:rustc-link-arg=-Wl,-rpath,{}", libtorch.join("lib").display());
    }
}
