//! Buffers that live as long as the environments.

use super::{EnvSpec, EpisodeStats};
use crate::task::Task;
use ostler_base::memory::{MemoryError, zeroed};
use ostler_engine::device::Address;
use ostler_engine::kernels::EnvArgs;
use ostler_engine::physics::Shortfalls;
use ostler_engine::physics::per_thread::PerThread;
use ostler_engine::state::{EpisodeAddresses, Episodes, Sizes, StepBuffers};
use ostler_lang::expr::{BLOCK, Scratch};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// All state besides the physics: a snapshot holds it all.
#[derive(Debug)]
pub(super) struct Live {
    /// Steps and resets of the whole batch so far: keys the draws.
    pub clock: u64,
    /// The clock when the rollout began.
    pub began: u64,
    /// State of the episodes.
    pub episodes: Episodes,
    /// Statistics since they were last taken.
    pub stats: EpisodeStats,
    /// The physics' shortfalls when they were last taken.
    pub taken: Shortfalls,
}

impl Live {
    pub(crate) fn new(spec: &EnvSpec, sizes: &Sizes) -> Result<Self, MemoryError> {
        Ok(Self {
            clock: 0,
            began: 0,
            episodes: Episodes::zeroed(sizes, spec.num_envs)?,
            stats: EpisodeStats::with_room(spec)?,
            taken: Shortfalls::default(),
        })
    }
}

/// Working memory of one step.
#[derive(Debug)]
pub(super) struct Work {
    /// Numbers that the kernels hand on from phase to phase.
    pub columns: StepBuffers,
    /// Statistics of episodes that ended.
    pub ended: Ended,
    /// Where new episodes are still to begin.
    pub begins: Marked,
    /// Environments that broke in this step (up to N).
    pub broken: Vec<u32>,
    /// One environment's reward terms.
    pub terms: Vec<f32>,
    /// One environment's observations; the critics' is empty where they see the policies'.
    pub row: Row,
    /// Where a phase panicked.
    pub panicked: Marked,
    /// For expressions.
    pub scratch: PerThread<Scratch>,
}

/// One environment's observations.
#[derive(Debug)]
pub(super) struct Row {
    pub policy: Vec<f32>,
    pub critic: Vec<f32>,
}

/// Some of the blocks of environments.
#[derive(Debug)]
pub(super) struct Marked {
    /// Whether there are any.
    any: AtomicBool,
    /// By block.
    blocks: Vec<AtomicBool>,
}

impl Marked {
    fn none_of(blocks: usize) -> Result<Self, MemoryError> {
        let mut flags = Vec::new();
        flags
            .try_reserve_exact(blocks)
            .map_err(|_| MemoryError { what: "flags".to_string(), bytes: blocks })?;
        flags.resize_with(blocks, || AtomicBool::new(false));
        Ok(Self { any: AtomicBool::new(false), blocks: flags })
    }

    pub(crate) fn any(&self) -> bool {
        self.any.load(Relaxed)
    }

    pub(crate) fn mark(&self, block: usize) {
        self.blocks[block].store(true, Relaxed);
        self.any.store(true, Relaxed);
    }

    pub(crate) fn is_marked(&self, block: usize) -> bool {
        self.any.load(Relaxed) && self.blocks[block].load(Relaxed)
    }

    /// Forgets them all; hands each to `f`.
    pub(crate) fn take(&mut self, mut f: impl FnMut(usize)) {
        if !std::mem::take(self.any.get_mut()) {
            return;
        }
        for (block, marked) in self.blocks.iter_mut().enumerate() {
            if std::mem::take(marked.get_mut()) {
                f(block);
            }
        }
    }
}

/// Episodes as they ended: when they are counted, new ones may have begun in their places.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Columns of [`Episodes`], see [`kept`]; then `last_ret` of `EnvArgs`.
    words: Vec<u32>,
    num_envs: usize,
    /// Rows of each of these columns.
    widths: [usize; KEPT],
    /// Their last observations `[R][O]`, where somebody asks for them; empty otherwise.
    seen: Row,
}

/// How many columns of [`Episodes`] are kept when they end.
const KEPT: usize = 7;
// Their places.
const RET: usize = 0;
const LENGTH: usize = 2;
const COUNTED: usize = 3;
const METRIC: usize = 4;

/// These columns.
fn kept(of: &mut EpisodeAddresses) -> [&mut Address; KEPT] {
    [
        &mut of.ret,
        &mut of.sums,
        &mut of.length,
        &mut of.counted,
        &mut of.metric,
        &mut of.clipped,
        &mut of.stand,
    ]
}

impl Ended {
    fn new(sizes: &Sizes, num_envs: usize) -> Result<Self, MemoryError> {
        let s = sizes;
        let widths = [s.nagent, s.nreward, 1, 1, s.nmetric, s.nclipped, 4 * s.nground];
        Ok(Self {
            words: zeroed("ended episodes", (widths.iter().sum::<usize>() + 3) * num_envs)?,
            num_envs,
            widths,
            seen: Row { policy: Vec::new(), critic: Vec::new() },
        })
    }

