//! The syntax tree.

use std::ops::Range;

/// Index of a node in [`Tree::nodes`].
pub(crate) type NodeRef = usize;

/// Operators with two sides.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Binary {
    Add,
    Sub,
    Mul,
    Div,
    Pow,
    Lt,
    Le,
    Gt,
    Ge,
    Eq,
    Ne,
    And,
    Or,
}

/// Kind of a node.
#[derive(Debug, Clone, PartialEq)]
pub enum Node<'a> {
    Number(f64),
    Name(&'a str),
    Text(&'a str),
    List(Vec<NodeRef>),
    Call { name: &'a str, name_span: Range<usize>, args: Vec<NodeRef> },
    Member { of: NodeRef, name: &'a str, name_span: Range<usize> },
    Index { of: NodeRef, at: i64, index_span: Range<usize> },
    Slice { of: NodeRef, from: Option<i64>, to: Option<i64>, index_span: Range<usize> },
    Negate(NodeRef),
    Not(NodeRef),
    Binary { op: Binary, op_span: Range<usize>, left: NodeRef, right: NodeRef },
    If { cond: NodeRef, yes: NodeRef, no: NodeRef },
}

/// A parsed expression: children come before parents, the root is last.
#[derive(Debug, Default)]
pub struct Tree<'a> {
    /// Nodes and the bytes they cover.
    pub nodes: Vec<(Node<'a>, Range<usize>)>,
}
