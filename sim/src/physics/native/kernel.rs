//! Which kernel steps a robot.

use super::ffi::{self, Api, Linked};

/// Instructions a kernel was compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstructionSet {
    /// Any x86-64, 4 lanes.
    Portable,
    /// AVX2 and FMA, 8 lanes.
    Avx2,
    /// AVX-512, 16 lanes.
    Avx512,
}

impl InstructionSet {
    /// The widest that this processor has.
    pub fn detect() -> Self {
        let fma = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
        let wide = fma
            && std::is_x86_feature_detected!("avx512f")
            && std::is_x86_feature_detected!("avx512dq")
            && std::is_x86_feature_detected!("avx512vl");
        match (wide, fma) {
            (true, _) => Self::Avx512,
            (_, true) => Self::Avx2,
            _ => Self::Portable,
        }
    }

    /// Whether this processor can run it.
    pub fn is_available(self) -> bool {
        let has = Self::detect();
        self == Self::Portable || self == has || (self == Self::Avx2 && has == Self::Avx512)
    }

    /// As it is written in logs and snapshots.
    pub fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            Self::Avx2 => "avx2",
            Self::Avx512 => "avx512",
        }
    }

    /// The set of that name.
    pub fn named(name: &str) -> Option<Self> {
        let all = [Self::Portable, Self::Avx2, Self::Avx512];
        all.into_iter().find(|set| set.name() == name)
    }

    /// Environments per vector.
    pub fn lanes(self) -> usize {
        match self {
            Self::Portable => 4,
            Self::Avx2 => 8,
            Self::Avx512 => 16,
        }
    }

    pub(super) fn generic(self) -> &'static Api {
        ffi::linked(match self {
            Self::Portable => Linked::Portable,
            Self::Avx2 => Linked::Avx2,
            Self::Avx512 => Linked::Avx512,
        })
    }
}
