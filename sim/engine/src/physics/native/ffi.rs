//! The C side: kernels as tables of functions (`sim/kernels/api.h`) and what they
//! take (`step.cuh`).

use super::specialize::{Library, SpecializeError};
use super::tables::{RawTables, RealTables, RobotTables, Scalar, soft};
use crate::kernels::{EvalArgs, OSTLER_KERNEL_VERSION, OstlerKernel, StepArgs};
use std::alloc::Layout;
use std::ffi::CStr;
use std::os::raw::{c_char, c_int, c_long};
use std::ptr::NonNull;
use std::sync::Arc;

// Those of this build: sim/engine/build.rs.
unsafe extern "C" {
    #[cfg(instructions = "portable")]
    fn ostler_kernel_portable() -> *const OstlerKernel;
    #[cfg(instructions = "avx2")]
    fn ostler_kernel_avx2() -> *const OstlerKernel;
    #[cfg(instructions = "avx512")]
    fn ostler_kernel_avx512() -> *const OstlerKernel;
    #[cfg(feature = "double")]
    fn ostler_kernel_double() -> *const OstlerKernel;
}

/// Which of the linked kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Linked {
    Portable,
    Avx2,
    Avx512,
    Double,
}

/// A linked kernel's functions; none where this build left it out.
pub(super) fn linked(which: Linked) -> Option<&'static OstlerKernel> {
    // SAFETY: each returns the address of a constant that lives as long as the
    // program, laid out as `OstlerKernel`.
    unsafe {
        let api: *const OstlerKernel = match which {
            #[cfg(instructions = "portable")]
            Linked::Portable => ostler_kernel_portable(),
            #[cfg(instructions = "avx2")]
            Linked::Avx2 => ostler_kernel_avx2(),
            #[cfg(instructions = "avx512")]
            Linked::Avx512 => ostler_kernel_avx512(),
            #[cfg(feature = "double")]
            Linked::Double => ostler_kernel_double(),
            #[allow(unreachable_patterns, reason = "a build may have all")]
            _ => return None,
        };
        Some(&*api)
    }
}

/// A kernel's functions, and the library they are in unless they are linked.
#[derive(Debug, Clone)]
pub(super) struct Functions {
    api: &'static OstlerKernel,
    _library: Option<Arc<Library>>,
}

impl From<&'static OstlerKernel> for Functions {
    fn from(api: &'static OstlerKernel) -> Self {
        Self { api, _library: None }
    }
}

/// The functions of a library that was compiled from `generate`'s text for a robot.
///
/// # Errors
/// It has no kernel in it, or one for another robot: its code would read and write
/// beyond the worlds' buffers.
pub(super) fn loaded(
    library: &Arc<Library>,
    plan: &RobotTables,
) -> Result<Functions, SpecializeError> {
    // SAFETY: `generate` gives this name this signature.
    let robot =
        unsafe { library.function::<unsafe extern "C" fn() -> *const c_char>("ostler_robot") }?;
    // SAFETY: as above; it returns a constant C string of the library, which is loaded.
    let digest = unsafe { CStr::from_ptr((robot.get())()) };
    if digest.to_bytes() != plan.digest().to_hex().as_bytes() {
        return Err(SpecializeError::Load {
            path: library.path().to_path_buf(),
            reason: "it was compiled for another robot, time step or solver".into(),
        });
    }
    // SAFETY: `generate` gives this name this signature.
    let entry = unsafe {
        library.function::<unsafe extern "C" fn() -> *const OstlerKernel>("ostler_kernel")
    }?;
    // SAFETY: as above; the constant it points to lives as long as the library, which
    // `Functions` keeps beside it and which no copy of `api` outlives.
    let api = unsafe { &*(entry.get())() };
    Ok(Functions { api, _library: Some(Arc::clone(library)) })
}

/// One thread's working memory for a robot.
#[derive(Debug)]
pub(super) struct Work {
    memory: NonNull<u8>,
    layout: Layout,
}

// SAFETY: `Work` owns its memory and nothing in it is tied to a thread.
unsafe impl Send for Work {}

impl Drop for Work {
    fn drop(&mut self) {
        // SAFETY: allocated in `Robot::work` with this layout, freed once.
        unsafe { std::alloc::dealloc(self.memory.as_ptr(), self.layout) };
    }
}

