//! Counter-based random numbers (Philox4x32-10).
//!
//! Every draw of a run comes from here, keyed by (run seed, stream, purpose,
//! step): nothing is advanced, so threads, order and batch do not matter.
//! Source: Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011.

use crate::kernels;

/// Purpose of a draw. Different purposes never share numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum Purpose {
    Reset = kernels::DRAW_RESET,
    Command = kernels::DRAW_COMMAND,
    ObservationNoise = kernels::DRAW_NOISE,
    ActionNoise = kernels::DRAW_ACTION,
    Permutation = kernels::DRAW_PERMUTATION,
    Initialisation = 6,
    EpisodeStart = kernels::DRAW_START,
    Event = kernels::DRAW_EVENT,
    Replay = 9,
    Injection = 10,
    ReplayDraw = 11,
    ReplayPass = 12,
    UpdateNoise = kernels::DRAW_UPDATE_NOISE,
    ReplayNoise = 14,
    PriorityDraw = 15,
    Terrain = 16,
    ObservationBias = kernels::DRAW_BIAS,
    Delay = kernels::DRAW_LAG,
    CommandTimer = kernels::DRAW_TIMER,
    Native = kernels::DRAW_NATIVE,
    Tile = kernels::DRAW_TILE,
    Frame = kernels::DRAW_FRAME,
    Custom = 64,
}

/// Four 32-bit words for one (seed, stream, purpose, step, index).
///
/// `stream` is the global environment id (or 0), `step` a counter of the purpose's
/// own, `index` counts further blocks of four words within one step.
#[inline]
pub fn philox(seed: u64, stream: u32, purpose: Purpose, step: u64, index: u32) -> [u32; 4] {
    // step's upper half shares a word with the purpose: 2^56 steps are plenty.
    let counter = [index, stream, step as u32, ((step >> 32) as u32) << 8 | purpose as u32];
    philox_raw(counter, [seed as u32, (seed >> 32) as u32])
}

/// The bare generator: ten rounds over a counter with a key.
#[inline]
pub fn philox_raw(mut c: [u32; 4], mut k: [u32; 2]) -> [u32; 4] {
    for round in 0..10 {
        if round > 0 {
            k = [k[0].wrapping_add(0x9E37_79B9), k[1].wrapping_add(0xBB67_AE85)];
        }
        let p0 = u64::from(c[0]) * 0xD251_1F53;
        let p1 = u64::from(c[2]) * 0xCD9E_8D57;
        c = [
            (p1 >> 32) as u32 ^ c[1] ^ k[0],
            p1 as u32,
            (p0 >> 32) as u32 ^ c[3] ^ k[1],
            p0 as u32,
        ];
    }
    c
}

/// A word as a float in [0, 1), 24 bits.
#[inline]
pub fn unit(word: u32) -> f32 {
    (word >> 8) as f32 * (1.0 / 16_777_216.0)
}

/// Two words as two independent standard normal floats (Box-Muller).
#[inline]
pub fn normal_pair(a: u32, b: u32) -> (f32, f32) {
    // 1 - unit lies in (0, 1]: its logarithm is finite.
    let radius = (-2.0 * crate::math::ln(1.0 - unit(a))).sqrt();
    let (sin, cos) = crate::math::sin_cos(std::f32::consts::TAU * unit(b));
    (radius * cos, radius * sin)
}

/// Environments whose numbers are drawn together, so that the rounds vectorise.
const LANES: usize = 16;

/// Uniform floats in [0, 1) for `streams.len()` environments: row `e` of `out`
/// `[N][width]` belongs to stream `streams.start + e`. Word `j` of a row does not
/// depend on the width, the other rows, or N.
pub fn fill_uniform(
    seed: u64,
    streams: std::ops::Range<u32>,
    purpose: Purpose,
    step: u64,
    width: usize,
    out: &mut [f32],
) {
    fill(seed, streams, purpose, step, width, out, |a, b| (unit(a), unit(b)));
}

/// Standard normal floats; otherwise as [`fill_uniform`].
pub fn fill_normal(
    seed: u64,
    streams: std::ops::Range<u32>,
    purpose: Purpose,
    step: u64,
    width: usize,
    out: &mut [f32],
) {
    fill(seed, streams, purpose, step, width, out, normal_pair);
}

