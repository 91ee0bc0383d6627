//! Functions, their loads and stores, and values that stay constant.

use super::graph::Graph;
use super::node::{Node, Val};

/// Numbers the recorded functions work on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Array {
    /// The C++ expression, such as `w.xpos`.
    pub name: String,
    /// Extents; none for a single number.
    pub shape: Vec<usize>,
    /// Whether code that is not on the tape writes it too: then nothing in it is
    /// taken for constant.
    pub shared: bool,
}

impl Array {
    /// An array that only recorded functions write.
    pub fn new(name: impl Into<String>, shape: &[usize]) -> Self {
        Self { name: name.into(), shape: shape.to_vec(), shared: false }
    }

    /// An array that other code writes as well: states, controls, inputs.
    pub fn shared(name: impl Into<String>, shape: &[usize]) -> Self {
        Self { shared: true, ..Self::new(name, shape) }
    }

    /// Number of elements.
    pub fn len(&self) -> usize {
        self.shape.iter().product()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element in C++, by its flat (row-major) index.
    pub fn element(&self, index: u32) -> String {
        let mut rest = index as usize;
        let mut subscripts = String::new();
        for &extent in self.shape.iter().rev() {
            let extent = extent.max(1);
            subscripts = format!("[{}]{subscripts}", rest % extent);
            rest /= extent;
        }
        format!("{}{subscripts}", self.name)
    }
}

/// An element and its new value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Store {
    /// Index into the program's arrays.
    pub array: u32,
    /// Flat index of the element.
    pub index: u32,
    /// Its new value.
    pub value: Val,
}

/// A recorded function: all loads happen before all stores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Function {
    /// Its C++ name.
    pub name: String,
    /// In the order recorded, one per element.
    pub stores: Vec<Store>,
}

/// An element that is constant for ever.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Init {
    /// Index into the program's arrays.
    pub array: u32,
    /// Flat index of the element.
    pub index: u32,
    /// Its value.
    pub value: f64,
}

/// The recording of one robot.
#[derive(Debug, Clone)]
pub struct Program {
    /// The operations of all functions.
    pub graph: Graph,
    /// Memory of the functions.
    pub arrays: Vec<Array>,
    /// In the order recorded.
    pub functions: Vec<Function>,
    /// Elements that every function that stores them gives the same constant: they
    /// are written once, before the first function is called.
    pub init: Vec<Init>,
}

impl Program {
    /// Which nodes a function needs, by index.
    pub fn live(&self, function: &Function) -> Vec<bool> {
        let nodes = self.graph.nodes();
        let mut live = vec![false; nodes.len()];
        for store in &function.stores {
            live[store.value.node() as usize] = true;
        }
        for at in (0..nodes.len()).rev() {
            if live[at] {
                for value in nodes[at].operands().iter() {
                    live[value.node() as usize] = true;
                }
            }
        }
        live
    }

    /// The operations a function does per call.
    pub fn counts(&self, function: &Function) -> Counts {
        let mut counts = Counts { stores: function.stores.len(), ..Counts::default() };
        let live = self.live(function);
        for (node, _) in self.graph.nodes().iter().zip(live).filter(|(_, l)| *l) {
            match node {
                Node::Const(_) | Node::True => {}
                Node::Load { .. } => counts.loads += 1,
                Node::Add(..) | Node::Sub(..) => counts.add += 1,
                Node::Mul(..) => counts.mul += 1,
                Node::Fma(..) | Node::Fnma(..) => counts.fma += 1,
                Node::Div(..) | Node::Recip(_) => counts.div += 1,
                Node::Sqrt(_) => counts.sqrt += 1,
                Node::Sin(_) | Node::Cos(_) | Node::Atan2(..) => counts.trigonometric += 1,
                _ => counts.other += 1,
            }
        }
        counts
    }
}

/// Operations of one call of a function.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Counts {
    /// Elements read.
    pub loads: usize,
    /// Elements written.
    pub stores: usize,
    /// Sums and differences.
    pub add: usize,
    /// Products.
    pub mul: usize,
    /// Fused multiply-adds.
    pub fma: usize,
    /// Quotients and reciprocals.
    pub div: usize,
    /// Square roots.
    pub sqrt: usize,
    /// Sines, cosines and angles.
    pub trigonometric: usize,
    /// Comparisons, masks, selections, minima, absolute values, roundings.
    pub other: usize,
}

impl Counts {
    /// Floating-point operations: a fused multiply-add counts twice; loads, stores,
    /// masks and selections do not count.
    pub fn flops(&self) -> usize {
        self.add + self.mul + 2 * self.fma + self.div + self.sqrt + self.trigonometric
    }
}
