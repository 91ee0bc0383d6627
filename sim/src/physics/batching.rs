//! Snapshots of parts of a batch, made one.

use super::SnapshotError;
use crate::snapshot::{Format, Reader, Seal, beside, reserve, unfit};

const HASH: usize = 32;

/// What an engine's snapshots look like: `fingerprint | N | rows | worlds`, where there
/// are `rows` rows `[N]` of four-byte words, and of some engines N times a length and
/// that many bytes.
#[derive(Clone, Copy)]
pub struct Batching {
    pub(crate) format: &'static Format,
    pub(crate) rows: usize,
    pub(crate) worlds: bool,
}

impl std::fmt::Debug for Batching {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mut this = f.debug_struct("Batching");
        this.field("rows", &self.rows).finish_non_exhaustive()
    }
}

impl Batching {
    /// Appends the snapshot of all worlds of `parts`, in their order.
    pub(crate) fn join(
        self,
        parts: &[&[u8]],
        seal: Seal,
        out: &mut Vec<u8>,
    ) -> Result<(), SnapshotError> {
        let mut fingerprint = None;
        let (mut rows, mut worlds, mut total) = (Vec::new(), Vec::new(), 0);
        for part in parts {
            let (_, mut r) = self.format.open(part)?;
            let of = r.array::<HASH>()?;
            if *fingerprint.get_or_insert(of) != of {
                return Err(unfit("its parts are of different robots"));
            }
            let n = r.count()?;
            rows.push((r.items(n, 4 * self.rows)?, n));
            let Reader(rest) = r;
            if !self.worlds {
                r.finish()?;
            }
            worlds.push(rest);
            total += n;
        }
        let bytes = parts.iter().map(|p| p.len()).sum();
        let start = self.format.begin(out, seal, bytes)?;
        out.extend_from_slice(&fingerprint.unwrap_or_default());
        out.extend_from_slice(&(total as u64).to_le_bytes());
        beside(&rows, self.rows, 4, out);
        reserve(out, worlds.iter().map(|w| w.len()).sum(), self.format.what)?;
        for part in worlds {
            out.extend_from_slice(part);
        }
        self.format.end(out, seal, start)
    }
}
