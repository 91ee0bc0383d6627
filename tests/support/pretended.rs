//! The pretend GPU for tests: built once, beside what cargo builds.

use super::need::Need;
use super::pretend::Pretend;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// The libraries; `None` after saying that the calling test is skipped.
pub fn libraries() -> Option<&'static Pretend> {
    static BUILT: OnceLock<Result<Pretend, String>> = OnceLock::new();
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let libtorch = std::env::var_os("LIBTORCH");
    let libtorch = libtorch.map_or_else(|| root.join(".libtorch/torch"), Into::into);
    let built = BUILT.get_or_init(|| {
        // Tests within a crate have no folder of their own.
        let target = option_env!("CARGO_TARGET_TMPDIR").map(PathBuf::from);
        let target = target.unwrap_or_else(std::env::temp_dir);
        Pretend::build(&target, &root.join("tests/pretend"), &libtorch)
    });
    Need::Compiler.or_skip(built.as_ref().map_err(Clone::clone))
}
