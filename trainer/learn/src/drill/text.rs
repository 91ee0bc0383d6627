//! The language of drills: `ACTION TARGET key=value ...`, one fault each.

use super::{Act, Delay, Drill, Phase, RunFault};
use ostler_sim::names::nearest;
use std::ops::RangeInclusive;

/// All faults that can be ordered, for messages and `--help`.
pub const EXAMPLES: &str = "\"nan qpos[2] env=3 step=50\", \"nan gradient every=20\", \"fail allocation phase=update iteration=3 after=17\", \"kill phase=collect iteration=5\", \"full disk iteration=3\", \"slow disk ms=200\", \"slow sums us=500\", \"low disk mib=50 iteration=3..9\", \"slow phase=update percent=20\", \"panic worker env=0 step=9\"";

/// One fault as it was written, in parts.
pub(super) struct Words<'a> {
    pub(super) action: &'a str,
    pub(super) target: &'a str,
    pub(super) index: Option<usize>,
    options: Vec<(&'a str, &'a str)>,
}

impl<'a> Words<'a> {
    fn new(text: &'a str) -> Result<Self, String> {
        let mut words = text.split_whitespace();
        let action =
            words.next().ok_or_else(|| format!("an empty fault; for example {EXAMPLES}"))?;
        let (mut target, mut index, mut options) = ("", None, Vec::new());
        for word in words {
            if let Some((key, value)) = word.split_once('=') {
                options.push((key, value));
            } else if target.is_empty() {
                target = word;
                if let Some((name, rest)) = word.split_once('[') {
                    let number = rest.strip_suffix(']').and_then(|n| n.parse().ok());
                    index = Some(number.ok_or_else(|| {
                        format!("{word}: an index is a whole number in brackets, {name}[2]")
                    })?);
                    target = name;
                }
            } else {
                return Err(format!(
                    "\"{word}\" is one word too many; options are written key=value"
                ));
            }
        }
        Ok(Self { action, target, index, options })
    }

    /// Takes an option's value out; what is left at the end was not known.
    pub(super) fn take(&mut self, key: &str) -> Option<&'a str> {
        let at = self.options.iter().position(|o| o.0 == key)?;
        Some(self.options.remove(at).1)
    }

    pub(super) fn number<T: std::str::FromStr>(&mut self, key: &str) -> Result<Option<T>, String> {
        let Some(text) = self.take(key) else {
            return Ok(None);
        };
        let wrong = || format!("{key}={text}: a number belongs here");
        text.parse().map(Some).map_err(|_| wrong())
    }

    /// `every=20`, 1 or more.
    pub(super) fn every(&mut self) -> Result<Option<u64>, String> {
        match self.number("every")? {
            Some(0) => Err("every=0: 1 or more belongs here".into()),
            every => Ok(every),
        }
    }

    /// `iteration=3`, `iteration=3..5`; without it every one.
    fn iterations(&mut self) -> Result<RangeInclusive<u64>, String> {
        let Some(text) = self.take("iteration") else {
            return Ok(0..=u64::MAX);
        };
        let wrong = |_| format!("iteration={text}: a number (3) or a range (3..5) belongs here");
        match text.split_once("..") {
            Some((a, b)) => {
                let range = a.parse().map_err(wrong)?..=b.parse().map_err(wrong)?;
                if range.is_empty() {
                    return Err(format!(
                        "iteration={text}: no iteration; write the smaller number first"
                    ));
                }
                Ok(range)
            }
            None => {
                let n = text.parse().map_err(wrong)?;
                Ok(n..=n)
            }
        }
    }

    fn phase(&mut self) -> Result<Phase, String> {
        let all = Phase::ALL.map(Phase::name);
        let text = self
            .take("phase")
            .ok_or_else(|| format!("phase= is missing: one of {}", all.join(", ")))?;
        let phase = Phase::ALL.into_iter().find(|p| p.name() == text);
        phase.ok_or_else(|| format!("phase={text}: phases are {}", all.join(", ")))
    }

    pub(super) fn end(self, known: &[&str]) -> Result<(), String> {
        let Some((key, _)) = self.options.first() else {
            return Ok(());
        };
        let near = nearest(key, known.iter().copied());
        Err(match near {
            Some(near) => format!("{key}= is not known here; did you mean {near}=?"),
            None => format!("{key}= is not known here; there are {}", known.join("=, ")),
        })
    }
}

/// Reads one fault.
///
/// # Errors
/// A sentence about what is wrong and what would be right.
pub fn parse(text: &str) -> Result<Drill, String> {
    let mut words = Words::new(text)?;
    let run = |words: &mut Words<'_>, act| -> Result<RunFault, String> {
        let (phase, iterations) = (words.phase()?, words.iterations()?);
        let process = words.number("process")?.unwrap_or(0);
        if process > 0 && !matches!(phase, Phase::Collect | Phase::Update | Phase::Save) {
            let phase = phase.name();
            return Err(format!(
                "phase={phase} is process 0's alone; process={process} has collect, update, save"
            ));
        }
        Ok(RunFault { phase, iterations, process, act })
    };
    // The run's files are process 0's, and who is late to a sum makes all late.
    let of_first =
        |phase, iterations, act| Drill::Run(RunFault { phase, iterations, process: 0, act });
    match (words.action, words.target) {
        ("kill", "") => {
            let fault = run(&mut words, Act::Kill)?;
            words.end(&["phase", "iteration", "process"])?;
            Ok(Drill::Run(fault))
        }
        ("abort", "") => {
            let fault = run(&mut words, Act::Abort)?;
            words.end(&["phase", "iteration", "process"])?;
            Ok(Drill::Run(fault))
        }
        ("fail", "allocation") => {
            let after = words.number("after")?.unwrap_or(0);
            let fault = run(&mut words, Act::FailAllocation { after })?;
            words.end(&["phase", "iteration", "process", "after"])?;
            Ok(Drill::Run(fault))
        }
        ("full", "disk") => {
            let iterations = words.iterations()?;
            words.end(&["iteration"])?;
            Ok(of_first(Phase::Save, iterations, Act::FullDisk))
        }
        ("low", "disk") => {
            let mib = words.number("mib")?.unwrap_or(0);
            let iterations = words.iterations()?;
            words.end(&["mib", "iteration"])?;
            Ok(of_first(Phase::Keep, iterations, Act::LowDisk { mib }))
        }
        ("slow", "disk") => {
            let ms = words.number("ms")?.unwrap_or(1000);
            let iterations = words.iterations()?;
            words.end(&["ms", "iteration"])?;
            Ok(of_first(Phase::Save, iterations, Act::SlowDisk { ms }))
        }
        ("slow", "sums") => {
            let us = words.number("us")?.unwrap_or(1000);
            let iterations = words.iterations()?;
            words.end(&["us", "iteration"])?;
            Ok(of_first(Phase::Keep, iterations, Act::SlowSums { us }))
        }
        ("slow", "") => {
            let percent = words.number("percent")?.unwrap_or(20);
            let by = match words.take("by") {
                None | Some("work") => Delay::Work,
                Some("waiting") => Delay::Waiting,
                Some(by) => return Err(format!("by={by}: work or waiting")),
            };
            let fault = run(&mut words, Act::Slow { percent, by })?;
            words.end(&["phase", "iteration", "process", "percent", "by"])?;
            Ok(Drill::Run(fault))
        }
        _ => super::poison::parse(words),
    }
}
