//! Which kernel steps a robot.

use super::ffi::{self, Linked};
use crate::kernels::OstlerKernel;
use ostler_base::processor;

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

/// An instruction set whose linked kernels cannot be called.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unusable {
    /// It would end the program with an illegal instruction.
    #[error("this processor has no {0}")]
    Processor(&'static str),
    /// The kernels were left out.
    #[error(
        "this program was built without {set} (it has {built}); `cargo build --release` builds \
         every instruction set"
    )]
    Build {
        /// The set.
        set: &'static str,
        /// Those with kernels.
        built: String,
    },
    /// The program is for other processors.
    #[error(
        "this program was built for processors with {built}, which this one has not: it has \
         {has}; build it on this machine (`cargo run --bin train -- CONFIG`), or build it \
         for every processor (`cargo build --release`)"
    )]
    Machine {
        /// Those with kernels.
        built: String,
        /// The widest of the processor.
        has: &'static str,
    },
}

impl InstructionSet {
    /// All there are, narrow ones first.
    pub const ALL: [Self; 3] = [Self::Portable, Self::Avx2, Self::Avx512];

    /// The widest that this processor has.
    pub fn detect() -> Self {
        Self::named(processor::widest()).unwrap_or(Self::Portable)
    }

    /// The widest that this processor has and this program has kernels for.
    ///
    /// # Errors
    /// The program was built for other processors.
    pub fn widest() -> Result<Self, Unusable> {
        Self::widest_of(Self::detect(), &Self::built())
    }

    fn widest_of(has: Self, built: &[Self]) -> Result<Self, Unusable> {
        let mut usable = built.iter().copied().filter(|set| set.runs_on(has));
        usable.next_back().ok_or_else(|| Unusable::Machine { built: names(built), has: has.name() })
    }

    /// Those that this program has kernels for, narrow ones first.
    pub fn built() -> Vec<Self> {
        let all = Self::ALL.into_iter();
        all.filter(|set| set.linked().is_some()).collect()
    }

    /// Whether this processor can run it.
    pub fn is_available(self) -> bool {
        self.runs_on(Self::detect())
    }

    fn runs_on(self, has: Self) -> bool {
        self.lanes() <= has.lanes()
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
        Self::ALL.into_iter().find(|set| set.name() == name)
    }

    /// Environments per vector.
    pub fn lanes(self) -> usize {
        match self {
            Self::Portable => 4,
            Self::Avx2 => 8,
            Self::Avx512 => 16,
        }
    }

    fn linked(self) -> Option<&'static OstlerKernel> {
        ffi::linked(match self {
            Self::Portable => Linked::Portable,
            Self::Avx2 => Linked::Avx2,
            Self::Avx512 => Linked::Avx512,
        })
    }

    /// The generic kernel.
    ///
    /// # Errors
    /// The processor has not these instructions; the program was built without it.
    pub(super) fn generic(self) -> Result<&'static OstlerKernel, Unusable> {
        if !self.is_available() {
            return Err(Unusable::Processor(self.name()));
        }
        self.linked()
            .ok_or_else(|| Unusable::Build { set: self.name(), built: names(&Self::built()) })
    }
}

fn names(sets: &[InstructionSet]) -> String {
    let names: Vec<&str> = sets.iter().map(|set| set.name()).collect();
    names.join(", ")
}

#[cfg(test)]
mod tests {
    use super::InstructionSet::{self, Avx2, Avx512, Portable};
    use super::Unusable;

    #[test]
    fn the_widest_is_one_that_the_processor_has_and_the_program_too() {
        let all = InstructionSet::ALL;
        let of = InstructionSet::widest_of;
        for has in all {
            assert_eq!(of(has, &all), Ok(has));
        }
        assert_eq!(of(Avx512, &[Avx2]), Ok(Avx2));
        assert_eq!(of(Avx2, &[Portable, Avx512]), Ok(Portable));
    }

    #[test]
    fn a_program_for_wider_processors_is_refused_with_the_way_out() {
        for (has, built) in [(Portable, &[Avx2, Avx512][..]), (Avx2, &[Avx512])] {
            let text = InstructionSet::widest_of(has, built).unwrap_err().to_string();
            assert!(text.contains("avx512") && text.contains(has.name()), "{text}");
            assert!(text.contains("cargo run --bin train"), "{text}");
        }
    }

    /// With all features all are there; with one, that one, and the others are named as absent.
    #[test]
    fn what_was_built_can_be_had_and_the_rest_says_how() {
        let built = InstructionSet::built();
        assert!(!built.is_empty());
        for set in InstructionSet::ALL {
            match set.generic() {
                Ok(_) => assert!(built.contains(&set) && set.is_available()),
                Err(Unusable::Processor(name)) => {
                    assert_eq!((name, set.is_available()), (set.name(), false));
                }
                Err(e @ Unusable::Build { .. }) => {
                    assert!(!built.contains(&set));
                    assert!(e.to_string().contains("cargo build --release"), "{e}");
                }
                Err(e) => panic!("{e}"),
            }
        }
    }
}
