//! What critics learn, the mean of the return or its distribution: targets, losses and their
//! gradients, written by hand.
//!
//! Sources: Fujimoto et al. 2018: twin critics; Bellemare et al. 2017, algorithm 1: the
//! projection of a shifted distribution onto the atoms.

use super::critics::CriticSpace;
use super::inputs::Inputs;
use super::method::{sum, weighted};
use super::section::Section;
use tch::{Device, Kind, TchError, Tensor};

/// Meaning of the critics' outputs `[B,K]`.
#[derive(Debug)]
pub(super) struct Values {
    /// Outputs are logits of these returns; without them, the mean itself.
    atoms: Option<Atoms>,
    /// The critic that expects less counts; else each has a target of its own, and the actor
    /// follows their mean.
    use_cdq: bool,
    /// Which one expects less is asked before what it expects is moved by the reward and
    /// clipped to the atoms, as in FlashSAC; else after, as in FastTD3.
    before: bool,
}

/// The returns that critics tell apart.
#[derive(Debug)]
struct Atoms {
    low: f64,
    high: f64,
    /// Between neighbours.
    gap: f64,
    count: i64,
    /// All of them `[1,K]`.
    values: Tensor,
}

impl Values {
    /// Of `count` outputs for returns from `low` to `high`; of one, the mean.
    ///
    /// # Errors
    /// libtorch refuses.
    pub(super) fn new(
        count: usize,
        [low, high]: [f64; 2],
        (use_cdq, before): (bool, bool),
        device: Device,
    ) -> Result<Self, TchError> {
        let atoms = (count > 1).then(|| Atoms::new(count as i64, [low, high], device));
        Ok(Self { atoms: atoms.transpose()?, use_cdq, before })
    }

    /// Targets of both critics `[B,K]` from their slow copies' outputs, and from rewards and
    /// factors of what follows `[B,1]`.
    pub(super) fn targets(
        &self,
        [a, b]: &[Tensor; 2],
        reward: &Tensor,
        bootstrap: &Tensor,
    ) -> Result<[Tensor; 2], TchError> {
        let Some(atoms) = &self.atoms else {
            let target = |q: &Tensor| reward.f_addcmul(bootstrap, q);
            if !self.use_cdq {
                return Ok([target(a)?, target(b)?]);
            }
            let less = target(&a.f_minimum(b)?)?;
            return Ok([less.shallow_clone(), less]);
        };
        let p = [a.f_softmax(1, Kind::Float)?, b.f_softmax(1, Kind::Float)?];
        let projected = [&p[0], &p[1]].map(|p| atoms.project(p, reward, bootstrap));
        let [a, b] = projected;
        let (a, b) = (a?, b?);
        if !self.use_cdq {
            return Ok([a, b]);
        }
        let expected = if self.before { [&p[0], &p[1]] } else { [&a, &b] };
        let first = atoms.mean(expected[0])?.f_lt_tensor(&atoms.mean(expected[1])?)?;
        let less = a.f_where_self(&first, &b)?;
        Ok([less.shallow_clone(), less])
    }

    /// The loss of the outputs in `space` and the mean target, into the section; gradients
    /// of the outputs, into the space. Returns how wrong both were about each sample `[B]`.
    pub(super) fn losses(
        &self,
        space: &CriticSpace,
        targets: &[Tensor; 2],
        x: &Inputs,
        section: &mut Section,
    ) -> Result<Tensor, TchError> {
        let mut loss = x.total.f_zeros_like()?;
        let mut size = x.reward.f_zeros_like()?;
        for (i, target) in targets.iter().enumerate() {
            let (out, d) = (&space.out[i], &space.d_out[i]);
            let error = match &self.atoms {
                None => {
                    let error = out.f_sub(target)?;
                    let _ = error.f_mul_out(d, &x.weight)?;
                    let _ = loss.f_add_(&sum(&error.f_mul(d)?)?.f_mul_scalar(0.5)?)?;
                    error
                }
                Some(atoms) => {
                    let log_p = out.f_log_softmax(1, Kind::Float)?;
                    let along = &[1i64][..];
                    let entropy = target.f_mul(&log_p)?;
                    let entropy = entropy.f_sum_dim_intlist(along, true, Kind::Float)?;
                    let _ = loss.f_sub_(&weighted(&entropy, &x.weight)?)?;
                    // Targets add up to 1, so this is the gradient of the cross entropy.
                    let p = log_p.f_exp()?;
                    let _ = p.f_sub(target)?.f_mul_out(d, &x.weight)?;
                    atoms.mean(&p)?.f_sub(&atoms.mean(target)?)?
                }
            };
            let _ = size.f_add_(&error.f_abs()?)?;
        }
        section.losses(&x.total, &loss)?;
        section.own(0, &weighted(&self.mean(&targets[0])?, &x.weight)?)?;
        size.f_mul_scalar(0.5)?.f_view([-1])
    }

