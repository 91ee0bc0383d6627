//! Buffers that live as long as the environments.

use super::{EnvSpec, EpisodeStats};
use crate::memory::{MemoryError, zeroed};
use crate::model::Model;
use crate::physics::Shortfalls;
use crate::state::{Episodes, Sizes};
use crate::task::Task;
use crate::task::expr::{BLOCK, Scratch};
use crate::task::score::Judged;
use std::sync::atomic::AtomicBool;

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
    pub fn new(spec: &EnvSpec, task: &Task) -> Result<Self, MemoryError> {
        let [nobs, ncritic] = task.observations.world();
        let sizes = Sizes {
            nagent: spec.agents_per_env(),
            naction: task.actions.outputs(),
            ncommand: task.commands.width(),
            nhistory: task.memory.width(),
            nobs,
            ncritic,
            nreward: spec.reward_names.len(),
            ..Sizes::default()
        };
        Ok(Self {
            clock: 0,
            began: 0,
            episodes: Episodes::zeroed(&sizes, spec.num_envs)?,
            stats: EpisodeStats::with_room(spec)?,
            taken: Shortfalls::default(),
        })
    }
}

/// What one step needs and leaves behind for nobody.
#[derive(Debug)]
pub(super) struct Work {
    /// Controls `[nu][N]`.
    pub ctrl: Vec<f32>,
    /// What expressions will remember of this step `[k][N]`.
    pub memory: Vec<f32>,
    /// Starts of episodes `[nq][N]`.
    pub qpos: Vec<f32>,
    /// Starts of episodes `[nv][N]`.
    pub qvel: Vec<f32>,
    /// This step's rewards of every agent `[M][N]`.
    pub reward: Vec<f32>,
    /// Cause that ended the task, 0 for none `[N]`.
    pub terminated: Vec<u32>,
    /// Cause of an extra truncation, 0 for none `[N]`.
    pub truncated: Vec<u32>,
    /// Fault bits of this step `[N]`.
    pub fault: Vec<u32>,
    /// 1 where a new episode begins `[N]`.
    pub mask: Vec<u8>,
    /// Environments that broke in this step (up to N).
    pub broken: Vec<u32>,
    /// One environment's reward terms.
    pub terms: Vec<f32>,
    /// One environment's observations; the critics' is empty where they see the policies'.
    pub row: Row,
    /// Where a loop panicked.
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

/// Blocks of environments whose part of a loop panicked.
#[derive(Debug)]
pub(super) struct Panicked {
    /// Whether there are any.
    pub any: AtomicBool,
    /// By block.
    pub blocks: Vec<AtomicBool>,
}

/// What one thread works in.
#[derive(Debug)]
pub(super) struct Worker {
    pub scratch: Scratch,
    pub judged: Judged,
    /// One environment's start.
    pub qpos: Vec<f32>,
    pub qvel: Vec<f32>,
}

impl Work {
    pub fn new(
        spec: &EnvSpec,
        model: &Model,
        task: &Task,
        threads: usize,
    ) -> Result<Self, MemoryError> {
        let n = spec.num_envs;
        let [wide, critic_wide] = task.observations.world();
        let f = |what: &str, k: usize| zeroed::<f32>(what, k.saturating_mul(n));
        let mut workers = Vec::new();
        for _ in 0..threads.min(n.div_ceil(BLOCK)).max(1) {
            workers.push(Worker {
                scratch: Scratch {
                    registers: zeroed("expressions", task.scratch_len())?,
                },
                judged: Judged::new(spec.agents_per_env()),
                qpos: zeroed("positions", model.nq)?,
                qvel: zeroed("velocities", model.nv)?,
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
            ctrl: f("controls", model.nu())?,
            memory: f("what expressions remember", task.memory.width())?,
            qpos: f("positions", model.nq)?,
            qvel: f("velocities", model.nv)?,
            reward: f("rewards", spec.agents_per_env())?,
            terminated: zeroed("flags", n)?,
            truncated: zeroed("flags", n)?,
            fault: zeroed("flags", n)?,
            mask: zeroed("flags", n)?,
            workers,
        })
    }
}
