//! MuJoCo as referee of the scalar narrow phase: contacts of every pair of geoms, in
//! thousands of placements, compared as sets; and hostile input, which must end.
//!
//! Compiles the kernels with the host's C++ compiler. Needs the referees' Python
//! (`OSTLER_REFEREE_PYTHON`); without either the test says that it was skipped.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The first C++ compiler that answers: `CXX`, then the usual names.
fn compiler() -> Option<String> {
    let named = std::env::var("CXX").ok().filter(|name| !name.is_empty());
    let usual = ["c++", "g++", "clang++"].map(str::to_owned);
    let found = named.into_iter().chain(usual).find(|name| {
        let answer = Command::new(name).arg("--version").output();
        answer.is_ok_and(|out| out.status.success())
    });
    let found = found.ok_or("none of CXX, c++, g++ and clang++ is a C++ compiler");
    crate::support::need::Need::Compiler.or_skip(found)
}

/// The kernels behind their C interface, as a shared library in `folder`.
fn library(compiler: &str, folder: &Path) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let path = folder.join("libcollide_check.so");
    let out = Command::new(compiler)
        .args(["-std=c++17", "-O2", "-shared", "-fPIC", "-ffp-contract=off"])
        .args(["-fno-math-errno", "-fno-trapping-math", "-Wall", "-Wextra", "-Werror"])
        .arg("-o")
        .arg(&path)
        .arg(root.join("kernels/tests/collide_check.cpp"))
        .output()
        .unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    path
}

#[test]
fn contacts_of_every_pair_are_mujocos() {
    let Some(python) = crate::support::referee::referee_python() else {
        return;
    };
    let Some(compiler) = compiler() else {
        return;
    };
    // MuJoCo writes its log into the working directory.
    let scratch = tempfile::tempdir().unwrap();
    let library = library(&compiler, scratch.path());
    let script =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/engine/collide_referee/compare.py");
    let args = [library.as_os_str(), "--count".as_ref(), "150".as_ref()];
    let out = crate::support::script::run(&python, &script, &args);
    let table = String::from_utf8_lossy(&out.stdout);
    println!("{table}");
    assert!(
        out.status.success() && table.contains("missed: nothing"),
        "{table}\n{}",
        String::from_utf8_lossy(&out.stderr)
    );
}
