//! A task's expressions as C++ for one environment: the `Task` and the `Terms` that
//! `sim/kernels/env` asks.
//!
//! Numbers of expressions go through [`Numbers`]: into the code, or into a table beside it
//! where a curriculum changes them while the task is trained. All other numbers are in
//! tables.

mod numbers;

pub use numbers::Numbers;

use super::Task;
use super::term::Kind;
use ostler_engine::device::SourceRange;
pub use ostler_engine::state::Sizes;
pub use ostler_lang::expr::{Code, Remembered};
use std::fmt::Write;

/// Broken environments of which the device keeps a record for the host to examine: as many
/// as it examines of its own.
pub const BREAKS: usize = 256;
/// C++ of a task.
#[derive(Debug, Clone)]
pub struct Emitted {
    /// The text.
    pub text: String,
    /// Target of its lines.
    pub places: Vec<SourceRange>,
    /// The table of the expressions' numbers; empty where they are in the code.
    pub numbers: Vec<f32>,
}

/// Writes a task for one environment.
struct Writer<'a> {
    task: &'a Task,
    text: String,
    places: Vec<SourceRange>,
    numbers: Numbers,
}

/// Writes `task`.
pub(crate) fn emit(
    task: &Task,
    sizes: &Sizes,
    step_dt: f64,
    max_steps: u32,
    numbers: Numbers,
) -> Emitted {
    let mut w = Writer { task, text: String::new(), places: Vec::new(), numbers };
    w.constants(sizes, step_dt, max_steps);
    w.text.push_str(&task.natives.text);
    w.functions();
    w.calls();
    Emitted { text: w.text, places: w.places, numbers: w.numbers.table() }
}

/// The function of the `i`-th remembered value, and of how it begins.
fn kept(i: usize) -> String {
    format!("term_kept_{i}")
}
fn begun(i: usize) -> String {
    format!("term_begun_{i}")
}

