//! N copies of a model, stepped together.

pub mod crowded;
mod error;
pub mod evaluate;
pub mod evidence;
pub mod fault;
mod ground;
pub mod limits;
pub mod mirror;
pub mod native;
pub mod per_thread;
pub mod pool;
pub mod record;
mod stepper;

pub use crate::state::State;
pub use error::PhysicsError;
pub use evidence::{Evidence, Part};
pub use ground::ground;
pub use limits::Limits;
pub use ostler_base::snapshot::SnapshotError;
use serde::{Deserialize, Serialize};
pub use stepper::{StepArgs, Stepper};

/// Two geoms that are inside each other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Overlap {
    /// Their numbers.
    pub geoms: [usize; 2],
    /// How deep (m), 1 at most.
    pub depth: f64,
}

/// N identical worlds.
///
/// State is struct-of-arrays with the environment index fastest: entry `i` of
/// environment `e` lies at `i * num_envs + e`. Nothing here panics on numbers
/// that are not finite: a world that cannot go on gets a bit in [`State::fault`]
/// and stays as it was until it is reset.
pub trait Physics: Send {
    /// The state after the last `step` or `reset`.
    fn state(&self) -> &State;

    /// Advances every world by `substeps` time steps with constant controls.
    ///
    /// `ctrl` is `[nu][N]`. Controls are clamped to their range; a control that is
    /// not finite sets [`fault::CONTROL`] and counts as zero.
    fn step(&mut self, ctrl: &[f32], substeps: usize);

    /// Delays of actuators' controls in the physics steps of the next [`step`](Self::step),
    /// of robots whose task draws them anew within an episode: `[substeps][groups][N]`, in
    /// physics steps. Without them such actuators have their least delay.
    fn delay(&mut self, steps: &[f32]) {
        let _ = steps;
    }

    /// Activations of actuators `[na][N]` with which worlds begin at the next
    /// [`reset`](Self::reset); without them they are zero.
    fn activate(&mut self, act: &[f32]) {
        let _ = act;
    }

    /// Puts the worlds with `mask[e] != 0` at rest contacts, positions `qpos`
    /// `[nq][N]` and velocities `qvel` `[nv][N]`; clears their faults. The other
    /// worlds keep every bit of their state.
    fn reset(&mut self, mask: &[u32], qpos: &[f32], qvel: &[f32]);

    /// Steps worlds block by block, so that a control step is one loop over blocks; none
    /// where worlds have more than their columns or all are stepped at once.
    fn stepper(&self) -> Option<&dyn Stepper> {
        None
    }

    /// Arguments of [`stepper`](Self::stepper), but for controls and substeps.
    fn step_args(&mut self) -> Option<StepArgs> {
        None
    }

    /// Time step (s).
    fn timestep(&self) -> f64;

    /// The kernel that steps the worlds, as `sim.kernel` takes it; none where an
    /// engine has only one.
    fn kernel(&self) -> Option<&str> {
        None
    }

    /// Whether [`State::qacc`] and [`State::sensordata`] are measured; they stay zero
    /// otherwise.
    fn measures(&self) -> bool {
        false
    }

    /// Whether every world may have numbers of its own ([`Model::varied`](ostler_model::Model)).
    fn varies(&self) -> bool {
        false
    }

    /// The columns, where tasks may write numbers that vary and velocities of bodies that are
    /// pushed, [`State::stale`] saying of which worlds; and poses and frames of worlds that are
    /// [reset](Self::reset) next, for expressions of their starts.
    fn columns_mut(&mut self) -> Option<&mut State> {
        None
    }

    /// Shortfalls since the worlds were built.
    fn shortfalls(&self) -> Shortfalls {
        Shortfalls::default()
    }

    /// Why the world `env`, whose fault bits say that it broke in the last step, did.
    /// `ctrl` and `substeps` are that step's. Takes its time: for few worlds.
    fn diagnose(&self, env: usize, ctrl: &[f32], substeps: usize) -> Option<Evidence> {
        let _ = substeps;
        evidence::of_state(self.state(), env, ctrl, None)
    }

    /// Of each pose the pairs of geoms that are more than `least` (m) inside each other, of those
    /// that can touch, the deepest first; none where an engine does not tell. The shared ground
    /// is not there.
    fn inside(&self, poses: &[Vec<f32>], least: f64) -> Vec<Vec<Overlap>> {
        let _ = (poses, least);
        Vec::new()
    }

    /// Whether [`poke`](Self::poke) does anything.
    fn can_be_poked(&self) -> bool {
        false
    }

    /// Overwrites a position or velocity of one world, with whatever number, for the
    /// next step to start from: for drills.
    fn poke(&mut self, env: usize, part: Part, value: f32) {
        let _ = (env, part, value);
    }

    /// Differences of this engine from MuJoCo with this model, one line each:
    /// for `ostler check` and the run's log.
    fn notes(&self) -> &[String] {
        &[]
    }

    /// Appends everything that is needed to go on with the same bits to `out`. Nothing is
    /// allocated where `out` has room: cheap enough for every iteration.
    ///
    /// # Errors
    /// There is no memory; the engine has no snapshots.
    fn capture(&self, out: &mut Vec<u8>) -> Result<(), SnapshotError>;

    /// Goes back to a captured state of the same robot and N.
    ///
    /// # Errors
    /// It does not fit; nothing has changed then.
    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError>;

    /// Takes over worlds of the same robot that were captured in another number: as many
    /// of those from number `from` on as there are, with every bit of their state. The
    /// others are to be reset by the caller. Returns how many were taken over.
    ///
    /// # Errors
    /// They do not fit; nothing has changed then.
    fn restore_range(&mut self, bytes: &[u8], from: usize) -> Result<usize, SnapshotError> {
        let _ = (bytes, from);
        Err(SnapshotError::Unfit("this engine cannot take over worlds of another batch".into()))
    }

    /// The state, to be overwritten by a snapshot or a device; none where worlds have more
    /// than their columns.
    fn state_mut(&mut self) -> Option<&mut State> {
        None
    }
}

/// Steps that were taken, but not as the model asks, summed over all worlds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortfalls {
    /// Control steps in which a contact found no room.
    pub contact_overflow: u64,
    /// Time steps whose constraint solver stopped at its cap on iterations.
    pub unsolved: u64,
}

impl Shortfalls {
    /// What contacts without room mean, and the remedy; none where there were none.
    #[must_use]
    pub fn left_out(self) -> Option<String> {
        (self.contact_overflow > 0).then(|| {
            format!(
                "in {} control steps more contacts touched than the physics has room for, and some \
                 were left out. Fewer or simpler geoms, or contype and conaffinity, leave fewer \
                 contacts",
                self.contact_overflow
            )
        })
    }

    /// The counts since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            contact_overflow: self.contact_overflow.saturating_sub(earlier.contact_overflow),
            unsolved: self.unsolved.saturating_sub(earlier.unsolved),
        }
    }
}
