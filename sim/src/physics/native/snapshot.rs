//! Worlds as bytes: `fingerprint | N | buffers`, little-endian.
//!
//! The fingerprint names the robot's tables: worlds of anything else are refused.

use super::engine::NativePhysics;
use super::tables::Plan;
use crate::physics::{Batching, SnapshotError};
use crate::snapshot::{Format, Reader, Seal, unfit};

pub(super) static FORMAT: Format = Format {
    checked: b"OSTNAT02",
    bare: b"OSTNATK2",
    what: "native worlds",
};
const HASH: usize = 32;

/// What worlds must have in common to be exchanged.
pub(super) fn fingerprint(plan: &Plan) -> [u8; HASH] {
    *plan.digest().as_bytes()
}

fn bytes(p: &NativePhysics) -> usize {
    p.state.columns().map(|(_, b)| b.len()).sum()
}

pub(super) fn save(p: &NativePhysics, out: &mut Vec<u8>, seal: Seal) -> Result<(), SnapshotError> {
    let size = HASH + 8 + bytes(p);
    let start = FORMAT.begin(out, seal, size)?;
    out.extend_from_slice(&p.fingerprint);
    out.extend_from_slice(&(p.state.num_envs as u64).to_le_bytes());
    for (_, buffer) in p.state.columns() {
        out.extend_from_slice(buffer);
    }
    FORMAT.end(out, seal, start)
}

pub(super) fn restore(p: &mut NativePhysics, blob: &[u8]) -> Result<(), SnapshotError> {
    let content = FORMAT.open_checked(blob)?;
    read(p, content, None).map(|_| ())
}

pub(super) fn revert(p: &mut NativePhysics, blob: &[u8]) -> Result<(), SnapshotError> {
    let (_, content) = FORMAT.open(blob)?;
    read(p, content, None).map(|_| ())
}

pub(super) fn adopt(
    p: &mut NativePhysics,
    blob: &[u8],
    from: usize,
) -> Result<usize, SnapshotError> {
    let (_, content) = FORMAT.open(blob)?;
    read(p, content, Some(from))
}

/// How snapshots of parts of a batch become one of all.
pub(super) fn batching(p: &NativePhysics) -> Batching {
    Batching {
        format: &FORMAT,
        rows: bytes(p) / 4 / p.state.num_envs.max(1),
        worlds: false,
    }
}

/// `part`: the first of the stored worlds that are taken, of a batch of any size.
fn read(
    p: &mut NativePhysics,
    mut content: Reader<'_>,
    part: Option<usize>,
) -> Result<usize, SnapshotError> {
    if content.array::<HASH>()? != p.fingerprint {
        return Err(unfit("it is of another robot, time step or solver"));
    }
    let (stored, n) = (content.count()?, p.state.num_envs);
    if stored != n && part.is_none() {
        return Err(unfit(format!("it holds {stored} environments, not {n}")));
    }
    let from = part.unwrap_or(0);
    // By the length that is right, the number of environments is too.
    let mut rest = Reader(content.items(stored, bytes(p) / n.max(1))?);
    content.finish()?;
    for (column, buffer) in p.state.columns_mut() {
        let entries = buffer.len() / n.max(1);
        column.copy(rest.items(stored, entries)?, buffer, [stored, n, from]);
    }
    Ok(stored.saturating_sub(from).min(n))
}
