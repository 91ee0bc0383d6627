//! Everything the future depends on, as bytes.
//!
//! Layout, little endian: magic, version, identity, [`Live`] field by field, the
//! physics' own blob with its length, and a BLAKE3 checksum of all before it.

use super::{BatchEnv, EpisodeStats, Finished, Live};
use crate::config::{EnvConfig, SimConfig, TaskConfig};
use crate::model::Model;
use crate::physics::SnapshotError;
use std::fmt::Debug;

const MAGIC: &[u8; 8] = b"OSTLENV\n";
const VERSION: u32 = 2;
const CHECKSUM: usize = 32;

/// Digests of what a snapshot must agree with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    robot: [u8; 32],
    task: [u8; 32],
    physics: [u8; 32],
}

fn digest(value: &dyn Debug) -> [u8; 32] {
    // Debug prints every field, floats with all the digits that tell them apart.
    *blake3::hash(format!("{value:?}").as_bytes()).as_bytes()
}

impl Identity {
    pub fn new(model: &Model, env: &EnvConfig, task: &TaskConfig, step_dt: f64) -> Self {
        // Where files lie is not what they say.
        let robot = Model {
            sources: Vec::new(),
            ignored: Vec::new(),
            ..model.clone()
        };
        let task = TaskConfig {
            robot: String::new(),
            ..task.clone()
        };
        Self {
            robot: digest(&robot),
            task: digest(&(task, env.decimation, env.episode_length_s, step_dt)),
            physics: [0; 32],
        }
    }

    /// Settings of the engine that change its numbers.
    pub fn add_physics(&mut self, sim: &SimConfig) {
        self.physics = digest(&(sim.backend, &sim.rapier, sim.max_speed, sim.max_position));
    }
}

pub(super) fn save(env: &BatchEnv, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let start = out.len();
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(env.spec.num_envs as u64).to_le_bytes());
    out.extend_from_slice(&env.first_env.to_le_bytes());
    out.extend_from_slice(&env.seed.to_le_bytes());
    for d in [
        &env.identity.robot,
        &env.identity.task,
        &env.identity.physics,
    ] {
        out.extend_from_slice(d);
    }
    let live = &env.live;
    out.extend_from_slice(&live.clock.to_le_bytes());
    for buffer in floats(live) {
        out.extend_from_slice(bytemuck::cast_slice(buffer));
    }
    for buffer in words(live) {
        out.extend_from_slice(bytemuck::cast_slice(buffer));
    }
    let s = &live.stats;
    for word in [
        live.taken.contact_overflow,
        live.taken.unsolved,
        s.episodes,
        s.return_sum.to_bits(),
        s.length_sum.to_bits(),
        s.final_overflow,
        s.finished.len() as u64,
    ] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(bytemuck::cast_slice(&s.reward_sums));
    out.extend_from_slice(bytemuck::cast_slice(&s.terminations));
    out.extend_from_slice(bytemuck::cast_slice(&s.faults));
    for f in &s.finished {
        for word in [f.env, f.ret.to_bits(), f.length] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
    let mut physics = Vec::new();
    env.physics.save(&mut physics)?;
    out.extend_from_slice(&(physics.len() as u64).to_le_bytes());
    out.extend_from_slice(&physics);
    let sum = blake3::hash(&out[start..]);
    out.extend_from_slice(sum.as_bytes());
    Ok(())
}

fn floats(live: &Live) -> [&Vec<f32>; 7] {
    [
        &live.action,
        &live.last_action,
        &live.command,
        &live.ret,
        &live.sums,
        &live.last_policy,
        &live.last_critic,
    ]
}

fn words(live: &Live) -> [&Vec<u32>; 5] {
    [
        &live.age,
        &live.length,
        &live.counted,
        &live.stuck,
        &live.final_used,
    ]
}

/// Takes bytes from the front, never past the end.
struct Reader<'a>(&'a [u8]);

