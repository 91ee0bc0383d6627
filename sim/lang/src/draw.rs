//! Random numbers by their distributions: of commands, resets, events, noise and biases, and of
//! expressions where an episode begins.
//!
//! A distribution more, of keys that there are, is a word of [`Distribution`] with what it needs, a
//! variant of [`Draw`], and its formula in `kernels/env/draw.cuh`.

use crate::{number, range};
use ostler_base::ConfigError;
use ostler_engine::kernels;
use ostler_engine::state::Tables;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Ends of what nothing limits.
pub const UNLIMITED: [f32; 2] = [f32::NEG_INFINITY, f32::INFINITY];

/// How numbers are distributed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Distribution {
    /// Evenly in `range`.
    #[default]
    Uniform,
    /// Their logarithms evenly.
    LogUniform,
    /// Normally, with `mean` and `std`.
    Normal,
    /// Normally, but only what lies in `range`; `mean` and `std` are those before the cut.
    TruncatedNormal,
    /// Exponentially, with `mean`.
    Exponential,
    /// As the beta distribution over `range` with `mean` and `std`.
    Beta,
    /// 1 with `probability`, else 0.
    Bernoulli,
    /// One of `choices`.
    Choice,
}

impl Distribution {
    const ALL: [Self; 8] = [
        Self::Uniform,
        Self::LogUniform,
        Self::Normal,
        Self::TruncatedNormal,
        Self::Exponential,
        Self::Beta,
        Self::Bernoulli,
        Self::Choice,
    ];

    /// As it is written.
    pub fn word(self) -> &'static str {
        match self {
            Self::Uniform => "uniform",
            Self::LogUniform => "log_uniform",
            Self::Normal => "normal",
            Self::TruncatedNormal => "truncated_normal",
            Self::Exponential => "exponential",
            Self::Beta => "beta",
            Self::Bernoulli => "bernoulli",
            Self::Choice => "choice",
        }
    }

    /// Keys that it needs, and those that it may have. Of a command the first has an entry for each
    /// component.
    pub fn keys(self) -> [&'static [&'static str]; 2] {
        match self {
            Self::Uniform | Self::LogUniform => [&["range"], &[]],
            Self::Normal => [&["std"], &["mean", "range"]],
            Self::TruncatedNormal => [&["range", "std"], &["mean"]],
            Self::Exponential => [&["mean"], &["range"]],
            Self::Beta => [&["range", "mean", "std"], &[]],
            Self::Bernoulli => [&["probability"], &[]],
            Self::Choice => [&["choices"], &["weights"]],
        }
    }

    /// Refuses keys, of those that are `given`, that mean nothing to it, and that what it needs is
    /// not there. `at`: the path of a key.
    pub fn fits(
        self,
        given: &[(&str, bool)],
        at: impl Fn(&str) -> String,
    ) -> Result<(), ConfigError> {
        let [needs, may] = self.keys();
        let word = self.word();
        for &(key, given) in given {
            if given && !needs.contains(&key) && !may.contains(&key) {
                let others = Self::ALL.iter().filter(|d| d.keys().concat().contains(&key));
                let others: Vec<String> = others.map(|d| format!("{:?}", d.word())).collect();
                let why = format!("has no meaning for distribution = \"{word}\"");
                return Err(ConfigError::new(at(key), why).help(format!(
                    "leave it out, or choose another: distribution = {}",
                    others.join(" or ")
                )));
            }
            if !given && needs.contains(&key) {
                let why = match key {
                    "choices" => "there is nothing to choose from".to_string(),
                    _ => format!("is missing, and is needed for distribution = \"{word}\""),
                };
                let example = match key {
                    "range" => "range = [0.8, 1.2]",
                    "mean" => "mean = 0.0",
                    "std" => "std = 0.1",
                    "probability" => "probability = 0.5",
                    _ => "choices = [0.5, 1.0]",
                };
                return Err(ConfigError::new(at(key), why).help(format!("{example}, for example")));
            }
        }
        Ok(())
    }
}

