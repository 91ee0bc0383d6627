//! The learner's counts, its replay buffer, and the effects of a roll-back and of faults.

use super::OffPolicy;
use crate::learner::fault::FaultTime;
use crate::learner::state::{Count, RateShare};
use crate::learner::{Opened, State, error::LearnError};
use ostler_collector::replay::{ReplayBuffer, Room, Setup};
use ostler_machine::memory::{Disk, FreeMemory, available};
use ostler_machine::torch::CudaPinner;
use std::path::Path;
use tch::Device;

/// Counts that key draws and schedule updates.
#[derive(Debug)]
pub(super) struct Counts {
    /// Updates done.
    pub(super) updates: Count,
    /// Gradient steps done.
    pub(super) steps: Count,
    /// Transitions taken in.
    pub(super) transitions: Count,
    /// Share of the learning rates after roll-backs.
    pub(super) rate_share: RateShare,
}

impl Counts {
    /// Enters them into a state.
    pub(super) fn new(state: &mut State) -> Self {
        Self {
            updates: state.count("off_policy.updates"),
            steps: state.count("off_policy.gradient_steps"),
            transitions: state.count("off_policy.transitions"),
            rate_share: state.rate_share("off_policy.lr_scale"),
        }
    }
}

impl OffPolicy {
    /// Opens the replay buffer below `folder`, unless it is open.
    pub(super) fn open_replay(
        &mut self,
        folder: &Path,
        again: bool,
        free: &dyn FreeMemory,
    ) -> Result<Option<Opened>, LearnError> {
        if self.buffer.is_some() {
            return Ok(None);
        }
        let disk = match self.replay.directory.as_str() {
            "" => folder,
            own => Path::new(own),
        };
        let room = Room {
            host: free.host(),
            device: match self.device {
                Device::Cpu => None,
                device => free.device(device),
            },
            disk: Disk::of(disk).map(|d| d.free),
        };
        let config = self.replay.clone();
        let config = config.resolve(&self.layout, self.device, &room, self.margin);
        let errors = config.validate_device(self.device, self.device.is_cuda());
        if let Some(error) = errors.into_iter().next() {
            return Err(error.into());
        }
        let (gamma, batch) = (self.common.gamma, self.common.batch_size);
        let setup = Setup {
            folder: Some(folder),
            margin: self.margin,
            room,
            free_memory: available,
            reopen: again,
            transforms: std::mem::take(&mut self.transforms),
            pinner: self.device.is_cuda().then(|| Box::new(CudaPinner) as _),
            ..Setup::new(batch, self.device, gamma, self.seed)
        };
        let buffer = ReplayBuffer::new(&config, self.layout.clone(), setup)?;
        let opened = Opened { line: buffer.describe(), storage: config.storage };
        self.buffer = Some(Box::new(buffer));
        Ok(Some(opened))
    }

    /// All optimisers forget their gradients. The replay buffer stays: it was judged when it was
    /// collected.
    pub(super) fn restart_optimisers(&mut self) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        self.actor_adam.restart()?;
        self.critic_adam.restart()?;
        self.method.restart()?;
        self.set_rates()
    }

    /// Learning rates of this part of the run: half a cosine from 1 to `final_lr_share`, times
    /// what roll-backs left of them.
    pub(super) fn set_rates(&mut self) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        let last = self.common.final_lr_share;
        let high = 0.5 * (1.0 + (std::f64::consts::PI * self.progress.clamp(0.0, 1.0)).cos());
        let share = (last + (1.0 - last) * high) * self.counts.rate_share.get();
        self.actor_adam.set_rate(0, self.common.actor_learning_rate * share)?;
        self.critic_adam.set_rate(0, self.common.critic_learning_rate * share)?;
        Ok(self.method.set_rate(share)?)
    }

    /// Puts faults that are due here into the update.
    pub(super) fn poison(&mut self, place: FaultTime) -> Result<(), LearnError> {
        let updates = self.counts.updates.get();
        if self.faults.poison(&self.state, place, updates)? {
            self.nets.policy.norm.derive()?;
        }
        Ok(())
    }
}
