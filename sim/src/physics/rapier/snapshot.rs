//! Worlds as bytes.
//!
//! `magic | version | fingerprint | N | state buffers | N x (length, world) | blake3`
//! Integers are little-endian. The fingerprint names the model, the time step, the
//! solver and rapier's version: worlds of anything else are refused. The checksum
//! guards against accidents, not against a forger: snapshots are trusted input.

use super::super::lanes::Columns;
use super::super::pool::Pool;
use super::super::{SnapshotError, State};
use super::Rapier;
use super::sets::{Sets, Workspace};
use crate::config::SimConfig;
use crate::model::Model;
use std::panic::{AssertUnwindSafe, catch_unwind};

const MAGIC: [u8; 4] = *b"OSRP";
const VERSION: u32 = 1;
const HASH: usize = 32;
/// A world beyond this size (bytes) is not believed.
const WORLD_MAX: usize = 64 << 20;

fn error(text: impl Into<String>) -> SnapshotError {
    SnapshotError(text.into())
}

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
    let text = format!(
        "rapier3d 0.36.1 {dt:e} {} {bare:?}",
        config.rapier.solver_iterations
    );
    *blake3::hash(text.as_bytes()).as_bytes()
}

/// The float buffers of a state, in a fixed order.
fn buffers(state: &State) -> [&Vec<f32>; 8] {
    [
        &state.qpos,
        &state.qvel,
        &state.body_pos,
        &state.body_quat,
        &state.body_lin_vel,
        &state.body_ang_vel,
        &state.contact_force,
        &state.actuator_force,
    ]
}

pub(super) fn save(rapier: &Rapier, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let worlds = encode(rapier)?;
    let state = &rapier.state;
    let floats: usize = buffers(state).iter().map(|b| b.len()).sum();
    let size: usize = 4 * (floats + state.fault.len())
        + worlds.iter().map(|w| w.len() + 8).sum::<usize>()
        + 16
        + 2 * HASH;
    out.try_reserve(size)
        .map_err(|_| error(format!("no memory for {size} bytes")))?;
    let start = out.len();
    out.extend_from_slice(&MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&rapier.fingerprint);
    out.extend_from_slice(&(state.num_envs as u64).to_le_bytes());
    for buffer in buffers(state) {
        for x in buffer {
            out.extend_from_slice(&x.to_le_bytes());
        }
    }
    for bits in &state.fault {
        out.extend_from_slice(&bits.to_le_bytes());
    }
    for world in &worlds {
        out.extend_from_slice(&(world.len() as u64).to_le_bytes());
        out.extend_from_slice(world);
    }
    let hash = blake3::hash(&out[start..]);
    out.extend_from_slice(hash.as_bytes());
    Ok(())
}

/// Runs `f` for each of `results` over the pool; the first error wins.
fn each<T: Send>(
    pool: &Pool,
    n: usize,
    f: &(dyn Fn(usize) -> Result<T, SnapshotError> + Sync),
) -> Result<Vec<T>, SnapshotError> {
    let mut results: Vec<Option<Result<T, SnapshotError>>> = Vec::new();
    results
        .try_reserve_exact(n)
        .map_err(|_| error(format!("no memory for {n} worlds")))?;
    results.extend((0..n).map(|_| None));
    let columns = Columns::new(&mut results, n);
    pool.try_run(n, &|e| {
        let result = catch_unwind(AssertUnwindSafe(|| f(e)))
            .unwrap_or_else(|_| Err(error(format!("world {e} makes no sense"))));
        // SAFETY: the pool hands out each part once.
        *unsafe { columns.column(e) }.at(0) = Some(result);
    })
    .map_err(|e| error(e.to_string()))?;
    results
        .into_iter()
        .map(|r| r.unwrap_or_else(|| Err(error("a world was left out"))))
        .collect()
}

