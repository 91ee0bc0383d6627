//! Layout of the device's memory.
//!
//! `state` is the environments' part of a snapshot, then the native worlds', each
//! in the snapshot's order, four bytes a number. `work` holds the results of a rollout.

use crate::env::LISTED;
use crate::task::emit::BREAKS;
use ostler_base::memory::MemoryError;
use ostler_engine::device::{Address, Block, Memory};
use ostler_engine::kernels::EnvArgs;
use ostler_engine::state::{
    EpisodeAddresses, STEP, Sizes, StepBufferAddresses, WorldAddresses, width,
};
use ostler_engine::stats::{STATS, StatSizes};

/// Threads that sum the statistics of `n` environments.
pub(super) fn chunks(n: usize) -> usize {
    n.min(1024)
}

/// How many of the last episodes a device keeps: the listed ones and those of one step, at least.
/// A power of two, so that places go on where the counter of episodes begins anew.
pub(super) fn listed(n: usize) -> usize {
    (n + LISTED).next_power_of_two()
}

/// Memory of N environments.
#[derive(Debug)]
pub(super) struct Blocks {
    pub state: Block,
    /// A copy of it, to go back to.
    pub captured: Block,
    pub work: Block,
    /// Sums of statistics, numbers of break records and of episodes, the last of these.
    pub totals: Block,
    /// The task's tables, then its expressions' numbers.
    pub numbers: Block,
    /// Limits of velocities, then of positions.
    pub limits: Block,
    /// Heights of the ground.
    pub ground: Block,
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
    let work = (8 * tally + 4 * width(&STEP, s) + 4 * 3)
        .saturating_mul(n)
        .saturating_add(partial + 4 * BREAKS * s.break_record() + 64);
    let totals = 8 * (tally + 2) + 8 + 16 * listed(n);
    [state, work, totals]
}

impl Blocks {
    /// For `n` environments; `numbers`: bytes of the task's; `heights`: of the ground and its roof.
    pub(crate) fn new(
        memory: &dyn Memory,
        s: &Sizes,
        n: usize,
        numbers: usize,
        heights: usize,
    ) -> Result<Self, MemoryError> {
        let [state, work, totals] = lengths(s, n);
        Ok(Self {
            state: memory.zeroed("the environments' state", state)?,
            captured: memory.zeroed("a copy of the environments' state", state)?,
            work: memory.zeroed("the environments' work", work)?,
            totals: memory.zeroed("statistics", totals)?,
            numbers: memory.zeroed("the task's numbers", numbers)?,
            limits: memory.zeroed("limits of joints", 4 * (s.nv + s.nq).max(1))?,
            ground: memory.zeroed("the ground", (4 * heights).max(4))?,
            live: 4 * n * s.live(),
        })
    }

    pub(crate) fn bytes(&self) -> usize {
        let limits = self.limits.bytes() + self.ground.bytes();
        let number = self.numbers.bytes();
        let kept = self.state.bytes() + self.captured.bytes() + self.work.bytes();
        kept + self.totals.bytes() + number + limits
    }

    /// Enters every address that does not change from step to step.
    pub(crate) fn enter(&self, a: &mut EnvArgs, s: &Sizes, n: usize) {
        let chunks = chunks(n);
        let mut p = Parts { next: self.state.address() };
        a.episode = EpisodeAddresses::laid(s, n, |bytes| p.take(bytes, 1));
        a.physics.world = WorldAddresses::laid(s, n, |bytes| p.take(bytes, 1));

        let mut p = Parts { next: self.work.address() };
        a.tally = p.next;
        let sizes = StatSizes::on_device(s);
        a.stats = STATS.each_ref().map(|s| p.take(s.size(&sizes) * n, 8));
        a.partial = p.take((s.tally() + 2) * chunks, 8);
        a.buffers = StepBufferAddresses::laid(s, n, |bytes| p.take(bytes, 1));
        a.physics.ctrl = a.buffers.ctrl;
        a.physics.delays = a.buffers.step_lag;
        a.last_ret = p.take(3 * n, 4);
        a.breaks = p.take(BREAKS * s.break_record(), 4);
        a.chunks = chunks as i32;

        let mut p = Parts { next: self.totals.address() };
        a.total = p.take(s.tally() + 2, 8);
        a.broken = p.take(1, 4);
        a.listed = p.take(1, 4);
        a.list = p.next;
        a.list_mask = listed(n) as u32 - 1;
        a.physics.top_speed = self.limits.address();
        a.physics.top_place = self.limits.address() + 4 * s.nv as Address;
    }
}
