//! Operations on single numbers, each stored once: constants are folded and equal
//! subexpressions share a node while the graph is built.

use super::ops::Op;
pub use ostler_engine::state::Seen;
use std::collections::HashMap;

/// Most nodes of one expression.
pub(crate) const MAX_NODES: usize = 1 << 15;

/// Index of a node.
pub(crate) type Id = u32;

/// A buffer of [`super::Inputs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    World(Seen),
    Ctrl,
    Action,
    LastAction,
    History,
    Shown,
    Command,
    Random,
    Native,
    /// Readings of scans.
    Scan,
    /// Where on a terrain the episode began, and its level.
    Stand,
    /// The reference motion.
    Motion,
    Param,
    Step,
    StepDt,
    MaxSteps,
}

/// One number per environment.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    /// A constant, by its bits.
    Const(u32),
    /// Row of an input buffer.
    Load(Source, u32),
    /// An operation on other nodes (unused operands are 0).
    Op(Op, [Id; 3]),
}

/// The graph. Operands come before the nodes that use them.
#[derive(Debug, Default)]
pub struct Dag {
    nodes: Vec<Node>,
    known: HashMap<Node, Id>,
    full: bool,
}

impl Dag {
    /// All nodes.
    pub fn nodes(&self) -> &[Node] {
        &self.nodes
    }

    /// Whether nodes had to be refused; the graph is then meaningless.
    pub fn full(&self) -> bool {
        self.full
    }

    fn node(&mut self, node: Node) -> Id {
        if let Some(&id) = self.known.get(&node) {
            return id;
        }
        if self.nodes.len() >= MAX_NODES {
            self.full = true;
            return 0;
        }
        let id = self.nodes.len() as Id;
        self.nodes.push(node);
        self.known.insert(node, id);
        id
    }

    /// A constant.
    pub fn constant(&mut self, x: f64) -> Id {
        self.constant32(x as f32)
    }

    fn constant32(&mut self, x: f32) -> Id {
        self.node(Node::Const(x.to_bits()))
    }

    /// A row of an input.
    pub fn load(&mut self, source: Source, row: usize) -> Id {
        self.node(Node::Load(source, row as u32))
    }

    /// The value of a constant node.
    pub fn value(&self, id: Id) -> Option<f32> {
        match self.nodes.get(id as usize)? {
            Node::Const(bits) => Some(f32::from_bits(*bits)),
            _ => None,
        }
    }

    fn op(&mut self, op: Op, operands: &[Id]) -> Id {
        let mut x = [0; 3];
        x[..operands.len()].copy_from_slice(operands);
        let v: [Option<f32>; 3] =
            std::array::from_fn(|k| operands.get(k).and_then(|&i| self.value(i)));
        if op.relief().is_none() && v[..operands.len()].iter().all(Option::is_some) {
            return self.constant32(op.lane(v.map(Option::unwrap_or_default)));
        }
        // Only identities that keep every bit of every result.
        match (op, v) {
            (Op::Mul, [Some(1.0), ..]) => return x[1],
            (Op::Mul | Op::Div, [_, Some(1.0), _]) => return x[0],
            (Op::Select, [Some(c), ..]) => return x[if c != 0.0 { 1 } else { 2 }],
            _ => {}
        }
        if op == Op::Neg
            && let Node::Op(Op::Neg, inner) = self.nodes[x[0] as usize]
        {
            return inner[0];
        }
        if matches!(op, Op::Add | Op::Mul | Op::And | Op::Eq) && x[0] > x[1] {
            x.swap(0, 1);
        }
        self.node(Node::Op(op, x))
    }

    /// An operation on one operand.
    pub fn one(&mut self, op: Op, a: Id) -> Id {
        debug_assert_eq!(op.arity(), 1);
        self.op(op, &[a])
    }

    /// An operation on two operands.
    pub fn two(&mut self, op: Op, a: Id, b: Id) -> Id {
        debug_assert_eq!(op.arity(), 2);
        self.op(op, &[a, b])
    }

    /// `yes` where `cond`, else `no`.
    pub fn select(&mut self, cond: Id, yes: Id, no: Id) -> Id {
        self.op(Op::Select, &[cond, yes, no])
    }

    /// a + b
    pub fn add(&mut self, a: Id, b: Id) -> Id {
        self.two(Op::Add, a, b)
    }

    /// a - b
    pub fn sub(&mut self, a: Id, b: Id) -> Id {
        self.two(Op::Sub, a, b)
    }

    /// a b
    pub fn mul(&mut self, a: Id, b: Id) -> Id {
        self.two(Op::Mul, a, b)
    }

    /// a / b
    pub fn div(&mut self, a: Id, b: Id) -> Id {
        self.two(Op::Div, a, b)
    }

    /// Sum from the first to the last.
    pub fn sum(&mut self, x: &[Id]) -> Id {
        self.fold(Op::Add, x)
    }

    /// `op` from the first to the last; `x` is not empty.
    pub fn fold(&mut self, op: Op, x: &[Id]) -> Id {
        let mut total = x[0];
        for &next in &x[1..] {
            total = self.two(op, total, next);
        }
        total
    }

    /// Sum of products.
    pub fn dot(&mut self, a: &[Id], b: &[Id]) -> Id {
        let products: Vec<Id> = a.iter().zip(b).map(|(&a, &b)| self.mul(a, b)).collect();
        self.sum(&products)
    }

    /// Cross product.
    pub fn cross(&mut self, a: [Id; 3], b: [Id; 3]) -> [Id; 3] {
        [(1, 2), (2, 0), (0, 1)].map(|(i, j)| {
            let (p, q) = (self.mul(a[i], b[j]), self.mul(a[j], b[i]));
            self.sub(p, q)
        })
    }

    /// `v` turned by the unit quaternion `q` (w, x, y, z), or by its inverse:
    /// v +- 2 w (u x v) + 2 u x (u x v) with u = (x, y, z).
    pub fn rotate(&mut self, q: [Id; 4], v: [Id; 3], inverse: bool) -> [Id; 3] {
        let u = [q[1], q[2], q[3]];
        let two = self.constant(2.0);
        let t = self.cross(u, v).map(|c| self.mul(two, c));
        let last = self.cross(u, t);
        std::array::from_fn(|k| {
            let turned = self.mul(q[0], t[k]);
            let sum = if inverse { self.sub(v[k], turned) } else { self.add(v[k], turned) };
            self.add(sum, last[k])
        })
    }

    /// `a` to a constant power: whole powers up to 8 by multiplication.
    pub fn power(&mut self, a: Id, p: f32) -> Id {
        if p == 0.5 {
            return self.one(Op::Sqrt, a);
        }
        let whole = p.abs();
        if whole.fract() != 0.0 || whole > 8.0 {
            let p = self.constant32(p);
            return self.two(Op::Pow, a, p);
        }
        let one = self.constant(1.0);
        let (mut result, mut square, mut left) = (one, a, whole as u32);
        while left > 0 {
            if left & 1 == 1 {
                result = self.mul(result, square);
            }
            left >>= 1;
            if left > 0 {
                square = self.mul(square, square);
            }
        }
        if p < 0.0 { self.div(one, result) } else { result }
    }
}
