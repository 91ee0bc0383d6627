//! The head of an array, in the one form that numpy writes.
//!
//! ```text
//! {'descr': '<f8', 'fortran_order': False, 'shape': (3, 4), }
//! ```
//! It looks like Python, and numpy lets Python read it. Here it is taken apart by hand:
//! three keys, each once, and nothing that nests.

use std::io::Read;

/// Longest head that is read (bytes): numpy's own take 128.
const MOST: usize = 1024;
/// Most dimensions that are looked at: numpy's own limit.
const DIMENSIONS: usize = 64;
/// Longest text that is understood (characters).
const LONGEST: usize = 1000;
const MAGIC: &[u8] = b"\x93NUMPY";

/// Numbers that are read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// float32.
    F4,
    /// float64.
    F8,
    /// int32.
    I4,
    /// Whole numbers of other widths (bytes): int8 to int64, uint8 to uint64.
    Whole {
        /// Bytes of one number: 1, 2, 4 or 8.
        width: usize,
        /// Below 0 as well.
        signed: bool,
    },
    /// Text of so many characters at most, four bytes each.
    Text(usize),
}

impl Kind {
    /// Bytes of one number.
    pub(crate) fn width(self) -> usize {
        match self {
            Self::F4 | Self::I4 => 4,
            Self::F8 => 8,
            Self::Whole { width, .. } => width,
            // The longest that is understood has 1000 characters.
            Self::Text(characters) => 4 * characters,
        }
    }
}

/// Content of the head.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Header {
    /// The numbers' type as it is written: `'<f8'`.
    pub descr: String,
    /// That type, where it is one that is read.
    pub kind: Option<Kind>,
    /// The first byte of a number is its highest.
    pub big_endian: bool,
    /// The first index runs fastest.
    pub fortran: bool,
    /// Numbers in every direction.
    pub shape: Vec<u64>,
    /// Bytes of the head, before the numbers.
    pub length: u64,
}

impl Header {
    /// Reads the head of an array; the reader stands at the first number then. An error is
    /// a sentence.
    pub(crate) fn read(reader: &mut impl Read) -> Result<Self, String> {
        let mut start = [0; 8];
        read(reader, &mut start)?;
        if !start.starts_with(MAGIC) {
            return Err("it is no array of numpy's".into());
        }
        // Its length has two bytes in the first version, four in those after it.
        let mut length = [0; 4];
        let bytes = match start[6] {
            1 => 2,
            2 | 3 => 4,
            v => return Err(format!("its format is version {v}; 1, 2 and 3 are read")),
        };
        read(reader, &mut length[..bytes])?;
        let long = u32::from_le_bytes(length) as usize;
        if long > MOST {
            return Err(format!("a head of {long} bytes, more than is read"));
        }
        let mut text = vec![0; long];
        read(reader, &mut text)?;
        let wrong = || "its head is not as numpy writes it".to_string();
        let text = std::str::from_utf8(&text).map_err(|_| wrong())?;
        let mut header = Parser(text).header().ok_or_else(wrong)?;
        header.length = (start.len() + bytes + long) as u64;
        Ok(header)
    }

    /// Numbers in all; `None` where that is no number.
    pub(crate) fn count(&self) -> Option<u64> {
        self.shape.iter().try_fold(1_u64, |n, d| n.checked_mul(*d))
    }
}

/// The type of this name: `<f8`, `|u1`, `<U26`.
fn kind(name: &str) -> Option<Kind> {
    let kind = match name.strip_prefix(['<', '>', '|', '='])? {
        "f4" => Kind::F4,
        "f8" => Kind::F8,
        "i4" => Kind::I4,
        other => {
            let (letter, number) = other.split_at_checked(1)?;
            let number: usize = number.parse().ok()?;
            match letter {
                "i" | "u" if [1, 2, 4, 8].contains(&number) => {
                    Kind::Whole { width: number, signed: letter == "i" }
                }
                "U" if (1..=LONGEST).contains(&number) => Kind::Text(number),
                _ => return None,
            }
        }
    };
    Some(kind)
}

fn read(reader: &mut impl Read, to: &mut [u8]) -> Result<(), String> {
    let short = |e| format!("its head cannot be read: {e}");
    reader.read_exact(to).map_err(short)
}

/// The rest of the text.
struct Parser<'a>(&'a str);

impl<'a> Parser<'a> {
    /// Takes this off the front, and spaces before it.
    fn take(&mut self, what: &str) -> Option<()> {
        self.0 = self.0.trim_ascii_start().strip_prefix(what)?;
        Some(())
    }

    /// Text in quotes, without either of them in it.
    fn text(&mut self) -> Option<&'a str> {
        let rest = self.0.trim_ascii_start();
        let quote = rest.chars().next().filter(|c| "'\"".contains(*c))?;
        let (text, rest) = rest.get(1..)?.split_once(quote)?;
        self.0 = rest;
        Some(text)
    }

    fn truth(&mut self) -> Option<bool> {
        match self.take("True") {
            Some(()) => Some(true),
            None => self.take("False").map(|()| false),
        }
    }

    /// `()`, `(3,)`, `(3, 4)`, `(3, 4,)`.
    fn shape(&mut self) -> Option<Vec<u64>> {
        self.take("(")?;
        let mut shape = Vec::new();
        loop {
            if self.take(")").is_some() {
                return Some(shape);
            }
            let rest = self.0.trim_ascii_start();
            let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
            let (number, rest) = rest.split_at_checked(digits)?;
            shape.push(number.parse().ok()?);
            if shape.len() > DIMENSIONS {
                return None;
            }
            self.0 = rest;
            if self.take(",").is_none() {
                self.take(")")?;
                return Some(shape);
            }
        }
    }

    fn header(&mut self) -> Option<Header> {
        let (mut descr, mut fortran, mut shape) = (None, None, None);
        self.take("{")?;
        loop {
            if self.take("}").is_some() {
                break;
            }
            let key = self.text()?;
            self.take(":")?;
            match key {
                "descr" if descr.is_none() => descr = Some(self.descr()?),
                "fortran_order" if fortran.is_none() => fortran = Some(self.truth()?),
                "shape" if shape.is_none() => shape = Some(self.shape()?),
                _ => return None,
            }
            if self.take(",").is_none() {
                self.take("}")?;
                break;
            }
        }
        let (descr, fortran, shape) = (descr?, fortran?, shape?);
        let kind = kind(descr.trim_matches('\''));
        let big_endian = descr.starts_with("'>");
        // Numpy fills it up with spaces.
        self.0.trim_ascii().is_empty().then_some(Header {
            descr,
            kind,
            big_endian,
            fortran,
            shape,
            length: 0,
        })
    }

    /// A type's name; a list of fields is not looked into, as nothing here reads one.
    fn descr(&mut self) -> Option<String> {
        if self.0.trim_ascii_start().starts_with('[') {
            // The next key ends the value: a name in quotes with a colon behind it.
            let end = self.0.find(", 'fortran_order'")?;
            self.0 = self.0.get(end..)?;
            return Some("a list of fields".into());
        }
        Some(format!("'{}'", self.text()?))
    }
}
