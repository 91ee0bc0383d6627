//! Transforms of batches after they were drawn.

use super::layout::names;
use super::{Batch, ReplayError};
use ostler_sim::config::NoiseKind;
use ostler_sim::memory::zeroed;
use ostler_sim::rng::{Purpose, fill_normal, fill_uniform};
use std::fmt::Debug;
use tch::{Device, Kind, Tensor};

/// A function on batches. It may run in a thread of its own.
///
/// Transforms of one's own come behind those of `[[replay.transform]]`, in the order of
/// [`Setup::transforms`](super::Setup::transforms); a learner takes them by
/// `OffPolicy::add_transform`. Pinning, where `replay.pin_memory` asks for it, comes behind
/// all of them. Random numbers are keyed by [`Batch::key`], so that a repeated run has the
/// same.
///
/// ```
/// use ostler_collector::replay::{
///     Batch, Field, Layout, ReplayBuffer, ReplayConfig, ReplayError, Setup, StorageKind,
///     Transform, names,
/// };
/// use tch::Device;
///
/// /// Left and right change places: a robot learns both sides from one.
/// #[derive(Debug)]
/// struct Mirror;
///
/// impl Transform for Mirror {
///     fn apply(&self, mut batch: Batch) -> Result<Batch, ReplayError> {
///         for name in [names::OBS, names::NEXT_OBS] {
///             let mirrored = batch.get(name)?.f_flip([-1])?;
///             batch.insert(name, mirrored)?;
///         }
///         Ok(batch)
///     }
/// }
///
/// # fn main() -> Result<(), ReplayError> {
/// let layout = Layout::new(vec![
///     Field::float(names::OBS, 2),
///     Field::float(names::NEXT_OBS, 2),
/// ])?;
/// let config = ReplayConfig {
///     capacity: 100,
///     storage: StorageKind::Host,
///     save: false,
///     ..ReplayConfig::default()
/// };
/// let setup = Setup {
///     transforms: vec![Box::new(Mirror)],
///     ..Setup::new(8, Device::Cpu, 0.99, 1)
/// };
/// let mut buffer = ReplayBuffer::new(&config, layout, setup)?;
/// let obs = [1.0_f32, 2.0].map(f32::to_bits);
/// buffer.extend_rows(&[&obs, &obs], 1)?;
/// let batch = buffer.next()?;
/// assert_eq!(batch.get(names::OBS)?.size(), [8, 2]);
/// assert_eq!(batch.get(names::OBS)?.f_double_value(&[0, 0])?, 2.0);
/// # Ok(())
/// # }
/// ```
pub trait Transform: Debug + Send + Sync {
    /// The batch that comes out; its device is the one that [`device`](Self::device) says.
    ///
    /// # Errors
    /// A field is missing or of another shape, the device fails.
    fn apply(&self, batch: Batch) -> Result<Batch, ReplayError>;

    /// Where the batch is that comes out, if one on `device` goes in.
    fn device(&self, device: Device) -> Device {
        device
    }
}

/// Transforms one after the other; which device each one's batches are on is known before
/// the first is drawn.
#[derive(Debug)]
pub struct Chain {
    stages: Vec<(Box<dyn Transform>, Device)>,
    device: Device,
}

impl Chain {
    /// Without transforms, over batches on a device.
    pub fn new(device: Device) -> Self {
        Self { stages: Vec::new(), device }
    }

