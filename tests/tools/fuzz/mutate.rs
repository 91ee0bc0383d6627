//! Damage to a file, as data, so that a case can be made smaller.

use proptest::prelude::*;

/// Cases beyond this length are cut (bytes).
const LONGEST: usize = 1 << 19;

/// A change of a file.
#[derive(Debug, Clone)]
pub struct Edit {
    kind: u8,
    /// Where, as a share of the length.
    at: u32,
    len: u16,
    pick: u32,
    bytes: Vec<u8>,
}

/// Which file of the corpus, and what is done to it.
pub type Damage = (u32, Vec<Edit>);

pub fn strategy() -> impl Strategy<Value = Damage> {
    let bytes = proptest::collection::vec(any::<u8>(), 0..6);
    let edit = (any::<u8>(), any::<u32>(), any::<u16>(), any::<u32>(), bytes)
        .prop_map(|(kind, at, len, pick, bytes)| Edit { kind, at, len, pick, bytes });
    (any::<u32>(), proptest::collection::vec(edit, 0..7))
}

/// The files that mutations begin with, and words that mean something in them.
#[derive(Debug, Default)]
pub struct Corpus {
    pub files: Vec<Vec<u8>>,
    pub words: Vec<Vec<u8>>,
    /// Numbers and brackets are text.
    pub text: bool,
}

const NUMBERS: [&str; 24] = [
    "0",
    "-0",
    "-1",
    "1",
    "2",
    "1e308",
    "-1e308",
    "1e39",
    "1e-320",
    "nan",
    "inf",
    "-inf",
    "0.5",
    "4294967296",
    "2147483648",
    "-2147483649",
    "9223372036854775807",
    "-9223372036854775808",
    "18446744073709551615",
    "99999999999999999999",
    "1000000",
    "1e9",
    "65536",
    "0x7fffffffffffffff",
];
const WORDS: [u64; 12] = [
    0,
    1,
    2,
    255,
    65_536,
    1 << 24,
    1 << 31,
    1 << 32,
    u64::MAX,
    u64::MAX >> 1,
    1 << 62,
    0x7fc0_0000_7f80_0000,
];
const NESTS: [(&str, &str); 16] = [
    ("(", ")"),
    ("[", "]"),
    ("{", "}"),
    ("[[", "]]"),
    ("{\"a\":", "}"),
    ("{a=", "}"),
    ("<body>", "</body>"),
    ("<default>", "</default>"),
    ("<frame>", "</frame>"),
    ("abs(", ")"),
    ("-", ""),
    ("not ", ""),
    ("a.", ""),
    ("1 + ", ""),
    ("1 ? 1 : ", ""),
    ("2 ^ ", ""),
];

fn choose<T>(from: &[T], pick: u32) -> Option<&T> {
    from.get(pick as usize % from.len().max(1))
}

fn put(out: &mut Vec<u8>, at: usize, remove: usize, with: &[u8]) {
    let end = at.saturating_add(remove).min(out.len());
    out.splice(at..end, with.iter().copied());
    out.truncate(LONGEST);
}

/// The span of the word at or after `at` whose bytes satisfy `is`.
fn span(text: &[u8], at: usize, is: impl Fn(u8) -> bool) -> Option<(usize, usize)> {
    let begin = at + text[at..].iter().position(|&b| is(b))?;
    let len = text[begin..].iter().position(|&b| !is(b));
    Some((begin, len.unwrap_or(text.len() - begin)))
}

fn line(text: &[u8], at: usize) -> (usize, usize) {
    let begin = text[..at].iter().rposition(|&b| b == b'\n').map_or(0, |i| i + 1);
    let end = text[at..].iter().position(|&b| b == b'\n');
    (begin, end.map_or(text.len(), |e| at + e + 1) - begin)
}

impl Corpus {
    pub fn of_text(files: Vec<Vec<u8>>, words: &[&str]) -> Self {
        Self { files, words: words.iter().map(|w| w.as_bytes().to_vec()).collect(), text: true }
    }

    /// The case that `damage` stands for.
    pub fn make(&self, damage: &Damage) -> Vec<u8> {
        let mut out = choose(&self.files, damage.0).cloned().unwrap_or_default();
        for edit in &damage.1 {
            self.apply(&mut out, edit);
        }
        out
    }

