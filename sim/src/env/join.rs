//! Snapshots of the parts of a batch, made one of all, without the environments.

use super::snapshot::{DESCRIBED, FINISHED, FORMAT, VERSION};
use super::{BatchEnv, EpisodeStats};
use crate::physics::{Batching, SnapshotError};
use crate::snapshot::{Reader, Seal, reserve, unfit};
use crate::state::EPISODE;

/// What the snapshots of [parts](BatchEnv::shard) of one batch look like.
#[derive(Debug, Clone)]
pub struct Layout {
    /// Entries of an environment in every column of episodes.
    widths: [usize; EPISODE.len()],
    /// Of the statistics: sums of reward terms and of agents' returns, and counts after
    /// them.
    sums: usize,
    counts: usize,
    physics: Option<Batching>,
}

const DIGESTS: usize = 3 * 32;
const BREAK: usize = 28;

impl BatchEnv {
    /// What [`Layout::join`] has to know.
    pub fn layout(&self) -> Layout {
        let (live, n) = (&self.live, self.spec.num_envs);
        let mut widths = [0; EPISODE.len()];
        for (width, (_, buffer)) in widths.iter_mut().zip(live.episodes.columns()) {
            *width = buffer.len() / 4 / n;
        }
        let EpisodeStats {
            reward_sums,
            agent_return_sums,
            terminations,
            faults,
            causes,
            ..
        } = &live.stats;
        Layout {
            widths,
            sums: reward_sums.len() + agent_return_sums.len(),
            counts: terminations.len() + faults.len() + causes.len(),
            physics: self.physics.batching(),
        }
    }
}

/// One part, taken apart.
struct Part<'a> {
    n: usize,
    first: u32,
    seed: u64,
    digests: [u8; DIGESTS],
    clock: u64,
    began: u64,
    columns: [&'a [u8]; EPISODE.len()],
    /// Contacts and solves that fell short, episodes.
    whole: [u64; 3],
    /// Sums of returns and lengths.
    means: [f64; 2],
    overflow: u64,
    sums: &'a [u8],
    counts: &'a [u8],
    breaks: &'a [u8],
    finished: &'a [u8],
    physics: &'a [u8],
}

