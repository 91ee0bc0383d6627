//! The graph as straight-line code over registers, and its evaluation.

use super::dag::{Dag, Id, Node, Source};
use super::element::{Element, ElementKind};
use super::inputs::Inputs;
use super::ops::{Op, Register};
use super::unit::Unit;
use super::value::Type;
use ostler_engine::phases::BLOCK;
use std::collections::BTreeSet;

/// Most registers of one program (256 bytes each).
pub(crate) const MAX_REGISTERS: usize = 4096;

/// One step of a program.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Step {
    /// A constant in all lanes, by its bits.
    Const(u32),
    /// A row of an input.
    Load(Source, u32),
    /// An operation on registers (unused operands repeat the first).
    Op(Op, [u16; 3]),
    /// The same as another register.
    Copy(u16),
}

/// Straight-line code; each step writes one register. Results end up in
/// registers `0..outputs`.
#[derive(Debug, Clone, PartialEq)]
pub struct Code {
    /// Steps and the register each writes.
    pub steps: Vec<(Step, u16)>,
    /// Registers used.
    pub registers: usize,
    /// Components of the result.
    pub outputs: usize,
}

/// Orders the nodes that `outputs` need and gives them registers; an error is
/// the number of registers it would take.
pub(crate) fn generate(dag: &Dag, outputs: &[Id]) -> Result<Code, usize> {
    let nodes = dag.nodes();
    // Last use of every node that is needed; outputs live to the end.
    let mut last_use = vec![None; nodes.len()];
    for &id in outputs {
        last_use[id as usize] = Some(usize::MAX);
    }
    for i in (0..nodes.len()).rev() {
        if let (Some(_), Node::Op(op, x)) = (last_use[i], nodes[i]) {
            for &operand in &x[..op.arity()] {
                let slot = &mut last_use[operand as usize];
                *slot = Some(slot.unwrap_or(0).max(i));
            }
        }
    }
    let mut place: Vec<u16> = vec![0; nodes.len()];
    let mut fixed: Vec<Option<u16>> = vec![None; nodes.len()];
    for (k, &id) in outputs.iter().enumerate() {
        fixed[id as usize].get_or_insert(k as u16);
    }
    let mut free = BTreeSet::new();
    let mut registers = outputs.len();
    let mut steps = Vec::new();
    for (i, node) in nodes.iter().enumerate() {
        if last_use[i].is_none() {
            continue;
        }
        let step = match *node {
            Node::Const(bits) => Step::Const(bits),
            Node::Load(source, row) => Step::Load(source, row),
            Node::Op(op, x) => {
                let mut operands = [place[x[0] as usize]; 3];
                for k in 0..op.arity() {
                    operands[k] = place[x[k] as usize];
                }
                for &operand in &x[..op.arity()] {
                    if last_use[operand as usize] == Some(i) {
                        free.insert(place[operand as usize]);
                    }
                }
                Step::Op(op, operands)
            }
        };
        place[i] = match fixed[i] {
            Some(register) => register,
            None => match free.pop_first() {
                Some(register) => register,
                None if registers < MAX_REGISTERS => {
                    registers += 1;
                    (registers - 1) as u16
                }
                None => return Err(registers + 1),
            },
        };
        steps.push((step, place[i]));
    }
    for (k, &id) in outputs.iter().enumerate() {
        let from = place[id as usize];
        if from != k as u16 {
            steps.push((Step::Copy(from), k as u16));
        }
    }
    Ok(Code { steps, registers, outputs: outputs.len() })
}

impl Code {
    /// Runs all steps for one block; the outputs, in the scratch's first registers.
    pub fn eval<'s>(&self, inputs: &Inputs<'_>, scratch: &'s mut Scratch) -> &'s mut [f32] {
        let floats = self.registers * BLOCK;
        if scratch.registers.len() < floats {
            scratch.registers.resize(floats, 0.0);
        }
        let (registers, _): (&mut [Register], _) = scratch.registers.as_chunks_mut();
        self.run(inputs, registers);
        &mut scratch.registers[..self.outputs * BLOCK]
    }

