//! Worlds as bytes: `fingerprint | N | buffers`, little-endian.
//!
//! The fingerprint names the robot's tables: worlds of anything else are refused.

use super::engine::NativePhysics;
use super::tables::Plan;
use crate::physics::{Batching, SnapshotError};
use crate::snapshot::{Format, Reader, Seal, columns, unfit};

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

/// Every buffer of the worlds, as bytes, in a fixed order: `buffers!(p, cast_slice)`,
/// or `buffers!(p, cast_slice_mut, mut)` to write them. Elements are of four bytes.
macro_rules! buffers {
    ($p:ident, $cast:ident $(, $mutable:tt)?) => {{
        let (s, h) = (&$($mutable)? $p.state, &$($mutable)? $p.hidden);
        [
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.qpos),
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.qvel),
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.body_pos),
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.body_quat),
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.body_lin_vel),
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.body_ang_vel),
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.contact_force),
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.actuator_force),
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.qacc),
            bytemuck::$cast::<f32, u8>(&$($mutable)? s.sensordata),
            bytemuck::$cast::<u32, u8>(&$($mutable)? s.fault),
            bytemuck::$cast::<f32, u8>(&$($mutable)? h.act),
            bytemuck::$cast::<u32, u8>(&$($mutable)? h.overflow),
            bytemuck::$cast::<u32, u8>(&$($mutable)? h.unsolved),
        ]
    }};
}

pub(super) fn save(p: &NativePhysics, out: &mut Vec<u8>, seal: Seal) -> Result<(), SnapshotError> {
    let buffers = buffers!(p, cast_slice);
    let size = HASH + 8 + buffers.iter().map(|b| b.len()).sum::<usize>();
    let start = FORMAT.begin(out, seal, size)?;
    out.extend_from_slice(&p.fingerprint);
    out.extend_from_slice(&(p.state.num_envs as u64).to_le_bytes());
    for buffer in buffers {
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
    let bytes: usize = buffers!(p, cast_slice).iter().map(|b| b.len()).sum();
    Batching {
        format: &FORMAT,
        rows: bytes / 4 / p.state.num_envs.max(1),
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
    let bytes: usize = buffers!(p, cast_slice).iter().map(|b| b.len()).sum();
    // By the length that is right, the number of environments is too.
    let mut rest = Reader(content.items(stored, bytes / n.max(1))?);
    content.finish()?;
    for buffer in buffers!(p, cast_slice_mut, mut) {
        let rows = buffer.len() / (4 * n.max(1));
        let row = rest.items(rows, 4 * stored)?;
        columns::<u8>(row, buffer, 4 * stored, 4 * n, 4 * from);
    }
    Ok(stored.saturating_sub(from).min(n))
}