    /// Adds one at the end.
    pub fn push(&mut self, stage: Box<dyn Transform>) {
        self.device = stage.device(self.device);
        self.stages.push((stage, self.device));
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// The device of the result.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Runs all of them.
    ///
    /// # Errors
    /// One fails, or its batch is not where it said.
    pub fn run(&self, mut batch: Batch) -> Result<Batch, ReplayError> {
        for (stage, device) in &self.stages {
            batch = stage.apply(batch)?;
            if batch.device() != *device {
                return Err(ReplayError::Device {
                    name: format!("(all of them, after {stage:?})"),
                    expected: *device,
                    got: batch.device(),
                });
            }
        }
        Ok(batch)
    }
}

/// `(x - mean) / std`, clipped to `clip` on both sides: with statistics that are given, and
/// stay.
#[derive(Debug)]
pub struct Normalize {
    fields: Vec<String>,
    mean: Tensor,
    std: Tensor,
    clip: f64,
}

// SAFETY: the tensors are read only, which libtorch allows from several threads.
unsafe impl Sync for Normalize {}

impl Normalize {
    /// Of these fields, all with the width of `mean` and `std` `[width]`.
    pub fn new(fields: &[&str], mean: &Tensor, std: &Tensor, clip: f64) -> Self {
        Self {
            fields: fields.iter().map(ToString::to_string).collect(),
            mean: mean.shallow_clone(),
            std: std.shallow_clone(),
            clip,
        }
    }
}

impl Transform for Normalize {
    fn apply(&self, mut batch: Batch) -> Result<Batch, ReplayError> {
        let at = batch.device();
        let (mean, std) = (self.mean.f_to_device(at)?, self.std.f_to_device(at)?);
        for name in &self.fields {
            let x = batch.get(name)?.f_sub(&mean)?.f_div(&std)?;
            batch.insert(name, x.f_clamp(-self.clip, self.clip)?)?;
        }
        Ok(batch)
    }
}

/// Another type of number.
#[derive(Debug)]
pub struct Cast {
    /// Of these fields.
    pub fields: Vec<String>,
    /// The type.
    pub kind: Kind,
}

impl Transform for Cast {
    fn apply(&self, mut batch: Batch) -> Result<Batch, ReplayError> {
        for name in &self.fields {
            let x = batch.get(name)?.f_to_kind(self.kind)?;
            batch.insert(name, x)?;
        }
        Ok(batch)
    }
}

/// Some of the numbers of a field: `first..first + len` of its last dimension.
#[derive(Debug)]
pub struct Crop {
    /// The field.
    pub field: String,
    /// First number.
    pub first: i64,
    /// How many.
    pub len: i64,
}

impl Transform for Crop {
    fn apply(&self, mut batch: Batch) -> Result<Batch, ReplayError> {
        let x = batch.get(&self.field)?;
        let x = x.f_narrow(-1, self.first, self.len)?.f_contiguous()?;
        batch.insert(&self.field, x)?;
        Ok(batch)
    }
}

/// Fields side by side as one, along the last dimension.
#[derive(Debug)]
pub struct Stack {
    /// These, each with a last dimension of its own.
    pub fields: Vec<String>,
    /// Under this name.
    pub to: String,
}

impl Transform for Stack {
    fn apply(&self, mut batch: Batch) -> Result<Batch, ReplayError> {
        let parts = self.fields.iter().map(|name| batch.get(name));
        let x = Tensor::f_cat(&parts.collect::<Result<Vec<_>, _>>()?, -1)?;
        batch.insert(&self.to, x)?;
        Ok(batch)
    }
}

/// Rewards times a factor, and then clipped: `kind = "reward"`.
#[derive(Debug)]
pub struct RewardScale {
    /// The factor.
    pub scale: f64,
    /// Clipped to this on both sides; 0: not at all.
    pub clip: f64,
}

impl Transform for RewardScale {
    fn apply(&self, mut batch: Batch) -> Result<Batch, ReplayError> {
        let mut x = batch.get(names::REWARD)?.f_mul_scalar(self.scale)?;
        if self.clip > 0.0 {
            x = x.f_clamp(-self.clip, self.clip)?;
        }
        batch.insert(names::REWARD, x)?;
        Ok(batch)
    }
}

/// Noise on fields, of numbers that only the run's seed, the number of the draw and the row
/// of the batch decide.
#[derive(Debug)]
pub struct Noise {
    /// On these, at most [`Self::FIELDS`] of them, each with numbers of its own.
    pub fields: Vec<String>,
    /// Half-width or standard deviation, in units of the fields.
    pub size: f64,
    /// Which of them.
    pub kind: NoiseKind,
    /// Tells its numbers from those of other noise on the same batch.
    pub place: u32,
}

impl Noise {
    /// Most fields of one.
    pub const FIELDS: usize = 16;
    /// Bits of a draw's key that tell places and fields.
    pub(super) const BITS: u32 = 12;
}

impl Transform for Noise {
    fn apply(&self, mut batch: Batch) -> Result<Batch, ReplayError> {
        let ((seed, draw), rows) = (batch.key(), batch.rows());
        let streams = 0..u32::try_from(rows).unwrap_or(u32::MAX);
        let size = self.size as f32;
        for (field, name) in self.fields.iter().enumerate() {
            let x = batch.get(name)?;
            let width = x.numel() / rows.max(1);
            let mut numbers = zeroed("noise on a replay batch", rows * width)?;
            let place = self.place as usize * Self::FIELDS + field;
            let step = draw << Self::BITS | place as u64;
            let (purpose, to) = (Purpose::ReplayNoise, &mut numbers);
            match self.kind {
                NoiseKind::Uniform => {
                    fill_uniform(seed, streams.clone(), purpose, step, width, to);
                    to.iter_mut().for_each(|x| *x = size * (2.0 * *x - 1.0));
                }
                NoiseKind::Normal => {
                    fill_normal(seed, streams.clone(), purpose, step, width, to);
                    to.iter_mut().for_each(|x| *x *= size);
                }
            }
            let noise = Tensor::f_from_slice(&numbers)?.f_view_as(x)?;
            let noisy = x.f_add(&noise.f_to_device(batch.device())?)?;
            batch.insert(name, noisy)?;
        }
        Ok(batch)
    }
}

/// Brings batches to a device.
#[derive(Debug)]
pub struct ToDevice(pub Device);

impl Transform for ToDevice {
    fn apply(&self, batch: Batch) -> Result<Batch, ReplayError> {
        batch.to_device(self.0)
    }

    fn device(&self, _: Device) -> Device {
        self.0
    }
}

#[cfg(test)]
#[path = "transform_tests.rs"]
mod tests;
