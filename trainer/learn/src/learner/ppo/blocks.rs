//! A minibatch in the host's memory: blocks of samples go through networks, loss and back
//! while they are in the processor's caches, and every thread has blocks of its own.
//!
//! A minibatch is cut into parts, whose number follows from its size alone. Each has a sum of
//! gradients, and these are added in the parts' order, so that the bits do not depend on how
//! many threads there are.

use super::batch::{Columns, part};
use super::config::{AdvantageNorm, PpoConfig};
use super::loss::STATS;
use super::mirrored::Targets;
use super::sequences::{Part, Sequences};
use crate::learner::error::LearnError;
use crate::learner::nn::host::Vectors;
use crate::learner::nn::host::half::Half;
use crate::learner::nn::host::kernels::{LossBlock, LossShape, LossTerms};
use crate::learner::policy::block::{BlockNet, BlockSpace, HalfNet, Pass};
use ostler_collector::peers::Group;
use ostler_sim::memory::{MemoryError, zeroed};
use ostler_sim::physics::pool::{Pool, worker};
use std::ops::Range;
use std::sync::{Mutex, MutexGuard, PoisonError, RwLock};
use tch::TchError;

/// Samples of a block; a multiple of every vector's length.
const ROWS: usize = 256;
/// Sequences of a block whose steps go through a GRU together, if so many samples are not
/// too many.
const SEQUENCES: usize = 16;
const MOST_ROWS: usize = 1024;
/// Samples of a part at least, and parts of a minibatch at most: sums of gradients cost
/// memory, and time to add them up.
const PART: usize = 256;
const PARTS: usize = 16;
/// Numbers of the gradient that a thread adds up at once.
const CHUNK: usize = 1 << 14;

/// Means to compute minibatches: threads, and room for each.
#[derive(Debug)]
pub(crate) struct Blocks {
    net: BlockNet,
    shape: LossShape,
    columns: Columns,
    vectors: Vectors,
    /// Weights for products in bfloat16.
    half: Option<HalfNet>,
    pool: Pool,
    /// One for each thread.
    spaces: Vec<Mutex<BlockSpace>>,
    parts: Vec<RwLock<Piece>>,
    /// The gradient in chunks.
    sums: Vec<Mutex<Vec<f32>>>,
    sequences: Sequences,
    /// 2 where the reflection of every sample is taken with it, else 1.
    sides: usize,
    /// Where the policy's own reflection is its target.
    pub(super) targets: Option<Targets>,
    /// Which of all processes' they are.
    share: Part,
    /// An order of the samples or sequences of all processes, drawn anew each epoch.
    order: Vec<i64>,
    /// This one's of the present minibatch, and how many all have.
    taken: (Vec<i64>, usize),
    /// Samples of the present minibatch, block by block.
    index: Vec<i64>,
    /// Sequences of a block, of all sides.
    both: Vec<i64>,
    /// Parameters at the front that are the actor's alone.
    actor: usize,
}

/// Sums over the samples of one part.
#[derive(Debug)]
struct Piece {
    grad: Vec<f32>,
    stats: [f64; STATS],
}

/// A rollout's samples and the parameters, to read.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Inputs<'a> {
    /// All parameters.
    pub theta: &'a [f32],
    /// Inputs of the actor `[M,O]`.
    pub x_actor: &'a [f32],
    /// The critic's, where they differ.
    pub x_critic: Option<&'a [f32]>,
    /// All else `[M,F]`.
    pub packed: &'a [f32],
    /// Of a recurrent actor: hidden states before each step `[M,H]`, and 1 where they are what
    /// the step before left `[M]`.
    pub memory: Option<[&'a [f32]; 2]>,
}

