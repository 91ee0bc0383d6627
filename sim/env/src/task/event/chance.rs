//! Distributions of an event's numbers.

use super::Chance;
use super::compile::Compiler;
use crate::config::{ConfigError, EventDistribution, EventRange, OneOrMany};
use crate::task::{number, range};

impl Compiler<'_> {
    /// The distribution of component `i` of `n`.
    pub(super) fn chance(&self, i: usize, n: usize) -> Result<Chance, ConfigError> {
        let term = self.term;
        let unused = |key: &str, given: bool, of: &str| match given {
            true => Err(self
                .error(key, format!("has no meaning for distribution = \"{of}\""))
                .help("leave it out, or choose another distribution")),
            false => Ok(()),
        };
        let pick = |given: &Option<OneOrMany>, key: &str| -> Result<f32, ConfigError> {
            let path = format!("{}.{key}", self.path);
            match given {
                None => Err(ConfigError::new(path, "is needed for distribution = \"normal\"")
                    .help("mean = 0.0 and std = 0.1, for example")),
                Some(OneOrMany::One(x)) => number(*x, &path),
                Some(OneOrMany::Many(list)) if list.len() == n => number(list[i], &path),
                Some(OneOrMany::Named(_)) => {
                    Err(ConfigError::new(path, "takes no patterns of names")
                        .help("write an event for each"))
                }
                Some(OneOrMany::Many(list)) => Err(ConfigError::new(
                    path,
                    format!("{} numbers for {n} components", list.len()),
                )),
            }
        };
        match term.distribution {
            EventDistribution::Uniform | EventDistribution::LogUniform => {
                let log = term.distribution == EventDistribution::LogUniform;
                let of = if log { "log_uniform" } else { "uniform" };
                unused("mean", term.mean.is_some(), of)?;
                unused("std", term.std.is_some(), of)?;
                unused("choices", !term.choices.is_empty(), of)?;
                let ends = self.range(i, n)?;
                if !log {
                    return Ok(Chance::Uniform(ends));
                }
                if ends[0] <= 0.0 {
                    return Err(self
                        .error("range", format!("{} has no logarithm", ends[0]))
                        .help("log_uniform ranges begin above 0"));
                }
                Ok(Chance::LogUniform(ends.map(f32::ln)))
            }
            EventDistribution::Normal => {
                unused("choices", !term.choices.is_empty(), "normal")?;
                unused("range", term.range.is_some(), "normal")?;
                let (mean, std) = (pick(&term.mean, "mean")?, pick(&term.std, "std")?);
                if std < 0.0 {
                    return Err(self.error("std", format!("{std} is negative")));
                }
                Ok(Chance::Normal { mean, std })
            }
            EventDistribution::Choice => {
                unused("range", term.range.is_some(), "choice")?;
                unused("mean", term.mean.is_some(), "choice")?;
                unused("std", term.std.is_some(), "choice")?;
                if term.choices.is_empty() {
                    return Err(self
                        .error("choices", "there is nothing to choose from")
                        .help("choices = [0.5, 1.0], for example"));
                }
                let path = format!("{}.choices", self.path);
                let numbers = term.choices.iter().map(|x| number(*x, &path));
                Ok(Chance::Choice(numbers.collect::<Result<_, _>>()?))
            }
        }
    }

    /// The range of component `i` of `n`.
    fn range(&self, i: usize, n: usize) -> Result<[f32; 2], ConfigError> {
        let path = format!("{}.range", self.path);
        match &self.term.range {
            None => {
                Err(ConfigError::new(path, "is missing").help("range = [0.8, 1.2], for example"))
            }
            Some(EventRange::One(ends)) => range(*ends, &path),
            Some(EventRange::Each(all)) if all.len() == n => range(all[i], &format!("{path}[{i}]")),
            Some(EventRange::Each(all)) => {
                Err(ConfigError::new(path, format!("{} ranges for {n} components", all.len()))
                    .help(format!("give one for all, or {n}")))
            }
            Some(EventRange::Pseudo(_)) => {
                Err(ConfigError::new(path, "a table of ranges is for pseudo_inertia")
                    .help("range = [0.8, 1.2], for example"))
            }
        }
    }
}

impl Chance {
    /// Least and greatest number; none where there is no end.
    pub fn ends(&self) -> Option<[f64; 2]> {
        match self {
            Self::Uniform(ends) => Some(ends.map(f64::from)),
            Self::LogUniform(ends) => Some(ends.map(|x| f64::from(x).exp())),
            Self::Choice(all) => {
                let all = || all.iter().map(|x| f64::from(*x));
                Some([all().fold(f64::INFINITY, f64::min), all().fold(f64::NEG_INFINITY, f64::max)])
            }
            Self::Normal { .. } => None,
        }
    }

    /// The key that says which numbers there are.
    pub fn key(&self) -> &'static str {
        match self {
            Self::Uniform(_) | Self::LogUniform(_) => "range",
            Self::Normal { .. } => "mean",
            Self::Choice(_) => "choices",
        }
    }

    /// A number that is not unusual: the greatest end, or the mean.
    pub fn usual(&self) -> f32 {
        match self {
            Self::Normal { mean, .. } => *mean,
            other => other.ends().map_or(0.0, |ends| ends[1] as f32),
        }
    }
}
