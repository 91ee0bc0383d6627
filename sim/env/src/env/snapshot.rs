//! Everything the future of a batch depends on, as bytes, and back: a [`Record`], then the
//! physics' own.

use super::stats::{DESCRIBED, LISTED};
use super::{BatchEnv, Break, EpisodeStats, Finished, Groups};
use crate::config::{ConfigError, EnvConfig, SimConfig, TaskConfig};
use bytemuck::{cast_slice, pod_read_unaligned};
use ostler_base::snapshot::{self, Bytes, unfit};
use ostler_engine::physics::{Shortfalls, SnapshotError, record};
use ostler_engine::state::{self, EPISODE};
use ostler_engine::stats::{Number, ONES, STATS};
use serde::{Deserialize, Serialize};
use serde_big_array::BigArray;
use std::borrow::Cow;

const OF: &str = "environments";
const EPISODES: &str = "episodes";
/// Beyond so many (the last number that doubles count to) no count is believed:
/// neither a step more nor a sum over all causes may overflow.
const MOST: u64 = 1 << 53;

/// Digests of the robot and task that a snapshot must agree with; of the robot the physics has
/// its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Identity {
    task: [u8; 32],
    physics: [u8; 32],
}

fn digest(value: &impl Serialize) -> Result<[u8; 32], ConfigError> {
    let text = serde_json::to_vec(value).map_err(|e| ConfigError::new("config", e.to_string()))?;
    Ok(*blake3::hash(&text).as_bytes())
}

impl Identity {
    /// Of everything but the engine's settings.
    ///
    /// # Errors
    /// The task cannot be written as JSON.
    pub(crate) fn new(
        env: &EnvConfig,
        task: &TaskConfig,
        step_dt: f64,
    ) -> Result<Self, ConfigError> {
        // Where files lie is not what they say.
        let mut task = TaskConfig { robot: String::new(), robot_folder: None, ..task.clone() };
        task.native.iter_mut().for_each(|term| term.file.clear());
        let tiles = task.tiles().map(|t| Some(blake3::hash(t?.1).to_hex().to_string()));
        let tiles: Vec<Option<String>> = tiles.collect();
        let kinds = task.terrain.iter_mut().flat_map(|plan| &mut plan.kinds);
        kinds.zip(tiles).for_each(|(kind, tile)| kind.file = tile);
        let motions = std::mem::take(&mut task.motion_files);
        for (term, files) in task.reference.iter_mut().zip(motions) {
            let hashes = files.iter().map(|f| blake3::hash(&f.bytes).to_hex().to_string());
            term.files = hashes.collect();
        }
        Ok(Self {
            task: digest(&(task, env.decimation, env.episode_length_s, step_dt))?,
            physics: [0; 32],
        })
    }

    /// Settings of the engine that change its numbers.
    ///
    /// # Errors
    /// They cannot be written as JSON.
    pub(crate) fn add_physics(&mut self, sim: &SimConfig) -> Result<(), ConfigError> {
        self.physics =
            digest(&(sim.backend, &sim.rapier, sim.max_speed, sim.max_position, &sim.limit))?;
        Ok(())
    }
}

/// Content of a snapshot before the physics' record.
#[derive(Serialize, Deserialize)]
struct Record<'a> {
    /// Environments in it.
    count: usize,
    first_env: u32,
    #[serde(with = "postcard::fixint::le")]
    seed: u64,
    identity: Identity,
    #[serde(with = "postcard::fixint::le")]
    clock: u64,
    #[serde(with = "postcard::fixint::le")]
    began: u64,
    #[serde(borrow, with = "BigArray")]
    columns: [Bytes<'a>; EPISODE.len()],
    taken: Shortfalls,
    #[serde(borrow)]
    stats: Stats<'a>,
}

/// Statistics, in bytes that are taken over without an allocation: also where memory is
/// full an iteration can be taken back.
#[derive(Clone, Serialize, Deserialize)]
struct Stats<'a> {
    ones: [Number; ONES],
    #[serde(borrow)]
    lists: [Bytes<'a>; STATS.len() - ONES],
    finished: Bytes<'a>,
    finished_metrics: Bytes<'a>,
    breaks: Cow<'a, [Break]>,
}

