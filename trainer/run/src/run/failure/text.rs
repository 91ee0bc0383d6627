//! The report in words.

use super::Report;
use crate::log::harmless::markdown as plain;
use crate::log::trace::LOG;
use crate::run::store::dir::METRICS;
use ostler_machine::memory::Sample;
use ostler_sim::env::EventSpec;
use ostler_sim::text::word;
use std::fmt::Write as _;
use std::path::Path;

/// `report.md`.
pub(super) fn markdown(report: &Report, folder: &Path) -> String {
    let mut out = String::new();
    let _ = writeln!(
        out,
        "# Iteration {}: {}\n\n{}.\n\n{} environments; roll-backs: {} in a row, {} in all.\n",
        report.iteration,
        report.kind,
        plain(&report.what),
        report.num_envs,
        report.roll_backs[0],
        report.roll_backs[1]
    );
    if !report.causes.is_empty() {
        out.push_str("## What broke\n\n| cause | environments |\n|---|---|\n");
        for (cause, n) in &report.causes {
            let _ = writeln!(out, "| {} | {n} |", plain(cause));
        }
        out.push('\n');
    }
    if !report.events.is_empty() {
        let _ = writeln!(
            out,
            "## Events before\n\nWithin {} control steps after them; of events of startup, in environments that had broken twice before. One break can count for several.\n\n| event | environments |\n|---|---|",
            EventSpec::SOON
        );
        for (event, n) in &report.events {
            let _ = writeln!(out, "| {} | {n} |", plain(event));
        }
        out.push('\n');
    }
    if !report.breaks.is_empty() {
        out.push_str("## The first of them\n\n| environment | control step of the rollout | of its episode | cause | value |\n|---|---|---|---|---|\n");
        for b in &report.breaks {
            let _ = writeln!(
                out,
                "| {} | {} | {} | {} | {} |",
                b.env,
                b.step,
                b.age,
                plain(&b.cause),
                b.value
            );
        }
        out.push('\n');
    }
    out.push_str("## What usually mends it\n\n");
    for text in &report.remedies {
        let _ = writeln!(out, "- {}", plain(text));
    }
    if !report.schedules.is_empty() {
        out.push_str("\n## Schedules\n\n");
        for (key, value) in &report.schedules {
            let _ = writeln!(out, "- {key} = {}", plain(&value.to_string()));
        }
    }
    let _ = writeln!(
        out,
        "\nThe last lines of the run's log are in {LOG}, the last iterations in {METRICS}."
    );
    match report.start.as_deref() {
        Some(super::start::NAME) => {
            let _ =
                writeln!(out, "\n## See it again\n\n```sh\nostler replay {}\n```", word(folder));
        }
        Some(why) => {
            let _ = writeln!(out, "\nThe state at the iteration's start was {why}.");
        }
        None => {}
    }
    out
}

/// One line of `memory.jsonl`.
pub(super) fn sample(sample: &Sample) -> String {
    let mut fields = serde_json::Map::new();
    fields.insert("at_s".into(), sample.at_s.into());
    for p in sample.pressures() {
        let value = serde_json::json!({ "used": p.used, "limit": p.limit });
        fields.insert(p.source.name().into(), value);
    }
    serde_json::Value::Object(fields).to_string()
}
