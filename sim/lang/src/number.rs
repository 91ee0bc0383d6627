//! Numbers of configurations as kernels take them.

use ostler_base::ConfigError;

/// A number that a float can hold.
pub fn number(value: f64, path: &str) -> Result<f32, ConfigError> {
    let narrow = value as f32;
    if narrow.is_finite() {
        Ok(narrow)
    } else {
        Err(ConfigError::new(path, format!("{value} is not a finite single-precision number")))
    }
}

/// A number that a float can hold, with all its digits.
pub fn exact(value: f64, path: &str) -> Result<f64, ConfigError> {
    number(value, path).map(|_| value)
}

/// `[low, high]` with `low <= high`, both finite.
pub fn range([low, high]: [f64; 2], path: &str) -> Result<[f32; 2], ConfigError> {
    let pair = [number(low, path)?, number(high, path)?];
    if pair[0] > pair[1] {
        return Err(ConfigError::new(path, format!("the range [{low}, {high}] is upside down"))
            .help(format!("write [{high}, {low}]")));
    }
    Ok(pair)
}
