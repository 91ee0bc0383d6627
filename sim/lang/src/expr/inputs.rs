//! Inputs of expressions.

use super::dag::{Seen, Source};
use super::ops::Register;
use ostler_engine::kernels::Ground;
use ostler_engine::phases::{BLOCK, Relief, heights};
use ostler_engine::physics::{State, ground};
use ostler_model::terrain::Terrain;

/// Everything an expression reads, of N environments. Buffers are `[k][N]`.
#[derive(Debug, Clone, Copy)]
pub struct Buffers<'a> {
    /// Physics state.
    pub state: &'a State,
    /// Controls `[nu][N]`.
    pub ctrl: &'a [f32],
    /// Actions of this step `[A][N]`, clipped, before scaling.
    pub action: &'a [f32],
    /// Actions of the step before `[A][N]`; zero after a reset.
    pub last_action: &'a [f32],
    /// Values that expressions keep of earlier steps `[k][N]` ([`super::History`]).
    pub history: &'a [f32],
    /// Numbers of events `[k][N]`, of those that are read ([`super::EventNumbers`]).
    pub shown: &'a [f32],
    /// Commands, all components of all commands in order `[c][N]`.
    pub command: &'a [f32],
    /// Random numbers of starts `[k][N]` ([`super::Draws`]).
    pub random: &'a [f32],
    /// Outputs of native functions `[k][N]`.
    pub native: &'a [f32],
    /// Readings of scans `[k][N]`.
    pub scan: &'a [f32],
    /// Where on a terrain episodes began (m), and its level `[4][N]`.
    pub stand: &'a [f32],
    /// What is read of the reference motion `[k][N]`.
    pub motion: &'a [f32],
    /// The ground.
    pub terrain: Option<&'a Terrain>,
    /// Parameters, the same for all environments.
    pub params: &'a [f32],
    /// Control steps since the episode's start `[N]`.
    pub step: &'a [u32],
    /// Control step (s).
    pub step_dt: f32,
    /// Steps until the time-out.
    pub max_steps: u32,
}

impl<'a> Buffers<'a> {
    /// Environments `first..first + len`, at most [`BLOCK`] of them.
    pub fn block(&self, first: usize, len: usize) -> Inputs<'a> {
        let columns = Columns {
            stride: self.state.num_envs,
            world: self.state.floats().map(|x| Column::of(x)),
            ctrl: Column::of(self.ctrl),
            action: Column::of(self.action),
            last_action: Column::of(self.last_action),
            history: Column::of(self.history),
            shown: Column::of(self.shown),
            command: Column::of(self.command),
            random: Column::of(self.random),
            native: Column::of(self.native),
            scan: Column::of(self.scan),
            stand: Column::of(self.stand),
            motion: Column::of(self.motion),
            ground: ground(self.terrain),
            step: Column::of(self.step),
            params: self.params,
            step_dt: self.step_dt,
            max_steps: self.max_steps,
        };
        // SAFETY: the buffers are borrowed for 'a.
        unsafe { Inputs::new(columns, first, len) }
    }
}

/// A buffer, of which other threads may be writing other environments' entries.
#[derive(Debug, Clone, Copy)]
pub struct Column<T> {
    start: *const T,
    len: usize,
}

// SAFETY: it is read through `part`, whose callers promise that nobody writes what is read.
unsafe impl<T: Sync> Sync for Column<T> {}
// SAFETY: as above.
unsafe impl<T: Sync> Send for Column<T> {}

impl<T> Column<T> {
    pub fn of(buffer: &[T]) -> Self {
        Self { start: buffer.as_ptr(), len: buffer.len() }
    }

    /// Entries `first..first + len`.
    ///
    /// # Safety
    /// The buffer lives, and for 'a nobody writes these entries.
    unsafe fn part<'a>(&self, first: usize, len: usize) -> &'a [T] {
        assert!(first <= self.len && len <= self.len - first, "a row that the buffer has not");
        // SAFETY: within the buffer by the line above; the rest by the caller's promise.
        unsafe { std::slice::from_raw_parts(self.start.add(first), len) }
    }
}