impl<'a> Reader<'a> {
    fn bytes(&mut self, len: usize) -> Result<&'a [u8], SnapshotError> {
        let Some((head, rest)) = self.0.split_at_checked(len) else {
            return Err(SnapshotError("the snapshot ends too early".to_string()));
        };
        self.0 = rest;
        Ok(head)
    }

    fn array<const K: usize>(&mut self) -> Result<[u8; K], SnapshotError> {
        let mut a = [0; K];
        a.copy_from_slice(self.bytes(K)?);
        Ok(a)
    }

    fn word(&mut self) -> Result<u32, SnapshotError> {
        self.array().map(u32::from_le_bytes)
    }

    fn long(&mut self) -> Result<u64, SnapshotError> {
        self.array().map(u64::from_le_bytes)
    }

    fn fill<T: bytemuck::Pod>(&mut self, into: &mut [T]) -> Result<(), SnapshotError> {
        let to = bytemuck::cast_slice_mut::<T, u8>(into);
        to.copy_from_slice(self.bytes(to.len())?);
        Ok(())
    }
}

pub(super) fn restore(env: &mut BatchEnv, blob: &[u8]) -> Result<(), SnapshotError> {
    let refuse = |why: String| Err(SnapshotError(why));
    let Some(body) = blob.len().checked_sub(CHECKSUM).map(|at| &blob[..at]) else {
        return refuse("too short to be a snapshot of environments".to_string());
    };
    let mut r = Reader(body);
    if r.array()? != *MAGIC {
        return refuse("not a snapshot of environments".to_string());
    }
    let version = r.word()?;
    if version != VERSION {
        return refuse(format!(
            "written by format {version}; this program reads format {VERSION}"
        ));
    }
    if blake3::hash(body).as_bytes()[..] != blob[body.len()..] {
        return refuse("the checksum is wrong: the snapshot is damaged".to_string());
    }
    let n = r.long()?;
    if n != env.spec.num_envs as u64 {
        return refuse(format!(
            "it holds {n} environments, this run has {}",
            env.spec.num_envs
        ));
    }
    let first = r.word()?;
    if first != env.first_env {
        return refuse(format!(
            "its first environment is {first}, this run's is {}",
            env.first_env
        ));
    }
    let seed = r.long()?;
    if seed != env.seed {
        return refuse(format!("its seed is {seed}, this run's is {}", env.seed));
    }
    let identity = Identity {
        robot: r.array()?,
        task: r.array()?,
        physics: r.array()?,
    };
    for (same, what) in [
        (
            identity.robot == env.identity.robot,
            "its robot differs from this run's",
        ),
        (
            identity.task == env.identity.task,
            "its task ([task], [env] or the time step) differs from this run's",
        ),
        (
            identity.physics == env.identity.physics,
            "its physics settings ([sim]) differ from this run's",
        ),
    ] {
        if !same {
            return refuse(what.to_string());
        }
    }
    let commands = env.task.commands.width();
    let mut live = Live::new(&env.spec, commands).map_err(|e| SnapshotError(e.to_string()))?;
    live.clock = r.long()?;
    for buffer in [
        &mut live.action,
        &mut live.last_action,
        &mut live.command,
        &mut live.ret,
        &mut live.sums,
        &mut live.last_policy,
        &mut live.last_critic,
    ] {
        r.fill(buffer)?;
    }
    for buffer in [
        &mut live.age,
        &mut live.length,
        &mut live.counted,
        &mut live.stuck,
        &mut live.final_used,
    ] {
        r.fill(buffer)?;
    }
    live.taken.contact_overflow = r.long()?;
    live.taken.unsolved = r.long()?;
    read_stats(&mut r, &mut live.stats, env.spec.num_envs)?;
    let len = r.long()?;
    let physics = r.bytes(usize::try_from(len).unwrap_or(usize::MAX))?;
    if !r.0.is_empty() {
        return refuse("there is more in it than belongs there".to_string());
    }
    // The last thing that can fail; then the rest is taken over.
    env.physics.restore(physics)?;
    env.live = live;
    Ok(())
}

fn read_stats(
    r: &mut Reader<'_>,
    s: &mut EpisodeStats,
    num_envs: usize,
) -> Result<(), SnapshotError> {
    s.episodes = r.long()?;
    s.return_sum = f64::from_bits(r.long()?);
    s.length_sum = f64::from_bits(r.long()?);
    s.final_overflow = r.long()?;
    let finished = r.long()?;
    r.fill(&mut s.reward_sums)?;
    r.fill(&mut s.terminations)?;
    r.fill(&mut s.faults)?;
    if finished > num_envs as u64 {
        return Err(SnapshotError(
            "it holds more finished episodes than environments".to_string(),
        ));
    }
    for _ in 0..finished {
        s.finished.push(Finished {
            env: r.word()?,
            ret: f32::from_bits(r.word()?),
            length: r.word()?,
        });
    }
    Ok(())
}