impl Blocks {
    /// For so many `minibatches` of `sequences`, on so many threads, with products in bfloat16
    /// where there is a `half`. `same`: the critic sees what the actor sees; `sides`: 2 with
    /// reflections, whose samples stand behind all others. `actor` of the parameters, at their
    /// front, are the actor's alone.
    ///
    /// # Errors
    /// Memory does not suffice, or the system refuses a thread.
    pub(crate) fn new(
        net: BlockNet,
        config: &PpoConfig,
        columns: Columns,
        ((share, minibatches, same), sides): ((Part, usize, bool), usize),
        (parameters, actor): (usize, usize),
        (threads, half): (usize, Option<Half>),
    ) -> Result<Self, LearnError> {
        let sequences = share.own;
        let most = share.all.count().div_ceil(minibatches);
        let most = if config.priority_alpha > 0.0 { most } else { share.most(most) } * sides;
        let (rows, parts) = (most * sequences.steps, parts_of(most, sequences.steps));
        let threads = threads.clamp(1, parts);
        let packed = columns.total() as usize;
        let stride = round_up(rows.min(rows_of(sequences.steps, sides)));
        let space = |_| Ok(Mutex::new(net.space(stride, same, packed, half.is_some())?));
        let part = |_| -> Result<_, MemoryError> {
            Ok(RwLock::new(Piece {
                grad: zeroed("gradients of a part", parameters)?,
                stats: [0.0; STATS],
            }))
        };
        let chunk = |at: usize| -> Result<_, MemoryError> {
            let len = CHUNK.min(parameters - at);
            Ok(Mutex::new(zeroed("a gradient", len)?))
        };
        Ok(Self {
            spaces: (0..threads).map(space).collect::<Result<_, MemoryError>>()?,
            parts: (0..parts).map(part).collect::<Result<_, _>>()?,
            sums: (0..parameters).step_by(CHUNK).map(chunk).collect::<Result<_, _>>()?,
            pool: Pool::new(threads).map_err(|e| LearnError::Thread(e.to_string()))?,
            vectors: Vectors::widest(),
            half: half.map(|half| net.half(half)).transpose()?,
            shape: columns.shape(config),
            net,
            columns,
            order: in_order(share.all.count())?,
            taken: (zeroed("a minibatch's samples", most / sides)?, 0),
            share,
            index: zeroed("a minibatch's samples", rows)?,
            both: zeroed("a block's sequences", rows_of(sequences.steps, sides) / sequences.steps)?,
            sequences,
            sides,
            targets: None,
            actor,
        })
    }

    /// Draws the order of the samples or sequences for an epoch.
    pub(crate) fn draw_order(&mut self, seed: u64, update: u64, epoch: u32) {
        self.vectors.order(seed, update, epoch, &mut self.order);
    }

    /// Puts those of `drawn` into the order in place of all.
    pub(crate) fn replace(&mut self, drawn: Option<&[i64]>) {
        if let Some(drawn) = drawn {
            self.order.iter_mut().for_each(|i| *i = drawn[*i as usize]);
        }
    }

    /// Takes a range of the present order as the next minibatch.
    pub(crate) fn take(&mut self, range: Range<usize>) {
        let (sequences, steps) = (self.sequences, self.sequences.steps);
        self.taken.1 = range.len() * self.sides * steps;
        self.share.of(&self.order[range], &mut self.taken.0);
        let taken = &self.taken.0;
        let parts = parts_of(taken.len() * self.sides, steps);
        self.index.clear();
        for i in 0..parts {
            let (from, len) = part(taken.len() as i64, parts as i64, i as i64);
            let part = &taken[from as usize..][..len as usize];
            for block in part.chunks(rows_of(steps, self.sides) / steps / self.sides) {
                self.both.clear();
                for side in 0..self.sides {
                    let behind = (side * sequences.count()) as i64;
                    self.both.extend(block.iter().map(|s| s + behind));
                }
                self.index.extend(sequences.samples(&self.both));
            }
        }
    }

    /// Takes in the parameters of the minibatches to come.
    pub(crate) fn pack(&mut self, theta: &[f32]) {
        if let Some(half) = &mut self.half {
            self.net.pack(theta, half);
        }
    }

    /// The samples that were taken, block by block, and in a block step by step.
    pub(crate) fn samples(&self) -> &[i64] {
        &self.index
    }

