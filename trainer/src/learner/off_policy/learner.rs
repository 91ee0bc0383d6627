//! What a run asks of a learner.

use super::{OffPolicy, opened};
use crate::learner::{
    LearnError, Learner, NamedTensors, Opened, TrainedPolicy, UpdateFault, UpdateStats,
};
use crate::memory::FreeMemory;
use ostler_collector::Rollout;
use ostler_collector::replay::ReplayBuffer;
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
        if self.counts.transitions >= self.common.learning_starts as u64 {
            let steps = self.common.num_updates * rollout.steps as usize;
            opened(&mut self.memory)?.begin_update(steps);
            for _ in 0..steps {
                self.learn()?;
            }
        }
        let norm = &mut self.nets.policy.norm;
        norm.merge(rollout, self.device, &self.crossed)?;
        self.counts.updates += 1;
        self.mark_version();
        let mut stats = self.read(&rollout.valid)?;
        if self.device != Device::Cpu {
            stats.traffic = self.traffic().since(before);
        }
        stats.gae_s = remember_s;
        stats.update_s = start.elapsed().as_secs_f64();
        Ok(stats)
    }

    fn open(
        &mut self,
        folder: &Path,
        again: bool,
        free: &dyn FreeMemory,
    ) -> Result<Option<Opened>, LearnError> {
        self.open_memory(folder, again, free)
    }

    fn take_memory(&mut self) -> Option<Box<ReplayBuffer>> {
        self.memory.take().map(Box::new)
    }

    fn put_memory(&mut self, memory: Box<ReplayBuffer>) {
        self.memory = Some(*memory);
    }

    fn memory_mut(&mut self) -> Option<&mut ReplayBuffer> {
        self.memory.as_mut()
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
        if let Some(memory) = &mut self.memory {
            memory.set_progress(done);
        }
        Ok(())
    }

    fn weights(&self) -> Result<NamedTensors, LearnError> {
        self.save_weights()
    }

    fn load_weights(&mut self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        self.take_weights(tensors)
    }

    fn save(&self) -> Result<NamedTensors, LearnError> {
        self.save_all()
    }

    fn load(&mut self, tensors: &[(String, Tensor)]) -> Result<(), LearnError> {
        self.load_all(tensors)
    }

    fn capture(&mut self) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        self.snapshot.capture()?;
        self.kept_counts = self.counts;
        self.kept_mark = self.memory.as_mut().map(ReplayBuffer::mark);
        Ok(())
    }

    fn restore(&mut self) -> Result<(), LearnError> {
        let _no_grad = tch::no_grad_guard();
        self.snapshot.restore()?;
        self.counts = self.kept_counts;
        self.mark_version();
        if let (Some(memory), Some(mark)) = (&mut self.memory, &self.kept_mark) {
            memory.rewind(mark)?;
        }
        Ok(())
    }

    fn roll_back(
        &mut self,
        weights: &[(String, Tensor)],
        lr_factor: f64,
    ) -> Result<(), LearnError> {
        self.go_back_to(weights, lr_factor)
    }

    fn inject(&mut self, faults: Vec<UpdateFault>) -> Result<(), LearnError> {
        self.arm(faults)
    }
}
