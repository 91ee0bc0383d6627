//! A test in a process of its own: its program is started again for it alone. For what belongs
//! to a whole process: its environment, its limits, its allocator, libtorch's settings.
//!
//! ```text
//! if !alone::here("memory::nothing_is_lost", &[]) { return }
//! ```

use super::need::ALONE;
use std::ffi::OsStr;
use std::process::Command;

/// Whether the calling test, whose full name `test` is, goes on here: in the process that this
/// starts for it, with these variables. Elsewhere it has ended there by now, and passed.
///
/// # Panics
/// It failed there, or there is no test of this name.
pub fn here(test: &str, variables: &[(&str, &OsStr)]) -> bool {
    if std::env::var(ALONE).is_ok_and(|name| name == test) {
        return true;
    }
    let out = command(&[], test).envs(variables.iter().copied()).output().unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    let passed = out.status.success() && said.contains("1 passed");
    // Results are counted where they are read (`cargo xtask test`): this one is the caller's.
    let lines = said.lines().filter(|line| !line.contains("test result: "));
    let said: String = lines.map(|line| format!("  {line}\n")).collect();
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(passed, "{test} alone: {}\n{said}\n{errors}", out.status);
    print!("{said}");
    // Past the harness's capture: reasons of skipped tests.
    let _ = std::io::Write::write_all(&mut std::io::stderr(), &out.stderr);
    false
}

/// This program for one of its tests alone, ignored or not, behind the words of another command.
pub fn command(wrapper: &[&str], test: &str) -> Command {
    let this = std::env::current_exe().unwrap();
    let mut words = wrapper.iter().map(OsStr::new).chain([this.as_os_str()]);
    let mut command = Command::new(words.next().unwrap());
    command.args(words).args(["--exact", "--include-ignored", "--nocapture", test]);
    command.env(ALONE, test);
    command
}
