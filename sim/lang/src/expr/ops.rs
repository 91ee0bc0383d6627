//! The operations of compiled programs: the one definition of each.
//!
//! Every operation is a pure function of one lane; three also read the ground that all share. Booleans are 0 and 1. Nothing
//! traps: a division by zero or a root of a negative number gives what IEEE 754
//! says, and NaN always comes out where NaN goes in, except where a comparison or
//! `Select` decides (a comparison with NaN is false).

use ostler_base::math;
use ostler_engine::phases::{BLOCK, Relief};

/// One register: a value for each environment of a block.
pub(crate) type Register = [f32; BLOCK];

macro_rules! operations {
    (
        one { $($(#[$doc1:meta])* $one:ident($x:ident) = $body1:expr;)* }
        two { $($(#[$doc2:meta])* $two:ident($a:ident, $b:ident) = $body2:expr;)* }
        three { $($(#[$doc3:meta])* $three:ident($p:ident, $q:ident, $r:ident) = $body3:expr;)* }
    ) => {
        /// An operation on one, two or three registers.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Op {
            $($(#[$doc1])* $one,)*
            $($(#[$doc2])* $two,)*
            $($(#[$doc3])* $three,)*
        }

        impl Op {
            /// Number of operands.
            pub fn arity(self) -> usize {
                match self {
                    $(Op::$one => 1,)*
                    $(Op::$two => 2,)*
                    $(Op::$three => 3,)*
                }
            }

            /// The value of one lane; operands beyond the arity are ignored.
            pub fn lane(self, operands: [f32; 3]) -> f32 {
                match self {
                    $(Op::$one => { let $x = operands[0]; $body1 })*
                    $(Op::$two => { let ($a, $b) = (operands[0], operands[1]); $body2 })*
                    $(Op::$three => { let [$p, $q, $r] = operands; $body3 })*
                }
            }

            /// All lanes of a block.
            pub fn block(self, x: [&Register; 3], out: &mut Register) {
                match self {
                    $(Op::$one => for i in 0..BLOCK {
                        let $x = x[0][i];
                        out[i] = $body1;
                    },)*
                    $(Op::$two => for i in 0..BLOCK {
                        let ($a, $b) = (x[0][i], x[1][i]);
                        out[i] = $body2;
                    },)*
                    $(Op::$three => for i in 0..BLOCK {
                        let ($p, $q, $r) = (x[0][i], x[1][i], x[2][i]);
                        out[i] = $body3;
                    },)*
                }
            }
        }
    };
}

impl Op {
    /// What it reads of the ground; all other operations are functions of their operands alone.
    pub fn relief(self) -> Option<Relief> {
        match self {
            Self::GroundHeight => Some(Relief::Height),
            Self::GroundSlopeX => Some(Relief::SlopeX),
            Self::GroundSlopeY => Some(Relief::SlopeY),
            _ => None,
        }
    }
}

fn truth(b: bool) -> f32 {
    f32::from(u8::from(b))
}

operations! {
    one {
        /// -x
        Neg(x) = -x;
        /// |x|
        Abs(x) = x.abs();
        /// Square root, exactly rounded.
        Sqrt(x) = x.sqrt();
        /// e^x
        Exp(x) = math::exp(x);
        /// Natural logarithm.
        Ln(x) = math::ln(x);
        /// Sine.
        Sin(x) = math::sin(x);
        /// Cosine.
        Cos(x) = math::cos(x);
        /// Tangent.
        Tan(x) = math::tan(x);
        /// Angle with this sine.
        Asin(x) = math::asin(x);
        /// Angle with this cosine.
        Acos(x) = math::acos(x);
        /// Hyperbolic tangent.
        Tanh(x) = math::tanh(x);
        /// Largest whole number not above x.
        Floor(x) = x.floor();
        /// Nearest whole number, halves to the even one.
        Round(x) = x.round_ties_even();
        /// -1, 0 or 1; NaN stays.
        Sign(x) = if x > 0.0 { 1.0 } else if x < 0.0 { -1.0 } else { x };
        /// Neither infinite nor NaN.
        Finite(x) = truth(x.abs() <= f32::MAX);
        /// Logical not.
        Not(x) = 1.0 - x;
    }
    two {
        /// a + b
        Add(a, b) = a + b;
        /// a - b
        Sub(a, b) = a - b;
        /// a b
        Mul(a, b) = a * b;
        /// a / b
        Div(a, b) = a / b;
        /// The smaller; NaN if either is.
        Min(a, b) = if a < b || a.is_nan() { a } else { b };
        /// The larger; NaN if either is.
        Max(a, b) = if a > b || a.is_nan() { a } else { b };
        /// a^b for powers that are not small whole constants.
        Pow(a, b) = math::pow(a, b);
        /// Angle of the point (x = b, y = a).
        Atan2(a, b) = math::atan2(a, b);
        /// a < b
        Lt(a, b) = truth(a < b);
        /// a <= b
        Le(a, b) = truth(a <= b);
        /// a == b
        Eq(a, b) = truth(a == b);
        /// Both.
        And(a, b) = a * b;
        /// Either.
        Or(a, b) = a + b - a * b;
        /// Height of the ground at x = a, y = b: [`Op::relief`].
        GroundHeight(_a, _b) = f32::NAN;
        /// Its slope along x.
        GroundSlopeX(_a, _b) = f32::NAN;
        /// Its slope along y.
        GroundSlopeY(_a, _b) = f32::NAN;
    }
    three {
        /// q where p holds, else r.
        Select(p, q, r) = if p != 0.0 { q } else { r };
    }
}
