//! The summary for a pull request.

use super::super::suite::Suite;
use super::super::verdict::{CaseResult, Verdict};
use super::{interquartile, ret};
use ostler_run::log::harmless::markdown;
use ostler_run::log::progress::{duration, thousands};
use std::fmt::Write as _;

/// The document.
pub(crate) fn text(suite: &Suite) -> String {
    let mut text = String::new();
    let n = &suite.counts;
    let word = match suite.passed() {
        true => "passed",
        false => "FAILED",
    };
    let _ = writeln!(text, "# Regression {word}\n");
    let mut counts = vec![format!("{} of {} cases passed", n.passed, n.cases)];
    for (number, what) in [(n.failed, "failed"), (n.skipped, "SKIPPED"), (n.not_run, "NOT RUN")] {
        if number > 0 {
            counts.push(format!("{number} {what}"));
        }
    }
    let form = match suite.short {
        true => " (short form)",
        false => "",
    };
    let _ = writeln!(
        text,
        "{}. {}{form}, {} ({} of processor time), ostler {}, on {}.\n",
        counts.join(", "),
        markdown(&suite.dir),
        duration(suite.seconds),
        duration(suite.processor_seconds),
        suite.ostler,
        markdown(&suite.machine.class),
    );
    if suite.interrupted {
        let _ = writeln!(text, "**The runner was stopped before its end.**\n");
    }
    text += "| case | | return (interval) | IQM (bootstrap) | at least | steps/s | of baseline | peak MiB | seeds | time |\n";
    text += "|---|---|---|---|---|---|---|---|---|---|\n";
    for case in &suite.cases {
        text += &row(case);
    }
    section(&mut text, suite, "What failed", Verdict::Failed);
    section(&mut text, suite, "What was skipped", Verdict::Skipped);
    section(&mut text, suite, "What was not run", Verdict::NotRun);
    notes(&mut text, suite);
    text
}

fn row(case: &CaseResult) -> String {
    let dash = || "-".to_string();
    let word = match case.verdict {
        Verdict::Passed => "ok",
        Verdict::Failed => "**FAILED**",
        Verdict::Skipped => "**SKIPPED**",
        Verdict::NotRun => "**NOT RUN**",
    };
    let fields = [
        case.name.clone(),
        word.to_string(),
        ret(case),
        interquartile(case),
        case.return_at_least.map_or_else(dash, |r| r.to_string()),
        case.steps_per_s.map_or_else(dash, thousands),
        case.throughput_share.map_or_else(dash, |s| format!("{s:.3}")),
        case.peak_memory_mib.map_or_else(dash, thousands),
        case.runs.len().to_string(),
        duration(case.seconds),
    ];
    format!("| {} |\n", fields.join(" | "))
}

fn section(text: &mut String, suite: &Suite, title: &str, verdict: Verdict) {
    let cases = suite.cases.iter().filter(|c| c.verdict == verdict);
    let mut lines = cases.flat_map(|case| {
        case.problems().map(|(name, problem)| {
            let (kind, why) = (problem.kind.name(), markdown(&problem.message));
            format!("- **{}**, {}: `{kind}`: {why}\n", case.name, markdown(&name))
        })
    });
    if let Some(first) = lines.next() {
        let _ = write!(text, "\n## {title}\n\n{first}");
        text.extend(lines);
    }
}

/// Checks that could not be made, though their cases passed.
fn notes(text: &mut String, suite: &Suite) {
    let checks = suite.cases.iter().flat_map(|case| {
        let skipped = case.checks.iter().filter(|c| c.verdict == Verdict::Skipped);
        skipped.map(|c| format!("- **{}**, {}: {}\n", case.name, c.name, markdown(&c.message)))
    });
    let lines: String = checks.collect();
    if !lines.is_empty() {
        let _ = write!(text, "\n## What was not compared\n\n{lines}");
    }
}
