//! Collection whose rollout lies on a device.
//!
//! Reading order: [`DeviceCollector`] -> [`TensorEnvironments`] -> [`KernelEnvironments`]
//! (physics there too) and [`Bridge`] (physics on the host) -> [`stream`] (waits and counts).
//! With the host as the device all of it runs on the host too, which is how it is tested without
//! a GPU.

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
use crate::policy::Hidden;
use crate::rollout::views;
use crate::snapshot::{self, GROUPS, Saved, Snapshot};
use crate::{Act, CollectCounts, CollectError, CollectTimes, Collector, Policy, Rollout};
use ostler_sim::EpisodeStats;
use ostler_sim::config::TaskConfig;
use ostler_sim::env::EnvError;
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
    /// Columns that one step passes on to the next: the policy's and the critic's observations,
    /// hidden states.
    carried: [Option<CarriedColumn>; GROUPS],
    /// Control steps when the state was captured in place.
    captured: Option<u64>,
    /// Control steps since the run began; keys the noise.
    step: u64,
    /// The policy's version as it stands in the rollout.
    version: i32,
    /// Whether the next rollout starts where the last one ended. Else the first rows
    /// are in place already: after a reset or a restore.
    go_on: bool,
    stats: EpisodeStats,
    times: CollectTimes,
    counts: CollectCounts,
    /// Counts at the end of the last collection.
    counted: Traffic,
}

/// A column of the rollout with a row more than steps.
#[derive(Debug)]
struct CarriedColumn {
    /// One tensor per row.
    rows: Vec<Tensor>,
    /// A copy of the next rollout's first row, captured in place.
    captured: Tensor,
    /// Where that row lands, to be saved. Nothing is kept in it.
    landing: RefCell<Landing>,
}

impl CarriedColumn {
    fn new(column: &Tensor, queue: &Queue) -> Result<Self, CollectError> {
        let rows = views(column)?;
        let what = "what a rollout begins with";
        Ok(Self {
            captured: zeros(what, &rows[0].size(), Kind::Float, column.device())?,
            landing: RefCell::new(Landing::like(queue, what, &rows[0])?),
            rows,
        })
    }
}

