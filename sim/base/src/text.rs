//! Characters of foreign names that do more than stand there.

use std::borrow::Cow;
use std::fmt::Write;
use std::path::Path;

/// Whether a reader obeys `c` where it should show it: control characters, line and paragraph
/// ends, marks of direction (a text that is read in another order than it is executed in,
/// Boucher and Anderson 2021), and characters that nobody sees.
pub fn obeyed(c: char) -> bool {
    c.is_control()
        || matches!(
            c,
            '\u{ad}'
                | '\u{61c}'
                | '\u{200b}'..='\u{200f}'
                | '\u{2028}'..='\u{202e}'
                | '\u{2060}'..='\u{206f}'
                | '\u{feff}'
                | '\u{fff9}'..='\u{fffb}'
                | '\u{fffe}'..='\u{ffff}'
                | '\u{e0000}'..='\u{e007f}'
        )
}

/// `text` in one line: all that is [`obeyed`], line ends too, as JSON escapes it (`\u000a`).
pub fn line(text: &str) -> Cow<'_, str> {
    escaped(text, obeyed)
}

/// `text` with those characters that are `odd` as JSON escapes them.
pub fn escaped(text: &str, odd: impl Fn(char) -> bool) -> Cow<'_, str> {
    if !text.chars().any(&odd) {
        return Cow::Borrowed(text);
    }
    let mut out = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        match odd(c) {
            true => {
                for unit in c.encode_utf16(&mut [0; 2]) {
                    // Writing into a string does not fail.
                    let _ = write!(out, "\\u{unit:04x}");
                }
            }
            false => out.push(c),
        }
    }
    Cow::Owned(out)
}

/// A path as one word of a shell's command.
pub fn word(path: &Path) -> String {
    let text = path.display().to_string();
    let plain = |c: char| c.is_alphanumeric() || "._-/+,:@%=".contains(c);
    match !text.is_empty() && text.chars().all(plain) {
        true => text,
        false => format!("'{}'", text.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_one_word_of_a_shell() {
        let word = |path: &str| word(path.as_ref());
        assert_eq!(word("runs/go1/2026-11-29_r\u{fc}n"), "runs/go1/2026-11-29_r\u{fc}n");
        assert_eq!(word("my runs/a"), "'my runs/a'");
        assert_eq!(word("it's; rm"), "'it'\\''s; rm'");
        assert_eq!(word(""), "''");
    }

    #[test]
    fn a_line_has_no_ends_within() {
        assert_eq!(line("a\n::error::b\r"), "a\\u000a::error::b\\u000d");
        assert!(matches!(line("a b"), Cow::Borrowed("a b")));
    }
}
