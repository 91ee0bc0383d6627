//! Everything the future of a batch depends on, as bytes, and back: a [`Record`], then the
//! physics' own.

pub(super) use super::examine::DESCRIBED;
use super::{BatchEnv, Break, EpisodeStats, Finished, Groups, Starts, stats};
use crate::config::{ConfigError, EnvConfig, SimConfig, TaskConfig};
use crate::physics::{Shortfalls, SnapshotError, record};
use crate::snapshot::{self, Bytes, unfit};
use crate::state::{self, EPISODE};
use bytemuck::{Pod, cast_slice, cast_slice_mut, pod_read_unaligned};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::ops::AddAssign;

const OF: &str = "environments";
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
    pub fn new(env: &EnvConfig, task: &TaskConfig, step_dt: f64) -> Result<Self, ConfigError> {
        // Where files lie is not what they say.
        let mut task = TaskConfig { robot: String::new(), robot_folder: None, ..task.clone() };
        task.native.iter_mut().for_each(|term| term.file.clear());
        Ok(Self {
            task: digest(&(task, env.decimation, env.episode_length_s, step_dt))?,
            physics: [0; 32],
        })
    }

    /// Settings of the engine that change its numbers.
    ///
    /// # Errors
    /// They cannot be written as JSON.
    pub fn add_physics(&mut self, sim: &SimConfig) -> Result<(), ConfigError> {
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
    #[serde(borrow)]
    columns: [Bytes<'a>; EPISODE.len()],
    taken: Shortfalls,
    #[serde(borrow)]
    stats: Stats<'a>,
}

/// Statistics, in bytes that are taken over without an allocation: also where memory is
/// full an iteration can be taken back.
#[derive(Clone, Serialize, Deserialize)]
struct Stats<'a> {
    #[serde(with = "postcard::fixint::le")]
    episodes: u64,
    return_sum: f64,
    length_sum: f64,
    #[serde(with = "postcard::fixint::le")]
    final_overflow: u64,
    starts: Starts,
    #[serde(borrow)]
    reward_sums: Bytes<'a>,
    metric_sums: Bytes<'a>,
    agent_return_sums: Bytes<'a>,
    terminations: Bytes<'a>,
    faults: Bytes<'a>,
    causes: Bytes<'a>,
    suspects: Bytes<'a>,
    finished: Bytes<'a>,
    finished_metrics: Bytes<'a>,
    breaks: Cow<'a, [Break]>,
}

impl<'a> Stats<'a> {
    fn of(s: &'a EpisodeStats) -> Self {
        Self {
            episodes: s.episodes,
            return_sum: s.return_sum,
            length_sum: s.length_sum,
            final_overflow: s.final_overflow,
            starts: s.starts,
            reward_sums: Bytes(cast_slice(&s.reward_sums)),
            metric_sums: Bytes(cast_slice(&s.metric_sums)),
            agent_return_sums: Bytes(cast_slice(&s.agent_return_sums)),
            terminations: Bytes(cast_slice(&s.terminations)),
            faults: Bytes(cast_slice(&s.faults)),
            causes: Bytes(cast_slice(&s.causes)),
            suspects: Bytes(cast_slice(&s.suspects)),
            finished: Bytes(cast_slice(&s.finished)),
            finished_metrics: Bytes(cast_slice(&s.finished_metrics)),
            breaks: Cow::Borrowed(&s.breaks),
        }
    }

    fn size(&self) -> usize {
        let all = [
            self.reward_sums,
            self.metric_sums,
            self.agent_return_sums,
            self.terminations,
            self.faults,
            self.causes,
            self.suspects,
            self.finished,
            self.finished_metrics,
        ];
        all.iter().map(|b| b.0.len()).sum::<usize>() + 40 * self.breaks.len()
    }

