//! Eight or sixteen numbers at once.
//!
//! The intrinsics and nothing else. What is built on them reads the same for both widths
//! and gives the same bits with both: every operation here is rounded as IEEE 754 says,
//! and [`Lanes::fma`] once, wherever it stands.

use std::arch::x86_64::*;
use std::mem::transmute;

/// A vector of float32.
///
/// Invariant: values exist only where the processor has the instructions of their type.
/// They come from [`load`](Self::load) and from other values, so that whoever calls `load`
/// answers for it; all else is safe. Methods are inlined into functions that enable these
/// instructions; elsewhere they would be slow, not wrong.
pub(super) trait Lanes: Copy {
    /// Numbers in it.
    const N: usize;
    /// What a vector register file of this width has room for: outputs of a layer that
    /// are computed together, for two vectors of rows.
    const OUTPUTS: usize;

    /// Memory is read and written as arrays: the intrinsics for it check their pointers, by
    /// a call, where debug assertions are on.
    ///
    /// # Safety
    /// `N` numbers can be read from there, and the processor has the instructions.
    unsafe fn load(from: *const f32) -> Self;
    /// # Safety
    /// `N` numbers can be written there.
    unsafe fn store(self, to: *mut f32);
    /// `x` in all places of a vector like this.
    fn all(self, x: f32) -> Self;
    fn add(self, other: Self) -> Self;
    fn sub(self, other: Self) -> Self;
    fn mul(self, other: Self) -> Self;
    fn div(self, other: Self) -> Self;
    /// `self * factor + term`, rounded once.
    fn fma(self, factor: Self, term: Self) -> Self;
    /// The larger of both; `self` where it is NaN or both are zeros.
    fn at_least(self, floor: Self) -> Self;
    fn abs(self) -> Self;
    /// `self` with the signs of another.
    fn copysign(self, sign: Self) -> Self;
    /// `2^k` where `self` is the sum of a whole number `k` in -126..=127 and 1.5 * 2^23.
    fn pow2(self) -> Self;
    /// `yes` where `self` compares so with 0, else `no`.
    fn pick<const COMPARED: i32>(self, yes: Self, no: Self) -> Self;
}

/// Above 0; not NaN.
pub(super) const ABOVE: i32 = _CMP_GT_OQ;
/// Below 0; not NaN.
pub(super) const BELOW: i32 = _CMP_LT_OQ;
/// Above 0, or NaN.
pub(super) const NOT_UP_TO: i32 = _CMP_NLE_UQ;

/// With AVX2 and FMA.
#[derive(Clone, Copy)]
pub(super) struct Eight(__m256);

/// With AVX-512F.
#[derive(Clone, Copy)]
pub(super) struct Sixteen(__m512);

/// Methods that are safe because there is a vector.
macro_rules! methods {
    ($(fn $name:ident($this:ident $(, $other:ident)*) $body:expr;)+) => {$(
        #[inline(always)]
        fn $name($this $(, $other: Self)*) -> Self {
            // SAFETY: `self` is there, so the processor has these instructions.
            Self(unsafe { $body })
        }
    )+};
}

impl Lanes for Eight {
    const N: usize = 8;
    const OUTPUTS: usize = 4;

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller's.
        Self(unsafe { transmute::<[f32; 8], __m256>(*from.cast()) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller's.
        unsafe { *to.cast() = transmute::<__m256, [f32; 8]>(self.0) }
    }
    #[inline(always)]
    fn all(self, x: f32) -> Self {
        // SAFETY: as for `methods`.
        Self(unsafe { _mm256_set1_ps(x) })
    }
    #[inline(always)]
    fn pick<const COMPARED: i32>(self, yes: Self, no: Self) -> Self {
        // SAFETY: as for `methods`.
        Self(unsafe {
            let mask = _mm256_cmp_ps::<COMPARED>(self.0, _mm256_setzero_ps());
            _mm256_blendv_ps(no.0, yes.0, mask)
        })
    }
    methods! {
        fn add(self, other) _mm256_add_ps(self.0, other.0);
        fn sub(self, other) _mm256_sub_ps(self.0, other.0);
        fn mul(self, other) _mm256_mul_ps(self.0, other.0);
        fn div(self, other) _mm256_div_ps(self.0, other.0);
        fn fma(self, factor, term) _mm256_fmadd_ps(self.0, factor.0, term.0);
        fn at_least(self, floor) _mm256_max_ps(floor.0, self.0);
        fn abs(self) _mm256_andnot_ps(_mm256_set1_ps(-0.0), self.0);
        fn copysign(self, sign) {
            let bit = _mm256_set1_ps(-0.0);
            _mm256_or_ps(_mm256_andnot_ps(bit, self.0), _mm256_and_ps(bit, sign.0))
        };
        fn pow2(self) {
            let k = _mm256_slli_epi32::<23>(_mm256_castps_si256(self.0));
            _mm256_castsi256_ps(_mm256_add_epi32(k, _mm256_set1_epi32(0x3f80_0000)))
        };
    }
}

impl Lanes for Sixteen {
    const N: usize = 16;
    const OUTPUTS: usize = 8;

    #[inline(always)]
    unsafe fn load(from: *const f32) -> Self {
        // SAFETY: the caller's.
        Self(unsafe { transmute::<[f32; 16], __m512>(*from.cast()) })
    }
    #[inline(always)]
    unsafe fn store(self, to: *mut f32) {
        // SAFETY: the caller's.
        unsafe { *to.cast() = transmute::<__m512, [f32; 16]>(self.0) }
    }
    #[inline(always)]
    fn all(self, x: f32) -> Self {
        // SAFETY: as for `methods`.
        Self(unsafe { _mm512_set1_ps(x) })
    }
    #[inline(always)]
    fn pick<const COMPARED: i32>(self, yes: Self, no: Self) -> Self {
        // SAFETY: as for `methods`.
        Self(unsafe {
            let mask = _mm512_cmp_ps_mask::<COMPARED>(self.0, _mm512_setzero_ps());
            _mm512_mask_blend_ps(mask, no.0, yes.0)
        })
    }
    methods! {
        fn add(self, other) _mm512_add_ps(self.0, other.0);
        fn sub(self, other) _mm512_sub_ps(self.0, other.0);
        fn mul(self, other) _mm512_mul_ps(self.0, other.0);
        fn div(self, other) _mm512_div_ps(self.0, other.0);
        fn fma(self, factor, term) _mm512_fmadd_ps(self.0, factor.0, term.0);
        fn at_least(self, floor) _mm512_max_ps(floor.0, self.0);
        fn abs(self) _mm512_abs_ps(self.0);
        fn copysign(self, sign) {
            let bit = _mm512_set1_epi32(i32::MIN);
            let (x, sign) = (_mm512_castps_si512(self.0), _mm512_castps_si512(sign.0));
            _mm512_castsi512_ps(_mm512_ternarylogic_epi32::<0xca>(bit, sign, x))
        };
        fn pow2(self) {
            let k = _mm512_slli_epi32::<23>(_mm512_castps_si512(self.0));
            _mm512_castsi512_ps(_mm512_add_epi32(k, _mm512_set1_epi32(0x3f80_0000)))
        };
    }
}
