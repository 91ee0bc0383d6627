//! The operations and their simplifications.
//!
//! Every rule is exact for finite operands but for the sign of a zero. Nothing is
//! contracted or reassociated.

use super::graph::Graph;
use super::node::{Node, Val};

impl Graph {
    /// -a.
    pub fn neg(&mut self, a: Val) -> Val {
        match self.constant(a) {
            Some(x) => self.number(-x),
            None => a.flip(),
        }
    }

    /// a + b.
    pub fn add(&mut self, a: Val, b: Val) -> Val {
        match (self.constant(a), self.constant(b)) {
            (Some(x), Some(y)) if (x + y).is_finite() => return self.number(x + y),
            (Some(0.0), _) => return b,
            (_, Some(0.0)) => return a,
            _ => {}
        }
        if a.negated() == b.negated() {
            let (p, q) = ordered(a, b);
            return self.intern(Node::Add(p, q)).flip_if(a.negated());
        }
        let (p, q) = if b.negated() { (a, b) } else { (b, a) };
        let (first, second) = ordered(p, q);
        self.intern(Node::Sub(first, second)).flip_if(first != p.plain())
    }

    /// a - b.
    pub fn sub(&mut self, a: Val, b: Val) -> Val {
        self.add(a, b.flip())
    }

    /// a b.
    pub fn mul(&mut self, a: Val, b: Val) -> Val {
        let sign = a.negated() ^ b.negated();
        match (self.constant(a), self.constant(b)) {
            (Some(x), Some(y)) if (x * y).is_finite() => return self.number(x * y),
            (Some(0.0), _) | (_, Some(0.0)) => return self.number(0.0),
            (Some(x), _) if x.abs() == 1.0 => return b.plain().flip_if(sign),
            (_, Some(y)) if y.abs() == 1.0 => return a.plain().flip_if(sign),
            _ => {}
        }
        let (p, q) = ordered(a, b);
        self.intern(Node::Mul(p, q)).flip_if(sign)
    }

    /// a / b.
    pub fn div(&mut self, a: Val, b: Val) -> Val {
        let sign = a.negated() ^ b.negated();
        match (self.constant(a), self.constant(b)) {
            (Some(x), Some(y)) if (x / y).is_finite() => return self.number(x / y),
            (Some(0.0), Some(y)) if y != 0.0 => return self.number(0.0),
            (_, Some(y)) if y.abs() == 1.0 => return a.plain().flip_if(sign),
            // Both round the same real number.
            (_, Some(y)) if is_power_of_two(y) => {
                let inverse = self.number(1.0 / y);
                return self.mul(a, inverse);
            }
            _ => {}
        }
        self.intern(Node::Div(a.plain(), b.plain())).flip_if(sign)
    }

    /// a b + c, rounded once.
    pub fn fma(&mut self, a: Val, b: Val, c: Val) -> Val {
        let (x, y) = (self.constant(a), self.constant(b));
        match (x, y, self.constant(c)) {
            (Some(x), Some(y), Some(z)) if x.mul_add(y, z).is_finite() => {
                return self.number(x.mul_add(y, z));
            }
            (Some(0.0), _, _) | (_, Some(0.0), _) => return c,
            (_, _, Some(0.0)) => return self.mul(a, b),
            _ => {}
        }
        let sum = match (x, y) {
            (Some(x), Some(y)) => exact_product(x, y),
            (Some(x), _) => x.abs() == 1.0,
            (_, Some(y)) => y.abs() == 1.0,
            _ => false,
        };
        if sum {
            let product = self.mul(a, b);
            return self.add(product, c);
        }
        let sign = a.negated() ^ b.negated();
        let (p, q) = ordered(a, b);
        let node = if sign == c.negated() {
            Node::Fma(p, q, c.plain())
        } else {
            Node::Fnma(p, q, c.plain())
        };
        self.intern(node).flip_if(c.negated())
    }

    /// The square root.
    pub fn sqrt(&mut self, a: Val) -> Val {
        match self.constant(a) {
            Some(x) if x >= 0.0 && x.is_finite() => self.number(x.sqrt()),
            _ => self.intern(Node::Sqrt(a)),
        }
    }

    /// 1 / a as the scalar type's `recip_` gives it.
    pub fn recip(&mut self, a: Val) -> Val {
        match self.constant(a) {
            Some(x) if (1.0 / x).is_finite() => self.number(1.0 / x),
            _ => self.intern(Node::Recip(a.plain())).flip_if(a.negated()),
        }
    }

    /// The absolute value.
    pub fn abs(&mut self, a: Val) -> Val {
        match self.node(a) {
            Node::Const(_) | Node::Abs(_) | Node::Sqrt(_) => a.plain(),
            _ => self.intern(Node::Abs(a.plain())),
        }
    }

    /// a if a < b, else b.
    pub fn min(&mut self, a: Val, b: Val) -> Val {
        match (self.constant(a), self.constant(b)) {
            (Some(x), Some(y)) => self.number(if x < y { x } else { y }),
            _ if a == b => a,
            _ => self.intern(Node::Min(a, b)),
        }
    }

    /// a if a > b, else b.
    pub fn max(&mut self, a: Val, b: Val) -> Val {
        match (self.constant(a), self.constant(b)) {
            (Some(x), Some(y)) => self.number(if x > y { x } else { y }),
            _ if a == b => a,
            _ => self.intern(Node::Max(a, b)),
        }
    }

