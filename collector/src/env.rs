//! Environments as the collector needs them, so that other programs' and tests' can take
//! the place of a robot's.

use crate::CollectError;
use ostler_sim::config::TaskConfig;
use ostler_sim::env::{EnvError, EnvSpec, Injection};
use ostler_sim::physics::SnapshotError;
use ostler_sim::{BatchEnv, EpisodeStats, Groups, StepOut};

/// N environments stepped together; see [`BatchEnv`] for each contract. Those of a robot say so
/// by [`robot`](Self::robot), and have all else by it.
#[allow(missing_docs)]
pub trait Environments {
    fn spec(&self) -> &EnvSpec;

    /// # Errors
    /// Another process that has the environments cannot go on.
    fn reset(&mut self, spread: bool, obs: &mut Groups<&mut [f32]>) -> Result<(), CollectError>;

    fn begin_rollout(&mut self);

    /// # Errors
    /// As for [`reset`](Self::reset).
    fn step(&mut self, actions: &[f32], out: &mut StepOut<'_>) -> Result<(), CollectError>;

    /// Whether [`capture`](Self::capture) has all that a later step depends on. Where it has
    /// not, episodes begin anew after [`restore_range`](Self::restore_range), which takes
    /// over none, and after [`restore`](Self::restore), which a [`reset`](Self::reset) follows.
    fn keeps_state(&self) -> bool {
        true
    }

    fn take_stats(&mut self, into: &mut EpisodeStats);
    fn capture(&self, out: &mut Vec<u8>) -> Result<(), SnapshotError>;
    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError>;
    fn restore_range(
        &mut self,
        bytes: &[u8],
        spread: bool,
        obs: &mut Groups<&mut [f32]>,
    ) -> Result<usize, SnapshotError>;

    /// A robot's environments, where they are such: what follows is theirs.
    fn robot(&self) -> Option<&BatchEnv> {
        None
    }

    /// The same, to change.
    fn robot_mut(&mut self) -> Option<&mut BatchEnv> {
        None
    }

    /// The same, taken.
    fn into_robot(self: Box<Self>) -> Option<Box<BatchEnv>> {
        None
    }

    /// The number of the first in the batch that they are a part of.
    fn first(&self) -> u32 {
        self.robot().map_or(0, BatchEnv::first)
    }

    /// Makes them a part of a larger batch, of which this is the number of the first: their draws
    /// are those of the whole batch, and [`restore_range`](Self::restore_range) begins there. For
    /// before anything is asked of them. Whether they can be that.
    fn set_first(&mut self, first: u32) -> bool {
        self.first() == first
    }

    /// Steps and resets so far: keys the draws, and is the same in all parts of a batch that
    /// several threads collect from.
    fn clock(&self) -> u64 {
        self.robot().map_or(0, BatchEnv::clock)
    }

    /// Lets so many steps pass without anything happening.
    fn skip(&mut self, steps: u64) {
        if let Some(robot) = self.robot_mut() {
            robot.skip(steps);
        }
    }

    /// Appends what [`capture`](Self::capture) of the whole batch would write, from what it
    /// wrote of its parts in their order.
    ///
    /// # Errors
    /// They are not parts of one batch at one time, or cannot be; no memory.
    fn join(_parts: &[&[u8]], _out: &mut Vec<u8>) -> Result<(), SnapshotError>
    where
        Self: Sized,
    {
        Err(SnapshotError::Unfit("of environments that are no parts of a batch".into()))
    }

    /// Whether observations have their noise.
    fn set_noise(&mut self, on: bool) {
        if let Some(robot) = self.robot_mut() {
            robot.set_noise(on);
        }
    }

    /// Whether the task's events happen.
    fn set_events(&mut self, on: bool) {
        if let Some(robot) = self.robot_mut() {
            robot.set_events(on);
        }
    }

    /// What the physics does otherwise than MuJoCo.
    fn notes(&self) -> Vec<String> {
        self.robot().map_or_else(Vec::new, |robot| robot.physics().notes().to_vec())
    }

    /// The kernel that steps them.
    fn kernel(&self) -> Option<&str> {
        self.robot().and_then(|robot| robot.physics().kernel())
    }

    /// Goes on with other numbers in the task. Where there is no robot, a schedule has nothing
    /// to change.
    ///
    /// # Errors
    /// Anything but a number differs; a number that cannot be.
    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        self.robot_mut().map_or(Ok(()), |robot| robot.set_task(task))
    }

    /// Gives them their faults.
    ///
    /// # Errors
    /// A sentence about one that they cannot have.
    fn inject(&mut self, faults: Vec<Injection>) -> Result<(), String> {
        match self.robot_mut() {
            Some(robot) => robot.inject(faults).map_err(|e| e.to_string()),
            None if faults.is_empty() => Ok(()),
            None => Err("environments without a robot cannot be given faults".into()),
        }
    }
}

impl Environments for BatchEnv {
    fn spec(&self) -> &EnvSpec {
        self.spec()
    }
    fn reset(&mut self, spread: bool, obs: &mut Groups<&mut [f32]>) -> Result<(), CollectError> {
        self.reset(spread, obs);
        Ok(())
    }
    fn begin_rollout(&mut self) {
        self.begin_rollout();
    }
    fn step(&mut self, actions: &[f32], out: &mut StepOut<'_>) -> Result<(), CollectError> {
        self.step(actions, out);
        Ok(())
    }
    fn take_stats(&mut self, into: &mut EpisodeStats) {
        self.take_stats(into);
    }
    fn capture(&self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        self.capture(out)
    }
    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.restore(bytes)
    }
    fn restore_range(
        &mut self,
        bytes: &[u8],
        spread: bool,
        obs: &mut Groups<&mut [f32]>,
    ) -> Result<usize, SnapshotError> {
        self.restore_range(bytes, spread, obs)
    }

    fn robot(&self) -> Option<&BatchEnv> {
        Some(self)
    }
    fn robot_mut(&mut self) -> Option<&mut BatchEnv> {
        Some(self)
    }
    fn into_robot(self: Box<Self>) -> Option<Box<BatchEnv>> {
        Some(self)
    }
    fn join(parts: &[&[u8]], out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        Self::join(parts, out)
    }
}
