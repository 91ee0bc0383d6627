//! `replay.storage = "device"`: transitions on the learner's device, drawn there. Nothing but
//! the places and weights of the drawn transitions crosses over.

use super::batch::{Draw, GatherPlan, Slot};
use super::host::HOST;
use super::storage::{About, Fill, Memory, New, Site, Storage};
use super::transition::{FieldKind, Layout, Rows, Window, names};
use crate::Rollout;
use crate::error::ReplayError;
use crate::memory::zeros;
use ostler_sim::Groups;
use ostler_sim::device::Counts;
use std::ops::Range;
use std::sync::Arc;
use tch::{Device, Kind, TchError, Tensor};

/// What a configuration says of it.
pub(crate) const DEVICE: About = About { name: "device", near: true, open, ..HOST };

fn open(site: Site<'_>) -> Result<Box<dyn Storage>, ReplayError> {
    if site.device == Device::Cpu {
        return (HOST.open)(site);
    }
    let places = site.window.physical();
    let ring = DeviceRing::new(places, site.layout.clone(), site.device, site.crossed)?;
    site.kept(ring)
}

/// `places` transitions in one tensor `[places,words]`.
#[derive(Debug)]
pub(crate) struct DeviceRing {
    places: Tensor,
    count: u64,
    layout: Layout,
    device: Device,
    crossed: Arc<Counts>,
}

// SAFETY: libtorch's tensors may be read from several threads at a time; the functions that
// write this one take `&mut self`, or are called by such as do.
unsafe impl Sync for DeviceRing {}

/// Rows that are brought over at a time.
const PIECE: usize = 1 << 14;
/// Rows that are brought back at a time.
const PIECE_BACK: usize = 1 << 16;

/// The pieces of `count` rows from number `first`: up to the last place, and from place 0
/// on where it goes round, each as (first place, first of the rows, how many).
fn pieces(first: u64, count: usize, places: u64) -> impl Iterator<Item = (i64, i64, i64)> {
    let place = (first % places) as i64;
    let one = (count as i64).min(places as i64 - place);
    [(place, 0, one), (0, one, count as i64 - one)].into_iter().filter(|&(_, _, n)| n > 0)
}

impl DeviceRing {
    pub(crate) fn new(
        count: u64,
        layout: Layout,
        device: Device,
        crossed: &Arc<Counts>,
    ) -> Result<Self, ReplayError> {
        let size = [i64::try_from(count).unwrap_or(i64::MAX), layout.words() as i64];
        Ok(Self {
            places: zeros("transitions of the replay buffer", &size, Kind::Float, device)?,
            count,
            layout,
            device,
            crossed: Arc::clone(crossed),
        })
    }

    /// Writes transitions of host memory; no more than there are places.
    fn put(&mut self, first: u64, count: usize, fill: &mut Fill<'_>) -> Result<(), ReplayError> {
        let words = self.layout.words();
        let mut piece = vec![0_u32; PIECE.min(count) * words];
        for start in (0..count).step_by(PIECE) {
            let n = PIECE.min(count - start);
            for (i, row) in piece.chunks_exact_mut(words).take(n).enumerate() {
                fill(start + i, row);
            }
            let rows = bytemuck::cast_slice::<u32, f32>(&piece[..n * words]);
            let rows = Tensor::f_from_slice(rows)?.f_view([n as i64, words as i64])?;
            for (place, from, n) in pieces(first + start as u64, n, self.count) {
                let mut to = self.places.f_narrow(0, place, n)?;
                self.crossed.sent(true);
                // The copy has landed when it returns: the memory it reads is used again.
                to.f_copy_(&rows.f_narrow(0, from, n)?)?;
            }
        }
        Ok(())
    }

    /// Writes the transitions of a rollout, field by field, without waiting for the device:
    /// those from `skip` on, the first of which has number `first`.
    fn put_rollout(
        &mut self,
        first: u64,
        skip: usize,
        rollout: &Rollout,
        version: i32,
    ) -> Result<(), ReplayError> {
        let count = rollout.steps * rollout.envs;
        for (field, offset) in self.layout.places() {
            let source = on_device(rollout, &field.name, version)?;
            let width = field.width as i64;
            if source.numel() as i64 != count * width {
                return Err(ReplayError::shape(
                    format!("field {:?} of a rollout", field.name),
                    format!("{count} x {width}"),
                    format!("{:?}", source.size()),
                ));
            }
            let source = source.f_reshape([count, width])?;
            let source = match field.kind {
                FieldKind::F32 => source,
                FieldKind::I32 => source.f_to_kind(Kind::Int)?.f_view_dtype(Kind::Float)?,
            };
            for (place, from, n) in pieces(first, count as usize - skip, self.count) {
                let rows = self.places.f_narrow(0, place, n)?;
                let mut to = rows.f_narrow(1, offset as i64, width)?;
                to.f_copy_(&source.f_narrow(0, skip as i64 + from, n)?)?;
            }
        }
        Ok(())
    }

