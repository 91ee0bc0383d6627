//! Error bounds against double precision, and special arguments.

use super::*;

/// Distance of `got` from `want` in units in the last place of `want` as a float.
fn ulps(got: f32, want: f64) -> f64 {
    let rounded = want as f32;
    if got.is_nan() || rounded.is_nan() {
        return if got.is_nan() && rounded.is_nan() { 0.0 } else { f64::INFINITY };
    }
    if got == rounded {
        return 0.0;
    }
    if rounded.is_infinite() || got.is_infinite() {
        return f64::INFINITY;
    }
    let exponent = (rounded.abs().max(f32::MIN_POSITIVE).to_bits() >> 23) as i32 - 127;
    (f64::from(got) - want).abs() / 2f64.powi(exponent - 23)
}

/// Floats over all exponents between `low` and `high`, both signs as given.
fn sweep(low: f32, high: f32) -> impl Iterator<Item = f32> {
    let key = |x: f32| {
        let b = x.to_bits() as i32;
        if b < 0 { i64::from(i32::MIN) - i64::from(b) } else { i64::from(b) }
    };
    let (a, b) = (key(low), key(high));
    let step = ((b - a) / 400_003).max(1);
    (a..=b).step_by(step as usize).map(|k| {
        f32::from_bits(if k < 0 { (i64::from(i32::MIN) - k) as i32 as u32 } else { k as u32 })
    })
}

fn worst(
    f: impl Fn(f32) -> f32,
    reference: impl Fn(f64) -> f64,
    low: f32,
    high: f32,
) -> (f64, f32) {
    let mut worst = (0.0, 0.0);
    for x in sweep(low, high) {
        let error = ulps(f(x), reference(f64::from(x)));
        if error > worst.0 {
            worst = (error, x);
        }
    }
    worst
}

macro_rules! bound {
    ($name:ident, $f:expr, $reference:expr, [$low:expr, $high:expr], $bound:expr) => {
        #[test]
        fn $name() {
            let (error, at) = worst($f, $reference, $low, $high);
            assert!(error <= $bound, "{error} ulp at {at:e}");
            println!("{} {error:.3} ulp at {at:e}", stringify!($name));
        }
    };
}

bound!(exp_is_within_1_ulp, exp, f64::exp, [-110.0, 95.0], 1.0);
bound!(ln_is_within_1_ulp, ln, f64::ln, [-1.0, f32::MAX], 1.0);
bound!(sin_is_within_2_ulp_near_zero, sin, f64::sin, [-1.6, 1.6], 2.0);
bound!(tanh_is_within_2_ulp, tanh, f64::tanh, [f32::MIN, f32::MAX], 2.0);
bound!(atan_is_within_3_ulp, atan, f64::atan, [f32::MIN, f32::MAX], 3.0);
bound!(asin_is_within_3_ulp, asin, f64::asin, [-1.1, 1.1], 3.0);
bound!(acos_is_within_2_ulp, acos, f64::acos, [-1.1, 1.1], 2.0);

#[test]
fn sine_and_cosine_are_within_2_to_the_minus_23_up_to_ten_thousand_radians() {
    let (mut worst_sin, mut worst_cos) = (0.0f64, 0.0f64);
    for i in 0..2_000_000 {
        let x = (i as f32 - 1e6) * 0.010_000_7;
        let (s, c) = sin_cos(x);
        worst_sin = worst_sin.max((f64::from(s) - f64::from(x).sin()).abs());
        worst_cos = worst_cos.max((f64::from(c) - f64::from(x).cos()).abs());
    }
    assert!(worst_sin < 1.2e-7 && worst_cos < 1.2e-7, "{worst_sin:e} {worst_cos:e}");
}

#[test]
fn huge_angles_are_bounded_or_nan() {
    for x in sweep(1.0, f32::INFINITY) {
        let (s, c) = sin_cos(x);
        assert!(s.abs() <= 1.0 || (s.is_nan() && x > MAX_ANGLE), "sin {x}");
        assert!(c.abs() <= 1.0 || (c.is_nan() && x > MAX_ANGLE), "cos {x}");
    }
}

#[test]
fn special_arguments_follow_ieee_754() {
    let (inf, nan) = (f32::INFINITY, f32::NAN);
    assert_eq!((exp(-inf), exp(0.0), exp(inf)), (0.0, 1.0, inf));
    assert_eq!((ln(0.0), ln(-0.0), ln(1.0), ln(inf)), (-inf, -inf, 0.0, inf));
    assert_eq!(ulps(ln(f32::from_bits(1)), f64::from(f32::from_bits(1)).ln()), 0.0);
    assert_eq!((tanh(-inf), tanh(0.0), tanh(inf)), (-1.0, 0.0, 1.0));
    assert_eq!((atan(-inf), atan(inf)), (-FRAC_PI_2, FRAC_PI_2));
    for bad in [exp(nan), ln(nan), ln(-1.0), ln(-inf), sin(nan), cos(inf), tan(nan), tanh(nan)] {
        assert!(bad.is_nan());
    }
    for bad in
        [atan(nan), asin(nan), asin(1.5), acos(-1.5), acos(nan), atan2(nan, 1.0), atan2(0.0, nan)]
    {
        assert!(bad.is_nan());
    }
}

#[test]
fn atan2_equals_the_library_in_every_quadrant_and_corner() {
    let corners = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::MAX,
        f32::MIN_POSITIVE,
        1e-42,
        -3.7,
        0.4142,
    ];
    for y in corners {
        for x in corners {
            let (got, want) = (atan2(y, x), f64::from(y).atan2(f64::from(x)));
            assert!(
                ulps(got, want) <= 2.0 && got.is_sign_negative() == want.is_sign_negative(),
                "{y} {x}: {got} {want}"
            );
        }
    }
    for i in 0..100_000u32 {
        let [a, b, ..] = crate::rng::philox_raw([i, 0, 0, 0], [7, 7]);
        let (y, x) = (crate::rng::unit(a) - 0.5, (crate::rng::unit(b) - 0.5) * 3.0);
        assert!(ulps(atan2(y, x), f64::from(y).atan2(f64::from(x))) <= 3.0, "{y} {x}");
    }
}

#[test]
fn pow_equals_the_library_for_all_kinds_of_arguments() {
    let values = [
        0.0,
        -0.0,
        1.0,
        -1.0,
        2.0,
        -2.0,
        0.5,
        -0.5,
        3.0,
        -3.0,
        1e-40,
        1e30,
        -1e30,
        16_777_217.0,
        0.333,
        2.5,
        -2.5,
        f32::INFINITY,
        f32::NEG_INFINITY,
        f32::NAN,
        7.0,
        1.000_000_1,
    ];
    for x in values {
        for y in values {
            let (got, want) = (pow(x, y), f64::from(x).powf(f64::from(y)));
            assert!(ulps(got, want) <= 0.51, "{x}^{y} = {got}, not {want}");
        }
    }
    for i in 0..100_000u32 {
        let [a, b, ..] = crate::rng::philox_raw([i, 1, 0, 0], [7, 7]);
        let (x, y) = (crate::rng::unit(a) * 8.0, (crate::rng::unit(b) - 0.5) * 20.0);
        assert!(ulps(pow(x, y), f64::from(x).powf(f64::from(y))) <= 0.51, "{x}^{y}");
    }
}
