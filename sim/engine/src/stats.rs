//! The list of episodes' statistics: `kernels/env/stats.h` in Rust.

use crate::device::Address;
use crate::physics::fault;
use crate::state::Sizes;

include!(concat!(env!("OUT_DIR"), "/stats.rs"));

/// How many numbers the statistics have that are of several things.
#[derive(Debug, Clone, Copy)]
pub struct StatSizes {
    pub one: usize,
    pub nreward: usize,
    pub nmetric: usize,
    pub nteam: usize,
    pub nclipped: usize,
    pub nend: usize,
    pub nfault: usize,
    pub ncause: usize,
    pub nevent: usize,
}

impl StatSizes {
    /// Of those that a device counts.
    pub fn on_device(s: &Sizes) -> Self {
        Self {
            one: 1,
            nreward: s.nreward,
            nmetric: s.nmetric,
            nteam: if s.nagent > 1 { s.nagent } else { 0 },
            nclipped: s.nclipped,
            nend: s.nend,
            nfault: fault::COUNT,
            ncause: 0,
            nevent: s.nevent,
        }
    }
}

/// A number of a statistic: a `u64` where it is a count, else an `f64`.
pub type Number = [u8; 8];

/// One of the statistics.
#[derive(Debug)]
pub struct Stat {
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

macro_rules! stats {
    ($(($name:ident $_n:ident $kind:ident $size:ident $says:literal))*) => {
        /// What `kernels/env/stats.h` lists.
        pub static STATS: [Stat; [$(stringify!($name)),*].len()] = [$(Stat {
            name: stringify!($name),
            counts: matches!(stringify!($kind).as_bytes(), b"count"),
            size: |s| s.$size,
        }),*];

        /// How many of them are single numbers: the first ones.
        pub const ONES: usize =
            0 $(+ matches!(stringify!($size).as_bytes(), b"one") as usize)*;

        /// Where kernels count them, one address each.
        pub type StatAddresses = [Address; STATS.len()];
    };
}
episode_stats!(stats);
