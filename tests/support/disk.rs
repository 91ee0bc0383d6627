//! A file system of a test's own, small enough to be full soon.

use super::need::Need;
use std::process::Command;

/// The words before a command that may mount a tmpfs, which is gone when it ends: it runs
/// in a mount namespace of its own. `None` after saying that the calling test is skipped,
/// where nothing can be mounted.
///
/// # Panics
/// Nothing can be mounted, and `OSTLER_REQUIRE` names the disk.
pub fn unshare() -> Option<&'static [&'static str]> {
    let mut why = Vec::new();
    // As root, or as root of a user namespace.
    for words in [&["unshare", "-m"][..], &["unshare", "-rm"]] {
        let mut command = Command::new(words[0]);
        command.args(&words[1..]);
        command.args(["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", "/tmp"]);
        match command.output() {
            Ok(out) if out.status.success() => return Some(words),
            Ok(out) => why.push(String::from_utf8_lossy(&out.stderr).into_owned()),
            Err(e) => why.push(format!("{}: {e}", words.join(" "))),
        }
    }
    Need::Disk.or_skip(Err(why.join("; ")))
}
