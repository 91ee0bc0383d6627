//! Distributions of a command's components.

use super::super::{number, range};
use super::{Draw, share};
use crate::config::{CommandTerm, ConfigError, Distribution};

/// Most choices.
const MOST_CHOICES: usize = 4096;
const UNLIMITED: [f32; 2] = [f32::NEG_INFINITY, f32::INFINITY];

/// The components of a term, of which `first` is the first of all commands.
pub(super) fn compile(
    term: &CommandTerm,
    first: usize,
    path: &str,
) -> Result<Vec<Draw>, ConfigError> {
    no_keys_of_velocities(term, path)?;
    fitting_keys(term, path)?;
    let empty = |key: &str, example: &str| {
        Err(ConfigError::new(format!("{path}.{key}"), "no components").help(example))
    };
    let at = |key: &str, i: usize| format!("{path}.{key}[{i}]");
    let ranges = || -> Result<Vec<[f32; 2]>, ConfigError> {
        let each = term.range.iter().enumerate();
        each.map(|(i, &pair)| range(pair, &at("range", i))).collect()
    };
    // Clipped to a range where there is one.
    let clips = |count: usize| match term.range.len() {
        0 => Ok(vec![UNLIMITED; count]),
        n if n == count => ranges(),
        n => Err(ConfigError::new(
            format!("{path}.range"),
            format!("{n} ranges for {count} components"),
        )),
    };
    match term.distribution {
        Distribution::Uniform | Distribution::LogUniform if term.range.is_empty() => {
            empty("range", "range = [[-1.0, 1.0]]: one pair each")
        }
        Distribution::Uniform => Ok(ranges()?.into_iter().map(Draw::Uniform).collect()),
        Distribution::LogUniform => {
            let each = ranges()?.into_iter().enumerate();
            each.map(|(i, pair)| match pair[0] > 0.0 {
                true => Ok(Draw::Log(pair.map(|x| f64::from(x).ln() as f32))),
                false => {
                    Err(ConfigError::new(at("range", i), format!("{} has no logarithm", pair[0]))
                        .help("log_uniform numbers are above 0"))
                }
            })
            .collect()
        }
        Distribution::Normal => {
            if term.std.is_empty() {
                return empty("std", "mean = [0.0], std = [0.5]: one each");
            }
            let count = term.std.len();
            let means = match term.mean.len() {
                0 => vec![0.0; count],
                n if n == count => term.mean.clone(),
                n => {
                    let message = format!("{n} means for {count} standard deviations");
                    return Err(ConfigError::new(format!("{path}.mean"), message));
                }
            };
            let clips = clips(count)?;
            let all = means.iter().zip(&term.std).zip(clips).enumerate();
            all.map(|(i, ((&mean, &sigma), clip))| {
                let (mean, sigma) = (number(mean, &at("mean", i))?, number(sigma, &at("std", i))?);
                match sigma >= 0.0 {
                    true => Ok(Draw::Normal { mean, sigma, clip }),
                    false => Err(ConfigError::new(at("std", i), format!("{sigma} is negative"))),
                }
            })
            .collect()
        }
        Distribution::Exponential => {
            if term.mean.is_empty() {
                return empty("mean", "mean = [0.5]: one each");
            }
            let all = term.mean.iter().zip(clips(term.mean.len())?).enumerate();
            all.map(|(i, (&mean, clip))| {
                let mean = number(mean, &at("mean", i))?;
                match mean > 0.0 {
                    true => Ok(Draw::Exponential { mean, clip }),
                    false => Err(ConfigError::new(at("mean", i), format!("{mean} is not above 0"))),
                }
            })
            .collect()
        }
        Distribution::Bernoulli => {
            if term.probability.is_empty() {
                return empty("probability", "probability = [0.3]: one each");
            }
            let all = term.probability.iter().enumerate();
            all.map(|(i, &p)| Ok(Draw::Bernoulli(share(p, &at("probability", i))?))).collect()
        }
        Distribution::Choice => choices(term, first, path),
    }
}

