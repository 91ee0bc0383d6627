//! Collects in the caller's thread: policy and environments take turns.

use crate::buffers::Buffers;
use crate::env::Environments;
use crate::snapshot::Snapshot;
use crate::steps::{LocalPolicy, Stepper, Stepping};
use crate::{CollectError, CollectTimes, Collector, Policy, Rollout};
use ostler_sim::config::TaskConfig;
use ostler_sim::env::EnvError;
use ostler_sim::{BatchEnv, EpisodeStats};

/// The synchronous collector.
#[derive(Debug)]
pub struct SyncCollector<E: ?Sized = BatchEnv> {
    stepper: Stepper<E>,
    buffers: Buffers,
    stats: EpisodeStats,
    times: CollectTimes,
}

impl<E: Environments + ?Sized> SyncCollector<E> {
    /// Allocates rollouts of `steps` steps for this policy's sizes and starts all
    /// episodes. `seed` keys the noise of actions; `spread` gives the first episodes
    /// random ages, so that resets spread out in time.
    pub fn new(
        env: Box<E>,
        steps: usize,
        policy: &dyn Policy,
        seed: u64,
        spread: bool,
    ) -> Result<Self, CollectError> {
        Self::stepping(env, steps, policy, seed, spread, Stepping::default())
    }

    /// The same with other ways to step.
    pub fn stepping(
        env: Box<E>,
        steps: usize,
        policy: &dyn Policy,
        seed: u64,
        spread: bool,
        stepping: Stepping,
    ) -> Result<Self, CollectError> {
        let spec = env.spec();
        let buffers = Buffers::new(spec, steps, policy.widths())?;
        let stats = EpisodeStats::with_room(spec)?;
        let first = env.first();
        let mut stepper =
            Stepper::new(env, policy.widths(), policy.noise(), seed, first, stepping)?;
        stepper.reset(spread)?;
        Ok(Self { stepper, buffers, stats, times: CollectTimes::default() })
    }

    /// The environments.
    pub fn env(&self) -> &E {
        &self.stepper.env
    }

    /// The environments, to change their settings between rollouts.
    pub fn env_mut(&mut self) -> &mut E {
        &mut self.stepper.env
    }
}

impl<E: Environments + ?Sized> Collector for SyncCollector<E> {
    fn collect(&mut self, policy: &mut dyn Policy) -> Result<&Rollout, CollectError> {
        let ran = self.stepper.run(&mut self.buffers, &mut LocalPolicy(policy))?;
        self.stepper.take_stats(&mut self.stats);
        self.times = ran.times;
        Ok(&self.buffers.rollout)
    }

    fn rollout(&self) -> &Rollout {
        &self.buffers.rollout
    }

    fn stats(&self) -> &EpisodeStats {
        &self.stats
    }

    fn times(&self) -> CollectTimes {
        self.times
    }

    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        self.stepper.env.set_task(task)
    }

    fn capture(&mut self, into: &mut Snapshot) -> Result<(), CollectError> {
        let out = into.clear();
        self.stepper.write_head(out)?;
        Ok(self.stepper.env.capture(out)?)
    }

    fn restore(&mut self, from: &Snapshot) -> Result<(), CollectError> {
        let blob = from.on_host()?;
        let spec = self.stepper.env.spec();
        let (envs, rows) = (spec.num_envs, spec.rows());
        let saved = self.stepper.read(blob, Some(rows))?;
        if !self.stepper.env.keeps_state() {
            return self.stepper.restore_range(blob, 0, false).map(drop);
        }
        self.stepper.env.restore(saved.env)?;
        self.stepper.fill(&saved, 0, envs);
        Ok(())
    }

    fn restore_range(&mut self, from: &Snapshot, spread: bool) -> Result<usize, CollectError> {
        let first = self.stepper.env.first() as usize;
        self.stepper.restore_range(from.on_host()?, first, spread)
    }
}
