//! Text -> tokens with spans.

use super::error::ExprError;
use std::ops::Range;

/// One word or sign of an expression.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Token<'a> {
    /// A number.
    Number(f64),
    /// A name.
    Name(&'a str),
    /// A quoted name.
    Text(&'a str),
    /// An operator or bracket, always in its canonical spelling: `&&` is `and`.
    Sign(&'static str),
}

/// A token and the bytes it came from.
pub(crate) type Spanned<'a> = (Token<'a>, Range<usize>);

/// Longest first, so that `<=` is not read as `<`. Second: the canonical spelling.
const SIGNS: [(&str, &str); 27] = [
    ("&&", "and"),
    ("||", "or"),
    ("<=", "<="),
    (">=", ">="),
    ("==", "=="),
    ("!=", "!="),
    ("<", "<"),
    (">", ">"),
    ("!", "not"),
    ("+", "+"),
    ("-", "-"),
    ("*", "*"),
    ("/", "/"),
    ("^", "^"),
    ("(", "("),
    (")", ")"),
    ("[", "["),
    ("]", "]"),
    (",", ","),
    (".", "."),
    (":", ":"),
    ("?", "?"),
    // Spellings that people paste from elsewhere and that mean the same.
    ("\u{2212}", "-"),
    ("\u{b7}", "*"),
    ("\u{d7}", "*"),
    ("\u{2264}", "<="),
    ("\u{2265}", ">="),
];

/// Spellings of other languages, and the spellings here.
const FOREIGN: [(&str, &str, &str); 10] = [
    ("**", "`**` is not an operator", "write a^b"),
    ("//", "`//` is not an operator", "write floor(a / b)"),
    ("@", "`@` is not an operator", "write dot(a, b), or norm2(a) for a vector with itself"),
    ("%", "`%` is not an operator", "write a - b * floor(a / b), or wrap_angle(a) for angles"),
    ("&", "`&` is not an operator", "write `and`"),
    ("|", "`|` is not an operator", "write `or`; an absolute value is abs(a)"),
    (
        "=",
        "`=` is not an operator",
        "compare with `==`; to name a value, make it a `task.params` entry",
    ),
    ("{", "`{` has no meaning here", "group with ( ), list with [ ]"),
    (
        ";",
        "`;` has no meaning here",
        "an expression is one value; separate list entries with commas",
    ),
    ("\u{b2}", "`\u{b2}` is not an operator", "write a^2"),
];

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

/// Splits `text`. Comments run from `#` to the end of the line.
pub(crate) fn lex(text: &str) -> Result<Vec<Spanned<'_>>, ExprError> {
    let mut tokens = Vec::new();
    let mut at = 0;
    while let Some(c) = text[at..].chars().next() {
        let rest = &text[at..];
        if c.is_whitespace() {
            at += c.len_utf8();
        } else if c == '#' {
            at += rest.find('\n').unwrap_or(rest.len());
        } else if c.is_ascii_digit() || is_fraction(rest, tokens.last().map(|t: &Spanned<'_>| &t.0))
        {
            let len = number_len(rest);
            let span = at..at + len;
            let value: f64 = rest[..len].parse().map_err(|_| {
                ExprError::new(span.clone(), format!("`{}` is not a number", &rest[..len]))
            })?;
            if !(value as f32).is_finite() {
                return Err(ExprError::new(span, format!("{} is too large", &rest[..len]))
                    .help("numbers are 32-bit floats, at most 3.4e38"));
            }
            if let Some(next) = rest[len..].chars().next().filter(|c| is_name(*c)) {
                let end = at + len + rest[len..].find(|c| !is_name(c)).unwrap_or(rest.len() - len);
                let help = if next.is_ascii_alphabetic() {
                    format!("for a product write {} * {}", &rest[..len], &text[at + len..end])
                } else {
                    "numbers look like 12, 0.5, 1e-3".to_string()
                };
                return Err(ExprError::new(
                    at..end,
                    format!("`{}` is not a number", &text[at..end]),
                )
                .help(help));
            }
            tokens.push((Token::Number(value), span));
            at += len;
        } else if is_name(c) || word_in_braces(rest).is_some() {
            let len = name_len(rest);
            let token = match &rest[..len] {
                "and" => Token::Sign("and"),
                "or" => Token::Sign("or"),
                // Binds more loosely than `!`; the parser tells them apart.
                "not" => Token::Name("not"),
                name => Token::Name(name),
            };
            tokens.push((token, at..at + len));
            at += len;
        } else if c == '"' || c == '\'' {
            let Some(len) = rest[1..].find(c) else {
                return Err(ExprError::new(at..text.len(), "this quoted name does not end")
                    .help(format!("close it with {c}")));
            };
            tokens.push((Token::Text(&rest[1..1 + len]), at..at + len + 2));
            at += len + 2;
        } else if is_argument_name(rest, &tokens) {
            return Err(ExprError::new(at..at + 1, "arguments have no names here")
                .help("they go by place: exp_kernel(x, 0.5)"));
        } else if let Some((sign, message, help)) = foreign(rest) {
            return Err(ExprError::new(at..at + sign.len(), message).help(help));
        } else if let Some((sign, canonical)) = SIGNS.iter().find(|(s, _)| rest.starts_with(s)) {
            tokens.push((Token::Sign(canonical), at..at + sign.len()));
            at += sign.len();
        } else {
            return Err(ExprError::new(
                at..at + c.len_utf8(),
                format!("`{}` has no meaning here", c.escape_debug()),
            ));
        }
    }
    Ok(tokens)
}

/// Length of the name that `rest` starts with; `{agent}` and other words in braces are part of
/// names.
fn name_len(rest: &str) -> usize {
    let mut len = 0;
    while let Some(c) = rest[len..].chars().next() {
        match word_in_braces(&rest[len..]) {
            Some(more) => len += more,
            None if is_name(c) => len += 1,
            None => break,
        }
    }
    len
}

fn foreign(rest: &str) -> Option<(&'static str, &'static str, &'static str)> {
    let known = ["&&", "||", "=="].iter().any(|s| rest.starts_with(s));
    (!known).then(|| FOREIGN.iter().copied().find(|(s, ..)| rest.starts_with(s))).flatten()
}

/// The `=` of `f(x, name=1)`.
fn is_argument_name(rest: &str, before: &[Spanned<'_>]) -> bool {
    let after = matches!(before, [.., (Token::Sign("(" | ","), _), (Token::Name(_), _)]);
    after && rest.starts_with('=') && !rest.starts_with("==")
}

/// `.5`, but not the `.5` of `a.5` (where it is an error the parser explains).
fn is_fraction(rest: &str, before: Option<&Token<'_>>) -> bool {
    rest.starts_with('.')
        && rest[1..].starts_with(|c: char| c.is_ascii_digit())
        && !matches!(before, Some(Token::Name(_) | Token::Text(_) | Token::Sign(")" | "]")))
}

/// Length of the number that `rest` starts with: digits, fraction, exponent.
fn number_len(rest: &str) -> usize {
    let b = rest.as_bytes();
    let digits = |mut i: usize| {
        while b.get(i).is_some_and(u8::is_ascii_digit) {
            i += 1;
        }
        i
    };
    let mut end = digits(0);
    if b.get(end) == Some(&b'.') {
        end = digits(end + 1);
    }
    if matches!(b.get(end), Some(b'e' | b'E')) {
        let sign = usize::from(matches!(b.get(end + 1), Some(b'+' | b'-')));
        let exponent = digits(end + 1 + sign);
        if exponent > end + 1 + sign {
            end = exponent;
        }
    }
    end
}

/// Bytes of the `{word}` that `rest` starts with.
pub(super) fn word_in_braces(rest: &str) -> Option<usize> {
    let inner = rest.strip_prefix('{')?;
    let len = inner.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_'))?;
    (len > 0 && inner[len..].starts_with('}')).then_some(len + 2)
}
