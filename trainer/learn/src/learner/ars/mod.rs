//! Augmented random search: a matrix for each environment, whose agents share it; no gradient.
//!
//! Source: Mania, Guy and Recht, "Simple random search of static linear policies is
//! competitive for reinforcement learning", 2018, algorithm 2 (V2-t). Environments `2 d` and
//! `2 d + 1` act by `M + nu delta_d` and `M - nu delta_d` throughout a rollout; the
//! matrix then moves along the directions that made a difference.
//!
//! Reading order: [`Ars::update`](crate::learner::Learner::update) -> `policy` (who acts by
//! which matrix).

mod config;
mod method;
mod policy;
#[cfg(test)]
mod tests;

pub use config::ArsConfig;
pub use method::ArsMethod;
pub use policy::LinearPolicy;

use super::fault::{FaultTime, Faults};
use super::state::{Count, RateShare};
use super::{Family, Learner, State, TrainedPolicy, UpdateStats, error::LearnError};
use ostler_collector::Rollout;
use ostler_collector::peers::{Group, Place};
use ostler_collector::transfer::{brought, host_doubles};
use ostler_sim::device::Counts;
use ostler_sim::env::EnvSpec;
use std::time::Instant;
use tch::{Device, Kind, TchError, Tensor};

/// The learner.
#[derive(Debug)]
pub struct Ars {
    config: ArsConfig,
    policy: LinearPolicy,
    state: State,
    /// Updates done; keys the directions.
    updates: Count,
    rate_share: RateShare,
    /// The step of the last update `[O,A]`; a drill may spoil it.
    step: Tensor,
    /// The difference that each direction made is judged by it; a drill may spoil it.
    spread: Tensor,
    /// Those that learn together, and which rows are this one's.
    group: Group,
    place: Place,
    faults: Faults,
    crossed: Counts,
}

/// Returns of the directions.
struct DirectionReturns {
    /// Returns with and against each direction `[D]`, double.
    returns: [Tensor; 2],
    /// 1 where both count and the direction is among the best `[D]`, double.
    chosen: Tensor,
}

impl Ars {
    /// `seed` keys the directions.
    ///
    /// # Errors
    /// A key that cannot be used, or memory does not suffice.
    pub fn new(
        config: &ArsConfig,
        actor: &super::ActorConfig,
        spec: &EnvSpec,
        seed: u64,
        device: Device,
    ) -> Result<Self, LearnError> {
        let policy = LinearPolicy::new(config, actor, spec, seed, device)?;
        let place = Place { first: 0, all: spec.rows() as i64 };
        Self::with_policy(config, policy, Group::default(), place)
    }