/// The distribution of a number: `{ distribution = "beta", range = [0, 1], mean = 0.3, std = 0.1 }`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct DrawConfig {
    /// Its name.
    pub distribution: Distribution,
    /// Least and greatest number; normal and exponential ones are clipped to it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub range: Option<[f64; 2]>,
    /// Mean; of normal numbers 0 without it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mean: Option<f64>,
    /// Standard deviation.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub std: Option<f64>,
    /// Probability of 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub probability: Option<f64>,
    /// Numbers to choose from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub choices: Vec<f64>,
    /// How likely each of the choices is, compared with the others; without it all alike.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub weights: Vec<f64>,
}

/// A compiled distribution of a number.
#[derive(Debug, Clone, PartialEq)]
pub struct Draw {
    /// Its name.
    pub distribution: Distribution,
    /// Least and greatest number, infinite where nothing limits it; of a log-uniform one their
    /// logarithms.
    pub range: [f32; 2],
    /// Mean; of a truncated normal number that before the cut. The probability of 1.
    pub mean: f32,
    /// Standard deviation, likewise.
    pub std: f32,
    /// Numbers to choose from.
    pub choices: Vec<f32>,
    /// Of each its probability and that of those before.
    pub shares: Vec<f32>,
}

impl DrawConfig {
    /// Its keys, and whether they are given.
    pub(super) fn given(&self) -> [(&'static str, bool); 6] {
        [
            ("range", self.range.is_some()),
            ("mean", self.mean.is_some()),
            ("std", self.std.is_some()),
            ("probability", self.probability.is_some()),
            ("choices", !self.choices.is_empty()),
            ("weights", !self.weights.is_empty()),
        ]
    }

    /// Checks the numbers. `at`: the path of a key.
    ///
    /// # Errors
    /// A key that the distribution does not take, one that is missing, a number that cannot be.
    pub fn compile(&self, at: impl Fn(&str) -> String) -> Result<Draw, ConfigError> {
        self.distribution.fits(&self.given(), &at)?;
        let refused =
            |key: &str, why: String, help: &str| ConfigError::new(at(key), why).help(help);
        let ends = || self.range.map_or(Ok(UNLIMITED), |pair| range(pair, &at("range")));
        let mean = || number(self.mean.unwrap_or_default(), &at("mean"));
        let std = || match number(self.std.unwrap_or_default(), &at("std"))? {
            std if std < 0.0 => Err(refused("std", format!("{std} is negative"), "0 and more")),
            std => Ok(std),
        };
        let (range, mean, std) = (ends()?, mean()?, std()?);
        let draw = Draw { mean, std, ..Draw::new(self.distribution, range) };
        match self.distribution {
            Distribution::Uniform | Distribution::Normal => {}
            Distribution::LogUniform => return Draw::log_uniform(range, &at("range")),
            Distribution::TruncatedNormal => {
                let most = MOST_DEVIATIONS * std;
                if std == 0.0 || range[0] - mean > most || mean - range[1] > most {
                    let why = format!(
                        "{std} leaves no number between {} and {}: they are farther from the mean \
                         than {MOST_DEVIATIONS:e} standard deviations",
                        range[0], range[1]
                    );
                    let help = "distribution = \"uniform\", or a greater std";
                    return Err(refused("std", why, help));
                }
            }
            Distribution::Exponential if mean > 0.0 => {}
            Distribution::Exponential => {
                return Err(refused("mean", format!("{mean} is not above 0"), "above 0"));
            }
            Distribution::Beta => {
                if !(range[0] < mean && mean < range[1]) {
                    let why = format!("{mean} is not between {} and {}", range[0], range[1]);
                    let help = "between the ends of `range`, neither of them";
                    return Err(refused("mean", why, help));
                }
                // The least has shapes of 10^6, the greatest both ends and nothing between.
                let most = (f64::from(mean - range[0]) * f64::from(range[1] - mean)).sqrt();
                if !(1e-3 * most..most * (1.0 - 1e-6)).contains(&f64::from(std)) {
                    let why = format!("{std} is no standard deviation of a beta distribution here");
                    let help = format!("{:.4} to {most:.4}, not these", 1e-3 * most);
                    return Err(refused("std", why, &help));
                }
            }
            Distribution::Bernoulli => {
                let mean = share(self.probability.unwrap_or_default(), &at("probability"))?;
                return Ok(Draw { mean, range: [0.0, 1.0], ..draw });
            }
            Distribution::Choice => {
                let path = at("choices");
                let choices = self.choices.iter().map(|x| number(*x, &path));
                let choices: Vec<f32> = choices.collect::<Result<_, _>>()?;
                return Ok(match self.weights.is_empty() {
                    true => Draw::one_of(choices),
                    false => {
                        let shares = shares(choices.len(), &self.weights, &at("weights"))?;
                        Draw::choice(choices, shares)
                    }
                });
            }
        }
        Ok(draw)
    }
}

/// Most standard deviations from the mean to a range.
const MOST_DEVIATIONS: f32 = 1e6;

/// A probability, or a share of environments.
pub fn share(value: f64, path: &str) -> Result<f32, ConfigError> {
    let share = number(value, path)?;
    if (0.0..=1.0).contains(&share) {
        return Ok(share);
    }
    Err(ConfigError::new(path, format!("{value} is not a share")).help("0 to 1"))
}

/// Sums of the probabilities of `count` choices so far, with these weights.
pub fn shares(count: usize, weights: &[f64], path: &str) -> Result<Vec<f32>, ConfigError> {
    if weights.len() != count {
        let message = format!("{} weights for {count} choices", weights.len());
        return Err(ConfigError::new(path, message).help(format!("{count} numbers")));
    }
    for (i, weight) in weights.iter().enumerate() {
        if !(*weight >= 0.0 && weight.is_finite()) {
            let message = format!("{weight} is not a weight");
            return Err(ConfigError::new(format!("{path}[{i}]"), message).help("0 and more"));
        }
    }
    let sum: f64 = weights.iter().sum();
    if !(sum > 0.0 && sum.is_finite()) {
        return Err(ConfigError::new(path, "no choice is likely").help("a weight above 0"));
    }
    let mut so_far = 0.0;
    let share = weights.iter().map(|w| {
        so_far += w;
        (so_far / sum) as f32
    });
    Ok(share.collect())
}

/// The same where all are alike: bounds between which `floor(u count)` has one value, rounded as
/// single precision rounds it, for `u` of 24 bits.
fn even_shares(count: usize) -> Vec<f32> {
    const UNITS: u32 = 1 << 24;
    let unit = |k: u32| k as f32 / UNITS as f32;
    let bound = |i: usize| {
        let (mut least, mut most) = (0, UNITS);
        while least < most {
            let middle = least + (most - least) / 2;
            match (unit(middle) * count as f32) as usize > i {
                true => most = middle,
                false => least = middle + 1,
            }
        }
        unit(least)
    };
    (0..count).map(bound).collect()
}

impl Draw {
    const fn new(distribution: Distribution, range: [f32; 2]) -> Self {
        let (mean, std) = (0.0, 0.0);
        Self { distribution, range, mean, std, choices: Vec::new(), shares: Vec::new() }
    }

