//! Transforms of batches after they were drawn, and `[[replay.transform]]`.

use super::batch::Batch;
use super::transition::{Layout, names};
use crate::error::ReplayError;
use crate::registry::{MakeError, Registry};
use ostler_sim::config::{ConfigError, NoiseKind};
use ostler_sim::memory::zeroed;
use ostler_sim::rng::{Purpose, fill_normal, fill_uniform};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt::Debug;
use std::sync::Arc;
use tch::{Device, Tensor};
use toml::Table;

/// A function on batches. It may run in a thread of its own.
///
/// A program gives its own a name by [`register`], and a run uses it by
/// `[[replay.transform]]` with `kind = "custom"`. Whoever makes a buffer gives them by
/// [`Setup::transforms`](super::Setup::transforms), behind those of the file. They run on the
/// batch's device. Random numbers are keyed by
/// [`Batch::key`], so that a repeated run has the same.
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
    /// The batch that comes out, on the device of the one that goes in.
    ///
    /// # Errors
    /// A field is missing or of another shape, the device fails.
    fn apply(&self, batch: Batch) -> Result<Batch, ReplayError>;
}

/// Makes a transform of `args` (`replay.transform.args`) for batches of a layout.
pub type MakeTransform =
    dyn Fn(&Table, &Layout) -> Result<Box<dyn Transform>, MakeError> + Send + Sync;

static REGISTERED: Registry<MakeTransform> = Registry::new("transform", "docs/replay.md");

/// Gives a transform of this program a name, for `[[replay.transform]]` with `kind = "custom"`.
/// The function makes it of the entry's `args`, once for each replay buffer.
pub fn register<F>(name: impl Into<String>, make: F)
where
    F: Fn(&Table, &Layout) -> Result<Box<dyn Transform>, MakeError> + Send + Sync + 'static,
{
    REGISTERED.add(name, Arc::new(make));
}

/// Transforms one after the other, over batches on a device.
#[derive(Debug)]
pub struct Chain {
    stages: Vec<Box<dyn Transform>>,
    device: Device,
}

impl Chain {
    /// Without transforms.
    pub fn new(device: Device) -> Self {
        Self { stages: Vec::new(), device }
    }

    /// Adds one at the end.
    pub fn push(&mut self, stage: Box<dyn Transform>) {
        self.stages.push(stage);
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.stages.is_empty()
    }

    /// The device of the batches.
    pub fn device(&self) -> Device {
        self.device
    }

    /// Runs all of them.
    ///
    /// # Errors
    /// One fails, or its batch is elsewhere.
    pub fn run(&self, mut batch: Batch) -> Result<Batch, ReplayError> {
        for stage in &self.stages {
            batch = stage.apply(batch)?;
            if batch.device() != self.device {
                return Err(ReplayError::Device {
                    name: format!("(all of them, after {stage:?})"),
                    expected: self.device,
                    got: batch.device(),
                });
            }
        }
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
    /// For `"reward"`: rewards beyond this, after scaling, count as this; above 0. With `n_step`
    /// above 1 their discounted sums do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clip: Option<f64>,
    /// For `"noise"`: its size in the unit of the observations, before they are normalised,
    /// above 0: half-width of uniform noise, standard deviation of normal noise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise: Option<f64>,
    /// For `"noise"`: `"uniform"` (without it) or `"normal"`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub noise_kind: Option<NoiseKind>,
    /// For `"custom"`: the name under which the program has registered it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// For `"custom"`: what its function gets: anything.
    #[serde(default, skip_serializing_if = "Table::is_empty")]
    #[schemars(with = "BTreeMap<String, serde_json::Value>")]
    pub args: Table,
}

/// `replay.transform.kind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TransformKind {
    /// Rewards are scaled and clipped when they are drawn.
    Reward,
    /// Noise is added to observations when they are drawn, other noise in every draw.
    Noise,
    /// A transform of a program that uses Ostler as a library.
    Custom,
}

impl TransformKind {
    fn name(self) -> &'static str {
        match self {
            Self::Reward => "reward",
            Self::Noise => "noise",
            Self::Custom => "custom",
        }
    }
}

impl TransformConfig {
    /// The function that makes it, of a transform of the program's.
    ///
    /// # Errors
    /// This program has registered none of its name.
    pub(super) fn maker(&self, path: &str) -> Result<Option<Arc<MakeTransform>>, ConfigError> {
        let named = self.name.as_ref().filter(|_| self.kind == TransformKind::Custom);
        named.map(|name| REGISTERED.find(&format!("{path}.name"), name)).transpose()
    }

    /// Whether it is about a field of a transition.
    fn concerns(&self, field: &str) -> bool {
        FIELDS.iter().any(|(now, next)| {
            [now, next].contains(&&field)
                && (self.fields.is_empty() || self.fields.iter().any(|f| f == now))
        })
    }

    /// Its work on batches of a layout, as entry `place` of the file.
    ///
    /// # Errors
    /// The program has none of this name, or its function refuses.
    pub(super) fn stage(
        &self,
        place: usize,
        layout: &Layout,
    ) -> Result<Box<dyn Transform>, ReplayError> {
        let refused = |why: String| ReplayError::Transform { place, why };
        Ok(match self.kind {
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
            TransformKind::Custom => {
                let make = self.maker("").map_err(|e| refused(e.to_string()))?;
                let make = make.ok_or_else(|| refused("it has no name".into()))?;
                make(&self.args, layout).map_err(|e| refused(e.to_string()))?
            }
        })
    }

    fn validate(&self, path: &str, errors: &mut Vec<ConfigError>) {
        use TransformKind::{Custom, Noise, Reward};
        let mut wrong = |key: &str, what: String, help: &str| {
            errors.push(ConfigError::new(format!("{path}.{key}"), what).help(help));
        };
        let given = [
            ("fields", !self.fields.is_empty(), &[Noise][..]),
            ("scale", self.scale.is_some(), &[Reward][..]),
            ("clip", self.clip.is_some(), &[Reward][..]),
            ("noise", self.noise.is_some(), &[Noise][..]),
            ("noise_kind", self.noise_kind.is_some(), &[Noise][..]),
            ("name", self.name.is_some(), &[Custom][..]),
            ("args", !self.args.is_empty(), &[Custom][..]),
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
        if self.kind == Custom && self.name.is_none() {
            let help = "name = \"...\", as the program has registered it (docs/replay.md)";
            wrong("kind", "a custom transform without a name".into(), help);
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
