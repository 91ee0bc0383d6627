//! The compiler's log: errors, and the needs of each function.

use serde::{Deserialize, Serialize};

/// Needs of an entry, for each thread but for shared memory.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Needs {
    /// Registers of 32 bits.
    pub registers: u32,
    /// Local memory of it and of the functions that it calls (bytes).
    pub stack: u32,
    /// Bytes that are written to local memory for want of registers, by it or by the
    /// function it calls that writes the most.
    pub spill_stores: u32,
    /// Bytes read back, likewise.
    pub spill_loads: u32,
    /// Shared memory of a block (bytes).
    pub shared: u32,
}

/// An entry in the log of `--ptxas-options=-v`: after the line that names it come
/// its own figures, then those of the functions that it calls rather than inlines.
pub fn needs(log: &str, entry: &str) -> Option<Needs> {
    const START: &str = "Compiling entry function '";
    let mut lines = log.lines();
    lines.find(|line| between(line, START, "'") == Some(entry))?;
    let mut needs = Needs::default();
    for line in lines.take_while(|line| !line.contains(START)) {
        let largest = |field: &mut u32, unit: &str| {
            *field = (*field).max(before(line, unit).unwrap_or_default());
        };
        largest(&mut needs.registers, " registers");
        largest(&mut needs.stack, " bytes stack frame");
        largest(&mut needs.stack, " bytes cumulative stack size");
        largest(&mut needs.spill_stores, " bytes spill stores");
        largest(&mut needs.spill_loads, " bytes spill loads");
        largest(&mut needs.shared, " bytes smem");
    }
    (needs.registers > 0).then_some(needs)
}

/// The first error of a log, in one line.
pub fn first_error(log: &str) -> &str {
    log.lines()
        .find(|line| line.contains("error"))
        .or_else(|| log.lines().find(|line| !line.trim().is_empty()))
        .unwrap_or("the compiler does not say why")
        .trim()
}

fn between<'a>(line: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let (_, rest) = line.split_once(start)?;
    Some(rest.split_once(end)?.0)
}

/// The number that precedes a text.
fn before(line: &str, text: &str) -> Option<u32> {
    let (start, _) = line.split_once(text)?;
    let digits = start.rsplit(|c: char| !c.is_ascii_digit()).next()?;
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As NVRTC 13.0 prints it.
    const LOG: &str = "ptxas info    : 0 bytes gmem
ptxas info    : Compiling entry function 'step' for 'sm_90'
ptxas info    : Function properties for step
ptxas         .     256 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 36 registers, used 1 barriers, 320 bytes cumulative stack size, 128 bytes smem
ptxas info    : Compile time = 10.233 ms
ptxas info    : Function properties for _Z1gfi
ptxas         .     0 bytes stack frame, 24 bytes spill stores, 8 bytes spill loads
ptxas info    : Compiling entry function 'reset' for 'sm_90'
ptxas info    : Function properties for reset
ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
ptxas info    : Used 8 registers, used 0 barriers
ptxas info    : Compile time = 2.294 ms
";

    #[test]
    fn needs_are_those_of_the_entry_and_of_what_it_calls() {
        let step =
            Needs { registers: 36, stack: 320, spill_stores: 24, spill_loads: 20, shared: 128 };
        assert_eq!(needs(LOG, "step"), Some(step));
        let reset = Needs { registers: 8, ..Needs::default() };
        assert_eq!(needs(LOG, "reset"), Some(reset));
        assert_eq!(needs(LOG, "ste"), None);
        assert_eq!(needs("", "step"), None);
    }

    #[test]
    fn the_first_error_is_found_behind_warnings() {
        let log = "program.cu(3): warning #177-D: variable \"x\" was declared\n
task.reward[1].expr(1): error: identifier \"nope\" is undefined\n   nope\n   ^\n
1 error detected in the compilation of \"program.cu\".\n";
        assert_eq!(
            first_error(log),
            "task.reward[1].expr(1): error: identifier \"nope\" is undefined"
        );
        assert_eq!(first_error("\n killed \n"), "killed");
        assert_eq!(first_error(""), "the compiler does not say why");
    }
}
