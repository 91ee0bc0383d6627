//! `metrics.jsonl`: one object per iteration.

use super::append::{Appender, keep_damaged};
use super::lines::Lines;
use ostler_sim::files;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::ops::Range;
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
        self.scalars[..self.used].iter().map(|(t, v)| (t.as_str(), *v))
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

/// Lines that wait for a file that takes none have this much room (bytes).
const ROOM: usize = 1 << 20;

/// Appends records to the file, in their order: a line that a full disk refuses waits, and those
/// after it behind it.
#[derive(Debug)]
pub struct MetricsWriter {
    file: Appender,
    line: String,
    /// Lines that the file did not take yet.
    waiting: String,
    /// Lines that waited and had no room.
    dropped: u64,
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
            waiting: String::new(),
            dropped: 0,
        })
    }

    /// Appends one line, all of it or nothing, after those that wait.
    ///
    /// # Errors
    /// The file system refuses; the line waits for the next call.
    pub fn write(&mut self, record: &Record) -> std::io::Result<()> {
        record.line(&mut self.line);
        self.append()
    }

    /// [`Appender::restore`].
    ///
    /// # Errors
    /// The file system's.
    pub fn restore(&mut self) -> std::io::Result<bool> {
        self.file.restore()
    }

    /// Lines that are not in the file.
    pub fn missing(&self) -> u64 {
        self.dropped + self.waiting.lines().count() as u64
    }

    fn append(&mut self) -> std::io::Result<()> {
        let waited = self.write_waiting();
        let written = waited.and_then(|()| self.file.write(self.line.as_bytes()));
        match &written {
            Ok(()) => {}
            Err(_) if self.waiting.len() + self.line.len() > ROOM => self.dropped += 1,
            Err(_) => self.waiting.push_str(&self.line),
        }
        written
    }

    /// Writes the lines that wait, as far as there is space.
    ///
    /// # Errors
    /// The file system refuses; the rest waits.
    pub fn write_waiting(&mut self) -> std::io::Result<()> {
        let mut done = 0;
        let mut written = Ok(());
        for line in self.waiting.split_inclusive('\n') {
            written = self.file.write(line.as_bytes());
            if written.is_err() {
                break;
            }
            done += line.len();
        }
        self.waiting.drain(..done);
        written
    }

    /// Adds numbers to the last line, if that is of the same iteration; else in a line of their
    /// own.
    ///
    /// # Errors
    /// The file system refuses.
    pub fn amend(&mut self, record: &Record) -> std::io::Result<()> {
        record.line(&mut self.line);
        // The last line is the file's only when none waits behind it.
        let waits = self.write_waiting().is_err();
        let last = match waits {
            false => self.file.last_line()?,
            true => self.waiting.split_inclusive('\n').next_back().unwrap_or_default().to_string(),
        };
        let of = |line: &str| {
            let line = serde_json::from_str::<serde_json::Value>(line).ok()?;
            line.get("iteration")?.as_u64()
        };
        let more = self.line.find(",\"wall_s\"").and_then(|at| {
            let rest = &self.line[at + 1..];
            Some(&rest[rest.find(',')?..])
        });
        match (last.strip_suffix("}\n"), more) {
            (Some(begin), Some(more)) if of(&last) == Some(record.iteration) => {
                self.line = format!("{begin}{more}");
                match waits {
                    false => self.file.take_back(last.len() as u64)?,
                    true => self.waiting.truncate(self.waiting.len() - last.len()),
                }
            }
            _ => {}
        }
        self.append()
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
        file.seek(SeekFrom::Start(length.saturating_sub(TAIL))).ok()?;
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

/// Keeps the lines up to `iteration`, in their order. One that cannot be read is left out and the
/// file kept as it was, unless it is the last, which may not have been written to its end.
fn truncate(path: &Path, iteration: u64) -> std::io::Result<()> {
    let mut lines = match Lines::open(path) {
        Ok(lines) => lines,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => {
            if iteration > 0 {
                tracing::warn!(
                    "there is no {}: what was logged of iterations up to {iteration} is lost",
                    path.display()
                );
            }
            return Ok(());
        }
        Err(e) => return Err(e),
    };
    let (mut read, mut end, mut last) = (0_u64, 0, 0);
    // Lines that do not stay; those that cannot be right.
    let (mut gaps, mut strange) = (Vec::<(u64, Range<u64>)>::new(), Vec::new());
    let mut number = 0;
    while let Some(line) = lines.next_line()? {
        let (whole, from) = (line.last() == Some(&b'\n'), read);
        (number, read) = (number + 1, read + line.len() as u64);
        let at = serde_json::from_slice::<serde_json::Value>(line)
            .ok()
            .and_then(|v| v.get("iteration")?.as_u64());
        match at {
            Some(at) if whole && (last..=iteration).contains(&at) => (end, last) = (read, at),
            // The rest is of what is done again.
            Some(at) if whole && at > iteration && last == iteration => break,
            _ => {
                if at.is_none() && whole {
                    strange.push(number);
                }
                gaps.push((number, from..read));
            }
        }
    }
    if last < iteration {
        tracing::warn!(
            "{} ends with iteration {last}: what was logged of those up to {iteration} is lost",
            path.display()
        );
    }
    gaps.retain(|(_, gap)| gap.end <= end);
    if strange.is_empty() {
        strange.extend(gaps.first().map(|gap| gap.0));
    }
    let [line, more @ ..] = &strange[..] else {
        return files::update(path)?.set_len(end);
    };
    let more = match more.len() {
        0 => String::new(),
        n => format!(" and {n} more"),
    };
    keep_damaged(path, "metrics.damaged", &format!("line {line}{more} cannot be read"))?;
    let put = |to: &mut File| {
        let mut from = files::open(path)?;
        let mut at = 0;
        for gap in gaps.iter().map(|g| &g.1).chain([&(end..end)]) {
            std::io::copy(&mut from.by_ref().take(gap.start - at), to)?;
            at = from.seek(SeekFrom::Start(gap.end))?;
        }
        Ok(())
    };
    files::replace_with(path, files::SHARED, put)
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
    fn a_damaged_line_costs_itself_and_is_kept_beside() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("metrics.jsonl");
        let mut w = MetricsWriter::open(&path, 0).unwrap();
        (1..=9).for_each(|i| w.write(&record(i)).unwrap());
        drop(w);
        let whole = std::fs::read_to_string(&path).unwrap();
        let kept = || -> Vec<u64> {
            let text = std::fs::read_to_string(&path).unwrap();
            let number = |l| serde_json::from_str::<serde_json::Value>(l).unwrap();
            let lines = text.lines().map(number);
            lines.map(|l| l["iteration"].as_u64().unwrap()).collect()
        };
        let aside = dir.path().join("metrics.damaged");
        for (from, to, left) in [
            // No JSON, another number, a line end that is gone.
            ("{\"iteration\":4,", "{\"iteration\"84,", vec![1, 2, 3, 5, 6, 7]),
            ("{\"iteration\":4,", "{\"iteration\":9,", vec![1, 2, 3, 5, 6, 7]),
            ("}\n{\"iteration\":5,", "}*{\"iteration\":5,", vec![1, 2, 3, 6, 7]),
            ("{\"iteration\":7,", "[\"iteration\":7,", vec![1, 2, 3, 4, 5, 6]),
        ] {
            let damaged = whole.replace(from, to);
            assert_ne!(damaged, whole);
            std::fs::write(&path, &damaged).unwrap();
            MetricsWriter::open(&path, 7).unwrap();
            assert_eq!(kept(), left, "{to}");
            assert_eq!(std::fs::read_to_string(&aside).unwrap(), damaged);
            std::fs::remove_file(&aside).unwrap();
        }
        std::fs::write(&path, &whole).unwrap();
        MetricsWriter::open(&path, 7).unwrap();
        assert_eq!(kept(), [1, 2, 3, 4, 5, 6, 7]);
        assert!(!aside.exists());
    }

    #[test]
    fn numbers_that_come_later_join_the_line_of_their_iteration() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let mut w = MetricsWriter::open(&path, 0).unwrap();
        let more = |n| {
            let mut r = Record::default();
            r.begin(n, 10 * n, 0.75);
            r.put("Eval/mean_reward", 2.5);
            r
        };
        w.write(&record(1)).unwrap();
        w.write(&record(2)).unwrap();
        drop(w);
        let mut w = MetricsWriter::open(&path, 2).unwrap();
        w.amend(&more(2)).unwrap();
        let line = w.line().to_string();
        w.write(&record(3)).unwrap();
        // Of an iteration that has none: a line of its own.
        w.amend(&more(4)).unwrap();
        let text = std::fs::read_to_string(&path).unwrap();
        let lines: Vec<&str> = text.split_inclusive('\n').collect();
        assert_eq!((lines.len(), lines[1]), (4, line.as_str()));
        let read = |line: &str| serde_json::from_str::<serde_json::Value>(line).unwrap();
        let second = read(lines[1]);
        assert_eq!((&second["iteration"], &second["wall_s"]), (&2.into(), &0.5.into()));
        assert_eq!(second["Eval/mean_reward"], 2.5);
        assert_eq!(second["Episode_Reward/a \"b\"\\"], 0.25);
        assert!(read(lines[2]).get("Eval/mean_reward").is_none());
        assert_eq!(read(lines[3])["Eval/mean_reward"], 2.5);
        // Of no file yet.
        let path = dir.path().join("n.jsonl");
        MetricsWriter::open(&path, 0).unwrap().amend(&more(1)).unwrap();
        assert_eq!(read(&std::fs::read_to_string(&path).unwrap())["iteration"], 1);
    }

    #[test]
    fn lines_that_a_full_disk_refuses_come_later_in_their_order() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("m.jsonl");
        let mut w = MetricsWriter::open(&path, 0).unwrap();
        let iterations = || -> Vec<u64> {
            let text = std::fs::read_to_string(&path).unwrap();
            let number = |l| serde_json::from_str::<serde_json::Value>(l).unwrap();
            text.lines().map(|l| number(l)["iteration"].as_u64().unwrap()).collect()
        };
        w.write(&record(1)).unwrap();
        let full = || OpenOptions::new().append(true).open("/dev/full").unwrap();
        let file = w.file.swap(full());
        assert!(w.write(&record(2)).is_err());
        // Of the line that waits.
        let mut more = Record::default();
        more.begin(2, 20, 0.75);
        more.put("Eval/mean_reward", 2.5);
        assert!(w.amend(&more).is_err());
        assert!(w.write(&record(3)).is_err());
        assert_eq!((w.missing(), iterations()), (2, vec![1]));
        w.file.swap(file);
        w.write(&record(4)).unwrap();
        assert_eq!((w.missing(), iterations()), (0, vec![1, 2, 3, 4]));
        let text = std::fs::read_to_string(&path).unwrap();
        assert_eq!(text.matches("Eval/mean_reward").count(), 1);
        // There is an end to what waits; what it has no room for is counted.
        let file = w.file.swap(full());
        let long = "x".repeat(ROOM / 4);
        for n in 5..=10 {
            let mut r = record(n);
            r.put(&long, 1.0);
            assert!(w.write(&r).is_err());
        }
        assert!(w.waiting.len() <= ROOM && w.missing() == 6);
        w.file.swap(file);
        w.write(&record(11)).unwrap();
        assert_eq!(iterations(), [1, 2, 3, 4, 5, 6, 7, 11]);
        assert_eq!(w.missing(), 3);
    }

    #[test]
    fn a_refilled_record_keeps_nothing_of_the_last() {
        let mut r = record(1);
        r.begin(2, 20, 1.0);
        r.put("x", 3.0);
        assert_eq!(r.scalars().collect::<Vec<_>>(), [("x", 3.0)]);
    }
}
