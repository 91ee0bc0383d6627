//! Text from files of others, shown on a terminal.
//!
//! A robot's or a task's names may hold control sequences of terminals: sequences that clear the
//! screen, retitle the window or write into the shell's input, marks that reverse the
//! direction of reading.

use ostler_sim::text;
use std::borrow::Cow;

/// A line of a message has at most so many characters.
const LINE: usize = 2000;

/// Control characters but for line ends and tabs, and what else is [obeyed](text::obeyed), as
/// `\u001b`: as JSON escapes them, so that JSON stays JSON. Likewise what a machine that builds
/// would obey in what a program prints: `::error::` where a line begins, `##[error]` anywhere.
pub fn escaped(text: &str) -> Cow<'_, str> {
    let shown = text::escaped(text, |c| !matches!(c, '\n' | '\t') && text::obeyed(c));
    let begins = |line: &str| line.trim_start().starts_with("::");
    let within = |line: &str| BRACKETS.iter().any(|sign| line.contains(sign));
    if !shown.split('\n').any(|line| begins(line) || within(line)) {
        return shown;
    }
    let tame = |line: &str| {
        let line = match begins(line) {
            true => line.replacen(':', "\\u003a", 1),
            false => line.to_string(),
        };
        BRACKETS.iter().fold(line, |l, sign| l.replace(sign, &format!("\\u0023{}", &sign[1..])))
    };
    Cow::Owned(shown.split('\n').map(tame).collect::<Vec<_>>().join("\n"))
}

/// Beginnings of commands of GitHub's and Azure's machines.
const BRACKETS: [&str; 2] = ["##[", "##vso["];

/// As [`escaped`], for a record of a log: further lines are indented, as none of them begins a
/// record.
pub fn record(text: &str) -> String {
    escaped(text).replace('\n', "\n    ")
}

/// A foreign text in a line or a cell of Markdown, as it is: nothing in it is a mark, an element
/// of HTML or the end of its place.
pub fn markdown(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in escaped(text).chars() {
        match c {
            '\n' | '\t' => out.push(' '),
            '\\' | '|' | '`' | '*' | '[' | ']' | '!' | '~' => out.extend(['\\', c]),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            c => out.push(c),
        }
    }
    out
}

/// Lines that are too long, cut, with the number of characters that are missing.
pub fn cut(text: &str) -> Cow<'_, str> {
    if text.lines().all(|line| line.len() <= LINE) {
        return Cow::Borrowed(text);
    }
    let short = |line: &str| match line.char_indices().nth(LINE) {
        None => line.to_string(),
        Some((end, _)) => {
            let more = line[end..].chars().count();
            format!("{}... ({more} more characters)", &line[..end])
        }
    };
    Cow::Owned(text.lines().map(short).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_terminal_would_obey_is_shown_as_text() {
        let name = "torso\x1b]0;title\x07\x1b[2J\r\u{9b}31m\u{202e}";
        let shown = escaped(name);
        assert_eq!(shown, "torso\\u001b]0;title\\u0007\\u001b[2J\\u000d\\u009b31m\\u202e");
        let plain = "two lines\n\tand größe";
        assert!(matches!(escaped(plain), Cow::Borrowed(text) if text == plain));
        let json = serde_json::to_string("a\u{7f}").unwrap();
        let back: String = serde_json::from_str(&escaped(&json)).unwrap();
        assert_eq!(back, "a\u{7f}");
    }

    #[test]
    fn what_is_escaped_stays_json_and_a_record_stays_one() {
        let name = "a\u{e0041}\u{200b}\u{feff}\u{85}";
        let back: String = serde_json::from_str(&format!("\"{}\"", escaped(name))).unwrap();
        assert_eq!(back, name);
        let shown = record("joint \"a\n2026-01-01T00:00:00Z ERROR all is lost\r\"");
        assert_eq!(shown, "joint \"a\n    2026-01-01T00:00:00Z ERROR all is lost\\u000d\"");
    }

    #[test]
    fn no_line_is_a_command_of_a_machine_that_builds() {
        let text = "error: a\n ::error::b\nc ##[error]d ##vso[task]e a::b";
        let tame = "error: a\n \\u003a:error::b\nc \\u0023#[error]d \\u0023#vso[task]e a::b";
        assert_eq!(escaped(text), tame);
    }

    #[test]
    fn foreign_text_is_no_mark_of_markdown() {
        let name = "a|b`c\n# <img src=x> [x](y) \\| *&*";
        let shown = markdown(name);
        assert_eq!(shown, "a\\|b\\`c # &lt;img src=x&gt; \\[x\\](y) \\\\\\| \\*&amp;\\*");
    }

    #[test]
    fn long_lines_are_cut_and_short_ones_are_not() {
        let text = format!("error: {}\nhelp: rename it", "ö".repeat(5000));
        let shown = cut(&text);
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].ends_with("... (3007 more characters)"), "{}", lines[0]);
        assert_eq!(lines[1], "help: rename it");
        assert!(matches!(cut("short"), Cow::Borrowed(_)));
    }
}
