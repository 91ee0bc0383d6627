//! Activations over slices, in place.
//!
//! Errors in units in the last place, against double precision: ELU 1, tanh 3; ReLU and
//! the derivatives of ELU and ReLU have libtorch's bits. NaN stays NaN, zeros keep
//! their signs, subnormal numbers are not flushed.

use super::Vectors;
use super::lanes::{ABOVE, BELOW, Eight, Lanes, NOT_UP_TO, Sixteen};
use crate::learner::policy::Activation;
use std::f32::consts::LOG2_E;

/// Adding and subtracting this rounds to the nearest whole number (|x| < 2^22).
const ROUND: f32 = 12_582_912.0;
/// ln 2 in two parts; the first has 12 bits, so that a product with an exponent is exact.
const LN2: [f32; 2] = [0.693_115_23, 3.194_618_4e-5];
/// Of `(e^r - 1 - r) / r^2` for |r| < 0.35, highest power first: those of
/// `ostler_sim::math::exp`.
const EXP: [f32; 6] = [
    0.000_197_892_62,
    0.001_394_575_2,
    0.008_333_504,
    0.041_666_28,
    0.166_666_66,
    0.5,
];

/// `e^x - 1` for `x` up to 0, without cancellation: with `x = k ln 2 + r` it is
/// `2^k (e^r - 1) + (2^k - 1)`.
#[inline(always)]
fn exp_m1<V: Lanes>(x: V) -> V {
    // Below, the answer is -1.
    let x = x.at_least(x.all(-30.0));
    let shifted = x.fma(x.all(LOG2_E), x.all(ROUND));
    let k = shifted.sub(x.all(ROUND));
    let r = k.fma(x.all(-LN2[0]), x);
    let r = k.fma(x.all(-LN2[1]), r);
    let mut p = x.all(EXP[0]);
    for c in &EXP[1..] {
        p = p.fma(r, x.all(*c));
    }
    let e = r.mul(r).fma(p, r);
    let scale = shifted.pow2();
    scale.fma(e, scale.sub(x.all(1.0)))
}

#[inline(always)]
fn elu<V: Lanes>(x: V) -> V {
    x.pick::<BELOW>(exp_m1(x), x)
}

#[inline(always)]
fn relu<V: Lanes>(x: V) -> V {
    x.at_least(x.all(0.0))
}

/// `(1 - e^(-2|x|)) / (1 + e^(-2|x|))`.
#[inline(always)]
fn tanh<V: Lanes>(x: V) -> V {
    let e = exp_m1(x.abs().mul(x.all(-2.0)));
    e.div(e.add(x.all(2.0))).copysign(x)
}

/// From the result `y` and its gradient `d` to that of the argument.
#[inline(always)]
fn slope<V: Lanes>(activation: Activation, y: V, d: V) -> V {
    let one = y.all(1.0);
    match activation {
        Activation::Elu => y.pick::<ABOVE>(d, d.mul(y.add(one))),
        Activation::Relu => y.pick::<NOT_UP_TO>(d, y.all(0.0)),
        Activation::Tanh => d.mul(one.sub(y.mul(y))),
    }
}

/// Every number of `x` becomes `activation` of it.
pub fn forward(vectors: Vectors, activation: Activation, x: &mut [f32]) {
    match vectors {
        // SAFETY: a value of `Vectors` says what the processor has.
        Vectors::Eight => unsafe { forward_8(activation, x) },
        // SAFETY: as above.
        Vectors::Sixteen => unsafe { forward_16(activation, x) },
    }
}

/// Gradients `d` of results `y` become those of the arguments. As many of both.
pub fn backward(vectors: Vectors, activation: Activation, y: &[f32], d: &mut [f32]) {
    assert_eq!(y.len(), d.len());
    match vectors {
        // SAFETY: a value of `Vectors` says what the processor has.
        Vectors::Eight => unsafe { backward_8(activation, y, d) },
        // SAFETY: as above.
        Vectors::Sixteen => unsafe { backward_16(activation, y, d) },
    }
}

