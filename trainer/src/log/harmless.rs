//! Text from files of others, shown on a terminal.
//!
//! A robot's or a task's names may hold control sequences of terminals: sequences that clear the
//! screen, retitle the window or write into the shell's input, marks that reverse the
//! direction of reading.

use std::borrow::Cow;
use std::fmt::Write;

/// A line of a message has at most so many characters.
const LINE: usize = 2000;

/// Control characters but for line ends and tabs, and marks of direction, as `\u001b`: as
/// JSON escapes them, so that JSON stays JSON.
pub fn escaped(text: &str) -> Cow<'_, str> {
    let obeyed = |c: char| match c {
        '\n' | '\t' => false,
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => true,
        c => c.is_control(),
    };
    if !text.chars().any(obeyed) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match obeyed(c) {
            // Writing into a string does not fail.
            true => drop(write!(out, "\\u{:04x}", c as u32)),
            false => out.push(c),
        }
    }
    Cow::Owned(out)
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
        assert_eq!(
            shown,
            "torso\\u001b]0;title\\u0007\\u001b[2J\\u000d\\u009b31m\\u202e"
        );
        let plain = "two lines\n\tand größe";
        assert!(matches!(escaped(plain), Cow::Borrowed(text) if text == plain));
        let json = serde_json::to_string("a\u{7f}").unwrap();
        let back: String = serde_json::from_str(&escaped(&json)).unwrap();
        assert_eq!(back, "a\u{7f}");
    }

    #[test]
    fn long_lines_are_cut_and_short_ones_are_not() {
        let text = format!("error: {}\nhelp: rename it", "ö".repeat(5000));
        let shown = cut(&text);
        let lines: Vec<_> = shown.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(
            lines[0].ends_with("... (3007 more characters)"),
            "{}",
            lines[0]
        );
        assert_eq!(lines[1], "help: rename it");
        assert!(matches!(cut("short"), Cow::Borrowed(_)));
    }
}
