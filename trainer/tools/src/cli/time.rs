//! Spans of time as people write them: `90s`, `15m`, `2h`, `1h30m`, `300`.

use std::time::Duration;

/// Reads a span of time; a bare number is seconds.
///
/// # Errors
/// A sentence about what is allowed.
pub fn parse(text: &str) -> Result<Duration, String> {
    let wrong = || format!("\"{text}\" is not a time: write 90s, 15m, 2h or 1h30m");
    let mut seconds = 0.0;
    let mut rest = text.trim();
    if rest.is_empty() {
        return Err(wrong());
    }
    while !rest.is_empty() {
        let end = rest.find(|c: char| !(c.is_ascii_digit() || c == '.')).unwrap_or(rest.len());
        let number: f64 = rest[..end].parse().map_err(|_| wrong())?;
        rest = &rest[end..];
        let unit = rest.chars().next();
        let scale = match unit {
            None | Some('s') => 1.0,
            Some('m') => 60.0,
            Some('h') => 3600.0,
            Some('d') => 86_400.0,
            Some(_) => return Err(wrong()),
        };
        seconds += number * scale;
        rest = &rest[unit.map_or(0, char::len_utf8)..];
    }
    Duration::try_from_secs_f64(seconds).map_err(|_| wrong())
}

#[cfg(test)]
mod tests {
    use super::parse;

    #[test]
    fn spans_are_read_in_the_usual_ways() {
        for (text, seconds) in [
            ("90", 90.0),
            ("90s", 90.0),
            ("1.5m", 90.0),
            ("2h", 7200.0),
            ("1h30m", 5400.0),
            ("1d", 86_400.0),
        ] {
            assert_eq!(parse(text).unwrap().as_secs_f64(), seconds, "{text}");
        }
        for text in ["", "h", "2x", "-1s", "1..2s", "2 h", "99999999999999999999d", "é"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
