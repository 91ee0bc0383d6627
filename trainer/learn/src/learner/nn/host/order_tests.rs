//! Orders of samples, `trainer/kernels/order.cuh`: permutations, as random ones are. All numbers
//! are the same in every run; bounds are where one of 10,000 such tests would fail by chance.

use super::Vectors;

fn order(update: u64, epoch: u32, samples: usize) -> Vec<i64> {
    let mut order = vec![-1; samples];
    Vectors::widest().order(11, update, epoch, &mut order);
    order
}

/// What a sum of squares of `df` normal numbers is not above (Wilson and Hilferty 1931).
fn most(df: f64) -> f64 {
    let share = 2.0 / (9.0 * df);
    df * (1.0 - share + 3.72 * share.sqrt()).powi(3)
}

/// Pearson's sum for counts of which each is expected to be `mean`.
fn chi2(counts: &[f64], mean: f64) -> f64 {
    counts.iter().map(|c| (c - mean).powi(2) / mean).sum()
}

#[test]
fn every_sample_comes_once() {
    let large = [4096, 65_535, 65_536, 98_304, 100_003, 1_572_864, 3_000_001];
    for samples in (0..=300).chain(large) {
        let updates = if samples > 5000 { 2 } else { 20 };
        for update in 0..updates {
            let order = order(update, 1, samples);
            let mut seen = vec![false; samples];
            for i in order {
                assert!(!std::mem::replace(&mut seen[i as usize], true), "{samples}");
            }
        }
    }
}

#[test]
fn every_kind_of_vectors_gives_the_same_order() {
    for samples in [1, 64, 500, 513, 10_007] {
        for vectors in Vectors::all() {
            let mut other = vec![-1; samples];
            vectors.order(11, 5, 2, &mut other);
            assert_eq!(other, order(5, 2, samples), "{vectors:?}");
        }
    }
}

#[test]
fn seed_update_and_epoch_each_give_another_order() {
    let high = 1_u64 << 32;
    let keys =
        [(0, 0, 0), (1, 0, 0), (high, 0, 0), (0, 1, 0), (0, high, 0), (0, 0, 1), (0, 0, 1 << 31)];
    let drawn = keys.map(|(seed, update, epoch)| {
        let mut order = vec![-1; 2000];
        Vectors::widest().order(seed, update, epoch, &mut order);
        order
    });
    for (i, a) in drawn.iter().enumerate() {
        for b in &drawn[..i] {
            // One place of two random orders is the same on average.
            let same = a.iter().zip(b).filter(|(x, y)| x == y).count();
            assert!(same < 8, "{same}");
        }
    }
}

#[test]
fn all_orders_of_few_samples_are_equally_likely() {
    for (samples, orders) in [(2, 2), (3, 6), (4, 24), (5, 120), (6, 720)] {
        let each = 400;
        let mut counts = std::collections::BTreeMap::new();
        for update in 0..orders * each {
            *counts.entry(order(update, 0, samples)).or_insert(0.0) += 1.0;
        }
        assert_eq!(counts.len() as u64, orders);
        let counts: Vec<f64> = counts.into_values().collect();
        let (sum, most) = (chi2(&counts, each as f64), most(orders as f64 - 1.0));
        assert!(sum < most, "{samples}: {sum}, {most}");
    }
}

#[test]
fn every_place_takes_every_sample_equally_often() {
    for (samples, updates) in [(7, 20_000), (33, 20_000), (64, 20_000), (100, 40_000)] {
        let mut counts = vec![0.0; samples * samples];
        for update in 0..updates {
            for (place, sample) in order(update, 3, samples).into_iter().enumerate() {
                counts[place * samples + sample as usize] += 1.0;
            }
        }
        let n = samples as f64;
        // Every row and column of the counts has the same sum.
        let sum = chi2(&counts, updates as f64 / n) * (n - 1.0) / n;
        assert!(sum < most((n - 1.0).powi(2)), "{samples}: {sum}");
    }
}

