//! Transitions as the discriminator sees them: consecutive observations of one episode.

use crate::learner::error::LearnError;
use crate::learner::tensors::zeros;
use ostler_collector::Rollout;
use ostler_collector::peers::{Group, Place};
use tch::{Device, Kind, TchError, Tensor};

/// Cuts rollouts of `N` environments into stretches of `k` observations, of which it takes `W`
/// columns.
#[derive(Debug)]
pub(super) struct Windows {
    /// The columns, int64 `[W]`.
    columns: Tensor,
    /// Observations of a stretch, `k`, 2 or more.
    steps: i64,
    /// Where stretches are of more than two: the last observations of the last rollout, the one
    /// after its last step included, and behind each 1 where the episode went on from it to the
    /// next, of all processes' rows `[N,k - 1,W + 1]`.
    before: Option<Tensor>,
    group: Group,
    /// Which of the rows are this process's.
    place: Place,
}

impl Windows {
    /// None has been seen yet.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(super) fn new(
        columns: &[i64],
        steps: i64,
        envs: i64,
        device: Device,
    ) -> Result<Self, LearnError> {
        let size = [envs, steps - 1, columns.len() as i64 + 1];
        let before = (steps > 2).then(|| zeros("observations before", &size, Kind::Float, device));
        Ok(Self {
            columns: Tensor::f_from_slice(columns)?.f_to_device(device)?,
            steps,
            before: before.transpose()?,
            group: Group::default(),
            place: Place { first: 0, all: envs },
        })
    }

    /// From now on with other processes.
    ///
    /// # Errors
    /// Memory does not suffice.
    pub(super) fn join(&mut self, group: &Group, place: Place) -> Result<(), LearnError> {
        if let Some(before) = &mut self.before {
            let mut size = before.size();
            size[0] = place.all;
            *before = zeros("observations before", &size, Kind::Float, before.device())?;
        }
        (self.group, self.place) = (group.clone(), place);
        Ok(())
    }

    /// Columns of an observation, `W`.
    pub(super) fn width(&self) -> i64 {
        self.columns.numel() as i64
    }

    /// What the next rollout's first stretches need of this one's observations.
    pub(super) fn before(&self) -> Option<&Tensor> {
        self.before.as_ref()
    }

    /// The stretch that ends behind every step, `[T N,k W]`, and 1 where all of it is there, of one
    /// episode, `[T N,1]`; else it is 0. With a time-out it ends with the episode's last
    /// observation, which a termination does not leave.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(super) fn of(&mut self, rollout: &Rollout) -> Result<[Tensor; 2], TchError> {
        let (t, n, w, k) = (rollout.steps, rollout.envs, self.width(), self.steps);
        let rows = |critic: &Option<Tensor>, policy: &Tensor| {
            critic.as_ref().unwrap_or(policy).f_index_select(2, &self.columns)
        };
        let obs = rows(&rollout.obs.critic, &rollout.obs.policy)?;
        let last = rows(&rollout.final_obs.critic, &rollout.final_obs.policy)?;
        let timed_out = rollout.final_slot.f_ge(0)?;
        let slot = rollout.final_slot.f_clamp_min(0)?.f_to_kind(Kind::Int64)?;
        let last = last.f_gather(0, &slot.f_unsqueeze(-1)?.f_expand([t, n, w], false)?, false)?;
        let next = last.f_where_self(&timed_out.f_unsqueeze(-1)?, &obs.f_narrow(0, 1, t)?)?;
        let seen = rollout.truncated.f_le(0.0)?.f_logical_or(&timed_out)?;
        let seen = seen.f_logical_and(&rollout.terminated.f_le(0.0)?)?;
        let mut weight = seen.f_to_kind(Kind::Float)?.f_mul(&rollout.valid)?;

        let went_on = rollout.ended()?.f_logical_not()?.f_to_kind(Kind::Float)?;
        let (all, went_on) = match self.earlier(&obs.f_get(0)?)? {
            Some((rows, links)) => {
                (Tensor::f_cat(&[&rows, &obs], 0)?, Tensor::f_cat(&[&links, &went_on], 0)?)
            }
            None => (obs, went_on),
        };
        let frames = (0..k - 1).map(|i| all.f_narrow(0, i, t));
        let mut frames = frames.collect::<Result<Vec<_>, _>>()?;
        frames.push(next);
        for i in 0..k - 2 {
            let _ = weight.f_mul_(&went_on.f_narrow(0, i, t)?)?;
        }
        if let Some(before) = &self.before {
            let links = went_on.f_narrow(0, t, k - 2)?;
            let links = Tensor::f_cat(
                &[&links, &links.f_new_ones([1, n], (Kind::Float, links.device()))?],
                0,
            )?;
            let rows = all.f_narrow(0, t, k - 1)?.f_nan_to_num(0.0, 0.0, 0.0)?;
            let rows = Tensor::f_cat(&[rows, links.f_unsqueeze(-1)?], 2)?;
            let rows = self.group.among(&rows.f_transpose(0, 1)?, 0, self.place)?;
            before.shallow_clone().f_copy_(&rows)?;
        }
        let weight = weight.f_view([t * n, 1])?;
        let windows = Tensor::f_stack(&frames, 2)?.f_view([t * n, k * w])?;
        // What is not finite would be so with a weight of 0, too.
        let windows = windows.f_where_self(&weight.f_gt(0.0)?, &windows.f_zeros_like()?)?;
        Ok([windows.f_nan_to_num(0.0, 0.0, 0.0)?, weight])
    }

    /// Observations before the first of a rollout, `[k - 2,N,W]`, and where the episode went on
    /// from each to the next: nowhere if this rollout does not begin where the last one ended.
    fn earlier(&self, first: &Tensor) -> Result<Option<(Tensor, Tensor)>, TchError> {
        let Some(before) = &self.before else { return Ok(None) };
        let before = before.f_narrow(0, self.place.first, first.size2()?.0)?;
        let (w, count) = (self.width(), self.steps - 2);
        let all = before.f_transpose(0, 1)?;
        let rows = all.f_narrow(2, 0, w)?;
        let same = rows.f_get(count)?.f_eq_tensor(first)?.f_all_dim(-1, false)?;
        let links = all.f_select(2, w)?.f_narrow(0, 0, count)?;
        let links = links.f_mul(&same.f_to_kind(Kind::Float)?)?;
        Ok(Some((rows.f_narrow(0, 0, count)?, links)))
    }
}
