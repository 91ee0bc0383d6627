//! Adam over the flat parameter tensor: `trainer/kernels/adam.cuh`, in vectors over the
//! host's memory, or as a kernel on a device, where learning rate, step count and the decision
//! to skip lie too: nothing is read back.
//!
//! Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015,
//! algorithm 1, with epsilon added after the bias correction.

use super::Params;
use super::device::{Entry, LearnKernels, address, not_loaded};
use super::host::Vectors;
use super::host::kernels::AdamConfig;
use super::shared::{AdamArgs, Step};
use crate::learner::error::LearnError;
use crate::learner::state::{Holds, State};
use crate::learner::tensors::zeros;
use ostler_collector::memory::HostRows;
use ostler_sim::device::Address;
use std::ops::Range;
use tch::{Device, Kind, TchError, Tensor};

/// Decay of the mean of gradients and of that of their squares, unless others are given.
pub const BETAS: [f64; 2] = [0.9, 0.999];
const EPS: f64 = 1e-8;

/// The optimiser.
///
/// Parameters may be in several parts, one behind the other, each with a learning rate and a
/// count of steps of its own.
#[derive(Debug)]
pub struct Adam {
    /// Starts the names in a checkpoint.
    prefix: &'static str,
    /// Weight decay: the share that a step takes off every parameter per unit of learning rate.
    weight_decay: f64,
    betas: [f64; 2],
    /// Running mean of gradients `[P]`.
    m: Tensor,
    /// Running mean of squared gradients `[P]`.
    v: Tensor,
    /// Learning rate of every part, float64 `[K]`.
    lr: Tensor,
    /// Its entries, without dimensions.
    rates: Vec<Tensor>,
    /// Powers `t` of the betas of every part after its `t` steps, float64 `[K,2]`.
    powers: Tensor,
    /// The parts' parameters.
    parts: Vec<Range<i64>>,
    /// On a device: its kernels, and the numbers of a step of every part.
    device: Option<(LearnKernels, Tensor)>,
}

/// An optimiser on a device, for a kernel that works out the numbers of its steps.
#[derive(Debug, Clone, Copy)]
pub struct OnDevice<'a> {
    /// The device's kernels.
    pub kernels: &'a LearnKernels,
    /// The same for all steps.
    pub config: AdamConfig,
    /// Learning rates `[K]`.
    pub lr: Address,
    /// Powers of beta `[K,2]`.
    pub powers: Address,
    /// Numbers of the steps `[K]`.
    pub steps: Address,
}

impl Adam {
    /// For `len` parameters in one part.
    pub fn new(len: i64, lr: f64, device: Device) -> Result<Self, LearnError> {
        Self::in_parts(&[(len, lr)], device)
    }

    /// For parts of so many parameters, with their learning rates.
    pub fn in_parts(parts: &[(i64, f64)], device: Device) -> Result<Self, LearnError> {
        let len = parts.iter().map(|(len, _)| len).sum();
        let rates: Vec<f64> = parts.iter().map(|(_, lr)| *lr).collect();
        let lr = Tensor::f_from_slice(&rates)?.f_to_device(device)?;
        let powers = Tensor::f_ones([parts.len() as i64, 2], (Kind::Double, device))?;
        let mut ranges = Vec::new();
        let mut from = 0;
        for (len, _) in parts {
            ranges.push(from..from + len);
            from += len;
        }
        Ok(Self {
            prefix: "adam",
            weight_decay: 0.0,
            betas: BETAS,
            m: zeros("Adam's m", &[len], Kind::Float, device)?,
            v: zeros("Adam's v", &[len], Kind::Float, device)?,
            rates: (0..parts.len() as i64).map(|i| lr.f_get(i)).collect::<Result<_, _>>()?,
            lr,
            powers,
            parts: ranges,
            device: None,
        })
    }

    /// Another one beside the first: `prefix` starts its names in a checkpoint.
    pub fn named(self, prefix: &'static str) -> Self {
        Self { prefix, ..self }
    }

    /// Every step also takes `weight_decay` times the learning rate off each parameter
    /// (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019).
    pub fn decaying(self, weight_decay: f64) -> Self {
        Self { weight_decay, ..self }
    }

    /// Other decays of the means than [`BETAS`].
    pub fn with_betas(self, betas: [f64; 2]) -> Self {
        Self { betas, ..self }
    }

    /// How many parts there are.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The learning rate of a part, a float64 without dimensions, shared.
    pub fn rate(&self, part: usize) -> &Tensor {
        &self.rates[part]
    }

    /// Sets the learning rate of a part.
    pub fn set_rate(&self, part: usize, rate: f64) -> Result<(), TchError> {
        let _ = self.rates[part].shallow_clone().f_fill_(rate)?;
        Ok(())
    }

    /// The gradient of a part.
    pub fn gradient(&self, params: &Params, part: usize) -> Result<Tensor, TchError> {
        let range = &self.parts[part];
        params.grad.f_narrow(0, range.start, range.end - range.start)
    }