/// `shape` makes two numbers of two words.
fn fill(
    seed: u64,
    streams: std::ops::Range<u32>,
    purpose: Purpose,
    step: u64,
    width: usize,
    out: &mut [f32],
    shape: impl Fn(u32, u32) -> (f32, f32),
) {
    if std::is_x86_feature_detected!("avx2") {
        // SAFETY: the processor has them.
        return unsafe { fill_avx2(seed, streams, purpose, step, width, out, shape) };
    }
    fill_rows(seed, streams, purpose, step, width, out, shape);
}

/// [`fill_rows`] with wider vectors: the same operations, the same bits.
#[target_feature(enable = "avx2")]
fn fill_avx2(
    seed: u64,
    streams: std::ops::Range<u32>,
    purpose: Purpose,
    step: u64,
    width: usize,
    out: &mut [f32],
    shape: impl Fn(u32, u32) -> (f32, f32),
) {
    fill_rows(seed, streams, purpose, step, width, out, shape);
}

#[inline(always)]
fn fill_rows(
    seed: u64,
    streams: std::ops::Range<u32>,
    purpose: Purpose,
    step: u64,
    width: usize,
    out: &mut [f32],
    shape: impl Fn(u32, u32) -> (f32, f32),
) {
    debug_assert_eq!(out.len(), streams.len() * width);
    if width == 0 {
        return;
    }
    let mut words = [[0u32; LANES]; 4];
    let mut lanes = [[0.0f32; LANES]; 4];
    let mut first = streams.start;
    for rows in out.chunks_mut(width * LANES) {
        for block in 0..width.div_ceil(4) {
            for lane in 0..LANES {
                let stream = first.wrapping_add(lane as u32);
                let four = philox(seed, stream, purpose, step, block as u32);
                for (to, word) in words.iter_mut().zip(four) {
                    to[lane] = word;
                }
            }
            // Of the last four only the pairs that are wanted.
            let wanted = (width - 4 * block).min(4);
            let pairs = words.chunks_exact(2).zip(lanes.chunks_exact_mut(2));
            for pair in pairs.take(wanted.div_ceil(2)) {
                if let ([a, b], [x, y]) = pair {
                    for lane in 0..LANES {
                        (x[lane], y[lane]) = shape(a[lane], b[lane]);
                    }
                }
            }
            for (lane, row) in rows.chunks_mut(width).enumerate() {
                for (to, from) in row[4 * block..].iter_mut().zip(&lanes) {
                    *to = from[lane];
                }
            }
        }
        first = first.wrapping_add(LANES as u32);
    }
}

