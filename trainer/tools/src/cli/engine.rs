//! `--backend`, for the commands that take a model file.

use clap::ValueEnum;
use ostler_sim::config::{Backend, SimConfig};
use ostler_sim::physics::PhysicsError;
use ostler_sim::physics::evaluate::{Evaluation, Precision, States};
use ostler_sim::physics::native::{self, EvalOptions};
use ostler_sim::physics::pool::Pool;
#[cfg(feature = "rapier")]
use ostler_sim::physics::rapier;
use ostler_sim::{Model, Physics};
use std::sync::Arc;

/// `--backend`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum EngineArg {
    /// MuJoCo's semantics, batched
    Native,
    /// rapier3d multibodies
    Rapier,
}

/// `--backend`, where a policy is watched or judged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum JudgeArg {
    /// MuJoCo's semantics, batched
    Native,
    /// rapier3d multibodies
    Rapier,
    /// MuJoCo itself, in a Python that has it (slow)
    Mujoco,
}

impl JudgeArg {
    /// The engine of ours that is meant; none for MuJoCo.
    pub(crate) fn backend(self) -> Option<Backend> {
        match self {
            Self::Native => Some(Backend::Native),
            Self::Rapier => Some(Backend::Rapier),
            Self::Mujoco => None,
        }
    }

    /// As it is written.
    pub(crate) fn name(self) -> &'static str {
        self.backend().map_or("mujoco", Backend::name)
    }
}

impl EngineArg {
    /// The same as a value of `sim.backend`.
    pub(crate) fn backend(self) -> Backend {
        match self {
            Self::Native => Backend::Native,
            Self::Rapier => Backend::Rapier,
        }
    }

    /// As it is written in `sim.backend`.
    pub(crate) fn name(self) -> &'static str {
        self.backend().name()
    }

    /// N worlds in the initial pose, and what their kernel is called.
    ///
    /// # Errors
    /// The engine cannot be set up for this model.
    pub(crate) fn worlds(
        self,
        model: &Arc<Model>,
        num_envs: usize,
        threads: usize,
        config: &SimConfig,
    ) -> Result<(Box<dyn Physics>, String), PhysicsError> {
        let pool = Arc::new(Pool::new(threads)?);
        match self {
            Self::Native => {
                let worlds = native::new(model, config, num_envs, &pool)?;
                let kernel = worlds.kernel().to_string();
                Ok((Box::new(worlds), kernel))
            }
            #[cfg(not(feature = "rapier"))]
            Self::Rapier => Err(PhysicsError::Absent { engine: "rapier" }),
            #[cfg(feature = "rapier")]
            Self::Rapier => {
                let worlds = rapier::new(model, config, num_envs, &pool)?;
                Ok((worlds, "rapier".to_string()))
            }
        }
    }

    /// Evaluates the dynamics at `states`, whose arrays fit the model.
    ///
    /// # Errors
    /// The engine cannot be set up for this model.
    pub(crate) fn evaluate(
        self,
        model: &Arc<Model>,
        precision: Precision,
        states: &States<'_>,
    ) -> Result<Evaluation, PhysicsError> {
        match self {
            Self::Native => native::evaluate(model, &EvalOptions::default(), precision, states),
            #[cfg(not(feature = "rapier"))]
            Self::Rapier => Err(PhysicsError::Absent { engine: "rapier" }),
            #[cfg(feature = "rapier")]
            Self::Rapier => {
                let pool = Arc::new(Pool::new(Pool::available())?);
                rapier::evaluate(model, &SimConfig::default(), &pool, states)
            }
        }
    }
}
