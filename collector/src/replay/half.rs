//! Numbers in half precision (IEEE 754 binary16), two to a 32-bit word.
//!
//! A number that is too large for it (65,504) becomes the largest there is: an infinite
//! observation would make a whole batch useless. Others are rounded to the nearest, ties to
//! even, as libtorch does it on a device.

use half::f16;
use half::slice::{HalfBitsSliceExt, HalfFloatSliceExt};

/// The largest finite number.
pub const LARGEST: f32 = 65_504.0;

/// Numbers that are converted at a time.
const PIECE: usize = 64;

/// Words that `numbers` take.
pub const fn words(numbers: usize) -> usize {
    numbers.div_ceil(2)
}

/// Stores floats (as bits) in the first [`words`] of `to`; the unused part of the last one is 0.
pub fn pack(from: &[u32], to: &mut [u32]) {
    let to = &mut to[..words(from.len())];
    if let Some(last) = to.last_mut() {
        *last = 0;
    }
    let from: &[f32] = bytemuck::cast_slice(from);
    let to: &mut [u16] = bytemuck::cast_slice_mut(to);
    let to: &mut [f16] = to.reinterpret_cast_mut();
    let mut piece = [0.0_f32; PIECE];
    for (from, to) in from.chunks(PIECE).zip(to.chunks_mut(PIECE)) {
        for (held, x) in piece.iter_mut().zip(from) {
            *held = x.clamp(-LARGEST, LARGEST);
        }
        to[..from.len()].convert_from_f32_slice(&piece[..from.len()]);
    }
}

/// The floats (as bits) that [`pack`] stored.
pub fn unpack(from: &[u32], to: &mut [u32]) {
    let from: &[u16] = bytemuck::cast_slice(&from[..words(to.len())]);
    let from: &[f16] = from.reinterpret_cast();
    let to: &mut [f32] = bytemuck::cast_slice_mut(to);
    from[..to.len()].convert_to_f32_slice(to);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::transfer::host_numbers;
    use proptest::prelude::*;
    use tch::{Kind, Tensor};

    fn there_and_back(numbers: &[f32]) -> Vec<f32> {
        let mut packed = vec![u32::MAX; words(numbers.len())];
        pack(bytemuck::cast_slice(numbers), &mut packed);
        let mut back = vec![0_u32; numbers.len()];
        unpack(&packed, &mut back);
        back.into_iter().map(f32::from_bits).collect()
    }

    #[test]
    fn what_is_too_large_stays_finite_and_what_is_no_number_stays_none() {
        let x = there_and_back(&[1e9, -1e9, f32::INFINITY, 0.1, -0.0]);
        assert_eq!(x[..3], [LARGEST, -LARGEST, LARGEST]);
        assert!((x[3] - 0.1).abs() < 5e-5 && x[4].to_bits() == (-0.0_f32).to_bits());
        assert!(there_and_back(&[f32::NAN])[0].is_nan());
    }

    proptest! {
        #[test]
        fn numbers_are_rounded_as_libtorch_rounds_them(
            numbers in prop::collection::vec(-70_000.0_f32..70_000.0, 1..150),
            exponent in -30_i32..1,
        ) {
            let numbers: Vec<f32> = numbers.iter().map(|x| x * 2.0_f32.powi(exponent)).collect();
            let theirs = Tensor::from_slice(&numbers);
            let theirs = theirs.clamp(-f64::from(LARGEST), f64::from(LARGEST));
            let theirs = host_numbers(&theirs.to_kind(Kind::Half).to_kind(Kind::Float)).unwrap();
            prop_assert_eq!(there_and_back(&numbers), theirs);
        }
    }
}
