//! Characters of foreign names that do more than stand there.

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
