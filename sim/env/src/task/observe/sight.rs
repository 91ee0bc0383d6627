//! How a row has a term: its noise, bias, delay and earlier values.

use super::super::late::{Lag, MOST_KEPT};
use super::super::{number, range};
use crate::config::{
    BiasWhen, ConfigError, CriticCopy, Delay, GroupOptions, HalfOrRange, NoiseKind,
    ObservationTerm, Spread, SpreadConfig, Stack,
};

/// Most control steps whose values are seen.
const MOST_FRAMES: u32 = 256;

/// A drawn number.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(in crate::task) enum Error {
    /// Evenly from the one to the other.
    Uniform([f32; 2]),
    /// About 0, with this standard deviation.
    Normal(f32),
}

/// How a row has a term.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::task) struct Sight {
    /// Drawn in every step.
    pub noise: Option<Error>,
    /// Drawn for an episode.
    pub bias: Option<Error>,
    /// It is drawn once for every environment.
    pub bias_once: bool,
    pub lag: Option<Lag>,
    /// Control steps whose values are seen, at least 1.
    pub frames: usize,
}

impl Error {
    /// Of the key at `path`.
    fn compile(spread: Spread, kind: NoiseKind, path: &str) -> Result<Self, ConfigError> {
        let half = |half: f64, path: &str| {
            let half = not_negative(half, path)?;
            Ok(Self::Uniform([-half, half]))
        };
        let named = |key: &str| format!("{path}.{key}");
        Ok(match spread {
            Spread::Size(size) if kind == NoiseKind::Normal => {
                Self::Normal(not_negative(size, path)?)
            }
            Spread::Size(size) => half(size, path)?,
            Spread::Range(pair) => Self::Uniform(range(pair, path)?),
            Spread::Named(SpreadConfig {
                uniform: Some(HalfOrRange::Half(size)),
                normal: None,
                ..
            }) => half(size, &named("uniform"))?,
            Spread::Named(SpreadConfig {
                uniform: Some(HalfOrRange::Range(pair)),
                normal: None,
                ..
            }) => Self::Uniform(range(pair, &named("uniform"))?),
            Spread::Named(SpreadConfig { uniform: None, normal: Some(sigma), .. }) => {
                Self::Normal(not_negative(sigma, &named("normal"))?)
            }
            Spread::Named(_) => {
                let message = "takes one distribution";
                return Err(ConfigError::new(path, message)
                    .help("{ uniform = 0.1 }, { uniform = [-0.1, 0.2] } or { normal = 0.1 }"));
            }
        })
    }

    /// None where it is always 0.
    fn if_any(self) -> Option<Self> {
        let none = matches!(self, Self::Uniform([0.0, 0.0]) | Self::Normal(0.0));
        (!none).then_some(self)
    }

    /// For `ostler check`.
    fn text(self) -> String {
        match self {
            Self::Uniform([low, high]) if low == -high => format!("uniform {high}"),
            Self::Uniform([low, high]) => format!("uniform {low}..{high}"),
            Self::Normal(sigma) => format!("normal {sigma}"),
        }
    }
}

/// The key `noise` of a term.
fn noise(spread: Spread, kind: NoiseKind, term: &str) -> Result<Option<Error>, ConfigError> {
    let path = format!("{term}.noise");
    if let Spread::Named(SpreadConfig { when: Some(_), .. }) = spread {
        let message = "noise is drawn in every step";
        return Err(ConfigError::new(format!("{path}.when"), message)
            .help("leave `when` out; a `bias` has it"));
    }
    Ok(Error::compile(spread, kind, &path)?.if_any())
}

fn not_negative(size: f64, path: &str) -> Result<f32, ConfigError> {
    match number(size, path)? {
        size if size < 0.0 => Err(ConfigError::new(path, format!("{size} is negative"))),
        size => Ok(size),
    }
}

