//! Elementary functions with one definition for every backend.
//!
//! Same bits on every processor: plain IEEE 754 single precision operations, no
//! fused multiply-add, no library calls except `sqrt` (exactly rounded by the
//! standard), no branches that a vectoriser cannot turn into selections. The same
//! lines can be repeated in CUDA with contraction off.
//!
//! Method: argument reduction in parts that are exact in single precision (Cody and
//! Waite, "Software Manual for the Elementary Functions", 1980), then minimax
//! polynomials that were fitted for this file (weighted least squares by Lawson's
//! iteration on Chebyshev nodes) and rounded to single precision. The tests state
//! and hold the error of each function in units in the last place against double
//! precision.

use std::f32::consts::{FRAC_PI_2, FRAC_PI_4, LOG2_E, PI};

/// Adding and subtracting this rounds to the nearest whole number (|x| < 2^22),
/// and the low bits of the sum are that number.
const ROUND: f32 = 12_582_912.0;
/// ln 2 in two parts; the first has 12 bits, so that a product with an exponent is exact.
const LN2: [f32; 2] = [0.693_115_23, 3.194_618_4e-5];
/// pi/2 in four parts; the first three have 8 bits, exact in products up to 2^16.
const HALF_PI: [f32; 4] = [1.570_312_5, 0.000_482_559_2, 1.266_598_7e-6, 9.920_935e-10];
/// Largest angle that [`sin_cos`] reduces (rad).
pub const MAX_ANGLE: f32 = 1e5;

/// `c[0] + c[1] x + ...` by Horner's rule.
#[inline(always)]
fn poly<const K: usize>(x: f32, c: [f32; K]) -> f32 {
    let mut sum = c[K - 1];
    for i in (0..K - 1).rev() {
        sum = sum * x + c[i];
    }
    sum
}

/// `2^k` for `-126 <= k <= 127`; any bits otherwise.
#[inline(always)]
fn pow2(k: i32) -> f32 {
    f32::from_bits((k.wrapping_add(127) as u32) << 23)
}

/// e^x. Overflows to infinity, underflows through the subnormals to 0.
#[inline]
pub fn exp(x: f32) -> f32 {
    // Beyond these the answer is 0 or infinity; a NaN passes both comparisons by.
    let x = if x > 90.0 { 90.0 } else { x };
    let x = if x < -105.0 { -105.0 } else { x };
    let shifted = x * LOG2_E + ROUND;
    let k = (shifted.to_bits() as i32).wrapping_sub(ROUND.to_bits() as i32);
    let kf = shifted - ROUND;
    let r = (x - kf * LN2[0]) - kf * LN2[1];
    let p = poly(
        r,
        [0.5, 0.166_666_66, 0.041_666_28, 0.008_333_504, 0.001_394_575_2, 0.000_197_892_62],
    );
    let e = 1.0 + (r + r * r * p);
    // In two factors: 2^k alone has no subnormals and ends at 2^127.
    let half = k >> 1;
    e * pow2(half) * pow2(k.wrapping_sub(half))
}

/// Natural logarithm: -infinity at 0, NaN below.
#[inline]
pub fn ln(x: f32) -> f32 {
    let subnormal = x < f32::MIN_POSITIVE;
    let scaled = if subnormal { x * 8_388_608.0 } else { x };
    let e0 = if subnormal { -23 } else { 0 };
    let bits = scaled.to_bits() as i32;
    // The mantissa is taken from [sqrt(1/2), sqrt(2)).
    let e = bits.wrapping_sub(0x3f35_04f3) >> 23;
    let m = f32::from_bits(bits.wrapping_sub(e << 23) as u32);
    let k = (e + e0) as f32;
    let f = m - 1.0;
    let q = poly(
        f,
        [
            0.333_333_1,
            -0.250_000_1,
            0.200_021_67,
            -0.166_680_9,
            0.142_185_54,
            -0.124_030_836,
            0.118_935_12,
            -0.116_943_35,
            0.067_575_7,
        ],
    );
    let f2 = f * f;
    let tail = f2 * f * q + k * LN2[1];
    let y = k * LN2[0] + (f - (0.5 * f2 - tail));
    let y = if x == 0.0 { f32::NEG_INFINITY } else { y };
    let y = if x < 0.0 { f32::NAN } else { y };
    // Infinity and NaN are their own logarithms.
    if x < f32::INFINITY { y } else { x }
}

