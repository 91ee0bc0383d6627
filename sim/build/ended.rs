//! How a build script ends.

use std::process::ExitCode;

/// Prints a mistake without quotes around it, as `fn main() -> Result` would not.
pub fn ended(result: Result<(), String>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