/// The numbers `0..out.len()` in random order (Fisher-Yates from the back). A
/// different `step` gives an independent order.
pub fn permutation(seed: u64, stream: u32, step: u64, out: &mut [i64]) {
    for (i, v) in out.iter_mut().enumerate() {
        *v = i as i64;
    }
    for i in (1..out.len()).rev() {
        let [a, b, ..] = philox(seed, stream, Purpose::Permutation, step, i as u32);
        // 64 random bits times n, upper half: bias below n / 2^64.
        let word = u64::from(a) << 32 | u64::from(b);
        let j = ((u128::from(word) * (i as u128 + 1)) >> 64) as usize;
        out.swap(i, j);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Known answers of the authors' Random123 distribution (`kat_vectors`).
    #[test]
    fn philox_equals_the_published_vectors() {
        let zero = philox_raw([0; 4], [0; 2]);
        assert_eq!(zero, [0x6627_e8d5, 0xe169_c58d, 0xbc57_ac4c, 0x9b00_dbd8]);
        let ones = philox_raw([u32::MAX; 4], [u32::MAX; 2]);
        assert_eq!(ones, [0x408f_276d, 0x41c8_3b0e, 0xa20b_c7c6, 0x6d54_51fd]);
        let pi = philox_raw(
            [0x243f_6a88, 0x85a3_08d3, 0x1319_8a2e, 0x0370_7344],
            [0xa409_3822, 0x299f_31d0],
        );
        assert_eq!(pi, [0xd16c_fe09, 0x94fd_cceb, 0x5001_e420, 0x2412_6ea1]);
    }

    #[test]
    fn a_stream_draws_the_same_in_any_batch_and_width() {
        let draw = |streams: std::ops::Range<u32>, width: usize| {
            let mut out = vec![0.0; streams.len() * width];
            fill_normal(9, streams, Purpose::ActionNoise, 4, width, &mut out);
            out
        };
        let (many, few) = (draw(0..1024, 7), draw(5..8, 3));
        for row in 0..3 {
            assert_eq!(few[row * 3..][..3], many[(row + 5) * 7..][..3]);
        }
        let mut other = vec![0.0; 9];
        fill_normal(9, 5..8, Purpose::Reset, 4, 3, &mut other);
        assert!(other.iter().zip(&few).all(|(a, b)| a != b));
    }

    #[test]
    fn numbers_are_those_of_their_words_at_every_width() {
        for width in 1..=9 {
            let (mut normal, mut uniform) = (vec![0.0; 37 * width], vec![0.0; 37 * width]);
            fill_normal(9, 100..137, Purpose::ActionNoise, 4, width, &mut normal);
            fill_uniform(9, 100..137, Purpose::ActionNoise, 4, width, &mut uniform);
            let mut plain = vec![0.0; 37 * width];
            fill_rows(9, 100..137, Purpose::ActionNoise, 4, width, &mut plain, normal_pair);
            for row in 0..37 {
                for k in 0..width {
                    let stream = 100 + row as u32;
                    let w = philox(9, stream, Purpose::ActionNoise, 4, k as u32 / 4);
                    let at = row * width + k;
                    assert_eq!(uniform[at], unit(w[k % 4]));
                    let pair = k % 4 / 2 * 2;
                    let (x, y) = normal_pair(w[pair], w[pair + 1]);
                    let expected = if k % 2 == 0 { x } else { y };
                    assert_eq!(normal[at].to_bits(), expected.to_bits());
                    assert_eq!(plain[at].to_bits(), expected.to_bits(), "narrow vectors");
                }
            }
        }
    }

    #[test]
    fn normal_numbers_have_the_moments_of_the_normal_distribution() {
        let mut x = vec![0.0; 400_000];
        fill_normal(1, 0..100_000, Purpose::ActionNoise, 0, 4, &mut x);
        let n = x.len() as f64;
        let moment = |p: i32| x.iter().map(|&v| f64::from(v).powi(p)).sum::<f64>() / n;
        // Five standard errors each: sqrt(1/n), sqrt(2/n), sqrt(15/n), sqrt(96/n).
        assert!(moment(1).abs() < 5.0 * (1.0 / n).sqrt());
        assert!((moment(2) - 1.0).abs() < 5.0 * (2.0 / n).sqrt());
        assert!(moment(3).abs() < 5.0 * (15.0 / n).sqrt());
        assert!((moment(4) - 3.0).abs() < 5.0 * (96.0 / n).sqrt());
        let neighbours: f64 = x.windows(2).map(|w| f64::from(w[0] * w[1])).sum::<f64>() / n;
        assert!(neighbours.abs() < 5.0 * (1.0 / n).sqrt());
    }

    #[test]
    fn uniform_numbers_fill_the_unit_interval_evenly() {
        let mut x = vec![0.0; 160_000];
        fill_uniform(3, 0..160_000, Purpose::Reset, 7, 1, &mut x);
        let mut counts = [0f64; 16];
        for &v in &x {
            assert!((0.0..1.0).contains(&v));
            counts[(v * 16.0) as usize] += 1.0;
        }
        let chi2: f64 = counts.iter().map(|c| (c - 1e4).powi(2) / 1e4).sum();
        // 15 degrees of freedom: 99.99 % lie below 44.3.
        assert!(chi2 < 44.3, "{chi2}");
    }

    #[test]
    fn a_permutation_holds_every_index_once_and_all_orders_are_equally_likely() {
        let mut order = vec![0; 1000];
        permutation(1, 0, 0, &mut order);
        let mut sorted = order.clone();
        sorted.sort_unstable();
        assert_eq!(sorted, (0..1000).collect::<Vec<_>>());
        assert_ne!(sorted, order);
        let mut counts = std::collections::BTreeMap::new();
        for step in 0..24_000 {
            let mut four = [0i64; 4];
            permutation(1, 0, step, &mut four);
            *counts.entry(four).or_insert(0.0) += 1.0;
        }
        assert_eq!(counts.len(), 24);
        let chi2: f64 = counts.values().map(|c: &f64| (c - 1e3).powi(2) / 1e3).sum();
        // 23 degrees of freedom: 99.99 % lie below 56.
        assert!(chi2 < 56.0, "{chi2}");
        permutation(1, 0, 0, &mut []);
    }
}
