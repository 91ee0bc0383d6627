//! Finds NVRTC, CUDA's compiler, among the referees (pip's `nvidia-cuda-nvrtc`). Shared
//! by tests through `#[path]`, beside `need.rs` and `referee.rs`.

use super::need::Need;
use super::referee;
use std::path::PathBuf;
use std::process::Command;

/// The folder of `libnvrtc.so`, or `None` after saying that the calling test is skipped.
///
/// # Panics
/// There is none, and `OSTLER_REQUIRE` names NVRTC.
pub fn nvrtc_folder() -> Option<PathBuf> {
    Need::Nvrtc.or_skip(find())
}

/// CUDA's disassembler (pip's `nvidia-cuda-nvdisasm`), as above.
///
/// # Panics
/// There is none, and `OSTLER_REQUIRE` names NVRTC.
pub fn nvdisasm() -> Option<PathBuf> {
    let found = beside("nvdisasm", "nvidia-cuda-nvdisasm");
    Need::Nvrtc.or_skip(found.map(|folder| folder.join("nvdisasm")))
}

fn find() -> Result<PathBuf, String> {
    beside("libnvrtc.so.*", "nvidia-cuda-nvrtc")
}

/// The folder of a file of one of NVIDIA's packages for Python.
fn beside(file: &str, package: &str) -> Result<PathBuf, String> {
    const FIND: &str = "import glob, os, sys
for base in sys.path:
    for found in glob.glob(os.path.join(base, 'nvidia', '**', sys.argv[1]), recursive=True):
        print(os.path.dirname(found)); sys.exit()";
    let python = referee::find()?;
    let out = Command::new(&python).args(["-c", FIND, file]).output();
    let out = out.map_err(|e| format!("{}: {e}", python.display()))?;
    match String::from_utf8_lossy(&out.stdout).trim() {
        "" => Err(format!("no {package} beside {}", python.display())),
        folder => Ok(folder.into()),
    }
}