    /// How many samples means are over, and how their advantages are normalised; and how many of
    /// this process's count. Of several processes means are over all samples of the minibatch,
    /// unless it is known before how many of them count.
    ///
    /// # Errors
    /// Another process is gone.
    pub(super) fn terms(
        &self,
        config: &PpoConfig,
        [value_clip, imitation_coef]: [f32; 2],
        inputs: Inputs<'_>,
        group: &Group,
    ) -> Result<(LossTerms, f32), TchError> {
        let index = &self.index;
        let width = self.columns.total() as usize;
        let tail = |i: &i64| {
            let end = (*i as usize + 1) * width;
            let [.., advantage, _, _, valid, _] = &inputs.packed[end - 6..end] else {
                return [f32::NAN; 2];
            };
            [*advantage, *valid]
        };
        let (mut n, mut sum) = (0.0_f64, 0.0_f64);
        for [advantage, valid] in index.iter().map(tail) {
            n += f64::from(valid);
            sum += f64::from(advantage * valid);
        }
        let counted = n as f32;
        let (mut mean, mut scale) = (0.0, 1.0);
        if config.normalize_advantage == AdvantageNorm::MiniBatch {
            [n, sum] = group.add([n, sum])?;
            mean = (sum / n) as f32;
            let off = index.iter().map(tail);
            let squares: f64 = off.map(|[a, v]| f64::from((a - mean).powi(2) * v)).sum();
            let [squares] = group.add([squares])?;
            let deviation = (squares / (n - 1.0).max(1.0)).sqrt();
            scale = (1.0 / (deviation + 1e-8)) as f32;
        } else if !group.is_alone() {
            n = self.taken.1 as f64;
        }
        let terms = LossTerms {
            clip: config.clip_param as f32,
            value_clip,
            value_coef: config.value_loss_coef as f32,
            entropy_coef: config.entropy_bonus() as f32,
            imitation_coef,
            samples: n as f32,
            advantage_mean: mean,
            advantage_scale: scale,
        };
        Ok((terms, counted))
    }

    /// Gradients of the loss of the samples `index` into `grad [P]`, and its means into
    /// `stats [STATS]`. Samples that are not valid have no gradient, whatever they hold; NaN
    /// where none is valid. It comes after [`pack`](Self::pack). Without `policy` only the value
    /// part is computed, and gradients of the actor's own parameters mean nothing.
    pub(crate) fn run(
        &self,
        inputs: Inputs<'_>,
        index: &[i64],
        terms: &LossTerms,
        policy: bool,
        (grad, stats): (&mut [f32], &mut [f32]),
    ) {
        let steps = self.sequences.steps;
        let sequences = index.len() / steps;
        let parts = parts_of(sequences, steps);
        let (taken, whole) = (sequences / self.sides, steps * self.sides);
        let first = if policy { 0 } else { self.actor };
        let work = |i: usize| {
            let mut space = lock(&self.spaces[worker() % self.spaces.len()]);
            let part_of = &mut *self.parts[i].write().unwrap_or_else(PoisonError::into_inner);
            let (from, len) = part(taken as i64, parts as i64, i as i64);
            part_of.grad[first..].fill(0.0);
            part_of.stats = [0.0; STATS];
            let index = &index[from as usize * whole..][..len as usize * whole];
            for index in index.chunks(rows_of(steps, self.sides)) {
                self.block(inputs, index, terms, policy, &mut space, part_of);
            }
        };
        self.pool.run(parts, &work);
        let skipped = first / CHUNK;
        let add = |i: usize| {
            let chunk = skipped + i;
            let mut sum = lock(&self.sums[chunk]);
            let (from, len) = (chunk * CHUNK, sum.len());
            for (i, part) in self.parts[..parts].iter().enumerate() {
                let part = part.read().unwrap_or_else(PoisonError::into_inner);
                let own = &part.grad[from..from + len];
                match i {
                    0 => sum.copy_from_slice(own),
                    _ => self.vectors.add(&mut sum, own),
                }
            }
        };
        self.pool.run(self.sums.len() - skipped, &add);
        for (to, sum) in grad.chunks_mut(CHUNK).zip(&self.sums).skip(skipped) {
            to.copy_from_slice(&lock(sum));
        }
        let mut sums = [0.0; STATS];
        for part in &self.parts[..parts] {
            let part = part.read().unwrap_or_else(PoisonError::into_inner);
            sums.iter_mut().zip(part.stats).for_each(|(s, x)| *s += x);
        }
        // Without a valid sample all of them are no numbers.
        let any = if terms.samples > 0.0 { 1.0 } else { f64::NAN };
        let means = stats.iter_mut().zip(sums);
        means.for_each(|(to, x)| *to = (x * any) as f32);
    }

