//! From rollouts to better policies.
//!
//! Reading order: [`Learner`] -> [`registry`] -> [`ppo::Ppo`] -> [`policy::ActorCritic`] -> `nn`
//! (layers with a backward pass written by hand, the flat parameter tensor, Adam).
//! Where agents have policies of their own, a [`team`] has a learner for each.

pub mod ars;
mod begun;
mod choice;
mod error;
pub mod fault;
pub mod network;
pub mod nn;
pub mod normalizer;
pub mod off_policy;
pub mod policy;
pub mod ppo;
mod published;
pub mod registry;
pub mod returns;
pub mod self_play;
pub mod state;
mod stats;
pub mod symmetry;
pub mod team;
mod tensors;
#[cfg(test)]
pub(crate) mod testing;
mod turn;

pub use ars::ArsConfig;
pub use begun::check_same_network;
pub use choice::{alone_only, build, build_policy};
pub use error::LearnError;
pub use fault::{UpdateFault, UpdateTarget};
pub use network::Network;
pub use nn::device::program as device_program;
pub use nn::host::half::Half;
pub use off_policy::{OffPolicy, SacConfig, Td3Config};
pub use policy::{ActorConfig, ActorCritic, CriticConfig};
pub use ppo::{AmpConfig, Ppo, PpoConfig};
pub use self_play::{SelfPlay, SelfPlayConfig};
pub use state::State;
pub use stats::{Family, UpdateStats};
pub use symmetry::SymmetryConfig;
pub use tensors::NamedTensors;

use fault::Faults;
use ostler_collector::replay::{ReplayBuffer, Saved, StorageKind};
use ostler_collector::{Policy, Rollout};
use ostler_machine::memory::FreeMemory;
use ostler_sim::config::ConfigError;
use std::path::Path;
use tch::Tensor;

/// Something that improves a policy from rollouts.
pub trait Learner: std::fmt::Debug {
    /// Learns from one rollout and returns statistics. Reads one small block of
    /// numbers back from the device, at its end.
    fn update(&mut self, rollout: &Rollout) -> Result<UpdateStats, LearnError>;

    /// Where there are several policies, the last update of each, by the ending of tags
    /// (`/red`).
    fn each(&self) -> &[(String, UpdateStats)] {
        &[]
    }

    /// The policy as it is now.
    fn policy(&self) -> &dyn TrainedPolicy;

    /// The policy, to act with.
    fn policy_mut(&mut self) -> &mut dyn TrainedPolicy;

    /// Whether a rollout for statistics alone, [`warm_up`](Self::warm_up), is worth its
    /// steps before the first iteration of a fresh run.
    fn wants_warm_up(&self) -> bool;

    /// Takes only the statistics of observations from a rollout.
    ///
    /// # Errors
    /// libtorch refuses.
    fn warm_up(&mut self, rollout: &Rollout) -> Result<(), LearnError>;

    /// How much of the run is done, 0..1, for schedules.
    ///
    /// # Errors
    /// libtorch refuses.
    fn set_progress(&mut self, done: f64) -> Result<(), LearnError>;

    /// Everything that an update changes.
    fn state(&self) -> &State;

    /// The same, to capture, restore and load it.
    fn state_mut(&mut self) -> &mut State;

    /// The state has other numbers than before: those that were captured, or those of
    /// `loaded`. Derived values are computed anew.
    ///
    /// # Errors
    /// libtorch refuses, or the replay buffer cannot go back.
    fn renew(&mut self, loaded: Option<&[(String, Tensor)]>) -> Result<(), LearnError>;

    /// Optimisers forget all gradients, and every learning rate is `factor` times what it
    /// was; the state's [`RateShare`](state::RateShare) has changed already.
    ///
    /// # Errors
    /// libtorch refuses.
    fn restart(&mut self, factor: f64) -> Result<(), LearnError>;

    /// The teacher that the policy is to imitate (`ppo.imitation`). Comes before the first update.
    ///
    /// # Errors
    /// The learner has no use for a teacher.
    fn set_teacher(&mut self, _teacher: Box<dyn TrainedPolicy>) -> Result<(), LearnError> {
        let why = "this learner imitates nobody";
        Err(ConfigError::new("ppo.imitation.teacher", why)
            .help("runner.algorithm = \"ppo\", or leave it out")
            .into())
    }

    /// Where faults are kept that are to come.
    fn faults(&mut self) -> &mut Faults;

    /// The replay buffer, of a learner that has one.
    fn memory(&mut self) -> Option<&mut dyn Remembers> {
        None
    }

    /// The open replay buffer, where there is one: of several policies that of the first.
    fn replay_buffer(&mut self) -> Option<&mut ReplayBuffer> {
        self.memory()?.buffers().into_iter().next()?.as_deref_mut()
    }

    /// The state was captured, and [`renew`](Self::renew) may go back to this moment.
    fn captured(&mut self) {}

    /// Weights and statistics on the host, by name, for a [`roll_back`](Self::roll_back).
    ///
    /// # Errors
    /// libtorch refuses.
    fn weights(&self) -> Result<NamedTensors, LearnError> {
        self.state().weights()
    }

    /// Takes weights and statistics from a checkpoint of another run; further names are
    /// ignored. Nothing is changed unless everything fits.
    ///
    /// # Errors
    /// Something is missing or of another shape.
    fn load_weights(&mut self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        self.state_mut().load_weights(tensors)?;
        self.renew(Some(tensors))
    }

