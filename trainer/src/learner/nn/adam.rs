//! Adam over the flat parameter tensor, with its learning rate, its step count and
//! the decision to skip on the device: nothing is read back.
//!
//! Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015,
//! algorithm 1, with epsilon added after the bias correction.

use super::host::Vectors;
use super::host::kernels::AdamStep;
use super::{Params, zeros};
use crate::learner::LearnError;
use crate::learner::state::{Holds, State};
use ostler_collector::memory::HostRows;
use std::ops::Range;
use tch::{Device, Kind, TchError, Tensor};

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
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
    /// Running mean of gradients `[P]`.
    m: Tensor,
    /// Running mean of squared gradients `[P]`.
    v: Tensor,
    /// Learning rate of every part, float64 `[K]`.
    lr: Tensor,
    /// `BETA1^t`, `BETA2^t` of every part after its `t` steps, float64 `[K,2]`: the bias
    /// corrections would lose four digits in float32.
    powers: Tensor,
    parts: Vec<Part>,
    beta_less_one: Tensor,
    scratch: Tensor,
    zero: Tensor,
}

/// Parameters that are stepped together, and their views.
#[derive(Debug)]
struct Part {
    range: Range<i64>,
    /// Without dimensions.
    lr: Tensor,
    /// `[2]`.
    powers: Tensor,
    /// Its two, without dimensions.
    power: [Tensor; 2],
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
        let mut views = Vec::new();
        let mut from = 0;
        for (i, (len, _)) in parts.iter().enumerate() {
            let own = powers.f_get(i as i64)?;
            views.push(Part {
                range: from..from + len,
                lr: lr.f_get(i as i64)?,
                power: [own.f_get(0)?, own.f_get(1)?],
                powers: own,
            });
            from += len;
        }
        Ok(Self {
            prefix: "adam",
            weight_decay: 0.0,
            m: zeros("Adam's m", &[len], Kind::Float, device)?,
            v: zeros("Adam's v", &[len], Kind::Float, device)?,
            lr,
            powers,
            parts: views,
            beta_less_one: Tensor::f_from_slice(&[BETA1 - 1.0, BETA2 - 1.0])?
                .f_to_device(device)?,
            scratch: zeros("Adam", &[len], Kind::Float, device)?,
            zero: Tensor::f_zeros([0i64; 0], (Kind::Float, device))?,
        })
    }

    /// Another one beside the first: `prefix` starts its names in a checkpoint.
    pub fn named(self, prefix: &'static str) -> Self {
        Self { prefix, ..self }
    }

    /// Every step also takes `weight_decay` times the learning rate off each parameter
    /// (Loshchilov and Hutter, "Decoupled weight decay regularization", 2019).
    pub fn decaying(self, weight_decay: f64) -> Self {
        Self {
            weight_decay,
            ..self
        }
    }

    /// How many parts there are.
    pub fn parts(&self) -> usize {
        self.parts.len()
    }

    /// The learning rate of a part, a float64 without dimensions, shared.
    pub fn rate(&self, part: usize) -> &Tensor {
        &self.parts[part].lr
    }

    /// Sets the learning rate of a part.
    pub fn set_rate(&self, part: usize, rate: f64) -> Result<(), TchError> {
        let _ = self.parts[part].lr.shallow_clone().f_fill_(rate)?;
        Ok(())
    }

    /// The gradient of a part.
    pub fn gradient(&self, params: &Params, part: usize) -> Result<Tensor, TchError> {
        let range = &self.parts[part].range;
        params
            .grad
            .f_narrow(0, range.start, range.end - range.start)
    }

    /// One step of a part along `params.grad` scaled by `scale` (no dimensions). Where `ok`
    /// (a boolean without dimensions) is false, parameters and state stay as they are,
    /// whatever the gradient holds. The gradient is overwritten.
    pub fn step(
        &mut self,
        params: &mut Params,
        part: usize,
        scale: &Tensor,
        ok: &Tensor,
    ) -> Result<(), TchError> {
        let Part {
            range,
            lr,
            powers,
            power,
        } = &self.parts[part];
        let own = |t: &Tensor| t.f_narrow(0, range.start, range.end - range.start);
        let (mut grad, mut theta) = (own(&params.grad)?, own(&params.theta)?);
        let (mut m, mut v, mut scratch) = (own(&self.m)?, own(&self.v)?, own(&self.scratch)?);
        let _ = grad.f_mul_(scale)?;
        let _ = grad.f_where_self_out(&grad, ok, &self.zero)?;

        let on = ok.f_to_kind(Kind::Double)?;
        // on = 1 multiplies by beta, on = 0 by one; both exactly.
        let _ = powers
            .shallow_clone()
            .f_mul_(&self.beta_less_one.f_mul(&on)?.f_add_scalar(1.0)?)?;
        // Before the first step both corrections are 0 and must not divide.
        let correction = |power: &Tensor| power.f_neg()?.f_add_scalar(1.0)?.f_clamp_min(1e-12);
        let rate = lr.f_mul(&on)?.f_div(&correction(&power[0])?)?;
        let root = correction(&power[1])?.f_rsqrt()?;

        if self.weight_decay > 0.0 {
            let keep = lr.f_mul(&on)?.f_mul_scalar(-self.weight_decay)?;
            let _ = theta.f_mul_(&keep.f_add_scalar(1.0)?)?;
        }
        let on = on.f_to_kind(Kind::Float)?;
        let _ = m.f_lerp_tensor_(&grad, &on.f_mul_scalar(1.0 - BETA1)?)?;
        let _ = grad.f_mul_out(&scratch, &grad)?;
        let _ = v.f_lerp_tensor_(&scratch, &on.f_mul_scalar(1.0 - BETA2)?)?;

        let _ = v.f_sqrt_out(&scratch)?;
        let _ = scratch.f_mul_(&root)?;
        let _ = scratch.f_add_scalar_(EPS)?;
        let _ = m.f_div_out(&scratch, &scratch)?;
        let _ = scratch.f_mul_(&rate)?;
        let _ = theta.f_sub_(&scratch)?;
        Ok(())
    }

    /// The same on the host's memory, for as long as no tensor is replaced.
    pub fn on_host(&self, params: &Params) -> Result<HostAdam, LearnError> {
        let range = |part: &Part| part.range.start as usize..part.range.end as usize;
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
                weight_decay: self.weight_decay,
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
    weight_decay: f64,
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

    /// One step of a part along the gradient times `scale`, as [`Adam::step`] does it. A
    /// step that is not to be taken is not called for. The gradient is scaled in place.
    pub fn step(&mut self, part: usize, scale: f64) -> Result<(), LearnError> {
        let range = self.parts[part].clone();
        let powers = &mut self.powers.all_mut()?[2 * part..2 * part + 2];
        powers[0] *= BETA1;
        powers[1] *= BETA2;
        let lr = self.lr.all()?[part];
        let step = AdamStep {
            scale: scale as f32,
            rate: (lr / (1.0 - powers[0])) as f32,
            root: (1.0 / (1.0 - powers[1]).sqrt()) as f32,
            // Exactly 1 without: the bits are those of plain Adam.
            keep: (1.0 - lr * self.weight_decay) as f32,
            one_less_beta1: (1.0 - BETA1) as f32,
            one_less_beta2: (1.0 - BETA2) as f32,
            epsilon: EPS as f32,
        };
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

    fn scalar(x: f64) -> Tensor {
        Tensor::full([0i64; 0], x, (Kind::Float, Device::Cpu))
    }

    fn saved(adam: &Adam) -> crate::learner::NamedTensors {
        let mut state = State::default();
        adam.declare(&mut state);
        state.save().unwrap()
    }

    fn setup() -> (Params, Adam) {
        let mut layout = Layout::default();
        layout.add("w", &[3]);
        let params = Params::new(layout, Device::Cpu).unwrap();
        (params, Adam::new(3, 0.1, Device::Cpu).unwrap())
    }

    fn step(p: &mut Params, adam: &mut Adam, grad: &[f32], ok: bool) {
        p.grad.copy_(&Tensor::from_slice(grad));
        adam.step(p, 0, &scalar(1.0), &Tensor::from(ok)).unwrap();
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
                true => tch::nn::AdamW {
                    wd: DECAY,
                    ..tch::nn::AdamW::default()
                }
                .build(&store, 0.1),
                false => tch::nn::adam(BETA1, BETA2, DECAY).build(&store, 0.1),
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
                    adam.on_host(&p).unwrap().step(0, 1.0).unwrap();
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
