//! `[[replay.transform]]`: changes of batches.

use super::ReplayConfig;
use super::layout::{Layout, names};
use super::transform::{Noise, RewardScale, Transform};
use ostler_sim::config::{ConfigError, NoiseKind};
use ostler_sim::env::EnvSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

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

impl ReplayConfig {
    /// How the transitions of these environments are kept.
    ///
    /// # Errors
    /// A transform is about an observation that they do not have.
    pub fn layout(&self, spec: &EnvSpec) -> Result<Layout, ConfigError> {
        let layout = Layout::of(spec);
        for (i, transform) in self.transform.iter().enumerate() {
            for (k, field) in transform.fields.iter().enumerate() {
                if layout.find(field).is_none() {
                    let path = format!("replay.transform[{i}].fields[{k}]");
                    let what = format!("the task's transitions have no {field:?}");
                    return Err(ConfigError::new(path, what).help(
                        "a critic has observations of its own where terms have group = \"critic\"",
                    ));
                }
            }
        }
        Ok(layout)
    }
}

const _: () =
    assert!(MOST * Noise::FIELDS <= 1 << Noise::BITS && 2 * FIELDS.len() <= Noise::FIELDS);

#[cfg(test)]
#[path = "stages_tests.rs"]
mod tests;
