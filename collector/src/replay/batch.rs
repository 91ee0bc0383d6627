//! Batches: named tensors with a leading batch dimension, the memory that they lie in, and how
//! transitions of host memory come there, scattered into columns in one pass.
//!
//! F9: the memory on the host that a GPU copies from is pinned, whatever transforms make of the
//! batch behind the copy, and every draw asks whether it is.

use super::draw::Progress;
use super::transition::{FieldKind, Layout, Rows, Window, names};
use crate::error::ReplayError;
use crate::memory::{HostRows, host_zeros, zeros};
use ostler_sim::device::Counts;
use ostler_sim::memory::zeroed;
use std::fmt::Debug;
use std::ops::Range;
use std::sync::Arc;
use tch::{Device, Kind, TchError, Tensor};

/// Named tensors `[B, ...]`, all on one device. There is no batch without a device and
/// none whose tensors lie elsewhere (F10): both ways to fill one check.
#[derive(Debug)]
pub struct Batch {
    device: Device,
    rows: usize,
    fields: Vec<(String, Tensor)>,
    /// Numbers of the transitions, counted since the buffer began.
    pub(super) indices: Vec<u64>,
    /// Seed and number of the draw.
    pub(super) key: (u64, u64),
}

impl Batch {
    /// An empty batch of `rows` draws on a device.
    pub fn new(device: Device, rows: usize) -> Self {
        Self { device, rows, fields: Vec::new(), indices: Vec::new(), key: (0, 0) }
    }

    /// An empty one with the same device, rows, indices and key.
    pub fn like(&self) -> Self {
        Self {
            device: self.device,
            rows: self.rows,
            fields: Vec::with_capacity(self.fields.len()),
            indices: self.indices.clone(),
            key: self.key,
        }
    }

    /// Adds a field, or replaces the one of that name.
    ///
    /// # Errors
    /// It is on another device, or has another number of rows.
    pub fn insert(&mut self, name: &str, tensor: Tensor) -> Result<(), ReplayError> {
        let (got, size) = (tensor.device(), tensor.size());
        if got != self.device {
            return Err(ReplayError::Device { name: name.into(), expected: self.device, got });
        }
        if size.first() != Some(&(self.rows as i64)) {
            let expected = format!("{} rows", self.rows);
            return Err(ReplayError::shape(
                format!("field {name:?} of a batch"),
                expected,
                format!("{size:?}"),
            ));
        }
        match self.fields.iter_mut().find(|(n, _)| n == name) {
            Some((_, t)) => *t = tensor,
            None => self.fields.push((name.into(), tensor)),
        }
        Ok(())
    }

    /// Takes a field out.
    pub fn remove(&mut self, name: &str) -> Option<Tensor> {
        let at = self.fields.iter().position(|(n, _)| n == name)?;
        Some(self.fields.remove(at).1)
    }

    /// A field.
    ///
    /// # Errors
    /// There is none of that name.
    pub fn get(&self, name: &str) -> Result<&Tensor, ReplayError> {
        let found = self.fields.iter().find(|(n, _)| n == name);
        found.map(|(_, t)| t).ok_or_else(|| ReplayError::NoField {
            name: name.into(),
            has: self.fields.iter().map(|(n, _)| n.clone()).collect(),
        })
    }

