//! Units of values: exponents of metre, kilogram, second and radian.

use ostler_base::ConfigError;
use std::fmt;

/// Exponents are counted in halves, so that `sqrt` stays exact.
type Halves = i16;

/// Unit of one number.
///
/// Literals, actions and parameters are [`Unit::Any`]: they take whatever unit
/// makes the expression right. A product with such a number is `Any` too, which
/// is how one says how two units compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Unit {
    /// Not known, fits everything.
    Any,
    /// Twice the exponents of `[m, kg, s, rad]`.
    Of([Halves; 4]),
}

/// The remedy for a unit that is not known.
pub(super) const UNITS: &str =
    "units are products of m, kg, s, rad, N, J, W, Hz, such as \"m/s^2\"";

const SYMBOLS: [&str; 4] = ["m", "kg", "s", "rad"];

/// Derived units: text, exponents of `[m, kg, s, rad]`. Read and, unless another
/// spelling with the same exponents comes first, written.
const DERIVED: [(&str, [Halves; 4]); 5] = [
    ("N", [1, 1, -2, 0]),
    ("N m", [2, 1, -2, 0]),
    ("W", [2, 1, -3, 0]),
    ("J", [2, 1, -2, 0]),
    ("Hz", [0, 0, -1, 0]),
];

impl Unit {
    /// No dimension.
    pub const NONE: Self = Self::Of([0; 4]);
    /// Times.
    pub const SECOND: Self = Self::Of([0, 0, 2, 0]);
    /// Angles.
    pub const RAD: Self = Self::Of([0, 0, 0, 2]);

    fn of(exponents: [Halves; 4]) -> Self {
        Self::Of(exponents.map(|e| e * 2))
    }

    /// The unit that the key at `path` names, as [`parse`](Self::parse) reads it.
    ///
    /// # Errors
    /// It is none.
    pub fn known(text: &str, path: &str) -> Result<Self, ConfigError> {
        Self::parse(text).ok_or_else(|| {
            ConfigError::new(path, format!("the unit \"{text}\" is not known")).help(UNITS)
        })
    }

    /// Reads `"m/s"`, `"kg m^2"`, `"N m"`, `"rad/s"`, `"-"` (none), `""` or `"any"`.
    pub fn parse(text: &str) -> Option<Self> {
        let text = text.trim();
        match text {
            "" | "any" => return Some(Self::Any),
            "-" | "1" => return Some(Self::NONE),
            _ => {}
        }
        let mut unit = Self::NONE;
        for (i, part) in text.split('/').enumerate() {
            let mut factors = part
                .split(|c: char| c.is_whitespace() || matches!(c, '*' | '(' | ')' | '.'))
                .filter(|f| !f.is_empty())
                .peekable();
            factors.peek()?;
            for factor in factors {
                let (name, power) = factor.split_once('^').unwrap_or((factor, "1"));
                let power: Halves = power.parse().ok().filter(|p: &Halves| p.abs() <= 8)?;
                let base = if name == "1" {
                    Self::NONE
                } else if let Some(k) = SYMBOLS.iter().position(|s| *s == name) {
                    let mut e = [0; 4];
                    e[k] = 1;
                    Self::of(e)
                } else {
                    Self::of(DERIVED.iter().find(|(s, _)| *s == name)?.1)
                };
                let power = if i == 0 { power } else { -power };
                unit = unit.times(base.power(f64::from(power)));
            }
        }
        Some(unit)
    }

    /// Whether sums and comparisons of the two make sense. Radians count as
    /// dimensionless there, as in SI.
    pub fn fits(self, other: Self) -> bool {
        match (self, other) {
            (Self::Of(a), Self::Of(b)) => a[..3] == b[..3],
            _ => true,
        }
    }

    /// Whether a function of pure numbers (`exp`, `tanh`, ...) takes it.
    pub fn is_plain(self) -> bool {
        self.fits(Self::NONE)
    }