#[test]
fn pairs_of_places_take_every_pair_of_samples_equally_often() {
    for samples in [13, 40] {
        for other in [1, 2, 8, samples - 1] {
            let updates = 400 * (samples * samples) as u64;
            let mut counts = vec![0.0; samples * samples];
            for update in 0..updates {
                let order = order(update, 0, samples);
                counts[order[0] as usize * samples + order[other] as usize] += 1.0;
            }
            let pairs = (samples * (samples - 1)) as f64;
            let mean = updates as f64 / pairs;
            // No sample is at two places: these counts are 0 and no part of the sum.
            let sum = chi2(&counts, mean) - samples as f64 * mean;
            assert!(sum < most(pairs - 1.0), "{samples}, {other}: {sum}");
        }
    }
}

/// Sums that are normally distributed over random orders, as multiples of their deviations.
fn deviations(order: &[i64], next: &[i64]) -> [f64; 4] {
    let n = order.len() as f64;
    let middle = (n - 1.0) / 2.0;
    let variance = (n * n - 1.0) / 12.0;
    let off = |i: i64| i as f64 - middle;
    let correlation = |sum: f64| sum / (n * variance) * n.sqrt();
    let neighbours: f64 = order.windows(2).map(|w| off(w[0]) * off(w[1])).sum();
    let epochs: f64 = order.iter().zip(next).map(|(&a, &b)| off(a) * off(b)).sum();
    // Diaconis and Graham, "Spearman's footrule as a measure of disarray", 1977.
    let moved = order.iter().zip(0..).map(|(&to, from): (_, i64)| to.abs_diff(from));
    let moved = moved.sum::<u64>() as f64 - (n * n - 1.0) / 3.0;
    let rising = order.windows(2).filter(|w| w[0] < w[1]).count() as f64;
    [
        correlation(neighbours + variance),
        correlation(epochs),
        moved / ((n + 1.0) * (2.0 * n * n + 7.0) / 45.0).sqrt(),
        (rising - (n - 1.0) / 2.0) / ((n + 1.0) / 12.0).sqrt(),
    ]
}

#[test]
fn displacements_and_correlations_are_those_of_random_orders() {
    for (samples, updates) in [(1000, 400), (4096, 400), (98_304, 40), (100_003, 40)] {
        let (mut sums, mut squares) = ([0.0; 4], [0.0; 4]);
        for update in 0..updates {
            let of = deviations(&order(update, 0, samples), &order(update, 1, samples));
            for (k, z) in of.into_iter().enumerate() {
                sums[k] += z;
                squares[k] += z * z;
            }
        }
        let n = updates as f64;
        for k in 0..4 {
            assert!(sums[k].abs() < 3.9 * n.sqrt(), "{samples}, {k}: {}", sums[k]);
            assert!(squares[k] < most(n), "{samples}, {k}: {}", squares[k]);
        }
    }
}

#[test]
fn differences_along_an_order_are_spread_evenly() {
    const BINS: usize = 64;
    // Whole bins, so that each is as likely; 512 and 1024 are columns of the rectangle.
    for samples in [65_536, 98_304, 1_048_576] {
        for lag in [1, 2, 511, 512, 1024] {
            let mut counts = [[0.0; BINS]; 2];
            let order = order(9, 0, samples);
            let bin = |x: i64| x.rem_euclid(samples as i64) as usize * BINS / samples;
            for (i, &first) in order[..samples - 2 * lag].iter().enumerate() {
                let (second, third) = (order[i + lag], order[i + 2 * lag]);
                counts[0][bin(second - first)] += 1.0;
                counts[1][bin(third - 2 * second + first)] += 1.0;
            }
            let mean = (samples - 2 * lag) as f64 / BINS as f64;
            for of in &counts {
                let sum = chi2(of, mean);
                assert!(sum < most(BINS as f64 - 1.0), "{samples}, {lag}: {sum}");
            }
        }
    }
}
