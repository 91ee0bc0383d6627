//! The learner's passes over rows: `trainer/kernels`, compiled by the host's compiler for
//! three kinds of vectors. Functions here check sizes; the passes allocate nothing.
//!
//! With vectors of 8 and of 16 a row has the same bits wherever nothing is summed over rows
//! or along them. Without AVX2 nothing is fused, and bits are others.

use crate::learner::nn::activation::Activation;
pub use crate::learner::nn::shared::{
    AdamConfig, AdamStep, Columns, LossTerms, PpoLoss, ROWS, Tally,
};
use crate::learner::nn::shared::{
    OSTLER_ELU, OSTLER_HUBER, OSTLER_MSE, OSTLER_POLICY, OSTLER_RELU, OSTLER_SILU, OSTLER_STATS,
    OSTLER_TANH, Table,
};
use bytemuck::Zeroable;
use ostler_sim::device::Address;
use ostler_sim::physics::native::InstructionSet;
use std::sync::OnceLock;

/// Vectors that the processor has and this build kernels for: its features name them as they do
/// those of the simulation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vectors {
    /// Four numbers: SSE2, which every x86-64 has.
    Four,
    /// Eight numbers: AVX2 and FMA.
    Eight,
    /// Sixteen: AVX-512F, DQ and VL.
    Sixteen,
}

/// Samples that [`Vectors::order`] can order.
pub const MOST_IN_ORDER: usize = 1 << 30;

/// Means that the loss of PPO gives: `learner/ppo/loss.rs`.
pub const STATS: usize = OSTLER_STATS;

/// Kinds of the loss and widths of its columns.
#[derive(Debug, Clone, Copy)]
pub struct LossShape {
    /// Numbers of an action.
    pub actions: usize,
    /// Means or logits.
    pub dists: usize,
    /// Standard deviations; 0 of a categorical policy.
    pub stds: usize,
    /// A teacher's means or logits; 0 without one.
    pub targets: usize,
    /// Whether the value's loss is Huber's, instead of squares.
    pub huber: bool,
    /// Whether the value's loss is clipped.
    pub clip_value: bool,
}

impl LossShape {
    /// Arguments without addresses and numbers.
    pub fn args(&self) -> PpoLoss {
        PpoLoss {
            actions: self.actions as i32,
            dists: self.dists as i32,
            stds: self.stds as i32,
            targets: self.targets as i32,
            value_loss: if self.huber { OSTLER_HUBER } else { OSTLER_MSE } as i32,
            clip_value: i32::from(self.clip_value),
            policy: 1,
            ..PpoLoss::zeroed()
        }
    }

    /// Columns of `packed`: `Columns::total` of `ppo/batch.rs`.
    fn packed(&self) -> usize {
        self.actions + self.dists + self.stds + self.targets + 6
    }
}

/// Columns of a block of samples, each `stride` numbers long.
#[derive(Debug)]
pub struct LossBlock<'a> {
    /// Columns from the rollout.
    pub packed: &'a mut [f32],
    /// Means or logits `[D]`.
    pub dist: &'a mut [f32],
    /// Logarithms of standard deviations: columns `[A]`, or one number for each.
    pub log_std: &'a mut [f32],
    /// Values `[1]`.
    pub value: &'a mut [f32],
    /// Gradients of `dist`.
    pub d_dist: &'a mut [f32],
    /// Gradients of the logarithms, columns `[A]`.
    pub d_log_std: &'a mut [f32],
    /// Gradients of `value`.
    pub d_value: &'a mut [f32],
}

/// Places in the row of a [`Tally`].
#[derive(Debug, Clone, Copy)]
pub struct TallyShape {
    /// Numbers of the row.
    pub width: usize,
    /// The first that has to be finite for a step.
    pub first: usize,
    /// How many have to be.
    pub decisive: usize,
    /// Where it says whether a gradient was longer than the limit.
    pub clipped: usize,
}

