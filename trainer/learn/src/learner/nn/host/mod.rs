//! Networks on a processor: passes over blocks of rows that stay in its caches.
//!
//! [`kernels`] are the passes themselves, compiled from `trainer/kernels`; [`product`]
//! multiplies matrices, [`half`] those of bfloat16; [`stack`] and [`recurrent`] put both together for learning, [`ActorPass`] for acting. What
//! an acting row becomes does not depend on the rows beside it or on how many there are: there
//! is one order of operations, and what is left over at an end goes through the same ones.

mod forward;
pub mod half;
pub mod kernels;
pub mod product;
pub mod recurrent;
pub mod stack;
mod weights;

pub use forward::ActorPass;
pub use kernels::Vectors;
pub use weights::Weights;

#[cfg(test)]
mod order_tests;
#[cfg(test)]
mod tests;
