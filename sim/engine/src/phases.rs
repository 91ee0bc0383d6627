//! The phases of a control step on a host: `sim/kernels/env/phases.cuh`, compiled for every
//! instruction set.

use crate::kernels::{EnvArgs, Ground, OstlerEnv};
use crate::physics::native::InstructionSet;
use std::os::raw::c_int;
use std::sync::OnceLock;

/// Environments that a step on a host takes together, at most.
pub const BLOCK: usize = 64;

// Those of this build: build.rs.
unsafe extern "C" {
    #[cfg(instructions = "portable")]
    fn ostler_env_portable() -> *const OstlerEnv;
    #[cfg(instructions = "avx2")]
    fn ostler_env_avx2() -> *const OstlerEnv;
    #[cfg(instructions = "avx512")]
    fn ostler_env_avx512() -> *const OstlerEnv;
}

/// The functions for this processor. Numbers do not depend on which.
///
/// # Panics
/// There are none: environments are not built then ([`InstructionSet::widest`]).
pub fn api() -> &'static OstlerEnv {
    static FOUND: OnceLock<&OstlerEnv> = OnceLock::new();
    FOUND.get_or_init(|| {
        let set = InstructionSet::widest().unwrap_or_else(|e| panic!("{e}"));
        // SAFETY: each returns the address of a constant that lives as long as the program,
        // laid out as `OstlerEnv`.
        let api: &OstlerEnv = unsafe {
            &*match set {
                #[cfg(instructions = "portable")]
                InstructionSet::Portable => ostler_env_portable(),
                #[cfg(instructions = "avx2")]
                InstructionSet::Avx2 => ostler_env_avx2(),
                #[cfg(instructions = "avx512")]
                InstructionSet::Avx512 => ostler_env_avx512(),
                #[allow(unreachable_patterns, reason = "a build may have all")]
                _ => unreachable!("the widest was built"),
            }
        };
        api
    })
}

/// What [`heights`] gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Relief {
    /// Height (m).
    Height,
    /// Slope along x.
    SlopeX,
    /// Slope along y.
    SlopeY,
}

/// Heights or slopes of the ground at places of the world (m).
///
/// # Safety
/// The address of `ground`'s heights is of as many as its sizes say, which live and which
/// nobody writes meanwhile.
pub unsafe fn heights(
    ground: &Ground,
    what: Relief,
    x: &[f32; BLOCK],
    y: &[f32; BLOCK],
    to: &mut [f32; BLOCK],
) {
    // SAFETY: the caller's promise; as many places as it reads.
    unsafe { (api().ground)(ground, what as c_int, x.as_ptr(), y.as_ptr(), to.as_mut_ptr()) }
}

/// Puts the worlds in the mask among `first..first + len` where their episodes begin.
///
/// # Safety
/// The addresses in `args` of the mask, of the new positions and velocities, of the robot's
/// tables and of the worlds' columns are of buffers of the sizes that it has, and no other
/// thread reads or writes entries of these environments meanwhile.
pub unsafe fn place(args: &EnvArgs, first: usize, len: usize) {
    // SAFETY: the caller's promise.
    unsafe { (api().place)(args, first as c_int, len as c_int) }
}