    /// Evenly from the one to the other.
    pub const fn uniform(range: [f32; 2]) -> Self {
        Self::new(Distribution::Uniform, range)
    }

    /// Normally about 0. The mean is -0: added to any number it leaves every bit.
    pub fn about_zero(std: f32) -> Self {
        Self { mean: -0.0, std, ..Self::new(Distribution::Normal, UNLIMITED) }
    }

    /// Of the range at `path`.
    pub fn log_uniform(range: [f32; 2], path: &str) -> Result<Self, ConfigError> {
        if range[0] > 0.0 {
            let logs = range.map(|x| f64::from(x).ln() as f32);
            return Ok(Self::new(Distribution::LogUniform, logs));
        }
        Err(ConfigError::new(path, format!("{} has no logarithm", range[0]))
            .help("log_uniform numbers are above 0"))
    }

    /// One of these numbers, with the sums of their probabilities so far.
    pub fn choice(choices: Vec<f32>, shares: Vec<f32>) -> Self {
        let all = || choices.iter().copied();
        let ends = [all().fold(f32::INFINITY, f32::min), all().fold(f32::NEG_INFINITY, f32::max)];
        Self { choices, shares, ..Self::new(Distribution::Choice, ends) }
    }

    /// One of these numbers, all alike.
    pub fn one_of(choices: Vec<f32>) -> Self {
        let shares = even_shares(choices.len());
        Self::choice(choices, shares)
    }