impl Sight {
    /// Of the term's own group, whose options are `group`.
    pub fn own(
        term: &ObservationTerm,
        group: Option<&GroupOptions>,
        path: &str,
    ) -> Result<Self, ConfigError> {
        let kind = term.noise_kind;
        if kind == NoiseKind::Normal && !matches!(term.noise, Spread::Size(_)) {
            let message = "says how a single number is meant, but `noise` says so itself";
            return Err(ConfigError::new(format!("{path}.noise_kind"), message)
                .help("leave it out, or write noise = { normal = 0.1 }"));
        }
        let noise = noise(term.noise, kind, path)?;
        Self::new(noise, term.bias, term.delay.as_ref(), term.history, group, path)
    }

    /// Of a policy's term in the critics' rows; none where it is not in them.
    pub fn copied(
        copy: Option<&CriticCopy>,
        group: Option<&GroupOptions>,
        path: &str,
    ) -> Result<Option<Self>, ConfigError> {
        let (path, default) = (format!("{path}.critic"), CriticCopy::default());
        let copy = copy.unwrap_or(&default);
        if !copy.seen {
            if *copy != (CriticCopy { seen: false, ..default.clone() }) {
                let message = "is not seen, and says how it is";
                return Err(ConfigError::new(path, message).help("critic = { seen = false }"));
            }
            return Ok(None);
        }
        let spread = copy.noise.unwrap_or_default();
        let noise = noise(spread, NoiseKind::Uniform, &path)?;
        let (bias, delay) = (copy.bias, copy.delay.as_ref());
        Self::new(noise, bias, delay, copy.history, group, &path).map(Some)
    }

    fn new(
        noise: Option<Error>,
        bias: Option<Spread>,
        delay: Option<&Delay>,
        history: Option<u32>,
        group: Option<&GroupOptions>,
        path: &str,
    ) -> Result<Self, ConfigError> {
        let bias_once =
            matches!(bias, Some(Spread::Named(SpreadConfig { when: Some(BiasWhen::Startup), .. })));
        // Also one of 0, which a curriculum may raise.
        let bias = match bias {
            Some(spread) => {
                Some(Error::compile(spread, NoiseKind::Uniform, &format!("{path}.bias"))?)
            }
            None => None,
        };
        let of_group = group.and_then(|g| g.history);
        let frames = history.or(of_group).unwrap_or(1).max(1);
        let stacked = group.is_some_and(|g| g.stack == Stack::Time);
        if stacked && history.is_some() && frames != of_group.unwrap_or(1).max(1) {
            let message = "the group is stacked by time: all of its terms have one history";
            return Err(ConfigError::new(format!("{path}.history"), message)
                .help("give it once, in [task.observations.GROUP]"));
        }
        if frames > MOST_FRAMES {
            return Err(ConfigError::new(
                format!("{path}.history"),
                format!("{frames} control steps are more than {MOST_FRAMES}"),
            ));
        }
        Ok(Self {
            noise,
            bias,
            bias_once,
            lag: Lag::compile(delay, "control", &format!("{path}.delay"))?,
            frames: frames as usize,
        })
    }

    /// Numbers that an environment remembers for it, of `len` components.
    pub fn kept(&self, len: usize) -> usize {
        let on_the_way = self.lag.map_or(0, |lag| lag.high as usize);
        len * (on_the_way + self.frames - 1)
    }

    /// For `ostler check`; empty where nothing is special.
    pub fn text(&self) -> String {
        let mut all = Vec::new();
        all.extend(self.noise.map(|e| format!("noise {}", e.text())));
        let once = if self.bias_once { ", once for an environment" } else { "" };
        all.extend(self.bias.map(|e| format!("bias {}{once}", e.text())));
        all.extend(self.lag.map(|lag| lag.text()));
        if self.frames > 1 {
            all.push(format!("history {}", self.frames));
        }
        all.join("; ")
    }
}

/// Refuses more than an environment should remember.
pub(super) fn bounded(kept: usize, path: &str) -> Result<(), ConfigError> {
    if kept <= MOST_KEPT {
        return Ok(());
    }
    let message = format!("{kept} numbers of earlier steps are more than {MOST_KEPT}");
    Err(ConfigError::new(path, message).help("fewer control steps of `history` or `delay`"))
}
