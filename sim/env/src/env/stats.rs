//! Statistics of episodes.

use super::EnvSpec;
use ostler_base::memory::MemoryError;
use ostler_engine::device::Address;
use ostler_engine::physics::{Shortfalls, fault};
use ostler_engine::stats::{Number, STATS, StatAddresses, StatSizes};
use serde::{Deserialize, Serialize};

/// Broken environments that are described between two calls of
/// [`BatchEnv::take_stats`](super::BatchEnv::take_stats).
pub(super) const DESCRIBED: usize = 16;

/// So many of the episodes that ended since statistics were taken are listed, the last ones; of
/// the last step in which any ended all, however many.
pub const LISTED: usize = 100;

include!(concat!(env!("OUT_DIR"), "/stats.rs"));

#[allow(non_camel_case_types, reason = "the list's names")]
type count = u64;
#[allow(non_camel_case_types, reason = "the list's names")]
type sum = f64;

macro_rules! numbers {
    ($kind:ident one) => {
        $kind
    };
    ($kind:ident $size:ident) => {
        Vec<$kind>
    };
}
macro_rules! zeros {
    (one $size:expr) => {{
        let _ = $size;
        Default::default()
    }};
    ($of:ident $size:expr) => {
        vec![Default::default(); $size]
    };
}
macro_rules! slice {
    (one $from:ident $own:expr) => {
        std::slice::$from($own)
    };
    ($of:ident $from:ident $own:expr) => {
        $own
    };
}

macro_rules! stats {
    ($(($name:ident $_n:ident $kind:ident $size:ident $says:literal))*) => {
        /// Statistics of the episodes that ended since the last call, and of broken
        /// environments. Sums are over episodes.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct EpisodeStats {
            $(#[doc = $says] pub $name: numbers!($kind $size),)*
            /// The first few broken environments.
            pub breaks: Vec<Break>,
            /// Shortfalls of the physics.
            pub shortfalls: Shortfalls,
            /// Returns and lengths of the last [`LISTED`] episodes, in order of (step,
            /// environment), and of all that ended in the last step in which any did: who takes
            /// statistics after each step sees all.
            pub finished: Vec<Finished>,
            /// Metrics of these `[finished][metrics]`; empty where the episodes were counted on a
            /// device, or by several workers.
            pub finished_metrics: Vec<f32>,
        }

        impl EpisodeStats {
            /// Zeros, so many of each.
            pub(super) fn zeros(sizes: [usize; STATS.len()]) -> Self {
                let [$($name),*] = sizes;
                Self { $($name: zeros!($size $name),)* ..Self::default() }
            }

            /// All numbers.
            pub(super) fn numbers(&self) -> [&[Number]; STATS.len()] {
                [$(bytemuck::cast_slice(slice!($size from_ref &self.$name))),*]
            }

            /// The same, to be written.
            pub(crate) fn numbers_mut(&mut self) -> [&mut [Number]; STATS.len()] {
                [$(bytemuck::cast_slice_mut(slice!($size from_mut &mut self.$name))),*]
            }

            /// Copies `from`, reusing memory.
            pub(super) fn copy(&mut self, from: &Self) {
                $(self.$name.clone_from(&from.$name);)*
                self.finished_metrics.clone_from(&from.finished_metrics);
                self.breaks.clone_from(&from.breaks);
                self.shortfalls = from.shortfalls;
                self.finished.clone_from(&from.finished);
            }
        }
    };
}
episode_stats!(stats);

/// How many numbers each statistic has in batches of `spec`.
fn sizes(spec: &EnvSpec) -> StatSizes {
    StatSizes {
        one: 1,
        nreward: spec.reward_names.len(),
        nmetric: spec.metrics.len(),
        nteam: spec.agents.len(),
        nclipped: spec.agents.len().max(1),
        nend: spec.termination_names.len(),
        nfault: fault::COUNT,
        ncause: spec.cause_names.len(),
        nevent: spec.events.len(),
    }
}

/// An environment that broke.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub struct Break {
    /// Its global id.
    pub env: u32,
    /// Steps and resets of the batch when it broke.
    pub clock: u64,
    /// Control step of the rollout, from 0.
    pub step: u32,
    /// Control steps of its episode, that of the break included.
    pub age: u32,
    /// Index into [`EnvSpec::cause_names`].
    pub cause: u32,
    /// The number that was wrong; NaN where there is none to show.
    pub value: f32,
}