    /// What the outputs in `space` say that actions are worth `[B,1]`; the gradient of minus
    /// its mean with these weights `[B,1]` goes into the space.
    pub(super) fn of_actions(
        &self,
        space: &CriticSpace,
        weight: &Tensor,
    ) -> Result<Tensor, TchError> {
        let p = |out: &Tensor| match self.atoms {
            Some(_) => out.f_softmax(1, Kind::Float),
            None => Ok(out.shallow_clone()),
        };
        let p = [p(&space.out[0])?, p(&space.out[1])?];
        let value = [self.mean(&p[0])?, self.mean(&p[1])?];
        let share = match self.use_cdq {
            // The smaller of the two counts, and it alone has a gradient.
            true => value[0].f_le_tensor(&value[1])?.f_to_kind(Kind::Float)?,
            false => value[0].f_full_like(0.5)?,
        };
        let shares = [share.shallow_clone(), share.f_neg()?.f_add_scalar(1.0)?];
        let mut counts = weight.f_zeros_like()?;
        for i in 0..2 {
            let worth = shares[i].f_mul(weight)?.f_neg()?;
            match &self.atoms {
                None => space.d_out[i].shallow_clone().f_copy_(&worth),
                // d(mean)/d(logit k) is p_k (z_k - mean).
                Some(atoms) => {
                    let slope = atoms.values.f_sub(&value[i])?.f_mul(&p[i])?;
                    slope.f_mul_out(&space.d_out[i], &worth).map(|_| ())
                }
            }?;
            let _ = counts.f_add_(&shares[i].f_mul(&value[i])?)?;
        }
        Ok(counts)
    }

    /// Expected return `[B,1]` of a target, or of probabilities.
    fn mean(&self, p: &Tensor) -> Result<Tensor, TchError> {
        match &self.atoms {
            Some(atoms) => atoms.mean(p),
            None => Ok(p.shallow_clone()),
        }
    }
}

impl Atoms {
    fn new(count: i64, [low, high]: [f64; 2], device: Device) -> Result<Self, TchError> {
        let values = Tensor::f_linspace(low, high, count, (Kind::Float, device))?;
        let gap = (high - low) / (count - 1) as f64;
        Ok(Self { low, high, gap, count, values: values.f_view([1, count])? })
    }

    /// The distribution of `reward + bootstrap Z` on the atoms, where `Z` has
    /// probabilities `p [B,K]` on them: each shifted atom's share goes to its two
    /// neighbours, the nearer one gets more. `reward` and `bootstrap` are `[B,1]`.
    fn project(&self, p: &Tensor, reward: &Tensor, bootstrap: &Tensor) -> Result<Tensor, TchError> {
        let shifted = bootstrap.f_mul(&self.values)?.f_add(reward)?;
        let place =
            shifted.f_clamp(self.low, self.high)?.f_sub_scalar(self.low)?.f_div_scalar(self.gap)?;
        // A reward that is not a number has no place; its loss is not finite either.
        let below = place.f_nan_to_num(0.0, 0.0, 0.0)?.f_floor()?;
        let below = below.f_clamp(0.0, (self.count - 1) as f64)?;
        let share = place.f_sub(&below)?;
        let index = below.f_to_kind(Kind::Int64)?;
        let up = p.f_mul(&share)?;
        let mut out = p.f_zeros_like()?;
        let _ = out.f_scatter_add_(1, &index, &p.f_sub(&up)?)?;
        let above = index.f_add_scalar(1)?.f_clamp_max(self.count - 1)?;
        let _ = out.f_scatter_add_(1, &above, &up)?;
        Ok(out)
    }

    /// Expected return `[B,1]` of probabilities `p [B,K]`.
    fn mean(&self, p: &Tensor) -> Result<Tensor, TchError> {
        p.f_mul(&self.values)?.f_sum_dim_intlist(&[1i64][..], true, Kind::Float)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_collector::transfer::host_numbers;

    fn project(p: &[f32], reward: f64, bootstrap: f64) -> Vec<f32> {
        let column = |x: f64| Tensor::full([1, 1], x, (Kind::Float, Device::Cpu));
        let p = Tensor::from_slice(p).view([1, 5]);
        let atoms = Atoms::new(5, [-2.0, 2.0], Device::Cpu).unwrap();
        let out = atoms.project(&p, &column(reward), &column(bootstrap));
        host_numbers(&out.unwrap()).unwrap()
    }

    #[test]
    fn a_shifted_distribution_lands_on_its_neighbours() {
        let p = [0.0, 0.0, 1.0, 0.0, 0.0];
        assert_eq!(project(&p, 1.0, 0.9), [0.0, 0.0, 0.0, 1.0, 0.0]);
        assert_eq!(project(&p, 0.25, 1.0), [0.0, 0.0, 0.75, 0.25, 0.0]);
        // At the end of an episode only the reward is left, whatever was expected.
        let p = [0.2; 5];
        let ended = project(&p, -0.5, 0.0);
        assert!((ended[1] - 0.5).abs() < 1e-6 && (ended[2] - 0.5).abs() < 1e-6);
        // Values beyond the last atom stay on it.
        assert_eq!(project(&p, 9.0, 1.0)[4], 1.0);
        assert_eq!(project(&p, -9.0, 1.0)[0], 1.0);
    }

    #[test]
    fn nothing_is_lost_and_the_mean_moves_as_it_should() {
        let p = [0.1, 0.2, 0.4, 0.2, 0.1];
        let q = project(&p, 0.3, 0.5);
        assert!((q.iter().sum::<f32>() - 1.0).abs() < 1e-6);
        let mean: f32 = q.iter().zip([-2.0, -1.0, 0.0, 1.0, 2.0]).map(|(p, z)| p * z).sum();
        assert!((mean - 0.3).abs() < 1e-6, "{mean}");
    }
}