    fn apply(&self, out: &mut Vec<u8>, e: &Edit) {
        let n = out.len();
        let at = ((u64::from(e.at) * (n as u64 + 1)) >> 32) as usize;
        // Short pieces more often than long ones.
        let len = match e.len & 3 {
            0 => 1,
            1 => e.len as usize % 16,
            2 => e.len as usize % 300,
            _ => e.len as usize,
        };
        let len = len.min(n - at);
        let piece = out[at..at + len].to_vec();
        let other = choose(&self.files, e.pick).map_or(&[][..], Vec::as_slice);
        let there = (e.pick >> 8) as usize % (other.len() + 1);
        let kinds = if self.text { 18 } else { 10 };
        match e.kind % kinds {
            0 if at < n => out[at] ^= 1 << (e.pick & 7),
            1 => put(out, at, e.bytes.len(), &e.bytes),
            2 => put(out, at, 0, &e.bytes),
            3 => put(out, at, len, &[]),
            4 => put(out, at, 0, &piece),
            5 if len > 0 => {
                let times = (e.pick as usize % 4000).min(LONGEST / 4 / len);
                put(out, at, 0, &piece.repeat(times));
            }
            6 => put(out, at, n, &other[there..]),
            7 => {
                let end = (there + len.max(20)).min(other.len());
                put(out, at, len, &other[there..end]);
            }
            8 if self.text => self.number(out, at, e),
            8 => put(out, at, 8, &choose(&WORDS, e.pick).map_or([0; 8], |w| w.to_le_bytes())),
            9 if self.text => self.number(out, at, e),
            9 => {
                put(out, at & !3, 4, &choose(&WORDS, e.pick).map_or(0, |w| *w as u32).to_le_bytes())
            }
            10 => self.number(out, at, e),
            11 | 12 => {
                if let Some(word) = choose(&self.words, e.pick) {
                    let is = |b: u8| b.is_ascii_alphanumeric() || b == b'_';
                    let (begin, old) = span(out, at, is).unwrap_or((n, 0));
                    put(out, begin, if e.kind & 1 == 0 { old } else { 0 }, word);
                }
            }
            13 => {
                let (open, close) = NESTS[e.pick as usize % NESTS.len()];
                let deep = [3, 70, 300, 5000][(e.pick >> 8) as usize % 4];
                let (open, close) = (open.repeat(deep), close.repeat(deep));
                let inner = [open.as_bytes(), &piece, close.as_bytes()];
                put(out, at, len, &inner.concat());
            }
            14 => {
                let (begin, len) = line(out, at);
                put(out, begin, len, &[]);
            }
            15 => {
                let (begin, len) = line(out, at);
                let line = out[begin..begin + len].to_vec();
                let (to, _) = line_at_share(out, e.pick);
                put(out, to, 0, &line);
            }
            16 => {
                let (begin, len) = line(out, at);
                let (from, more) = line_at_share(other, e.pick);
                put(out, begin, if e.len & 1 == 0 { len } else { 0 }, &other[from..from + more]);
            }
            17 => {
                // A quoted text becomes one of another file, or empty.
                let quoted = |text: &[u8], at: usize| {
                    let begin = at + text[at..].iter().position(|&b| b == b'"')? + 1;
                    let len = text[begin..].iter().position(|&b| b == b'"')?;
                    Some((begin, len))
                };
                if let Some((begin, len)) = quoted(out, at) {
                    let new = quoted(other, there).map_or(&[][..], |(b, l)| &other[b..b + l]);
                    put(out, begin, len, new);
                }
            }
            _ => {}
        }
    }

    fn number(&self, out: &mut Vec<u8>, at: usize, e: &Edit) {
        let is = |b: u8| b.is_ascii_digit() || b"+-.".contains(&b);
        if let Some((begin, len)) = span(out, at, is) {
            let new = choose(&NUMBERS, e.pick).copied().unwrap_or("0");
            put(out, begin, len, new.as_bytes());
        }
    }
}

fn line_at_share(text: &[u8], share: u32) -> (usize, usize) {
    let at = ((u64::from(share) * (text.len() as u64 + 1)) >> 32) as usize;
    line(text, at)
}
