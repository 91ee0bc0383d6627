//! A compiled task as C++ for one environment: the `Task` that `sim/kernels/env` asks.
//!
//! Every number of the task goes through [`Numbers`]: into the code, or into a table
//! beside it where a curriculum changes it while the task is trained.

mod memory;
mod numbers;
mod score;
mod start;
mod steps;

pub use numbers::Numbers;

use super::Task;
use super::expr::Code;
use crate::device::Place;
pub use crate::state::Sizes;
use crate::state::{EPISODE, WORLD, width};
use std::fmt::Write;

/// Broken environments that are kept for the host to look at: as many as it looks at of
/// its own.
pub const GRAVES: usize = 256;
/// Words of a grave before its columns: `GRAVE_HEAD` of `args.cuh`.
pub const GRAVE_HEAD: usize = 8;
/// Statistics before the reward terms: `TALLY_REWARD` of `env.cuh`.
pub const TALLY_REWARD: usize = 10;

impl Sizes {
    /// Statistics of one environment.
    pub fn tally(&self) -> usize {
        TALLY_REWARD + self.nreward + self.nend + self.agent_sums()
    }

    /// Sums of returns of single agents.
    pub fn agent_sums(&self) -> usize {
        if self.nagent > 1 { self.nagent } else { 0 }
    }

    /// Entries of an environment's episode.
    pub fn live(&self) -> usize {
        width(&EPISODE, self)
    }

    /// Entries of its world.
    pub fn physics(&self) -> usize {
        width(&WORLD, self)
    }

    /// Words of a grave.
    pub fn grave(&self) -> usize {
        let seen = self.nraw + self.nu + self.nagent + self.nobs + self.ncritic;
        GRAVE_HEAD + seen + self.live() + self.physics()
    }
}

/// C++ of a task.
#[derive(Debug, Clone)]
pub struct Emitted {
    /// The text.
    pub text: String,
    /// What its lines were written for.
    pub places: Vec<Place>,
    /// The table of numbers; empty where they are in the code.
    pub numbers: Vec<f32>,
}

/// Writes a task for one environment.
struct Writer<'a> {
    task: &'a Task,
    text: String,
    places: Vec<Place>,
    numbers: Numbers,
}

/// Writes `task`. `frames`: the robot's kinematics as C++ ([`crate::physics`]).
pub(crate) fn emit(
    task: &Task,
    sizes: &Sizes,
    step_dt: f64,
    max_steps: u32,
    numbers: Numbers,
    frames: &str,
) -> Emitted {
    let mut w = Writer {
        task,
        text: String::new(),
        places: Vec::new(),
        numbers,
    };
    w.constants(sizes, step_dt, max_steps);
    w.terms();
    w.text.push_str(frames);
    w.text.push_str("struct Task : TaskSizes {\n");
    w.actions();
    w.commands();
    w.judge();
    w.observe();
    w.start();
    w.memory();
    w.text.push_str("};\n");
    Emitted {
        text: w.text,
        places: w.places,
        numbers: w.numbers.table(),
    }
}

/// The name of a term's function.
fn function(kind: &str, index: usize) -> String {
    format!("term_{kind}_{index}")
}

impl Writer<'_> {
    fn line(&mut self, line: std::fmt::Arguments<'_>) {
        let _ = self.text.write_fmt(line);
        self.text.push('\n');
    }

    fn constants(&mut self, s: &Sizes, step_dt: f64, max_steps: u32) {
        let step_dt = super::expr::literal(step_dt as f32);
        self.line(format_args!("struct TaskSizes {{"));
        let discrete = matches!(
            self.task.actions.space,
            crate::env::ActionSpace::Discrete(_)
        );
        let others = [
            ("one", 1),
            ("TALLY", s.tally()),
            ("GRAVES", GRAVES),
            ("GRAVE", s.grave()),
            ("discrete", usize::from(discrete)),
        ];
        for (name, value) in s.named().chain(others) {
            self.line(format_args!("  static constexpr int {name} = {value};"));
        }
        self.line(format_args!(
            "  static constexpr unsigned max_steps = {max_steps}u;"
        ));
        self.line(format_args!(
            "  static constexpr float step_dt = {step_dt};\n}};"
        ));
    }

    /// One function per expression, marked with the place it comes from.
    fn terms(&mut self) {
        let task = self.task;
        for (i, term) in task.score.rewards.iter().enumerate() {
            let place = format!("task.reward[{}].expr", term.index);
            self.term(
                &function("reward", i),
                term.program.code(),
                place,
                &term.text,
            );
        }
        for (i, term) in task.score.terminations.iter().enumerate() {
            let place = format!("task.termination[{}].expr", term.index);
            self.term(&function("end", i), term.program.code(), place, &term.text);
        }
        for (i, term) in task.observations.terms.iter().enumerate() {
            let place = format!("task.observation[{}].expr", term.index);
            self.term(&function("seen", i), term.program.code(), place, &term.text);
        }
        for (i, cell) in task.memory.cells().iter().enumerate() {
            let place = format!("what the task remembers, {i}");
            self.term(&function("kept", i), cell.code(), place, &cell.text());
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
        self.places.push(Place {
            name: place,
            text: text.to_string(),
        });
    }
}
