//! Adam over the flat parameter tensor, with its learning rate, its step count and
//! the decision to skip on the device: nothing is read back.
//!
//! Source: Kingma and Ba, "Adam: a method for stochastic optimization", 2015,
//! algorithm 1, with epsilon added after the bias correction.

use super::params::find;
use super::{Params, host_copy, zeros};
use crate::learner::{LearnError, NamedTensors};
use ostler_collector::memory::HostRows;
use tch::{Device, Kind, TchError, Tensor};

const BETA1: f64 = 0.9;
const BETA2: f64 = 0.999;
const EPS: f64 = 1e-8;

/// The optimiser.
#[derive(Debug)]
pub struct Adam {
    /// Starts the names in a checkpoint.
    prefix: &'static str,
    /// What a step takes off every parameter, as a share per unit of learning rate.
    weight_decay: f64,
    /// Running mean of gradients `[P]`.
    m: Tensor,
    /// Running mean of squared gradients `[P]`.
    v: Tensor,
    /// Learning rate, a float64 without dimensions.
    pub lr: Tensor,
    /// `BETA1^t`, `BETA2^t` after `t` steps, float64 `[2]`: the bias corrections
    /// would lose four digits in float32.
    powers: Tensor,
    powers_parts: [Tensor; 2],
    beta_less_one: Tensor,
    scratch: Tensor,
    zero: Tensor,
}

