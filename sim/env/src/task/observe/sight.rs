//! How a row has a term: its noise, bias, delay and earlier values.

use super::super::late::{self, MOST_KEPT};
use crate::config::{
    self, BiasWhen, ConfigError, CriticCopy, GroupOptions, HalfOrRange, NoiseKind, ObservationTerm,
    Spread, SpreadConfig, Stack,
};
use ostler_lang::draw::{Distribution, Draw, UNLIMITED};
use ostler_lang::{number, range};
use ostler_model::Delay;

/// Most control steps whose values are seen.
const MOST_FRAMES: u32 = 256;

/// How a row has a term.
#[derive(Debug, Clone, PartialEq)]
pub(in crate::task) struct Sight {
    /// Drawn in every step.
    pub noise: Option<Draw>,
    /// What each component's noise is multiplied with; empty: with nothing.
    pub sizes: Vec<f32>,
    /// Drawn for an episode.
    pub bias: Option<Draw>,
    /// It is drawn once for every environment.
    pub bias_once: bool,
    pub lag: Option<Delay>,
    /// Control steps whose values are seen, at least 1.
    pub frames: usize,
}

/// Of the key at `path`.
fn spread(spread: &Spread, kind: NoiseKind, path: &str) -> Result<Draw, ConfigError> {
    let half = |half: f64, path: &str| {
        let half = not_negative(half, path)?;
        Ok(Draw::uniform([-half, half]))
    };
    let normal = |std: f64, path: &str| Ok(Draw::about_zero(not_negative(std, path)?));
    let at = |key: &str| format!("{path}.{key}");
    let named = match spread {
        Spread::Size(size) if kind == NoiseKind::Normal => return normal(*size, path),
        Spread::Size(size) => return half(*size, path),
        Spread::Range(pair) => return Ok(Draw::uniform(range(*pair, path)?)),
        Spread::Each(_) | Spread::Named(SpreadConfig { each: Some(_), .. }) => {
            return Err(ConfigError::new(path, "a number for each component is for `noise` alone")
                .help("one number, a range [low, high], or { normal = 0.1 }"));
        }
        Spread::Named(named) => named,
    };
    match (named.uniform, named.normal, &named.draw) {
        (Some(HalfOrRange::Half(size)), None, None) => half(size, &at("uniform")),
        (Some(HalfOrRange::Range(pair)), None, None) => {
            Ok(Draw::uniform(range(pair, &at("uniform"))?))
        }
        (None, Some(std), None) => normal(std, &at("normal")),
        (None, None, Some(draw)) => draw.compile(|key| format!("{path}.draw.{key}")),
        _ => Err(ConfigError::new(path, "takes one distribution").help(
            "{ uniform = 0.1 }, { uniform = [-0.1, 0.2] }, { normal = 0.1 }, of noise { each = [0.1, 0.3] }, or { draw = { distribution = ... } }",
        )),
    }
}

/// Numbers for each component, and the key that has them.
fn each<'a>(given: &'a Spread, path: &str) -> Option<(&'a [f64], String)> {
    match given {
        Spread::Each(all) => Some((all, path.into())),
        Spread::Named(SpreadConfig { each: Some(all), .. }) => Some((all, format!("{path}.each"))),
        _ => None,
    }
}

/// For `ostler check`.
fn text(draw: &Draw) -> String {
    let Draw { range: [low, high], mean, std, .. } = *draw;
    match draw.distribution {
        Distribution::Uniform if low == -high => format!("uniform {high}"),
        Distribution::Uniform => format!("uniform {low}..{high}"),
        Distribution::Normal if mean == 0.0 && [low, high] == UNLIMITED => format!("normal {std}"),
        _ => draw.text(),
    }
}

/// Noise, and the sizes of its components where these differ.
type Noise = (Option<Draw>, Vec<f32>);