#[target_feature(enable = "avx2,fma")]
fn forward_8(activation: Activation, x: &mut [f32]) {
    // SAFETY: enabled here.
    unsafe { forward_all::<Eight>(activation, x) }
}

#[target_feature(enable = "avx512f")]
fn forward_16(activation: Activation, x: &mut [f32]) {
    // SAFETY: enabled here.
    unsafe { forward_all::<Sixteen>(activation, x) }
}

#[target_feature(enable = "avx2,fma")]
fn backward_8(activation: Activation, y: &[f32], d: &mut [f32]) {
    // SAFETY: enabled here.
    unsafe { backward_all::<Eight>(activation, y, d) }
}

#[target_feature(enable = "avx512f")]
fn backward_16(activation: Activation, y: &[f32], d: &mut [f32]) {
    // SAFETY: enabled here.
    unsafe { backward_all::<Sixteen>(activation, y, d) }
}

/// # Safety
/// The processor has the instructions of `V`.
#[inline(always)]
unsafe fn forward_all<V: Lanes>(activation: Activation, x: &mut [f32]) {
    let (to, len) = (x.as_mut_ptr(), x.len());
    // A loop for each, without a choice in it.
    // SAFETY: `x` is `len` numbers; the rest is the caller's.
    unsafe {
        match activation {
            Activation::Elu => each::<V, false>(Activation::Elu, to, to, len),
            Activation::Relu => each::<V, false>(Activation::Relu, to, to, len),
            Activation::Tanh => each::<V, false>(Activation::Tanh, to, to, len),
        }
    }
}

/// # Safety
/// The processor has the instructions of `V`; as many `y` as `d`.
#[inline(always)]
unsafe fn backward_all<V: Lanes>(activation: Activation, y: &[f32], d: &mut [f32]) {
    let (y, to, len) = (y.as_ptr(), d.as_mut_ptr(), d.len());
    // SAFETY: both are `len` numbers; the rest is the caller's.
    unsafe {
        match activation {
            Activation::Elu => each::<V, true>(Activation::Elu, y, to, len),
            Activation::Relu => each::<V, true>(Activation::Relu, y, to, len),
            Activation::Tanh => each::<V, true>(Activation::Tanh, y, to, len),
        }
    }
}

/// The activation of `x`, or from the gradient `x` of the result `y` that of the
/// argument. Not a closure, which would not be inlined
/// into the instructions that it needs without full optimisation.
#[inline(always)]
fn one<V: Lanes, const BACKWARD: bool>(activation: Activation, y: V, x: V) -> V {
    match (BACKWARD, activation) {
        (true, _) => slope(activation, y, x),
        (_, Activation::Elu) => elu(x),
        (_, Activation::Relu) => relu(x),
        (_, Activation::Tanh) => tanh(x),
    }
}

/// All of `x`, in place; what is left over at the end goes through a vector, too.
///
/// # Safety
/// `len` numbers can be read from `y` and written to `x`, and the processor has the
/// instructions of `V`.
#[inline(always)]
unsafe fn each<V: Lanes, const BACKWARD: bool>(
    activation: Activation,
    y: *const f32,
    x: *mut f32,
    len: usize,
) {
    let mut i = 0;
    while i + V::N <= len {
        // SAFETY: `i + N <= len`.
        unsafe {
            let (y, old) = (V::load(y.add(i)), V::load(x.add(i)));
            one::<V, BACKWARD>(activation, y, old).store(x.add(i));
        }
        i += V::N;
    }
    let left = len - i;
    if left == 0 {
        return;
    }
    let mut ends = [[0.0f32; 16]; 2];
    // SAFETY: `left` numbers are there from `i` on, fewer than a vector has, and no vector
    // has more than 16.
    unsafe {
        y.add(i).copy_to_nonoverlapping(ends[0].as_mut_ptr(), left);
        x.add(i).copy_to_nonoverlapping(ends[1].as_mut_ptr(), left);
        let (y, old) = (V::load(ends[0].as_ptr()), V::load(ends[1].as_ptr()));
        one::<V, BACKWARD>(activation, y, old).store(ends[1].as_mut_ptr());
        x.add(i).copy_from_nonoverlapping(ends[1].as_ptr(), left);
    }
}