    /// One block of samples.
    fn block(
        &self,
        inputs: Inputs<'_>,
        index: &[i64],
        terms: &LossTerms,
        policy: bool,
        space: &mut BlockSpace,
        part: &mut Piece,
    ) {
        let rows = index.len();
        let stride = space.stride();
        let vectors = self.vectors;
        let sequences = rows / self.sequences.steps;
        let (actor, critic) = (self.net.actor_inputs(), self.net.critic_inputs());
        vectors.gather_rows(inputs.x_actor, actor, index, &mut space.x_actor);
        if let (Some(from), Some(to)) = (inputs.x_critic, &mut space.x_critic) {
            vectors.gather_rows(from, critic, index, to);
        }
        if let (Some([hidden, keep]), Some(gru)) = (inputs.memory, &mut space.gru) {
            let width = hidden.len() / keep.len().max(1);
            vectors.gather_rows(hidden, width, &index[..sequences], &mut gru.before);
            vectors.gather_rows(keep, 1, index, &mut gru.keep);
        }
        let width = self.columns.total() as usize;
        let packed = (&mut space.packed[..], stride);
        vectors.gather_columns(inputs.packed, width, index, packed);
        // The rows that fill the last vector up are not valid.
        let filled = round_up(rows);
        let valid = (width - 2) * stride;
        space.packed[valid + rows..valid + filled].fill(0.0);

        let half = self.half.as_ref();
        let pass = Pass { vectors, theta: inputs.theta, half, rows, sequences, policy };
        self.net.forward(pass, space);
        if let Some(targets) = &self.targets {
            let size = (rows, stride, self.sequences.steps);
            targets.fill((&mut space.packed, &space.dist), size);
        }
        let block = LossBlock {
            packed: &mut space.packed,
            dist: &mut space.dist,
            log_std: &mut space.log_std,
            value: &mut space.value,
            d_dist: &mut space.d_dist,
            d_log_std: &mut space.d_log_std,
            d_value: &mut space.d_value,
        };
        let size = (rows, stride);
        let stats = &mut part.stats;
        vectors.loss(&self.shape, terms, policy, size, block, stats);
        self.net.backward(pass, space, &mut part.grad);
    }
}

fn in_order(total: usize) -> Result<Vec<i64>, MemoryError> {
    let mut order = zeroed("the order of samples", total)?;
    order.iter_mut().zip(0..).for_each(|(o, i)| *o = i);
    Ok(order)
}

/// Parts of so many sequences: more threads are of no use.
pub(crate) fn parts_of(sequences: usize, steps: usize) -> usize {
    (sequences * steps / PART).clamp(1, PARTS.min(sequences.max(1)))
}

/// Samples of a block, whole sequences.
fn block_rows(steps: usize) -> usize {
    match steps {
        1 => ROWS,
        _ => steps * (MOST_ROWS / steps).clamp(1, SEQUENCES.max(ROWS / steps)),
    }
}

/// The same with as many reflections: whole sequences of every side.
fn rows_of(steps: usize, sides: usize) -> usize {
    (block_rows(steps) / steps / sides).max(1) * steps * sides
}

/// Samples whose activations are in memory at a time, and gradients of parts.
pub(crate) fn working_set(sequences: usize, steps: usize, threads: usize) -> (usize, usize) {
    let parts = parts_of(sequences, steps);
    let at_once = block_rows(steps) * threads.min(parts);
    ((sequences * steps).min(at_once), parts + 1)
}

/// Filled up to whole vectors of any length.
fn round_up(rows: usize) -> usize {
    rows.next_multiple_of(Vectors::Sixteen.lanes())
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The content is written anew before it is read.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
