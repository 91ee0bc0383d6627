//! C++ for one robot: its tables as constants, the straight parts of a step as they
//! were recorded (`tape`), around the kernels' own text.

mod amalgam;
pub(super) mod printed;
mod tables;
mod trace;

use super::specialize::Source;
use super::tables::RobotTables;
use super::tape::{Printer, Program, Style, TapeError};
use ostler_model::on_all_lanes;
use std::fmt::Write;

pub use printed::{physics_hash, program_hash};

/// The kernels' source and the functions recorded for a robot.
#[derive(Debug)]
pub struct Generated {
    /// Code for the host's lanes.
    pub source: Source,
    /// The recording, for counts of operations.
    pub program: Program,
}

/// Functions of `Straight` (`sim/kernels/hooks.cuh`) that a recording may hold.
const STRAIGHT: [&str; 11] = [
    "smooth",
    "geoms",
    "rows",
    "poses",
    "velocities_qacc",
    "velocities_step",
    "residual",
    "mass_step",
    "start_system",
    "solve_system",
    "euler",
];

/// Most numbers in a robot's tables for a kernel of its own on the host, where the generic
/// one is as good a choice: they become text, a height field mostly.
const MAX_NUMBERS: usize = 1 << 19;

/// Writes the kernel of a robot for vectors of `lanes` floats.
///
/// # Errors
/// The robot is too large to be written out; the recording went wrong, a mistake in a kernel.
pub fn generate(plan: &RobotTables, lanes: usize) -> Result<Generated, TapeError> {
    let ints = plan.ints().map(|(_, x)| x.len()).sum::<usize>();
    let numbers = ints + plan.reals().map(|(_, x)| x.len()).sum::<usize>();
    if numbers > MAX_NUMBERS {
        return Err(TapeError::TooManyNumbers { numbers, most: MAX_NUMBERS });
    }
    let program = trace::record(plan)?;
    let mut text = String::from(
        "// A physics kernel for one robot, written by Ostler.\n\
         #include <immintrin.h>\n#include <math.h>\n",
    );
    text.push_str(&amalgam::expand("api.h"));
    let scalar = format!("Vec<{lanes}>");
    text.push_str(&robot_text(plan, &program, &scalar, Style::default()));
    text.push_str(ENTRY);
    let _ = writeln!(text, "{ROBOT}{{ return \"{}\"; }}", plan.digest().to_hex());
    Ok(Generated { source: Source { text, headers: Vec::new() }, program })
}

/// Writes the CUDA program of a robot: one environment per thread, the same kernel
/// text, tables and straight parts. Its one entry is `ostler_step`.
///
/// # Errors
/// As [`generate`].
pub fn generate_cuda(plan: &RobotTables) -> Result<String, TapeError> {
    let program = trace::record(plan)?;
    // Whole functions: pieces would hand their values on through local memory.
    let style = Style { piece: 0, ..Style::default() };
    Ok(robot_text(plan, &program, "float", style) + DEVICE_ENTRY)
}

/// Writes the program of whole environments: a robot's kernel, `task`'s text between what
/// it needs and what needs it, and the entries of `sim/kernels/env`. The same text compiles
/// for the host.
///
/// # Errors
/// As [`generate`].
pub fn generate_env(plan: &RobotTables, task: &str) -> Result<String, TapeError> {
    let program = trace::record(plan)?;
    let style = Style { piece: 0, ..Style::default() };
    let mut text = String::from(
        "// Environments of one robot and task, written by Ostler.\n\
         #ifndef __CUDACC__\n#include <immintrin.h>\n#include <math.h>\n#endif\n",
    );
    text.push_str(&robot_text(plan, &program, "float", style));
    text.push_str(&amalgam::expand("env/all.cuh"));
    text.push_str(task);
    text.push_str("#line 1 \"environments\"\n");
    text.push_str(&amalgam::expand("env/env.cuh"));
    text.push_str("}  // namespace\n");
    text.push_str(&amalgam::expand("env/entries.cuh"));
    Ok(text)
}

/// The text of a library of native functions, up to its entry, in a namespace that this closes:
/// what the functions see, and `functions`.
pub fn native_text(functions: &str) -> String {
    let mut text = String::from(
        "// Native functions of a task, written by Ostler.\n\
         #include <immintrin.h>\n#include <math.h>\n#define OSTLER_RESTRICT __restrict__\nnamespace {\n",
    );
    text.push_str(&amalgam::expand("kernel.cuh"));
    text.push_str(&amalgam::expand("env/all.cuh"));
    text.push_str(functions);
    text
}

/// Text below a task's, without any robot: for tests of that text.
pub fn env_prelude() -> String {
    let kernel = amalgam::expand("kernel.cuh");
    let env = amalgam::expand("env/all.cuh");
    format!(
        "#include <immintrin.h>\n#include <math.h>\n#define OSTLER_RESTRICT __restrict__\nnamespace {{\n{kernel}{env}"
    )
}

/// The kernel of a robot up to its entries, in a namespace that they close.
fn robot_text(plan: &RobotTables, program: &Program, scalar: &str, style: Style) -> String {
    let mut text = String::from("#define OSTLER_RESTRICT __restrict__\n");
    if primitives_only(plan) {
        text.push_str("#define OSTLER_PRIMITIVES_ONLY\n");
    } else {
        text.push_str(&shapes_used(plan));
    }
    // A namespace without a name: nothing in it can be shared with another robot's.
    text.push_str("namespace {\n");
    text.push_str(&amalgam::expand("kernel.cuh"));
    let _ = writeln!(text, "typedef {scalar} R;");
    text.push_str(&tables::write(plan));
    text.push_str("typedef Work<R, Robot> W;\nnamespace straight {\n");
    text.push_str(&Printer::new(program, style).all("constants"));
    text.push_str("}\n");
    text.push_str(&hooks(plan, program));
    text
}

