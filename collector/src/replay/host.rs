//! `replay.storage = "host"`: transitions in the host's memory; and rollouts that are brought
//! there.

use super::batch::{Draw, Slot, copy};
use super::storage::{About, Fill, Memory, New, Storage};
use super::transition::{FieldKind, Layout, Ring, Rows, Window, names};
use crate::Rollout;
use crate::error::ReplayError;
use crate::memory::{Element, HostRows};
use crate::transfer::brought;
use memmap2::{Advice, MmapMut, MmapOptions};
use ostler_sim::device::Counts;
use ostler_sim::memory::MemoryError;
use std::ops::Range;
use tch::{Device, Tensor};

/// What a configuration says of it.
pub(crate) const HOST: About = About {
    name: "host",
    in_file: false,
    near: false,
    in_memory: |all, _| all,
    key: "replay.capacity",
    instead: "; or replay.storage = \"memmap\" or \"tiered\"",
    open: |site| {
        let ring = HostRing::new(site.window.physical(), site.layout.words())?;
        site.kept(ring)
    },
};

/// `physical` places of `words` 32-bit words each. Memory is taken as places are written.
#[derive(Debug)]
pub(crate) struct HostRing {
    map: MmapMut,
    words: usize,
    physical: u64,
}

impl HostRing {
    pub(crate) fn new(physical: u64, words: usize) -> Result<Self, ReplayError> {
        let bytes = usize::try_from(physical).ok().and_then(|n| n.checked_mul(4 * words));
        let error = || MemoryError {
            what: format!("{physical} transitions of the replay buffer"),
            bytes: bytes.unwrap_or(usize::MAX),
        };
        let len = bytes.ok_or_else(error)?;
        // Not from the allocator: fresh pages are zero already, and the allocator's way to
        // refuse is to end the program.
        let map = MmapOptions::new().len(len).map_anon().map_err(|_| error())?;
        // Draws go all over the place: with small pages each would wait for the page table
        // too. Kernels that have no huge pages say so, and do without.
        let _ = map.advise(Advice::HugePage);
        Ok(Self { map, words, physical })
    }

    /// All places, to read.
    pub(crate) fn ring(&self) -> Ring<'_> {
        Ring::new(bytemuck::cast_slice(&self.map), self.words, self.words, self.physical)
    }

    /// The place of a transition, to write.
    pub(crate) fn place_mut(&mut self, row: u64) -> &mut [u32] {
        let start = (row % self.physical) as usize * self.words;
        let words: &mut [u32] = bytemuck::cast_slice_mut(&mut self.map);
        &mut words[start..start + self.words]
    }
}

impl Storage for HostRing {
    fn extend(&mut self, window: &mut Window, new: &mut New<'_>) -> Result<(), ReplayError> {
        for i in new.count.saturating_sub(self.physical as usize)..new.count {
            (new.fill)(i, self.place_mut(window.end() + i as u64));
        }
        window.push(new.count as u64, new.stride);
        Ok(())
    }

    fn gather(&self, draw: &Draw<'_>, slot: &mut Slot) -> Result<(), ReplayError> {
        slot.gather(draw, Rows::one(self.ring()))
    }
}

impl Memory for HostRing {
    fn places(&self) -> u64 {
        self.physical
    }

    fn read(
        &self,
        first: u64,
        count: usize,
        write: &mut dyn FnMut(u64, usize, &mut Fill<'_>) -> Result<(), ReplayError>,
    ) -> Result<(), ReplayError> {
        let ring = self.ring();
        write(first, count, &mut |i, words| words.copy_from_slice(ring.row(first + i as u64)))
    }

    fn write(&mut self, rows: Rows<'_>, range: Range<u64>) -> Result<(), ReplayError> {
        for row in range {
            self.place_mut(row).copy_from_slice(rows.row(row));
        }
        Ok(())
    }
}

/// The numbers of a tensor of a rollout, in host memory; on a device they are brought here.
fn here<T: Element>(tensor: &Tensor, crossed: &Counts) -> Result<HostRows<T>, ReplayError> {
    let tensor = brought(tensor, Device::Cpu, crossed)?.f_contiguous()?;
    // SAFETY: a rollout's tensors are written all over. These rows are read alone, while the
    // rollout is borrowed from the thread that made it and nobody writes to it.
    Ok(unsafe { HostRows::new(&tensor) }?)
}

/// The words of the rows with a name.
fn words<'a>(
    rows: &'a [(&str, HostRows<f32>)],
    name: &str,
) -> Result<Option<&'a [u32]>, ReplayError> {
    let found = rows.iter().find(|(n, _)| *n == name);
    Ok(found.map(|(_, rows)| rows.all()).transpose()?.map(bytemuck::cast_slice))
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

/// Hands a function that writes transition `i` (of step `i / N`, environment `i % N`) of a
/// rollout to `store`. Where the rollout does not know the version of its policy it is
/// `version`. Copies from a device are counted.
pub(crate) fn rows_of(
    rollout: &Rollout,
    layout: &Layout,
    version: i32,
    crossed: &Counts,
    store: impl FnOnce(&mut Fill<'_>) -> Result<(), ReplayError>,
) -> Result<(), ReplayError> {
    let envs = rollout.envs as usize;
    let steps = rollout.steps as usize * envs;
    let (obs, final_obs) = (&rollout.obs, &rollout.final_obs);
    let mut now = vec![(names::OBS, here::<f32>(&obs.policy, crossed)?)];
    let mut last = vec![(names::OBS, here::<f32>(&final_obs.policy, crossed)?)];
    if rollout.has_critic_obs() {
        now.push((names::CRITIC_OBS, here(&rollout.critic(obs)?, crossed)?));
        last.push((names::CRITIC_OBS, here(&rollout.critic(final_obs)?, crossed)?));
    }
    for (name, tensor) in [
        (names::ACTION, &rollout.action),
        (names::REWARD, &rollout.reward),
        (names::TERMINATED, &rollout.terminated),
        (names::TRUNCATED, &rollout.truncated),
        (names::VALID, &rollout.valid),
    ] {
        now.push((name, here(tensor, crossed)?));
    }
    let versions = here::<i32>(&rollout.version, crossed)?;
    let slots = here::<i32>(&rollout.final_slot, crossed)?;
    let (versions, slots) = (versions.all()?, slots.all()?);
    let (mut sources, mut version_at) = (Vec::new(), None);
    for (field, to) in layout.places() {
        if field.name == names::VERSION && field.kind == FieldKind::I32 {
            version_at = Some(to);
            continue;
        }
        let next = field.name.strip_prefix("next_");
        let name = next.unwrap_or(&field.name);
        let last = words(&last, name)?;
        let all = match next.is_some() && last.is_none() {
            true => None,
            false => words(&now, name)?,
        };
        // Observations have a row of environments more.
        let rows = if last.is_some() { steps + envs } else { steps };
        let Some(words) = all.filter(|words| words.len() == rows * field.width) else {
            return Err(ReplayError::shape(
                format!("field {:?} of a rollout", field.name),
                format!("{rows} x {}", field.width),
                format!("{} numbers", all.unwrap_or_default().len()),
            ));
        };
        let last = last.filter(|_| next.is_some());
        sources.push(Source { words, width: field.width, to, last });
    }
    let truncated = words(&now, names::TRUNCATED)?.unwrap_or_default();
    let valid_at = layout.find(names::VALID).map(|(_, to)| to);
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
        if let (Some(at), true) = (valid_at, slot.is_none() && f32::from_bits(truncated[i]) != 0.0)
        {
            row[at] = 0.0_f32.to_bits();
        }
    })
}
