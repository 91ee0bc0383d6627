//! Which transitions a batch holds.
//!
//! Draw number `d` of a run depends on (seed, `d`), on the buffer's content, and on nothing
//! else: a [`Progress`] is all that has to be kept to go on with the same draws.

use super::format::MOST;
use super::window::Window;
use super::{ReplayError, SamplerKind};
use ostler_sim::rng::{Purpose, philox};
use serde::{Deserialize, Serialize};

/// How far the draws of a run have got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// Batches drawn.
    pub draws: u64,
    /// Passes begun, without replacement.
    pass: u64,
    /// First transition of the pass, how many it has, and how many of them were drawn.
    first: u64,
    len: u64,
    at: u64,
}

impl Progress {
    /// Whether draws from a buffer of this capacity can have got so far: a pass goes over
    /// what there was, and looks for what is left of it one by one.
    pub(super) fn plausible(&self, capacity: u64) -> bool {
        let counts = [self.draws, self.pass, self.first];
        self.at <= self.len && self.len <= capacity && counts.iter().all(|&n| n <= MOST)
    }
}

/// Fills `rows` with the numbers of transitions of the next draw.
///
/// # Errors
/// Nothing is there.
pub fn draw(
    kind: SamplerKind,
    seed: u64,
    window: &Window,
    progress: &mut Progress,
    rows: &mut [u64],
) -> Result<(), ReplayError> {
    if window.len() == 0 {
        return Err(ReplayError::Empty);
    }
    match kind {
        SamplerKind::WithoutReplacement => without_replacement(seed, window, progress, rows),
        // Prioritised draws are those of `super::priority`.
        SamplerKind::Uniform | SamplerKind::Prioritized => {
            uniform(seed, window, progress.draws, rows);
        }
    }
    progress.draws += 1;
    Ok(())
}

/// A number below `n` from two random words, with a bias below n / 2^64.
#[inline]
fn below(n: u64, high: u32, low: u32) -> u64 {
    let word = u64::from(high) << 32 | u64::from(low);
    ((u128::from(word) * u128::from(n)) >> 64) as u64
}

fn uniform(seed: u64, window: &Window, draw: u64, rows: &mut [u64]) {
    let (begin, len) = (window.begin(), window.len());
    for (i, two) in rows.chunks_mut(2).enumerate() {
        let w = philox(seed, 0, Purpose::ReplayDraw, draw, i as u32);
        for (row, word) in two.iter_mut().zip(w.chunks_exact(2)) {
            *row = begin + below(len, word[0], word[1]);
        }
    }
}

/// A pass draws the transitions that were there when it began, in an order of its own, leaving
/// out those that have fallen out of the window meanwhile; a pass that ends within a batch is
/// followed by the next.
fn without_replacement(seed: u64, window: &Window, p: &mut Progress, rows: &mut [u64]) {
    let mut key = pass_key(seed, p.pass);
    for row in rows {
        *row = loop {
            if p.at >= p.len {
                p.pass += 1;
                key = pass_key(seed, p.pass);
                (p.first, p.len, p.at) = (window.begin(), window.len(), 0);
            }
            let candidate = p.first + order(&key, p.len, p.at);
            p.at += 1;
            if window.contains(candidate) {
                break candidate;
            }
        };
    }
}

/// Number `at` of an order of `0..n` with this key: a Feistel network over the next power of
/// four, applied until it lands below `n` (at most four times on average).
/// Source: Black and Rogaway, "Ciphers with arbitrary finite domains", CT-RSA 2002.
fn order(key: &[u64; ROUNDS], n: u64, at: u64) -> u64 {
    let bits = (64 - n.saturating_sub(1).leading_zeros()).max(2).div_ceil(2);
    let mask = (1_u64 << bits) - 1;
    let mut x = at;
    loop {
        let (mut left, mut right) = (x >> bits, x & mask);
        for key in key {
            (left, right) = (right, left ^ (mix(right.wrapping_add(*key)) & mask));
        }
        x = left << bits | right;
        if x < n {
            return x;
        }
    }
}

/// Eight, because few rounds over few numbers are not even.
const ROUNDS: usize = 8;