fn encode(rapier: &Rapier) -> Result<Vec<Vec<u8>>, SnapshotError> {
    let worlds: Vec<&Sets> = rapier.worlds.iter().map(|w| &w.sets).collect();
    each(&rapier.pool, worlds.len(), &|e| {
        let bytes = bincode::serde::encode_to_vec(worlds[e], config())
            .map_err(|why| error(format!("world {e} cannot be written: {why}")))?;
        if bytes.len() > WORLD_MAX {
            return Err(error(format!("world {e} has {} bytes", bytes.len())));
        }
        Ok(bytes)
    })
}

/// A cursor over the snapshot.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn take(&mut self, n: usize, what: &str) -> Result<&'a [u8], SnapshotError> {
        if n > self.0.len() {
            return Err(error(format!(
                "truncated: {what} needs {n} bytes, {} are left",
                self.0.len()
            )));
        }
        let (head, tail) = self.0.split_at(n);
        self.0 = tail;
        Ok(head)
    }

    fn word<const N: usize>(&mut self, what: &str) -> Result<[u8; N], SnapshotError> {
        let mut word = [0; N];
        word.copy_from_slice(self.take(N, what)?);
        Ok(word)
    }
}

pub(super) fn restore(rapier: &mut Rapier, blob: &[u8]) -> Result<(), SnapshotError> {
    let Some(body) = blob.len().checked_sub(HASH).map(|n| blob.split_at(n)) else {
        return Err(error("truncated: no room for a checksum"));
    };
    let (body, hash) = body;
    if blake3::hash(body).as_bytes() != hash {
        return Err(error("checksum does not match: truncated or corrupt"));
    }
    let mut reader = Reader(body);
    if reader.word("magic")? != MAGIC {
        return Err(error("not a snapshot of rapier worlds"));
    }
    let version = u32::from_le_bytes(reader.word("version")?);
    if version != VERSION {
        return Err(error(format!("version {version}, expected {VERSION}")));
    }
    if reader.word::<HASH>("fingerprint")? != rapier.fingerprint {
        return Err(error(
            "taken from another robot, time step or solver setting",
        ));
    }
    let n = rapier.state.num_envs;
    let stored = u64::from_le_bytes(reader.word("number of environments")?);
    if stored != n as u64 {
        return Err(error(format!("{stored} environments, expected {n}")));
    }
    let mut state = rapier.state.clone();
    for buffer in [
        &mut state.qpos,
        &mut state.qvel,
        &mut state.body_pos,
        &mut state.body_quat,
        &mut state.body_lin_vel,
        &mut state.body_ang_vel,
        &mut state.contact_force,
        &mut state.actuator_force,
    ] {
        for x in buffer {
            *x = f32::from_le_bytes(reader.word("state")?);
        }
    }
    for bits in &mut state.fault {
        *bits = u32::from_le_bytes(reader.word("faults")?);
    }
    let mut blobs = Vec::with_capacity(n);
    for _ in 0..n {
        let len = u64::from_le_bytes(reader.word("length of a world")?);
        let len = usize::try_from(len).unwrap_or(usize::MAX);
        if len > WORLD_MAX {
            return Err(error(format!("a world of {len} bytes")));
        }
        blobs.push(reader.take(len, "world")?);
    }
    if !reader.0.is_empty() {
        return Err(error(format!("{} bytes too many", reader.0.len())));
    }
    let worlds = each(&rapier.pool, n, &|e| {
        let (sets, used) = bincode::serde::decode_from_slice::<Sets, _>(blobs[e], config())
            .map_err(|why| error(format!("world {e} cannot be read: {why}")))?;
        if used != blobs[e].len() {
            return Err(error(format!("world {e} has bytes left over")));
        }
        Ok(sets)
    })?;
    // Nothing was changed up to here: a snapshot is taken over whole or not at all.
    rapier.state = state;
    for (world, sets) in rapier.worlds.iter_mut().zip(worlds) {
        world.sets = sets;
        world.work = Workspace::default();
    }
    Ok(())
}
