//! The end of a minibatch: does the policy still learn, are the numbers good, how long is
//! the step, the step. Where tensors lie on the host this works on their memory; on a device
//! it is kernels of the same source (`trainer/kernels/finish.cuh`), and nothing is read back.

use super::blocks::{Blocks, Inputs};
use super::stats::Judge;
use super::{Ppo, PpoConfig, Schedule};
use crate::learner::error::LearnError;
use crate::learner::nn::HostAdam;
use ostler_collector::memory::HostRows;
use ostler_collector::peers::Group;
use ostler_collector::transfer::host_number;
use tch::{TchError, Tensor};

/// By how much the learning rate moves when the divergence is out of its range.
const FACTOR: f64 = 1.5;

/// Views of the minibatches' buffers, on the host; good for one update, in which no
/// tensor is replaced.
#[derive(Debug)]
pub(super) struct Host {
    theta: HostRows<f32>,
    grad: HostRows<f32>,
    x_actor: HostRows<f32>,
    x_critic: Option<HostRows<f32>>,
    packed: HostRows<f32>,
    /// Of a recurrent actor: hidden states, and where they come from the step before.
    memory: Option<[HostRows<f32>; 2]>,
    stats: HostRows<f32>,
    adam: HostAdam,
    judge: Judge,
    /// The divergence at which the policy stops.
    stop: f64,
}

impl Host {
    /// Gradients and means of the samples that `blocks` has taken; `limits`: how far a value may
    /// move, and how much a teacher counts. Without `policy` only the value part is computed.
    /// Returns how many of them count, and the number that the means were divided by.
    pub(super) fn run(
        &mut self,
        blocks: &mut Blocks,
        config: &PpoConfig,
        policy: bool,
        limits: [f32; 2],
        group: &Group,
    ) -> Result<(f32, f32), LearnError> {
        let inputs = Inputs {
            theta: self.theta.all()?,
            x_actor: self.x_actor.all()?,
            x_critic: self.x_critic.as_ref().map(HostRows::all).transpose()?,
            packed: self.packed.all()?,
            memory: match &self.memory {
                Some([hidden, keep]) => Some([hidden.all()?, keep.all()?]),
                None => None,
            },
        };
        blocks.pack(inputs.theta);
        let index = blocks.samples();
        let (terms, counted) = blocks.terms(config, limits, inputs, group)?;
        let out = (self.grad.all_mut()?, self.stats.all_mut()?);
        blocks.run(inputs, index, &terms, policy, out);
        Ok((counted, terms.samples))
    }

    /// Whether the policy has not stopped.
    pub(super) fn policy_learns(&self) -> Result<bool, LearnError> {
        Ok(!self.judge.has_stopped()?)
    }

    /// After the losses: whether the policy takes this step.
    pub(super) fn policy_goes_on(&mut self) -> Result<bool, LearnError> {
        self.judge.policy_goes_on(self.stop)
    }
}

impl Ppo {
    /// Views for the coming update, where tensors lie on the host.
    ///
    /// # Errors
    /// They lie on a device.
    pub(super) fn host(&self) -> Result<Host, LearnError> {
        let params = &self.policy.params;
        // SAFETY: parameters, gradient, statistics and samples have initial values; the written
        // ranges overlap nothing else. `run` alone borrows slices, and nothing of libtorch's
        // runs meanwhile but for addresses.
        unsafe {
            let critic = self.samples.x_critic.as_ref();
            Ok(Host {
                theta: HostRows::new(&params.theta)?,
                grad: HostRows::new(&params.grad)?,
                x_actor: HostRows::new(&self.samples.x_actor)?,
                x_critic: critic.map(|x| HostRows::new(x)).transpose()?,
                packed: HostRows::new(&self.samples.packed)?,
                memory: match &self.samples.memory {
                    Some(memory) => {
                        Some([HostRows::new(&memory.hidden)?, HostRows::new(&memory.keep)?])
                    }
                    None => None,
                },
                stats: HostRows::new(self.accumulator.losses())?,
                adam: self.adam.on_host(params, self.config.max_grad_norm)?,
                judge: self.accumulator.on_host()?,
                stop: host_number(&self.stop)?,
            })
        }
    }

    pub(super) fn finish_on_host(
        &mut self,
        host: &mut Host,
        policy: bool,
    ) -> Result<(), LearnError> {
        let limit = self.config.max_grad_norm;
        let parts = host.adam.parts();
        let mut norms = [0.0; 2];
        for (part, norm) in norms.iter_mut().enumerate().take(parts) {
            if part > 0 || policy {
                *norm = host.adam.gradient_norm(part)?;
            }
        }
        if !host.judge.judge(policy, norms, limit)? {
            return Ok(());
        }
        for (part, norm) in norms.into_iter().enumerate().take(parts) {
            if part > 0 || policy {
                host.adam.step(part, norm)?;
            }
        }
        Ok(())
    }

    /// The end of a minibatch whose gradient is there.
    pub(super) fn finish(&mut self) -> Result<(), LearnError> {
        let Some(adam) = self.adam.on_device(self.config.max_grad_norm) else {
            let mut host = self.host()?;
            let policy = host.policy_goes_on()?;
            return self.finish_on_host(&mut host, policy);
        };
        let norm = |part| self.adam.gradient(&self.policy.params, part)?.f_norm();
        let norms: Vec<Tensor> = (0..self.adam.parts()).map(norm).collect::<Result<_, _>>()?;
        self.accumulator.finish(adam, &self.stop, &norms)?;
        self.adam.step(&mut self.policy.params)
    }

    /// The divergence that the update is to have. That of a step grows with its square.
    pub(super) fn desired(&self) -> Result<Tensor, TchError> {
        let square = self.signal.f_mul(&self.signal)?;
        let last = self.config.final_kl_share;
        square.f_mul_scalar(self.config.desired_kl * (last + (1.0 - last) * self.left))
    }

    /// At the end of an update the policy's learning rate follows its divergence, without
    /// reading it back.
    pub(super) fn adapt(&mut self) -> Result<(), TchError> {
        if self.config.schedule != Schedule::Adaptive {
            return Ok(());
        }
        let [kl, stopped, stepped] = self.accumulator.end()?;
        let desired = self.desired()?;
        let far = kl.f_gt_tensor(&desired.f_mul_scalar(2.0)?)?;
        let far = far.f_logical_or(&stopped)?;
        let near = kl.f_lt_tensor(&desired.f_mul_scalar(0.5)?)?.f_logical_and(&kl.f_gt(0.0)?)?;
        let lr = self.adam.rate(0);
        // Bounds hold only in the direction of the change: a rate that was set outside
        // them stays until the divergence moves it.
        let (low, high) = self.rate_bounds();
        let down = lr.f_div_scalar(FACTOR)?.f_clamp_min(low)?;
        let up = lr.f_mul_scalar(FACTOR)?.f_clamp_max(high)?;
        let moved = down.f_where_self(&far, &up.f_where_self(&near, lr)?)?;
        let moved = moved.f_where_self(&stepped, lr)?;
        lr.shallow_clone().f_copy_(&moved)
    }
}
