//! A hash of files, by which a robot is known again.

use ostler_sim::files;
use std::path::PathBuf;

/// Of the content of files, in their order; none where one cannot be read.
pub(in crate::run) fn hash(sources: &[PathBuf]) -> Option<String> {
    let mut all = blake3::Hasher::new();
    for path in sources {
        let mut one = blake3::Hasher::new();
        one.update_reader(files::open(path).ok()?).ok()?;
        all.update(one.finalize().as_bytes());
    }
    Some(all.finalize().to_hex().to_string())
}
