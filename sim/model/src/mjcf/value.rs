//! Typed attribute values: count, kind and finiteness are checked here.

use super::element::{Attr, Element, Fault, Read};
use ostler_base::names::nearest;

/// Values that a keyword attribute may take.
pub(super) type Keywords<T> = &'static [(&'static str, T)];

/// `true`, `false`.
pub(super) const BOOL: Keywords<bool> = &[("true", true), ("false", false)];

/// Whether a limit applies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limited {
    No,
    Yes,
    /// Yes, if a range is given.
    Auto,
}

/// `true`, `false`, `auto`.
pub(super) const LIMITED: Keywords<Limited> =
    &[("true", Limited::Yes), ("false", Limited::No), ("auto", Limited::Auto)];

impl Element {
    /// The attribute's text; an empty one counts as absent.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.attr(name).map(|a| a.value.as_str()).filter(|v| !v.is_empty())
    }

    /// A text that must be there.
    pub(crate) fn required(&self, name: &str) -> Read<&str> {
        self.text(name)
            .ok_or_else(|| Fault::new(self.at, format!("<{}> needs {name}=\"...\"", self.name)))
    }

    /// Any number of numbers.
    pub(crate) fn numbers(&self, name: &str) -> Read<Option<Vec<f64>>> {
        self.attr(name).map(|a| numbers(a, number)).transpose()
    }

    /// Writes the first `n >= least` entries of `to`, as many as are given; the
    /// others keep the value of a default class or of MJCF.
    pub(crate) fn fill(&self, name: &str, least: usize, to: &mut [f64]) -> Read<bool> {
        self.fill_with(name, least, to, number)
    }

    fn fill_with(
        &self,
        name: &str,
        least: usize,
        to: &mut [f64],
        parse: fn(&str) -> Result<f64, &'static str>,
    ) -> Read<bool> {
        let Some(attr) = self.attr(name) else {
            return Ok(false);
        };
        let values = numbers(attr, parse)?;
        // To MuJoCo an empty attribute is none.
        if values.is_empty() {
            return Ok(false);
        }
        if values.len() < least || values.len() > to.len() {
            let want = match (least, to.len()) {
                (1, 1) => "one number".to_string(),
                (a, b) if a == b => format!("{a} numbers"),
                (a, b) => format!("{a} to {b} numbers"),
            };
            return Err(wrong(attr, &format!("needs {want}, not {}", values.len())));
        }
        to[..values.len()].copy_from_slice(&values);
        Ok(true)
    }

    /// Exactly `N` numbers.
    pub(crate) fn array<const N: usize>(&self, name: &str, to: &mut [f64; N]) -> Read<bool> {
        self.fill(name, N, to)
    }

    /// One number.
    pub(crate) fn scalar(&self, name: &str, to: &mut f64) -> Read<bool> {
        self.fill(name, 1, std::slice::from_mut(to))
    }

    /// One end of a range: a number, or `inf` where there is none.
    pub(crate) fn end(&self, name: &str, to: &mut f64) -> Read<bool> {
        self.fill_with(name, 1, std::slice::from_mut(to), end)
    }

    /// Both ends of a range.
    pub(crate) fn ends(&self, name: &str, to: &mut [f64; 2]) -> Read<bool> {
        self.fill_with(name, 2, to, end)
    }

    /// One whole number.
    pub(crate) fn integer(&self, name: &str, to: &mut i32) -> Read<()> {
        if let Some(attr) = self.attr(name) {
            let values = numbers(attr, whole_number)?;
            let [value] = values[..] else {
                return Err(wrong(attr, &format!("needs one whole number, not {}", values.len())));
            };
            *to = value;
        }
        Ok(())
    }

    /// One whole number that is not negative.
    pub(crate) fn unsigned(&self, name: &str, to: &mut u32) -> Read<()> {
        let mut value = i32::try_from(*to).unwrap_or(i32::MAX);
        self.integer(name, &mut value)?;
        if let Some(attr) = self.attr(name) {
            *to = u32::try_from(value).map_err(|_| wrong(attr, "cannot be negative"))?;
        }
        Ok(())
    }

    /// One of a few words.
    pub(crate) fn keyword<T: Copy>(&self, name: &str, words: Keywords<T>, to: &mut T) -> Read<()> {
        if let Some(attr) = self.attr(name) {
            let found = words.iter().find(|(w, _)| *w == attr.value);
            *to = found.ok_or_else(|| unknown_word(attr, words.iter().map(|w| w.0)))?.1;
        }
        Ok(())
    }
}

/// `name="value" why`, at the value.
pub(super) fn wrong(attr: &Attr, why: &str) -> Fault {
    Fault::new(attr.value_at(0), format!("{}=\"{}\" {why}", attr.name, clip(&attr.value)))
}

fn unknown_word<'a>(attr: &Attr, words: impl Iterator<Item = &'a str> + Clone) -> Fault {
    let guess = nearest(&attr.value, words.clone());
    let guess = guess.map_or(String::new(), |g| format!("; did you mean \"{g}\"?"));
    let list = words.collect::<Vec<_>>().join(", ");
    wrong(attr, &format!("is not one of {list}{guess}"))
}

fn numbers<T>(attr: &Attr, parse: impl Fn(&str) -> Result<T, &'static str>) -> Read<Vec<T>> {
    let start = attr.value.as_ptr() as usize;
    attr.value
        .split_ascii_whitespace()
        .map(|token| {
            parse(token).map_err(|why| {
                let at = attr.value_at(token.as_ptr() as usize - start);
                Fault::new(at, format!("\"{}\" in {} {why}", clip(token), attr.name))
            })
        })
        .collect()
}

/// A number, or an infinite one.
fn end(token: &str) -> Result<f64, &'static str> {
    let value: f64 = token.parse().map_err(|_| "is not a number")?;
    (!value.is_nan()).then_some(value).ok_or("is not a number")
}

fn number(token: &str) -> Result<f64, &'static str> {
    let value: f64 = token.parse().map_err(|_| "is not a number")?;
    value.is_finite().then_some(value).ok_or("is not a finite number")
}

fn whole_number(token: &str) -> Result<i32, &'static str> {
    let value: i64 = token.parse().map_err(|_| "is not a whole number")?;
    i32::try_from(value).map_err(|_| "is too large")
}

/// Messages quote at most this much of the file.
fn clip(text: &str) -> String {
    const MOST: usize = 60;
    if text.chars().count() <= MOST {
        return text.to_string();
    }
    let head: String = text.chars().take(MOST).collect();
    format!("{head}...")
}