/// Sine and cosine of an angle (rad); both NaN where |x| is beyond [`MAX_ANGLE`]
/// (a float there is farther from its neighbour than the answer is good for).
#[inline]
pub fn sin_cos(x: f32) -> (f32, f32) {
    let shifted = x * std::f32::consts::FRAC_2_PI + ROUND;
    let quadrant = shifted.to_bits();
    let k = shifted - ROUND;
    let r = (((x - k * HALF_PI[0]) - k * HALF_PI[1]) - k * HALF_PI[2]) - k * HALF_PI[3];
    let z = r * r;
    let s =
        r + r * (z * poly(z, [-0.166_666_67, 0.008_333_329, -0.000_198_392_33, 2.717_366_7e-6]));
    let c = (1.0 - 0.5 * z) + z * z * poly(z, [0.041_666_646, -0.001_388_725_1, 2.442_568e-5]);
    let swap = quadrant & 1 != 0;
    let (sin, cos) = (if swap { c } else { s }, if swap { s } else { c });
    let sin_sign = (quadrant & 2) << 30;
    let cos_sign = (quadrant.wrapping_add(1) & 2) << 30;
    let sin = f32::from_bits(sin.to_bits() ^ sin_sign);
    let cos = f32::from_bits(cos.to_bits() ^ cos_sign);
    let good = x.abs() <= MAX_ANGLE;
    (if good { sin } else { f32::NAN }, if good { cos } else { f32::NAN })
}

/// Sine; see [`sin_cos`].
#[inline]
pub fn sin(x: f32) -> f32 {
    sin_cos(x).0
}

/// Cosine; see [`sin_cos`].
#[inline]
pub fn cos(x: f32) -> f32 {
    sin_cos(x).1
}

/// Tangent; see [`sin_cos`].
#[inline]
pub fn tan(x: f32) -> f32 {
    let (s, c) = sin_cos(x);
    s / c
}

/// Hyperbolic tangent.
#[inline]
pub fn tanh(x: f32) -> f32 {
    let a = x.abs();
    let z = x * x;
    let near = x + x
        * (z * poly(
            z,
            [
                -0.333_333_3,
                0.133_332,
                -0.053_945_996,
                0.021_696_35,
                -0.008_166_304,
                0.002_132_525_4,
            ],
        ));
    let far = (1.0 - 2.0 / (exp(a + a) + 1.0)).copysign(x);
    if a < 0.625 { near } else { far }
}

/// Arc tangent of a number in [0, 1] (rad).
#[inline(always)]
fn atan_unit(a: f32) -> f32 {
    // Beyond tan(pi/8): atan(a) = pi/4 + atan((a - 1) / (a + 1)).
    let high = a > 0.414_213_57;
    let b = if high { (a - 1.0) / (a + 1.0) } else { a };
    let z = b * b;
    let t = b + b
        * (z * poly(z, [-0.333_333_13, 0.199_984_16, -0.142_424_15, 0.105_851_226, -0.060_552_22]));
    if high { FRAC_PI_4 + t } else { t }
}

/// Arc tangent (rad).
#[inline]
pub fn atan(x: f32) -> f32 {
    let a = x.abs();
    let inverse = a > 1.0;
    let t = atan_unit(if inverse { 1.0 / a } else { a });
    (if inverse { FRAC_PI_2 - t } else { t }).copysign(x)
}

/// Angle of the point `(x, y)` (rad), in [-pi, pi]; `atan2(0, 0)` is 0.
#[inline]
pub fn atan2(y: f32, x: f32) -> f32 {
    let (ay, ax) = (y.abs(), x.abs());
    let steep = ay > ax;
    let (low, high) = if steep { (ax, ay) } else { (ay, ax) };
    let ratio = low / high;
    // Infinity over infinity counts as one, nothing over nothing as nothing.
    let ratio = if low == high { 1.0 } else { ratio };
    let ratio = if high == 0.0 { 0.0 } else { ratio };
    let t = atan_unit(ratio);
    let t = if steep { FRAC_PI_2 - t } else { t };
    let t = if x.is_sign_negative() { PI - t } else { t };
    let t = t.copysign(y);
    if x.is_nan() || y.is_nan() { f32::NAN } else { t }
}