    /// Whether they can be of an environment with statistics like `own`.
    fn check(&self, own: &EpisodeStats, stored: usize) -> Result<(), SnapshotError> {
        for (bytes, want, of) in [
            (self.reward_sums, own.reward_sums.len(), "reward terms"),
            (self.metric_sums, own.metric_sums.len(), "metrics"),
            (self.agent_return_sums, own.agent_return_sums.len(), "returns of agents"),
            (self.terminations, own.terminations.len(), "ends of episodes"),
            (self.faults, own.faults.len(), "faults"),
            (self.causes, own.causes.len(), "broken environments"),
            (self.suspects, own.suspects.len(), "suspected events"),
        ] {
            if bytes.0.len() != 8 * want {
                return Err(unfit(format!("it has {} bytes for {want} {of}", bytes.0.len())));
            }
        }
        for (bytes, of) in [
            (self.terminations, "ends of episodes"),
            (self.faults, "faults"),
            (self.causes, "broken environments"),
            (self.suspects, "suspected events"),
        ] {
            let counts = bytes.0.chunks_exact(8).map(pod_read_unaligned::<u64>);
            counts.into_iter().try_for_each(|n| believed(n, of))?;
        }
        believed(self.episodes, "episodes")?;
        believed(self.final_overflow, "final observations")?;
        let starts = self.starts;
        for count in [starts.count, starts.tries, starts.gave_up] {
            believed(count, "starts")?;
        }
        let each = size_of::<Finished>();
        if !self.finished.0.len().is_multiple_of(each) {
            return Err(unfit("its finished episodes are cut short"));
        }
        if self.finished.0.len() / each > stored {
            return Err(unfit("it holds more finished episodes than environments"));
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
        fn sum<T: Pod + AddAssign>(part: Bytes<'_>, into: &mut Vec<T>) {
            let part = part.0.chunks_exact(size_of::<T>());
            into.resize(into.len().max(part.len()), T::zeroed());
            let part = part.map(pod_read_unaligned::<T>);
            into.iter_mut().zip(part).for_each(|(a, b)| *a += b);
        }
        s.episodes += self.episodes;
        s.return_sum += self.return_sum;
        s.length_sum += self.length_sum;
        s.final_overflow += self.final_overflow;
        s.starts += self.starts;
        sum(self.agent_return_sums, &mut s.agent_return_sums);
        sum(self.reward_sums, &mut s.reward_sums);
        sum(self.metric_sums, &mut s.metric_sums);
        let metrics = self.finished_metrics.0.chunks_exact(4);
        s.finished_metrics.extend(metrics.map(pod_read_unaligned::<f32>));
        sum(self.terminations, &mut s.terminations);
        sum(self.faults, &mut s.faults);
        sum(self.causes, &mut s.causes);
        sum(self.suspects, &mut s.suspects);
        let room = DESCRIBED.saturating_sub(s.breaks.len());
        s.breaks.extend(self.breaks.iter().take(room));
        let each = self.finished.0.chunks_exact(size_of::<Finished>());
        let placed = each
            .map(pod_read_unaligned::<Finished>)
            .map(|f| Finished { env: f.env.wrapping_add(offset), ..f });
        s.finished.extend(placed);
    }

    /// Takes them over, of finished episodes as many as there is room for.
    fn fill(&self, s: &mut EpisodeStats, most: usize) {
        let copy = |from: Bytes<'_>, into: &mut [u8]| into.copy_from_slice(from.0);
        s.episodes = self.episodes;
        s.return_sum = self.return_sum;
        s.length_sum = self.length_sum;
        s.final_overflow = self.final_overflow;
        s.starts = self.starts;
        copy(self.reward_sums, cast_slice_mut(&mut s.reward_sums));
        copy(self.metric_sums, cast_slice_mut(&mut s.metric_sums));
        copy(self.agent_return_sums, cast_slice_mut(&mut s.agent_return_sums));
        copy(self.terminations, cast_slice_mut(&mut s.terminations));
        copy(self.faults, cast_slice_mut(&mut s.faults));
        copy(self.causes, cast_slice_mut(&mut s.causes));
        copy(self.suspects, cast_slice_mut(&mut s.suspects));
        s.finished.clear();
        let each = self.finished.0.chunks_exact(size_of::<Finished>());
        s.finished.extend(each.take(most).map(pod_read_unaligned::<Finished>));
        s.finished_metrics.clear();
        let metrics = self.finished_metrics.0.chunks_exact(4);
        let most = most.saturating_mul(s.metric_sums.len());
        s.finished_metrics.extend(metrics.take(most).map(pod_read_unaligned::<f32>));
        s.breaks.clear();
        s.breaks.extend_from_slice(&self.breaks);
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
        return Err(unfit(format!("its seed is {}, this run's is {}", record.seed, env.seed)));
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
        0 => record.stats.fill(&mut live.stats, env.spec.num_envs),
        _ => stats::clear(&mut live.stats),
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
    let mut stats = EpisodeStats::default();
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
    if !stats.has_metrics() {
        stats.finished_metrics.clear();
    }
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
