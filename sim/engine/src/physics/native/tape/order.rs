//! The order in which a function's operations are printed.

use super::node::{Node, Val};
use super::program::{Function, Program};
use std::collections::{HashMap, HashSet};

/// How to put a function's operations in a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Order {
    /// As recorded, without unneeded nodes.
    #[default]
    Recorded,
    /// From each store to its operands, the one that needs more values at a time
    /// first (after Sethi and Ullman, The generation of optimal code for arithmetic
    /// expressions, 1970).
    DepthFirst,
}

/// One statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// A node's value.
    Value(u32),
    /// The sine or cosine of a value, or both.
    SinCos { of: Val, sin: Option<u32>, cos: Option<u32> },
    /// A store, by position in the function.
    Store(usize),
}

/// A function's statements.
#[derive(Debug)]
pub(super) struct Statements {
    pub steps: Vec<Step>,
    /// By node: used, and no statement of its own (constants, loads of elements that
    /// the function does not change).
    pub inline: Vec<bool>,
}

impl Step {
    /// Nodes that have a value after this.
    pub(crate) fn defines(&self) -> impl Iterator<Item = u32> {
        let (a, b) = match *self {
            Step::Value(node) => (Some(node), None),
            Step::SinCos { sin, cos, .. } => (sin, cos),
            Step::Store(_) => (None, None),
        };
        a.into_iter().chain(b)
    }

    /// Values that this needs.
    pub(crate) fn uses(&self, program: &Program, function: &Function) -> Vec<Val> {
        match *self {
            Step::Value(node) => program.graph.nodes()[node as usize].operands().to_vec(),
            Step::SinCos { of, .. } => vec![of],
            Step::Store(at) => vec![function.stores[at].value],
        }
    }
}

pub(super) fn plan(program: &Program, function: &Function, order: Order) -> Statements {
    let nodes = program.graph.nodes();
    let live = program.live(function);
    let inline = inline(program, function, &live);
    let mut builder = Builder::new(program, function, &live, &inline);
    let steps = match order {
        Order::Recorded => builder.recorded(),
        Order::DepthFirst => {
            let need = needs(nodes, &live, &inline);
            for store in &function.stores {
                builder.visit(store.value.node(), &need);
            }
            builder.finish_stores()
        }
    };
    Statements { steps, inline }
}

/// By node: used, and without a statement of its own, as [`Statements::inline`].
fn inline(program: &Program, function: &Function, live: &[bool]) -> Vec<bool> {
    let stored: HashSet<(u32, u32)> = function.stores.iter().map(|s| (s.array, s.index)).collect();
    let nodes = program.graph.nodes();
    nodes
        .iter()
        .zip(live)
        .map(|(node, live)| {
            *live
                && match node {
                    Node::Const(_) | Node::True => true,
                    Node::Load { array, index } => !stored.contains(&(*array, *index)),
                    _ => false,
                }
        })
        .collect()
}

/// How many values are held at most while a node is computed, if every operand
/// were a tree.
fn needs(nodes: &[Node], live: &[bool], inline: &[bool]) -> Vec<u32> {
    let mut need = vec![0_u32; nodes.len()];
    for at in 0..nodes.len() {
        if live[at] && !inline[at] {
            let operands = nodes[at].operands();
            let mut each: Vec<u32> = operands.iter().map(|v| need[v.node() as usize]).collect();
            each.sort_unstable_by(|a, b| b.cmp(a));
            let held = each.iter().zip(0..).map(|(n, held)| n + held).max();
            need[at] = held.unwrap_or(0).max(1);
        }
    }
    need
}

struct Builder<'a> {
    nodes: &'a [Node],
    function: &'a Function,
    live: &'a [bool],
    inline: &'a [bool],
    done: Vec<bool>,
    steps: Vec<Step>,
    /// Positions of the stores by the node that they store.
    stores: HashMap<u32, Vec<usize>>,
    stored: Vec<bool>,
    /// Nodes that load an element which is stored as well.
    loads: HashMap<(u32, u32), u32>,
    /// Sine and cosine of a value.
    pairs: HashMap<Val, (Option<u32>, Option<u32>)>,
}

impl<'a> Builder<'a> {
    fn new(
        program: &'a Program,
        function: &'a Function,
        live: &'a [bool],
        inline: &'a [bool],
    ) -> Self {
        let nodes = program.graph.nodes();
        let mut stores: HashMap<u32, Vec<usize>> = HashMap::new();
        for (at, store) in function.stores.iter().enumerate() {
            stores.entry(store.value.node()).or_default().push(at);
        }
        let mut loads = HashMap::new();
        let mut pairs: HashMap<Val, (Option<u32>, Option<u32>)> = HashMap::new();
        for (at, node) in (0..).zip(nodes).filter(|&(at, _)| live[at as usize]) {
            match *node {
                Node::Load { array, index } if !inline[at as usize] => {
                    loads.insert((array, index), at);
                }
                Node::Sin(of) => pairs.entry(of).or_default().0 = Some(at),
                Node::Cos(of) => pairs.entry(of).or_default().1 = Some(at),
                _ => {}
            }
        }
        Self {
            nodes,
            function,
            live,
            inline,
            done: inline.to_vec(),
            steps: Vec::new(),
            stores,
            stored: vec![false; function.stores.len()],
            loads,
            pairs,
        }
    }

    fn recorded(mut self) -> Vec<Step> {
        for (at, _) in (0..).zip(self.live).filter(|(_, live)| **live) {
            self.emit(at);
        }
        self.finish_stores()
    }

    /// The statement of a node whose operands are done, and the stores of its value.
    fn emit(&mut self, at: u32) {
        if !self.done[at as usize] {
            let step = match self.nodes[at as usize] {
                Node::Sin(of) | Node::Cos(of) => {
                    let (sin, cos) = self.pairs.get(&of).copied().unwrap_or_default();
                    Step::SinCos { of, sin, cos }
                }
                _ => Step::Value(at),
            };
            self.steps.push(step);
            for node in step.defines() {
                self.done[node as usize] = true;
            }
            for node in step.defines() {
                self.store_value(node);
            }
        }
    }

    fn store_value(&mut self, node: u32) {
        for at in self.stores.get(&node).cloned().unwrap_or_default() {
            self.store(at);
        }
    }

    fn store(&mut self, at: usize) {
        if std::mem::replace(&mut self.stored[at], true) {
            return;
        }
        let element = &self.function.stores[at];
        // The element's old value is read before it is overwritten.
        if let Some(&load) = self.loads.get(&(element.array, element.index)) {
            self.emit(load);
        }
        self.steps.push(Step::Store(at));
    }

    fn visit(&mut self, root: u32, need: &[u32]) {
        let mut stack = vec![(root, false)];
        while let Some((at, ready)) = stack.pop() {
            if self.done[at as usize] {
                continue;
            }
            if ready {
                self.emit(at);
                continue;
            }
            stack.push((at, true));
            let operands = self.nodes[at as usize].operands();
            let mut next: Vec<u32> = operands.iter().map(|v| v.node()).collect();
            // The last one pushed is visited first.
            next.sort_by_key(|&node| need[node as usize]);
            stack.extend(next.into_iter().map(|node| (node, false)));
        }
    }

    fn finish_stores(mut self) -> Vec<Step> {
        debug_assert!(
            (0..self.nodes.len()).all(|at| !self.live[at] || self.done[at] || self.inline[at])
        );
        for at in 0..self.stored.len() {
            self.store(at);
        }
        self.steps
    }
}
