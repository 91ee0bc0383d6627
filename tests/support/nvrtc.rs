//! Finds NVRTC, CUDA's compiler, among the referees (pip's `nvidia-cuda-nvrtc`). Shared
//! by tests through `#[path]`, beside `referee.rs`.

use crate::referee::referee_python;
use std::path::PathBuf;
use std::process::Command;

/// The folder of `libnvrtc.so`, or `None` after saying that the calling test is skipped.
///
/// # Panics
/// Where `OSTLER_REQUIRE_REFEREE=1` and there is none.
pub fn nvrtc_folder() -> Option<PathBuf> {
    const FIND: &str = "import glob, os, sys
for base in sys.path:
    for found in glob.glob(os.path.join(base, 'nvidia', '**', 'libnvrtc.so.*'), recursive=True):
        print(os.path.dirname(found)); sys.exit()";
    let python = referee_python()?;
    let out = Command::new(&python).args(["-c", FIND]).output().unwrap();
    let folder = String::from_utf8(out.stdout).unwrap().trim().to_owned();
    if !folder.is_empty() {
        return Some(folder.into());
    }
    let test = std::thread::current().name().unwrap_or("a test").to_owned();
    assert!(
        std::env::var_os("OSTLER_REQUIRE_REFEREE").is_none_or(|v| v != "1"),
        "{test}: the package nvidia-cuda-nvrtc is missing beside {}",
        python.display()
    );
    let line = format!("SKIPPED: {test}: no nvidia-cuda-nvrtc beside the referees\n");
    let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
    None
}