impl<'a> Stats<'a> {
    fn of(s: &'a EpisodeStats) -> Self {
        let numbers = s.numbers();
        Self {
            ones: std::array::from_fn(|k| numbers[k][0]),
            lists: std::array::from_fn(|k| Bytes(numbers[ONES + k].as_flattened())),
            finished: Bytes(cast_slice(&s.finished)),
            finished_metrics: Bytes(cast_slice(&s.finished_metrics)),
            breaks: Cow::Borrowed(&s.breaks),
        }
    }

    fn size(&self) -> usize {
        let lists = self.lists.iter().chain([&self.finished, &self.finished_metrics]);
        lists.map(|b| b.0.len()).sum::<usize>() + 40 * self.breaks.len()
    }

    /// The numbers of each statistic.
    fn numbers(&self) -> impl Iterator<Item = &[u8]> {
        let ones = self.ones.iter().map(|one| one.as_slice());
        ones.chain(self.lists.iter().map(|list| list.0))
    }

    /// Whether they can be of an environment with statistics like `own`.
    fn check(&self, own: &EpisodeStats, stored: usize) -> Result<(), SnapshotError> {
        for ((stat, bytes), own) in STATS.iter().zip(self.numbers()).zip(own.numbers()) {
            let (numbers, rest) = bytes.as_chunks::<8>();
            if numbers.len() != own.len() || !rest.is_empty() {
                let (bytes, want) = (bytes.len(), own.len());
                return Err(unfit(format!("it has {bytes} bytes for {want} {}", stat.name)));
            }
            if stat.counts {
                numbers.iter().try_for_each(|n| believed(u64::from_ne_bytes(*n), stat.name))?;
            }
        }
        let each = size_of::<Finished>();
        if !self.finished.0.len().is_multiple_of(each) {
            return Err(unfit("its finished episodes are cut short"));
        }
        if self.finished.0.len() / each > stored.max(LISTED) {
            return Err(unfit("it holds more finished episodes than it can list"));
        }
        let metrics = 4 * own.metric_sums.len() * (self.finished.0.len() / each);
        // A device lists none.
        if ![0, metrics].contains(&self.finished_metrics.0.len()) {
            return Err(unfit("its metrics are not those of its finished episodes"));
        }
        if self.breaks.len() > DESCRIBED {
            return Err(unfit(format!("it describes {} broken environments", self.breaks.len())));
        }
        if self.breaks.iter().any(|b| b.cause as usize >= own.causes.len()) {
            return Err(unfit("an environment broke for a cause that there is not"));
        }
        Ok(())
    }

    /// Adds the counts of a part of a batch; `offset`: the place of its first
    /// environment. Of sums the last digits depend on the order.
    fn add_to(&self, s: &mut EpisodeStats, offset: u32) {
        for ((stat, own), bytes) in STATS.iter().zip(s.numbers_mut()).zip(self.numbers()) {
            let more = bytes.as_chunks::<8>().0;
            own.iter_mut().zip(more).for_each(|(to, more)| stat.add(to, *more));
        }
        let metrics = self.finished_metrics.0.chunks_exact(4);
        s.finished_metrics.extend(metrics.map(pod_read_unaligned::<f32>));
        let room = DESCRIBED.saturating_sub(s.breaks.len());
        s.breaks.extend(self.breaks.iter().take(room));
        let each = self.finished.0.chunks_exact(size_of::<Finished>());
        let placed = each
            .map(pod_read_unaligned::<Finished>)
            .map(|f| Finished { env: f.env.wrapping_add(offset), ..f });
        s.finished.extend(placed);
    }

    /// Takes them over, of finished episodes the last `most`.
    fn fill(&self, s: &mut EpisodeStats, most: usize) {
        for (own, bytes) in s.numbers_mut().into_iter().zip(self.numbers()) {
            own.as_flattened_mut().copy_from_slice(bytes);
        }
        s.finished.clear();
        let each = self.finished.0.chunks_exact(size_of::<Finished>());
        let old = each.len().saturating_sub(most);
        s.finished.extend(each.skip(old).map(pod_read_unaligned::<Finished>));
        s.finished_metrics.clear();
        let metrics = self.finished_metrics.0.chunks_exact(4);
        let old = old * s.metric_sums.len();
        s.finished_metrics.extend(metrics.skip(old).map(pod_read_unaligned::<f32>));
        s.breaks.clear();
        s.breaks.extend_from_slice(&self.breaks);
    }
}

