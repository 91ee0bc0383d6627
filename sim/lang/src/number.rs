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

/// The same, or an infinite one.
pub fn open(value: f64, path: &str) -> Result<f64, ConfigError> {
    if value.is_infinite() { Ok(value) } else { exact(value, path) }
}

/// `[low, high]` with `low <= high`, both finite.
pub fn range(ends: [f64; 2], path: &str) -> Result<[f32; 2], ConfigError> {
    ordered(ends, path, number)
}

/// `[low, high]` to clip to, with `low <= high`; an end that is infinite clips nothing there.
pub fn clip_range(ends: [f64; 2], path: &str) -> Result<[f32; 2], ConfigError> {
    let [low, high] = ends;
    if low == f64::INFINITY || high == f64::NEG_INFINITY {
        let why = format!("nothing lies within [{low}, {high}]");
        return Err(ConfigError::new(path, why).help("[-inf, inf] clips nothing"));
    }
    ordered(ends, path, |end, path| open(end, path).map(|x| x as f32))
}

fn ordered(
    [low, high]: [f64; 2],
    path: &str,
    end: fn(f64, &str) -> Result<f32, ConfigError>,
) -> Result<[f32; 2], ConfigError> {
    let pair = [end(low, path)?, end(high, path)?];
    if pair[0] > pair[1] {
        return Err(ConfigError::new(path, format!("the range [{low}, {high}] is upside down"))
            .help(format!("write [{high}, {low}]")));
    }
    Ok(pair)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_clipped_may_be_open_at_an_end() {
        let inf = f64::INFINITY;
        assert_eq!(clip_range([0.0, inf], "x").unwrap(), [0.0, f32::INFINITY]);
        assert_eq!(clip_range([-inf, inf], "x").unwrap(), [f32::NEG_INFINITY, f32::INFINITY]);
        assert_eq!(clip_range([-1.0, 2.0], "x").unwrap(), [-1.0, 2.0]);
        for wrong in [[inf, inf], [-inf, -inf], [0.0, f64::NAN], [2.0, 1.0], [1e300, inf]] {
            assert!(clip_range(wrong, "x").is_err(), "{wrong:?}");
        }
    }
}
