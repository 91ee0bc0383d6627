//! The graph in which every value exists once.

use super::node::{Node, Val};
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};

/// Multiplies and rotates: nodes are small and nobody chooses them to collide, and half
/// of a recording's time was hashing.
#[derive(Debug, Clone, Copy, Default)]
struct NodeHasher(u64);

impl Hasher for NodeHasher {
    fn finish(&self) -> u64 {
        // The table takes its place from the low bits, which a product mixes least.
        self.0 ^ self.0 >> 32
    }

    fn write(&mut self, bytes: &[u8]) {
        bytes.iter().for_each(|b| self.write_u64(u64::from(*b)));
    }

    fn write_u32(&mut self, x: u32) {
        self.write_u64(u64::from(x));
    }

    fn write_u64(&mut self, x: u64) {
        self.0 = (self.0.rotate_left(5) ^ x).wrapping_mul(0x517c_c1b7_2722_0a95);
    }

    fn write_isize(&mut self, x: isize) {
        self.write_u64(x as u64);
    }
}

type Table = HashMap<Node, u32, BuildHasherDefault<NodeHasher>>;

/// Hash-consed operations in the order in which they were first needed: operands
/// come before their users.
///
/// A value belongs to the graph that made it; constants hold in every function, all
/// else within the function it was recorded in.
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<Node>,
    constants: Table,
    /// Everything else of the open function.
    seen: Table,
    /// First node of the open function.
    first: usize,
}

impl Graph {
    /// An empty graph.
    pub fn new() -> Self {
        Self::default()
    }

    /// Starts a function: values recorded before are no longer found, except
    /// constants.
    pub fn begin_function(&mut self) {
        self.seen.clear();
        self.first = self.nodes.len();
    }

    /// All nodes, by index.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// The node behind a value.
    pub fn node(&self, value: Val) -> Node {
        self.nodes[value.node() as usize]
    }

    /// Whether the value is one of this graph that the open function may use.
    pub fn holds(&self, value: Val) -> bool {
        let at = value.node() as usize;
        match self.nodes.get(at) {
            Some(Node::Const(_) | Node::True) => true,
            Some(_) => at >= self.first,
            None => false,
        }
    }

    /// The number, if the value is a constant.
    pub fn constant(&self, value: Val) -> Option<f64> {
        match self.node(value) {
            // Of zeros there is one.
            Node::Const(bits) if value.negated() => Some(0.0 - f64::from_bits(bits)),
            Node::Const(bits) => Some(f64::from_bits(bits)),
            _ => None,
        }
    }

    /// Whether the mask holds always or never, if that is known.
    pub fn known_mask(&self, value: Val) -> Option<bool> {
        matches!(self.node(value), Node::True).then_some(!value.negated())
    }

    /// A number. Minus zero counts as zero.
    pub fn number(&mut self, value: f64) -> Val {
        let node = Node::Const(value.abs().to_bits());
        self.intern(node).flip_if(value < 0.0)
    }

    /// A mask that holds always or never.
    pub fn mask(&mut self, holds: bool) -> Val {
        self.intern(Node::True).flip_if(!holds)
    }

    /// An array's element as it was when the function began.
    pub fn load(&mut self, array: u32, index: u32) -> Val {
        self.intern(Node::Load { array, index })
    }

    /// The one node like this.
    pub(super) fn intern(&mut self, node: Node) -> Val {
        let table = match node {
            Node::Const(_) | Node::True => &mut self.constants,
            _ => &mut self.seen,
        };
        let at = *table.entry(node).or_insert_with(|| {
            self.nodes.push(node);
            (self.nodes.len() - 1) as u32
        });
        Val::new(at, false)
    }
}