impl Adam {
    /// For `len` parameters.
    pub fn new(len: i64, lr: f64, device: Device) -> Result<Self, LearnError> {
        let powers = Tensor::f_ones([2], (Kind::Double, device))?;
        Ok(Self {
            prefix: "adam",
            weight_decay: 0.0,
            m: zeros("Adam's m", &[len], Kind::Float, device)?,
            v: zeros("Adam's v", &[len], Kind::Float, device)?,
            lr: Tensor::f_full([0i64; 0], lr, (Kind::Double, device))?,
            powers_parts: [powers.f_get(0)?, powers.f_get(1)?],
            powers,
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

    /// One step along `params.grad` scaled by `scale` (no dimensions). Where `ok` (a
    /// boolean without dimensions) is false, parameters and state stay as they are,
    /// whatever the gradient holds. The gradient is overwritten.
    pub fn step(
        &mut self,
        params: &mut Params,
        scale: &Tensor,
        ok: &Tensor,
    ) -> Result<(), TchError> {
        let grad = &mut params.grad;
        let _ = grad.f_mul_(scale)?;
        let _ = grad.f_where_self_out(grad, ok, &self.zero)?;

        let on = ok.f_to_kind(Kind::Double)?;
        // on = 1 multiplies by beta, on = 0 by one; both exactly.
        let _ = self
            .powers
            .f_mul_(&self.beta_less_one.f_mul(&on)?.f_add_scalar(1.0)?)?;
        // Before the first step both corrections are 0 and must not divide.
        let correction = |power: &Tensor| power.f_neg()?.f_add_scalar(1.0)?.f_clamp_min(1e-12);
        let rate = self
            .lr
            .f_mul(&on)?
            .f_div(&correction(&self.powers_parts[0])?)?;
        let root = correction(&self.powers_parts[1])?.f_rsqrt()?;

        if self.weight_decay > 0.0 {
            let keep = self.lr.f_mul(&on)?.f_mul_scalar(-self.weight_decay)?;
            let _ = params.theta.f_mul_(&keep.f_add_scalar(1.0)?)?;
        }
        let on = on.f_to_kind(Kind::Float)?;
        let _ = self
            .m
            .f_lerp_tensor_(grad, &on.f_mul_scalar(1.0 - BETA1)?)?;
        let _ = grad.f_mul_out(&self.scratch, grad)?;
        let _ = self
            .v
            .f_lerp_tensor_(&self.scratch, &on.f_mul_scalar(1.0 - BETA2)?)?;

        let _ = self.v.f_sqrt_out(&self.scratch)?;
        let _ = self.scratch.f_mul_(&root)?;
        let _ = self.scratch.f_add_scalar_(EPS)?;
        let _ = self.m.f_div_out(&self.scratch, &self.scratch)?;
        let _ = self.scratch.f_mul_(&rate)?;
        let _ = params.theta.f_sub_(&self.scratch)?;
        Ok(())
    }

    /// The same on the host's memory, for as long as no tensor is replaced.
    pub fn on_host(&self, params: &Params) -> Result<HostAdam, LearnError> {
        let lr = self.lr.f_view([1])?;
        // SAFETY: parameters, gradient and state have initial values, each in memory of its
        // own. `HostAdam` borrows slices within its functions alone, which call nothing of
        // libtorch's but for addresses.
        unsafe {
            Ok(HostAdam {
                theta: HostRows::new(&params.theta)?,
                grad: HostRows::new(&params.grad)?,
                m: HostRows::new(&self.m)?,
                v: HostRows::new(&self.v)?,
                lr: HostRows::new(&lr)?,
                weight_decay: self.weight_decay,
                powers: HostRows::new(&self.powers)?,
            })
        }
    }

    /// State on the host, by name.
    pub fn save(&self) -> Result<NamedTensors, LearnError> {
        self.parts()
            .into_iter()
            .map(|(name, t)| Ok((name, host_copy(t)?.f_view(shape(t).as_slice())?)))
            .collect()
    }

    /// Forgets all gradients: the state of an optimiser that has not taken a step. The
    /// learning rate stays.
    pub fn restart(&mut self) -> Result<(), TchError> {
        let _ = self.m.f_zero_()?;
        let _ = self.v.f_zero_()?;
        let _ = self.powers.f_fill_(1.0)?;
        Ok(())
    }

    /// All of the state.
    pub fn tensors(&self) -> [&Tensor; 4] {
        [&self.m, &self.v, &self.powers, &self.lr]
    }

    fn parts(&self) -> [(String, &Tensor); 4] {
        let name = |part: &str| format!("{}.{part}", self.prefix);
        [
            (name("m"), &self.m),
            (name("v"), &self.v),
            (name("beta_powers"), &self.powers),
            (name("learning_rate"), &self.lr),
        ]
    }

    /// Checks that the state is among `tensors`.
    pub fn check(&self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        for (name, t) in self.parts() {
            find(tensors, &name, &shape(t))?;
        }
        Ok(())
    }

    /// The reverse of [`save`](Self::save); call [`check`](Self::check) first.
    pub fn load(&mut self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        for (name, t) in self.parts() {
            let source = find(tensors, &name, &shape(t))?;
            t.shallow_clone()
                .f_copy_(&source.f_view(t.size().as_slice())?)?;
        }
        Ok(())
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
}

impl HostAdam {
    /// The gradient's Euclidean norm, summed in double precision in a fixed order.
    pub fn gradient_norm(&self) -> Result<f64, LearnError> {
        const LANES: usize = 8;
        let grad = self.grad.all()?;
        let mut sums = [0.0_f64; LANES];
        let mut chunks = grad.chunks_exact(LANES);
        for chunk in &mut chunks {
            for (sum, &g) in sums.iter_mut().zip(chunk) {
                *sum += f64::from(g) * f64::from(g);
            }
        }
        let rest = chunks.remainder().iter();
        let rest: f64 = rest.map(|&g| f64::from(g) * f64::from(g)).sum();
        Ok((sums.iter().sum::<f64>() + rest).sqrt())
    }

    /// The learning rate.
    pub fn rate(&self) -> Result<f64, LearnError> {
        Ok(self.lr.all()?[0])
    }

    /// Another learning rate.
    pub fn set_rate(&mut self, rate: f64) -> Result<(), LearnError> {
        self.lr.all_mut()?[0] = rate;
        Ok(())
    }

    /// One step along the gradient times `scale`, as [`Adam::step`] does it. A step that
    /// is not to be taken is not called for. The gradient is scaled in place.
    pub fn step(&mut self, scale: f64) -> Result<(), LearnError> {
        let powers = self.powers.all_mut()?;
        powers[0] *= BETA1;
        powers[1] *= BETA2;
        let lr = self.lr.all()?[0];
        let rate = (lr / (1.0 - powers[0])) as f32;
        // Exactly 1 without: the bits are those of plain Adam.
        let keep = (1.0 - lr * self.weight_decay) as f32;
        let root = (1.0 / (1.0 - powers[1]).sqrt()) as f32;
        let (scale, eps) = (scale as f32, EPS as f32);
        let (keep1, keep2) = ((1.0 - BETA1) as f32, (1.0 - BETA2) as f32);
        let theta = self.theta.all_mut()?.iter_mut();
        let moments = self.m.all_mut()?.iter_mut().zip(self.v.all_mut()?);
        for ((theta, (m, v)), g) in theta.zip(moments).zip(self.grad.all_mut()?) {
            *g *= scale;
            *m += keep1 * (*g - *m);
            *v += keep2 * (*g * *g - *v);
            *theta = keep * *theta - rate * (*m / (v.sqrt() * root + eps));
        }
        Ok(())
    }
}

/// As saved: at least one dimension.
fn shape(t: &Tensor) -> Vec<i64> {
    match t.size() {
        s if s.is_empty() => vec![1],
        s => s,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::learner::nn::Layout;

    fn scalar(x: f64) -> Tensor {
        Tensor::full([0i64; 0], x, (Kind::Float, Device::Cpu))
    }

    fn setup() -> (Params, Adam) {
        let mut layout = Layout::default();
        layout.add("w", &[3]);
        let params = Params::new(layout, Device::Cpu).unwrap();
        (params, Adam::new(3, 0.1, Device::Cpu).unwrap())
    }

    fn step(p: &mut Params, adam: &mut Adam, grad: &[f32], ok: bool) {
        p.grad.copy_(&Tensor::from_slice(grad));
        adam.step(p, &scalar(1.0), &Tensor::from(ok)).unwrap();
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
        for ((name, a), (_, b)) in adam.save().unwrap().iter().zip(&adam2.save().unwrap()) {
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
                    adam.on_host(&p).unwrap().step(1.0).unwrap();
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
