//! The same where rollouts and learner are on a GPU: two kinds of memory.

use super::{Demand, Fit, PROGRAM, largest, mib, room, with_envs};
use crate::forecast::need::{Need, Shares};
use crate::run::{Machine, RunError};
use ostler_learn::config::{Config, Loaded};
use ostler_sim::Model;
use ostler_sim::env::EnvSpec;
use std::sync::Arc;

/// `env.num_envs = "auto"` takes no more than this on a GPU. A thread of an environment
/// takes most of the registers it can have, so that 132 multiprocessors hold some 34,000
/// environments at a time: beyond twice that they only wait for each other.
pub(super) const MOST_ON_GPU: usize = 65_536;
/// Memory of a GPU that libtorch's libraries take once they compute (bytes): code that is loaded
/// when it is first called, cuBLAS's workspaces.
pub(super) const LIBRARIES: u64 = 512 << 20;

/// Memory of a run on a GPU with a number of environments.
pub(super) struct OnGpu<'a> {
    config: &'a Config,
    spec: &'a EnvSpec,
    /// Size of an environment in a checkpoint (bytes).
    state: u64,
    /// Memory that the driver sets aside for the environments' threads (bytes).
    local: u64,
    /// Bytes of the GPU that are free.
    free: Option<u64>,
    /// Of the host.
    host: Option<u64>,
}

impl<'a> OnGpu<'a> {
    /// On a machine; `one`: the task's sizes, and `state`.
    ///
    /// # Errors
    /// The task has a mistake, its program does not compile, or its threads' stacks do not
    /// fit.
    pub(super) fn on(
        machine: &Machine,
        loaded: &'a Loaded,
        model: &Arc<Model>,
        (spec, state): (&'a EnvSpec, u64),
    ) -> Result<Self, RunError> {
        let local = machine.local_memory(loaded, model)?;
        let free = machine.free.device(machine.torch);
        // Fewer environments would not help: it is for every thread that the GPU can have.
        if let Some(free) = free.filter(|&free| local > free) {
            return Err(RunError::Stacks { local, free });
        }
        Ok(Self { config: &loaded.config, spec, state, local, free, host: machine.free.host() })
    }

    /// With so many environments.
    fn with(&self, num_envs: usize) -> Shares {
        let config = with_envs(self.config, num_envs);
        let need = Need::with_state(&config, self.spec, self.state);
        let shares = need.shared(&config, self.spec, self.free);
        Shares { gpu: shares.gpu.saturating_add(self.local).saturating_add(LIBRARIES), ..shares }
    }

    /// As many as fit.
    pub(super) fn fit(&self) -> Fit {
        let (gpu, host) = (room(self.config, self.free), room(self.config, self.host));
        let within = |bytes: u64, room: Option<u64>| room.is_none_or(|room| bytes <= room);
        let (num_envs, above) = largest(MOST_ON_GPU, |n| {
            let takes = self.with(n);
            within(takes.gpu, gpu) && within(takes.host, host)
        });
        let (now, then) = (self.with(num_envs), above.map(|n| self.with(n)));
        let take = |of, room: Option<u64>, bytes: fn(&Shares) -> u64, program| Demand {
            of,
            bytes: bytes(&now) + program,
            above: then.as_ref().map(|then| bytes(then) + program),
            room: room.map(|room| room + program),
        };
        Fit {
            num_envs,
            takes: vec![
                take(" of the GPU", gpu, |s| s.gpu, 0),
                take(" of the host", host, |s| s.host, PROGRAM),
            ],
            above,
            measured: false,
        }
    }

    /// A line about `n` environments.
    pub(super) fn words(&self, n: usize) -> String {
        let takes = self.with(n);
        let free = |free: Option<u64>| free.map(|free| format!("{} are free", free >> 20));
        let local = match mib(self.local) {
            0 => None,
            mib => Some(format!("{mib} of them for the environments' threads")),
        };
        let noted = |notes: [Option<String>; 2]| match notes {
            [None, None] => String::new(),
            notes => {
                let notes: Vec<_> = notes.into_iter().flatten().collect();
                format!(" ({})", notes.join(", "))
            }
        };
        let tight = match self.free.is_some_and(|free| takes.gpu > free) {
            true => "; where they do not fit the run takes fewer",
            false => "",
        };
        format!(
            "memory: with {n} environments about {} MiB of the GPU{} and {} MiB of the host{}, estimated{tight}",
            mib(takes.gpu),
            noted([local, free(self.free)]),
            mib(PROGRAM + takes.host),
            noted([None, free(self.host)]),
        )
    }
}
