//! Everything the future depends on, as bytes.
//!
//! Layout, little endian: version, identity, [`Live`] field by field, the physics' own
//! blob with its length.

pub(super) use super::examine::DESCRIBED;
use super::memory::Whose;
use super::{BatchEnv, Break, EpisodeStats, Finished, Groups, Live, stats};
use crate::config::{EnvConfig, SimConfig, TaskConfig};
use crate::model::{Model, SensorKind};
use crate::physics::{Shortfalls, SnapshotError};
use crate::snapshot::{Format, Reader, Seal, reserve, unfit};
use crate::state::Episodes;
use std::fmt::Debug;
use std::ops::Range;

pub(super) static FORMAT: Format = Format {
    checked: b"OSTLENV\n",
    bare: b"OSTLENVK",
    what: "environments",
};
pub(super) const VERSION: u32 = 4;
/// Bytes of a finished episode, and of one in format 3, which did not say when.
pub(super) const FINISHED: usize = 16;
const FINISHED_3: usize = 12;
/// Beyond so many (the last number that doubles count to) no count is believed:
/// neither a step more nor a sum over all causes may overflow.
const MOST: u64 = 1 << 53;

/// Digests of what a snapshot must agree with.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Identity {
    robot: [u8; 32],
    task: [u8; 32],
    physics: [u8; 32],
}

fn digest(value: &dyn Debug) -> [u8; 32] {
    // Debug prints every field, floats with all the digits that tell them apart. What
    // there was not when the format was made is left out where it says nothing.
    let mut text = format!("{value:?}");
    for nothing in [
        ", agents: None",
        ", default_pose: None",
        ", more_seen: false",
        ", unseen: false",
        ", skipped: []",
    ] {
        text = text.replace(nothing, "");
    }
    *blake3::hash(text.as_bytes()).as_bytes()
}

impl Identity {
    pub fn new(model: &Model, env: &EnvConfig, task: &TaskConfig, step_dt: f64) -> Self {
        // Where files lie is not what they say.
        let mut robot = Model {
            sources: Vec::new(),
            ignored: Vec::new(),
            skipped: Vec::new(),
            ..model.clone()
        };
        // Nor do states depend on what rays meet; sensors are read by the task.
        robot.bodies.iter_mut().for_each(|b| b.more_seen = false);
        robot.geoms.iter_mut().for_each(|g| g.unseen = false);
        for sensor in &mut robot.sensors {
            if let SensorKind::Rangefinder(_) = sensor.kind {
                sensor.kind = SensorKind::Unsupported("<rangefinder> is not supported".into());
            }
        }
        let task = TaskConfig {
            robot: String::new(),
            robot_folder: None,
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
        self.physics = digest(&(
            sim.backend,
            &sim.rapier,
            sim.max_speed,
            sim.max_position,
            &sim.limit,
        ));
    }
}

/// Appends what [`restore`], [`revert`] and [`adopt`] read.
pub(super) fn save(env: &BatchEnv, out: &mut Vec<u8>, seal: Seal) -> Result<(), SnapshotError> {
    let live = &env.live;
    let s = &live.stats;
    let sums = s.reward_sums.len() + s.agent_return_sums.len();
    let counts = sums + s.terminations.len() + s.faults.len() + s.causes.len();
    let size = bytes(&live.episodes)
        + 8 * counts
        + FINISHED * s.finished.len()
        + 28 * s.breaks.len()
        + 256;
    let start = FORMAT.begin(out, seal, size)?;
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
    out.extend_from_slice(&live.clock.to_le_bytes());
    out.extend_from_slice(&live.began.to_le_bytes());
    for (_, buffer) in live.episodes.columns() {
        out.extend_from_slice(buffer);
    }
    for word in [
        live.taken.contact_overflow,
        live.taken.unsolved,
        s.episodes,
        s.return_sum.to_bits(),
        s.length_sum.to_bits(),
        s.final_overflow,
        s.finished.len() as u64,
        s.breaks.len() as u64,
    ] {
        out.extend_from_slice(&word.to_le_bytes());
    }
    out.extend_from_slice(bytemuck::cast_slice(&s.reward_sums));
    out.extend_from_slice(bytemuck::cast_slice(&s.agent_return_sums));
    out.extend_from_slice(bytemuck::cast_slice(&s.terminations));
    out.extend_from_slice(bytemuck::cast_slice(&s.faults));
    out.extend_from_slice(bytemuck::cast_slice(&s.causes));
    for b in &s.breaks {
        out.extend_from_slice(&b.clock.to_le_bytes());
        for word in [b.env, b.step, b.age, b.cause, b.value.to_bits()] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
    for f in &s.finished {
        for word in [f.env, f.ret.to_bits(), f.length, f.step] {
            out.extend_from_slice(&word.to_le_bytes());
        }
    }
    // The length of the physics' part is known when it is written.
    reserve(out, 8, FORMAT.what)?;
    let at = out.len();
    out.extend_from_slice(&[0; 8]);
    match seal {
        Seal::Checked => env.physics.save(out)?,
        Seal::Bare => env.physics.keep(out)?,
    }
    let len = (out.len() - at - 8) as u64;
    out[at..at + 8].copy_from_slice(&len.to_le_bytes());
    FORMAT.end(out, seal, start)
}

fn bytes(episodes: &Episodes) -> usize {
    episodes.columns().map(|(_, b)| b.len()).sum()
}

/// Where a snapshot that [`BatchEnv::keep`] has written holds the environments' own
/// buffers, and those of the native worlds, which take `physics` bytes.
pub(super) fn parts(
    env: &BatchEnv,
    kept: &[u8],
    physics: usize,
) -> Result<(Range<usize>, Range<usize>), SnapshotError> {
    const HEAD: usize = 8 + 4 + 8 + 4 + 8 + 3 * 32 + 8 + 8;
    let end = kept.len().checked_sub(physics);
    let (true, Some(end)) = (kept.starts_with(FORMAT.bare), end) else {
        return Err(unfit("it is not one of native worlds"));
    };
    Ok((HEAD..HEAD + bytes(&env.live.episodes), end..kept.len()))
}

/// A snapshot that fits, in its parts.
struct Parsed<'a> {
    /// Environments in it.
    stored: usize,
    /// The first of them that is ours.
    from: usize,
    clock: u64,
    began: u64,
    /// Columns of episodes, one behind the other.
    episodes: Reader<'a>,
    taken: Shortfalls,
    stats: Stats<'a>,
    physics: &'a [u8],
}

struct Stats<'a> {
    episodes: u64,
    return_sum: f64,
    length_sum: f64,
    final_overflow: u64,
    reward_sums: &'a [u8],
    agent_return_sums: &'a [u8],
    terminations: &'a [u8],
    faults: &'a [u8],
    causes: &'a [u8],
    breaks: &'a [u8],
    finished: &'a [u8],
    /// Bytes of one of those.
    episode: usize,
}

