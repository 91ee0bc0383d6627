//! Buffers that live as long as the environments.

use super::{EnvSpec, EpisodeStats};
use crate::memory::{MemoryError, zeroed};
use crate::physics::Shortfalls;
use crate::state::{Episodes, Sizes, StepBuffers};
use crate::task::Task;
use crate::task::expr::{BLOCK, Scratch};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};

/// What the future depends on, besides the physics: a snapshot holds it all.
#[derive(Debug)]
pub(super) struct Live {
    /// Steps and resets of the whole batch so far: keys the draws.
    pub clock: u64,
    /// The clock when the rollout began.
    pub began: u64,
    /// What each episode has been through.
    pub episodes: Episodes,
    /// Statistics since they were last taken.
    pub stats: EpisodeStats,
    /// The physics' shortfalls when they were last taken.
    pub taken: Shortfalls,
}

impl Live {
    pub fn new(spec: &EnvSpec, sizes: &Sizes) -> Result<Self, MemoryError> {
        Ok(Self {
            clock: 0,
            began: 0,
            episodes: Episodes::zeroed(sizes, spec.num_envs)?,
            stats: EpisodeStats::with_room(spec)?,
            taken: Shortfalls::default(),
        })
    }
}

/// What one step needs and leaves behind for nobody.
#[derive(Debug)]
pub(super) struct Work {
    /// What the kernels hand on from phase to phase.
    pub columns: StepBuffers,
    /// 1 where a new episode begins `[N]`, as the physics takes it.
    pub begins: Vec<u8>,
    /// Environments that broke in this step (up to N).
    pub broken: Vec<u32>,
    /// One environment's reward terms.
    pub terms: Vec<f32>,
    /// One environment's observations; the critics' is empty where they see the policies'.
    pub row: Row,
    /// Where a phase panicked.
    pub panicked: Panicked,
    /// One per thread.
    pub workers: Vec<Worker>,
}

/// One environment's observations.
#[derive(Debug)]
pub(super) struct Row {
    pub policy: Vec<f32>,
    pub critic: Vec<f32>,
}

/// Blocks of environments of which a phase panicked.
#[derive(Debug)]
pub(super) struct Panicked {
    /// Whether there are any.
    any: AtomicBool,
    /// By block.
    blocks: Vec<AtomicBool>,
}

impl Panicked {
    pub fn mark(&self, block: usize) {
        self.blocks[block].store(true, Relaxed);
        self.any.store(true, Relaxed);
    }

    pub fn is_marked(&self, block: usize) -> bool {
        self.any.load(Relaxed) && self.blocks[block].load(Relaxed)
    }

    /// Forgets them all; hands each to `f`.
    pub fn take(&mut self, mut f: impl FnMut(usize)) {
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

/// What one thread works in.
#[derive(Debug)]
pub(super) struct Worker {
    pub scratch: Scratch,
}

impl Work {
    pub fn new(
        spec: &EnvSpec,
        task: &Task,
        sizes: &Sizes,
        threads: usize,
    ) -> Result<Self, MemoryError> {
        let n = spec.num_envs;
        let [wide, critic_wide] = task.observations.world();
        let mut workers = Vec::new();
        for _ in 0..threads.min(n.div_ceil(BLOCK)).max(1) {
            workers.push(Worker {
                scratch: Scratch {
                    registers: zeroed("expressions", task.scratch_len())?,
                },
            });
        }
        let mut broken = zeroed::<u32>("flags", n)?;
        broken.clear();
        let blocks = n.div_ceil(BLOCK);
        let mut flags = Vec::new();
        flags.try_reserve_exact(blocks).map_err(|_| MemoryError {
            what: "flags".to_string(),
            bytes: blocks,
        })?;
        flags.resize_with(blocks, || AtomicBool::new(false));
        Ok(Self {
            broken,
            terms: zeroed("reward terms", spec.reward_names.len())?,
            row: Row {
                policy: zeroed("observations", wide)?,
                critic: zeroed("observations", critic_wide)?,
            },
            panicked: Panicked {
                any: AtomicBool::new(false),
                blocks: flags,
            },
            columns: StepBuffers::zeroed(sizes, n)?,
            begins: zeroed("flags", n)?,
            workers,
        })
    }
}
