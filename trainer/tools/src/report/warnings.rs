//! What a run's log warns of, one line a kind.

use ostler_run::log::lines::Lines;
use ostler_run::log::trace::LOG;
use serde_json::Value;
use std::path::Path;

/// Kinds of warnings of one run at most.
const KINDS: usize = 20;

/// The warnings in the log of the run in `folder`; none where there is no log. Warnings that
/// differ in their numbers alone are one kind, of which the first stands for all.
pub(super) fn read(folder: &Path) -> Vec<String> {
    let Ok(mut lines) = Lines::open(&folder.join(LOG)) else {
        return Vec::new();
    };
    let mut kinds: Vec<(String, String, u64)> = Vec::new();
    let mut others = 0;
    while let Ok(Some(line)) = lines.next_line() {
        let Some(said) = warning(&String::from_utf8_lossy(line)) else {
            continue;
        };
        let kind: String = said.chars().filter(|c| !c.is_ascii_digit()).collect();
        let full = kinds.len() == KINDS;
        match kinds.iter_mut().find(|(known, ..)| *known == kind) {
            Some((.., times)) => *times += 1,
            None if full => others += 1,
            None => kinds.push((kind, said, 1)),
        }
    }
    let told = kinds.into_iter().map(|(_, said, times)| match times {
        1 => said,
        n => format!("{said} ({n} times in all)"),
    });
    let others = (others > 0).then(|| format!("and {others} other warnings, in its {LOG}"));
    told.chain(others).collect()
}

/// The warning or error that a line of a log is: `TIME  WARN [iteration{...}: ]TEXT`, or an
/// object.
fn warning(line: &str) -> Option<String> {
    let bad = |level: &str| level == "WARN" || level == "ERROR";
    if let Ok(Value::Object(line)) = serde_json::from_str(line) {
        let text = |key: &str| line.get(key).and_then(Value::as_str);
        return text("message").filter(|_| text("level").is_some_and(bad)).map(str::to_owned);
    }
    let (_, rest) = line.split_once(' ')?;
    let (_, said) = rest.trim_start().split_once(' ').filter(|(level, _)| bad(level))?;
    let span = said.strip_prefix("iteration{").and_then(|rest| rest.split_once("}: "));
    Some(span.map_or(said, |(_, said)| said).trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_of_warnings_are_told_once_of_text_and_of_objects() {
        let dir = tempfile::tempdir().unwrap();
        assert_eq!(read(dir.path()), [""; 0]);
        let text = "2026-01-01T00:00:00.000000Z  INFO all is well\n\
            2026-01-01T00:00:01.000000Z  WARN the pose: is odd\n\
            2026-01-01T00:00:02.000000Z  WARN iteration{n=3}: iteration 3: 4 stopped early\n\
            2026-01-01T00:00:03.000000Z  WARN iteration{n=31}: iteration 31: 2 stopped early\n\
            2026-01-01T00:00:04.000000Z ERROR it ended\n\
            {\"timestamp\":\"t\",\"level\":\"WARN\",\"message\":\"from an object\"}\n\
            {\"level\":\"INFO\",\"message\":\"WARN of nothing\"}\n";
        let more: String = (0..KINDS).map(|k| format!("t  WARN {}\n", "x".repeat(k + 1))).collect();
        std::fs::write(dir.path().join(LOG), format!("{text}{more}")).unwrap();
        let said = read(dir.path());
        assert_eq!(said[0], "the pose: is odd");
        assert_eq!(said[1], "iteration 3: 4 stopped early (2 times in all)");
        assert_eq!(said[2..4], ["it ended", "from an object"]);
        assert_eq!(
            (said.len(), said[KINDS].as_str()),
            (KINDS + 1, "and 4 other warnings, in its log.txt")
        );
    }
}
