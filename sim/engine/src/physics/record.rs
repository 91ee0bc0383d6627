//! Snapshots of worlds, of whatever engine.

use super::{SnapshotError, State};
use crate::state::{self, WORLD};
use ostler_base::snapshot::{self, Bytes, unfit};
use serde::{Deserialize, Serialize};

/// An engine's record of N worlds.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Worlds<'a, B = Vec<Bytes<'a>>> {
    /// Of the robot, the time step and the solver: worlds of others are refused.
    pub fingerprint: [u8; 32],
    /// Number of worlds.
    pub count: usize,
    #[serde(borrow)]
    pub columns: [Bytes<'a>; WORLD.len()],
    /// The engine's further state, world by world; nothing if it has none.
    pub bodies: B,
}

impl<'a> Worlds<'a> {
    /// Reads a record of `engine` that fits `state`. `any`: of any number of worlds.
    ///
    /// # Errors
    /// It is another engine's, another robot's, or of another number of worlds.
    pub fn read(
        engine: &str,
        fingerprint: &[u8; 32],
        state: &State,
        any: bool,
        bytes: &'a [u8],
    ) -> Result<Self, SnapshotError> {
        let (worlds, rest) = snapshot::read::<Self>(engine, bytes)?;
        snapshot::end(rest)?;
        if worlds.fingerprint != *fingerprint {
            return Err(unfit("it is of another robot, time step or solver"));
        }
        let n = state.num_envs;
        if worlds.count != n && !any {
            return Err(unfit(format!("it holds {} environments, not {n}", worlds.count)));
        }
        state.check(worlds.count, &worlds.columns)?;
        Ok(worlds)
    }
}

impl<B> Worlds<'_, B> {
    /// Bytes that the record takes, with so many of bodies, or a few more.
    pub fn size(&self, bodies: usize) -> usize {
        let columns = self.columns.iter().map(|c| c.0.len()).sum::<usize>();
        columns + bodies + 10 * self.count + 256
    }
}

/// Appends the snapshot of all worlds of `parts`, in their order.
///
/// # Errors
/// They are of different robots; there is no memory.
pub fn join(parts: &[&[u8]], out: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let engine = match parts.first() {
        Some(part) => snapshot::of(part)?,
        None => return Err(unfit("it has no parts")),
    };
    let mut opened = Vec::new();
    for part in parts {
        let (worlds, rest) = snapshot::read::<Worlds<'_>>(engine, part)?;
        snapshot::end(rest)?;
        opened.push(worlds);
    }
    let Some(first) = opened.first() else {
        return Err(unfit("it has no parts"));
    };
    let fingerprint = first.fingerprint;
    if opened.iter().any(|p| p.fingerprint != fingerprint) {
        return Err(unfit("its parts are of different robots"));
    }
    let columns: Vec<_> = opened.iter().map(|p| (p.count, &p.columns)).collect();
    let (all, ends) = state::join(&WORLD, &columns)?;
    let joined: Worlds<'_> = Worlds {
        fingerprint,
        count: opened.iter().map(|p| p.count).sum(),
        columns: state::cut(&all, &ends),
        bodies: opened.iter().flat_map(|p| p.bodies.iter().copied()).collect(),
    };
    let bodies = joined.bodies.iter().map(|b| b.0.len()).sum();
    snapshot::write(engine, &joined, joined.size(bodies), out)
}