/// The key of a pass.
fn pass_key(seed: u64, pass: u64) -> [u64; ROUNDS] {
    std::array::from_fn(|i| {
        let [a, b, ..] = philox(seed, 0, Purpose::ReplayPass, pass, i as u32);
        u64::from(a) << 32 | u64::from(b)
    })
}

/// Spreads every bit over all others: the finaliser of SplitMix64 (Steele et al., "Fast
/// splittable pseudorandom number generators", OOPSLA 2014).
fn mix(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    x ^ (x >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn window(capacity: u64, pushed: u64) -> Window {
        let mut window = Window::new(capacity, capacity);
        window.push(pushed, 1);
        window
    }

    #[test]
    fn uniform_draws_are_even_and_repeat_by_number() {
        let window = window(16, 40);
        let mut counts = [0.0_f64; 16];
        let mut rows = [0; 33];
        let mut progress = Progress::default();
        for _ in 0..5000 {
            draw(SamplerKind::Uniform, 3, &window, &mut progress, &mut rows).unwrap();
            for &row in &rows {
                counts[(row - 24) as usize] += 1.0;
            }
        }
        let mean = 5000.0 * 33.0 / 16.0;
        let chi2: f64 = counts.iter().map(|c| (c - mean).powi(2) / mean).sum();
        // 15 degrees of freedom: 99.99 % lie below 44.3.
        assert!(chi2 < 44.3, "{chi2}");
        let mut again = [0; 33];
        uniform(3, &window, 4999, &mut again);
        assert_eq!(again, rows);
        uniform(4, &window, 4999, &mut again);
        assert_ne!(again, rows);
    }

    #[test]
    fn an_empty_buffer_gives_an_error() {
        let (empty, mut p) = (Window::new(4, 4), Progress::default());
        for kind in [SamplerKind::Uniform, SamplerKind::WithoutReplacement] {
            let drawn = draw(kind, 0, &empty, &mut p, &mut [0; 2]);
            assert!(matches!(drawn, Err(ReplayError::Empty)));
        }
        assert_eq!(p, Progress::default());
    }

    proptest! {
        #[test]
        fn an_order_holds_every_number_once(n in 1_u64..600, seed: u64, pass in 0_u64..1 << 40) {
            let mut seen: Vec<u64> = (0..n).map(|i| order(&pass_key(seed, pass), n, i)).collect();
            seen.sort_unstable();
            prop_assert!(seen.into_iter().eq(0..n));
        }

        #[test]
        fn a_pass_draws_each_transition_once_and_only_what_is_there(
            capacity in 1_u64..50, batch in 1_usize..20, pushes in prop::collection::vec(0_u64..9, 1..30),
        ) {
            let mut window = Window::new(capacity, capacity);
            window.push(1, 1);
            let mut p = Progress::default();
            let mut passes: Vec<(u64, Vec<u64>)> = Vec::new();
            for count in pushes {
                window.push(count, 1);
                let mut rows = vec![0; batch];
                for row in &mut rows {
                    // One by one, so that the pass of each is known.
                    draw(SamplerKind::WithoutReplacement, 7, &window, &mut p, std::slice::from_mut(row)).unwrap();
                    prop_assert!(window.contains(*row));
                    match passes.last_mut() {
                        Some((pass, rows)) if *pass == p.pass => rows.push(*row),
                        _ => passes.push((p.pass, vec![*row])),
                    }
                }
            }
            for (_, rows) in &mut passes {
                let drawn = rows.len();
                rows.sort_unstable();
                rows.dedup();
                prop_assert_eq!(rows.len(), drawn, "drawn twice in a pass");
            }
        }
    }

    #[test]
    fn orders_of_passes_look_independent() {
        // Where 0 lands: even over places.
        let mut counts = [0.0_f64; 10];
        for pass in 0..20_000 {
            counts[order(&pass_key(5, pass), 10, 0) as usize] += 1.0;
        }
        let chi2: f64 = counts.iter().map(|c| (c - 2e3).powi(2) / 2e3).sum();
        // 9 degrees of freedom: 99.99 % lie below 33.7.
        assert!(chi2 < 33.7, "{chi2}");
    }
}
