//! A compiled expression as C++ for one environment (`sim/kernels/env`).

use super::dag::Source;
use super::ops::Op;
use super::program::{Code, Step};
use std::fmt::Write;

/// A single-precision number as a literal of C++.
pub fn literal(x: f32) -> String {
    if x.is_nan() {
        "OSTLER_NAN".into()
    } else if x.is_infinite() {
        let sign = if x < 0.0 { "-" } else { "" };
        format!("{sign}OSTLER_INF")
    } else {
        // As many digits as tell it from its neighbours.
        let text = format!("{x:?}f");
        if x.is_sign_negative() { format!("({text})") } else { text }
    }
}

impl Code {
    /// The body of a function that writes the value's components to `out`, of `a` (the
    /// entries' arguments, `sim/kernels/env/args.cuh`) and `e` (the environment).
    /// `param(k)` is the text of parameter `k`.
    pub fn emit(&self, mut param: impl FnMut(usize) -> String) -> String {
        self.emit_with("op_", "out", |source, row| kernel_load(source, row, &mut param))
    }

    /// The same of any dialect of C: functions of operations begin with `ops`, `load` is the
    /// text of an input, `out` the array of results.
    pub fn emit_with(
        &self,
        ops: &str,
        out: &str,
        mut load: impl FnMut(Source, usize) -> String,
    ) -> String {
        let mut text = String::new();
        // The value in each register, by the step that wrote it.
        let mut held = vec![usize::MAX; self.registers];
        for (i, (step, to)) in self.steps.iter().enumerate() {
            let value = match *step {
                Step::Const(bits) => literal(f32::from_bits(bits)),
                Step::Load(source, row) => load(source, row as usize),
                Step::Copy(from) => format!("t{}", held[from as usize]),
                Step::Op(op, x) => {
                    let operands: Vec<String> =
                        x[..op.arity()].iter().map(|r| format!("t{}", held[*r as usize])).collect();
                    operation(op, ops, &operands)
                }
            };
            let _ = writeln!(text, "  const float t{i} = {value};");
            held[*to as usize] = i;
        }
        for (k, from) in held.iter().enumerate().take(self.outputs) {
            let _ = writeln!(text, "  {out}[{k}] = t{from};");
        }
        text
    }
}

fn operation(op: Op, ops: &str, operands: &[String]) -> String {
    match (op, operands) {
        (Op::Add, [a, b]) => format!("{a} + {b}"),
        (Op::Sub, [a, b]) => format!("{a} - {b}"),
        (Op::Mul, [a, b]) => format!("{a} * {b}"),
        (Op::Div, [a, b]) => format!("{a} / {b}"),
        (op, [x, y]) if op.relief().is_some() => {
            format!("{ops}{op:?}(a.physics.ground, {x}, {y})")
        }
        // Their names are the functions' (`sim/kernels/env/ops.cuh`).
        _ => format!("{ops}{op:?}({})", operands.join(", ")),
    }
}

fn kernel_load(source: Source, row: usize, param: &mut impl FnMut(usize) -> String) -> String {
    let buffer = match source {
        Source::World(column) => {
            return format!("a.physics.{}[{row} * (long)a.n + e]", column.name());
        }
        Source::Ctrl => "a.ctrl",
        Source::Action => "a.action",
        Source::LastAction => "a.last_action",
        Source::History => "a.history",
        Source::Shown => "a.shown",
        Source::Command => "a.command",
        Source::Random => "a.start_random",
        Source::Native => "a.native",
        Source::Scan => "a.scan",
        Source::Stand => "a.stand",
        Source::Motion => "a.motion_now",
        Source::Param => return param(row),
        Source::StepDt => return "TaskTime::step_dt".into(),
        Source::MaxSteps => return "(float)TaskTime::max_steps".into(),
        Source::Step => return "(float)a.age[e]".into(),
    };
    format!("{buffer}[{row} * (long)a.n + e]")
}

#[cfg(test)]
mod tests {
    use super::literal;

    #[test]
    fn literals_are_the_number() {
        assert_eq!(literal(0.1), "0.1f");
        assert_eq!(literal(-0.0), "(-0.0f)");
        assert_eq!(literal(1e-30), "1e-30f");
        assert_eq!(literal(f32::NEG_INFINITY), "-OSTLER_INF");
        assert_eq!(literal(f32::MAX), "3.4028235e38f");
    }
}
