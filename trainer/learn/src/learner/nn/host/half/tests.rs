//! Against products of rounded factors that are added up in double precision.

use super::*;
use crate::config::{Config, Precision};
use crate::need::Need;
use ostler_sim::rng::{Purpose, fill_normal};

fn normals(stream: u64, n: usize) -> Vec<f32> {
    let mut x = vec![0.0; n];
    fill_normal(stream, 0..n as u32, Purpose::Replay, 0, 1, &mut x);
    x
}

/// The number of bfloat16 next to `x`, which is no end of the range; of two the even one.
fn nearest(x: f32) -> f32 {
    let bits = x.to_bits();
    f32::from_bits((bits + 0x7fff + ((bits >> 16) & 1)) & 0xffff_0000)
}

fn transposed(x: &[f32], rows: usize) -> Vec<f32> {
    let columns = x.len() / rows;
    (0..x.len()).map(|i| x[(i % rows) * columns + i / rows]).collect()
}

/// Sizes `m`, `n`, `k` that fill panels, groups, vectors and pairs, and that do not.
const SIZES: [[usize; 3]; 9] = [
    [1, 1, 1],
    [8, 32, 2],
    [7, 5, 3],
    [9, 33, 17],
    [37, 19, 21],
    [64, 16, 31],
    [256, 128, 48],
    [12, 47, 256],
    [70, 100, 129],
];

/// A product with its factors packed in each way.
fn products(half: Half, [m, n, k]: [usize; 3], a: &[f32], b: &[f32], to: &[f32]) -> [Vec<f32>; 4] {
    let add = to.iter().any(|x| *x != 0.0);
    // What is beyond the matrices must not matter.
    let room = |len: usize| vec![0x7fc0_7fc0; len];
    let (mut rows, mut spare) = (room(rows_len(m, k)), room(panels_len(m, k)));
    half.pack(a, k, Some(&mut rows), &mut spare);
    let mut as_panels = room(panels_len(k, m));
    half.pack(&transposed(a, m), m, None, &mut as_panels);
    let mut right = room(panels_len(k, n));
    half.pack(b, n, None, &mut right);
    let mut right_transposed = room(panels_len(k, n));
    half.pack_transposed(&transposed(b, k), k, &mut right_transposed);
    [&right, &right_transposed]
        .map(|b| {
            [Left::Rows(&rows), Left::Panels(&as_panels)].map(|a| {
                let mut to = to.to_vec();
                half.product(&mut to, [m, n, k], a, b, add);
                to
            })
        })
        .concat()
        .try_into()
        .unwrap()
}

#[test]
fn products_are_those_of_rounded_factors_however_they_are_packed() {
    let Some(half) = Need::Bf16.or_skip(Half::find()) else { return };
    for size @ [m, n, k] in SIZES {
        let (a, b) = (normals(1, m * k), normals(2, k * n));
        let before = normals(3, m * n);
        let mut rounding = false;
        for before in [vec![0.0; m * n], before] {
            let all = products(half, size, &a, &b, &before);
            for (i, got) in all[0].iter().enumerate() {
                let (r, c) = (i / n, i % n);
                let pairs = (0..k).map(|j| (a[r * k + j], b[j * n + c]));
                let sum =
                    |of: fn(f32, f32) -> f64| pairs.clone().map(|(a, b)| of(a, b)).sum::<f64>();
                let exact = sum(|a, b| f64::from(nearest(a)) * f64::from(nearest(b)));
                let size = sum(|a, b| (f64::from(a) * f64::from(b)).abs());
                let bound = 2e-7 * (k as f64).sqrt() * (size + f64::from(before[i]).abs()) + 1e-30;
                let off = (f64::from(*got) - exact - f64::from(before[i])).abs();
                assert!(off < bound, "{m} {n} {k}: {got} at {i}, off by {off:e} of {size}");
                let unrounded = sum(|a, b| f64::from(a) * f64::from(b));
                rounding |= (unrounded - exact).abs() > 4.0 * bound;
            }
            for other in &all[1..] {
                assert!(bits(other) == bits(&all[0]), "{m} {n} {k}");
            }
        }
        assert!(rounding, "{m} {n} {k}: these factors show no rounding");
    }
}