    /// Names and tensors, in order.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Tensor)> {
        self.fields.iter().map(|(n, t)| (n.as_str(), t))
    }

    /// Draws, `B`.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The device of all tensors.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Numbers of the transitions `[B]`, counted since the buffer began.
    pub fn indices(&self) -> &[u64] {
        &self.indices
    }

    /// Seed and number of the draw: the key of the random numbers of a
    /// [`Transform`](super::Transform), so that a run that is repeated or resumed has the
    /// same.
    pub fn key(&self) -> (u64, u64) {
        self.key
    }

    /// Importance weights `[B]`; ones unless draws are prioritised.
    ///
    /// # Errors
    /// A transform took them out.
    pub fn weights(&self) -> Result<&Tensor, ReplayError> {
        self.get(names::WEIGHTS)
    }

    /// The same on a device; without a copy where it is there already.
    ///
    /// # Errors
    /// The device has no room for it, or fails.
    pub fn to_device(&self, device: Device) -> Result<Self, ReplayError> {
        let mut out = Self { device, ..self.like() };
        for (name, tensor) in self.fields() {
            out.insert(name, tensor.f_to_device(device)?)?;
        }
        Ok(out)
    }

    /// The same tensors once more; nothing is copied.
    pub fn shallow_clone(&self) -> Self {
        let share = |(n, t): &(String, Tensor)| (n.clone(), t.shallow_clone());
        Self { fields: self.fields.iter().map(share).collect(), ..self.like() }
    }
}

/// Pins tensors.
pub trait Pinner: Debug + Send + Sync {
    /// The tensor in pinned memory.
    ///
    /// # Errors
    /// There is none.
    fn pin(&self, tensor: &Tensor) -> Result<Tensor, TchError>;

    /// Whether it is.
    ///
    /// # Errors
    /// Nobody knows.
    fn is_pinned(&self, tensor: &Tensor) -> Result<bool, TchError>;
}

/// Parts of a draw.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Shape {
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
pub(crate) struct Flags {
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
pub(crate) struct GatherPlan {
    /// The fields of a transition.
    pub layout: Layout,
    ways: Vec<FieldCopy>,
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
    /// For transitions of a layout.
    pub(crate) fn new(layout: Layout, shape: Shape) -> Result<Self, ReplayError> {
        let rows = shape.batch;
        let ways = layout.places().map(|(field, from)| FieldCopy {
            from,
            width: field.width,
            to: from * rows,
            last: Self::of_last(&field.name),
        });
        let flag = |name| {
            let (field, word) = layout.find(name)?;
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
            layout,
            flags,
            discount,
            weights: discount + rows,
            total: discount + 2 * rows,
            shape,
        })
    }

    /// Whether a field of an n-step transition is that of the last of the n.
    pub(crate) fn of_last(name: &str) -> bool {
        name.starts_with("next_") || [names::TERMINATED, names::TRUNCATED].contains(&name)
    }

    /// 32-bit words of a batch's columns. Behind them a slot holds [`Self::places`].
    pub(crate) fn words(&self) -> usize {
        self.total
    }

    /// Steps that a draw looks at.
    pub(crate) fn steps(&self) -> usize {
        self.shape.n_step
    }

    /// 32-bit words that say where transitions lie on a device: of each draw the places of
    /// its steps, how many of them are there, and its row.
    pub(crate) fn places(&self) -> usize {
        self.shape.batch * (self.steps() + 2)
    }

    /// The words of the importance weights.
    pub(crate) fn weights(&self) -> Range<usize> {
        self.weights..self.weights + self.shape.batch
    }

    pub(crate) fn discount(&self) -> usize {
        self.discount
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
}

/// What is drawn of a window: the transitions with a number in `which`. Returns are summed over
/// those that follow, whatever their number.
#[derive(Debug, Clone)]
pub(crate) struct Draw<'a> {
    /// How they become a batch.
    pub plan: &'a GatherPlan,
    /// Which are there.
    pub window: &'a Window,
    /// Which of them are drawn.
    pub which: Range<u64>,
}