    /// Everything needed to go on with the same bits, by name.
    ///
    /// # Errors
    /// libtorch refuses.
    fn save(&self) -> Result<NamedTensors, LearnError> {
        self.state().save()
    }

    /// The reverse of [`save`](Self::save). Nothing is changed unless everything fits.
    ///
    /// # Errors
    /// Something is missing or of another shape.
    fn load(&mut self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        self.state_mut().load(tensors)?;
        self.renew(Some(tensors))
    }

    /// Remembers the state as it is now, on its device, in buffers that are there
    /// already.
    ///
    /// # Errors
    /// libtorch refuses; the captured state is then undefined.
    fn capture(&mut self) -> Result<(), LearnError> {
        self.state_mut().capture()?;
        self.captured();
        Ok(())
    }

    /// Goes back to the last [`capture`](Self::capture) (or to the state after construction):
    /// the same bits, whatever happened since. Allocates no tensor.
    ///
    /// # Errors
    /// libtorch refuses.
    fn restore(&mut self) -> Result<(), LearnError> {
        self.state_mut().restore()?;
        self.renew(None)
    }

    /// Starts anew from an earlier policy, more carefully: weights and statistics are
    /// taken from `weights` (see [`weights`](Self::weights)), optimisers forget all gradients,
    /// and from now on every learning rate is `lr_factor` times what it would be. Counts
    /// that key random draws go on: the same failure must not repeat itself.
    ///
    /// # Errors
    /// Weights of another network, or a factor that is not above 0 and at most 1; nothing
    /// is changed then.
    fn roll_back(
        &mut self,
        weights: &[(String, Tensor)],
        lr_factor: f64,
    ) -> Result<(), LearnError> {
        if !(lr_factor > 0.0 && lr_factor <= 1.0) {
            let why = format!("a roll-back cannot multiply it by {lr_factor}");
            return Err(ConfigError::new("guard.roll_back_lr", why)
                .help("a factor above 0, at most 1")
                .into());
        }
        self.load_weights(weights)?;
        self.state_mut().lower_rates(lr_factor);
        self.restart(lr_factor)
    }

    /// Puts these faults into the updates to come, instead of those given before: a
    /// drill. The poisoned places are written whatever guards them.
    ///
    /// # Errors
    /// A fault names a place that this learner does not have; none is armed then.
    fn inject(&mut self, faults: Vec<UpdateFault>) -> Result<(), LearnError> {
        for fault in &faults {
            let _ = self.state().target(&fault.what)?;
        }
        self.faults().arm(faults);
        Ok(())
    }
}

/// A learner with a replay buffer.
pub trait Remembers {
    /// Opens the buffer below the run's folder, unless it is open. Comes before the first
    /// rollout. `again`: the run goes on, and an existing file is its own. `free` says how much
    /// memory there is for it.
    ///
    /// # Errors
    /// It does not fit, or the folder cannot be written to.
    fn open(
        &mut self,
        folder: &Path,
        again: bool,
        free: &dyn FreeMemory,
    ) -> Result<Option<Opened>, LearnError>;

    /// Where the open buffer is, of several policies that of each: taken, they are given to
    /// another learner of the same kind.
    fn buffers(&mut self) -> Vec<&mut Option<Box<ReplayBuffer>>>;

    /// A checkpoint's part of all buffers but the first: of further policies, or of other
    /// processes that learn with this one, in their order.
    ///
    /// # Errors
    /// One cannot be saved.
    fn save_others(&mut self) -> Result<Vec<Saved>, LearnError> {
        Ok(Vec::new())
    }

    /// Goes back to what was [saved](Self::save_others); whether the same bits follow.
    ///
    /// # Errors
    /// One cannot be restored.
    fn restore_others(&mut self, _saved: &[Saved]) -> Result<bool, LearnError> {
        Ok(true)
    }
}

/// A replay buffer that was opened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// Its size and place, in a line.
    pub line: String,
    /// Where it lies: never `"auto"`.
    pub storage: StorageKind,
}

/// A policy that a learner made.
pub trait TrainedPolicy: Policy + std::fmt::Debug {
    /// Enters weights and statistics into a state.
    ///
    /// # Errors
    /// libtorch refuses.
    fn declare(&self, state: &mut State) -> Result<(), LearnError>;

    /// Weights and statistics.
    ///
    /// # Errors
    /// libtorch refuses.
    fn state(&self) -> Result<State, LearnError> {
        let mut state = State::default();
        self.declare(&mut state)?;
        Ok(state)
    }

    /// The state has the numbers of `loaded`. Derived values are computed anew.
    ///
    /// # Errors
    /// libtorch refuses.
    fn renew(&mut self, loaded: &[(String, Tensor)]) -> Result<(), LearnError>;

    /// Number of learnt parameters.
    fn num_parameters(&self) -> i64;

    /// The network of policy number `policy` of the task as plain numbers; `None`: of this one
    /// there is none.
    ///
    /// # Errors
    /// libtorch refuses.
    fn network(&self, _policy: usize) -> Result<Option<Network>, LearnError> {
        Ok(None)
    }

    /// Whether weights and statistics are among `tensors`, in their shapes.
    ///
    /// # Errors
    /// Something is missing or of another shape.
    fn check(&self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        self.state()?.check_weights(tensors)
    }

    /// Takes weights and statistics from a checkpoint; further names are ignored.
    /// Nothing is changed unless everything fits.
    ///
    /// # Errors
    /// Something is missing or of another shape.
    fn load(&mut self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        self.state()?.load_weights(tensors)?;
        self.renew(tensors)
    }
}
