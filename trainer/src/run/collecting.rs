//! The collector of a run, whichever it is.

use ostler_collector::device::{Bridge, KernelEnvironments};
use ostler_collector::{
    AsyncCollector, CollectCounts, CollectError, CollectTimes, Collector, DeviceCollector, Policy,
    Rollout, Snapshot, SyncCollector, WorkerStats,
};
use ostler_sim::config::TaskConfig;
use ostler_sim::env::EnvError;
use ostler_sim::{BatchEnv, EpisodeStats};
use std::borrow::Cow;
use std::sync::Arc;

/// A collector and where its environments and its rollout lie.
#[derive(Debug)]
pub(crate) enum Collecting {
    /// All on the host.
    Host(Box<SyncCollector>),
    /// Environments on the host, in threads that collect.
    Async {
        collector: Box<AsyncCollector>,
        /// Memory that each of them took (MiB), as far as it was touched.
        mib: f64,
    },
    /// Environments on the host, all else on a device.
    Bridged(Box<DeviceCollector<Bridge<BatchEnv>>>),
    /// All on a device.
    OnDevice(Box<DeviceCollector<KernelEnvironments>>),
}

/// The same for each of them.
macro_rules! each {
    ($of:expr, $c:ident => $what:expr) => {
        match $of {
            Collecting::Host($c) => $what,
            Collecting::Async { collector: $c, .. } => $what,
            Collecting::Bridged($c) => $what,
            Collecting::OnDevice($c) => $what,
        }
    };
}

impl Collecting {
    /// Goes on with other numbers in the task.
    ///
    /// # Errors
    /// Anything but a number differs; a number that cannot be. Nothing has changed then.
    pub(crate) fn set_task(&mut self, task: &TaskConfig) -> Result<(), EnvError> {
        match self {
            Self::Host(c) => c.env_mut().set_task(task),
            Self::Async { collector, .. } => {
                let task = task.clone();
                collector.change(Arc::new(move |env| env.set_task(&task)));
                Ok(())
            }
            Self::Bridged(c) => c.env_mut().env_mut().set_task(task),
            Self::OnDevice(c) => c.env_mut().env_mut().set_task(task),
        }
    }
}

impl Collecting {
    /// The name of the program in its cache, where environments are on a device.
    pub(crate) fn device_kernel(&self) -> Option<String> {
        match self {
            Self::Host(_) | Self::Async { .. } | Self::Bridged(_) => None,
            Self::OnDevice(c) => Some(c.env().kernel()),
        }
    }
}

impl Collecting {
    /// A line about the workers, if there are any.
    pub(crate) fn line(&self) -> Option<String> {
        let Self::Async { collector, mib } = self else {
            return None;
        };
        let workers = collector.worker_stats().map_or(0, |c| c.workers);
        Some(format!(
            "{workers} workers collect, {mib:.1} MiB of memory each, with {} environments",
            collector.spec().num_envs.div_ceil(workers.max(1))
        ))
    }
}

impl Collector for Collecting {
    fn collect(&mut self, policy: &mut dyn Policy) -> Result<&Rollout, CollectError> {
        each!(self, c => c.collect(policy))
    }
    fn rollout(&self) -> &Rollout {
        each!(self, c => c.rollout())
    }
    fn stats(&self) -> &EpisodeStats {
        each!(self, c => c.stats())
    }
    fn times(&self) -> CollectTimes {
        each!(self, c => c.times())
    }
    fn counts(&self) -> CollectCounts {
        each!(self, c => c.counts())
    }
    fn worker_stats(&self) -> Option<WorkerStats> {
        each!(self, c => c.worker_stats())
    }
    fn forget_ahead(&mut self) -> Result<(), CollectError> {
        each!(self, c => c.forget_ahead())
    }
    fn capture(&mut self, into: &mut Snapshot) -> Result<(), CollectError> {
        each!(self, c => c.capture(into))
    }
    fn restore(&mut self, from: &Snapshot) -> Result<(), CollectError> {
        each!(self, c => c.restore(from))
    }
    fn restore_range(&mut self, from: &Snapshot, spread: bool) -> Result<usize, CollectError> {
        each!(self, c => c.restore_range(from, spread))
    }
    fn bytes<'a>(&self, of: &'a Snapshot) -> Result<Cow<'a, [u8]>, CollectError> {
        each!(self, c => c.bytes(of))
    }
}
