//! Distributions of a command's components.

use crate::config::{CommandTerm, ConfigError, Distribution};
use ostler_lang::draw::{Draw, DrawConfig, shares};
use ostler_lang::number;

/// Most choices.
const MOST_CHOICES: usize = 4096;

/// The components of a term.
pub(super) fn compile(term: &CommandTerm, path: &str) -> Result<Vec<Draw>, ConfigError> {
    no_keys_of_velocities(term, path)?;
    let at = |key: &str| format!("{path}.{key}");
    let lengths = [
        ("range", term.range.len()),
        ("mean", term.mean.len()),
        ("std", term.std.len()),
        ("probability", term.probability.len()),
        ("choices", term.choices.len()),
        ("weights", term.weights.len()),
    ];
    let [needs, _] = term.distribution.keys();
    let leading = needs.first().copied().unwrap_or_default();
    let count = lengths.iter().find(|(key, _)| *key == leading).map_or(0, |(_, n)| *n);
    if count == 0 {
        let example = match leading {
            "range" => "range = [[-1.0, 1.0]]: one pair each",
            "std" => "mean = [0.0], std = [0.5]: one each",
            "mean" => "mean = [0.5]: one each",
            "probability" => "probability = [0.3]: one each",
            _ => "choices = [[0.0, 0.0], [1.0, 0.0]]: one row each",
        };
        return Err(ConfigError::new(at(leading), "no components").help(example));
    }
    term.distribution.fits(&lengths.map(|(key, n)| (key, n > 0)), at)?;
    if term.distribution == Distribution::Choice {
        return choices(term, path);
    }
    for (key, found) in lengths {
        if found > 0 && found != count {
            let what = |key: &str| match key {
                "range" => "ranges",
                "mean" => "means",
                _ => "standard deviations",
            };
            let of = if leading == "std" { what(leading) } else { "components" };
            let message = format!("{found} {} for {count} {of}", what(key));
            return Err(ConfigError::new(at(key), message).help("one for each component"));
        }
    }
    let component = |i: usize| {
        let config = DrawConfig {
            distribution: term.distribution,
            range: term.range.get(i).copied(),
            mean: term.mean.get(i).copied(),
            std: term.std.get(i).copied(),
            probability: term.probability.get(i).copied(),
            ..DrawConfig::default()
        };
        config.compile(|key| format!("{path}.{key}[{i}]"))
    };
    (0..count).map(component).collect()
}

/// One of some rows.
fn choices(term: &CommandTerm, path: &str) -> Result<Vec<Draw>, ConfigError> {
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
    let alike = vec![1.0; count];
    let weights = if term.weights.is_empty() { &alike } else { &term.weights };
    let shares = shares(count, weights, &format!("{path}.weights"))?;
    let column = |values| Draw::choice(values, shares.clone());
    Ok(columns.into_iter().map(column).collect())
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
