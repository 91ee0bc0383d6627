//! The environments of a run: a robot's, or others in their place.

use crate::run::error::RunError;
use ostler_collector::CollectError;
use ostler_collector::env::Environments;
use ostler_sim::config::TaskConfig;
use ostler_sim::env::{EnvError, EnvSpec, Injection};
use ostler_sim::physics::SnapshotError;
use ostler_sim::{BatchEnv, EpisodeStats, Groups, StepOut};

/// Environments of either kind.
pub enum RunEnv {
    /// Of a robot and a task.
    Robot(Box<BatchEnv>),
    /// Of Gymnasium, or of a program that uses Ostler as a library.
    Foreign(Box<dyn Environments>),
}

impl std::fmt::Debug for RunEnv {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Robot(env) => f.debug_tuple("Robot").field(env).finish(),
            Self::Foreign(_) => f.debug_tuple("Foreign").finish(),
        }
    }
}

/// Environments that can be watched and judged.
pub trait Watched: Environments {
    /// Whether observations have their noise.
    fn set_noise(&mut self, on: bool);
}

impl Watched for BatchEnv {
    fn set_noise(&mut self, on: bool) {
        self.set_noise(on);
    }
}

impl Watched for RunEnv {
    fn set_noise(&mut self, on: bool) {
        if let Self::Robot(env) = self {
            env.set_noise(on);
        }
    }
}

impl RunEnv {
    /// A robot's.
    ///
    /// # Errors
    /// There is none: `what` needs one.
    pub fn robot(self, what: &str) -> Result<BatchEnv, RunError> {
        match self {
            Self::Robot(env) => Ok(*env),
            Self::Foreign(_) => Err(no_robot(what)),
        }
    }

    /// The same without taking it.
    ///
    /// # Errors
    /// There is none: `what` needs one.
    pub fn as_robot(&self, what: &str) -> Result<&BatchEnv, RunError> {
        match self {
            Self::Robot(env) => Ok(env),
            Self::Foreign(_) => Err(no_robot(what)),
        }
    }

    /// Whether the task's events happen.
    pub fn set_events(&mut self, on: bool) {
        if let Self::Robot(env) = self {
            env.set_events(on);
        }
    }

    /// What the physics does otherwise than MuJoCo.
    pub fn notes(&self) -> Vec<String> {
        match self {
            Self::Robot(env) => env.physics().notes().to_vec(),
            Self::Foreign(_) => Vec::new(),
        }
    }

    /// The kernel that steps them.
    pub fn kernel(&self) -> Option<&str> {
        match self {
            Self::Robot(env) => env.physics().kernel(),
            Self::Foreign(_) => None,
        }
    }

    /// Goes on with other numbers in the task.
    ///
    /// # Errors
    /// Anything but a number differs; a number that cannot be.
    pub fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        match self {
            Self::Robot(env) => env.set_task(task),
            // A schedule has nothing there to change.
            Self::Foreign(_) => Ok(()),
        }
    }

    /// Gives them their faults.
    ///
    /// # Errors
    /// A sentence about one that they cannot have.
    pub fn inject(&mut self, faults: Vec<Injection>) -> Result<(), String> {
        match self {
            Self::Robot(env) => env.inject(faults).map_err(|e| e.to_string()),
            Self::Foreign(_) if faults.is_empty() => Ok(()),
            Self::Foreign(_) => Err("environments without a robot cannot be given faults".into()),
        }
    }
}

/// Why something is refused to environments that are no robot's.
pub fn no_robot(what: &str) -> RunError {
    RunError::Usage(format!(
        "{what} needs a robot; these environments ([gymnasium], [custom]) have none: train, eval and plot take them"
    ))
}

impl RunEnv {
    fn envs(&self) -> &dyn Environments {
        match self {
            Self::Robot(env) => &**env,
            Self::Foreign(env) => &**env,
        }
    }

    fn envs_mut(&mut self) -> &mut dyn Environments {
        match self {
            Self::Robot(env) => &mut **env,
            Self::Foreign(env) => &mut **env,
        }
    }
}

impl Environments for RunEnv {
    fn spec(&self) -> &EnvSpec {
        self.envs().spec()
    }

    fn reset(&mut self, spread: bool, obs: &mut Groups<&mut [f32]>) -> Result<(), CollectError> {
        self.envs_mut().reset(spread, obs)
    }

    fn begin_rollout(&mut self) {
        self.envs_mut().begin_rollout();
    }

    fn step(&mut self, actions: &[f32], out: &mut StepOut<'_>) -> Result<(), CollectError> {
        self.envs_mut().step(actions, out)
    }

    fn keeps_state(&self) -> bool {
        self.envs().keeps_state()
    }

    fn take_stats(&mut self, into: &mut EpisodeStats) {
        self.envs_mut().take_stats(into);
    }

    fn capture(&self, out: &mut Vec<u8>) -> Result<(), SnapshotError> {
        self.envs().capture(out)
    }

    fn restore(&mut self, bytes: &[u8]) -> Result<(), SnapshotError> {
        self.envs_mut().restore(bytes)
    }

    fn restore_range(
        &mut self,
        bytes: &[u8],
        spread: bool,
        obs: &mut Groups<&mut [f32]>,
    ) -> Result<usize, SnapshotError> {
        self.envs_mut().restore_range(bytes, spread, obs)
    }
}
