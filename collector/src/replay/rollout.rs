//! Rollouts as transitions.

use super::gather::copy;
use super::layout::{Layout, names};
use super::store::Fill;
use super::{FieldKind, ReplayError};
use crate::Rollout;
use crate::memory::{Element, HostRows};
use crate::transfer::brought;
use ostler_sim::Groups;
use ostler_sim::device::Counts;
use tch::{Device, Kind, TchError, Tensor};

/// A rollout in host memory. Where it lies on a device it was brought here.
#[derive(Debug)]
pub struct HostRollout {
    obs: HostRows<f32>,
    critic_obs: Option<HostRows<f32>>,
    final_obs: HostRows<f32>,
    final_critic_obs: Option<HostRows<f32>>,
    action: HostRows<f32>,
    reward: HostRows<f32>,
    terminated: HostRows<f32>,
    truncated: HostRows<f32>,
    valid: HostRows<f32>,
    version: HostRows<i32>,
    final_slot: HostRows<i32>,
    steps: usize,
    envs: usize,
}

/// The source of one field.
struct Source<'a> {
    words: &'a [u32],
    width: usize,
    /// First word in the transition.
    to: usize,
    /// Of a next observation: the last ones of truncated episodes.
    last: Option<&'a [u32]>,
}

impl HostRollout {
    /// Of a rollout. Copied bytes are counted.
    ///
    /// # Errors
    /// Its device fails.
    pub fn new(rollout: &Rollout, crossed: &Counts) -> Result<Self, ReplayError> {
        fn there<T: Element>(
            tensor: &Tensor,
            crossed: &Counts,
        ) -> Result<HostRows<T>, ReplayError> {
            let tensor = brought(tensor, Device::Cpu, crossed)?.f_contiguous()?;
            // SAFETY: a rollout's tensors are written all over. These rows are read alone, while
            // the rollout is borrowed from the thread that made it and nobody writes to it.
            Ok(unsafe { HostRows::new(&tensor) }?)
        }
        let here = |t: &Tensor| there::<f32>(t, crossed);
        // The critic's observations, if it has its own.
        let maybe = |obs: &Groups<Tensor>| match rollout.has_critic_obs() {
            true => here(&rollout.critic(obs)?).map(Some),
            false => Ok(None),
        };
        Ok(Self {
            obs: here(&rollout.obs.policy)?,
            critic_obs: maybe(&rollout.obs)?,
            final_obs: here(&rollout.final_obs.policy)?,
            final_critic_obs: maybe(&rollout.final_obs)?,
            action: here(&rollout.action)?,
            reward: here(&rollout.reward)?,
            terminated: here(&rollout.terminated)?,
            truncated: here(&rollout.truncated)?,
            valid: here(&rollout.valid)?,
            version: there(&rollout.version, crossed)?,
            final_slot: there(&rollout.final_slot, crossed)?,
            steps: rollout.steps as usize,
            envs: rollout.envs as usize,
        })
    }

    /// Transitions.
    pub fn rows(&self) -> usize {
        self.steps * self.envs
    }

    /// Environments.
    pub fn envs(&self) -> usize {
        self.envs
    }

