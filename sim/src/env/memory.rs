//! What expressions remember: written down at the end of every step, and for an episode's
//! first state.

use super::BatchEnv;
use super::share::Shared;
use super::step::{for_blocks, inputs};
use crate::task::expr::{BLOCK, Cell, Inputs};

/// Environments of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Whose {
    /// All of them.
    All,
    /// Those in the mask, which have a new episode.
    New,
}

/// Which cells are written, of whom.
#[derive(Debug, Clone, Copy)]
enum Round {
    /// All, at the end of a step.
    Step(Whose),
    /// Those of a level, for the first state of new episodes.
    Start(usize),
}

impl Round {
    fn has(self, cell: &Cell) -> bool {
        match self {
            Self::Step(_) => true,
            Self::Start(level) => cell.level() == Some(level),
        }
    }

    fn whose(self) -> Whose {
        match self {
            Self::Step(whose) => whose,
            Self::Start(_) => Whose::New,
        }
    }
}

impl BatchEnv {
    /// What expressions remember from step to step, as it is written, and how many
    /// numbers that is.
    pub fn remembered(&self) -> impl Iterator<Item = (String, usize)> {
        let cells = self.task.memory.cells().iter();
        cells.map(|c| (c.text(), c.rows().len()))
    }

    /// Writes down what expressions are to remember of the state as it is now.
    pub(super) fn remember(&mut self, whose: Whose) {
        if self.task.memory.width() > 0 {
            self.write_memory(Round::Step(whose));
        }
    }

    /// The same for environments in the mask whose episode begins, before their first
    /// observation.
    pub(super) fn begin_memory(&mut self) {
        let (n, memory) = (self.spec.num_envs, &self.task.memory);
        if memory.width() == 0 {
            return;
        }
        let none = -(self.spec.step_dt as f32);
        for env in (0..n).filter(|&e| self.work.mask[e] != 0) {
            for row in memory.times() {
                self.live.episodes.history[row * n + env] = none;
            }
        }
        for level in 0..memory.levels() {
            self.write_memory(Round::Start(level));
        }
    }

    /// Into a second memory, which cells do not read, and then all at once.
    fn write_memory(&mut self, round: Round) {
        let n = self.spec.num_envs;
        let state = self.physics.state();
        let (live, work) = (&mut self.live, &mut self.work);
        let cells = self.task.memory.cells();
        let next = Shared::new(&mut work.memory);
        for_blocks(
            &self.pool,
            n,
            &mut work.workers,
            &work.panicked,
            |worker, first, len| {
                let new = &work.mask[first..first + len];
                if round.whose() == Whose::New && new.iter().all(|m| *m == 0) {
                    return;
                }
                let inputs = inputs!(self, live, work, state, first, len);
                for cell in cells.iter().filter(|c| round.has(c)) {
                    let values = cell.eval(&inputs, &mut worker.scratch);
                    for (row, lanes) in cell.rows().zip(values.chunks_exact(BLOCK)) {
                        // SAFETY: this block's entries of the row.
                        let next = unsafe { next.part(row * n + first, len) };
                        next.copy_from_slice(&lanes[..len]);
                    }
                }
            },
        );
        if round.whose() == Whose::All {
            std::mem::swap(&mut live.episodes.history, &mut work.memory);
            return;
        }
        let rows = cells.iter().filter(|c| round.has(c)).flat_map(Cell::rows);
        for row in rows {
            for env in (0..n).filter(|&e| work.mask[e] != 0) {
                live.episodes.history[row * n + env] = work.memory[row * n + env];
            }
        }
    }
}