/// Arc sine of a number in [0, 1/2] (rad).
#[inline(always)]
fn asin_half(a: f32) -> f32 {
    let z = a * a;
    a + a
        * (z * poly(
            z,
            [0.166_666_6, 0.075_005_345, 0.044_510_67, 0.031_863_287, 0.014_217_615, 0.037_840_88],
        ))
}

/// Arc sine (rad); NaN outside [-1, 1].
#[inline]
pub fn asin(x: f32) -> f32 {
    let a = x.abs();
    let large = a > 0.5;
    let t = asin_half(if large { (0.5 * (1.0 - a)).sqrt() } else { a });
    (if large { FRAC_PI_2 - (t + t) } else { t }).copysign(x)
}

/// Arc cosine (rad); NaN outside [-1, 1].
#[inline]
pub fn acos(x: f32) -> f32 {
    let a = x.abs();
    let large = a > 0.5;
    let t = asin_half(if large { (0.5 * (1.0 - a)).sqrt() } else { a });
    let negative = x < 0.0;
    let outer = if negative { PI - (t + t) } else { t + t };
    let inner = if negative { FRAC_PI_2 + t } else { FRAC_PI_2 - t };
    if large { outer } else { inner }
}

/// `x^y` as IEEE 754 `pow`: a negative `x` needs a whole `y`, else NaN;
/// `pow(x, 0) = pow(1, y) = 1` for all arguments. Double precision inside.
#[inline]
pub fn pow(x: f32, y: f32) -> f32 {
    let a = f64::from(x.abs());
    // ln a = k ln 2 + 2 atanh(s), s = (m - 1) / (m + 1), |s| < 0.1716.
    let bits = a.to_bits() as i64;
    let k = bits.wrapping_sub(0x3fe6_a09e_667f_3bcd) >> 52;
    let m = f64::from_bits(bits.wrapping_sub(k << 52) as u64);
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    let mut series = 1.0 / 17.0;
    for odd in [15.0, 13.0, 11.0, 9.0, 7.0, 5.0, 3.0, 1.0] {
        series = series * z + 1.0 / odd;
    }
    let log = k as f64 * std::f64::consts::LN_2 + 2.0 * s * series;
    let log = if a == 0.0 { f64::NEG_INFINITY } else { log };
    let log = if a < f64::INFINITY { log } else { a };
    let value = exp_f64(f64::from(y) * log) as f32;
    // Above 2^24 every float is even.
    let half = y * 0.5;
    let whole = y == y.trunc();
    let odd = whole && half != half.trunc();
    let value = if x.is_sign_negative() && odd { -value } else { value };
    let value = if x < 0.0 && !whole && x > f32::NEG_INFINITY { f32::NAN } else { value };
    // (-1)^(+-infinity) and 1^anything.
    let value = if x == 1.0 || y == 0.0 || (x == -1.0 && y.is_infinite()) { 1.0 } else { value };
    let nan = x.is_nan() && y != 0.0;
    if nan { f32::NAN } else { value }
}

/// e^x in double precision, good to 1e-13, within the range of single precision.
#[inline(always)]
fn exp_f64(x: f64) -> f64 {
    const ROUND: f64 = 6_755_399_441_055_744.0;
    let x = if x > 200.0 { 200.0 } else { x };
    let x = if x < -200.0 { -200.0 } else { x };
    let shifted = x * std::f64::consts::LOG2_E + ROUND;
    let k = (shifted.to_bits() as i64).wrapping_sub(ROUND.to_bits() as i64);
    let r = x - (shifted - ROUND) * std::f64::consts::LN_2;
    // Taylor: 0.3466^13 / 13! < 2e-16.
    let mut sum = 1.0;
    for n in (1..=12).rev() {
        sum = 1.0 + sum * r / f64::from(n);
    }
    sum * f64::from_bits((k.wrapping_add(1023) as u64) << 52)
}

/// The unit quaternion along `q`; no rotation where `q` has no direction.
pub fn normalized(q: [f32; 4]) -> [f32; 4] {
    let norm = (q[0] * q[0] + q[1] * q[1] + q[2] * q[2] + q[3] * q[3]).sqrt();
    if norm > 0.0 {
        q.map(|x| x / norm)
    } else {
        // NaN comes through unchanged, so that it is noticed.
        [1.0 + norm, q[1], q[2], q[3]]
    }
}

#[cfg(test)]
mod tests;
