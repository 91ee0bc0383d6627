//! libtorch's CUDA part, loaded at run time and only for a run that wants a GPU.
//!
//! The program links the processor's part of libtorch alone, so that a run on the
//! processor maps neither the driver nor `libtorch_cuda` and has no context on a GPU
//! (failure F5). Whoever wants a GPU calls [`find`] first: it goes from the driver
//! ([`driver`]) to libtorch's CUDA part ([`libtorch`]) and says which step fails, and
//! with a remedy ([`NoCuda`]). Nothing here creates a context.
//!
//! libtorch remembers the answer to the first question about CUDA for the life of the
//! process. So nobody may ask before [`find`] has loaded the library: the lint
//! `disallowed-methods` keeps all of `tch::Cuda` to this folder.

pub mod driver;
mod error;
pub mod libtorch;

pub use error::NoCuda;

use std::sync::{Mutex, PoisonError};

/// A GPU that libtorch can compute on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// As CUDA numbers it.
    pub index: usize,
    /// As the driver calls it.
    pub name: String,
    /// Compute capability, such as (9, 0).
    pub capability: (u32, u32),
    /// The newest CUDA that the driver can do.
    pub driver: driver::Version,
}

/// Looks for CUDA's device `index` and loads libtorch's CUDA part. The second call
/// costs next to nothing. Call it before a fork only if the child will not compute on
/// a GPU: CUDA does not survive a fork.
///
/// # Errors
/// The first thing on the way that is missing, with its remedy.
pub fn find(index: usize) -> Result<Found, NoCuda> {
    // Two threads must not load the library at once: the one that comes second would
    // ask libtorch before it is there.
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock().unwrap_or_else(PoisonError::into_inner);
    let driver = driver::Driver::load()?;
    let place = libtorch::LibtorchFolder::of_this_process();
    place.has_cuda()?;
    driver.serves(place.built_for())?;
    let gpu = driver.gpu(index)?;
    place.load()?;
    #[allow(clippy::disallowed_methods, reason = "the library was just loaded")]
    let count = tch::Cuda::device_count();
    if usize::try_from(count).is_ok_and(|n| index < n) {
        return Ok(gpu);
    }
    Err(NoCuda::Libtorch { driver: driver.count()?, libtorch: count })
}
