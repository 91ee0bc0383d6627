//! Worlds as bytes.
//!
//! `fingerprint | N | state buffers | N x (length, world)`, little-endian. The
//! fingerprint names the model, the time step, the solver and rapier's version: worlds
//! of anything else are refused, and worlds with other parts. What lies deeper in them
//! is trusted to be what its checksum says. What rapier and serde allocate for a world
//! on their own cannot fail without ending the process; all else here can.

use super::super::{Batching, PhysicsError, SnapshotError};
use super::Rapier;
use super::lanes::Columns;
use super::sets::{Sets, Workspace};
use super::step::World;
use crate::config::SimConfig;
use crate::memory::MemoryError;
use crate::model::Model;
use crate::snapshot::{Format, Reader, Seal, reserve, unfit};
use crate::state::State;
use bincode::enc::write::Writer;
use bincode::error::EncodeError;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::PoisonError;

static FORMAT: Format = Format {
    checked: b"OSTRAP03",
    bare: b"OSTRAPK3",
    what: "rapier worlds",
};
const HASH: usize = 32;
/// A world beyond this size (bytes) is not believed.
const WORLD_MAX: usize = 64 << 20;

fn config() -> impl bincode::config::Config {
    bincode::config::standard()
        .with_fixed_int_encoding()
        .with_limit::<WORLD_MAX>()
}

/// What worlds must have in common to be exchanged.
pub(super) fn fingerprint(model: &Model, config: &SimConfig, dt: f64) -> [u8; HASH] {
    let mut bare = model.clone();
    bare.sources.clear();
    bare.ignored.clear();
    // Worlds saved before there was this list have it empty.
    bare.skipped.clear();
    let text = format!(
        "rapier3d 0.36.1 {dt:e} {} {bare:?}",
        config.rapier.solver_iterations
    );
    let text = text.replace(", skipped: []", "");
    *blake3::hash(text.as_bytes()).as_bytes()
}

/// The worlds that one thread writes; kept, so that the next snapshot allocates nothing.
#[derive(Default)]
pub(super) struct Part {
    bytes: Vec<u8>,
    failed: Option<SnapshotError>,
}

/// A vector whose growth can fail.
struct Growing<'a> {
    bytes: &'a mut Vec<u8>,
    refused: bool,
}

impl Writer for Growing<'_> {
    fn write(&mut self, bytes: &[u8]) -> Result<(), EncodeError> {
        if self.bytes.try_reserve(bytes.len()).is_err() {
            self.refused = true;
            return Err(EncodeError::Other("no memory"));
        }
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }
}

impl Part {
    fn push(&mut self, e: usize, sets: &Sets) -> Result<(), SnapshotError> {
        reserve(&mut self.bytes, 8, FORMAT.what)?;
        let start = self.bytes.len();
        self.bytes.extend_from_slice(&[0; 8]);
        let mut to = Growing {
            bytes: &mut self.bytes,
            refused: false,
        };
        let done = bincode::serde::encode_into_writer(sets, &mut to, config());
        let refused = to.refused;
        let len = self.bytes.len() - start - 8;
        if refused {
            // Says how much was asked for.
            return reserve(&mut self.bytes, isize::MAX as usize, FORMAT.what);
        }
        done.map_err(|why| unfit(format!("world {e} cannot be written: {why}")))?;
        if len > WORLD_MAX {
            return Err(unfit(format!("world {e} has {len} bytes")));
        }
        self.bytes[start..start + 8].copy_from_slice(&(len as u64).to_le_bytes());
        Ok(())
    }
}

/// Bytes of a world in a snapshot.
pub(super) fn size(sets: &Sets) -> Result<usize, PhysicsError> {
    let mut part = Part::default();
    match part.push(0, sets) {
        Ok(()) => Ok(part.bytes.len()),
        Err(SnapshotError::Memory(e)) => Err(e.into()),
        Err(SnapshotError::Unfit(what)) => Err(PhysicsError::Unsupported {
            engine: "rapier",
            what,
        }),
    }
}

/// Worlds of which threads read the sets alone.
struct Worlds<'a>(&'a [World]);

// SAFETY: it hands out shared references to `Sets` and nothing else, and those are Sync
// (checked below); what else is in a world, which is not, nobody reaches through it.
unsafe impl Sync for Worlds<'_> {}

const _: () = {
    const fn sync<T: Sync>() {}
    sync::<Sets>();
};

impl Worlds<'_> {
    fn sets(&self, e: usize) -> &Sets {
        &self.0[e].sets
    }
}

fn bytes(state: &State) -> usize {
    state.columns().map(|(_, b)| b.len()).sum()
}