/// [`Buffers`], of which other threads may be writing entries.
#[derive(Debug, Clone, Copy)]
pub struct Columns<'a> {
    /// Environments in them.
    pub stride: usize,
    /// In the order of [`Seen::ALL`].
    pub world: [Column<f32>; Seen::ALL.len()],
    pub ctrl: Column<f32>,
    pub action: Column<f32>,
    pub last_action: Column<f32>,
    pub history: Column<f32>,
    pub shown: Column<f32>,
    pub command: Column<f32>,
    pub random: Column<f32>,
    pub native: Column<f32>,
    pub scan: Column<f32>,
    pub stand: Column<f32>,
    pub motion: Column<f32>,
    /// Its heights are as many as it says, or there are none.
    pub ground: Ground,
    pub step: Column<u32>,
    pub params: &'a [f32],
    pub step_dt: f32,
    pub max_steps: u32,
}

/// Inputs of an expression from one block of environments.
#[derive(Debug, Clone, Copy)]
pub struct Inputs<'a> {
    columns: Columns<'a>,
    first: usize,
    len: usize,
}

impl<'a> Inputs<'a> {
    /// Environments `first..first + len`.
    ///
    /// # Safety
    /// For 'a the buffers live, and nobody writes the block's entries while an expression
    /// is evaluated.
    pub unsafe fn new(columns: Columns<'a>, first: usize, len: usize) -> Self {
        assert!(len <= BLOCK, "a block of {len} environments");
        Self { columns, first, len }
    }

    /// One environment of the block.
    pub fn narrowed(self, env: usize) -> Self {
        assert!((self.first..self.first + self.len).contains(&env));
        Self { first: env, len: 1, ..self }
    }

    /// What an operation reads of the ground at places of the world; zeros without one.
    pub(super) fn relief(&self, what: Relief, [x, y]: [&Register; 2], out: &mut Register) {
        match self.columns.ground.height {
            0 => *out = [0.0; BLOCK],
            // SAFETY: the promise of `new`.
            _ => unsafe { heights(&self.columns.ground, what, x, y, out) },
        }
    }

    /// Copies a row's lanes; lanes past the block's end are zero.
    pub(super) fn load(&self, source: Source, row: usize, out: &mut Register) {
        let columns = &self.columns;
        let column = match source {
            Source::World(column) => &columns.world[column as usize],
            Source::Ctrl => &columns.ctrl,
            Source::Action => &columns.action,
            Source::LastAction => &columns.last_action,
            Source::History => &columns.history,
            Source::Shown => &columns.shown,
            Source::Command => &columns.command,
            Source::Random => &columns.random,
            Source::Native => &columns.native,
            Source::Scan => &columns.scan,
            Source::Stand => &columns.stand,
            Source::Motion => &columns.motion,
            Source::Param => return *out = [columns.params[row]; BLOCK],
            Source::StepDt => return *out = [columns.step_dt; BLOCK],
            Source::MaxSteps => return *out = [columns.max_steps as f32; BLOCK],
            Source::Step => {
                *out = [0.0; BLOCK];
                // SAFETY: the promise of `new`.
                let steps = unsafe { columns.step.part(self.first, self.len) };
                for (o, &s) in out.iter_mut().zip(steps) {
                    *o = s as f32;
                }
                return;
            }
        };
        // SAFETY: the promise of `new`; only entries of the block are borrowed.
        let lanes = unsafe { column.part(row * columns.stride + self.first, self.len) };
        match <&Register>::try_from(lanes) {
            Ok(full) => *out = *full,
            Err(_) => {
                *out = [0.0; BLOCK];
                out[..lanes.len()].copy_from_slice(lanes);
            }
        }
    }
}