    /// Keeps last observations from now on, of rows of these widths of an environment.
    pub(crate) fn keep_seen(&mut self, [wide, critic_wide]: [usize; 2]) -> Result<(), MemoryError> {
        let what = "last observations";
        self.seen = Row {
            policy: zeroed(what, wide.saturating_mul(self.num_envs))?,
            critic: zeroed(what, critic_wide.saturating_mul(self.num_envs))?,
        };
        Ok(())
    }

    /// The last observations.
    pub(crate) fn seen(&self) -> &Row {
        &self.seen
    }

    /// Enters them in the place of the episodes.
    pub(crate) fn enter(&mut self, args: &mut EnvArgs) {
        let at = self.at();
        args.last_ret = at.words;
        for (column, width) in kept(&mut args.episode).into_iter().zip(at.widths) {
            *column = args.last_ret;
            args.last_ret += (4 * width * self.num_envs) as Address;
        }
    }

    /// Where threads write them.
    pub(crate) fn at(&mut self) -> EndedAt {
        EndedAt {
            words: self.words.as_mut_ptr() as Address,
            num_envs: self.num_envs,
            widths: self.widths,
            seen: [&mut self.seen.policy, &mut self.seen.critic].map(|rows| {
                let width = rows.len() / self.num_envs.max(1);
                (rows.as_mut_ptr() as Address, width)
            }),
        }
    }

    /// A number of the column at this place; at [`KEPT`], of `last_ret`.
    fn word(&self, column: usize, row: usize, env: usize) -> u32 {
        let above = self.widths[..column].iter().sum::<usize>();
        self.words[(above + row) * self.num_envs + env]
    }

    pub(crate) fn ret(&self, agent: usize, env: usize) -> f32 {
        f32::from_bits(self.word(RET, agent, env))
    }

    pub(crate) fn length(&self, env: usize) -> u32 {
        self.word(LENGTH, 0, env)
    }

    /// Return of an episode that was counted; of several agents, the mean.
    pub(crate) fn mean_ret(&self, env: usize) -> f32 {
        f32::from_bits(self.word(KEPT, 0, env))
    }

    /// What the values of a metric of an episode that was counted came to.
    pub(crate) fn metric(&self, metric: usize, env: usize) -> f32 {
        f32::from_bits(self.word(METRIC, metric, env))
    }

    pub(crate) fn counted(&self, env: usize) -> bool {
        self.word(COUNTED, 0, env) != 0
    }
}

/// Where [`Ended`] is.
#[derive(Debug, Clone, Copy)]
pub(super) struct EndedAt {
    words: Address,
    num_envs: usize,
    widths: [usize; KEPT],
    /// Rows of observations and their widths; 0 where they are not asked for.
    seen: [(Address, usize); 2],
}

impl EndedAt {
    /// Copies environments `first..first + len`.
    ///
    /// # Safety
    /// `args` has the addresses of [`Episodes`] of these sizes and of observations, [`Ended`]
    /// lives, and no other thread touches these environments' entries meanwhile.
    pub(crate) unsafe fn keep(&self, args: &EnvArgs, first: usize, len: usize) {
        let mut from = args.episode;
        let mut to = (self.words as *mut u32).wrapping_add(first);
        for (column, width) in kept(&mut from).into_iter().zip(self.widths) {
            let mut from = (*column as *const u32).wrapping_add(first);
            for _ in 0..width {
                // SAFETY: the caller's promise; every entry has four bytes.
                unsafe { std::ptr::copy_nonoverlapping(from, to, len) };
                (from, to) = (from.wrapping_add(self.num_envs), to.wrapping_add(self.num_envs));
            }
        }
        for (from, (to, width)) in [args.obs, args.critic_obs].into_iter().zip(self.seen) {
            let from = (from as *const f32).wrapping_add(first * width);
            let to = (to as *mut f32).wrapping_add(first * width);
            // SAFETY: the caller's promise; nothing is copied where rows are not asked for.
            unsafe { std::ptr::copy_nonoverlapping(from, to, len * width) };
        }
    }
}

impl Work {
    pub(crate) fn new(
        spec: &EnvSpec,
        task: &Task,
        sizes: &Sizes,
        threads: usize,
    ) -> Result<Self, MemoryError> {
        let n = spec.num_envs;
        let [wide, critic_wide] = task.observations.world();
        let mut scratch = Vec::new();
        for _ in 0..threads {
            scratch.push(Scratch {
                registers: zeroed("expressions", task.scratch_len())?,
                inputs: zeroed("inputs of functions", task.natives.most_inputs() * BLOCK)?,
            });
        }
        let mut broken = zeroed::<u32>("flags", n)?;
        broken.clear();
        Ok(Self {
            broken,
            terms: zeroed("reward terms", spec.reward_names.len())?,
            row: Row {
                policy: zeroed("observations", wide)?,
                critic: zeroed("observations", critic_wide)?,
            },
            panicked: Marked::none_of(n.div_ceil(BLOCK))?,
            columns: StepBuffers::zeroed(sizes, n)?,
            ended: Ended::new(sizes, n)?,
            begins: Marked::none_of(n.div_ceil(BLOCK))?,
            scratch: PerThread::new(scratch),
        })
    }
}
