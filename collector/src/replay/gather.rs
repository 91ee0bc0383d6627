//! Transitions of host memory, scattered into the columns of a batch in one pass.

use super::ReplayError;
use super::layout::{FieldKind, Layout, names};
use super::rows::Rows;
use super::window::Window;
use std::ops::Range;

/// Parts of a draw.
#[derive(Debug, Clone, PartialEq)]
pub struct Shape {
    /// Draws per batch, `B`.
    pub batch: usize,
    /// Rewards summed per transition.
    pub n_step: usize,
    /// gamma^0, gamma^1, ... gamma^n_step.
    pub discounts: Vec<f32>,
}

/// One field on its way from a transition to a batch.
#[derive(Debug, Clone, Copy)]
struct FieldCopy {
    /// First word in the transition.
    from: usize,
    width: usize,
    /// First word of its column in the batch.
    to: usize,
    /// Taken from the last of `n_step` transitions.
    last: bool,
}

/// Words of the fields that end an episode or a sum of rewards.
#[derive(Debug, Clone, Copy)]
pub struct Flags {
    /// The reward.
    pub reward: usize,
    /// First word of its column in the batch.
    reward_to: usize,
    /// Not 0 where the task ended.
    pub terminated: usize,
    /// Not 0 where time ran out.
    pub truncated: usize,
    /// 0 where the environment broke.
    pub valid: usize,
}

impl Flags {
    fn ends(&self, row: &[u32]) -> bool {
        f32::from_bits(row[self.terminated]) != 0.0 || f32::from_bits(row[self.truncated]) != 0.0
    }

    fn broken(&self, row: &[u32]) -> bool {
        f32::from_bits(row[self.valid]) == 0.0
    }
}

/// How transitions become a batch: the columns of the layout one behind the other, a word
/// for each number, then `discount`, then `weights`.
#[derive(Debug, Clone)]
pub struct GatherPlan {
    ways: Vec<FieldCopy>,
    /// Where the layout has them.
    pub flags: Option<Flags>,
    /// Draws.
    pub shape: Shape,
    /// First words of the columns `discount` and `weights`, and of what is behind.
    discount: usize,
    weights: usize,
    total: usize,
}

/// Rows ahead of the one that is copied, whose memory is asked for already: enough to hide
/// a read from memory behind a few copies.
const AHEAD: usize = 12;

impl GatherPlan {
    /// For transitions of this layout.
    ///
    /// # Errors
    /// Sums of rewards of a layout without the fields that they need.
    pub fn new(layout: &Layout, shape: Shape) -> Result<Self, ReplayError> {
        let rows = shape.batch;
        let ways = layout.fields().iter().zip(layout.offsets());
        let ways = ways.map(|(field, from)| FieldCopy {
            from,
            width: field.width,
            to: from * rows,
            last: Self::of_last(&field.name),
        });
        let flag = |name| {
            let (word, at) = layout.find(name)?;
            let field = &layout.fields()[at];
            (field.kind == FieldKind::F32 && field.width == 1).then_some(word)
        };
        let flags = (|| {
            let reward = flag(names::REWARD)?;
            Some(Flags {
                reward,
                reward_to: reward * rows,
                terminated: flag(names::TERMINATED)?,
                truncated: flag(names::TRUNCATED)?,
                valid: flag(names::VALID)?,
            })
        })();
        if flags.is_none() && shape.n_step > 1 {
            let got: Vec<_> = layout.fields().iter().map(|f| f.name.as_str()).collect();
            return Err(ReplayError::shape(
                "fields for n-step returns",
                "reward, terminated, truncated, valid, one float each",
                got.join(", "),
            ));
        }
        let discount = layout.words() * rows;
        Ok(Self {
            ways: ways.collect(),
            flags,
            discount,
            weights: discount + rows,
            total: discount + 2 * rows,
            shape,
        })
    }

    /// Whether a field of an n-step transition is that of the last of the n.
    pub fn of_last(name: &str) -> bool {
        name.starts_with("next_") || [names::TERMINATED, names::TRUNCATED].contains(&name)
    }

