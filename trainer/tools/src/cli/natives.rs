//! The part of `ostler check` about native functions.

use ostler_learn::config::ALLOW_NATIVE;
use ostler_run::log::outln;
use ostler_sim::config::Leave;
use ostler_sim::env::BatchEnv;
use ostler_sim::task::expr::Unit;

/// Prints functions with what they get, give and remember.
pub(crate) fn print(env: &BatchEnv) {
    let (task, config) = (env.compiled(), env.task());
    for (i, native) in task.natives.functions.iter().enumerate() {
        if i == 0 {
            outln!("\nnative");
        }
        let (row, term) = (&native.row, &config.native[native.row.index]);
        let when = match (native.judged, native.seen) {
            (true, true) => "called before rewards and before observations",
            (true, false) => "called before rewards",
            (false, true) => "called before observations",
            (false, false) => "nothing reads it",
        };
        let name = &row.name;
        outln!("  {name:20} {} of {}, {when}", native.function, term.file);
        for input in &native.inputs {
            let expr = input.text().split_whitespace().collect::<Vec<_>>().join(" ");
            line("in", input.first, input.units(), &expr);
        }
        line("out", 0, &row.units, "");
        if !native.memory.is_empty() {
            line("memory", 0, &vec![Unit::Any; native.memory.len()], "");
        }
    }
    if !task.natives.is_empty() && config.native_code.leave != Leave::Run {
        let mut files: Vec<String> =
            (config.native_code.headers.iter()).map(|h| h.path.display().to_string()).collect();
        files.dedup();
        outln!(
            "  NOT COMPILED: {}: {ALLOW_NATIVE} compiles, and lets run, what the task names",
            files.join(", ")
        );
    }
}

/// Numbers from `first` on of what a function gets or gives.
fn line(of: &str, first: usize, units: &[Unit], expr: &str) {
    let place = match units.len() {
        1 => format!("{of}[{first}]"),
        n => format!("{of}[{first}..{}]", first + n - 1),
    };
    let unit = match units.iter().all(|u| *u == units[0]) {
        true => units[0].to_string(),
        false => units.iter().map(Unit::to_string).collect::<Vec<_>>().join(", "),
    };
    outln!("    {place:18} {unit:16} {expr}");
}