impl EpisodeStats {
    /// Appends all numbers, for another process.
    ///
    /// # Errors
    /// There is no memory.
    pub fn write(&self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        let own = Stats::of(self);
        let room = own.size();
        snapshot::write(EPISODES, &(own, self.shortfalls), room, out)
    }

    /// Adds the numbers that another process [wrote](Self::write) of environments of which the
    /// first is number `first` here and which are `count`.
    ///
    /// # Errors
    /// They are of other environments.
    pub fn add_written(
        &mut self,
        bytes: &[u8],
        first: u32,
        count: usize,
    ) -> Result<(), SnapshotError> {
        let ((written, shortfalls), _) =
            snapshot::read::<(Stats<'_>, Shortfalls)>(EPISODES, bytes)?;
        written.check(self, count)?;
        written.add_to(self, first);
        self.shortfalls.contact_overflow += shortfalls.contact_overflow;
        self.shortfalls.unsolved += shortfalls.unsolved;
        Ok(())
    }

    /// As one batch of all environments would have them: after others were added.
    pub fn as_one(&mut self) {
        if !self.has_metrics() {
            self.finished_metrics.clear();
        }
        // Each with its metrics, in order of (step, environment).
        let width = self.finished_metrics.len() / self.finished.len().max(1);
        let mut order: Vec<usize> = (0..self.finished.len()).collect();
        order.sort_by_key(|&i| (self.finished[i].step, self.finished[i].env));
        let metrics = order.iter().flat_map(|&i| &self.finished_metrics[i * width..][..width]);
        self.finished_metrics = metrics.copied().collect();
        self.finished = order.iter().map(|&i| self.finished[i]).collect();
        self.forget_old();
        self.breaks.sort_unstable_by_key(|b| (b.step, b.env));
    }
}

impl Record<'_> {
    fn size(&self) -> usize {
        let columns = self.columns.iter().map(|c| c.0.len()).sum::<usize>();
        columns + self.stats.size() + 512
    }
}

/// Appends the record that [`restore`] and [`restore_range`] read.
pub(super) fn capture(env: &BatchEnv, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let live = &env.live;
    let record = Record {
        count: env.spec.num_envs,
        first_env: env.first_env,
        seed: env.seed,
        identity: env.identity,
        clock: live.clock,
        began: live.began,
        columns: live.episodes.bytes(),
        taken: live.taken,
        stats: Stats::of(&live.stats),
    };
    snapshot::write(OF, &record, record.size(), out)?;
    env.physics.capture(out)
}

/// A count, if it can be one.
fn believed(count: u64, of: &str) -> Result<(), SnapshotError> {
    if count > MOST {
        return Err(unfit(format!("it counts {count} {of}")));
    }
    Ok(())
}

/// Checks all but the physics' part, which comes with the first of the stored environments
/// that is ours. `any`: of any number of environments.
fn read<'a>(
    env: &BatchEnv,
    bytes: &'a [u8],
    any: bool,
) -> Result<(Record<'a>, usize, &'a [u8]), SnapshotError> {
    let (record, physics) = snapshot::read::<Record<'a>>(OF, bytes)?;
    let n = env.spec.num_envs;
    if record.count != n && !any {
        return Err(unfit(format!("it holds {} environments, this run has {n}", record.count)));
    }
    let from = match any {
        // A part of a larger batch.
        true => env.first_env.checked_sub(record.first_env),
        false => (record.first_env == env.first_env).then_some(0),
    };
    let Some(from) = from else {
        return Err(unfit(format!(
            "its first environment is {}, this run's is {}",
            record.first_env, env.first_env
        )));
    };
    if record.seed != env.seed {
        return Err(unfit(format!(
            "its seed is {0}, that of these environments is {1}: they have to be made with seed = {0}",
            record.seed, env.seed
        )));
    }
    if record.identity.task != env.identity.task {
        return Err(unfit("its task ([task], [env] or the time step) differs from this run's"));
    }
    if record.identity.physics != env.identity.physics {
        return Err(unfit("its physics settings ([sim]) differ from this run's"));
    }
    believed(record.clock, "control steps")?;
    believed(record.began, "control steps")?;
    believed(record.taken.contact_overflow, "contacts")?;
    believed(record.taken.unsolved, "unsolved steps")?;
    env.live.episodes.check(record.count, &record.columns)?;
    record.stats.check(&env.live.stats, record.count)?;
    Ok((record, from as usize, physics))
}

