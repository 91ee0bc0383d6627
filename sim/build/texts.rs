//! The kernels' headers as texts in the program, which compiles them for a robot.

use std::fmt::Write;
use std::path::Path;

/// Writes an array of names, relative to `kernels`, and texts into a file.
pub fn write(kernels: &Path, path: &Path) -> Result<(), String> {
    let mut files = Vec::new();
    headers(kernels, "", &mut files)?;
    files.sort();
    let root = std::path::absolute(kernels)
        .map_err(|e| format!("cannot tell where {} is: {e}", kernels.display()))?;
    let mut rust = String::from("&[\n");
    for name in files {
        let file = root.join(&name);
        let _ = writeln!(rust, "({name:?}, include_str!({file:?})),");
    }
    rust.push_str("]\n");
    std::fs::write(path, rust).map_err(|e| format!("cannot write {}: {e}", path.display()))
}

/// Headers of a folder and the folders in it.
fn headers(root: &Path, folder: &str, files: &mut Vec<String>) -> Result<(), String> {
    let at = root.join(folder);
    let failed = |e: std::io::Error| format!("cannot list {}: {e}", at.display());
    for entry in std::fs::read_dir(&at).map_err(failed)? {
        let entry = entry.map_err(failed)?;
        let name = entry.file_name();
        let name = format!("{folder}{}", name.to_string_lossy());
        if entry.file_type().map_err(failed)?.is_dir() {
            headers(root, &format!("{name}/"), files)?;
        } else if name.ends_with(".cuh") || name.ends_with(".h") {
            files.push(name);
        }
    }
    Ok(())
}
