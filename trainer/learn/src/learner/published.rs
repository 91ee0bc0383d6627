//! Weights as plain numbers, for copies of a policy in other threads.

use ostler_collector::Replica;
use ostler_collector::memory::memory_as_tch;
use ostler_collector::transfer::{brought, read_into};
use ostler_sim::Groups;
use ostler_sim::device::Counts;
use ostler_sim::env::EnvSpec;
use ostler_sim::memory::MemoryError;
use tch::{Device, TchError, Tensor};

/// The task as a copy of a policy sees it that acts for `envs` environments: no critic acts,
/// and so none of its observations are needed.
pub(crate) fn acting_spec(spec: &EnvSpec, envs: usize) -> EnvSpec {
    EnvSpec {
        num_envs: envs,
        obs: Groups { policy: spec.obs.policy, critic: None },
        critic: None,
        groups: Vec::new(),
        ..spec.clone()
    }
}

/// Overwrites `out` with the numbers of all `tensors`, in their order. What crosses to the
/// host is counted.
///
/// # Errors
/// No memory; the device refuses.
pub(crate) fn publish(
    tensors: &[Tensor],
    out: &mut Vec<f32>,
    crossed: &Counts,
) -> Result<(), TchError> {
    let total: usize = tensors.iter().map(Tensor::numel).sum();
    out.clear();
    out.try_reserve_exact(total).map_err(|_| {
        memory_as_tch(MemoryError { what: "published weights".into(), bytes: 4 * total })
    })?;
    out.resize(total, 0.0);
    let mut rest = &mut out[..];
    for tensor in tensors {
        let (part, after) = rest.split_at_mut(tensor.numel());
        read_into(&brought(tensor, Device::Cpu, crossed)?, part)?;
        rest = after;
    }
    Ok(())
}

/// Gives every copy of several policies its own numbers, of which each has so many.
///
/// # Errors
/// They are not as many in all: they are of other policies.
pub(crate) fn take_each<'a>(
    copies: impl Iterator<Item = &'a mut Box<dyn Replica>>,
    counts: &[usize],
    weights: &[f32],
) -> Result<(), TchError> {
    let total: usize = counts.iter().sum();
    if total != weights.len() {
        let why = format!("{} published weights, copies have {total}", weights.len());
        return Err(TchError::Shape(why));
    }
    let mut rest = weights;
    for (copy, &count) in copies.zip(counts) {
        let (own, after) = rest.split_at(count);
        copy.take(own)?;
        rest = after;
    }
    Ok(())
}

/// The reverse of [`publish`].
///
/// # Errors
/// They are not as many: they are of another policy.
pub(crate) fn take(tensors: Vec<Tensor>, weights: &[f32]) -> Result<(), TchError> {
    let total: usize = tensors.iter().map(Tensor::numel).sum();
    if total != weights.len() {
        return Err(TchError::Shape(format!(
            "{} published weights, a copy of the policy has {total}",
            weights.len()
        )));
    }
    let mut rest = weights;
    for mut tensor in tensors {
        let (part, after) = rest.split_at(tensor.numel());
        tensor.f_copy_(&Tensor::f_from_slice(part)?.f_view_as(&tensor)?)?;
        rest = after;
    }
    Ok(())
}