    /// The same for a process that learns with others.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub(super) fn among(
        config: &ArsConfig,
        actor: &super::ActorConfig,
        spec: &EnvSpec,
        drawn: (u64, Device),
        (group, envs): (&Group, usize),
    ) -> Result<Self, LearnError> {
        let place = group.place(envs, spec.rows());
        let policy = LinearPolicy::among(config, actor, spec, drawn, group, place)?;
        Self::with_policy(config, policy, group.clone(), place)
    }

    fn with_policy(
        config: &ArsConfig,
        policy: LinearPolicy,
        group: Group,
        place: Place,
    ) -> Result<Self, LearnError> {
        if let Some(error) = config.validate().into_iter().next() {
            return Err(error.into());
        }
        let _no_grad = tch::no_grad_guard();
        let device = policy.device();
        let (inputs, outputs) = policy.size();
        let step = Tensor::f_zeros([inputs, outputs], (Kind::Float, device))?;
        let spread = Tensor::f_ones([0i64; 0], (Kind::Double, device))?;
        let mut state = State::default();
        policy.declare(&mut state)?;
        state.mark("gradient", &step.f_view([-1])?);
        state.mark("parameters", policy.matrix());
        state.mark("loss", &spread);
        Ok(Self {
            updates: state.count("ars.updates"),
            rate_share: state.rate_share("ars.lr_scale"),
            state: state.ready()?,
            config: config.clone(),
            policy,
            step,
            spread,
            group,
            place,
            faults: Faults::default(),
            crossed: Counts::default(),
        })
    }

    /// Sums of rewards of each row's first episode in the rollout `[N]`, and 1 where all of
    /// that was valid `[N]`, double.
    fn returns(&self, rollout: &Rollout) -> Result<[Tensor; 2], TchError> {
        let double = |t: &Tensor| {
            let t = brought(t, self.policy.device(), &self.crossed)?;
            t.f_to_kind(Kind::Double)
        };
        let over = double(&rollout.terminated)?.f_add(&double(&rollout.truncated)?)?;
        // Ends before this step: the step that ends the episode still counts.
        let before = over.f_cumsum(0, Kind::Double)?.f_sub(&over)?;
        let first = before.f_eq(0.0)?.f_to_kind(Kind::Double)?;
        let reward = double(&rollout.reward)?.f_sub_scalar(self.config.alive_bonus)?;
        let along = &[0i64][..];
        let broken = double(&rollout.valid)?
            .f_neg()?
            .f_add_scalar(1.0)?
            .f_mul(&first)?
            .f_sum_dim_intlist(along, false, Kind::Double)?;
        let sum = reward.f_mul(&first)?.f_sum_dim_intlist(along, false, Kind::Double)?;
        let finite = sum.f_isfinite()?.f_to_kind(Kind::Double)?;
        let counts = broken.f_eq(0.0)?.f_to_kind(Kind::Double)?.f_mul(&finite)?;
        Ok([sum.f_nan_to_num(0.0, 0.0, 0.0)?, counts])
    }

    /// Which directions count: the best `top_directions` by the better of their two returns.
    fn judge(&self, rollout: &Rollout) -> Result<DirectionReturns, TchError> {
        let among = |own: Tensor| self.group.among(&own, 0, self.place);
        let [sum, counts] = self.returns(rollout)?;
        let (sum, counts) = (among(sum)?, among(counts)?);
        // Of a world: its agents' together, if all of them count.
        let agents = |t: &Tensor| t.f_view([-1, self.policy.agents()]);
        let along = &[1i64][..];
        let sum = agents(&sum)?.f_sum_dim_intlist(along, false, Kind::Double)?;
        let counts = agents(&counts)?.f_amin(along, false)?;
        let directions = self.policy.directions();
        let pairs = |t: &Tensor| t.f_narrow(0, 0, 2 * directions)?.f_view([directions, 2]);
        let (sum, counts) = (pairs(&sum)?, pairs(&counts)?);
        let both = counts.f_select(1, 0)?.f_mul(&counts.f_select(1, 1)?)?;
        let (plus, minus) = (sum.f_select(1, 0)?, sum.f_select(1, 1)?);
        let wanted = match self.config.top_directions as i64 {
            0 => directions,
            top => top.min(directions),
        };
        let best = plus.f_maximum(&minus)?;
        let best = best.f_masked_fill(&both.f_eq(0.0)?, f64::NEG_INFINITY)?;
        let (_, top) = best.f_topk(wanted, 0, true, true)?;
        let chosen = both.f_zeros_like()?.f_index_fill(0, &top, 1.0)?;
        Ok(DirectionReturns { returns: [plus, minus], chosen: chosen.f_mul(&both)? })
    }
}

