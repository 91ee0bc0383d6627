//! The motions of `[[task.reference]]`.

use ostler_run::log::outln;
use ostler_sim::env::BatchEnv;

/// Prints the clips, what their reader noted, and their memory.
pub(super) fn print(env: &BatchEnv) {
    for (i, line) in env.compiled().reference.lines().iter().enumerate() {
        if i == 0 {
            outln!("\nreference");
        }
        outln!("  {line}");
    }
}
