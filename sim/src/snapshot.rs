//! What the snapshots of all parts have in common: eight bytes that name the part and
//! the format, the content, and in what goes into a file a checksum of both.
//!
//! A checksum guards against accidents, not against a forger.

use crate::memory::MemoryError;
use crate::physics::SnapshotError;

const CHECKSUM: usize = 32;

/// Where a snapshot goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Seal {
    /// Into a file: with a checksum.
    Checked,
    /// Nowhere outside this process: without.
    Bare,
}

/// How one part's snapshots begin.
pub(crate) struct Format {
    /// First bytes of a checked one.
    pub checked: &'static [u8; 8],
    /// First bytes of a bare one.
    pub bare: &'static [u8; 8],
    /// Snapshots of what.
    pub what: &'static str,
}

impl Format {
    /// Appends the first bytes, with room for `len` more; the place is for
    /// [`end`](Self::end).
    pub fn begin(&self, out: &mut Vec<u8>, seal: Seal, len: usize) -> Result<usize, SnapshotError> {
        reserve(out, len.saturating_add(8 + CHECKSUM), self.what)?;
        let start = out.len();
        out.extend_from_slice(match seal {
            Seal::Checked => self.checked,
            Seal::Bare => self.bare,
        });
        Ok(start)
    }

    /// Appends the checksum of all from `start` on, where there is to be one.
    pub fn end(&self, out: &mut Vec<u8>, seal: Seal, start: usize) -> Result<(), SnapshotError> {
        if seal == Seal::Checked {
            reserve(out, CHECKSUM, self.what)?;
            let sum = blake3::hash(&out[start..]);
            out.extend_from_slice(sum.as_bytes());
        }
        Ok(())
    }

    /// The content, after the checksum agreed.
    pub fn open<'a>(&self, blob: &'a [u8]) -> Result<(Seal, Reader<'a>), SnapshotError> {
        let what = self.what;
        if let Some(content) = blob.strip_prefix(self.bare) {
            return Ok((Seal::Bare, Reader(content)));
        }
        if !blob.starts_with(self.checked) {
            return Err(unfit(format!("not a snapshot of {what}")));
        }
        let sealed = blob.len().checked_sub(CHECKSUM);
        let Some((body, sum)) = sealed.and_then(|at| blob.split_at_checked(at)) else {
            return Err(unfit(format!("a snapshot of {what} that ends too early")));
        };
        if blake3::hash(body).as_bytes() != sum {
            return Err(unfit(format!(
                "the checksum of {what} does not match: the snapshot is damaged"
            )));
        }
        Ok((Seal::Checked, Reader(body.get(8..).unwrap_or_default())))
    }

    /// [`open`](Self::open) for one that came from a file.
    pub fn open_checked<'a>(&self, blob: &'a [u8]) -> Result<Reader<'a>, SnapshotError> {
        match self.open(blob)? {
            (Seal::Checked, reader) => Ok(reader),
            (Seal::Bare, _) => Err(unfit(format!(
                "a snapshot of {} that was kept for use within its process, not saved",
                self.what
            ))),
        }
    }
}

/// An error about what a snapshot holds.
pub(crate) fn unfit(why: impl Into<String>) -> SnapshotError {
    SnapshotError::Unfit(why.into())
}

/// Room for `len` more bytes, or an error instead of an abort.
pub(crate) fn reserve(out: &mut Vec<u8>, len: usize, what: &str) -> Result<(), SnapshotError> {
    out.try_reserve_exact(len).map_err(|_| {
        SnapshotError::Memory(MemoryError {
            what: format!("a snapshot of {what}"),
            bytes: out.len().saturating_add(len),
        })
    })
}

/// Takes bytes from the front, never past the end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reader<'a>(pub &'a [u8]);

impl<'a> Reader<'a> {
    pub fn bytes(&mut self, len: usize) -> Result<&'a [u8], SnapshotError> {
        let Some((head, rest)) = self.0.split_at_checked(len) else {
            return Err(unfit("it ends too early"));
        };
        self.0 = rest;
        Ok(head)
    }

    /// `count` elements of `size` bytes.
    pub fn items(&mut self, count: usize, size: usize) -> Result<&'a [u8], SnapshotError> {
        self.bytes(count.saturating_mul(size))
    }

    pub fn array<const K: usize>(&mut self) -> Result<[u8; K], SnapshotError> {
        let mut a = [0; K];
        a.copy_from_slice(self.bytes(K)?);
        Ok(a)
    }

    pub fn word(&mut self) -> Result<u32, SnapshotError> {
        self.array().map(u32::from_le_bytes)
    }

    pub fn long(&mut self) -> Result<u64, SnapshotError> {
        self.array().map(u64::from_le_bytes)
    }

    /// A number of things that lie in memory.
    pub fn count(&mut self) -> Result<usize, SnapshotError> {
        let n = self.long()?;
        usize::try_from(n).map_err(|_| unfit(format!("it speaks of {n} things")))
    }

    /// Nothing may be left.
    pub fn finish(self) -> Result<(), SnapshotError> {
        match self.0.len() {
            0 => Ok(()),
            n => Err(unfit(format!("{n} bytes more than belong there"))),
        }
    }
}

/// The columns of a stored buffer `[k][from]` from column `at` on into the first ones of
/// `into` `[k][to]`; the others stay as they are. `[N][w]` is `[1][w N]`.
pub(crate) fn columns<T: bytemuck::Pod>(
    stored: &[u8],
    into: &mut [T],
    from: usize,
    to: usize,
    at: usize,
) {
    let size = std::mem::size_of::<T>();
    let shared = from.saturating_sub(at).min(to);
    if shared == 0 {
        return;
    }
    let rows = stored.chunks_exact(from * size);
    for (old, new) in rows.zip(into.chunks_exact_mut(to)) {
        bytemuck::cast_slice_mut::<T, u8>(&mut new[..shared])
            .copy_from_slice(&old[at * size..(at + shared) * size]);
    }
}

/// Appends the buffers `[k][N]` that the columns `[k][n]` of several `parts`, whose `n`
/// add up to N, make side by side. Elements are of `size` bytes; all parts have as many
/// rows.
pub(crate) fn beside(parts: &[(&[u8], usize)], rows: usize, size: usize, out: &mut Vec<u8>) {
    for row in 0..rows {
        for (bytes, n) in parts {
            out.extend_from_slice(&bytes[row * n * size..(row + 1) * n * size]);
        }
    }
}
