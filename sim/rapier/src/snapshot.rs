//! Worlds as bytes, and back.
//!
//! A record has what tasks see of the worlds, and every world as rapier has it; worlds with
//! other parts are refused. Deeper parts are trusted where the file's checksum agrees.
//! Allocations within rapier and serde end the process when they fail; all else here returns an
//! error.

use super::lanes::Columns;
use super::sets::{Sets, Workspace};
use super::step::World;
use super::{Rapier, probe};
use ostler_base::memory::MemoryError;
use ostler_base::snapshot::SnapshotError;
use ostler_base::snapshot::{self, Bytes, unfit};
use ostler_engine::config::SimConfig;
use ostler_engine::physics::PhysicsError;
use ostler_engine::physics::record::Worlds;
use serde::ser::SerializeSeq;
use serde::{Serialize, Serializer};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

pub(super) const ENGINE: &str = "rapier worlds";
/// A world beyond this size (bytes) is not believed.
const WORLD_MAX: usize = 64 << 20;

/// Properties that worlds must share to be exchanged: the world before its first step, the
/// time step, the solver and rapier's version. With it the bytes of that world.
pub(super) fn fingerprint(
    pristine: &Sets,
    config: &SimConfig,
    dt: f64,
) -> Result<([u8; 32], usize), PhysicsError> {
    let mut part = Part::default();
    part.push(0, pristine).map_err(|e| match e {
        SnapshotError::Memory(e) => e.into(),
        SnapshotError::Unfit(what) => PhysicsError::Unsupported { engine: "rapier", what },
    })?;
    let mut hash = blake3::Hasher::new();
    hash.update(b"rapier3d 0.36.1");
    hash.update(&dt.to_le_bytes());
    hash.update(&(config.rapier.solver_iterations as u64).to_le_bytes());
    hash.update(&part.bytes);
    Ok((*hash.finalize().as_bytes(), part.bytes.len()))
}

/// The worlds that one thread writes; kept, so that the next snapshot allocates nothing.
#[derive(Default)]
pub(super) struct Part {
    bytes: Vec<u8>,
    /// Where each world ends.
    ends: Vec<usize>,
    failed: Option<SnapshotError>,
}

impl Part {
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
    }

    fn push(&mut self, e: usize, sets: &Sets) -> Result<(), SnapshotError> {
        self.ends
            .try_reserve(1)
            .map_err(|_| MemoryError { what: ENGINE.into(), bytes: size_of::<usize>() })?;
        let start = self.bytes.len();
        snapshot::append(ENGINE, sets, &mut self.bytes)?;
        let bytes = self.bytes.len() - start;
        if bytes > WORLD_MAX {
            return Err(unfit(format!("world {e} has {bytes} bytes")));
        }
        self.ends.push(self.bytes.len());
        Ok(())
    }

    fn worlds(&self) -> impl Iterator<Item = Bytes<'_>> {
        let starts = std::iter::once(&0).chain(&self.ends);
        starts.zip(&self.ends).map(|(a, b)| Bytes(&self.bytes[*a..*b]))
    }
}

/// The threads' parts as a list of all worlds.
struct Bodies<'a>(&'a [Part], usize);

impl Serialize for Bodies<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut all = to.serialize_seq(Some(self.1))?;
        let mut worlds = self.0.iter().flat_map(Part::worlds);
        worlds.try_for_each(|world| all.serialize_element(&world))?;
        all.end()
    }
}

/// Worlds of which threads read the sets alone.
struct Readable<'a>(&'a [World]);

// SAFETY: it hands out shared references to `Sets` and nothing else, and those are Sync
// (checked below); the other parts of a world, which are not checked, are not reached through it.
unsafe impl Sync for Readable<'_> {}

const _: () = {
    const fn sync<T: Sync>() {}
    sync::<Sets>();
};

impl Readable<'_> {
    fn sets(&self, e: usize) -> &Sets {
        &self.0[e].sets
    }
}