    /// The same times a number, 0 or more, where it is uniform or normal.
    #[must_use]
    pub fn scaled(&self, by: f32) -> Self {
        let Self { range, mean, std, .. } = *self;
        // Nothing times nothing is no limit.
        let end = |x: f32| if x.is_finite() { x * by } else { x };
        Self { range: range.map(end), mean: mean * by, std: std * by, ..self.clone() }
    }

    /// Its number in the kernels, and the four numbers of its row.
    fn row(&self) -> (u32, [f32; 2], [f32; 2]) {
        let Self { range, mean, std, .. } = *self;
        let (chance, numbers) = match self.distribution {
            Distribution::Uniform => (kernels::CHANCE_UNIFORM, range),
            Distribution::LogUniform => (kernels::CHANCE_LOG, range),
            Distribution::Normal => (kernels::CHANCE_NORMAL, [mean, std]),
            Distribution::TruncatedNormal => (kernels::CHANCE_TRUNCATED_NORMAL, [mean, std]),
            Distribution::Exponential => (kernels::CHANCE_EXPONENTIAL, [mean, std]),
            Distribution::Beta => (kernels::CHANCE_BETA, shapes(mean, std, range)),
            Distribution::Bernoulli => (kernels::CHANCE_BERNOULLI, [mean, std]),
            Distribution::Choice => (kernels::CHANCE_CHOICE, [mean, std]),
        };
        (chance, numbers, range)
    }

    /// Least and greatest number, infinite where nothing limits it.
    pub fn ends(&self) -> [f64; 2] {
        match self.distribution {
            Distribution::LogUniform => self.range.map(|x| f64::from(x).exp()),
            _ => self.range.map(f64::from),
        }
    }

    /// The ends, or what nearly all numbers lie between.
    pub fn nearly_all(&self) -> [f32; 2] {
        let Self { range, mean, std, .. } = *self;
        match self.distribution {
            Distribution::LogUniform => range.map(f32::exp),
            Distribution::Normal => {
                [(mean - 3.0 * std).max(range[0]), (mean + 3.0 * std).min(range[1])]
            }
            Distribution::Exponential => [range[0].max(0.0), (5.0 * mean).min(range[1])],
            _ => range,
        }
    }

    /// The middle of its range; the mean where it has one, the first choice, the likelier of two.
    pub fn middle(&self) -> f32 {
        let [low, high] = self.range;
        let half = low + (high - low) / 2.0;
        match self.distribution {
            Distribution::Uniform => half,
            Distribution::LogUniform => half.exp(),
            Distribution::Bernoulli => f32::from(u8::from(self.mean >= 0.5)),
            Distribution::Choice => self.choices.first().copied().unwrap_or(0.0),
            _ => self.mean.max(low).min(high),
        }
    }

    /// The key that says which numbers there are.
    pub fn key(&self) -> &'static str {
        let [needs, _] = self.distribution.keys();
        match self.distribution {
            Distribution::Normal => "mean",
            _ => needs.first().copied().unwrap_or_default(),
        }
    }

    /// Whether it is always 0.
    pub fn is_zero(&self) -> bool {
        let normal = self.distribution == Distribution::Normal && self.range == UNLIMITED;
        let uniform = self.distribution == Distribution::Uniform && self.range == [0.0; 2];
        uniform || (normal && [self.mean, self.std] == [0.0; 2])
    }

    /// In words, for `ostler check`.
    pub fn text(&self) -> String {
        let [a, b] = self.ends().map(|x| short(x as f32));
        let mean = short(self.mean);
        match self.distribution {
            Distribution::Uniform => format!("{a} to {b}"),
            Distribution::LogUniform => format!("{a} to {b}, even in the logarithm"),
            Distribution::Bernoulli => format!("1 with probability {mean}, else 0"),
            Distribution::Choice => {
                const SHOWN: usize = 6;
                let some = self.choices.iter().take(SHOWN).map(|x| short(*x));
                let more = if self.choices.len() > SHOWN { ", ..." } else { "" };
                format!("one of {}{more}", some.collect::<Vec<_>>().join(", "))
            }
            other => {
                let mut text = format!("{}, mean {mean}", other.word().replace('_', " "));
                if other != Distribution::Exponential {
                    text += &format!(", standard deviation {}", short(self.std));
                }
                if self.range != UNLIMITED {
                    text += &format!(", from {a} to {b}");
                }
                text
            }
        }
    }