    /// Angle of the vector (c, s), s not negative.
    pub fn atan2(&mut self, s: Val, c: Val) -> Val {
        match (self.constant(s), self.constant(c)) {
            (Some(y), Some(x)) if y.atan2(x).is_finite() => self.number(y.atan2(x)),
            _ => self.intern(Node::Atan2(s, c)),
        }
    }

    /// The sine.
    pub fn sin(&mut self, a: Val) -> Val {
        match self.constant(a) {
            Some(x) if x.is_finite() => self.number(x.sin()),
            _ => self.intern(Node::Sin(a)),
        }
    }

    /// The cosine.
    pub fn cos(&mut self, a: Val) -> Val {
        match self.constant(a) {
            Some(x) if x.is_finite() => self.number(x.cos()),
            _ => self.intern(Node::Cos(a)),
        }
    }

    /// The nearest integer, ties to even.
    pub fn rint(&mut self, a: Val) -> Val {
        match (self.constant(a), self.node(a)) {
            (Some(x), _) => self.number(x.round_ties_even()),
            (_, Node::Rint(_)) => a,
            _ => self.intern(Node::Rint(a.plain())).flip_if(a.negated()),
        }
    }

    /// The mask a < b.
    pub fn lt(&mut self, a: Val, b: Val) -> Val {
        if let (Some(x), Some(y)) = (self.constant(a), self.constant(b)) {
            return self.mask(x < y);
        }
        if a == b {
            return self.mask(false);
        }
        let (a, b) = self.turned(a, b);
        self.intern(Node::Lt(a, b))
    }

    /// The mask a <= b.
    pub fn le(&mut self, a: Val, b: Val) -> Val {
        if let (Some(x), Some(y)) = (self.constant(a), self.constant(b)) {
            return self.mask(x <= y);
        }
        let (a, b) = self.turned(a, b);
        self.intern(Node::Le(a, b))
    }

    /// Both masks.
    pub fn and(&mut self, a: Val, b: Val) -> Val {
        match (self.known_mask(a), self.known_mask(b)) {
            (Some(false), _) | (_, Some(false)) => return self.mask(false),
            (Some(true), _) => return b,
            (_, Some(true)) => return a,
            _ => {}
        }
        if a.plain() == b.plain() {
            return if a == b { a } else { self.mask(false) };
        }
        self.intern(Node::And(a.min(b), a.max(b)))
    }

    /// Either mask.
    pub fn or(&mut self, a: Val, b: Val) -> Val {
        match (self.known_mask(a), self.known_mask(b)) {
            (Some(true), _) | (_, Some(true)) => return self.mask(true),
            (Some(false), _) => return b,
            (_, Some(false)) => return a,
            _ => {}
        }
        if a.plain() == b.plain() {
            return if a == b { a } else { self.mask(true) };
        }
        self.intern(Node::Or(a.min(b), a.max(b)))
    }

    /// Exactly one of two masks.
    pub fn xor(&mut self, a: Val, b: Val) -> Val {
        match (self.known_mask(a), self.known_mask(b)) {
            (Some(x), _) => return b.flip_if(x),
            (_, Some(y)) => return a.flip_if(y),
            _ => {}
        }
        let sign = a.negated() ^ b.negated();
        if a.plain() == b.plain() {
            return self.mask(sign);
        }
        let (p, q) = ordered(a, b);
        self.intern(Node::Xor(p, q)).flip_if(sign)
    }

    /// Where the mask holds a, else b.
    pub fn sel(&mut self, mask: Val, a: Val, b: Val) -> Val {
        match self.known_mask(mask) {
            Some(true) => return a,
            Some(false) => return b,
            None if a == b => return a,
            None => {}
        }
        let (a, b) = if mask.negated() { (b, a) } else { (a, b) };
        let sign = match (self.constant(a), self.constant(b)) {
            (Some(_), Some(_)) => false,
            (Some(_), None) => b.negated(),
            _ => a.negated(),
        };
        let node = Node::Sel(mask.plain(), a.flip_if(sign), b.flip_if(sign));
        self.intern(node).flip_if(sign)
    }

    /// A comparison's operands, without a negation where turning it round needs
    /// none: -a < -b is b < a, -a < 2 is -2 < a.
    fn turned(&self, a: Val, b: Val) -> (Val, Val) {
        let free = |v: Val| v.negated() || self.constant(v).is_some();
        let gains = |v: Val| v.negated() && self.constant(v).is_none();
        if free(a) && free(b) && (gains(a) || gains(b)) { (b.flip(), a.flip()) } else { (a, b) }
    }
}

/// The plain values, the one recorded first in front.
fn ordered(a: Val, b: Val) -> (Val, Val) {
    let (a, b) = (a.plain(), b.plain());
    (a.min(b), a.max(b))
}

/// Whether 1/x is exact in single precision too.
fn is_power_of_two(x: f64) -> bool {
    let fraction = x.to_bits() & ((1 << 52) - 1);
    fraction == 0 && (1e-30..1e30).contains(&x.abs())
}

/// Whether the factors and their product lose nothing in single precision, hence
/// in double neither.
fn exact_product(x: f64, y: f64) -> bool {
    let single = |v: f64| f64::from(v as f32) == v && (v == 0.0 || v.abs() > 1e-30);
    // Factors of 24 bits: the double product is exact.
    single(x) && single(y) && single(x * y)
}
