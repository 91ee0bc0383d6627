//! Reports: `results.json` (all of it), `junit.xml` (for CI's readers),
//! `summary.md` (for people), and a line for each case.

mod junit;
mod markdown;

use super::suite::Suite;
use super::verdict::{CaseResult, Verdict};
use ostler_run::log::progress::{duration, thousands};
use ostler_run::run::RunError;
use ostler_run::run::checkpoint::write_atomically;
use ostler_run::stats::Interval;
use std::path::Path;

/// All results: [`Suite`] as JSON.
pub const JSON: &str = "results.json";
/// JUnit XML.
pub const JUNIT: &str = "junit.xml";
/// Markdown.
pub const SUMMARY: &str = "summary.md";

/// Writes all three into the folder `out`, each whole or not at all.
///
/// # Errors
/// The file system refuses.
pub fn write(out: &Path, suite: &Suite) -> Result<(), RunError> {
    let put = |name: &str, text: Result<String, std::io::Error>| {
        let path = out.join(name);
        let written = text.and_then(|text| write_atomically(&path, text.as_bytes()));
        written.map_err(|source| RunError::File {
            action: "write",
            path,
            source,
            hint: "; --out names another folder",
        })
    };
    let json = serde_json::to_string_pretty(suite).map_err(std::io::Error::from);
    put(JSON, json.map(|text| text + "\n"))?;
    put(JUNIT, junit::text(suite).map_err(std::io::Error::other))?;
    put(SUMMARY, Ok(markdown::text(suite)))
}

/// A case in a line, and its problems in lines below.
pub fn line(case: &CaseResult) -> String {
    let word = match case.verdict {
        Verdict::Passed => "ok     ",
        Verdict::Failed => "FAILED ",
        Verdict::Skipped => "SKIPPED",
        Verdict::NotRun => "NOT RUN",
    };
    let mut text = format!("{word} {}", case.name);
    if !case.runs.is_empty() {
        text += &format!("  {}", numbers(case));
    }
    for (name, problem) in case.problems() {
        text += &format!("\n        {name}: {problem}");
    }
    for check in &case.checks {
        if check.verdict == Verdict::Skipped {
            text += &format!("\n        {}: {}", check.name, check.message);
        }
    }
    text
}

fn numbers(case: &CaseResult) -> String {
    let mut parts = Vec::new();
    if case.ret.is_some() || case.return_at_least.is_some() {
        parts.push(format!("return {}", ret(case)));
        if case.runs.len() > 1 {
            parts.push(format!("IQM {}", interquartile(case)));
        }
    }
    if let Some(speed) = case.steps_per_s {
        parts.push(format!("{} steps/s", thousands(speed)));
    }
    if let Some(share) = case.throughput_share {
        parts.push(format!("{share:.3} of the baseline"));
    }
    if let Some(peak) = case.peak_memory_mib {
        parts.push(format!("{} MiB", thousands(peak)));
    }
    let seeds = match case.runs.len() {
        1 => "1 seed".to_string(),
        n => format!("{n} seeds"),
    };
    parts.push(format!("{seeds} in {}", duration(case.seconds)));
    parts.join(", ")
}

/// The mean return and its interval, or a dash.
fn ret(case: &CaseResult) -> String {
    known(case.ret)
}

/// The interquartile mean of the returns and its interval, or a dash.
fn interquartile(case: &CaseResult) -> String {
    known(case.return_interquartile)
}

fn known(interval: Option<Interval>) -> String {
    match interval {
        None => "-".into(),
        Some(i) => match (i.low, i.high) {
            (Some(low), Some(high)) => format!("{:.1} [{low:.1}, {high:.1}]", i.mean),
            _ => format!("{:.1}", i.mean),
        },
    }
}
