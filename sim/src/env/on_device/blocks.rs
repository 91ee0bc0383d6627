//! What lies where on the device.
//!
//! `state` is what a snapshot holds of the environments, then of the native worlds, each
//! in the snapshot's order, four bytes a number. `work` is what a rollout leaves behind.

use super::args::EnvArgs;
use crate::device::{Address, Block, Memory};
use crate::memory::MemoryError;
use crate::state::{EpisodeAddresses, Sizes, WorldAddresses};
use crate::task::emit::GRAVES;

/// Threads that sum the statistics of `n` environments.
pub(super) fn chunks(n: usize) -> usize {
    n.min(1024)
}

/// Memory of N environments.
#[derive(Debug)]
pub(super) struct Blocks {
    pub state: Block,
    /// A copy of it, to go back to.
    pub captured: Block,
    pub work: Block,
    /// Sums of statistics, one finished episode a chunk, number of graves.
    pub totals: Block,
    pub number: Option<Block>,
    /// Limits of velocities, then of positions.
    pub limits: Block,
    /// Bytes of `state` that are the environments' own.
    pub live: usize,
}

/// Hands out parts of a block, one after the other.
struct Parts {
    next: Address,
}

impl Parts {
    fn take(&mut self, elements: usize, bytes: usize) -> Address {
        let at = self.next;
        self.next += (elements * bytes) as Address;
        at
    }
}

/// Bytes of the three blocks for `n` environments.
fn lengths(s: &Sizes, n: usize) -> [usize; 3] {
    let chunks = chunks(n);
    let tally = s.tally();
    let state = (s.live() + s.physics()).saturating_mul(4 * n);
    let partial = (tally + 2) * chunks * 8;
    let work = (8 * tally + 4 * s.nu + 4 * 3)
        .saturating_mul(n)
        .saturating_add(partial + 4 * GRAVES * s.grave() + 64);
    let totals = 8 * (tally + 2) + 16 * chunks + 8;
    [state, work, totals]
}

impl Blocks {
    /// For `n` environments; `numbers`: entries of the table of the task's numbers.
    pub fn new(
        memory: &dyn Memory,
        s: &Sizes,
        n: usize,
        numbers: usize,
    ) -> Result<Self, MemoryError> {
        let [state, work, totals] = lengths(s, n);
        Ok(Self {
            state: memory.zeroed("the environments' state", state)?,
            captured: memory.zeroed("a copy of the environments' state", state)?,
            work: memory.zeroed("the environments' work", work)?,
            totals: memory.zeroed("statistics", totals)?,
            number: (numbers > 0)
                .then(|| memory.zeroed("the task's numbers", 4 * numbers))
                .transpose()?,
            limits: memory.zeroed("limits of joints", 4 * (s.nv + s.nq).max(1))?,
            live: 4 * n * s.live(),
        })
    }

    pub fn bytes(&self) -> usize {
        let number = self.number.as_ref().map_or(0, Block::bytes);
        let limits = self.limits.bytes();
        let kept = self.state.bytes() + self.captured.bytes() + self.work.bytes();
        kept + self.totals.bytes() + number + limits
    }

    /// Enters every address that does not change from step to step.
    pub fn enter(&self, a: &mut EnvArgs, s: &Sizes, n: usize) {
        let chunks = chunks(n);
        let mut p = Parts {
            next: self.state.address(),
        };
        a.episode = EpisodeAddresses::laid(s, n, |bytes| p.take(bytes, 1));
        a.physics.world = WorldAddresses::laid(s, n, |bytes| p.take(bytes, 1));

        let mut p = Parts {
            next: self.work.address(),
        };
        a.tally = p.take(s.tally() * n, 8);
        a.partial = p.take((s.tally() + 2) * chunks, 8);
        a.ctrl = p.take(s.nu * n, 4);
        a.physics.ctrl = a.ctrl;
        a.last_ret = p.take(3 * n, 4);
        a.grave = p.take(GRAVES * s.grave(), 4);
        a.chunks = chunks as i32;

        let mut p = Parts {
            next: self.totals.address(),
        };
        a.total = p.take(s.tally() + 2, 8);
        let _ = p.take(4 * chunks, 4);
        a.buried = p.next;
        a.physics.top_speed = self.limits.address();
        a.physics.top_place = self.limits.address() + 4 * s.nv as Address;
        a.number = self.number.as_ref().map_or(0, Block::address);
    }
}
