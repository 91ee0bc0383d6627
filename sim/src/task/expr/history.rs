//! History of expressions from one control step to the next: `previous` and `since`.
//!
//! A [`Cell`] is a value that is written down at the end of every step, for reading in the
//! next. Equal ones are one cell, whichever expressions they stand in.

use super::dag::{Dag, Id, Seen, Source};
use super::program::{Code, MAX_REGISTERS, Step, generate};
use super::{BLOCK, ExprError};
use std::cell::RefCell;
use std::ops::Range;

/// Most numbers that the expressions of a task remember of an environment.
const MOST: usize = 4096;

/// Content of a cell.
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
    /// Its first row of the history `[k][N]`.
    first: usize,
    code: Code,
    /// The argument, as it is written.
    text: String,
}

/// All that the expressions of a task remember.
#[derive(Debug, Clone, Default)]
pub struct History {
    cells: Vec<Cell>,
    width: usize,
}

/// A [`History`] that grows while expressions are compiled.
#[derive(Debug, Default)]
pub struct HistoryBuilder(RefCell<History>);

impl HistoryBuilder {
    /// The cells.
    pub fn finish(self) -> History {
        self.0.into_inner()
    }

    /// The first row of the history in which `value` (written as `text`) will be kept.
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
        let history = &mut *self.0.borrow_mut();
        let known = history
            .cells
            .iter()
            .find(|c| c.kind == kind && c.code == code);
        if let Some(cell) = known {
            return Ok(cell.first);
        }
        let (first, end) = (history.width, history.width + value.len());
        if end > MOST {
            let many = format!("the task would remember {end} numbers");
            return Err(refused(many).help(format!("at most {MOST}")));
        }
        history.width = end;
        history.cells.push(Cell {
            kind,
            first,
            code,
            text,
        });
        Ok(first)
    }
}

impl Code {
    /// Whether it reads a sensor that only some engines measure while they step.
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
}

impl Cell {
    /// Its rows of the history.
    pub fn rows(&self) -> Range<usize> {
        self.first..self.first + self.code.outputs
    }

    /// Its content.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// As it is written: `since(contact(foot))`.
    pub fn text(&self) -> String {
        let function = match self.kind {
            Kind::Previous => "previous",
            Kind::Since => "since",
        };
        format!("{function}({})", self.text)
    }

    pub(crate) fn code(&self) -> &Code {
        &self.code
    }
}

impl History {
    /// Numbers per environment.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All cells; one comes after those whose values it reads.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// Registers that the largest cell needs, in floats.
    pub fn scratch_len(&self) -> usize {
        let each = self.cells.iter().map(|c| c.code.registers * BLOCK);
        each.max().unwrap_or(0)
    }
}