impl Draw<'_> {
    /// Fills all columns but `weights` of `out` with those of the transitions `first` that are
    /// drawn, out of `rows`.
    fn gather(&self, rows: Rows<'_>, first: &[u64], out: &mut [u32]) {
        let Self { plan, which, .. } = self;
        let ahead = |i: usize| {
            if let Some(&row) = first.get(i).filter(|&row| which.contains(row)) {
                prefetch(rows.row(row));
            }
        };
        (0..AHEAD).for_each(ahead);
        for (i, &row) in first.iter().enumerate() {
            ahead(i + AHEAD);
            if !which.contains(&row) {
                continue;
            }
            match plan.shape.n_step {
                1 => {
                    let row = rows.row(row);
                    plan.put(row, row, i, out);
                    out[plan.discount + i] = plan.shape.discounts[1].to_bits();
                }
                _ => self.returns(rows, row, i, out),
            }
        }
    }

    /// The transition `row` with the discounted sum of up to `n_step` rewards, which stops
    /// at the end of its episode, before a transition of a broken environment, and at the
    /// newest.
    fn returns(&self, rows: Rows<'_>, row: u64, i: usize, out: &mut [u32]) {
        let plan = self.plan;
        let Some(flags) = &plan.flags else { return };
        let (stride, count) = self.window.run_from(row, plan.shape.n_step as u64);
        let first = rows.row(row);
        let (mut last, mut sum, mut steps) = (first, 0.0, 0);
        for k in 0..count {
            let next = rows.row(row + k * stride);
            if k > 0 && flags.broken(next) {
                break;
            }
            last = next;
            sum += plan.shape.discounts[steps] * f32::from_bits(last[flags.reward]);
            steps += 1;
            if flags.ends(last) || flags.broken(last) {
                break;
            }
        }
        plan.put(first, last, i, out);
        out[flags.reward_to + i] = f32::to_bits(sum);
        out[plan.discount + i] = plan.shape.discounts[steps].to_bits();
    }
}

