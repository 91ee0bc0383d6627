//! Worlds as bytes, and back.

use super::engine::NativePhysics;
use super::tables::RobotTables;
use crate::physics::SnapshotError;
use crate::physics::record::Worlds;
use ostler_base::snapshot::{self, Bytes};

pub(super) const ENGINE: &str = "native worlds";

/// Identity of worlds that can be exchanged.
pub(super) fn fingerprint(plan: &RobotTables) -> [u8; 32] {
    *plan.digest().as_bytes()
}

pub(super) fn capture(p: &NativePhysics, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let worlds = Worlds {
        fingerprint: p.fingerprint,
        count: p.state.num_envs,
        columns: p.state.bytes(),
        bodies: Vec::<Bytes<'_>>::new(),
    };
    snapshot::write(ENGINE, &worlds, worlds.size(0), out)
}

/// `from`: the first of the stored worlds that are taken, of a batch of any size.
pub(super) fn restore(
    p: &mut NativePhysics,
    bytes: &[u8],
    from: Option<usize>,
) -> Result<usize, SnapshotError> {
    let worlds = Worlds::read(ENGINE, &p.fingerprint, &p.state, from.is_some(), bytes)?;
    let from = from.unwrap_or(0);
    p.state.fill(worlds.count, from, &worlds.columns);
    Ok(worlds.count.saturating_sub(from).min(p.state.num_envs))
}