    /// 32-bit words of a batch's columns. Behind them a slot holds [`Self::places`].
    pub fn words(&self) -> usize {
        self.total
    }

    /// Steps that a draw looks at.
    pub fn steps(&self) -> usize {
        self.shape.n_step
    }

    /// 32-bit words that say where transitions lie on a device: of each draw the places of
    /// its steps, how many of them are there, and its row.
    pub fn places(&self) -> usize {
        self.shape.batch * (self.steps() + 2)
    }

    /// The words of the importance weights.
    pub fn weights(&self) -> Range<usize> {
        self.weights..self.weights + self.shape.batch
    }

    /// First word of `discount`.
    pub fn discount(&self) -> usize {
        self.discount
    }

    /// Fills all columns but `weights` of `out` with the transitions `first`. Those of number
    /// `elsewhere` or later are left out.
    pub fn gather(
        &self,
        rows: Rows<'_>,
        window: &Window,
        first: &[u64],
        elsewhere: u64,
        out: &mut [u32],
    ) {
        let ahead = |i: usize| {
            if let Some(&row) = first.get(i).filter(|&&row| row < elsewhere) {
                prefetch(rows.row(row));
            }
        };
        (0..AHEAD).for_each(ahead);
        for (i, &row) in first.iter().enumerate() {
            ahead(i + AHEAD);
            if row >= elsewhere {
                continue;
            }
            match self.shape.n_step {
                1 => {
                    let row = rows.row(row);
                    self.put(row, row, i, out);
                    out[self.discount + i] = self.shape.discounts[1].to_bits();
                }
                _ => self.returns(rows, window, row, i, out),
            }
        }
    }

    /// Row `i` of all columns, from a transition and the last of those that are summed.
    #[inline]
    fn put(&self, row: &[u32], last: &[u32], i: usize, out: &mut [u32]) {
        for way in &self.ways {
            let source = if way.last { last } else { row };
            match way.width {
                // A call that copies costs more than one word.
                1 => out[way.to + i] = source[way.from],
                n => copy(&source[way.from..][..n], &mut out[way.to + i * n..][..n]),
            }
        }
    }

    /// The transition `row` with the discounted sum of up to `n_step` rewards, which stops
    /// at the end of its episode, before a transition of a broken environment, and at the
    /// newest.
    fn returns(&self, rows: Rows<'_>, window: &Window, row: u64, i: usize, out: &mut [u32]) {
        let Some(flags) = &self.flags else { return };
        let (stride, count) = window.run_from(row, self.shape.n_step as u64);
        let first = rows.row(row);
        let (mut last, mut sum, mut steps) = (first, 0.0, 0);
        for k in 0..count {
            let next = rows.row(row + k * stride);
            if k > 0 && flags.broken(next) {
                break;
            }
            last = next;
            sum += self.shape.discounts[steps] * f32::from_bits(last[flags.reward]);
            steps += 1;
            if flags.ends(last) || flags.broken(last) {
                break;
            }
        }
        self.put(first, last, i, out);
        out[flags.reward_to + i] = f32::to_bits(sum);
        out[self.discount + i] = self.shape.discounts[steps].to_bits();
    }
}

/// Copies in pieces whose length the compiler knows: a call per field would cost as much as
/// the copy.
#[inline]
pub fn copy(from: &[u32], to: &mut [u32]) {
    const PIECE: usize = 8;
    let (from_pieces, from_rest) = from.as_chunks::<PIECE>();
    let (to_pieces, to_rest) = to.as_chunks_mut::<PIECE>();
    for (to, from) in to_pieces.iter_mut().zip(from_pieces) {
        *to = *from;
    }
    for (to, from) in to_rest.iter_mut().zip(from_rest) {
        *to = *from;
    }
}

/// Asks for the cache lines of a row.
#[inline]
fn prefetch(row: &[u32]) {
    #[cfg(target_arch = "x86_64")]
    for line in row.chunks(16) {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing that the program can see, and never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = row;
}