/// Whether all contacts are between planes, spheres and capsules.
fn primitives_only(plan: &RobotTables) -> bool {
    plan.pair_kind.iter().all(|kind| on_all_lanes(*kind))
}

/// The kinds of pairs that the scalar narrow phase has code for (`collide/pair.cuh`):
/// without it, a kernel carries the code, and on a GPU the stack, of shapes that the
/// robot has not got.
fn shapes_used(plan: &RobotTables) -> String {
    let mut kinds = plan.pair_kind.clone();
    kinds.sort_unstable();
    kinds.dedup();
    let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
    format!("#define OSTLER_PAIR_KINDS {}\n", kinds.join(", "))
}

/// `Straight` with the recorded functions in it.
fn hooks(plan: &RobotTables, program: &Program) -> String {
    let mut text = String::from("template<> struct Straight<R, Robot> {\n");
    for name in STRAIGHT {
        if program.functions.iter().any(|f| f.name == name) {
            let _ = writeln!(
                text,
                "  static OSTLER_FN void {name}(const Robot&, W& w) {{ straight::{name}(w); }}"
            );
        } else if name.starts_with("velocities") {
            // No contact of this robot asks for them.
            let _ = writeln!(text, "  static OSTLER_FN void {name}(const Robot&, W&) {{}}");
        }
    }
    text.push_str(coupled(plan, program));
    text.push_str("  static OSTLER_FN void loads(const Robot& m, W& w) {\n");
    let loaded = if plan.nwslot > 0 { plan.nb } else { 0 };
    for b in (0..loaded).rev() {
        let _ = writeln!(
            text,
            "    if (w.has_load[{b}]) straight::load_{b}(w), load_to_parent(m, w, {b});"
        );
    }
    text.push_str("    (void)m, (void)w;\n  }\n");
    text.push_str(&without_euler(program));
    text + "};\n"
}

fn without_euler(program: &Program) -> String {
    if program.functions.iter().any(|f| f.name == "euler") {
        return String::new();
    }
    "  static OSTLER_FN void euler(const Robot&, W&) {}\n".into()
}

/// The case of contacts that couple branches of the tree: written out for all pairs at
/// once, or as the generic kernel has it where that would be too long.
fn coupled(plan: &RobotTables, program: &Program) -> &'static str {
    if program.functions.iter().any(|f| f.name == "solve_coupled") {
        return "  static OSTLER_FN bool coupled(const Robot& m, W& w) { return joins_branches(m, w); }
  static OSTLER_FN void start_coupled(const Robot&, W& w) { straight::start_coupled(w); }
  static OSTLER_FN void solve_coupled(const Robot&, W& w) { straight::solve_coupled(w); }
";
    }
    if plan.dense == 0 {
        return "  static OSTLER_FN bool coupled(const Robot&, W&) { return false; }
  static OSTLER_FN void start_coupled(const Robot&, W&) {}
  static OSTLER_FN void solve_coupled(const Robot&, W&) {}
";
    }
    "  static OSTLER_FN bool coupled(const Robot& m, W& w) { return couples(m, w); }
  static OSTLER_FN void start_coupled(const Robot& m, W& w) { copy_system(m, w, w.pat_adr, w.pat_col); }
  static OSTLER_FN void solve_coupled(const Robot& m, W& w) { newton_step(m, w, w.pat_adr, w.pat_col); }
"
}

/// Which robot's tables the kernel has: [`RobotTables::digest`].
const ROBOT: &str =
    "extern \"C\" __attribute__((visibility(\"default\"))) const char* ostler_robot() ";

/// The functions of `OstlerKernel`, as `host.cpp` has them for the generic kernel.
const ENTRY: &str = r#"
static const Robot robot = {};
static unsigned long bytes(const void*) { return sizeof(W); }
static void init(const void*, void* work) { straight::constants(*(W*)work); }
static void run(const void*, void* work, const void* args, int first, int lanes) {
  control_step<R, Robot>(robot, *(W*)work, *(const StepArgs<float>*)args, first, lanes);
}
static void eval(const void*, void* work, const void* args, int first, int lanes) {
  evaluate<R, Robot>(robot, *(W*)work, *(const EvalArgs<float>*)args, first, lanes);
}
static const OstlerKernel kernel = {OSTLER_KERNEL_VERSION, (int)Lane<R>::N, 4, 1, bytes, init, run, eval};
}  // namespace

extern "C" __attribute__((visibility("default"))) const OstlerKernel* ostler_kernel() { return &kernel; }
"#;

/// The device's entry: a thread steps environment `first + thread`.
const DEVICE_ENTRY: &str = r#"
}  // namespace
#ifndef OSTLER_THREADS
#define OSTLER_THREADS 128
#endif
extern "C" __global__ void __launch_bounds__(OSTLER_THREADS) ostler_step(StepArgs<float> args, int count) {
  const int e = blockIdx.x * blockDim.x + threadIdx.x;
  if (e >= count) return;
  W w;
  straight::constants(w);
  const Robot robot = {};
  control_step<R, Robot>(robot, w, args, e, 1);
}
"#;

#[cfg(test)]
mod tests;