/// The key `noise` of a term of `len` components.
fn noise(given: &Spread, kind: NoiseKind, len: usize, term: &str) -> Result<Noise, ConfigError> {
    let path = format!("{term}.noise");
    if let Spread::Named(SpreadConfig { when: Some(_), .. }) = given {
        let message = "noise is drawn in every step";
        return Err(ConfigError::new(format!("{path}.when"), message)
            .help("leave `when` out; a `bias` has it"));
    }
    let Some((all, key)) = each(given, &path) else {
        let draw = spread(given, kind, &path)?;
        return Ok((Some(draw).filter(|draw| !draw.is_zero()), Vec::new()));
    };
    if let Spread::Named(own) = given
        && *own != (SpreadConfig { each: own.each.clone(), ..SpreadConfig::default() })
    {
        let help = "leave the others out; noise_kind = \"normal\" makes it normal";
        return Err(ConfigError::new(path, "`each` stands alone").help(help));
    }
    if all.len() != len {
        let message = format!("{} numbers for {len} components", all.len());
        return Err(ConfigError::new(key, message).help("one for each, or a single number"));
    }
    let numbered = all.iter().enumerate();
    let sizes = numbered.map(|(i, size)| not_negative(*size, &format!("{key}[{i}]")));
    let sizes: Vec<f32> = sizes.collect::<Result<_, _>>()?;
    let one = spread(&Spread::Size(1.0), kind, &path)?;
    Ok((sizes.iter().any(|size| *size != 0.0).then_some(one), sizes))
}

fn not_negative(size: f64, path: &str) -> Result<f32, ConfigError> {
    match number(size, path)? {
        size if size < 0.0 => Err(ConfigError::new(path, format!("{size} is negative"))),
        size => Ok(size),
    }
}

impl Sight {
    /// Of the term's own group, whose options are `group`.
    pub(crate) fn own(
        term: &ObservationTerm,
        len: usize,
        group: Option<&GroupOptions>,
        path: &str,
    ) -> Result<Self, ConfigError> {
        let kind = term.noise_kind;
        let is_size = matches!(term.noise, Spread::Size(_)) || each(&term.noise, "").is_some();
        if kind == NoiseKind::Normal && !is_size {
            let message = "says how a single number is meant, but `noise` says so itself";
            return Err(ConfigError::new(format!("{path}.noise_kind"), message)
                .help("leave it out, or write noise = { normal = 0.1 }"));
        }
        let noise = noise(&term.noise, kind, len, path)?;
        Self::new(noise, term.bias.as_ref(), term.delay.as_ref(), term.history, group, path)
    }

    /// Of a policy's term in the critics' rows; none where it is not in them.
    pub(crate) fn copied(
        copy: Option<&CriticCopy>,
        len: usize,
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
        let given = copy.noise.clone().unwrap_or_default();
        let noise = noise(&given, NoiseKind::Uniform, len, &path)?;
        let (bias, delay) = (copy.bias.as_ref(), copy.delay.as_ref());
        Self::new(noise, bias, delay, copy.history, group, &path).map(Some)
    }

    fn new(
        (noise, sizes): Noise,
        bias: Option<&Spread>,
        delay: Option<&config::Delay>,
        history: Option<u32>,
        group: Option<&GroupOptions>,
        path: &str,
    ) -> Result<Self, ConfigError> {
        let bias_once =
            matches!(bias, Some(Spread::Named(SpreadConfig { when: Some(BiasWhen::Startup), .. })));
        // Also one of 0, which a curriculum may raise.
        let bias = bias.map(|given| spread(given, NoiseKind::Uniform, &format!("{path}.bias")));
        let bias = bias.transpose()?;
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
            sizes,
            bias,
            bias_once,
            lag: late::compile(delay, "control", &format!("{path}.delay"))?,
            frames: frames as usize,
        })
    }

    /// Numbers that an environment remembers for it, of `len` components.
    pub(crate) fn kept(&self, len: usize) -> usize {
        let on_the_way = self.lag.map_or(0, |lag| lag.most as usize);
        len * (on_the_way + self.frames - 1)
    }

    /// For `ostler check`; empty where nothing is special.
    pub(crate) fn text(&self) -> String {
        let mut all = Vec::new();
        let sized = |d: &Draw, sizes: &[f32]| {
            let each = sizes.iter().map(|size| text(&d.scaled(*size)));
            each.collect::<Vec<_>>().join(", ")
        };
        all.extend(self.noise.as_ref().map(|d| match self.sizes.is_empty() {
            true => format!("noise {}", text(d)),
            false => format!("noise {}", sized(d, &self.sizes)),
        }));
        let once = if self.bias_once { ", once for an environment" } else { "" };
        all.extend(self.bias.as_ref().map(|d| format!("bias {}{once}", text(d))));
        all.extend(self.lag.as_ref().map(late::text));
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
