//! What expressions remember from one control step to the next: `previous` and `since`.
//!
//! A [`Cell`] is a value that is written down at the end of every step, for reading in the
//! next. Equal ones are one cell, whichever expressions they stand in.

use super::dag::{Dag, Id, Seen, Source};
use super::ops::Register;
use super::program::{Code, MAX_REGISTERS, Step, generate};
use super::{BLOCK, ExprError, Inputs, Scratch};
use std::cell::RefCell;
use std::ops::Range;

/// Most numbers that the expressions of a task remember of an environment.
const MOST: usize = 4096;

/// What a cell holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Kind {
    /// The value at the end of the step before; in a new episode, that of its first state.
    Previous,
    /// Seconds since each of the conditions last held, or since the episode began.
    Since,
}

/// One value that is remembered.
#[derive(Debug, Clone)]
pub struct Cell {
    kind: Kind,
    /// Its first row of the memory `[k][N]`.
    first: usize,
    code: Code,
    /// The argument, as it is written.
    text: String,
    /// One more than that of any previous value whose row it reads.
    level: usize,
}

/// All that the expressions of a task remember.
#[derive(Debug, Clone, Default)]
pub struct Memory {
    cells: Vec<Cell>,
    width: usize,
}

/// A [`Memory`] that grows while expressions are compiled.
#[derive(Debug, Default)]
pub struct Notebook(RefCell<Memory>);

impl Notebook {
    /// What was noted.
    pub fn finish(self) -> Memory {
        self.0.into_inner()
    }

    /// The first row of the memory in which `value` (written as `text`) will be kept.
    pub(super) fn keep(
        &self,
        kind: Kind,
        dag: &Dag,
        value: &[Id],
        text: String,
        span: Range<usize>,
    ) -> Result<usize, ExprError> {
        let refused = |why: String| ExprError::new(span.clone(), why);
        let code = generate(dag, value).map_err(|_| {
            refused(format!("this takes more than {MAX_REGISTERS} registers"))
                .help("remember its parts instead")
        })?;
        let memory = &mut *self.0.borrow_mut();
        let known = memory
            .cells
            .iter()
            .find(|c| c.kind == kind && c.code == code);
        if let Some(cell) = known {
            return Ok(cell.first);
        }
        let (first, end) = (memory.width, memory.width + value.len());
        if end > MOST {
            let many = format!("the task would remember {end} numbers");
            return Err(refused(many).help(format!("at most {MOST}")));
        }
        let reads = |c: &&Cell| c.kind == Kind::Previous && code.reads(c.rows());
        let below = memory.cells.iter().filter(reads).map(|c| c.level + 1);
        let level = below.max().unwrap_or(0);
        memory.width = end;
        memory.cells.push(Cell {
            kind,
            first,
            code,
            text,
            level,
        });
        Ok(first)
    }
}

impl Code {
    /// Whether it reads what only some engines measure while they step.
    pub fn reads_measured(&self) -> bool {
        let measured = |s: &(Step, u16)| {
            matches!(
                s.0,
                Step::Load(
                    Source::World(Seen::Qacc) | Source::World(Seen::Sensordata),
                    _
                )
            )
        };
        self.steps.iter().any(measured)
    }

    /// Whether it reads any of these rows of the memory.
    fn reads(&self, rows: Range<usize>) -> bool {
        let read = |s: &(Step, u16)| match s.0 {
            Step::Load(Source::History, row) => rows.contains(&(row as usize)),
            _ => false,
        };
        self.steps.iter().any(read)
    }
}

impl Cell {
    /// Its rows of the memory.
    pub fn rows(&self) -> Range<usize> {
        self.first..self.first + self.code.outputs
    }

    /// What it holds.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// In a new episode it takes the value of the first state, after all cells of lower
    /// levels, which it reads; none for times.
    pub fn level(&self) -> Option<usize> {
        (self.kind == Kind::Previous).then_some(self.level)
    }

    /// As it is written: `since(contact(foot))`.
    pub fn text(&self) -> String {
        let function = match self.kind {
            Kind::Previous => "previous",
            Kind::Since => "since",
        };
        format!("{function}({})", self.text)
    }

    pub(in crate::task) fn code(&self) -> &Code {
        &self.code
    }

    /// What it holds after a step, for one block: row `i` of its own at `[i * BLOCK ..]`.
    pub fn eval<'s>(&self, inputs: &Inputs<'_>, scratch: &'s mut Scratch) -> &'s [f32] {
        let out = self.code.eval(inputs, scratch);
        if self.kind == Kind::Since {
            let n = inputs.state.num_envs;
            let (out, _): (&mut [Register], _) = out.as_chunks_mut();
            for (row, out) in self.rows().zip(&mut *out) {
                let before = &inputs.history[row * n + inputs.first..][..inputs.len];
                for (x, before) in out.iter_mut().zip(before) {
                    *x = if *x == 0.0 {
                        before + inputs.step_dt
                    } else {
                        0.0
                    };
                }
            }
            return out.as_flattened();
        }
        out
    }
}

impl Memory {
    /// Numbers per environment.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All cells; one comes after those whose values it reads.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// How many [levels](Cell::level) there are.
    pub fn levels(&self) -> usize {
        let levels = self.cells.iter().filter_map(Cell::level);
        levels.max().map_or(0, |l| l + 1)
    }

    /// Rows that hold a time; in an episode's first state, before it is written down for
    /// the first time, one step less than none.
    pub fn times(&self) -> impl Iterator<Item = usize> {
        let times = self.cells.iter().filter(|c| c.kind == Kind::Since);
        times.flat_map(Cell::rows)
    }

    /// Registers that the largest cell needs, in floats.
    pub fn scratch_len(&self) -> usize {
        let each = self.cells.iter().map(|c| c.code.registers * BLOCK);
        each.max().unwrap_or(0)
    }
}
