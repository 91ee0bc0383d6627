//! NVIDIA GPUs, as far as they can be tested without one: the reasons why there is none,
//! the compiler and its cache, and the driver's calls against a library that stands in
//! for it (`tests/pretend`). Where there is a GPU, `gpu` does the same on it.

mod cache;
mod compiler;
mod driver;
mod fake;
mod gpu;
mod lanes;
mod warp;
mod work;