impl Learner for Ars {
    fn update(&mut self, rollout: &Rollout) -> Result<UpdateStats, LearnError> {
        let start = Instant::now();
        let _no_grad = tch::no_grad_guard();
        let before = self.crossed.traffic();
        self.faults.minibatch = 0;
        self.poison(FaultTime::Begin)?;
        let DirectionReturns { returns, chosen } = self.judge(rollout)?;
        let [plus, minus] = &returns;
        let count = chosen.f_sum(Kind::Double)?;
        // Standard deviation of all returns that are used.
        let n = count.f_mul_scalar(2.0)?.f_clamp_min(1.0)?;
        let mean = plus.f_add(minus)?.f_mul(&chosen)?;
        let mean = mean.f_sum(Kind::Double)?.f_div(&n)?;
        let square = |t: &Tensor| t.f_sub(&mean)?.f_square()?.f_mul(&chosen);
        let squares = square(plus)?.f_add(&square(minus)?)?;
        let spread = squares.f_sum(Kind::Double)?.f_div(&n)?.f_sqrt()?;
        self.spread.f_copy_(&spread)?;

        let rate = self.config.step_size * self.rate_share.get();
        let used = count.f_clamp_min(1.0)?.f_mul(&spread.f_clamp_min(1e-8)?)?;
        let weight = plus.f_sub(minus)?.f_mul(&chosen)?;
        let weight = weight.f_mul_scalar(rate)?.f_div(&used)?;
        self.step.f_copy_(&self.group.total(self.policy.along(&weight)?)?)?;
        self.poison(FaultTime::Judged)?;
        let norm = self.step.f_norm()?.f_to_kind(Kind::Double)?;
        // Not a step: no direction counted, or something is not a number.
        let ok = norm
            .f_isfinite()?
            .f_logical_and(&self.spread.f_isfinite()?)?
            .f_logical_and(&count.f_gt(0.0)?)?;
        self.policy.step(&self.step, &ok)?;

        self.policy.merge(rollout, &self.crossed)?;
        self.updates.add(1);
        self.policy.perturb(self.updates.get())?;
        let row = |t: &Tensor| t.f_to_kind(Kind::Double)?.f_view([1]);
        let valid = brought(&rollout.valid, self.policy.device(), &self.crossed)?;
        let invalid = valid.f_neg()?.f_add_scalar(1.0)?.f_sum(Kind::Double)?;
        let invalid = self.group.total(invalid)?;
        let numbers = [
            row(&ok)?,
            row(&norm)?,
            row(&mean)?,
            row(&count)?,
            row(&invalid)?,
            self.state.magnitude()?,
        ];
        self.crossed.fetched();
        let x = host_doubles(&Tensor::f_cat(&numbers, 0)?)?;
        let taken = x[0] > 0.0;
        let skipped = u64::from(!taken);
        let nothing = u64::from(x[3] == 0.0);
        let mut stats = UpdateStats {
            of: Family::Search,
            grad_norm: x[1],
            learning_rate: rate,
            mean_std: self.config.noise,
            minibatches: 1,
            skipped,
            skipped_no_valid: nothing,
            skipped_gradient: skipped - nothing.min(skipped),
            invalid: x[4] as u64,
            non_finite_params: !x[5].is_finite(),
            search_return: x[2],
            directions: x[3] as u64,
            ..UpdateStats::none()
        };
        if self.policy.device() != Device::Cpu {
            stats.traffic = self.crossed.traffic().since(before);
        }
        stats.update_s = start.elapsed().as_secs_f64();
        Ok(stats)
    }

    fn policy(&self) -> &dyn TrainedPolicy {
        &self.policy
    }

    fn policy_mut(&mut self) -> &mut dyn TrainedPolicy {
        &mut self.policy
    }

    fn wants_warm_up(&self) -> bool {
        self.policy.normalizes()
    }

    fn warm_up(&mut self, rollout: &Rollout) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        self.policy.merge(rollout, &self.crossed)
    }

    fn set_progress(&mut self, _: f64) -> Result<(), LearnError> {
        Ok(())
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    fn renew(&mut self, loaded: Option<&[(String, Tensor)]>) -> Result<(), LearnError> {
        if let Some(loaded) = loaded {
            self.policy.renew(loaded)?;
        }
        self.policy.perturb(self.updates.get())
    }

    fn restart(&mut self, _: f64) -> Result<(), LearnError> {
        self.policy.perturb(self.updates.get())
    }

    fn faults(&mut self) -> &mut Faults {
        &mut self.faults
    }
}

impl Ars {
    /// Puts faults that are due here into the update.
    fn poison(&mut self, place: FaultTime) -> Result<(), LearnError> {
        if self.faults.poison(&self.state, place, self.updates.get())? {
            self.policy.derive()?;
        }
        Ok(())
    }
}