impl PartialEq for Break {
    /// By bits: a NaN is itself.
    fn eq(&self, other: &Self) -> bool {
        let all = |b: &Self| (b.env, b.clock, b.step, b.age, b.cause, b.value.to_bits());
        all(self) == all(other)
    }
}

/// One finished episode.
#[derive(Debug, Clone, Copy, PartialEq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
pub struct Finished {
    /// Environment, by its place in the batch.
    pub env: u32,
    /// Control step of the rollout in which it ended, from 0.
    pub step: u32,
    /// Sum of rewards; of several agents, the mean.
    pub ret: f32,
    /// Control steps.
    pub length: u32,
}

impl EpisodeStats {
    /// No episodes yet; room for all that [`super::BatchEnv::take_stats`] can report.
    pub fn with_room(spec: &EnvSpec) -> Result<Self, MemoryError> {
        let mut finished = Vec::new();
        let most = spec.num_envs.saturating_add(LISTED);
        finished.try_reserve_exact(most).map_err(|_| MemoryError {
            what: "finished episodes".to_string(),
            bytes: most.saturating_mul(std::mem::size_of::<Finished>()),
        })?;
        let mut finished_metrics = Vec::new();
        let metrics = most.saturating_mul(spec.metrics.len());
        finished_metrics.try_reserve_exact(metrics).map_err(|_| MemoryError {
            what: "metrics of finished episodes".to_string(),
            bytes: 4 * metrics,
        })?;
        let sizes = sizes(spec);
        let own = Self::zeros(STATS.each_ref().map(|s| s.size(&sizes)));
        Ok(Self { finished_metrics, breaks: Vec::with_capacity(DESCRIBED), finished, ..own })
    }
}

impl EpisodeStats {
    /// Moves the numbers into `into` and starts at zero; no allocation once `into` has been
    /// used.
    pub fn take_into(&mut self, into: &mut Self) {
        into.finished.reserve(self.finished.capacity().saturating_sub(into.finished.capacity()));
        let metrics = self.finished_metrics.capacity();
        into.finished_metrics.reserve(metrics.saturating_sub(into.finished_metrics.capacity()));
        into.breaks.reserve(DESCRIBED.saturating_sub(into.breaks.capacity()));
        into.copy(self);
        self.clear();
    }

    /// Nothing was counted.
    pub fn clear(&mut self) {
        self.numbers_mut().into_iter().for_each(|numbers| numbers.fill(Number::default()));
        self.shortfalls = Shortfalls::default();
        self.breaks.clear();
        self.finished.clear();
        self.finished_metrics.clear();
    }

    /// Adds the numbers of other environments, and their physics' shortfalls.
    pub fn add(&mut self, more: &Self) {
        for ((stat, own), more) in STATS.iter().zip(self.numbers_mut()).zip(more.numbers()) {
            own.iter_mut().zip(more).for_each(|(to, more)| stat.add(to, *more));
        }
        self.shortfalls.contact_overflow += more.shortfalls.contact_overflow;
        self.shortfalls.unsolved += more.shortfalls.unsolved;
    }

    /// Forgets the episodes that are listed no longer; `finished` is in order. Where this is
    /// called after each step, the list never outgrows its room.
    pub fn forget_old(&mut self) {
        let Some(last) = self.finished.last().map(|f| f.step) else { return };
        let of_last = self.finished.iter().rev().take_while(|f| f.step == last).count();
        let old = self.finished.len().saturating_sub(of_last.max(LISTED));
        let width = self.finished_metrics.len() / self.finished.len();
        self.finished.drain(..old);
        self.finished_metrics.drain(..old * width);
    }

    /// Where a host's kernels count.
    pub(super) fn addresses(&mut self) -> StatAddresses {
        self.numbers_mut().map(|numbers| numbers.as_mut_ptr() as Address)
    }

    /// How often an environment broke.
    pub fn broken(&self) -> u64 {
        self.causes.iter().sum()
    }

    /// The agent of whose rewards, in the episodes that ended, `task.rewards.clip` changed the
    /// largest share, and that share, from 0 to 1; nothing where none ended.
    pub fn most_clipped(&self) -> Option<(usize, f64)> {
        let most = (0..self.rewards_clipped.len()).max_by_key(|&m| self.rewards_clipped[m])?;
        let share = self.rewards_clipped[most] as f64 / self.length_sum;
        share.is_finite().then_some((most, share))
    }

    /// Whether all finished episodes have their metrics: those that a device counted have none.
    pub(super) fn has_metrics(&self) -> bool {
        self.finished_metrics.len() == self.finished.len() * self.metric_sums.len()
    }
}
