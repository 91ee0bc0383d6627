//! Arrays of any shape, for files whose form is to be found out.

use super::NpzError;
use super::header::Kind;
use super::read::{Npz, double, room, single};
use std::io::{Read, Seek};

/// Numbers of one array.
#[derive(Debug, Clone, PartialEq)]
pub struct Numbers {
    /// Numbers in every direction; none for a single number.
    pub shape: Vec<usize>,
    /// The last index runs fastest.
    pub values: Vec<f64>,
}

impl<R: Read + Seek> Npz<R> {
    /// An array of floats or whole numbers of any shape; whole numbers beyond 2^53 are rounded.
    ///
    /// # Errors
    /// There is none of that name, or of another type; it is damaged; all arrays that were
    /// read of this file would take more than 1 GiB.
    pub fn numbers(&mut self, name: &str) -> Result<Numbers, NpzError> {
        let path = self.path.clone();
        let kinds = "float32, float64 or whole numbers";
        let numeric = |kind| !matches!(kind, Kind::Text(_));
        let entry = self.any(name, "an array of numbers", |_| true, kinds, numeric)?;
        let (kind, big, fortran) =
            (entry.header.kind, entry.header.big_endian, entry.header.fortran);
        // Their product was compared with the bytes that are there; a 0 may stand beside any.
        let sizes = entry.header.shape.iter().map(|n| usize::try_from(*n).unwrap_or(usize::MAX));
        let shape: Vec<usize> = sizes.collect();
        let values = match kind {
            Some(Kind::F4) => entry.collect(|b| single(b, big)),
            Some(Kind::F8) => entry.collect(|b| double(b, big)),
            Some(Kind::Whole { signed: false, .. }) => entry.collect(|b| whole(b, big, false)),
            _ => entry.collect(|b| whole(b, big, true)),
        };
        let flat = values.map_err(|e| e.named(&path, name))?;
        if !fortran || shape.len() < 2 || flat.is_empty() {
            return Ok(Numbers { shape, values: flat });
        }
        let mut values = room(flat.len()).map_err(|e| e.named(&path, name))?;
        let mut index = vec![0; shape.len()];
        for _ in 0..flat.len() {
            let at = index.iter().zip(&shape).rev().fold(0, |at, (i, n)| at * n + i);
            values.push(flat.get(at).copied().unwrap_or_default());
            for (i, n) in index.iter_mut().zip(&shape).rev() {
                *i += 1;
                if *i < *n {
                    break;
                }
                *i = 0;
            }
        }
        Ok(Numbers { shape, values })
    }

    /// A row of texts.
    ///
    /// # Errors
    /// There is none of that name, or of another shape or type (Python objects among them); it
    /// is damaged; all that was read of this file would take more than 1 GiB.
    pub fn texts(&mut self, name: &str) -> Result<Vec<String>, NpzError> {
        let path = self.path.clone();
        let kinds = "text as numpy.array([\"a\", \"b\"]) makes it";
        let text = |kind| matches!(kind, Kind::Text(_));
        let entry = self.any(name, "a row of texts", |shape| shape.len() == 1, kinds, text)?;
        let big = entry.header.big_endian;
        let texts = entry.collect(|b| characters(b, big));
        let texts = texts.map_err(|e| e.named(&path, name))?;
        let damaged = || NpzError::Format {
            path: path.clone(),
            why: format!("array {name}: it is no Unicode text"),
        };
        texts.into_iter().map(|t| t.ok_or_else(damaged)).collect()
    }
}

/// A whole number.
fn whole(bytes: &[u8], big_endian: bool, signed: bool) -> f64 {
    let mut word = [0; 8];
    let from = |i: usize| match big_endian {
        true => bytes.get(bytes.len().wrapping_sub(1 + i)),
        false => bytes.get(i),
    };
    let negative = signed && from(bytes.len().wrapping_sub(1)).is_some_and(|b| b & 0x80 != 0);
    for (i, byte) in word.iter_mut().enumerate() {
        *byte = from(i).copied().filter(|_| i < bytes.len()).unwrap_or(match negative {
            true => 0xff,
            false => 0,
        });
    }
    match signed {
        true => i64::from_le_bytes(word) as f64,
        false => u64::from_le_bytes(word) as f64,
    }
}

/// Text of four bytes a character, filled up with zeros; `None` where it is none.
fn characters(bytes: &[u8], big_endian: bool) -> Option<String> {
    let words = bytes.chunks_exact(4).map(|b| {
        let word = b.try_into().unwrap_or_default();
        match big_endian {
            true => u32::from_be_bytes(word),
            false => u32::from_le_bytes(word),
        }
    });
    let mut words: Vec<u32> = words.collect();
    while words.last() == Some(&0) {
        words.pop();
    }
    words.into_iter().map(char::from_u32).collect()
}
