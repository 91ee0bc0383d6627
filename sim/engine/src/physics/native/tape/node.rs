//! Values and nodes.

/// A value: a node, taken as it is or negated (of a mask: complemented).
///
/// Signs live on the edges of the graph, not in nodes of their own: a product of
/// negated factors is the same node as the product itself, and additions and fused
/// multiply-adds swallow the sign of what they use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Val(u32);

impl Val {
    /// The most nodes that are recorded. Each becomes a statement: a compiler takes a
    /// second for a thousand. The largest robot in `configs` has less than an eighth.
    pub const MAX_NODES: usize = 1 << 18;

    pub(super) const fn new(node: u32, negated: bool) -> Self {
        Self(node << 1 | negated as u32)
    }

    /// From the number handed out over the C functions. Whether such a node exists
    /// is for the graph to say.
    pub(super) const fn from_raw(raw: u32) -> Self {
        Self(raw)
    }

    /// The number handed out over the C functions.
    pub const fn raw(self) -> u32 {
        self.0
    }

    /// Index of the node.
    pub const fn node(self) -> u32 {
        self.0 >> 1
    }

    /// Whether the node's value is taken negated (a mask's: complemented).
    pub const fn negated(self) -> bool {
        self.0 & 1 != 0
    }

    /// The negated value, the complemented mask.
    #[must_use]
    pub const fn flip(self) -> Self {
        Self(self.0 ^ 1)
    }

    /// [`flip`](Self::flip) if `yes`.
    #[must_use]
    pub const fn flip_if(self, yes: bool) -> Self {
        Self(self.0 ^ yes as u32)
    }

    /// The node's value itself.
    #[must_use]
    pub const fn plain(self) -> Self {
        Self(self.0 & !1)
    }
}

/// One operation. Operands that can give their sign away hold [plain](Val::plain)
/// values; commutative ones are ordered by index.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Node {
    /// Bits of a number that is not negative (a negative constant is its negation).
    Const(u64),
    /// The mask that holds (its complement does not).
    True,
    /// An array's element as it was when the function began.
    Load {
        /// Index into the program's arrays.
        array: u32,
        /// Flat index of the element.
        index: u32,
    },
    /// a + b.
    Add(Val, Val),
    /// a - b.
    Sub(Val, Val),
    /// a b.
    Mul(Val, Val),
    /// a / b.
    Div(Val, Val),
    /// a b + c, rounded once.
    Fma(Val, Val, Val),
    /// c - a b, rounded once.
    Fnma(Val, Val, Val),
    /// The square root.
    Sqrt(Val),
    /// 1 / a as the scalar type's `recip_` gives it.
    Recip(Val),
    /// The absolute value.
    Abs(Val),
    /// a if a < b, else b.
    Min(Val, Val),
    /// a if a > b, else b.
    Max(Val, Val),
    /// Angle of the vector (second, first), the first not negative.
    Atan2(Val, Val),
    /// The sine.
    Sin(Val),
    /// The cosine.
    Cos(Val),
    /// The nearest integer, ties to even.
    Rint(Val),
    /// The mask a < b.
    Lt(Val, Val),
    /// The mask a <= b.
    Le(Val, Val),
    /// Both masks.
    And(Val, Val),
    /// Either mask.
    Or(Val, Val),
    /// Exactly one of two masks.
    Xor(Val, Val),
    /// Where the mask holds a, else b.
    Sel(Val, Val, Val),
}

impl Node {
    /// Its arguments.
    pub fn operands(&self) -> Operands {
        use Node::*;
        let none = Val::new(0, false);
        let (values, len) = match *self {
            Const(_) | True | Load { .. } => ([none; 3], 0),
            Sqrt(a) | Recip(a) | Abs(a) | Sin(a) | Cos(a) | Rint(a) => ([a, none, none], 1),
            Add(a, b)
            | Sub(a, b)
            | Mul(a, b)
            | Div(a, b)
            | Min(a, b)
            | Max(a, b)
            | Atan2(a, b)
            | Lt(a, b)
            | Le(a, b)
            | And(a, b)
            | Or(a, b)
            | Xor(a, b) => ([a, b, none], 2),
            Fma(a, b, c) | Fnma(a, b, c) | Sel(a, b, c) => ([a, b, c], 3),
        };
        Operands { values, len }
    }

    /// Whether its value is a mask.
    pub fn is_mask(&self) -> bool {
        use Node::*;
        matches!(self, True | Lt(..) | Le(..) | And(..) | Or(..) | Xor(..))
    }
}

/// Up to three values.
#[derive(Debug, Clone, Copy)]
pub struct Operands {
    values: [Val; 3],
    len: usize,
}

impl std::ops::Deref for Operands {
    type Target = [Val];

    fn deref(&self) -> &[Val] {
        &self.values[..self.len]
    }
}