/// Copies in pieces whose length the compiler knows: a call per field would cost as much as
/// the copy.
#[inline]
pub(crate) fn copy(from: &[u32], to: &mut [u32]) {
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

/// One batch: its columns lie one behind the other in one piece of memory, so that a GPU
/// gets all of them by one copy.
#[derive(Debug)]
pub(crate) struct Slot {
    /// On the host: the columns, and behind them [`GatherPlan::places`].
    host: Tensor,
    /// The same on the batch's device, where that is another.
    there: Option<Tensor>,
    /// Views of the columns, on the device.
    pub base: Batch,
    /// [`GatherPlan::places`] on the device, int32.
    pub places: Tensor,
    /// gamma^0, gamma^1, ... gamma^n_step, on the device.
    pub discounts: Tensor,
    /// After the transforms, where there are any.
    pub made: Option<Batch>,
    /// Numbers of the transitions.
    pub rows: Vec<u64>,
    /// The sampler after this draw.
    pub after: Progress,
    /// Words on the host that are not on the batch's device yet.
    written: Range<usize>,
    crossed: Arc<Counts>,
}

impl Slot {
    pub(crate) fn new(
        plan: &GatherPlan,
        device: Device,
        pinner: Option<&dyn Pinner>,
        crossed: &Arc<Counts>,
    ) -> Result<Self, ReplayError> {
        let words = [(plan.words() + plan.places()) as i64];
        let there = match device {
            Device::Cpu => None,
            device => Some(zeros("a replay batch", &words, Kind::Float, device)?),
        };
        Self::with(plan, there, pinner, crossed)
    }

    /// As [`Self::new`] for a device whose memory is `there`, of as many words.
    pub(super) fn with(
        plan: &GatherPlan,
        there: Option<Tensor>,
        pinner: Option<&dyn Pinner>,
        crossed: &Arc<Counts>,
    ) -> Result<Self, ReplayError> {
        let words = [(plan.words() + plan.places()) as i64];
        let mut host = host_zeros("a replay batch", &words, Kind::Float)?;
        if let Some(pinner) = pinner {
            host = pinner.pin(&host)?;
        }
        let device = there.as_ref().map_or(Device::Cpu, Tensor::device);
        let flat = there.as_ref().unwrap_or(&host);
        let base = views(plan, flat, device)?;
        let places = flat.f_narrow(0, plan.words() as i64, plan.places() as i64)?;
        let discounts = Tensor::f_from_slice(&plan.shape.discounts)?;
        Ok(Self {
            places: places.f_view_dtype(Kind::Int)?,
            discounts: discounts.f_to_device(device)?,
            rows: zeroed("rows of a replay batch", plan.shape.batch)?,
            host,
            there,
            base,
            made: None,
            after: Progress::default(),
            written: 0..0,
            crossed: Arc::clone(crossed),
        })
    }

    /// The numbers of the transitions, and on the host the columns and the words behind them,
    /// of which `words` are written.
    pub(crate) fn write<T>(
        &mut self,
        words: Range<usize>,
        write: impl FnOnce(&mut [u64], &mut [u32]) -> T,
    ) -> Result<T, ReplayError> {
        self.written = match self.written.is_empty() {
            true => words,
            false => self.written.start.min(words.start)..self.written.end.max(words.end),
        };
        // SAFETY: zeros, or a pinned copy of them. The slot is borrowed exclusively, so that no
        // batch of it is; `upload` waits for its copies; `write` has words alone.
        let mut memory = unsafe { HostRows::<f32>::new(&self.host) }?;
        Ok(write(&mut self.rows, bytemuck::cast_slice_mut(memory.all_mut()?)))
    }

    /// Fills rows of the columns with the drawn transitions of `rows`.
    pub(crate) fn gather(&mut self, draw: &Draw<'_>, rows: Rows<'_>) -> Result<(), ReplayError> {
        self.write(0..draw.plan.words(), |first, out| draw.gather(rows, first, out))
    }

    /// Brings what was written to the batch's device, in one copy; it has landed when this
    /// returns.
    pub(crate) fn upload(&mut self) -> Result<(), ReplayError> {
        let words = std::mem::take(&mut self.written);
        let Some(there) = self.there.as_ref().filter(|_| !words.is_empty()) else {
            return Ok(());
        };
        let (start, len) = (words.start as i64, words.len() as i64);
        self.crossed.sent(true);
        let mut to = there.f_narrow(0, start, len)?;
        to.f_copy_(&self.host.f_narrow(0, start, len)?)?;
        Ok(())
    }

    /// Records in the batch its transitions, and the key of their draw.
    pub(crate) fn finish(&mut self, seed: u64, draw: u64) {
        self.base.indices.clone_from(&self.rows);
        self.base.key = (seed, draw);
    }

    /// F9: asks whether the memory that a GPU copies from is still pinned.
    pub(crate) fn check_pinned(&self, pinner: &dyn Pinner) -> Result<(), ReplayError> {
        match pinner.is_pinned(&self.host)? {
            true => Ok(()),
            false => Err(ReplayError::NotPinned { name: "(all of them, on the host)".into() }),
        }
    }

    pub(crate) fn batch(&self) -> &Batch {
        self.made.as_ref().unwrap_or(&self.base)
    }
}

/// The columns of `flat` by name.
fn views(plan: &GatherPlan, flat: &Tensor, device: Device) -> Result<Batch, ReplayError> {
    let rows = plan.shape.batch;
    let mut batch = Batch::new(device, rows);
    let column = |start: usize, width: usize| {
        let mut size = vec![rows as i64];
        size.extend((width > 1).then_some(width as i64));
        flat.f_narrow(0, start as i64, (rows * width) as i64)?.f_view(&size[..])
    };
    for (field, at) in plan.layout.places() {
        let tensor = column(at * rows, field.width)?;
        batch.insert(&field.name, tensor.f_view_dtype(field.kind.torch())?)?;
    }
    batch.insert(names::DISCOUNT, column(plan.discount(), 1)?)?;
    batch.insert(names::WEIGHTS, column(plan.weights().start, 1)?)?;
    Ok(batch)
}

#[cfg(test)]
#[path = "tests/batch.rs"]
mod tests;

#[cfg(test)]
#[path = "tests/pin.rs"]
mod pin_tests;