impl Writer<'_> {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = self.text.write_fmt(line);
        self.text.push('\n');
    }

    fn constants(&mut self, s: &Sizes, step_dt: f64, max_steps: u32) {
        let step_dt = ostler_lang::expr::literal(step_dt as f32);
        self.line(format_args!("struct Task {{"));
        let others =
            [("one", 1), ("TALLY", s.tally()), ("BREAKS", BREAKS), ("BREAK", s.break_record())];
        for (name, value) in s.named().chain(others) {
            self.line(format_args!("  static constexpr int {name} = {value};"));
        }
        self.line(format_args!(
            "}};\nOSTLER_FN Task task_of(const EnvArgs&) {{ return {{}}; }}\n\
             struct TaskTime {{\n  static constexpr unsigned max_steps = {max_steps}u;\n  \
             static constexpr float step_dt = {step_dt};\n}};"
        ));
    }

    /// One function per expression, marked with the place it comes from.
    fn functions(&mut self) {
        let task = self.task;
        // Terms of a kind lie one behind the other.
        let (mut last, mut i) = (None, 0);
        for term in task.terms() {
            i = if last.replace(term.kind) == Some(term.kind) { i + 1 } else { 0 };
            self.term(&term.kind.function(i), term.code(), term.path.clone(), &term.text);
        }
        for (i, cell) in task.history.cells().iter().enumerate() {
            let place = match cell.kind() {
                Remembered::State(s) => {
                    format!("task.state[{}]", task.history.states()[s].index)
                }
                Remembered::Previous | Remembered::Since => {
                    format!("what the task remembers, {i}")
                }
            };
            let text = cell.text();
            self.term(&kept(i), cell.next(), place.clone(), &text);
            if !cell.begins_as_it_goes_on() {
                self.term(&begun(i), cell.begin(), place, &text);
            }
        }
        for (name, key) in task.natives.places() {
            self.places.push(SourceRange { name: format!("{name}("), key, text: name.to_string() });
        }
        self.line(format_args!("#line 1 \"task\""));
    }

    fn term(&mut self, name: &str, code: &Code, place: String, text: &str) {
        let params = &self.task.params;
        let numbers = &mut self.numbers;
        let body = code.emit(|k| numbers.text(params.get(k).copied().unwrap_or(f32::NAN)));
        self.line(format_args!("#line 1 \"{place}\""));
        self.line(format_args!(
            "OSTLER_TERM void {name}(const EnvArgs& a, int e, float* out) {{\n  (void)a, (void)e;\n{body}}}"
        ));
        self.places.push(SourceRange { name: place.clone(), key: place, text: text.to_string() });
    }

    /// `Terms`: calls them in order.
    fn calls(&mut self) {
        let task = self.task;
        self.line(format_args!("struct Terms : Printed {{\n  const EnvArgs& a;\n  const int e;"));
        let ones = |k: usize| vec![1; k];
        let seen = task.observations.terms.iter().map(|t| t.len());
        for (name, kind, widths) in [
            ("rewards", Kind::Reward, ones(task.score.rewards.len())),
            ("ends", Kind::End, ones(task.score.terminations.len())),
            ("metrics", Kind::Metric, ones(task.metrics.len())),
            ("observations", Kind::Seen, seen.collect()),
            ("untils", Kind::Until, ones(task.start.conditions.len())),
            ("climbs", Kind::Climb, ones(task.ground.climbs.len())),
            ("resamples", Kind::Resample, ones(task.commands.conditions.len())),
        ] {
            let terms = widths.into_iter().enumerate();
            self.list(name, terms.map(|(i, len)| (i, len, kind.function(i))));
        }
        self.starts();
        let cells = task.history.cells().iter().enumerate();
        let of_natives = task.history.of_natives();
        for of in [false, true] {
            let own = cells.clone().filter(|(i, _)| of_natives[*i] == of);
            let name = if of { "begins_after" } else { "begins_before" };
            self.list(
                name,
                own.map(|(i, cell)| {
                    let function = if cell.begins_as_it_goes_on() { kept(i) } else { begun(i) };
                    (i, cell.rows().len(), function)
                }),
            );
        }
        self.line(format_args!(
            "  template<class F> OSTLER_FN void begins(bool of_natives, F f) const {{\n    \
             if (of_natives) begins_after(f);\n    else begins_before(f);\n  }}"
        ));
        for states in [true, false] {
            let own = cells.clone().filter(|(_, c)| c.kind().is_state() == states);
            let name = if states { "states" } else { "others" };
            self.list(name, own.map(|(i, c)| (i, c.rows().len(), kept(i))));
        }
        self.line(format_args!(
            "  template<class F> OSTLER_FN void cells(bool own, F f) const {{\n    \
             if (own) states(f);\n    else others(f);\n  }}"
        ));
        self.natives();
        self.line(format_args!("}};"));
    }

    /// The expressions of starts, each after what comes before it.
    fn starts(&mut self) {
        let exprs = &self.task.reset.exprs;
        self.line(format_args!(
            "  template<class B, class F> OSTLER_FN void starts(B before, F f) const {{\n    \
             (void)before, (void)f;"
        ));
        for (i, expr) in exprs.iter().enumerate() {
            let (len, function) = (expr.term.program.units().len(), expr.term.kind.function(i));
            self.line(format_args!(
                "    before({i});\n    {{\n      Values<{len}> v;\n      {function}(a, e, v.x);\n      \
                 f({i}, v);\n    }}"
            ));
        }
        self.line(format_args!("  }}"));
    }

    /// `Terms::natives`: calls the native functions at one of the times NATIVE_*.
    fn natives(&mut self) {
        self.line(format_args!(
            "  OSTLER_FN void natives(unsigned stage) const {{\n    (void)stage;"
        ));
        for (k, native) in self.task.natives.functions.iter().enumerate() {
            let mut times = vec!["stage == NATIVE_BEGIN"];
            times.extend(native.judged.then_some("stage == NATIVE_JUDGE"));
            times.extend(native.seen.then_some("stage == NATIVE_SEE"));
            self.line(format_args!(
                "    if ({}) {{\n      float in[{}] = {{}};",
                times.join(" || "),
                native.width().max(1)
            ));
            for (i, input) in native.inputs.iter().enumerate() {
                let name = input.term.kind.function(i);
                self.line(format_args!("      {name}(a, e, in + {});", input.first));
            }
            self.line(format_args!("      native_{k}(a, e, stage, in);\n    }}"));
        }
        self.line(format_args!("  }}"));
    }

    /// A function of `Terms` that hands the values of some terms to `f`: their number,
    /// components and functions.
    fn list(&mut self, name: &str, terms: impl Iterator<Item = (usize, usize, String)>) {
        self.line(format_args!(
            "  template<class F> OSTLER_FN void {name}(F f) const {{\n    (void)f;"
        ));
        for (i, len, function) in terms {
            self.line(format_args!(
                "    {{\n      Values<{len}> v;\n      {function}(a, e, v.x);\n      f({i}, v);\n    }}"
            ));
        }
        self.line(format_args!("  }}"));
    }
}
