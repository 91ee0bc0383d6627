//! Collection whose rollout lies on a device.
//!
//! Reading order: [`DeviceCollector`] -> [`TensorEnvironments`] -> [`KernelEnvironments`]
//! (physics there too) and [`Bridge`] (physics on the host) -> [`stream`] (what waits, and
//! what is counted). With the host as the device all of it runs on the host too, which is
//! how it is tested without a GPU.

mod bridge;
mod envs;
mod kernel;
mod memory;
pub mod stream;

pub use bridge::Bridge;
pub use envs::{NoiseSpec, TensorEnvironments};
pub use kernel::KernelEnvironments;
pub use memory::TorchMemory;
pub use ostler_sim::device::Traffic;
pub use stream::{CudaSync, HostStream, Queue, Stream, Transfers};

use crate::memory::zeros;
use crate::rollout::views;
use crate::snapshot::{self, Saved, Snapshot};
use crate::{Act, CollectCounts, CollectError, CollectTimes, Collector, Policy, Rollout};
use ostler_sim::{EpisodeStats, Groups};
use std::borrow::Cow;
use std::cell::RefCell;
use std::time::Instant;
use stream::Landing;
use tch::{Kind, Tensor};

/// Collects from environments whose rollout lies on a device. The same numbers, states
/// and saved bytes as those of [`SyncCollector`](crate::SyncCollector) over the same
/// environments.
#[derive(Debug)]
pub struct DeviceCollector<E> {
    env: E,
    queue: Queue,
    sync: CudaSync,
    rows: Rows,
    captured: Captured,
    /// Where first observations land, to be saved. Nothing is kept in it.
    landing: RefCell<Groups<Landing>>,
    /// Control steps since the run began; keys the noise.
    step: u64,
    /// The policy's version as it stands in the rollout.
    version: i32,
    /// Whether the next rollout starts where the last one ended. Else the first row
    /// of observations is in place already: after a reset or a restore.
    go_on: bool,
    stats: EpisodeStats,
    times: CollectTimes,
    counts: CollectCounts,
    /// What was counted until the end of the last collection.
    counted: Traffic,
}

/// A state besides that of the environments, captured in place.
#[derive(Debug)]
struct Captured {
    /// The first row of observations of the next rollout, on the device.
    obs: Groups<Tensor>,
    /// Control steps, once something was captured.
    step: Option<u64>,
}

/// One tensor per step over each buffer that the policy reads or writes, made once.
#[derive(Debug)]
struct Rows {
    obs: Groups<Vec<Tensor>>,
    action: Vec<Tensor>,
    dist: Vec<Tensor>,
    std: Vec<Tensor>,
}

impl<E: TensorEnvironments> DeviceCollector<E> {
    /// Starts all episodes, at random ages if `spread`. `queue` is that of the
    /// environments.
    ///
    /// # Errors
    /// No memory, or the device refuses.
    pub fn new(
        mut env: E,
        queue: Queue,
        sync: CudaSync,
        spread: bool,
    ) -> Result<Self, CollectError> {
        let rollout = env.rollout();
        let rows = Rows {
            obs: Groups {
                policy: views(&rollout.obs.policy)?,
                critic: rollout.obs.critic.as_ref().map(views).transpose()?,
            },
            action: views(&rollout.action)?,
            dist: views(&rollout.dist)?,
            std: views(&rollout.std)?,
        };
        let landing = |rows: &Vec<Tensor>| Landing::like(&queue, "first observations", &rows[0]);
        let landing = Groups {
            policy: landing(&rows.obs.policy)?,
            critic: rows.obs.critic.as_ref().map(landing).transpose()?,
        };
        let like = |rows: &Vec<Tensor>| {
            zeros(
                "first observations",
                &rows[0].size(),
                Kind::Float,
                rollout.device(),
            )
        };
        let captured = Captured {
            obs: Groups {
                policy: like(&rows.obs.policy)?,
                critic: rows.obs.critic.as_ref().map(like).transpose()?,
            },
            step: None,
        };
        let stats = EpisodeStats::with_room(env.spec())?;
        env.reset(spread)?;
        Ok(Self {
            env,
            queue,
            sync,
            rows,
            captured,
            landing: RefCell::new(landing),
            step: 0,
            version: -1,
            go_on: false,
            stats,
            times: CollectTimes::default(),
            counts: CollectCounts::default(),
            counted: Traffic::default(),
        })
    }

    /// The environments.
    pub fn env(&self) -> &E {
        &self.env
    }

    /// The environments, to change their settings between rollouts.
    pub fn env_mut(&mut self) -> &mut E {
        &mut self.env
    }

    fn traffic(&self) -> Traffic {
        let (queue, env) = (self.queue.traffic(), self.env.traffic());
        Traffic {
            launches: queue.launches + env.launches,
            uploads: queue.uploads + env.uploads,
            downloads: queue.downloads + env.downloads,
            waits: queue.waits + env.waits,
        }
    }

    /// The row of observations that the next rollout starts from.
    fn next_row(&self) -> usize {
        match self.go_on {
            true => self.rows.action.len(),
            false => 0,
        }
    }

    /// Appends all but the environments, with the bytes that they are to follow.
    fn write_head(&self, out: &mut Vec<u8>) -> Result<(), CollectError> {
        let (row, obs) = (self.next_row(), &self.rows.obs);
        let critic = obs.critic.as_ref().map(|rows| &rows[row]);
        self.write(out, self.step, &obs.policy[row], critic)
    }