/// Takes over all that fits; nothing here can fail.
fn fill(env: &mut BatchEnv, record: &Record<'_>, from: usize) {
    let live = &mut env.live;
    live.clock = record.clock;
    live.began = record.began;
    live.episodes.fill(record.count, from, &record.columns);
    live.taken = record.taken;
    // The counts of a batch are not divided among its parts: the first part has them all.
    match from {
        0 => record.stats.fill(&mut live.stats, env.spec.num_envs.max(LISTED)),
        _ => live.stats.clear(),
    }
}

pub(super) fn restore(env: &mut BatchEnv, bytes: &[u8]) -> Result<(), SnapshotError> {
    let (record, from, physics) = read(env, bytes, false)?;
    // The last thing that can fail; then the rest is taken over.
    env.physics.restore(physics)?;
    fill(env, &record, from);
    Ok(())
}

pub(super) fn restore_range(
    env: &mut BatchEnv,
    bytes: &[u8],
    spread: bool,
    obs: &mut Groups<&mut [f32]>,
) -> Result<usize, SnapshotError> {
    let n = env.spec.num_envs;
    let (record, from, physics) = read(env, bytes, true)?;
    let taken = env.physics.restore_range(physics, from)?;
    fill(env, &record, from);
    // Counts of worlds that are gone are gone with them.
    env.live.taken = env.physics.shortfalls();
    for (e, mask) in env.work.columns.mask.iter_mut().enumerate() {
        *mask = u32::from(e >= taken);
    }
    if taken < n {
        env.live.episodes.forget(taken);
        env.begin(spread, true, obs);
    }
    Ok(taken)
}

/// Appends the snapshot of the whole batch of which `parts` are snapshots, in the order of
/// their environments.
pub(super) fn join(parts: &[&[u8]], out: &mut Vec<u8>) -> Result<(), SnapshotError> {
    let mut opened = Vec::new();
    for part in parts {
        opened.push(snapshot::read::<Record<'_>>(OF, part)?);
    }
    let Some((head, _)) = opened.first() else {
        return Err(unfit("it has no parts"));
    };
    let mut next = head.first_env;
    let most = |k: usize| {
        opened.iter().filter_map(|(p, _)| p.stats.numbers().nth(k)).map(<[u8]>::len).max()
    };
    let mut stats = EpisodeStats::zeros(std::array::from_fn(|k| most(k).unwrap_or(0) / 8));
    let mut taken = Shortfalls::default();
    for (p, _) in &opened {
        let of = |r: &Record<'_>| (r.seed, r.identity, r.clock);
        if p.first_env != next || of(p) != of(head) {
            return Err(unfit(format!(
                "the part with environments {}.. is not of the same batch at the same step",
                p.first_env
            )));
        }
        // An environment's place in a part is not its place in the batch.
        let offset = p.first_env.wrapping_sub(head.first_env);
        p.stats.add_to(&mut stats, offset);
        taken.contact_overflow += p.taken.contact_overflow;
        taken.unsolved += p.taken.unsolved;
        next = next.wrapping_add(p.count as u32);
    }
    stats.as_one();
    let columns: Vec<_> = opened.iter().map(|(p, _)| (p.count, &p.columns)).collect();
    let (all, ends) = state::join(&EPISODE, &columns)?;
    let joined = Record {
        count: opened.iter().map(|(p, _)| p.count).sum(),
        columns: state::cut(&all, &ends),
        taken,
        stats: Stats::of(&stats),
        ..*head
    };
    snapshot::write(OF, &joined, joined.size(), out)?;
    let worlds: Vec<&[u8]> = opened.iter().map(|(_, physics)| *physics).collect();
    record::join(&worlds, out)
}
