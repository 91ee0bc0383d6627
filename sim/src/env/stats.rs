//! Statistics of episodes.

use super::EnvSpec;
use super::examine::DESCRIBED;
use crate::device::Address;
use crate::memory::MemoryError;
use crate::physics::{Shortfalls, fault};
use crate::state::Sizes;
use serde::{Deserialize, Serialize};

include!(concat!(env!("OUT_DIR"), "/stats.rs"));

/// How many numbers the statistics have that are of several things.
#[derive(Debug, Clone, Copy)]
pub(crate) struct StatSizes {
    one: usize,
    nreward: usize,
    nmetric: usize,
    nteam: usize,
    nend: usize,
    nfault: usize,
    ncause: usize,
    nevent: usize,
}

impl StatSizes {
    fn of(spec: &EnvSpec) -> Self {
        Self {
            one: 1,
            nreward: spec.reward_names.len(),
            nmetric: spec.metrics.len(),
            nteam: spec.agents.len(),
            nend: spec.termination_names.len(),
            nfault: fault::COUNT,
            ncause: spec.cause_names.len(),
            nevent: spec.events.len(),
        }
    }

    /// Of those that a device counts.
    pub fn on_device(s: &Sizes) -> Self {
        Self {
            one: 1,
            nreward: s.nreward,
            nmetric: s.nmetric,
            nteam: if s.nagent > 1 { s.nagent } else { 0 },
            nend: s.nend,
            nfault: fault::COUNT,
            ncause: 0,
            nevent: s.nevent,
        }
    }
}

/// A number of a statistic: a `u64` where it is a count, else an `f64`.
pub(crate) type Number = [u8; 8];

/// One of the statistics.
#[derive(Debug)]
pub(crate) struct Stat {
    pub name: &'static str,
    /// Whether its numbers are counts.
    pub counts: bool,
    size: fn(&StatSizes) -> usize,
}

impl Stat {
    /// How many numbers it has.
    pub fn size(&self, sizes: &StatSizes) -> usize {
        (self.size)(sizes)
    }

    /// Adds to one of its numbers.
    pub fn add(&self, to: &mut Number, more: Number) {
        *to = match self.counts {
            true => (u64::from_ne_bytes(*to) + u64::from_ne_bytes(more)).to_ne_bytes(),
            false => (f64::from_ne_bytes(*to) + f64::from_ne_bytes(more)).to_ne_bytes(),
        };
    }

    /// Adds what a device counted.
    pub fn add_total(&self, to: &mut Number, total: f64) {
        let more = if self.counts { (total as u64).to_ne_bytes() } else { total.to_ne_bytes() };
        self.add(to, more);
    }
}

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
        /// What `kernels/env/stats.h` lists.
        pub(crate) static STATS: [Stat; [$(stringify!($name)),*].len()] = [$(Stat {
            name: stringify!($name),
            counts: matches!(stringify!($kind).as_bytes(), b"count"),
            size: |s| s.$size,
        }),*];

        /// How many of them are single numbers: the first ones.
        pub(super) const ONES: usize =
            0 $(+ matches!(stringify!($size).as_bytes(), b"one") as usize)*;

        /// Where kernels count them, one address each.
        pub(crate) type StatAddresses = [Address; STATS.len()];

        /// Statistics of the episodes that ended since the last call, and of broken
        /// environments. Sums are over episodes.
        #[derive(Debug, Clone, Default, PartialEq)]
        pub struct EpisodeStats {
            $(#[doc = $says] pub $name: numbers!($kind $size),)*
            /// The first few broken environments.
            pub breaks: Vec<Break>,
            /// Shortfalls of the physics.
            pub shortfalls: Shortfalls,
            /// Returns and lengths of the episodes, in order of (step, environment),
            /// for evaluation; capped at the number of environments per call.
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
        finished.try_reserve_exact(spec.num_envs).map_err(|_| MemoryError {
            what: "finished episodes".to_string(),
            bytes: spec.num_envs.saturating_mul(std::mem::size_of::<Finished>()),
        })?;
        let mut finished_metrics = Vec::new();
        let metrics = spec.num_envs.saturating_mul(spec.metrics.len());
        finished_metrics.try_reserve_exact(metrics).map_err(|_| MemoryError {
            what: "metrics of finished episodes".to_string(),
            bytes: 4 * metrics,
        })?;
        let sizes = StatSizes::of(spec);
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

    /// Where a host's kernels count.
    pub(super) fn addresses(&mut self) -> StatAddresses {
        self.numbers_mut().map(|numbers| numbers.as_mut_ptr() as Address)
    }

    /// How often an environment broke.
    pub fn broken(&self) -> u64 {
        self.causes.iter().sum()
    }

    /// Whether all finished episodes have their metrics: those that a device counted have none.
    pub(super) fn has_metrics(&self) -> bool {
        self.finished_metrics.len() == self.finished.len() * self.metric_sums.len()
    }
}
