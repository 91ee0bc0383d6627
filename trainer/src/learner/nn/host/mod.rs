//! Small networks on a processor, where an operation of libtorch costs as much as its
//! arithmetic: activations as one pass over memory, and a whole actor at once.
//!
//! What a row becomes does not depend on the rows beside it, on how many there are, or on
//! the width of the processor's vectors: there is one order of operations, and what is
//! left over at an end goes through the same ones.

mod activation;
mod forward;
mod lanes;

pub use activation::{backward, forward};
pub use forward::{ActorPass, Weights};

/// Vectors that the processor has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Vectors {
    /// Eight numbers: AVX2 and FMA.
    Eight,
    /// Sixteen: AVX-512F.
    Sixteen,
}

impl Vectors {
    /// The widest; none on a processor older than 2013, where libtorch does all.
    pub fn widest() -> Option<Self> {
        Self::all().last()
    }

    /// All there are, narrow ones first.
    fn all() -> impl Iterator<Item = Self> {
        let eight = std::is_x86_feature_detected!("avx2") && std::is_x86_feature_detected!("fma");
        let sixteen = eight && std::is_x86_feature_detected!("avx512f");
        let eight = eight.then_some(Self::Eight);
        eight.into_iter().chain(sixteen.then_some(Self::Sixteen))
    }
}

#[cfg(test)]
mod tests;