    /// Learns on a device, with its kernels.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub fn with_kernels(&mut self, kernels: &LearnKernels) -> Result<(), LearnError> {
        let room = self.parts.len() * size_of::<Step>() / 4;
        let steps = zeros("Adam's steps", &[room as i64], Kind::Float, self.m.device())?;
        self.device = Some((kernels.clone(), steps));
        Ok(())
    }

    /// Back to the host's memory.
    #[cfg(test)]
    pub fn leave_device(&mut self) {
        self.device = None;
    }

    /// Where a kernel finds learning rates, powers and room for the numbers of steps, with
    /// gradients of at most `limit`; none where it learns on the host.
    pub fn on_device(&self, limit: f64) -> Option<OnDevice<'_>> {
        let (kernels, steps) = self.device.as_ref()?;
        Some(OnDevice {
            kernels,
            config: self.config(limit),
            lr: address(&self.lr),
            powers: address(&self.powers),
            steps: address(steps),
        })
    }

    fn config(&self, limit: f64) -> AdamConfig {
        AdamConfig {
            beta1: self.betas[0],
            beta2: self.betas[1],
            epsilon: EPS,
            weight_decay: self.weight_decay,
            limit,
        }
    }

    /// On a device: the steps of all parts whose numbers a kernel has put into
    /// [`on_device`](Self::on_device), along `params.grad`. Where a step is not to be taken
    /// parameters and state stay as they are, whatever the gradient holds.
    ///
    /// # Errors
    /// The device refuses, or there are no kernels.
    pub fn step(&mut self, params: &mut Params) -> Result<(), LearnError> {
        let (kernels, steps) = self.device.as_ref().ok_or_else(not_loaded)?;
        let len = params.len();
        let args = AdamArgs {
            steps: address(steps),
            theta: address(&params.theta),
            grad: address(&params.grad),
            m: address(&self.m),
            v: address(&self.v),
            front: self.parts.first().map_or(len, |part| part.end),
            len,
        };
        // SAFETY: the entry's struct; parameters, gradient and moments have `len` numbers, and
        // there are steps of all parts, of which there are two at most.
        unsafe { kernels.launch(Entry::Adam, len as usize, &args) }
    }

    /// The same on the host's memory, for as long as no tensor is replaced; gradients are cut
    /// to the length `limit`.
    pub fn on_host(&self, params: &Params, limit: f64) -> Result<HostAdam, LearnError> {
        let range = |part: &Range<i64>| part.start as usize..part.end as usize;
        // SAFETY: parameters, gradient and state have initial values, each in memory of its
        // own. `HostAdam` borrows slices within its functions alone, which call nothing of
        // libtorch's but for addresses.
        unsafe {
            Ok(HostAdam {
                theta: HostRows::new(&params.theta)?,
                grad: HostRows::new(&params.grad)?,
                m: HostRows::new(&self.m)?,
                v: HostRows::new(&self.v)?,
                lr: HostRows::new(&self.lr)?,
                config: self.config(limit),
                powers: HostRows::new(&self.powers)?,
                parts: self.parts.iter().map(range).collect(),
            })
        }
    }

    /// Forgets all gradients: the state of an optimiser that has not taken a step. The
    /// learning rate stays.
    pub fn restart(&mut self) -> Result<(), TchError> {
        let _ = self.m.f_zero_()?;
        let _ = self.v.f_zero_()?;
        let _ = self.powers.f_fill_(1.0)?;
        Ok(())
    }

    /// Enters moments, bias corrections and learning rates into a learner's state.
    pub fn declare(&self, state: &mut State) {
        let entries = [
            ("m", &self.m),
            ("v", &self.v),
            ("beta_powers", &self.powers),
            ("learning_rate", &self.lr),
        ];
        for (name, t) in entries {
            state.tensor(format!("{}.{name}", self.prefix), t, Holds::Progress);
        }
    }
}

/// Parameters, gradient and the optimiser's state as the host's memory.
#[derive(Debug)]
pub struct HostAdam {
    theta: HostRows<f32>,
    grad: HostRows<f32>,
    m: HostRows<f32>,
    v: HostRows<f32>,
    lr: HostRows<f64>,
    config: AdamConfig,
    powers: HostRows<f64>,
    parts: Vec<Range<usize>>,
}

impl HostAdam {
    /// Parts of the parameters.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The Euclidean norm of a part's gradient, summed in double precision in a fixed order.
    pub fn gradient_norm(&self, part: usize) -> Result<f64, LearnError> {
        let grad = &self.grad.all()?[self.parts[part].clone()];
        Ok(Vectors::widest().squares(grad).sqrt())
    }