/// A count, if it can be one.
fn believed(count: u64, of: &str) -> Result<u64, SnapshotError> {
    if count > MOST {
        return Err(unfit(format!("it counts {count} {of}")));
    }
    Ok(count)
}

/// The bytes of `len` counts that can be some.
fn counts<'a>(r: &mut Reader<'a>, len: usize, of: &str) -> Result<&'a [u8], SnapshotError> {
    let bytes = r.items(len, 8)?;
    let mut each = Reader(bytes);
    for _ in 0..len {
        believed(each.long()?, of)?;
    }
    Ok(bytes)
}

/// Checks all but the physics' part. `other_size`: any number of environments will do.
fn parse<'a>(
    env: &BatchEnv,
    mut r: Reader<'a>,
    other_size: bool,
) -> Result<Parsed<'a>, SnapshotError> {
    let version = r.word()?;
    let episode = match version {
        3 => FINISHED_3,
        _ => FINISHED,
    };
    if !(3..=VERSION).contains(&version) {
        return Err(unfit(format!(
            "written by format {version}; this program reads format {VERSION}"
        )));
    }
    let (stored, n) = (r.count()?, env.spec.num_envs);
    if stored != n && !other_size {
        return Err(unfit(format!(
            "it holds {stored} environments, this run has {n}"
        )));
    }
    let first = r.word()?;
    let from = match other_size {
        // A part of a larger batch.
        true => env.first_env.checked_sub(first),
        false => (first == env.first_env).then_some(0),
    };
    let Some(from) = from else {
        return Err(unfit(format!(
            "its first environment is {first}, this run's is {}",
            env.first_env
        )));
    };
    let seed = r.long()?;
    if seed != env.seed {
        return Err(unfit(format!(
            "its seed is {seed}, this run's is {}",
            env.seed
        )));
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
            return Err(unfit(what));
        }
    }
    let (clock, began) = (
        believed(r.long()?, "control steps")?,
        believed(r.long()?, "control steps")?,
    );
    let live = &env.live;
    let episodes = Reader(r.items(stored, bytes(&live.episodes) / n)?);
    let taken = Shortfalls {
        contact_overflow: believed(r.long()?, "contacts")?,
        unsolved: believed(r.long()?, "unsolved steps")?,
    };
    let (ended, return_sum, length_sum, final_overflow) = (
        believed(r.long()?, "episodes")?,
        f64::from_bits(r.long()?),
        f64::from_bits(r.long()?),
        believed(r.long()?, "final observations")?,
    );
    let (finished, breaks) = (r.count()?, r.count()?);
    if finished > stored {
        return Err(unfit("it holds more finished episodes than environments"));
    }
    if breaks > DESCRIBED {
        return Err(unfit(format!("it describes {breaks} broken environments")));
    }
    let s = &live.stats;
    let stats = Stats {
        episodes: ended,
        return_sum,
        length_sum,
        final_overflow,
        reward_sums: r.items(s.reward_sums.len(), 8)?,
        agent_return_sums: r.items(s.agent_return_sums.len(), 8)?,
        terminations: counts(&mut r, s.terminations.len(), "ends of episodes")?,
        faults: counts(&mut r, s.faults.len(), "faults")?,
        causes: counts(&mut r, s.causes.len(), "broken environments")?,
        breaks: r.items(breaks, 28)?,
        finished: r.items(finished, episode)?,
        episode,
    };
    let len = r.count()?;
    let physics = r.bytes(len)?;
    r.finish()?;
    Ok(Parsed {
        stored,
        from: from as usize,
        clock,
        began,
        episodes,
        taken,
        stats,
        physics,
    })
}

