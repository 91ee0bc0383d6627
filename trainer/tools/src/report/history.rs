//! What a run logged, in as many pieces as a page can draw.

use ostler_run::log::curve::CurveError;
use ostler_run::log::lines::Lines;
use ostler_run::run::METRICS;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

/// A `meta.json` is no longer than this (bytes).
pub const META: u64 = 16 << 20;
/// Pieces that a history is kept in at most: an even number.
const PIECES: usize = 1000;
/// Tags at most; a run logs some hundred.
const TAGS: usize = 600;

/// Numbers over iterations. A piece is one iteration or, of a long run, several: the mean of their
/// numbers, the sum of their counts (`Guard/*`).
#[derive(Debug, Clone, Default, Serialize)]
pub struct History {
    /// Iterations in a piece.
    pub each: u64,
    /// Iteration, environment steps and time (s) at the end of each piece.
    pub iteration: Vec<f64>,
    /// Environment steps.
    pub steps: Vec<f64>,
    /// Time of the run (s).
    pub time: Vec<f64>,
    /// Numbers of each tag; none where it was not logged.
    pub tags: BTreeMap<String, Vec<Option<f32>>>,
}

/// Sum and count of a piece.
type Piece = (f64, u32);

/// Whether a tag counts something that happened in an iteration.
fn counts(tag: &str) -> bool {
    const STATES: [&str; 4] =
        ["Guard/return_drop", "Guard/roll_backs", "Guard/bad_updates", "Guard/lost_log_records"];
    tag.starts_with("Guard/") && !STATES.contains(&tag)
}

impl History {
    /// Reads the metrics of the run in `folder`; with notes where not all of it is kept.
    ///
    /// # Errors
    /// They cannot be read, or hold nothing.
    pub fn read(folder: &Path) -> Result<(Self, Vec<String>), CurveError> {
        let path = folder.join(METRICS);
        let fail = |source| CurveError::Read { path: path.clone(), source };
        let mut lines = Lines::open(&path).map_err(fail)?;
        let mut ends: Vec<[f64; 3]> = Vec::new();
        let mut tags: BTreeMap<String, Vec<Piece>> = BTreeMap::new();
        let (mut each, mut in_last, mut left_out) = (1_u64, 0_u64, false);
        let (mut row, mut torn) = (0_usize, None);
        while let Some(line) = lines.next_line().map_err(fail)? {
            row += 1;
            // A line that is being written, or was torn by a crash, is left out.
            let Ok(Value::Object(line)) = serde_json::from_slice(line) else {
                torn.get_or_insert(row);
                continue;
            };
            let get = |tag: &str| line.get(tag).and_then(Value::as_f64);
            let Some(steps) = get("env_steps") else {
                continue;
            };
            let end = [
                get("iteration").unwrap_or(ends.len() as f64),
                steps,
                get("wall_s").unwrap_or(0.0),
            ];
            if in_last == 0 || in_last == each {
                if ends.len() == PIECES {
                    halve(&mut ends, &mut tags);
                    each *= 2;
                }
                ends.push(end);
                in_last = 0;
            }
            in_last += 1;
            let at = ends.len() - 1;
            ends[at] = end;
            for (tag, value) in &line {
                let Some(value) = value.as_f64().filter(|v| v.abs() < 1e30) else {
                    continue;
                };
                if !tag.contains('/') {
                    continue;
                }
                if !tags.contains_key(tag) {
                    if tags.len() == TAGS {
                        left_out = true;
                        continue;
                    }
                    tags.insert(tag.clone(), Vec::new());
                }
                if let Some(pieces) = tags.get_mut(tag) {
                    pieces.resize(at + 1, (0.0, 0));
                    pieces[at].0 += value;
                    pieces[at].1 += 1;
                }
            }
        }
        if ends.is_empty() {
            return Err(CurveError::Empty(path));
        }
        let path = path.display();
        let few = left_out.then(|| format!("{path}: only {TAGS} tags are shown"));
        // The last one may be being written.
        let torn = torn.filter(|torn| *torn < row);
        let torn = torn.map(|row| format!("{path}: line {row} cannot be read and is left out"));
        let notes: Vec<String> = few.into_iter().chain(torn).collect();
        let number = |tag: &str, (sum, n): Piece| match n {
            0 => None,
            _ if counts(tag) => Some(sum as f32),
            n => Some((sum / f64::from(n)) as f32),
        };
        let tags = tags.into_iter().map(|(tag, mut pieces)| {
            pieces.resize(ends.len(), (0.0, 0));
            let numbers = pieces.into_iter().map(|p| number(&tag, p)).collect();
            (tag, numbers)
        });
        let history = Self {
            each,
            tags: tags.collect(),
            iteration: ends.iter().map(|e| e[0]).collect(),
            steps: ends.iter().map(|e| e[1]).collect(),
            time: ends.iter().map(|e| e[2]).collect(),
        };
        Ok((history, notes))
    }