    /// Runs all steps for one block. `registers` has at least
    /// [`Code::registers`] entries.
    fn run(&self, inputs: &Inputs<'_>, registers: &mut [Register]) {
        let mut out = [0.0; BLOCK];
        for (step, to) in &self.steps {
            let to = *to as usize;
            match *step {
                Step::Const(bits) => registers[to] = [f32::from_bits(bits); BLOCK],
                Step::Load(source, row) => {
                    inputs.load(source, row as usize, &mut registers[to]);
                }
                Step::Op(op, x) => {
                    if let Some(what) = op.relief() {
                        let [x, y, _] = x.map(|r| &registers[r as usize]);
                        inputs.relief(what, [x, y], &mut out);
                        registers[to] = out;
                        continue;
                    }
                    op.block(x.map(|r| &registers[r as usize]), &mut out);
                    registers[to] = out;
                }
                Step::Copy(from) => registers[to] = registers[from as usize],
            }
        }
    }
}

/// A compiled expression: straight-line code over registers of [`BLOCK`] lanes.
#[derive(Debug, Clone)]
pub struct Program {
    pub(super) ty: Type,
    pub(super) units: Vec<Unit>,
    pub(super) truth: bool,
    pub(super) quat: bool,
    pub(super) elements: Vec<Element>,
    pub(super) shared: Vec<(Element, ElementKind)>,
    pub(super) of_agent: bool,
    pub(super) code: Code,
}

/// Registers of one thread; `eval` allocates nothing once it is large enough.
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    /// Registers `[k][BLOCK]`.
    pub registers: Vec<f32>,
    /// Inputs of a native function `[k][BLOCK]`.
    pub inputs: Vec<f32>,
}

impl Program {
    /// Type of the value.
    pub fn ty(&self) -> &Type {
        &self.ty
    }

    /// Units of the components, one by one.
    pub fn units(&self) -> &[Unit] {
        &self.units
    }

    /// Whether it is a condition, or several.
    pub fn is_truth(&self) -> bool {
        self.truth
    }

    /// Whether it is a quaternion.
    pub fn is_quat(&self) -> bool {
        self.quat
    }

    /// Its one number, if that is the same in every state.
    pub fn constant(&self) -> Option<f32> {
        match self.code.steps[..] {
            [(Step::Const(bits), 0)] => Some(f32::from_bits(bits)),
            _ => None,
        }
    }

    /// Its steps.
    pub fn code(&self) -> &Code {
        &self.code
    }

    /// Elements of the model that the value depends on, in order of appearance.
    pub fn elements(&self) -> &[Element] {
        &self.elements
    }

    /// Elements that it names, each with a kind of which another one of that name could be meant.
    pub fn shared(&self) -> &[(Element, ElementKind)] {
        &self.shared
    }

    /// Whether the value may differ between agents: it mentions the agent, the others or
    /// the agent's own outputs.
    pub fn of_agent(&self) -> bool {
        self.of_agent
    }

    /// Steps of the compiled code: each costs one pass over a block.
    pub fn steps(&self) -> usize {
        self.code.steps.len()
    }

    /// Registers that `eval` needs, in floats.
    pub fn scratch_len(&self) -> usize {
        self.code.registers * BLOCK
    }

    /// Evaluates one block: component `i` of environment `first + lane` is at
    /// `result[i * BLOCK + lane]`; lanes past `len` hold no meaning. A lane's bits
    /// depend on its environment alone.
    ///
    /// # Panics
    /// When `inputs` has fewer rows or environments than the scope the program was
    /// compiled for: a mistake of the caller's, not of the data.
    pub fn eval<'s>(&self, inputs: &Inputs<'_>, scratch: &'s mut Scratch) -> &'s [f32] {
        self.code.eval(inputs, scratch)
    }
}