impl Layout {
    fn open<'a>(&self, blob: &'a [u8]) -> Result<Part<'a>, SnapshotError> {
        let (_, mut r) = FORMAT.open(blob)?;
        let version = r.word()?;
        if version != VERSION {
            return Err(unfit(format!("a part was written by format {version}")));
        }
        let (n, first, seed) = (r.count()?, r.word()?, r.long()?);
        let (digests, clock, began) = (r.array()?, r.long()?, r.long()?);
        let mut columns = [&[][..]; EPISODE.len()];
        for (column, width) in columns.iter_mut().zip(self.widths) {
            *column = r.items(n, 4 * width)?;
        }
        let whole = [r.long()?, r.long()?, r.long()?];
        let means = [f64::from_bits(r.long()?), f64::from_bits(r.long()?)];
        let (overflow, finished, breaks) = (r.long()?, r.count()?, r.count()?);
        let (sums, counts) = (r.items(self.sums, 8)?, r.items(self.counts, 8)?);
        let breaks = r.items(breaks, BREAK)?;
        let finished = r.items(finished, FINISHED)?;
        let len = r.count()?;
        let physics = r.bytes(len)?;
        r.finish()?;
        Ok(Part {
            n,
            first,
            seed,
            digests,
            clock,
            began,
            columns,
            whole,
            means,
            overflow,
            sums,
            counts,
            breaks,
            finished,
            physics,
        })
    }

    /// Appends the snapshot of the whole batch of which `parts` are snapshots, in the
    /// order of their environments: what [`BatchEnv::save`] (`checked`) or
    /// [`BatchEnv::keep`] of all of them would write, but for sums of statistics, whose
    /// last digits depend on the order.
    ///
    /// # Errors
    /// They are not the parts of one batch at one time; no memory.
    pub fn join(
        &self,
        parts: &[&[u8]],
        checked: bool,
        out: &mut Vec<u8>,
    ) -> Result<(), SnapshotError> {
        let seal = if checked { Seal::Checked } else { Seal::Bare };
        let opened: Result<Vec<Part<'_>>, SnapshotError> =
            parts.iter().map(|p| self.open(p)).collect();
        let parts_bytes: usize = parts.iter().map(|p| p.len()).sum();
        let parts = opened?;
        let Some(head) = parts.first() else {
            return Err(unfit("it has no parts"));
        };
        let mut next = head.first;
        for p in &parts {
            if (p.first, p.seed, p.digests, p.clock) != (next, head.seed, head.digests, head.clock)
            {
                return Err(unfit(format!(
                    "the part with environments {}.. is not of the same batch at the same step",
                    p.first
                )));
            }
            next = next.wrapping_add(p.n as u32);
        }
        let total: usize = parts.iter().map(|p| p.n).sum();
        let start = FORMAT.begin(out, seal, parts_bytes)?;
        out.extend_from_slice(&VERSION.to_le_bytes());
        out.extend_from_slice(&(total as u64).to_le_bytes());
        out.extend_from_slice(&head.first.to_le_bytes());
        out.extend_from_slice(&head.seed.to_le_bytes());
        out.extend_from_slice(&head.digests);
        out.extend_from_slice(&head.clock.to_le_bytes());
        out.extend_from_slice(&head.began.to_le_bytes());
        for (i, (column, width)) in EPISODE.iter().zip(self.widths).enumerate() {
            let side: Vec<_> = parts.iter().map(|p| (p.columns[i], p.n)).collect();
            column.join(&side, width, out);
        }
        self.statistics(&parts, head.first, out)?;
        reserve(out, 8, FORMAT.what)?;
        let at = out.len();
        out.extend_from_slice(&[0; 8]);
        let Some(physics) = self.physics else {
            return Err(unfit("this engine's worlds cannot be joined"));
        };
        let worlds: Vec<&[u8]> = parts.iter().map(|p| p.physics).collect();
        physics.join(&worlds, seal, out)?;
        let len = (out.len() - at - 8) as u64;
        out[at..at + 8].copy_from_slice(&len.to_le_bytes());
        FORMAT.end(out, seal, start)
    }

    fn statistics(
        &self,
        parts: &[Part<'_>],
        first: u32,
        out: &mut Vec<u8>,
    ) -> Result<(), SnapshotError> {
        let bytes = |of: fn(&Part<'_>) -> usize| parts.iter().map(of).sum::<usize>();
        let breaks = (bytes(|p| p.breaks.len()) / BREAK).min(DESCRIBED);
        let finished = bytes(|p| p.finished.len()) / FINISHED;
        let size = 8 * 8 + 8 * (self.sums + self.counts) + BREAK * breaks + FINISHED * finished;
        reserve(out, size, FORMAT.what)?;
        let sum = |of: &dyn Fn(&Part<'_>) -> u64| {
            let all = parts.iter().map(of);
            all.fold(0, u64::wrapping_add).to_le_bytes()
        };
        let mean = |of: &dyn Fn(&Part<'_>) -> f64| {
            let all: f64 = parts.iter().map(of).sum();
            all.to_le_bytes()
        };
        for i in 0..3 {
            out.extend_from_slice(&sum(&|p| p.whole[i]));
        }
        for i in 0..2 {
            out.extend_from_slice(&mean(&|p| p.means[i]));
        }
        out.extend_from_slice(&sum(&|p| p.overflow));
        out.extend_from_slice(&(finished as u64).to_le_bytes());
        out.extend_from_slice(&(breaks as u64).to_le_bytes());
        for i in 0..self.sums {
            out.extend_from_slice(&mean(&|p| f64::from_bits(long(p.sums, i))));
        }
        for i in 0..self.counts {
            out.extend_from_slice(&sum(&|p| long(p.counts, i)));
        }
        let described = parts.iter().flat_map(|p| p.breaks.chunks_exact(BREAK));
        for bytes in described.take(breaks) {
            out.extend_from_slice(bytes);
        }
        for p in parts {
            // An environment's place in a part is not its place in the batch.
            let offset = p.first.wrapping_sub(first);
            for bytes in p.finished.chunks_exact(FINISHED) {
                let mut r = Reader(bytes);
                out.extend_from_slice(&r.word()?.wrapping_add(offset).to_le_bytes());
                out.extend_from_slice(r.0);
            }
        }
        Ok(())
    }
}

/// Number `i` of a run of eight-byte ones.
fn long(bytes: &[u8], i: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[8 * i..8 * i + 8]);
    u64::from_le_bytes(word)
}