    /// Transitions as they lie there, on the host `[count * words]`.
    fn brought(&self, first: u64, count: usize) -> Result<Vec<f32>, ReplayError> {
        let mut words = Vec::new();
        for (place, _, n) in pieces(first, count, self.count) {
            let rows = self.places.f_narrow(0, place, n)?;
            self.crossed.fetched();
            words.extend(crate::transfer::host_numbers(&rows)?);
        }
        Ok(words)
    }

    /// Writes where those of the transitions `first` lie that are drawn, and how many they
    /// are, behind the columns of a batch.
    fn locate(&self, draw: &Draw<'_>, first: &[u64], out: &mut [u32]) -> usize {
        let Draw { plan, window, which } = draw;
        let (steps, batch) = (plan.steps(), plan.shape.batch);
        let (places, rest) = out[plan.words()..].split_at_mut(batch * steps);
        let (counts, rows) = rest.split_at_mut(batch);
        let mut n = 0;
        for (row, &first) in (0..).zip(first).filter(|(_, first)| which.contains(first)) {
            let (stride, count) = window.run_from(first, steps as u64);
            // Behind the end the last one.
            for (k, place) in (0..).zip(&mut places[n * steps..][..steps]) {
                *place = ((first + k.min(count - 1) * stride) % self.count) as u32;
            }
            counts[n] = count as u32;
            rows[n] = row;
            n += 1;
        }
        n
    }

    /// Fills the rows of a slot's batch that [`Self::locate`] has found, once their places
    /// have crossed over.
    fn collect(&self, plan: &GatherPlan, slot: &Slot, found: usize) -> Result<(), ReplayError> {
        let shape = &plan.shape;
        let (steps, batch, rows) = (plan.steps() as i64, shape.batch as i64, found as i64);
        let places = slot.places.f_narrow(0, 0, rows * steps)?;
        let places = places.f_view([rows, steps])?;
        let at = match rows == batch {
            // In order.
            true => None,
            false => {
                let at = slot.places.f_narrow(0, batch * (steps + 1), rows)?;
                Some(at.f_to_kind(Kind::Int64)?)
            }
        };
        let put = |name: &str, value: &Tensor| -> Result<(), ReplayError> {
            let mut to = slot.base.get(name)?.shallow_clone();
            let mut size = to.size();
            size[0] = rows;
            let value = value.f_reshape(&size[..])?;
            match &at {
                Some(at) => drop(to.f_index_copy_(0, at, &value)?),
                None => to.f_copy_(&value)?,
            };
            Ok(())
        };
        let select = |places: &Tensor| self.places.f_index_select(0, &places.f_reshape([-1])?);
        let columns =
            |records: &Tensor, wanted: &dyn Fn(&str) -> bool| -> Result<(), ReplayError> {
                for (field, offset) in self.layout.places() {
                    if wanted(&field.name) {
                        let column = records.f_narrow(1, offset as i64, field.width as i64)?;
                        let column = column.f_contiguous()?;
                        put(&field.name, &column.f_view_dtype(field.kind.torch())?)?;
                    }
                }
                Ok(())
            };
        let one = || places.f_select(1, 0);
        if steps == 1 {
            columns(&select(&one()?)?, &|_| true)?;
            let gamma = f64::from(shape.discounts[1]);
            put(names::DISCOUNT, &self.full(rows, gamma)?)?;
            return Ok(());
        }
        let counts = slot.places.f_narrow(0, batch * steps, rows)?;
        let runs = self.runs(plan, &places, &counts, &slot.discounts)?;
        columns(&select(&one()?)?, &|name| !GatherPlan::of_last(name))?;
        columns(&select(&places.f_gather(1, &runs.last, false)?)?, &GatherPlan::of_last)?;
        put(names::REWARD, &runs.sum)?;
        put(names::DISCOUNT, &runs.discount)
    }

    fn full(&self, rows: i64, value: f64) -> Result<Tensor, TchError> {
        Tensor::f_full([rows], value, (Kind::Float, self.device))
    }

