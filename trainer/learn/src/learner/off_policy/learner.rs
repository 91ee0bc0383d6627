//! `Learner` for SAC and TD3.

use super::{OffPolicy, opened};
use crate::learner::fault::Faults;
use crate::learner::{
    Learner, Opened, Remembers, State, TrainedPolicy, UpdateStats, error::LearnError,
};
use ostler_collector::Rollout;
use ostler_collector::replay::ReplayBuffer;
use ostler_machine::memory::FreeMemory;
use std::path::Path;
use std::time::Instant;
use tch::{Device, Tensor};

impl Learner for OffPolicy {
    fn update(&mut self, rollout: &Rollout) -> Result<UpdateStats, LearnError> {
        let start = Instant::now();
        let _no_grad = tch::no_grad_guard();
        let before = self.traffic();
        self.faults.minibatch = 0;
        for section in [&mut self.critic, &mut self.actor] {
            section.begin()?;
        }
        self.method.begin()?;
        self.remember(rollout)?;
        let remember_s = start.elapsed().as_secs_f64();
        if self.counts.transitions.get() >= self.common.learning_starts as u64 {
            let steps = self.common.num_updates * rollout.steps as usize;
            opened(&mut self.buffer)?.begin_update(steps);
            for _ in 0..steps {
                ostler_collector::go_on()?;
                self.learn()?;
            }
        }
        let norm = &mut self.nets.policy.norm;
        norm.merge(rollout, self.device, &self.crossed)?;
        self.counts.updates.add(1);
        self.nets.policy.version = self.counts.updates.version();
        let mut stats = self.read(&rollout.valid)?;
        let own = [stats.invalid, stats.remembered].map(|n| n as f64);
        [stats.invalid, stats.remembered] = self.group.add(own)?.map(|n| n as u64);
        if self.device != Device::Cpu {
            stats.traffic = self.traffic().since(before);
        }
        stats.gae_s = remember_s;
        stats.update_s = start.elapsed().as_secs_f64();
        Ok(stats)
    }

    fn policy(&self) -> &dyn TrainedPolicy {
        &self.nets.policy
    }

    fn policy_mut(&mut self) -> &mut dyn TrainedPolicy {
        &mut self.nets.policy
    }

    fn wants_warm_up(&self) -> bool {
        self.nets.policy.norm.inputs().next().is_some()
    }

    fn warm_up(&mut self, rollout: &Rollout) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        self.remember(rollout)?;
        let norm = &mut self.nets.policy.norm;
        norm.merge(rollout, self.device, &self.crossed)
    }

    fn set_progress(&mut self, done: f64) -> Result<(), LearnError> {
        if let Some(buffer) = &mut self.buffer {
            buffer.set_progress(done);
        }
        self.progress = done;
        match self.common.final_lr_share {
            1.0 => Ok(()),
            _ => self.set_rates(),
        }
    }

    fn state(&self) -> &State {
        &self.state
    }

    fn state_mut(&mut self) -> &mut State {
        &mut self.state
    }

    fn renew(&mut self, loaded: Option<&[(String, Tensor)]>) -> Result<(), LearnError> {
        self.nets.policy.version = self.counts.updates.version();
        match loaded {
            Some(loaded) => self.nets.policy.renew(loaded),
            None => {
                if let (Some(buffer), Some(mark)) = (&mut self.buffer, &self.captured_mark) {
                    buffer.rewind(mark)?;
                }
                Ok(())
            }
        }
    }

    fn restart(&mut self, _: f64) -> Result<(), LearnError> {
        self.restart_optimisers()
    }

    fn faults(&mut self) -> &mut Faults {
        &mut self.faults
    }

    fn memory(&mut self) -> Option<&mut dyn Remembers> {
        Some(self)
    }

    fn captured(&mut self) {
        self.captured_mark = self.buffer.as_mut().map(|m| m.mark());
    }
}

impl Remembers for OffPolicy {
    fn open(
        &mut self,
        folder: &Path,
        again: bool,
        free: &dyn FreeMemory,
    ) -> Result<Option<Opened>, LearnError> {
        self.open_replay(folder, again, free)
    }

    fn buffers(&mut self) -> Vec<&mut Option<Box<ReplayBuffer>>> {
        vec![&mut self.buffer]
    }
}