    /// For exported files: the name of the distribution, and its numbers.
    pub fn json(&self) -> Value {
        let ends = self.ends().map(|x| x.is_finite().then_some(x as f32));
        let numbers = match self.distribution {
            Distribution::Uniform | Distribution::LogUniform => json!(ends),
            Distribution::Normal if self.mean == 0.0 && self.range == UNLIMITED => json!(self.std),
            Distribution::Bernoulli => json!(self.mean),
            Distribution::Choice => json!({ "choices": self.choices, "up_to": self.shares }),
            Distribution::Exponential => json!({ "mean": self.mean, "range": ends }),
            _ => json!({ "mean": self.mean, "std": self.std, "range": ends }),
        };
        json!({ self.distribution.word(): numbers })
    }
}

/// The two shapes of a beta distribution by its mean and standard deviation.
fn shapes(mean: f32, std: f32, [low, high]: [f32; 2]) -> [f32; 2] {
    let [mean, std, low, high] = [mean, std, low, high].map(f64::from);
    let (part, spread) = ((mean - low) / (high - low), std / (high - low));
    let both = part * (1.0 - part) / (spread * spread) - 1.0;
    [(part * both) as f32, ((1.0 - part) * both) as f32]
}

/// Four decimals at most.
fn short(x: f32) -> String {
    if x != 0.0 && x.abs() < 1e-3 {
        return format!("{x:.2e}");
    }
    let text = format!("{x:.4}");
    text.trim_end_matches('0').trim_end_matches('.').to_string()
}

/// A row of the table of draws.
pub fn row(t: &mut Tables, draw: Option<&Draw>) {
    let row = draw.map_or((kernels::CHANCE_NONE, [0.0; 2], UNLIMITED), Draw::row);
    let (chance, [low, high], [least, most]) = row;
    if let Some(draw) = draw {
        t.option.extend(&draw.choices);
        t.option_share.extend(&draw.shares);
    }
    t.draw_chance.push(chance);
    t.draw_low.push(low);
    t.draw_high.push(high);
    t.draw_least.push(least);
    t.draw_most.push(most);
    t.draw_end.push(t.option.len() as u32);
}

/// The same of noise. Uniform noise has its middle and its half-width, as they are written to
/// the last bit.
pub fn noise_row(t: &mut Tables, draw: Option<&Draw>) {
    let at = t.draw_chance.len();
    row(t, draw);
    if let Some(Draw { distribution: Distribution::Uniform, range: [low, high], .. }) = draw {
        let middle = if *low == -high { 0.0 } else { (low + high) / 2.0 };
        t.draw_chance[at] = kernels::CHANCE_CENTRED;
        t.draw_low[at] = middle;
        t.draw_high[at] = if *low == -high { *high } else { (high - low) / 2.0 };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn even_shares_pick_what_the_product_does() {
        for count in [1, 2, 3, 5, 7, 12, 100, 999, 4096] {
            let shares = even_shares(count);
            let check = |k: u32| {
                let u = k as f32 / (1 << 24) as f32;
                let picked = shares.partition_point(|share| u >= *share).min(count - 1);
                let product = ((u * count as f32) as usize).min(count - 1);
                assert_eq!(picked, product, "{k} of {count}");
            };
            for share in &shares {
                let k = (share * (1 << 24) as f32) as u32;
                (k.saturating_sub(2)..k + 3).filter(|k| *k < 1 << 24).for_each(check);
            }
            (0..1 << 24).step_by(4099).for_each(check);
        }
    }

    #[test]
    fn words_are_those_of_the_configuration() {
        for distribution in Distribution::ALL {
            let json = serde_json::to_value(distribution).unwrap();
            assert_eq!(json, distribution.word());
        }
    }

    #[test]
    fn shapes_have_the_mean_and_the_standard_deviation() {
        let [a, b] = shapes(0.5, 0.75, [-1.0, 3.0]).map(f64::from);
        assert!((4.0 * a / (a + b) - 1.0 - 0.5).abs() < 1e-6);
        let variance = 16.0 * a * b / ((a + b).powi(2) * (a + b + 1.0));
        assert!((variance.sqrt() - 0.75).abs() < 1e-6);
    }
}