impl TallyShape {
    /// Of a row `[width]` and sums `[width]` and `[decisive]` at these addresses.
    pub fn at(&self, row: Address, sum: Address, passed: Address) -> Tally {
        Tally {
            row,
            sum,
            passed,
            width: self.width as i32,
            first: self.first as i32,
            decisive: self.decisive as i32,
            clipped: self.clipped as i32,
        }
    }

    /// Of these numbers.
    fn of(&self, row: &mut [f32], sum: &mut [f64], passed: &mut [f64]) -> Tally {
        let lengths = [row.len(), sum.len(), passed.len()];
        assert_eq!(lengths, [self.width, self.width, self.decisive]);
        assert!(self.first + self.decisive <= self.width && self.clipped < self.width);
        let [sum, passed] = [sum, passed].map(|x| x.as_mut_ptr() as Address);
        self.at(row.as_mut_ptr() as Address, sum, passed)
    }
}

/// Layer normalisation's parameters `[H]`.
#[derive(Debug, Clone, Copy)]
pub struct NormWeights<'a> {
    /// Multiplies.
    pub gain: &'a [f32],
    /// Is added.
    pub shift: &'a [f32],
}

// Those of this build: trainer/learn/build.rs.
unsafe extern "C" {
    #[cfg(instructions = "portable")]
    static ostler_learn_portable: Table;
    #[cfg(instructions = "avx2")]
    static ostler_learn_avx2: Table;
    #[cfg(instructions = "avx512")]
    static ostler_learn_avx512: Table;
}

impl Activation {
    /// Its number in kernels.
    fn code(self) -> i32 {
        match self {
            Self::Elu => OSTLER_ELU,
            Self::Relu => OSTLER_RELU,
            Self::Tanh => OSTLER_TANH,
            Self::Silu => OSTLER_SILU,
        }
    }
}

impl Vectors {
    /// The widest.
    ///
    /// # Panics
    /// The program was built for other processors: `cli::run` ends it before.
    pub fn widest() -> Self {
        static WIDEST: OnceLock<Vectors> = OnceLock::new();
        let none = || unreachable!("none of these vectors is the processor's");
        *WIDEST.get_or_init(|| Self::all().last().unwrap_or_else(none))
    }

    /// All there are, narrow ones first.
    pub(super) fn all() -> impl Iterator<Item = Self> {
        let built = [
            #[cfg(instructions = "portable")]
            (InstructionSet::Portable, Self::Four),
            #[cfg(instructions = "avx2")]
            (InstructionSet::Avx2, Self::Eight),
            #[cfg(instructions = "avx512")]
            (InstructionSet::Avx512, Self::Sixteen),
        ];
        let has = built.into_iter().filter(|(set, _)| set.is_available());
        has.map(|(_, vectors)| vectors)
    }