impl Parsed<'_> {
    /// Takes over all that fits; nothing here can fail.
    fn fill(&self, live: &mut Live, n: usize) {
        let (stored, at) = (self.stored, self.from);
        live.clock = self.clock;
        live.began = self.began;
        let mut rest = self.episodes;
        for (column, buffer) in live.episodes.columns_mut() {
            // As many as `parse` has counted.
            let Ok(bytes) = rest.items(stored, buffer.len() / n) else {
                return;
            };
            column.copy(bytes, buffer, [stored, n, at]);
        }
        live.taken = self.taken;
        // What was counted of a batch is not cut into parts: the first has it all.
        match at {
            0 => self.stats.fill(&mut live.stats, n),
            _ => stats::clear(&mut live.stats),
        }
    }
}

impl Stats<'_> {
    fn fill(&self, s: &mut EpisodeStats, n: usize) {
        s.episodes = self.episodes;
        s.return_sum = self.return_sum;
        s.length_sum = self.length_sum;
        s.final_overflow = self.final_overflow;
        let whole = |stored: &[u8], into: &mut [u8]| into.copy_from_slice(stored);
        whole(
            self.reward_sums,
            bytemuck::cast_slice_mut(&mut s.reward_sums),
        );
        whole(
            self.agent_return_sums,
            bytemuck::cast_slice_mut(&mut s.agent_return_sums),
        );
        whole(
            self.terminations,
            bytemuck::cast_slice_mut(&mut s.terminations),
        );
        whole(self.faults, bytemuck::cast_slice_mut(&mut s.faults));
        whole(self.causes, bytemuck::cast_slice_mut(&mut s.causes));
        s.finished.clear();
        s.breaks.clear();
        let word = |b: &[u8], i: usize| {
            let mut w = [0; 4];
            w.copy_from_slice(&b[4 * i..4 * i + 4]);
            u32::from_le_bytes(w)
        };
        for b in self.breaks.chunks_exact(28) {
            s.breaks.push(Break {
                clock: u64::from(word(b, 0)) | u64::from(word(b, 1)) << 32,
                env: word(b, 2),
                step: word(b, 3),
                age: word(b, 4),
                cause: word(b, 5),
                value: f32::from_bits(word(b, 6)),
            });
        }
        // There is room for as many as there are environments.
        for f in self.finished.chunks_exact(self.episode).take(n) {
            s.finished.push(Finished {
                env: word(f, 0),
                step: if self.episode == FINISHED {
                    word(f, 3)
                } else {
                    0
                },
                ret: f32::from_bits(word(f, 1)),
                length: word(f, 2),
            });
        }
    }
}

pub(super) fn restore(env: &mut BatchEnv, blob: &[u8]) -> Result<(), SnapshotError> {
    let parsed = parse(env, FORMAT.open_checked(blob)?, false)?;
    // The last thing that can fail; then the rest is taken over.
    env.physics.restore(parsed.physics)?;
    parsed.fill(&mut env.live, env.spec.num_envs);
    Ok(())
}

pub(super) fn revert(env: &mut BatchEnv, kept: &[u8]) -> Result<(), SnapshotError> {
    let parsed = parse(env, FORMAT.open(kept)?.1, false)?;
    env.physics.revert(parsed.physics)?;
    parsed.fill(&mut env.live, env.spec.num_envs);
    Ok(())
}

pub(super) fn adopt(
    env: &mut BatchEnv,
    blob: &[u8],
    spread: bool,
    obs: &mut Groups<&mut [f32]>,
) -> Result<usize, SnapshotError> {
    let n = env.spec.num_envs;
    let parsed = parse(env, FORMAT.open(blob)?.1, true)?;
    let taken = env.physics.adopt(parsed.physics, parsed.from)?;
    parsed.fill(&mut env.live, n);
    // Counts of worlds that are gone are gone with them.
    env.live.taken = env.physics.shortfalls();
    for (e, mask) in env.work.mask.iter_mut().enumerate() {
        *mask = u8::from(e >= taken);
    }
    if taken < n {
        let live = &mut env.live;
        let [wide, critic_wide] = env.task.observations.world();
        live.episodes.last_policy[taken * wide..].fill(0.0);
        live.episodes.last_critic[taken * critic_wide..].fill(0.0);
        live.episodes.final_used[taken..].fill(0);
        env.restart(spread, obs);
        env.remember(Whose::New);
    }
    Ok(taken)
}
