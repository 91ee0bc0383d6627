//! An interpreter of tapes, against which the printed code and the folding are
//! tested.

use super::node::{Node, Val};
use super::program::{Function, Program};

/// Numbers of the interpreter.
pub trait Real: Copy + PartialOrd + std::ops::Neg<Output = Self> {
    /// A constant.
    fn constant(value: f64) -> Self;
    /// a + b.
    fn add(self, b: Self) -> Self;
    /// a b.
    fn mul(self, b: Self) -> Self;
    /// a / b.
    fn div(self, b: Self) -> Self;
    /// a b + c, rounded once.
    fn fma(self, b: Self, c: Self) -> Self;
    /// The square root.
    fn sqrt(self) -> Self;
    /// The absolute value.
    fn abs(self) -> Self;
    /// Angle of the vector (b, a).
    fn atan2(self, b: Self) -> Self;
    /// The sine.
    fn sin(self) -> Self;
    /// The cosine.
    fn cos(self) -> Self;
    /// The nearest integer, ties to even.
    fn rint(self) -> Self;
}

macro_rules! real {
    ($type:ty) => {
        impl Real for $type {
            fn constant(value: f64) -> Self {
                value as Self
            }
            fn add(self, b: Self) -> Self {
                self + b
            }
            fn mul(self, b: Self) -> Self {
                self * b
            }
            fn div(self, b: Self) -> Self {
                self / b
            }
            fn fma(self, b: Self, c: Self) -> Self {
                self.mul_add(b, c)
            }
            fn sqrt(self) -> Self {
                self.sqrt()
            }
            fn abs(self) -> Self {
                self.abs()
            }
            fn atan2(self, b: Self) -> Self {
                // Adding 0 removes the sign of a zero.
                (self + 0.0).atan2(b + 0.0)
            }
            fn sin(self) -> Self {
                self.sin()
            }
            fn cos(self) -> Self {
                self.cos()
            }
            fn rint(self) -> Self {
                self.round_ties_even()
            }
        }
    };
}
real!(f32);
real!(f64);

#[derive(Debug, Clone, Copy)]
enum Slot<T> {
    Number(T),
    Mask(bool),
    /// Not needed, hence not computed.
    Nothing,
}

impl Program {
    /// Writes the constants into the arrays, of the program's shapes.
    pub fn run_init<T: Real>(&self, arrays: &mut [Vec<T>]) {
        for init in &self.init {
            arrays[init.array as usize][init.index as usize] = T::constant(init.value);
        }
    }

    /// Runs a function on the arrays.
    ///
    /// # Panics
    /// The arrays are not of the program's shapes.
    pub fn run<T: Real>(&self, function: &Function, arrays: &mut [Vec<T>]) {
        let nodes = self.graph.nodes();
        let live = self.live(function);
        let mut slots = vec![Slot::<T>::Nothing; nodes.len()];
        for at in (0..nodes.len()).filter(|&at| live[at]) {
            slots[at] = compute(&nodes[at], &slots, arrays);
        }
        for store in &function.stores {
            arrays[store.array as usize][store.index as usize] = number(&slots, store.value);
        }
    }
}

/// The recorder lets only numbers be operands of numbers.
fn number<T: Real>(slots: &[Slot<T>], value: Val) -> T {
    match slots[value.node() as usize] {
        Slot::Number(x) if value.negated() => -x,
        Slot::Number(x) => x,
        Slot::Mask(_) | Slot::Nothing => T::constant(f64::NAN),
    }
}

fn mask<T: Real>(slots: &[Slot<T>], value: Val) -> bool {
    matches!(slots[value.node() as usize], Slot::Mask(true)) ^ value.negated()
}

fn compute<T: Real>(node: &Node, slots: &[Slot<T>], arrays: &[Vec<T>]) -> Slot<T> {
    let n = |v: Val| number(slots, v);
    let m = |v: Val| mask(slots, v);
    let x = match *node {
        Node::True => return Slot::Mask(true),
        Node::Lt(a, b) => return Slot::Mask(n(a) < n(b)),
        Node::Le(a, b) => return Slot::Mask(n(a) <= n(b)),
        Node::And(a, b) => return Slot::Mask(m(a) & m(b)),
        Node::Or(a, b) => return Slot::Mask(m(a) | m(b)),
        Node::Xor(a, b) => return Slot::Mask(m(a) ^ m(b)),
        Node::Const(bits) => T::constant(f64::from_bits(bits)),
        Node::Load { array, index } => arrays[array as usize][index as usize],
        Node::Add(a, b) => n(a).add(n(b)),
        Node::Sub(a, b) => n(a).add(-n(b)),
        Node::Mul(a, b) => n(a).mul(n(b)),
        Node::Div(a, b) => n(a).div(n(b)),
        Node::Fma(a, b, c) => n(a).fma(n(b), n(c)),
        Node::Fnma(a, b, c) => (-n(a)).fma(n(b), n(c)),
        Node::Sqrt(a) => n(a).sqrt(),
        Node::Recip(a) => T::constant(1.0).div(n(a)),
        Node::Abs(a) => n(a).abs(),
        Node::Min(a, b) if n(a) < n(b) => n(a),
        Node::Max(a, b) if n(a) > n(b) => n(a),
        Node::Min(_, b) | Node::Max(_, b) => n(b),
        Node::Atan2(a, b) => n(a).atan2(n(b)),
        Node::Sin(a) => n(a).sin(),
        Node::Cos(a) => n(a).cos(),
        Node::Rint(a) => n(a).rint(),
        Node::Sel(mask, a, b) => n(if m(mask) { a } else { b }),
    };
    Slot::Number(x)
}