/// One tensor per step over each buffer that the policy writes, made once.
#[derive(Debug)]
struct Rows {
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
            action: views(&rollout.action)?,
            dist: views(&rollout.dist)?,
            std: views(&rollout.std)?,
        };
        let carried = |column: Option<&Tensor>| column.map(|c| CarriedColumn::new(c, &queue));
        let (obs, hidden) = (&rollout.obs, rollout.hidden.as_ref());
        let carried = [
            carried(Some(&obs.policy)).transpose()?,
            carried(obs.critic.as_ref()).transpose()?,
            carried(hidden).transpose()?,
        ];
        let stats = EpisodeStats::with_room(env.spec())?;
        env.reset(spread)?;
        Ok(Self {
            env,
            queue,
            sync,
            rows,
            carried,
            captured: None,
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

    /// The row that the next rollout starts from.
    fn next_row(&self) -> usize {
        match self.go_on {
            true => self.rows.action.len(),
            false => 0,
        }
    }

    /// Appends all but the environments, with the bytes that they are to follow.
    fn write_head(&self, out: &mut Vec<u8>) -> Result<(), CollectError> {
        let row = self.next_row();
        self.write(out, self.step, |carried| &carried.rows[row])
    }

    fn write(
        &self,
        out: &mut Vec<u8>,
        step: u64,
        first: impl Fn(&CarriedColumn) -> &Tensor,
    ) -> Result<(), CollectError> {
        let landings = self.carried.each_ref();
        let mut landings = landings.map(|c| c.as_ref().map(|c| c.landing.borrow_mut()));
        let mut groups: [&[f32]; GROUPS] = [&[]; GROUPS];
        let each = groups.iter_mut().zip(&mut landings).zip(&self.carried);
        for ((group, landing), carried) in each {
            if let (Some(landing), Some(carried)) = (landing, carried) {
                *group = landing.fetch(&self.queue, first(carried))?;
            }
        }
        snapshot::write_head(out, step, groups)
    }

    /// Takes over the state beside the environments'.
    fn fill(&mut self, saved: &Saved<'_>) -> Result<(), CollectError> {
        if let [.., Some(hidden)] = &self.carried {
            // New environments begin without memories.
            let _ = hidden.rows[0].shallow_clone().f_zero_()?;
        }
        for (carried, stored) in self.carried.iter_mut().zip(saved.groups) {
            if let Some(CarriedColumn { rows, landing, .. }) = carried {
                let copy = |row: &mut [f32]| snapshot::copy(stored, row);
                landing.get_mut().amend(&self.queue, &rows[0], copy)?;
            }
        }
        self.step = saved.step;
        self.go_on = false;
        Ok(())
    }

    /// The last rows become the first.
    fn carry_over(&self) -> Result<(), CollectError> {
        for carried in self.carried.iter().flatten() {
            let [first, .., last] = &carried.rows[..] else {
                continue;
            };
            first.shallow_clone().f_copy_(last)?;
        }
        Ok(())
    }

    /// Hidden states are zero where step `t` ended an episode.
    fn forget_ended(&mut self, t: usize) -> Result<(), CollectError> {
        let [.., Some(hidden)] = &self.carried else {
            return Ok(());
        };
        let ended = self.env.ended(t)?.f_unsqueeze(1)?;
        let mut row = hidden.rows[t + 1].shallow_clone();
        let _ = row.f_masked_fill_(&ended, 0.0)?;
        Ok(())
    }

    /// A captured state that fits, of so many rows if that is known.
    fn read<'a>(&self, bytes: &'a [u8], rows: Option<usize>) -> Result<Saved<'a>, CollectError> {
        let hidden = self.env.rollout().hidden.as_ref();
        let hidden = hidden.map_or(0, |h| h.size()[2]);
        Saved::read(bytes, &self.env.spec().obs, hidden, rows)
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
            crate::go_on()?;
            let before = Instant::now();
            let [Some(obs), _, hidden] = &self.carried else {
                break;
            };
            let act = Act {
                action: &self.rows.action[t],
                dist: &self.rows.dist[t],
                std: &self.rows.std[t],
                hidden: hidden
                    .as_ref()
                    .map(|hidden| Hidden { before: &hidden.rows[t], after: &hidden.rows[t + 1] }),
            };
            policy.act(&obs.rows[t], self.env.noise(t), &act)?;
            policy_time += before.elapsed().as_secs_f64();
            self.env.step(t)?;
            self.forget_ended(t)?;
            self.queue.wait(self.sync)?;
            self.step += 1;
        }
        self.go_on = true;
        let after_loop = self.traffic();
        self.env.end_rollout(&mut self.stats)?;
        let all = self.traffic();
        self.counts =
            CollectCounts { in_loop: after_loop.since(before_loop), all: all.since(self.counted) };
        self.counted = all;
        let total = start.elapsed().as_secs_f64();
        self.times = CollectTimes { policy: policy_time, env: total - policy_time, total };
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

    fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        self.env.set_task(task)
    }

    fn device_kernel(&self) -> Option<String> {
        self.env.kernel()
    }

    fn capture(&mut self, into: &mut Snapshot) -> Result<(), CollectError> {
        let stays = into.may_stay;
        let out = into.clear();
        if !stays {
            self.write_head(out)?;
            return self.env.capture(out);
        }
        self.captured = None;
        let row = self.next_row();
        for carried in self.carried.iter_mut().flatten() {
            carried.captured.f_copy_(&carried.rows[row])?;
        }
        self.env.capture_in_place()?;
        self.captured = Some(self.step);
        into.stayed = true;
        Ok(())
    }

    fn restore(&mut self, from: &Snapshot) -> Result<(), CollectError> {
        if !from.stayed {
            let saved = self.read(&from.bytes, Some(self.env.spec().rows()))?;
            self.env.restore(saved.env)?;
            return self.fill(&saved);
        }
        let step = self.captured.ok_or_else(nothing_captured)?;
        self.env.restore_in_place()?;
        for carried in self.carried.iter().flatten() {
            carried.rows[0].shallow_clone().f_copy_(&carried.captured)?;
        }
        self.step = step;
        self.go_on = false;
        Ok(())
    }

    fn restore_range(&mut self, from: &Snapshot, spread: bool) -> Result<usize, CollectError> {
        let saved = self.read(from.on_host()?, None)?;
        let taken = self.env.restore_range(saved.env, spread)?;
        self.fill(&saved)?;
        Ok(taken)
    }

    fn bytes<'a>(&self, of: &'a Snapshot) -> Result<Cow<'a, [u8]>, CollectError> {
        if !of.stayed {
            return Ok(Cow::Borrowed(&of.bytes));
        }
        let step = self.captured.ok_or_else(nothing_captured)?;
        let mut out = Vec::new();
        self.write(&mut out, step, |carried| &carried.captured)?;
        self.env.captured_in_place(&mut out)?;
        Ok(Cow::Owned(out))
    }
}
