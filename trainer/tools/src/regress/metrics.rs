//! `metrics.jsonl` as a judge reads it: nothing in it is passed over.

use super::verdict::{Kind, Problem};
use ostler_sim::files;
use std::collections::{BTreeMap, BTreeSet};
use std::io::ErrorKind;
use std::path::Path;

/// A file longer than this is not read (bytes).
const MAX_BYTES: u64 = 1 << 30;
/// So many tags that are not finite are named; the others are counted.
const NAMED: usize = 6;

/// One iteration.
#[derive(Debug, Clone, PartialEq)]
pub struct Row {
    /// Its number, from 1.
    pub iteration: u64,
    /// Environment steps so far.
    pub env_steps: u64,
    /// Everything else; `null` is NaN.
    pub values: BTreeMap<String, f64>,
}

/// Every iteration of a run, from the first, without a gap.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct History(pub Vec<Row>);

impl History {
    /// Reads the file.
    ///
    /// # Errors
    /// It is missing or empty, or a line of it has the wrong form.
    pub fn read(path: &Path) -> Result<Self, Problem> {
        let missing = |why: String| Problem::new(Kind::MissingMetric, why);
        let name = path.display();
        let bytes = files::read(path, MAX_BYTES).map_err(|e| {
            let why = format!("{name} cannot be read: {e}");
            match e.kind() {
                ErrorKind::FileTooLarge => Problem::new(Kind::DamagedMetrics, why),
                _ => missing(why),
            }
        })?;
        if bytes.is_empty() {
            return Err(missing(format!("{name} is empty: no iteration was done")));
        }
        Self::parse(&bytes).map_err(|why| Problem::new(Kind::DamagedMetrics, why))
    }

    /// Reads lines of JSON.
    ///
    /// # Errors
    /// A sentence about the first line that is wrong.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let mut rows: Vec<Row> = Vec::new();
        for (i, line) in bytes.split_inclusive(|&b| b == b'\n').enumerate() {
            let at = i + 1;
            let line = line
                .strip_suffix(b"\n")
                .ok_or_else(|| format!("line {at} of the metrics breaks off"))?;
            let row = row(line).map_err(|why| format!("line {at} of the metrics: {why}"))?;
            if row.iteration != at as u64 {
                let n = row.iteration;
                return Err(format!("line {at} of the metrics is of iteration {n}"));
            }
            if rows.last().is_some_and(|r| r.env_steps >= row.env_steps) {
                return Err(format!("line {at} of the metrics: env_steps does not grow"));
            }
            rows.push(row);
        }
        Ok(Self(rows))
    }

    /// Iterations.
    pub fn iterations(&self) -> u64 {
        self.0.last().map_or(0, |r| r.iteration)
    }

    /// Environment steps.
    pub fn env_steps(&self) -> u64 {
        self.0.last().map_or(0, |r| r.env_steps)
    }

    /// The values of `tag` after the first `skip` iterations, all of them finite.
    /// `absent` stands for it where it is missing.
    ///
    /// # Errors
    /// There is none, one is missing, or one is not finite.
    pub fn values(&self, tag: &str, skip: usize, absent: Option<f64>) -> Result<Vec<f64>, Problem> {
        let rows = self.0.get(skip..).unwrap_or_default();
        if rows.is_empty() {
            let n = self.0.len();
            let why = format!("{tag}: {n} iterations leave none to be checked");
            return Err(Problem::new(Kind::MissingMetric, why));
        }
        let value = |row: &Row| {
            let n = row.iteration;
            match row.values.get(tag).copied().or(absent) {
                None => {
                    let why = format!("{tag} is missing in iteration {n}");
                    Err(Problem::new(Kind::MissingMetric, why))
                }
                Some(v) if !v.is_finite() => {
                    let why = format!("{tag} is not finite in iteration {n}");
                    Err(Problem::new(Kind::NotFinite, why))
                }
                Some(v) => Ok(v),
            }
        };
        rows.iter().map(value).collect()
    }

    /// The last value of `tag`.
    ///
    /// # Errors
    /// As [`values`](Self::values).
    pub fn last(&self, tag: &str) -> Result<f64, Problem> {
        let skip = self.0.len().saturating_sub(1);
        let values = self.values(tag, skip, None)?;
        let none = || Problem::new(Kind::MissingMetric, format!("{tag} is missing"));
        values.last().copied().ok_or_else(none)
    }

    /// Whether any iteration has the tag.
    pub fn has(&self, tag: &str) -> bool {
        self.0.iter().any(|r| r.values.contains_key(tag))
    }

    /// Every tag that stopped being finite, or never was. Before a tag's first number
    /// there may be none, as for the mean return before an episode ends.
    pub fn not_finite(&self, allowed: &[String]) -> Vec<Problem> {
        let tags: BTreeSet<&str> = self
            .0
            .iter()
            .flat_map(|r| r.values.keys().map(String::as_str))
            .filter(|tag| !allowed.iter().any(|a| matches(a, tag)))
            .collect();
        let mut found: Vec<Problem> = Vec::new();
        for tag in tags {
            let mut known = false;
            let mut bad = None;
            for row in &self.0 {
                let Some(value) = row.values.get(tag) else {
                    continue;
                };
                match value.is_finite() {
                    true => (known, bad) = (true, bad.filter(|_| known)),
                    false => bad = bad.or(Some(row.iteration)),
                }
                if known && bad.is_some() {
                    break;
                }
            }
            if let Some(n) = bad {
                let why = match known {
                    true => format!("{tag} is not finite in iteration {n}"),
                    false => format!("{tag} was never finite, from iteration {n} on"),
                };
                found.push(Problem::new(Kind::NotFinite, why));
            }
        }
        if found.len() > NAMED + 1 {
            let more = found.len() - NAMED;
            found.truncate(NAMED);
            let why = format!("and {more} more tags are not finite");
            found.push(Problem::new(Kind::NotFinite, why));
        }
        found
    }
}

fn row(line: &[u8]) -> Result<Row, String> {
    let value: serde_json::Value =
        serde_json::from_slice(line).map_err(|e| format!("not JSON: {e}"))?;
    let serde_json::Value::Object(fields) = value else {
        return Err("not an object".into());
    };
    let whole = |key: &str| {
        let number = fields.get(key).and_then(serde_json::Value::as_u64);
        number.ok_or_else(|| format!("no whole number under \"{key}\""))
    };
    let (iteration, env_steps) = (whole("iteration")?, whole("env_steps")?);
    let mut values = BTreeMap::new();
    for (tag, value) in &fields {
        let value = match value {
            serde_json::Value::Null => f64::NAN,
            other => other.as_f64().ok_or_else(|| format!("{tag} is no number"))?,
        };
        if tag != "iteration" && tag != "env_steps" {
            values.insert(tag.clone(), value);
        }
    }
    Ok(Row { iteration, env_steps, values })
}

/// Whether `text` is `pattern`, in which `*` stands for anything.
pub fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else {
        return pattern == text;
    };
    let Some(mut text) = text.strip_prefix(first) else {
        return false;
    };
    let parts: Vec<&str> = rest.split('*').collect();
    let Some((last, middle)) = parts.split_last() else {
        return true;
    };
    for part in middle {
        match text.find(part) {
            Some(at) => text = &text[at + part.len()..],
            None => return false,
        }
    }
    text.ends_with(last)
}