    /// Numbers in one.
    pub fn lanes(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
            Self::Sixteen => 16,
        }
    }

    /// Invariant: a value of [`Vectors`] is used only where the processor has these instructions
    /// ([`all`](Self::all)), so that the table's functions may be called.
    fn table(self) -> &'static Table {
        // SAFETY: the tables are constants of the program.
        unsafe {
            match self {
                #[cfg(instructions = "portable")]
                Self::Four => &ostler_learn_portable,
                #[cfg(instructions = "avx2")]
                Self::Eight => &ostler_learn_avx2,
                #[cfg(instructions = "avx512")]
                Self::Sixteen => &ostler_learn_avx512,
                #[allow(unreachable_patterns, reason = "a build may have all")]
                _ => unreachable!("{self:?} was left out of this build"),
            }
        }
    }

    /// Every number of `x` becomes the activation of it.
    pub fn activate(self, activation: Activation, x: &mut [f32]) {
        // SAFETY: `x` is one row of as many numbers as it has.
        unsafe {
            let none = std::ptr::null();
            (self.table().forward)(activation.code(), none, x.as_mut_ptr(), 1, x.len());
        }
    }

    /// Rows `y [B,H]` become the activation of `y + bias [H]`.
    pub fn forward(self, activation: Activation, bias: &[f32], y: &mut [f32]) {
        let (rows, width) = (rows_of(y, bias.len()), bias.len());
        // SAFETY: `y` has so many rows of the bias's width.
        unsafe {
            let y = y.as_mut_ptr();
            (self.table().forward)(activation.code(), bias.as_ptr(), y, rows, width);
        }
    }

    /// Gradients `d` of results `y` become those of the arguments. As many of both. SiLU's `y`
    /// are the arguments.
    pub fn slope(self, activation: Activation, y: &[f32], d: &mut [f32]) {
        assert_eq!(y.len(), d.len());
        // SAFETY: both are one row of as many numbers.
        unsafe {
            let (code, none) = (activation.code(), std::ptr::null_mut());
            (self.table().backward)(code, y.as_ptr(), d.as_mut_ptr(), none, 1, y.len());
        }
    }

    /// The same for rows `[B,H]`; sums over rows are added to `d_bias [H]`.
    pub fn backward(self, activation: Activation, y: &[f32], d: &mut [f32], d_bias: &mut [f32]) {
        let (rows, width) = (rows_of(d, d_bias.len()), d_bias.len());
        assert_eq!(y.len(), d.len());
        // SAFETY: both have so many rows of the bias's width.
        unsafe {
            let (y, d, d_bias) = (y.as_ptr(), d.as_mut_ptr(), d_bias.as_mut_ptr());
            (self.table().backward)(activation.code(), y, d, d_bias, rows, width);
        }
    }

    /// Rows `x [B,H]` plus `bias [H]` are normalised in place; `scale [B]` is one over each
    /// row's standard deviation, and `y [B,H]` the activation of what the weights make of
    /// them.
    pub fn norm_forward(
        self,
        activation: Activation,
        bias: &[f32],
        weights: NormWeights<'_>,
        [x, scale, y]: [&mut [f32]; 3],
    ) {
        let (rows, width) = (rows_of(x, bias.len()), bias.len());
        assert!(weights.gain.len() == width && weights.shift.len() == width);
        assert!(y.len() == x.len() && scale.len() >= rows);
        // SAFETY: all sizes were compared.
        unsafe {
            (self.table().norm_forward)(
                activation.code(),
                bias.as_ptr(),
                weights.gain.as_ptr(),
                weights.shift.as_ptr(),
                x.as_mut_ptr(),
                scale.as_mut_ptr(),
                y.as_mut_ptr(),
                rows,
                width,
            );
        }
    }

    /// Gradients `d [B,H]` of [`norm_forward`](Self::norm_forward)'s results `y` become those
    /// of its argument; those of gain, shift and bias `[H]` grow by their sums over rows. `x`
    /// and `scale` are as it left them.
    pub fn norm_backward(
        self,
        activation: Activation,
        [y, x, scale, gain]: [&[f32]; 4],
        d: &mut [f32],
        [d_gain, d_shift, d_bias]: [&mut [f32]; 3],
    ) {
        let (rows, width) = (rows_of(d, gain.len()), gain.len());
        assert!(y.len() == d.len() && x.len() == d.len() && scale.len() >= rows);
        assert!([d_gain.len(), d_shift.len(), d_bias.len()] == [width; 3]);
        // SAFETY: all sizes were compared.
        unsafe {
            (self.table().norm_backward)(
                activation.code(),
                y.as_ptr(),
                x.as_ptr(),
                scale.as_ptr(),
                gain.as_ptr(),
                d.as_mut_ptr(),
                d_gain.as_mut_ptr(),
                d_shift.as_mut_ptr(),
                d_bias.as_mut_ptr(),
                rows,
                width,
            );
        }
    }

    /// A step of a GRU for rows of `width` hidden numbers: `x [B,3W]` and `y [B,3W]` are
    /// products of its inputs and its hidden states `h [B,W]`, to which `biases [3W]` are
    /// added, if there are any. The new states go to `to [B,W]`; `x` and `y` become what
    /// [`gru_backward`](Self::gru_backward) needs.
    pub fn gru_forward(
        self,
        biases: Option<[&[f32]; 2]>,
        [x, y, to]: [&mut [f32]; 3],
        h: &[f32],
        width: usize,
    ) {
        let rows = rows_of(h, width);
        assert!([x.len(), y.len(), to.len()] == [3 * h.len(), 3 * h.len(), h.len()]);
        assert!(biases.is_none_or(|b| b.iter().all(|b| b.len() == 3 * width)));
        let none = std::ptr::null();
        let [x_bias, y_bias] = biases.map_or([none; 2], |b| b.map(<[f32]>::as_ptr));
        // SAFETY: all sizes were compared.
        unsafe {
            let (x, y, to) = (x.as_mut_ptr(), y.as_mut_ptr(), to.as_mut_ptr());
            (self.table().gru_forward)(x_bias, y_bias, x, y, h.as_ptr(), to, rows, width);
        }
    }

    /// Gradients `d [B,W]` of a GRU's new states become those of the old ones `h [B,W]`, as
    /// far as these do not come through `y`; `x` and `y [B,3W]`, as
    /// [`gru_forward`](Self::gru_forward) left them, become their gradients.
    pub fn gru_backward(self, [x, y, d]: [&mut [f32]; 3], h: &[f32], width: usize) {
        let rows = rows_of(h, width);
        assert!([x.len(), y.len(), d.len()] == [3 * h.len(), 3 * h.len(), h.len()]);
        // SAFETY: all sizes were compared.
        unsafe {
            let (x, y, d) = (x.as_mut_ptr(), y.as_mut_ptr(), d.as_mut_ptr());
            (self.table().gru_backward)(x, y, h.as_ptr(), d, rows, width);
        }
    }

    /// Sums over rows `[B,W]` are added to `to [W]`.
    pub fn sum_rows(self, d: &[f32], to: &mut [f32]) {
        let rows = rows_of(d, to.len());
        // SAFETY: `d` has so many rows of that width.
        unsafe { (self.table().sum_rows)(d.as_ptr(), to.as_mut_ptr(), rows, to.len()) }
    }

    /// The loss of `rows` samples of a block whose columns are `stride` long, a multiple of
    /// the vectors' length that `rows` may be filled up to: those samples must not be valid.
    /// Without `policy` only the value part is computed. Sums are added to `stats`.
    pub fn loss(
        self,
        shape: &LossShape,
        terms: &LossTerms,
        policy: bool,
        (rows, stride): (usize, usize),
        block: LossBlock<'_>,
        stats: &mut [f64; STATS],
    ) {
        let LossShape { actions, dists, stds, .. } = *shape;
        assert!(stride.is_multiple_of(self.lanes()) && rows <= stride);
        assert_eq!(block.packed.len(), shape.packed() * stride);
        assert_eq!([block.dist.len(), block.d_dist.len()], [dists * stride; 2]);
        assert_eq!([block.value.len(), block.d_value.len()], [stride; 2]);
        assert!(stds == 0 || (stds == actions && dists == actions));
        assert!([0, dists].contains(&shape.targets));
        assert_eq!(block.d_log_std.len(), stds * stride);
        let each = block.log_std.len() == stds * stride;
        assert!(each || block.log_std.len() == stds);
        let columns =
            |x: &mut [f32]| Columns { p: x.as_mut_ptr() as Address, column: stride as i64, row: 1 };
        let log_std = match each {
            true => columns(block.log_std),
            false => Columns { p: block.log_std.as_mut_ptr() as Address, column: 1, row: 0 },
        };
        let args = PpoLoss {
            packed: columns(block.packed),
            dist: columns(block.dist),
            log_std,
            value: columns(block.value),
            d_dist: columns(block.d_dist),
            d_log_std: columns(block.d_log_std),
            d_value: columns(block.d_value),
            policy: i32::from(policy),
            terms: *terms,
            ..shape.args()
        };
        // SAFETY: columns have room for `rows` filled up to whole vectors, and there are as
        // many as the shape says; none overlaps another, as slices do not.
        unsafe { (self.table().loss)(&args, rows, stats.as_mut_ptr()) }
    }

    /// One step of parameters along their gradients, which are scaled in place. As many of
    /// each.
    pub fn adam(self, step: &AdamStep, [theta, grad, m, v]: [&mut [f32]; 4]) {
        let n = theta.len();
        assert!([grad.len(), m.len(), v.len()] == [n; 3]);
        // SAFETY: all are `n` numbers.
        unsafe {
            let (theta, grad) = (theta.as_mut_ptr(), grad.as_mut_ptr());
            (self.table().adam)(step, theta, grad, m.as_mut_ptr(), v.as_mut_ptr(), n);
        }
    }

    /// Counts a step along a gradient of length `norm`, with the powers of beta after the
    /// steps so far, and works out its numbers.
    pub fn adam_begin(
        self,
        config: &AdamConfig,
        norm: f64,
        lr: f64,
        powers: &mut [f64; 2],
    ) -> AdamStep {
        let mut step = AdamStep::zeroed();
        // SAFETY: two powers, and a struct that is written whole.
        unsafe { (self.table().adam_begin)(config, norm, lr, powers.as_mut_ptr(), &raw mut step) };
        step
    }

    /// Adds `row` to `sum` if all that decides is finite, which is returned; counts in
    /// `passed` how far it is.
    pub fn tally(
        self,
        shape: &TallyShape,
        row: &mut [f32],
        sum: &mut [f64],
        passed: &mut [f64],
    ) -> bool {
        let tally = shape.of(row, sum, passed);
        // SAFETY: `of` has checked the lengths.
        unsafe { (self.table().tally)(&raw const tally) != 0 }
    }

    /// Whether PPO's policy takes the step of a minibatch with the divergence `kl`: it stops
    /// where that is beyond `limit`. `end`: the divergence at last, 1 where it stopped, the
    /// first divergence.
    pub fn policy_goes_on(self, kl: f32, limit: f64, end: &mut [f64; 3]) -> bool {
        // SAFETY: three numbers.
        unsafe { (self.table().policy_goes_on)(kl, limit, end.as_mut_ptr()) != 0 }
    }

    /// [`tally`](Self::tally) of a minibatch of PPO, whose losses and norms are in its row.
    pub fn judge(
        self,
        shape: &TallyShape,
        row: &mut [f32],
        sum: &mut [f64],
        passed: &mut [f64],
        (policy, limit): (bool, f64),
    ) -> bool {
        assert!(row.len() > OSTLER_POLICY, "losses, two norms, clipped, policy");
        let tally = shape.of(row, sum, passed);
        // SAFETY: `of` has checked the lengths, and the row has PPO's places.
        unsafe { (self.table().judge)(&raw const tally, i32::from(policy), limit) != 0 }
    }

    /// The sum of all numbers.
    pub fn sum(self, x: &[f32]) -> f32 {
        // SAFETY: so many numbers are there.
        unsafe { (self.table().sum)(x.as_ptr(), x.len()) }
    }

    /// The sum of all squares, in double precision.
    pub fn squares(self, x: &[f32]) -> f64 {
        // SAFETY: so many numbers are there.
        unsafe { (self.table().squares)(x.as_ptr(), x.len()) }
    }

    /// Adds as many numbers to those of `to`.
    pub fn add(self, to: &mut [f32], x: &[f32]) {
        assert_eq!(to.len(), x.len());
        // SAFETY: both are so many numbers.
        unsafe { (self.table().add)(to.as_mut_ptr(), x.as_ptr(), x.len()) }
    }

    /// Rows `index` of `from [M,W]` into the front of `to`.
    ///
    /// # Panics
    /// There is no such row, or no room.
    pub fn gather_rows(self, from: &[f32], width: usize, index: &[i64], to: &mut [f32]) {
        let rows = rows_of(from, width);
        assert!(to.len() >= index.len() * width);
        // SAFETY: `from` has so many rows, to which the pass holds indices, and `to` has room
        // for as many as there are indices.
        let all = unsafe {
            let (index, n) = (index.as_ptr(), index.len());
            (self.table().gather_rows)(from.as_ptr(), rows, width, index, n, to.as_mut_ptr())
        };
        assert!(all != 0, "there is no such row");
    }

    /// The same into columns `to [W]`, one every `stride`.
    ///
    /// # Panics
    /// There is no such row, or no room.
    pub fn gather_columns(
        self,
        from: &[f32],
        width: usize,
        index: &[i64],
        (to, stride): (&mut [f32], usize),
    ) {
        let rows = rows_of(from, width);
        assert!(to.len() >= width * stride && index.len() <= stride);
        // SAFETY: `from` has so many rows, to which the pass holds indices, and every column
        // has room for as many numbers as there are indices.
        let all = unsafe {
            let (index, n) = (index.as_ptr(), index.len());
            let (from, to) = (from.as_ptr(), to.as_mut_ptr());
            (self.table().gather_columns)(from, rows, width, index, n, to, stride)
        };
        assert!(all != 0, "there is no such row");
    }

    /// The order in which an epoch of an update takes `order.len()` samples, at most
    /// [`MOST_IN_ORDER`]: `trainer/kernels/order.cuh`.
    pub fn order(self, seed: u64, update: u64, epoch: u32, order: &mut [i64]) {
        assert!(order.len() <= MOST_IN_ORDER);
        // SAFETY: as many numbers are written as there is room for.
        unsafe {
            let (count, to) = (order.len(), order.as_mut_ptr());
            (self.table().fill_order)(seed, update, epoch, count, to);
        }
    }

    /// Columns `x [I]` through a layer, weight `[H,I]` and bias `[H]`, into columns `y [H]`, of
    /// [`ROWS`] each.
    pub fn columns_layer(self, weight: &[f32], bias: &[f32], x: &[f32], y: &mut [f32]) {
        let outputs = bias.len();
        let inputs = weight.len() / outputs.max(1);
        assert_eq!(weight.len(), inputs * outputs);
        assert!(x.len() >= inputs * ROWS && y.len() >= outputs * ROWS);
        // SAFETY: columns have room for as many numbers as the layer has.
        unsafe {
            let (weight, bias) = (weight.as_ptr(), bias.as_ptr());
            let (x, y) = (x.as_ptr(), y.as_mut_ptr());
            (self.table().columns_layer)(weight, bias, inputs, outputs, x, y);
        }
    }

    /// Each row of columns `x [H]` of [`ROWS`] normalised.
    pub fn columns_norm(self, weights: NormWeights<'_>, x: &mut [f32]) {
        let width = weights.gain.len();
        assert!(weights.shift.len() == width && x.len() >= width * ROWS);
        // SAFETY: columns have room for as many numbers as the weights have.
        unsafe {
            let (gain, shift) = (weights.gain.as_ptr(), weights.shift.as_ptr());
            (self.table().columns_norm)(gain, shift, x.as_mut_ptr(), width);
        }
    }
}

/// Rows of `x`, which must be whole.
fn rows_of(x: &[f32], width: usize) -> usize {
    let rows = x.len() / width.max(1);
    assert_eq!(x.len(), rows * width, "rows of {width} numbers");
    rows
}