    /// A tag over `steps` or `time`; none where it was never logged.
    pub fn series(&self, tag: &str, over: &str) -> Option<Vec<(f64, f64)>> {
        let x = match over {
            "time" => &self.time,
            _ => &self.steps,
        };
        let pairs = x.iter().zip(self.tags.get(tag)?);
        let all: Vec<_> = pairs.filter_map(|(x, y)| Some((*x, f64::from((*y)?)))).collect();
        (!all.is_empty()).then_some(all)
    }
}

/// Two pieces become one.
fn halve(ends: &mut Vec<[f64; 3]>, tags: &mut BTreeMap<String, Vec<Piece>>) {
    let count = ends.len();
    *ends = ends.chunks(2).filter_map(|two| two.last().copied()).collect();
    for pieces in tags.values_mut() {
        pieces.resize(count, (0.0, 0));
        let two = |p: &[Piece]| p.iter().fold((0.0, 0), |a, b| (a.0 + b.0, a.1 + b.1));
        *pieces = pieces.chunks(2).map(two).collect();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fmt::Write as _;

    fn run(lines: usize) -> History {
        let dir = tempfile::tempdir().unwrap();
        let text = (1..=lines).fold(String::new(), |mut all, k| {
            let eval = match k % 10 {
                0 => format!(",\"Eval/mean_reward\":{k}"),
                _ => String::new(),
            };
            let broke = u32::from(k % 100 == 0);
            let _ = writeln!(
                all,
                r#"{{"iteration":{k},"env_steps":{},"wall_s":{k},"Train/mean_reward":{k},"Guard/broken_envs":{broke}{eval}}}"#,
                100 * k
            );
            all
        });
        std::fs::write(dir.path().join(METRICS), text + "{\"env_steps\":").unwrap();
        History::read(dir.path()).unwrap().0
    }

    #[test]
    fn short_runs_are_kept_as_they_are() {
        let h = run(25);
        assert_eq!((h.each, h.steps.len()), (1, 25));
        assert_eq!(
            h.series("Eval/mean_reward", "steps").unwrap(),
            [(1000.0, 10.0), (2000.0, 20.0)]
        );
        assert_eq!(h.series("Eval/none", "steps"), None);
    }

    #[test]
    fn long_runs_keep_their_means_and_counts() {
        let h = run(5000);
        assert_eq!(h.each, 8);
        assert!(h.steps.len() <= PIECES && h.steps.last() == Some(&500_000.0));
        let total: f32 = h.tags["Guard/broken_envs"].iter().flatten().sum();
        assert_eq!(total, 50.0, "every event is somewhere");
        let first = h.tags["Train/mean_reward"][0].unwrap();
        assert!((first - 4.5).abs() < 1e-6, "the mean of 1 to 8: {first}");
        assert!(h.tags.values().all(|v| v.len() == h.steps.len()));
    }
}