    /// How far each row of `places` `[B,steps]` goes, of which `counts` `[B]` are there;
    /// `powers` of the discount.
    fn runs(
        &self,
        plan: &GatherPlan,
        places: &Tensor,
        counts: &Tensor,
        powers: &Tensor,
    ) -> Result<Runs, ReplayError> {
        let Some(flags) = &plan.flags else {
            return Err(ReplayError::Saved("a plan without flags".into()));
        };
        let (rows, steps) = places.size2()?;
        let all = places.f_reshape([-1])?;
        let column = |word: usize| {
            let column = self.places.f_select(1, word as i64)?;
            column.f_index_select(0, &all)?.f_view([rows, steps])
        };
        let (ended, cut) = (column(flags.terminated)?, column(flags.truncated)?);
        let broken = column(flags.valid)?.f_eq(0.0)?;
        let over = ended.f_ne(0.0)?.f_logical_or(&cut.f_ne(0.0)?)?;
        let over = over.f_logical_or(&broken)?;
        let step = Tensor::f_arange(steps, (Kind::Int, self.device))?.f_view([1, steps])?;
        let there = step.f_lt_tensor(&counts.f_view([rows, 1])?)?;
        // A step counts if it is there and not broken, and the one before did not end.
        let goes_on = there.f_logical_and(&broken.f_logical_not()?)?;
        let later = goes_on.f_narrow(1, 1, steps - 1)?;
        let later = later.f_logical_and(&over.f_narrow(1, 0, steps - 1)?.f_logical_not()?)?;
        let first = Tensor::f_ones([rows, 1], (Kind::Bool, self.device))?;
        let alive = Tensor::f_cat(&[first, later], 1)?.f_to_kind(Kind::Float)?;
        let alive = alive.f_cumprod(1, Kind::Float)?;
        let count = alive.f_sum_dim_intlist(1, true, Kind::Float)?;
        let count = count.f_to_kind(Kind::Int64)?;
        let discount = powers.f_index_select(0, &count.f_view([-1])?)?;
        let weights = powers.f_narrow(0, 0, steps)?.f_view([1, steps])?;
        let sum = (column(flags.reward)?.f_mul(&alive)?.f_mul(&weights)?).f_sum_dim_intlist(
            1,
            false,
            Kind::Float,
        )?;
        Ok(Runs { last: count.f_sub_scalar(1)?, discount, sum })
    }
}

impl Storage for DeviceRing {
    fn extend(&mut self, window: &mut Window, new: &mut New<'_>) -> Result<(), ReplayError> {
        let skip = new.count.saturating_sub(self.count as usize);
        let first = window.end() + skip as u64;
        self.put(first, new.count - skip, &mut |i, row| (new.fill)(skip + i, row))?;
        window.push(new.count as u64, new.stride);
        Ok(())
    }

    fn extend_there(
        &mut self,
        window: &mut Window,
        rollout: &Rollout,
        version: i32,
    ) -> Result<bool, ReplayError> {
        let count = (rollout.steps * rollout.envs) as usize;
        let skip = count.saturating_sub(self.count as usize);
        self.put_rollout(window.end() + skip as u64, skip, rollout, version)?;
        window.push(count as u64, rollout.envs as u32);
        Ok(true)
    }

    fn gather(&self, draw: &Draw<'_>, slot: &mut Slot) -> Result<(), ReplayError> {
        let plan = draw.plan;
        let behind = plan.words()..plan.words() + plan.places();
        let found = slot.write(behind, |first, out| self.locate(draw, first, out))?;
        slot.upload()?;
        match found {
            0 => Ok(()),
            found => self.collect(plan, slot, found),
        }
    }
}

impl Memory for DeviceRing {
    fn places(&self) -> u64 {
        self.count
    }

    fn read(
        &self,
        first: u64,
        count: usize,
        write: &mut dyn FnMut(u64, usize, &mut Fill<'_>) -> Result<(), ReplayError>,
    ) -> Result<(), ReplayError> {
        let width = self.layout.words();
        for start in (0..count).step_by(PIECE_BACK) {
            let (first, n) = (first + start as u64, PIECE_BACK.min(count - start));
            let words = self.brought(first, n)?;
            let words: &[u32] = bytemuck::cast_slice(&words);
            write(first, n, &mut |i, row| row.copy_from_slice(&words[i * width..][..width]))?;
        }
        Ok(())
    }

    fn write(&mut self, rows: Rows<'_>, range: Range<u64>) -> Result<(), ReplayError> {
        let (first, count) = (range.start, (range.end - range.start) as usize);
        self.put(first, count, &mut |i, row| row.copy_from_slice(rows.row(first + i as u64)))
    }
}

/// How far the sums of rewards go.
struct Runs {
    /// Place of the last transition of each `[B,1]`, int64.
    last: Tensor,
    /// gamma^m `[B]`.
    discount: Tensor,
    /// Discounted sum of rewards `[B]`.
    sum: Tensor,
}

/// The numbers of a field of all transitions of a rollout, in order, on its device.
fn on_device(rollout: &Rollout, name: &str, version: i32) -> Result<Tensor, ReplayError> {
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

#[cfg(test)]
#[path = "tests/device.rs"]
pub(super) mod tests;