pub(super) fn save(rapier: &Rapier, out: &mut Vec<u8>, seal: Seal) -> Result<(), SnapshotError> {
    let n = rapier.worlds.len();
    let mut parts = rapier.parts.lock().unwrap_or_else(PoisonError::into_inner);
    let threads = rapier.pool.threads();
    parts.resize_with(threads, Part::default);
    let each = Columns::new(&mut parts, threads);
    let worlds = Worlds(&rapier.worlds);
    let pushed = rapier.pool.try_run(threads, &|i| {
        // SAFETY: the pool hands out each part once.
        let mut column = unsafe { each.column(i) };
        let part: &mut Part = column.at(0);
        part.bytes.clear();
        let mine = i * n / threads..(i + 1) * n / threads;
        part.failed = mine
            .into_iter()
            .find_map(|e| part.push(e, worlds.sets(e)).err());
    });
    pushed.map_err(|e| unfit(e.to_string()))?;
    if let Some(e) = parts.iter_mut().find_map(|p| p.failed.take()) {
        return Err(e);
    }
    let state = &rapier.state;
    let worlds: usize = parts.iter().map(|p| p.bytes.len()).sum();
    let size = HASH + 8 + bytes(state) + worlds;
    let start = FORMAT.begin(out, seal, size)?;
    out.extend_from_slice(&rapier.fingerprint);
    out.extend_from_slice(&(n as u64).to_le_bytes());
    for (_, buffer) in state.columns() {
        out.extend_from_slice(buffer);
    }
    for part in parts.iter() {
        out.extend_from_slice(&part.bytes);
    }
    FORMAT.end(out, seal, start)
}

pub(super) fn restore(rapier: &mut Rapier, blob: &[u8]) -> Result<(), SnapshotError> {
    let content = FORMAT.open_checked(blob)?;
    read(rapier, content, None).map(|_| ())
}

pub(super) fn revert(rapier: &mut Rapier, blob: &[u8]) -> Result<(), SnapshotError> {
    let (_, content) = FORMAT.open(blob)?;
    read(rapier, content, None).map(|_| ())
}

pub(super) fn adopt(rapier: &mut Rapier, blob: &[u8], from: usize) -> Result<usize, SnapshotError> {
    let (_, content) = FORMAT.open(blob)?;
    read(rapier, content, Some(from))
}

/// How snapshots of parts of a batch become one of all.
pub(super) fn batching(rapier: &Rapier) -> Batching {
    Batching {
        format: &FORMAT,
        rows: bytes(&rapier.state) / 4 / rapier.state.num_envs.max(1),
        worlds: true,
    }
}

/// `count` places of something, or an error.
fn places<T>(count: usize) -> Result<Vec<T>, SnapshotError> {
    let mut v = Vec::new();
    v.try_reserve_exact(count).map_err(|_| MemoryError {
        what: format!("{count} {}", FORMAT.what),
        bytes: count.saturating_mul(std::mem::size_of::<T>()),
    })?;
    Ok(v)
}

/// `part`: the first of the stored worlds that are taken, of a batch of any size.
fn read(
    rapier: &mut Rapier,
    mut content: Reader<'_>,
    part: Option<usize>,
) -> Result<usize, SnapshotError> {
    if content.array::<HASH>()? != rapier.fingerprint {
        return Err(unfit(
            "taken from another robot, time step or solver setting",
        ));
    }
    let (stored, n) = (content.count()?, rapier.state.num_envs);
    if stored != n && part.is_none() {
        return Err(unfit(format!("{stored} environments, expected {n}")));
    }
    let mut state = Reader(content.items(stored, bytes(&rapier.state) / n.max(1))?);
    let from = part.unwrap_or(0);
    let taken = stored.saturating_sub(from).min(n);
    let mut blobs = places(taken)?;
    for e in 0..stored {
        let len = content.count()?;
        if len > WORLD_MAX {
            return Err(unfit(format!("a world of {len} bytes")));
        }
        let world = content.bytes(len)?;
        if (from..from + taken).contains(&e) {
            blobs.push(world);
        }
    }
    content.finish()?;
    let mut worlds: Vec<Result<Sets, SnapshotError>> = places(taken)?;
    worlds.resize_with(taken, || Err(unfit("a world was left out")));
    let each = Columns::new(&mut worlds, taken);
    let ours = &rapier.worlds[0].sets;
    let decode = |e: usize| {
        let (sets, used) = bincode::serde::decode_from_slice::<Sets, _>(blobs[e], config())
            .map_err(|why| unfit(format!("world {e} cannot be read: {why}")))?;
        if used != blobs[e].len() {
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
    for (column, buffer) in rapier.state.columns_mut() {
        let entries = buffer.len() / n.max(1);
        column.copy(state.items(stored, entries)?, buffer, [stored, n, from]);
    }
    for (world, sets) in rapier.worlds.iter_mut().zip(worlds.into_iter().flatten()) {
        world.sets = sets;
        world.work = Workspace::default();
    }
    Ok(taken)
}