/// One of some rows.
fn choices(term: &CommandTerm, first: usize, path: &str) -> Result<Vec<Draw>, ConfigError> {
    let count = term.choices.len();
    let at = format!("{path}.choices");
    let width = term.choices.first().map_or(0, Vec::len);
    if width == 0 {
        return Err(ConfigError::new(at, "no components")
            .help("choices = [[0.0, 0.0], [1.0, 0.0]]: one row each"));
    }
    if count > MOST_CHOICES {
        let message = format!("{count} choices are more than {MOST_CHOICES}");
        return Err(ConfigError::new(at, message));
    }
    let mut columns = vec![Vec::with_capacity(count); width];
    for (r, row) in term.choices.iter().enumerate() {
        if row.len() != width {
            let message = format!("{} numbers, the first choice has {width}", row.len());
            return Err(ConfigError::new(format!("{at}[{r}]"), message));
        }
        for (c, &value) in row.iter().enumerate() {
            columns[c].push(number(value, &format!("{at}[{r}][{c}]"))?);
        }
    }
    let weights_at = format!("{path}.weights");
    let mut weights = vec![1.0; count];
    if !term.weights.is_empty() {
        if term.weights.len() != count {
            let message = format!("{} weights for {count} choices", term.weights.len());
            return Err(ConfigError::new(weights_at, message));
        }
        weights.clone_from(&term.weights);
    }
    for (i, weight) in weights.iter().enumerate() {
        if !(*weight >= 0.0 && weight.is_finite()) {
            let message = format!("{weight} is not a weight");
            return Err(ConfigError::new(format!("{weights_at}[{i}]"), message).help("0 and more"));
        }
    }
    let sum: f64 = weights.iter().sum();
    if !(sum > 0.0 && sum.is_finite()) {
        return Err(ConfigError::new(weights_at, "no choice is likely"));
    }
    let mut so_far = 0.0;
    let shares = weights.iter().map(|w| {
        so_far += w;
        (so_far / sum) as f32
    });
    let shares: Vec<f32> = shares.collect();
    let column = |values| Draw::Choice { values, shares: shares.clone(), first };
    Ok(columns.into_iter().map(column).collect())
}

/// Refuses numbers that the distribution does not use.
fn fitting_keys(term: &CommandTerm, path: &str) -> Result<(), ConfigError> {
    use Distribution::{Bernoulli, Choice, Exponential, LogUniform, Normal, Uniform};
    let (range, mean, std) = (&term.range, &term.mean, &term.std);
    for (key, given, of) in [
        ("range", !range.is_empty(), &[Uniform, LogUniform, Normal, Exponential][..]),
        ("mean", !mean.is_empty(), &[Normal, Exponential]),
        ("std", !std.is_empty(), &[Normal]),
        ("probability", !term.probability.is_empty(), &[Bernoulli]),
        ("choices", !term.choices.is_empty(), &[Choice]),
        ("weights", !term.weights.is_empty(), &[Choice]),
    ] {
        if given && !of.contains(&term.distribution) {
            let word = |d: &Distribution| match d {
                Uniform => "\"uniform\"",
                LogUniform => "\"log_uniform\"",
                Normal => "\"normal\"",
                Exponential => "\"exponential\"",
                Bernoulli => "\"bernoulli\"",
                Choice => "\"choice\"",
            };
            let of: Vec<&str> = of.iter().map(word).collect();
            let message = format!("means nothing to {} numbers", word(&term.distribution));
            return Err(ConfigError::new(format!("{path}.{key}"), message)
                .help(format!("distribution = {}", of.join(" or "))));
        }
    }
    Ok(())
}

fn no_keys_of_velocities(term: &CommandTerm, path: &str) -> Result<(), ConfigError> {
    for (key, given) in [
        ("frame", term.frame.is_some()),
        ("lin_vel_x", term.lin_vel_x.is_some()),
        ("lin_vel_y", term.lin_vel_y.is_some()),
        ("ang_vel_z", term.ang_vel_z.is_some()),
        ("heading", term.heading.is_some()),
        ("standing", term.standing != 0.0),
        ("forward", term.forward != 0.0),
        ("world", term.world != 0.0),
        ("deadband", term.deadband != 0.0),
    ] {
        if given {
            return Err(ConfigError::new(format!("{path}.{key}"), "is for velocities of a robot")
                .help("kind = \"velocity\""));
        }
    }
    Ok(())
}
