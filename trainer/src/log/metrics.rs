//! `metrics.jsonl`: one object per iteration.

use super::append::Appender;
use super::lines::Lines;
use ostler_sim::files;
use std::fmt::Write as _;
use std::io::{Read, Seek, SeekFrom};
use std::path::Path;

/// Logged numbers of one iteration. Kept and refilled, so that logging does not
/// allocate once every tag has been seen.
#[derive(Debug, Clone, Default)]
pub struct Record {
    /// Iterations done.
    pub iteration: u64,
    /// Environment steps done.
    pub env_steps: u64,
    /// Training time so far (s).
    pub wall_s: f64,
    scalars: Vec<(String, f64)>,
    used: usize,
}

impl Record {
    /// Starts anew.
    pub fn begin(&mut self, iteration: u64, env_steps: u64, wall_s: f64) {
        self.iteration = iteration;
        self.env_steps = env_steps;
        self.wall_s = wall_s;
        self.used = 0;
    }

    /// Adds a number under a tag.
    pub fn put(&mut self, tag: &str, value: f64) {
        self.put_in("", tag, value);
    }

    /// Adds a number under `group` + `name`.
    pub fn put_in(&mut self, group: &str, name: &str, value: f64) {
        if self.used == self.scalars.len() {
            self.scalars.push((String::new(), 0.0));
        }
        let slot = &mut self.scalars[self.used];
        slot.0.clear();
        slot.0.push_str(group);
        slot.0.push_str(name);
        slot.1 = value;
        self.used += 1;
    }

    /// Tags and numbers.
    pub fn scalars(&self) -> impl Iterator<Item = (&str, f64)> {
        self.scalars[..self.used]
            .iter()
            .map(|(t, v)| (t.as_str(), *v))
    }

    /// The number under a tag.
    pub fn get(&self, tag: &str) -> Option<f64> {
        self.scalars().find(|s| s.0 == tag).map(|s| s.1)
    }

    /// One line of JSON; numbers that are not finite become `null`.
    fn line(&self, out: &mut String) {
        out.clear();
        let _ = write!(
            out,
            "{{\"iteration\":{},\"env_steps\":{},\"wall_s\":{:.6}",
            self.iteration, self.env_steps, self.wall_s
        );
        for (tag, value) in self.scalars() {
            out.push_str(",\"");
            for c in tag.chars() {
                match c {
                    '"' | '\\' => {
                        out.push('\\');
                        out.push(c);
                    }
                    c if c.is_control() => {
                        let _ = write!(out, "\\u{:04x}", c as u32);
                    }
                    c => out.push(c),
                }
            }
            if value.is_finite() {
                let _ = write!(out, "\":{value}");
            } else {
                out.push_str("\":null");
            }
        }
        out.push_str("}\n");
    }
}

/// Appends records to the file.
#[derive(Debug)]
pub struct MetricsWriter {
    file: Appender,
    line: String,
}

impl MetricsWriter {
    /// Opens the file, dropping records after `iteration` (all of them for 0).
    ///
    /// # Errors
    /// The file system refuses.
    pub fn open(path: &Path, iteration: u64) -> std::io::Result<Self> {
        truncate(path, iteration)?;
        Ok(Self {
            file: Appender::open(path)?,
            line: String::with_capacity(2048),
        })
    }

    /// Appends one line, all of it or nothing.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn write(&mut self, record: &Record) -> std::io::Result<()> {
        record.line(&mut self.line);
        self.file.write(self.line.as_bytes())
    }

    /// The last line, with its end.
    pub fn line(&self) -> &str {
        &self.line
    }
}

/// The iteration of the last whole line; 0 where there is none.
pub fn last_iteration(path: &Path) -> u64 {
    /// Longer than a line.
    const TAIL: u64 = 1 << 18;
    let tail = || {
        let mut file = files::open(path).ok()?;
        let length = file.metadata().ok()?.len();
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL)))
            .ok()?;
        let mut bytes = Vec::new();
        file.take(TAIL).read_to_end(&mut bytes).ok()?;
        Some(bytes)
    };
    let bytes = tail().unwrap_or_default();
    let mut lines = bytes.split_inclusive(|&b| b == b'\n').rev();
    let whole = lines.find_map(|line| {
        let line = line.strip_suffix(b"\n")?;
        let value: serde_json::Value = serde_json::from_slice(line).ok()?;
        value.get("iteration")?.as_u64()
    });
    whole.unwrap_or(0)
}

/// Keeps the lines up to `iteration`; a damaged line ends the usable part.
fn truncate(path: &Path, iteration: u64) -> std::io::Result<()> {
    let mut lines = match Lines::open(path) {
        Ok(lines) => lines,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(()),
        Err(e) => return Err(e),
    };
    let mut keep = 0_u64;
    while let Some(line) = lines.next_line()? {
        let whole = line.last() == Some(&b'\n');
        let at = serde_json::from_slice::<serde_json::Value>(line)
            .ok()
            .and_then(|v| v.get("iteration")?.as_u64());
        match at {
            Some(at) if whole && at <= iteration => keep += line.len() as u64,
            _ => break,
        }
    }
    files::update(path)?.set_len(keep)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::OpenOptions;
    use std::io::Write as _;

    fn record(iteration: u64) -> Record {
        let mut r = Record::default();
        r.begin(iteration, 10 * iteration, 0.5);
        r.put("Train/mean_reward", f64::NAN);
        r.put_in("Episode_Reward/", "a \"b\"\\", 0.25);
        r
    }

    #[test]
    fn lines_are_json_with_the_tags_as_keys() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let mut w = MetricsWriter::open(&path, 0).unwrap();
        w.write(&record(1)).unwrap();
        let v: serde_json::Value =
            serde_json::from_str(&std::fs::read_to_string(&path).unwrap()).unwrap();
        assert_eq!(v["iteration"], 1);
        assert_eq!(v["env_steps"], 10);
        assert_eq!(v["wall_s"], 0.5);
        assert!(v["Train/mean_reward"].is_null());
        assert_eq!(v["Episode_Reward/a \"b\"\\"], 0.25);
    }

    #[test]
    fn the_last_iteration_is_that_of_the_last_whole_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        assert_eq!(last_iteration(&path), 0);
        let mut w = MetricsWriter::open(&path, 0).unwrap();
        for i in 1..=3000 {
            w.write(&record(i)).unwrap();
        }
        assert_eq!(last_iteration(&path), 3000);
        let mut file = OpenOptions::new().append(true).open(&path).unwrap();
        file.write_all(b"{\"iteration\":3001,\"x").unwrap();
        assert_eq!(last_iteration(&path), 3000);
    }

    #[test]
    fn opening_drops_later_and_torn_lines() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let mut w = MetricsWriter::open(&path, 0).unwrap();
        for i in 1..=4 {
            w.write(&record(i)).unwrap();
        }
        let mut f = OpenOptions::new().append(true).open(&path).unwrap();
        f.write_all(b"{\"iteration\":5,").unwrap();
        let count = |n| {
            MetricsWriter::open(&path, n).unwrap();
            std::fs::read_to_string(&path).unwrap().lines().count()
        };
        assert_eq!(count(9), 4);
        assert_eq!(count(2), 2);
        assert_eq!(count(0), 0);
    }

    #[test]
    fn a_refilled_record_keeps_nothing_of_the_last() {
        let mut r = record(1);
        r.begin(2, 20, 1.0);
        r.put("x", 3.0);
        assert_eq!(r.scalars().collect::<Vec<_>>(), [("x", 3.0)]);
    }
}