    /// One step of a part along the gradient, whose length is `norm`. A step that is not to
    /// be taken is not called for. The gradient is scaled in place.
    pub fn step(&mut self, part: usize, norm: f64) -> Result<(), LearnError> {
        let range = self.parts[part].clone();
        let lr = self.lr.all()?[part];
        let powers = &mut self.powers.all_mut()?[2 * part..2 * part + 2];
        let mut own = [powers[0], powers[1]];
        let step = Vectors::widest().adam_begin(&self.config, norm, lr, &mut own);
        powers.copy_from_slice(&own);
        let theta = &mut self.theta.all_mut()?[range.clone()];
        let grad = &mut self.grad.all_mut()?[range.clone()];
        let m = &mut self.m.all_mut()?[range.clone()];
        let v = &mut self.v.all_mut()?[range];
        Vectors::widest().adam(&step, [theta, grad, m, v]);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::nn::Layout;
    use crate::learner::off_policy::section::Section;
    use crate::learner::testing::stand_in;

    fn saved(adam: &Adam) -> crate::learner::tensors::NamedTensors {
        let mut state = State::default();
        adam.declare(&mut state);
        state.save().unwrap()
    }

    fn setup() -> (Params, Adam) {
        let mut layout = Layout::default();
        layout.add("w", &[3]);
        let params = Params::new(layout, Device::Cpu).unwrap();
        let mut adam = Adam::new(3, 0.1, Device::Cpu).unwrap();
        adam.with_kernels(&stand_in()).unwrap();
        (params, adam)
    }

    /// A step along `grad` as on a device; its numbers are what a kernel would have put there.
    fn step(p: &mut Params, adam: &mut Adam, grad: &[f32], ok: bool) {
        p.grad.copy_(&Tensor::from_slice(grad));
        let section = &mut Section::new(0, 1e9, Device::Cpu).unwrap();
        let loss = Tensor::from(if ok { 1.0_f32 } else { f32::NAN });
        section.losses(&Tensor::from(1.0_f32), &loss).unwrap();
        section.step(adam, p).unwrap();
    }

    #[test]
    fn the_first_step_has_the_length_of_the_learning_rate() {
        let (mut p, mut adam) = setup();
        step(&mut p, &mut adam, &[1e-3, -5.0, 0.0], true);
        let theta = Vec::<f32>::try_from(&p.theta).unwrap();
        assert!((theta[0] + 0.1).abs() < 1e-5 && (theta[1] - 0.1).abs() < 1e-6);
        assert_eq!(theta[2], 0.0);
    }

    #[test]
    fn a_skipped_step_changes_nothing_even_as_the_first() {
        let nan = [f32::NAN, f32::INFINITY, 1.0];
        let (mut p, mut adam) = setup();
        let (mut p2, mut adam2) = setup();
        step(&mut p, &mut adam, &nan, false);
        for grad in [[0.5, -0.5, 0.1], [0.3, 2.0, -0.1]] {
            step(&mut p, &mut adam, &grad, true);
            step(&mut p, &mut adam, &nan, false);
            step(&mut p2, &mut adam2, &grad, true);
        }
        assert_eq!(p.theta, p2.theta);
        for ((name, a), (_, b)) in saved(&adam).iter().zip(&saved(&adam2)) {
            assert_eq!(a, b, "{name}");
        }
    }

    /// The reference is the optimiser that comes with libtorch, `torch::optim::AdamW`; with
    /// decay added to the gradient (`torch::optim::Adam`) the numbers are others.
    #[test]
    fn decay_is_that_of_pytorchs_adamw() {
        use tch::nn::OptimizerConfig;
        const DECAY: f64 = 0.3;
        let start = [1.0_f32, -2.0, 0.5];
        let grads = [[0.5_f32, -0.5, 0.1], [0.3, 2.0, -0.1], [-1.0, 0.0, 0.2]];
        let theirs = |decoupled: bool| {
            let store = tch::nn::VarStore::new(Device::Cpu);
            let mut w = store.root().zeros("w", &[3]);
            tch::no_grad(|| w.copy_(&Tensor::from_slice(&start)));
            let mut optimiser = match decoupled {
                true => {
                    tch::nn::AdamW { wd: DECAY, ..tch::nn::AdamW::default() }.build(&store, 0.1)
                }
                false => tch::nn::adam(BETAS[0], BETAS[1], DECAY).build(&store, 0.1),
            }
            .unwrap();
            for grad in &grads {
                optimiser.backward_step(&(&w * Tensor::from_slice(grad)).sum(Kind::Float));
            }
            w.detach()
        };
        let ours = |on_host: bool| {
            let (mut p, adam) = setup();
            let mut adam = adam.decaying(DECAY);
            p.theta.copy_(&Tensor::from_slice(&start));
            for grad in &grads {
                if on_host {
                    p.grad.copy_(&Tensor::from_slice(grad));
                    adam.on_host(&p, 1e9).unwrap().step(0, 1.0).unwrap();
                } else {
                    step(&mut p, &mut adam, grad, true);
                }
            }
            p.theta.shallow_clone()
        };
        let apart = |a: &Tensor, b: &Tensor| (a - b).abs().max().double_value(&[]);
        for on_host in [true, false] {
            let ours = ours(on_host);
            assert!(apart(&ours, &theirs(true)) < 1e-6, "{ours} {on_host}");
            assert!(apart(&ours, &theirs(false)) > 1e-2, "{ours} {on_host}");
        }
    }
}