    fn write(
        &self,
        out: &mut Vec<u8>,
        step: u64,
        policy: &Tensor,
        critic: Option<&Tensor>,
    ) -> Result<(), CollectError> {
        let landing = &mut *self.landing.borrow_mut();
        let policy = landing.policy.fetch(&self.queue, policy)?;
        let critic = match (&mut landing.critic, critic) {
            (Some(landing), Some(critic)) => Some(landing.fetch(&self.queue, critic)?),
            _ => None,
        };
        snapshot::write_head(out, step, [Some(policy), critic])
    }

    /// Takes over what is not the environments'.
    fn fill(&mut self, saved: &Saved<'_>) -> Result<(), CollectError> {
        let landing = self.landing.get_mut();
        let landings = std::iter::once(&mut landing.policy).chain(&mut landing.critic);
        let rows = std::iter::once(&self.rows.obs.policy).chain(&self.rows.obs.critic);
        for ((landing, rows), stored) in landings.zip(rows).zip(saved.obs) {
            landing.amend(&self.queue, &rows[0], |row| snapshot::copy(stored, row))?;
        }
        self.step = saved.step;
        self.go_on = false;
        Ok(())
    }

    /// The last row of observations becomes the first.
    fn carry_over(&self) -> Result<(), CollectError> {
        for rows in std::iter::once(&self.rows.obs.policy).chain(&self.rows.obs.critic) {
            rows[0]
                .shallow_clone()
                .f_copy_(&rows[self.rows.action.len()])?;
        }
        Ok(())
    }
}

fn nothing_captured() -> CollectError {
    CollectError::Blob("nothing was captured".into())
}

impl<E: TensorEnvironments> Collector for DeviceCollector<E> {
    fn collect(&mut self, policy: &mut dyn Policy) -> Result<&Rollout, CollectError> {
        let start = Instant::now();
        let mut policy_time = 0.0;
        if self.go_on {
            self.carry_over()?;
        }
        if policy.version() != self.version {
            self.version = policy.version();
            let all = &self.env.rollout().version;
            let _ = all.shallow_clone().f_fill_(i64::from(self.version))?;
        }
        self.env.begin_rollout(self.step)?;
        let before_loop = self.traffic();
        for t in 0..self.rows.action.len() {
            let before = Instant::now();
            let act = Act {
                action: &self.rows.action[t],
                dist: &self.rows.dist[t],
                std: &self.rows.std[t],
            };
            policy.act(&self.rows.obs.policy[t], self.env.noise(t), &act)?;
            policy_time += before.elapsed().as_secs_f64();
            self.env.step(t)?;
            self.queue.wait(self.sync)?;
            self.step += 1;
        }
        self.go_on = true;
        let after_loop = self.traffic();
        self.env.end_rollout(&mut self.stats)?;
        let all = self.traffic();
        self.counts = CollectCounts {
            in_loop: after_loop.since(before_loop),
            all: all.since(self.counted),
        };
        self.counted = all;
        let total = start.elapsed().as_secs_f64();
        self.times = CollectTimes {
            policy: policy_time,
            env: total - policy_time,
            total,
        };
        Ok(self.env.rollout())
    }

    fn rollout(&self) -> &Rollout {
        self.env.rollout()
    }

    fn stats(&self) -> &EpisodeStats {
        &self.stats
    }

    fn times(&self) -> CollectTimes {
        self.times
    }

    fn counts(&self) -> CollectCounts {
        self.counts
    }

    fn capture(&mut self, into: &mut Snapshot) -> Result<(), CollectError> {
        let stays = into.may_stay;
        let out = into.clear();
        if !stays {
            self.write_head(out)?;
            return self.env.capture(out);
        }
        self.captured.step = None;
        let row = self.next_row();
        let rows = std::iter::once(&self.rows.obs.policy).chain(&self.rows.obs.critic);
        let obs = &mut self.captured.obs;
        let copies = std::iter::once(&mut obs.policy).chain(&mut obs.critic);
        for (copy, rows) in copies.zip(rows) {
            copy.f_copy_(&rows[row])?;
        }
        self.env.capture_in_place()?;
        self.captured.step = Some(self.step);
        into.stayed = true;
        Ok(())
    }

    fn restore(&mut self, from: &Snapshot) -> Result<(), CollectError> {
        if !from.stayed {
            let spec = self.env.spec();
            let saved = Saved::read(&from.bytes, &spec.obs, Some(spec.rows()))?;
            self.env.restore(saved.env)?;
            return self.fill(&saved);
        }
        let step = self.captured.step.ok_or_else(nothing_captured)?;
        self.env.restore_in_place()?;
        let rows = std::iter::once(&self.rows.obs.policy).chain(&self.rows.obs.critic);
        let obs = &self.captured.obs;
        let copies = std::iter::once(&obs.policy).chain(&obs.critic);
        for (copy, rows) in copies.zip(rows) {
            rows[0].shallow_clone().f_copy_(copy)?;
        }
        self.step = step;
        self.go_on = false;
        Ok(())
    }

    fn restore_range(&mut self, from: &Snapshot, spread: bool) -> Result<usize, CollectError> {
        let saved = Saved::read(from.on_host()?, &self.env.spec().obs, None)?;
        let taken = self.env.restore_range(saved.env, spread)?;
        self.fill(&saved)?;
        Ok(taken)
    }

    fn bytes<'a>(&self, of: &'a Snapshot) -> Result<Cow<'a, [u8]>, CollectError> {
        if !of.stayed {
            return Ok(Cow::Borrowed(&of.bytes));
        }
        let step = self.captured.step.ok_or_else(nothing_captured)?;
        let mut out = Vec::new();
        let obs = &self.captured.obs;
        self.write(&mut out, step, &obs.policy, obs.critic.as_ref())?;
        self.env.captured_in_place(&mut out)?;
        Ok(Cow::Owned(out))
    }
}