    /// Hands a function that writes transition `i` (of step `i / N`, environment `i % N`) to
    /// `store`. Where the rollout does not know the version of its policy it is `version`.
    ///
    /// # Errors
    /// The layout is of another rollout, or those of `store`.
    pub fn rows_for<R>(
        &self,
        layout: &Layout,
        version: i32,
        store: impl FnOnce(&mut Fill<'_>) -> Result<R, ReplayError>,
    ) -> Result<R, ReplayError> {
        let (envs, slots) = (self.envs, self.final_slot.all()?);
        let versions = self.version.all()?;
        let (mut sources, mut version_at) = (Vec::new(), None);
        for (field, to) in layout.fields().iter().zip(layout.offsets()) {
            if field.name == names::VERSION && field.kind == FieldKind::I32 {
                version_at = Some(to);
                continue;
            }
            let (from, last) = match field.name.as_str() {
                names::OBS => (Some(&self.obs), None),
                names::CRITIC_OBS => (self.critic_obs.as_ref(), None),
                names::NEXT_OBS => (Some(&self.obs), Some(&self.final_obs)),
                names::NEXT_CRITIC_OBS => {
                    (self.critic_obs.as_ref(), self.final_critic_obs.as_ref())
                }
                names::ACTION => (Some(&self.action), None),
                names::REWARD => (Some(&self.reward), None),
                names::TERMINATED => (Some(&self.terminated), None),
                names::TRUNCATED => (Some(&self.truncated), None),
                names::VALID => (Some(&self.valid), None),
                _ => (None, None),
            };
            let all = from.map(HostRows::all).transpose()?.unwrap_or_default();
            // Observations have a row of environments more.
            let rows = match field.name.as_str() {
                names::OBS | names::CRITIC_OBS | names::NEXT_OBS | names::NEXT_CRITIC_OBS => {
                    self.rows() + envs
                }
                _ => self.rows(),
            };
            if all.len() != rows * field.width || from.is_none() {
                return Err(ReplayError::shape(
                    format!("field {:?} of a rollout", field.name),
                    format!("{rows} x {}", field.width),
                    format!("{} numbers", all.len()),
                ));
            }
            sources.push(Source {
                words: bytemuck::cast_slice(all),
                width: field.width,
                to,
                last: last.map(HostRows::all).transpose()?.map(bytemuck::cast_slice),
            });
        }
        let truncated = self.truncated.all()?;
        let valid_at = layout.find(names::VALID).map(|(to, _)| to);
        store(&mut |i, row| {
            let slot = usize::try_from(slots[i]).ok();
            for s in &sources {
                let (from, at) = match (s.last, slot) {
                    (None, _) => (s.words, i),
                    (Some(_), None) => (s.words, i + envs),
                    (Some(last), Some(slot)) => (last, slot * envs + i % envs),
                };
                copy(&from[at * s.width..][..s.width], &mut row[s.to..][..s.width]);
            }
            if let Some(at) = version_at {
                // -1: not known.
                row[at] = match versions[i] {
                    -1 => version,
                    known => known,
                } as u32;
            }
            // More truncations than there was room for: where this one ended is not known.
            if let (Some(at), true) = (valid_at, slot.is_none() && truncated[i] != 0.0) {
                row[at] = 0.0_f32.to_bits();
            }
        })
    }
}

/// The numbers of a field of all transitions of a rollout, in order, on its device.
///
/// # Errors
/// It has no such field; the device fails.
pub fn on_device(rollout: &Rollout, name: &str, version: i32) -> Result<Tensor, ReplayError> {
    let (t, n) = (rollout.steps, rollout.envs);
    let missing =
        || ReplayError::NoField { name: name.into(), has: vec!["those of a rollout".into()] };
    let now = |obs: &Tensor| obs.f_narrow(0, 0, t);
    let next = |obs: &Tensor, last: &Tensor| -> Result<Tensor, TchError> {
        let width = obs.size().last().copied().unwrap_or(0);
        let size = [t, n, width];
        let slot = rollout.final_slot.f_to_kind(Kind::Int64)?.f_unsqueeze(-1)?;
        let ended = slot.f_ge(0)?;
        let slot = slot.f_clamp_min(0)?.f_expand(size, true)?;
        let last = last.f_gather(0, &slot, false)?;
        last.f_where_self(&ended, &obs.f_narrow(0, 1, t)?)
    };
    let critic = |obs: &Groups<Tensor>| match rollout.has_critic_obs() {
        true => Ok(rollout.critic(obs)?),
        false => Err(missing()),
    };
    Ok(match name {
        names::OBS => now(&rollout.obs.policy)?,
        names::CRITIC_OBS => now(&critic(&rollout.obs)?)?,
        names::NEXT_OBS => next(&rollout.obs.policy, &rollout.final_obs.policy)?,
        names::NEXT_CRITIC_OBS => next(&critic(&rollout.obs)?, &critic(&rollout.final_obs)?)?,
        names::ACTION => rollout.action.shallow_clone(),
        names::REWARD => rollout.reward.shallow_clone(),
        names::TERMINATED => rollout.terminated.shallow_clone(),
        names::TRUNCATED => rollout.truncated.shallow_clone(),
        names::VALID => {
            // More truncations than there was room for: where these ended is not known.
            let lost = rollout.final_slot.f_lt(0)?;
            let lost = lost.f_logical_and(&rollout.truncated.f_ne(0.0)?)?;
            rollout.valid.f_mul(&lost.f_logical_not()?)?
        }
        names::VERSION => {
            let unknown = rollout.version.f_lt(0)?;
            rollout.version.f_masked_fill(&unknown, i64::from(version))?
        }
        _ => return Err(missing()),
    })
}