pub(super) fn capture(rapier: &Rapier, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let n = rapier.worlds.len();
    let mut parts = rapier.parts.lock().unwrap_or_else(PoisonError::into_inner);
    let threads = rapier.pool.threads();
    parts.resize_with(threads, Part::default);
    let room: usize = parts.iter().map(|p| p.bytes.capacity()).sum();
    let all = n.saturating_mul(rapier.world_bytes);
    if room < all {
        // Failed allocations within rapier and serde would end the process: they are not called
        // where there is no room for the bytes.
        probe(all.saturating_mul(2))?;
    }
    let each = Columns::new(&mut parts, threads);
    let worlds = Readable(&rapier.worlds);
    let pushed = rapier.pool.try_run(threads, &|i| {
        // SAFETY: the pool hands out each part once.
        let mut column = unsafe { each.column(i) };
        let part: &mut Part = column.at(0);
        part.clear();
        let mine = i * n / threads..(i + 1) * n / threads;
        part.failed = mine.into_iter().find_map(|e| part.push(e, worlds.sets(e)).err());
    });
    pushed.map_err(|e| unfit(e.to_string()))?;
    if let Some(e) = parts.iter_mut().find_map(|p| p.failed.take()) {
        return Err(e);
    }
    let worlds = Worlds {
        fingerprint: rapier.fingerprint,
        count: n,
        columns: rapier.state.bytes(),
        bodies: Bodies(&parts, n),
    };
    let bodies = parts.iter().map(|p| p.bytes.len()).sum();
    snapshot::write(ENGINE, &worlds, worlds.size(bodies), out)
}

/// `count` places of something, or an error.
fn places<T>(count: usize) -> Result<Vec<T>, SnapshotError> {
    let mut v = Vec::new();
    v.try_reserve_exact(count).map_err(|_| MemoryError {
        what: format!("{count} {ENGINE}"),
        bytes: count.saturating_mul(std::mem::size_of::<T>()),
    })?;
    Ok(v)
}

/// `from`: the first of the stored worlds that are taken, of a batch of any size.
pub(super) fn restore(
    rapier: &mut Rapier,
    bytes: &[u8],
    from: Option<usize>,
) -> Result<usize, SnapshotError> {
    let n = rapier.state.num_envs;
    let (print, any) = (&rapier.fingerprint, from.is_some());
    let record = Worlds::read(ENGINE, print, &rapier.state, any, bytes)?;
    let (stored, from) = (record.count, from.unwrap_or(0));
    let taken = stored.saturating_sub(from).min(n);
    if record.bodies.len() != stored {
        return Err(unfit(format!(
            "it has the bodies of {} worlds, not {stored}",
            record.bodies.len()
        )));
    }
    if let Some(large) = record.bodies.iter().find(|b| b.0.len() > WORLD_MAX) {
        return Err(unfit(format!("a world of {} bytes", large.0.len())));
    }
    let blobs = record.bodies.get(from..from + taken).unwrap_or_default();
    let mut worlds: Vec<Result<Sets, SnapshotError>> = places(taken)?;
    worlds.resize_with(taken, || Err(unfit("a world was left out")));
    let each = Columns::new(&mut worlds, taken);
    let ours = &rapier.worlds[0].sets;
    let decode = |e: usize| {
        let (sets, after) = postcard::take_from_bytes::<Sets>(blobs[e].0)
            .map_err(|why| unfit(format!("world {e} cannot be read: {why}")))?;
        if !after.is_empty() {
            return Err(unfit(format!("world {e} has bytes left over")));
        }
        if !sets.has_the_parts_of(ours) {
            return Err(unfit(format!("world {e} has other parts than the robot")));
        }
        Ok(sets)
    };
    let decoded = rapier.pool.try_run(taken, &|e| {
        let result = catch_unwind(AssertUnwindSafe(|| decode(e)))
            .unwrap_or_else(|_| Err(unfit(format!("world {e} makes no sense"))));
        // SAFETY: the pool hands out each part once.
        *unsafe { each.column(e) }.at(0) = result;
    });
    decoded.map_err(|e| unfit(e.to_string()))?;
    if let Some(Err(e)) = worlds.iter().find(|w| w.is_err()) {
        return Err(e.clone());
    }
    // Nothing was changed up to here: a snapshot is taken over whole or not at all.
    rapier.state.fill(stored, from, &record.columns);
    for (world, sets) in rapier.worlds.iter_mut().zip(worlds.into_iter().flatten()) {
        world.sets = sets;
        world.work = Workspace::default();
    }
    Ok(taken)
}
