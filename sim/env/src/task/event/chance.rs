//! Distributions of an event's numbers.

use super::compile::Compiler;
use crate::config::{ConfigError, Distribution, DrawConfig, EventRange, OneOrMany};
use ostler_lang::draw::Draw;

impl Compiler<'_> {
    /// The distribution of component `i` of `n`.
    pub(super) fn chance(&self, i: usize, n: usize) -> Result<Draw, ConfigError> {
        let term = self.term;
        let normal = term.distribution == Distribution::Normal;
        if normal && term.range.is_some() {
            return Err(self
                .error("range", "has no meaning for distribution = \"normal\"")
                .help("distribution = \"truncated_normal\" draws numbers in the range alone"));
        }
        if normal && term.mean.is_none() {
            return Err(self
                .error("mean", "is needed for distribution = \"normal\"")
                .help("mean = 0.0 and std = 0.1, for example"));
        }
        let pick = |given: &Option<OneOrMany>, key: &str| {
            let path = || format!("{}.{key}", self.path);
            match given {
                None => Ok(None),
                Some(OneOrMany::One(x)) => Ok(Some(*x)),
                Some(OneOrMany::Many(list)) if list.len() == n => Ok(Some(list[i])),
                Some(OneOrMany::Named(_)) => {
                    Err(ConfigError::new(path(), "takes no patterns of names")
                        .help("write an event for each"))
                }
                Some(OneOrMany::Many(list)) => Err(ConfigError::new(
                    path(),
                    format!("{} numbers for {n} components", list.len()),
                )),
            }
        };
        let config = DrawConfig {
            distribution: term.distribution,
            range: self.range(i, n)?,
            mean: pick(&term.mean, "mean")?,
            std: pick(&term.std, "std")?,
            probability: pick(&term.probability, "probability")?,
            choices: term.choices.clone(),
            weights: term.weights.clone(),
        };
        let each = matches!(term.range, Some(EventRange::Each(_)));
        let mut draw = config.compile(|key| match key {
            "range" if each => format!("{}.{key}[{i}]", self.path),
            _ => format!("{}.{key}", self.path),
        })?;
        if let (Distribution::LogUniform, Some(ends)) = (draw.distribution, config.range) {
            // Events take logarithms in single precision, others in double: the bits of draws.
            draw.range = ends.map(|x| (x as f32).ln());
        }
        Ok(draw)
    }

    /// The range of component `i` of `n`.
    fn range(&self, i: usize, n: usize) -> Result<Option<[f64; 2]>, ConfigError> {
        let path = format!("{}.range", self.path);
        match &self.term.range {
            None => Ok(None),
            Some(EventRange::One(ends)) => Ok(Some(*ends)),
            Some(EventRange::Each(all)) if all.len() == n => Ok(Some(all[i])),
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

/// A number that is not unusual: the greatest end, or the mean.
pub(super) fn usual(draw: &Draw) -> f32 {
    match draw.ends() {
        [_, most] if most.is_finite() => most as f32,
        _ => draw.middle(),
    }
}