fn bits(x: &[f32]) -> Vec<u32> {
    x.iter().map(|x| x.to_bits()).collect()
}

#[test]
fn a_row_has_the_same_bits_among_any_others() {
    let Some(half) = Need::Bf16.or_skip(Half::find()) else { return };
    let [m, n, k] = [70, 45, 129];
    let (a, b) = (normals(1, m * k), normals(2, k * n));
    let [whole, ..] = products(half, [m, n, k], &a, &b, &vec![0.0; m * n]);
    for (from, rows) in [(0, 1), (3, 9), (69, 1), (11, 33)] {
        let part = &a[from * k..][..rows * k];
        let [part, ..] = products(half, [rows, n, k], part, &b, &vec![0.0; rows * n]);
        assert_eq!(bits(&part), bits(&whole[from * n..][..rows * n]));
    }
}

#[test]
fn numbers_are_rounded_to_the_nearest_and_special_ones_stay() {
    let Some(half) = Need::Bf16.or_skip(Half::find()) else { return };
    // Times 1 and added to nothing: the rounded number itself.
    let rounded = |x: f32| products(half, [1, 1, 1], &[x], &[1.0], &[0.0])[0][0];
    for x in normals(4, 1000) {
        assert_eq!(rounded(x), nearest(x));
    }
    // Halfway between two numbers, of which one is even.
    assert_eq!(rounded(1.0 + 1.0 / 256.0), 1.0);
    assert_eq!(rounded(1.0 + 3.0 / 256.0), 1.0 + 4.0 / 256.0);
    assert_eq!(rounded(f32::MAX), f32::INFINITY);
    assert_eq!(rounded(f32::NEG_INFINITY), f32::NEG_INFINITY);
    assert!(rounded(f32::NAN).is_nan());
    assert_eq!(rounded(1e-40), 0.0);
}

#[test]
fn sizes_that_do_not_fit_are_refused() {
    let Some(half) = Need::Bf16.or_skip(Half::find()) else { return };
    let refused = |work: fn(Half)| {
        std::panic::catch_unwind(move || work(half)).expect_err("refused");
    };
    refused(|half| half.pack(&[0.0; 6], 4, None, &mut [0; 64]));
    refused(|half| half.pack(&[0.0; 8], 4, None, &mut [0; 31]));
    refused(|half| half.pack(&[0.0; 8], 4, Some(&mut [0; 15]), &mut [0; 32]));
    refused(|half| half.pack_transposed(&[0.0; 8], 4, &mut [0; 63]));
    half.pack(&[0.0; 8], 4, Some(&mut [0; 16]), &mut [0; 32]);
    half.pack_transposed(&[0.0; 8], 4, &mut [0; 64]);
    half.product(&mut [0.0; 6], [2, 3, 4], Left::Rows(&[0; 16]), &[0; 64], false);
    half.product(&mut [0.0; 6], [2, 3, 4], Left::Panels(&[0; 64]), &[0; 64], false);
    refused(|half| half.product(&mut [0.0; 5], [2, 3, 4], Left::Rows(&[0; 16]), &[0; 64], false));
    refused(|half| half.product(&mut [0.0; 6], [2, 3, 4], Left::Rows(&[0; 15]), &[0; 64], false));
    refused(|half| half.product(&mut [0.0; 6], [2, 3, 4], Left::Panels(&[0; 63]), &[0; 64], false));
    refused(|half| half.product(&mut [0.0; 6], [2, 3, 4], Left::Rows(&[0; 16]), &[0; 63], false));
}

#[test]
fn what_has_no_products_of_bfloat16_is_refused_with_the_reason() {
    let mut config = Config::default();
    assert!(Half::of(&config).unwrap().is_none());
    config.learner.precision = Precision::Bf16;
    config.device = "cpu".into();
    match (Half::find(), Half::of(&config)) {
        (Ok(_), found) => assert!(found.unwrap().is_some()),
        (Err(lacking), refused) => {
            let refused = refused.unwrap_err().to_string();
            assert!(refused.contains("learner.precision") && refused.contains(lacking));
        }
    }
    config.device = "cuda:0".into();
    let refused = Half::of(&config).unwrap_err().to_string();
    assert!(refused.contains("\"bf16\" is for a processor"), "{refused}");
}
