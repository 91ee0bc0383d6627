//! Transforms of batches after they were drawn, and `[[replay.transform]]`.

use super::batch::Batch;
use super::transition::{Layout, names};
use crate::error::ReplayError;
use ostler_sim::config::{ConfigError, NoiseKind};
use ostler_sim::memory::zeroed;
use ostler_sim::rng::{Purpose, fill_normal, fill_uniform};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
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

/// Entries that there may be.
const MOST: usize = 100;
/// Observations that `fields` may name; each with the next one in time.
const FIELDS: [(&str, &str); 2] =
    [(names::OBS, names::NEXT_OBS), (names::CRITIC_OBS, names::NEXT_CRITIC_OBS)];

/// `[[replay.transform]]`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TransformConfig {
    /// Kind of the transform.
    pub kind: TransformKind,
    /// For `"noise"`: `"obs"`, `"critic_obs"`, each with the observation that
    /// follows it; empty: all observations.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<String>,
    /// For `"reward"`: the factor, not 0; 1 without it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scale: Option<f64>,
    /// For `"reward"`: rewards beyond this, after scaling, count as this; above 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// For `"noise"`: its size in the unit of the observations, before they are normalised,
    /// above 0: half-width of uniform noise, standard deviation of normal noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// For `"noise"`: `"uniform"` (without it) or `"normal"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_kind: Option<NoiseKind>,
}

/// `replay.transform.kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransformKind {
    /// Rewards are scaled and clipped when they are drawn.
    Reward,
    /// Noise is added to observations when they are drawn, other noise in every draw.
    Noise,
}

impl TransformKind {
    fn name(self) -> &'static str {
        match self {
            Self::Reward => "reward",
            Self::Noise => "noise",
        }
    }
}

impl TransformConfig {
    /// One of this kind that says nothing else.
    pub fn new(kind: TransformKind) -> Self {
        Self { kind, fields: Vec::new(), scale: None, clip: None, noise: None, noise_kind: None }
    }

    /// Whether it is about a field of a transition.
    fn concerns(&self, field: &str) -> bool {
        FIELDS.iter().any(|(now, next)| {
            [now, next].contains(&&field)
                && (self.fields.is_empty() || self.fields.iter().any(|f| f == now))
        })
    }

    /// Its work on batches of a layout, as entry `place` of the file.
    pub(super) fn stage(&self, place: usize, layout: &Layout) -> Box<dyn Transform> {
        match self.kind {
            TransformKind::Reward => Box::new(RewardScale {
                scale: self.scale.unwrap_or(1.0),
                clip: self.clip.unwrap_or(0.0),
            }),
            TransformKind::Noise => {
                let all = layout.fields().iter().map(|f| &f.name);
                Box::new(Noise {
                    fields: all.filter(|f| self.concerns(f)).cloned().collect(),
                    size: self.noise.unwrap_or(0.0),
                    kind: self.noise_kind.unwrap_or_default(),
                    place: place as u32,
                })
            }
        }
    }

    fn validate(&self, path: &str, errors: &mut Vec<ConfigError>) {
        use TransformKind::{Noise, Reward};
        let mut wrong = |key: &str, what: String, help: &str| {
            errors.push(ConfigError::new(format!("{path}.{key}"), what).help(help));
        };
        let given = [
            ("fields", !self.fields.is_empty(), &[Noise][..]),
            ("scale", self.scale.is_some(), &[Reward][..]),
            ("clip", self.clip.is_some(), &[Reward][..]),
            ("noise", self.noise.is_some(), &[Noise][..]),
            ("noise_kind", self.noise_kind.is_some(), &[Noise][..]),
        ];
        for (key, given, kinds) in given {
            if given && !kinds.contains(&self.kind) {
                let kinds: Vec<_> = kinds.iter().map(|k| format!("{:?}", k.name())).collect();
                let help = format!("it is for kind = {}", kinds.join(" or "));
                wrong(key, format!("kind = {:?} has no {key}", self.kind.name()), &help);
            }
        }
        for (i, field) in self.fields.iter().enumerate() {
            let key = format!("fields[{i}]");
            if !FIELDS.iter().any(|(now, _)| now == field) {
                let what = format!("{field:?} is no observation of a transition");
                wrong(&key, what, "allowed: \"obs\", \"critic_obs\"; each with the next one");
            } else if self.fields[..i].contains(field) {
                wrong(&key, format!("{field:?} is there already"), "name it once");
            }
        }
        let numbers = [
            ("scale", self.scale, "a number other than 0"),
            ("clip", self.clip, "a number above 0"),
            ("noise", self.noise, "a number above 0"),
        ];
        for (key, value, allowed) in numbers {
            let usable = |x: f64| x.is_finite() && (x > 0.0 || (key == "scale" && x < 0.0));
            if let Some(x) = value.filter(|x| !usable(*x)) {
                wrong(key, format!("{x} cannot be used"), &format!("allowed: {allowed}"));
            }
        }
        if self.kind == Noise && self.noise.is_none() {
            wrong("kind", "noise without a size".into(), "noise = 0.01, for example");
        }
        if self.kind == Reward && self.scale.is_none() && self.clip.is_none() {
            wrong("kind", "rewards stay as they are".into(), "scale, clip, or both");
        }
    }
}

/// Values that cannot be used, with paths such as `replay.transform[0].scale`.
pub(super) fn validate(transforms: &[TransformConfig]) -> Vec<ConfigError> {
    let mut errors = Vec::new();
    if transforms.len() > MOST {
        let what = format!("{} transforms", transforms.len());
        errors.push(ConfigError::new("replay.transform", what).help(format!("at most {MOST}")));
    }
    for (i, transform) in transforms.iter().enumerate() {
        transform.validate(&format!("replay.transform[{i}]"), &mut errors);
    }
    errors
}

const _: () =
    assert!(MOST * Noise::FIELDS <= 1 << Noise::BITS && 2 * FIELDS.len() <= Noise::FIELDS);

#[cfg(test)]
#[path = "tests/transform.rs"]
mod tests;
