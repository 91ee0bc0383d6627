//! Values of expressions that are kept from one control step to the next: `previous`, `since`
//! and the states of a task.
//!
//! A [`Cell`] is such a value: an expression for the first state of an episode, and one for
//! the next value, which may read the present ones. Equal ones are one cell, whichever
//! expressions they stand in.

use super::dag::{Dag, Id, Seen, Source};
use super::error::ExprError;
use super::ops::Op;
use super::program::{Code, MAX_REGISTERS, Program, Step, generate};
use super::unit::Unit;
use super::value::{Comp, Value};
use ostler_engine::phases::BLOCK;
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
    /// A state of the task, by its place in [`History::states`].
    State(usize),
}

impl Kind {
    /// Whether it is renewed before observations, and not after them.
    pub fn is_state(self) -> bool {
        matches!(self, Self::State(_))
    }
}

/// One value that is remembered.
#[derive(Debug, Clone)]
pub struct Cell {
    kind: Kind,
    /// Its first row of the history `[k][N]`.
    first: usize,
    /// What it remembers: its next value.
    value: Code,
    /// Its value in the first state of an episode; `None`: the same.
    begin: Option<Code>,
    /// Its next value, where that is not `value` but made of it.
    next: Option<Code>,
    /// The argument, or the state's name, as it is written.
    text: String,
}

/// A state of the task.
#[derive(Debug, Clone)]
pub struct StateRow {
    /// Its place in the configuration.
    pub index: usize,
    /// Its name, read as `state.NAME`.
    pub name: String,
    /// Its first row of the history.
    first: usize,
    /// Units of its components.
    pub units: Vec<Unit>,
    /// A condition, or several.
    pub truth: bool,
    /// A quaternion.
    pub quat: bool,
}

impl StateRow {
    /// The unit of its components, if they share one.
    pub fn unit(&self) -> Unit {
        self.units.iter().copied().reduce(Unit::mix).unwrap_or(Unit::Any)
    }
}

/// All that the expressions of a task remember.
#[derive(Debug, Clone, Default)]
pub struct History {
    cells: Vec<Cell>,
    width: usize,
    states: Vec<StateRow>,
}

/// A [`History`] that grows while expressions are compiled.
#[derive(Debug, Clone, Default)]
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
        dag: &mut Dag,
        value: &[Id],
        text: String,
        span: Range<usize>,
    ) -> Result<usize, ExprError> {
        let code = coded(dag, value, &span)?;
        let known = |history: &History| {
            let mut cells = history.cells.iter();
            cells.find(|c| c.kind == kind && c.value == code).map(|c| c.first)
        };
        if let Some(first) = known(&self.0.borrow()) {
            return Ok(first);
        }
        let first = self.reserve(value.len(), &span)?;
        let (begin, next) = match kind {
            Kind::Since => {
                // A condition held one step before the first.
                let dt = dag.load(Source::StepDt, 0);
                let none = vec![dag.one(Op::Neg, dt); value.len()];
                let times = since(dag, value, first);
                (Some(coded(dag, &none, &span)?), Some(coded(dag, &times, &span)?))
            }
            Kind::Previous | Kind::State(_) => (None, None),
        };
        self.0.borrow_mut().cells.push(Cell { kind, first, value: code, begin, next, text });
        Ok(first)
    }

    /// Room for so many numbers.
    fn reserve(&self, len: usize, span: &Range<usize>) -> Result<usize, ExprError> {
        let history = &mut *self.0.borrow_mut();
        let (first, end) = (history.width, history.width + len);
        if end > MOST {
            let many = format!("the task would remember {end} numbers");
            return Err(ExprError::new(span.clone(), many).help(format!("at most {MOST}")));
        }
        history.width = end;
        Ok(first)
    }

    /// Adds a state that begins with `init`, one number for all components or one each, and
    /// stays as it is until [`define_state`](Self::define_state) says otherwise.
    pub fn add_state(&self, mut row: StateRow, init: &Program) -> Result<(), ExprError> {
        let all = 0..usize::MAX;
        row.first = self.reserve(row.units.len(), &all)?;
        let history = &mut *self.0.borrow_mut();
        let begin = init.code.spread(row.units.len());
        history.cells.push(Cell {
            kind: Kind::State(history.states.len()),
            first: row.first,
            value: begin.clone(),
            begin: Some(begin),
            next: None,
            text: row.name.clone(),
        });
        history.states.push(row);
        Ok(())
    }

    /// The state's next value, one number for all components or one each.
    pub fn define_state(&self, state: usize, next: &Program) {
        let history = &mut *self.0.borrow_mut();
        let mut cells = history.cells.iter_mut();
        if let Some(cell) = cells.find(|c| c.kind == Kind::State(state)) {
            cell.value = next.code.spread(history.states[state].units.len());
        }
    }

    /// The value of a state; `None`: there is none of that name, yet.
    pub(super) fn state(&self, name: &str, dag: &mut Dag) -> Option<Value> {
        let history = self.0.borrow();
        let row = history.states.iter().find(|s| s.name == name)?;
        let comps = row
            .units
            .iter()
            .enumerate()
            .map(|(i, &unit)| Comp { node: dag.load(Source::History, row.first + i), unit });
        Some(Value { comps: comps.collect(), truth: row.truth, quat: row.quat })
    }

    /// Names of the states so far.
    pub(super) fn state_names(&self) -> Vec<String> {
        let history = self.0.borrow();
        history.states.iter().map(|s| s.name.clone()).collect()
    }
}