/// A kernel with the tables of the robot it steps.
#[derive(Debug)]
pub(super) struct Robot<T> {
    functions: Functions,
    plan: RobotTables,
    reals: RealTables<T>,
}

impl<T: Scalar> Robot<T> {
    /// Binds `api` to a robot; `None` when the kernel is of another version or
    /// computes in another type.
    pub(super) fn new(functions: impl Into<Functions>, plan: RobotTables) -> Option<Self> {
        let functions = functions.into();
        let api = functions.api;
        let fits =
            api.version == OSTLER_KERNEL_VERSION && api.real_bytes as usize == size_of::<T>();
        fits.then(|| Self { functions, reals: RealTables::new(&plan), plan })
    }

    /// Environments per block.
    pub(super) fn lanes(&self) -> usize {
        self.functions.api.lanes.max(1) as usize
    }

    /// How near the geoms of each pair press (m), to be changed; a specialised kernel does not read
    /// it.
    pub(super) fn margins(&mut self) -> impl Iterator<Item = &mut T> {
        self.reals.pair_soft.iter_mut().skip(soft::MARGIN).step_by(soft::LEN)
    }

    /// The robot's tables.
    pub(super) fn plan(&self) -> &RobotTables {
        &self.plan
    }

    fn tables(&self) -> RawTables<'_, T> {
        self.reals.raw(&self.plan)
    }

    /// Bytes of working memory per thread.
    pub(super) fn work_bytes(&self) -> usize {
        let tables = self.tables();
        // SAFETY: the tables are laid out as `Tables<T>` and outlive the call.
        unsafe { (self.functions.api.work_bytes)((&raw const tables).cast()) as usize }
    }

    /// Working memory for one thread, or the bytes that could not be had.
    pub(super) fn work(&self) -> Result<Work, usize> {
        let bytes = self.work_bytes();
        let layout = Layout::from_size_align(bytes.max(64), 64).map_err(|_| bytes)?;
        // SAFETY: the layout's size is not 0.
        let memory = unsafe { std::alloc::alloc_zeroed(layout) };
        let work = Work { memory: NonNull::new(memory).ok_or(bytes)?, layout };
        let tables = self.tables();
        // SAFETY: `memory` is zeroed, aligned to 64 and as large as the kernel asked.
        unsafe {
            (self.functions.api.work_init)((&raw const tables).cast(), work.memory.as_ptr().cast());
        }
        Ok(work)
    }

    /// Evaluates states `0..count`.
    ///
    /// # Safety
    /// As for [`step`](Self::step).
    pub(super) unsafe fn evaluate(&self, work: &mut Work, args: &EvalArgs, count: usize) {
        let tables = self.tables();
        let lanes = self.lanes();
        for start in (0..count).step_by(lanes) {
            let n = lanes.min(count - start);
            // SAFETY: the caller's promise.
            unsafe {
                (self.functions.api.evaluate)(
                    (&raw const tables).cast(),
                    work.memory.as_ptr().cast(),
                    (&raw const *args).cast(),
                    start as c_int,
                    n as c_int,
                );
            }
        }
    }
}

impl Robot<f32> {
    /// Steps environments `first..first + count`.
    ///
    /// # Safety
    /// `work` is this robot's. Every address in `args` is of a buffer `[k][stride]`
    /// with `k` as `step.cuh` says and `first + count <= stride`, alive and reached by
    /// nobody else in these columns during the call.
    pub(super) unsafe fn step(&self, work: &mut Work, args: &StepArgs, first: usize, count: usize) {
        let tables = self.tables();
        let lanes = self.lanes();
        for start in (first..first + count).step_by(lanes) {
            let n = lanes.min(first + count - start);
            // SAFETY: the caller's promise; at most `lanes` columns from `start` on.
            unsafe {
                (self.functions.api.step)(
                    (&raw const tables).cast(),
                    work.memory.as_ptr().cast(),
                    (&raw const *args).cast(),
                    start as c_int,
                    n as c_int,
                );
            }
        }
    }
}

const _: () = assert!(size_of::<c_long>() == 8, "Linux x86-64");