    /// The unit of a sum of two that fit: the known one.
    pub fn join(self, other: Self) -> Self {
        if self == Self::Any { other } else { self }
    }

    /// The unit of a mixture: known only if both are the same.
    pub fn mix(self, other: Self) -> Self {
        if self == other { self } else { Self::Any }
    }

    /// Unit of a product.
    pub fn times(self, other: Self) -> Self {
        match (self, other) {
            (Self::Of(a), Self::Of(b)) => {
                Self::Of(std::array::from_fn(|k| a[k].saturating_add(b[k])))
            }
            _ => Self::Any,
        }
    }

    /// Unit of a quotient.
    pub fn over(self, other: Self) -> Self {
        self.times(other.power(-1.0))
    }

    /// Unit of a power; `Any` when the exponents are no longer whole halves.
    pub fn power(self, p: f64) -> Self {
        let Self::Of(a) = self else { return self };
        let scaled = a.map(|e| f64::from(e) * p);
        if scaled.iter().all(|e| e.fract() == 0.0 && e.abs() < 1000.0) {
            Self::Of(scaled.map(|e| e as Halves))
        } else {
            Self::Any
        }
    }
}

impl fmt::Display for Unit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self::Of(e) = *self else {
            return f.write_str("any");
        };
        // Forces and powers at joints have radians too many or too few: SI drops them.
        let plain = Self::Of([e[0], e[1], e[2], if e[1] == 0 { e[3] } else { 0 }]);
        if let Some((text, _)) = DERIVED.iter().find(|(t, x)| *t != "Hz" && Self::of(*x) == plain) {
            return f.write_str(text);
        }
        let write = |sign: Halves| {
            let mut out = Vec::new();
            for k in [1, 0, 3, 2] {
                let p = e[k] * sign;
                match p {
                    2 => out.push(SYMBOLS[k].to_string()),
                    p if p > 0 && p % 2 == 0 => out.push(format!("{}^{}", SYMBOLS[k], p / 2)),
                    p if p > 0 => out.push(format!("{}^{}", SYMBOLS[k], f32::from(p) / 2.0)),
                    _ => {}
                }
            }
            out
        };
        let (above, below) = (write(1), write(-1));
        match (above.is_empty(), below.len()) {
            (true, 0) => f.write_str("-"),
            (false, 0) => f.write_str(&above.join(" ")),
            (true, _) => write!(f, "1/{}", denominator(&below)),
            (false, _) => write!(f, "{}/{}", above.join(" "), denominator(&below)),
        }
    }
}

fn denominator(factors: &[String]) -> String {
    // `a/b/c`, which is also what `parse` reads.
    factors.join("/")
}

#[cfg(test)]
mod tests {
    use super::Unit;

    #[test]
    fn text_reads_back_as_the_same_unit() {
        for text in [
            "m", "m/s", "m/s^2", "rad", "rad/s", "N", "N m", "W", "kg", "s", "-", "any", "1/s",
            "kg m", "kg/m/s", "m^2/s^2", "1/rad",
        ] {
            let unit = Unit::parse(text).unwrap();
            assert_eq!(unit.to_string(), text);
        }
        for text in ["furlong", "m//s", "m^x", "m^999", "/", "m^"] {
            assert_eq!(Unit::parse(text), None, "{text}");
        }
    }

    #[test]
    fn radians_fit_pure_numbers_but_metres_do_not() {
        let [m, rad] = ["m", "rad"].map(|t| Unit::parse(t).unwrap());
        assert!(rad.fits(Unit::NONE) && rad.is_plain());
        assert!(!m.fits(rad) && !m.is_plain());
        assert!(m.fits(Unit::Any));
    }

    #[test]
    fn a_square_root_undoes_a_square() {
        let v = Unit::parse("m/s").unwrap();
        assert_eq!(v.power(2.0).power(0.5), v);
        assert_eq!(v.power(0.5).to_string(), "m^0.5/s^0.5");
        assert_eq!(v.power(0.3), Unit::Any);
    }
}