impl StateRow {
    /// A state that is still to get its place.
    pub fn new(index: usize, name: String, units: Vec<Unit>, truth: bool) -> Self {
        Self { index, name, first: 0, units, truth, quat: false }
    }
}

/// The time since each condition last held: `first` is the row of the first one's last value.
pub(super) fn since(dag: &mut Dag, conditions: &[Id], first: usize) -> Vec<Id> {
    let dt = dag.load(Source::StepDt, 0);
    let none = dag.constant(0.0);
    let mut times = Vec::with_capacity(conditions.len());
    for (i, &holds) in conditions.iter().enumerate() {
        let before = dag.load(Source::History, first + i);
        let longer = dag.add(before, dt);
        times.push(dag.select(holds, none, longer));
    }
    times
}

fn coded(dag: &Dag, value: &[Id], span: &Range<usize>) -> Result<Code, ExprError> {
    generate(dag, value).map_err(|_| {
        let why = format!("this takes more than {MAX_REGISTERS} registers");
        ExprError::new(span.clone(), why).help("remember its parts instead")
    })
}

impl Code {
    /// Whether it reads a sensor that only some engines measure while they step.
    pub fn reads_measured(&self) -> bool {
        let measured = |s: &(Step, u16)| {
            matches!(
                s.0,
                Step::Load(Source::World(Seen::Qacc | Seen::Sensordata | Seen::ContactData), _)
            )
        };
        self.steps.iter().any(measured)
    }

    /// Whether it reads one of these outputs of native functions.
    pub fn reads_natives(&self, rows: &Range<usize>) -> bool {
        self.reads(Source::Native, rows)
    }

    /// Whether it reads one of these rows of the history.
    pub fn reads_history(&self, rows: &Range<usize>) -> bool {
        self.reads(Source::History, rows)
    }

    fn reads(&self, wanted: Source, rows: &Range<usize>) -> bool {
        self.steps.iter().any(|(step, _)| match step {
            Step::Load(source, row) => *source == wanted && rows.contains(&(*row as usize)),
            _ => false,
        })
    }

    /// The same with its one component `len` times.
    fn spread(&self, len: usize) -> Self {
        let mut code = self.clone();
        if code.outputs != 1 || len <= 1 {
            return code;
        }
        // Outputs are the first registers: the others move up.
        let shift = (len - 1) as u16;
        let moved = |r: &mut u16| *r += if *r > 0 { shift } else { 0 };
        for (step, to) in &mut code.steps {
            moved(to);
            match step {
                Step::Op(_, x) => x.iter_mut().for_each(moved),
                Step::Copy(from) => moved(from),
                Step::Const(_) | Step::Load(..) => {}
            }
        }
        code.steps.extend((1..len).map(|k| (Step::Copy(0), k as u16)));
        code.registers += len - 1;
        code.outputs = len;
        code
    }
}

impl Cell {
    /// Its rows of the history.
    pub fn rows(&self) -> Range<usize> {
        self.first..self.first + self.value.outputs
    }

    /// Its content.
    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// As it is written: `since(contact(foot))`.
    pub fn text(&self) -> String {
        match self.kind {
            Kind::Previous => format!("previous({})", self.text),
            Kind::Since => format!("since({})", self.text),
            Kind::State(_) => format!("state.{}", self.text),
        }
    }

    /// Its value in the first state of an episode.
    pub fn begin(&self) -> &Code {
        self.begin.as_ref().unwrap_or(&self.value)
    }

    /// Whether [`begin`](Self::begin) is [`next`](Self::next).
    pub fn begins_as_it_goes_on(&self) -> bool {
        self.begin.is_none()
    }

    /// Its next value.
    pub fn next(&self) -> &Code {
        self.next.as_ref().unwrap_or(&self.value)
    }
}

impl History {
    /// Numbers per environment.
    pub fn width(&self) -> usize {
        self.width
    }

    /// All cells; one comes after those whose values it begins with.
    pub fn cells(&self) -> &[Cell] {
        &self.cells
    }

    /// States of the task, in order.
    pub fn states(&self) -> &[StateRow] {
        &self.states
    }

    /// Of every cell: whether the value that an episode begins with follows from outputs of
    /// native functions.
    pub fn of_natives(&self) -> Vec<bool> {
        let mut all: Vec<bool> = Vec::with_capacity(self.cells.len());
        for cell in &self.cells {
            let begin = cell.begin();
            let mut earlier = self.cells.iter().zip(&all);
            let follows = begin.reads_natives(&(0..usize::MAX))
                || earlier.any(|(other, of)| *of && begin.reads_history(&other.rows()));
            all.push(follows);
        }
        all
    }

    /// Registers that the largest cell needs, in floats.
    pub fn scratch_len(&self) -> usize {
        let each = self.cells.iter().flat_map(|c| [c.begin(), c.next()]);
        each.map(|code| code.registers * BLOCK).max().unwrap_or(0)
    }
}
