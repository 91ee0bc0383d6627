//! Which transitions a batch holds.
//!
//! Draw number `d` of a run depends on (seed, `d`), on the buffer's content, and on nothing
//! else: a [`Progress`] is all that has to be kept to go on with the same draws. Prioritised
//! draws are those of Schaul et al., "Prioritized experience replay", ICLR 2016.

use super::transition::{MOST, Window};
use crate::error::ReplayError;
use ostler_sim::memory::{MemoryError, zeroed};
use ostler_sim::rng::{Purpose, philox};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::ops::Range;

/// `replay.sampler`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SamplerKind {
    /// All are equally likely, each draw by itself.
    Uniform,
    /// Every one once per pass.
    WithoutReplacement,
    /// By priority.
    Prioritized,
}

/// How far the draws of a run have got.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Progress {
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
pub(crate) fn draw(
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
        // Prioritised draws are those of `Priorities`.
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
    let mut key = permutation(seed, 0, p.pass);
    for row in rows {
        *row = loop {
            if p.at >= p.len {
                p.pass += 1;
                key = permutation(seed, 0, p.pass);
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

/// The key of an order: of a pass (`of` 0), of a draw by priority (1).
fn permutation(seed: u64, of: u32, number: u64) -> [u64; ROUNDS] {
    std::array::from_fn(|i| {
        let [a, b, ..] = philox(seed, of, Purpose::ReplayPass, number, i as u32);
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

/// Added to priorities, so that none is never drawn.
const LEAST: f64 = 1e-6;

/// Priorities of the transitions in their places.
#[derive(Debug)]
pub(crate) struct Priorities {
    /// priority^alpha.
    tree: SumTree,
    alpha: f64,
    /// From the start of the run to its end.
    beta: (f64, f64),
    progress: f64,
    /// The largest priority so far: that of new transitions.
    largest: f64,
    /// Values of leaves before they were set, since the last mark, and how many were set
    /// before that; `None` before the first mark.
    journal: Option<(u64, Vec<(u32, f64)>)>,
}

/// State to go back to.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct PriorityMark {
    at: u64,
    largest: f64,
    progress: f64,
}

impl Priorities {
    pub(crate) fn new(
        places: usize,
        alpha: f64,
        beta: f64,
        beta_end: f64,
    ) -> Result<Self, MemoryError> {
        Ok(Self {
            tree: SumTree::new(places)?,
            alpha,
            beta: (beta, beta_end),
            progress: 0.0,
            largest: 1.0,
            journal: None,
        })
    }

    pub(crate) fn set_progress(&mut self, progress: f64) {
        self.progress = progress.clamp(0.0, 1.0);
    }

    /// Exponent of the importance weights now.
    pub(crate) fn beta(&self) -> f64 {
        self.beta.0 + (self.beta.1 - self.beta.0) * self.progress
    }

    /// The largest priority so far.
    pub(crate) fn largest(&self) -> f64 {
        self.largest
    }

    /// priority^alpha by place.
    pub(crate) fn leaves(&self) -> &[f64] {
        self.tree.leaves()
    }

    fn set(&mut self, values: impl Iterator<Item = (usize, f64)>) {
        let journal = &mut self.journal;
        self.tree.set(values, |leaf, old| {
            if let Some((_, journal)) = journal {
                journal.push((leaf as u32, old));
            }
        });
    }

    /// The window moved from `old` to `new`: new transitions have the largest priority so
    /// far, those that fell out have none.
    pub(crate) fn moved(&mut self, old: Range<u64>, new: Range<u64>, places: u64) {
        let gone = old.start..new.start.min(old.end);
        let came = old.end.max(new.start)..new.end;
        let fresh = (self.largest + LEAST).powf(self.alpha);
        let place = |row: u64| (row % places) as usize;
        let values = gone.map(|row| (place(row), 0.0));
        // A new transition may lie where an older one fell out: the new one is written later,
        // and counts.
        self.set(values.chain(came.map(|row| (place(row), fresh))));
    }

    /// Forgets all priorities: those of a window are as new.
    pub(crate) fn start_anew(&mut self, window: Range<u64>, places: u64) {
        self.largest = 1.0;
        self.set((0..places as usize).map(|place| (place, 0.0)));
        self.moved(window.start..window.start, window, places);
        self.journal = None;
    }

    /// Sets all priorities of a window, given as priority^alpha in its order.
    pub(crate) fn fill(
        &mut self,
        window: &Window,
        values: impl Iterator<Item = f64>,
        largest: f64,
    ) {
        let places = window.physical();
        self.set((0..places as usize).map(|place| (place, 0.0)));
        let values = window.range().zip(values);
        self.set(values.map(|(row, value)| ((row % places) as usize, value)));
        self.largest = largest;
        self.journal = None;
    }

    /// Draws: each of B equal shares of the whole gives one, in an order of the draw's own, so that
    /// a row of the batch says nothing of how old its transition is. Fills in the numbers, and
    /// the importance weights relative to the largest that there can be.
    pub(crate) fn draw(
        &self,
        seed: u64,
        draw: u64,
        window: &Window,
        rows: &mut [u64],
        weights: &mut [f32],
    ) -> Result<(), ReplayError> {
        let (total, least, beta) = (self.tree.total(), self.tree.least(), self.beta());
        if window.len() == 0 || total <= 0.0 {
            return Err(ReplayError::Empty);
        }
        let (count, share) = (rows.len() as u64, total / rows.len() as f64);
        let (begin, places) = (window.begin(), window.physical());
        let key = permutation(seed, 1, draw);
        for (i, (row, weight)) in rows.iter_mut().zip(weights).enumerate() {
            let [a, b, ..] = philox(seed, 1, Purpose::ReplayDraw, draw, i as u32);
            // 53 bits in [0, 1).
            let unit = (u64::from(a) << 32 | u64::from(b)) >> 11;
            let unit = unit as f64 / (1_u64 << 53) as f64;
            let at = order(&key, count, i as u64) as f64;
            let place = self.tree.find((at + unit) * share) as u64;
            let value = self.tree.get(place as usize);
            *row = begin + (place + places - begin % places) % places;
            // (N P(i))^-beta / max_j (N P(j))^-beta.
            *weight = (least / value).powf(beta) as f32;
        }
        Ok(())
    }

    /// Sets priorities of transitions; those that are gone, and values that are not finite,
    /// are left out. Returns how many were not finite.
    pub(crate) fn update(&mut self, window: &Window, rows: &[u64], priorities: &[f32]) -> usize {
        let places = window.physical();
        let usable = |p: &f32| p.is_finite() && *p >= 0.0;
        let alpha = self.alpha;
        let largest = priorities.iter().filter(|p| usable(p));
        let largest = largest.fold(self.largest, |m, &p| m.max(f64::from(p)));
        let values = rows.iter().zip(priorities);
        let values = values.filter(|(row, p)| window.contains(**row) && usable(p));
        let value = |p: f32| (f64::from(p) + LEAST).powf(alpha);
        let values: Vec<_> = values.map(|(r, &p)| ((r % places) as usize, value(p))).collect();
        self.set(values.into_iter());
        self.largest = largest;
        priorities.iter().filter(|p| !usable(p)).count()
    }

    /// From now on changes are recorded, so that they can be taken back.
    pub(crate) fn mark(&mut self) -> PriorityMark {
        let (before, journal) = self.journal.get_or_insert_default();
        *before += journal.len() as u64;
        journal.clear();
        PriorityMark { at: *before, largest: self.largest, progress: self.progress }
    }

    /// Whether it can go back to a mark: it is the last one, or one that was gone back to.
    pub(crate) fn knows(&self, mark: &PriorityMark) -> bool {
        self.journal.as_ref().is_some_and(|(at, _)| *at == mark.at)
    }

    /// Goes back to the last mark.
    pub(crate) fn rewind(&mut self, mark: &PriorityMark) {
        if let Some((_, journal)) = &mut self.journal {
            let undo = journal.drain(..).rev();
            self.tree.set(undo.map(|(leaf, v)| (leaf as usize, v)), |_, _| ());
        }
        (self.largest, self.progress) = (mark.largest, mark.progress);
    }
}

/// Children of a node: it fits into two cache lines, and a million leaves are five levels.
const WAYS: usize = 16;

/// Sums over leaves with a value of 0 or more, so that one is found by its share of the whole,
/// and the smallest of those above 0. Nodes are recomputed from all their children, in order,
/// so that they depend on the leaves alone and not on the history of updates.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct SumTree {
    /// From the leaves to the root; each a multiple of `WAYS` long.
    sums: Vec<Vec<f64>>,
    /// Smallest value above 0 below each node; infinite where there is none. Without leaves:
    /// they are in `sums`.
    least: Vec<Vec<f64>>,
    leaves: usize,
    /// Nodes whose children changed.
    touched: Vec<u32>,
}

impl SumTree {
    /// With so many leaves, all 0.
    pub(crate) fn new(leaves: usize) -> Result<Self, MemoryError> {
        let (mut sums, mut least) = (Vec::new(), Vec::new());
        let mut n = leaves.max(1);
        loop {
            let padded = n.div_ceil(WAYS) * WAYS;
            sums.push(zeroed("priorities of the replay buffer", padded)?);
            n = padded / WAYS;
            let mut smallest = zeroed("priorities of the replay buffer", n)?;
            smallest.fill(f64::INFINITY);
            least.push(smallest);
            if n == 1 {
                break;
            }
        }
        Ok(Self { sums, least, leaves, touched: Vec::new() })
    }

    pub(crate) fn total(&self) -> f64 {
        self.sums.last().map_or(0.0, |top| top.iter().sum())
    }

    /// The smallest leaf above 0, infinite where all are 0.
    pub(crate) fn least(&self) -> f64 {
        self.least.last().and_then(|l| l.first()).copied().unwrap_or(f64::INFINITY)
    }

    pub(crate) fn get(&self, leaf: usize) -> f64 {
        self.sums[0][leaf]
    }

    /// Sets leaves; of several values for one the last counts. `old` sees each leaf with its
    /// value before. Values are finite and 0 or more.
    pub(crate) fn set(
        &mut self,
        values: impl Iterator<Item = (usize, f64)>,
        mut old: impl FnMut(usize, f64),
    ) {
        self.touched.clear();
        for (leaf, value) in values {
            if leaf >= self.leaves {
                continue;
            }
            old(leaf, self.sums[0][leaf]);
            self.sums[0][leaf] = value;
            let node = (leaf / WAYS) as u32;
            if self.touched.last() != Some(&node) {
                self.touched.push(node);
            }
        }
        for level in 0..self.least.len() {
            self.touched.sort_unstable();
            self.touched.dedup();
            for &node in &self.touched {
                let children = WAYS * node as usize..WAYS * (node as usize + 1);
                let sum = self.sums[level][children.clone()].iter().sum();
                let least = match level {
                    0 => smallest_above_0(&self.sums[0][children]),
                    _ => {
                        let below = &self.least[level - 1];
                        let end = children.end.min(below.len());
                        below[children.start..end].iter().copied().fold(f64::INFINITY, f64::min)
                    }
                };
                self.least[level][node as usize] = least;
                if let Some(above) = self.sums.get_mut(level + 1) {
                    above[node as usize] = sum;
                }
            }
            for node in &mut self.touched {
                *node /= WAYS as u32;
            }
        }
    }

    /// The leaf in whose share of the whole `at` (0 up to the total) lies; never one of 0
    /// unless all are.
    pub(crate) fn find(&self, at: f64) -> usize {
        let (mut at, mut node) = (at, 0);
        for level in self.sums.iter().rev() {
            let children = &level[WAYS * node..WAYS * (node + 1)];
            let mut chosen = None;
            for (i, &share) in children.iter().enumerate() {
                if share <= 0.0 {
                    continue;
                }
                chosen = Some(i);
                if at < share {
                    break;
                }
                at -= share;
            }
            // Rounding may leave something behind the last share: it is the last one's.
            node = WAYS * node + chosen.unwrap_or(0);
        }
        node.min(self.leaves.saturating_sub(1))
    }

    pub(crate) fn leaves(&self) -> &[f64] {
        &self.sums[0][..self.leaves]
    }
}

fn smallest_above_0(values: &[f64]) -> f64 {
    values.iter().copied().filter(|&v| v > 0.0).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
#[path = "tests/draw.rs"]
mod tests;

#[cfg(test)]
#[path = "tests/priority.rs"]
mod priority_tests;

#[cfg(test)]
#[path = "tests/sum_tree.rs"]
mod sum_tree_tests;
