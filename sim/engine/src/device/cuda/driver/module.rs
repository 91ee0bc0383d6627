//! Compiled programs in a context.

use super::{Context, Event, Refused, STREAM, check, library};
use cudarc::driver::sys::{self, CUfunction, CUfunction_attribute, CUmodule, CUresult};
use std::ffi::{CString, c_void};
use std::sync::Arc;

/// A loaded cubin.
#[derive(Debug)]
pub(crate) struct Module {
    module: CUmodule,
    /// To wait for its launches before it is unloaded.
    done: Event,
    context: Arc<Context>,
}

// SAFETY: a module is a number to the driver, whose functions may be called from any
// thread.
unsafe impl Send for Module {}
// SAFETY: as above; nothing is changed through a shared reference.
unsafe impl Sync for Module {}

/// An entry of a module, alive as long as it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Function(CUfunction);

// SAFETY: as for `Module`.
unsafe impl Send for Function {}
// SAFETY: as for `Module`.
unsafe impl Sync for Function {}

/// The function to launch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    pub blocks: u32,
    /// Of a block.
    pub threads: u32,
}

impl Module {
    /// Loads a cubin that this program's compiler has made.
    pub(crate) fn load(context: &Arc<Context>, cubin: &[u8]) -> Result<Self, Refused> {
        context.enter()?;
        let done = Event::new(context)?;
        // The driver reads words.
        let mut words = vec![0_u64; cubin.len().div_ceil(8)];
        bytemuck::cast_slice_mut(&mut words)[..cubin.len()].copy_from_slice(cubin);
        let mut module = std::ptr::null_mut();
        // SAFETY: the driver copies what it keeps; an image says itself how long it is,
        // and it is whole: just made, or of the hash it was written with.
        check("cuModuleLoadData", unsafe {
            sys::cuModuleLoadData(&mut module, words.as_ptr().cast())
        })?;
        Ok(Self { module, done, context: Arc::clone(context) })
    }

    /// An entry; `None` if there is none of that name.
    pub(crate) fn function(&self, name: &str) -> Result<Option<Function>, Refused> {
        let Ok(name) = CString::new(name) else {
            return Ok(None);
        };
        self.context.enter()?;
        let mut function = std::ptr::null_mut();
        // SAFETY: the module is alive, the name a C string.
        let result = unsafe { sys::cuModuleGetFunction(&mut function, self.module, name.as_ptr()) };
        if result == CUresult::CUDA_ERROR_NOT_FOUND {
            return Ok(None);
        }
        check("cuModuleGetFunction", result)?;
        Ok(Some(Function(function)))
    }

    /// The most threads that a block of it can have.
    pub(crate) fn max_threads(&self, function: Function) -> Result<u32, Refused> {
        self.context.enter()?;
        let mut value = 0;
        let what = CUfunction_attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK;
        // SAFETY: the function is of this module; one number is written.
        check("cuFuncGetAttribute", unsafe {
            sys::cuFuncGetAttribute(&mut value, what, function.0)
        })?;
        Ok(u32::try_from(value).unwrap_or_default())
    }

    /// How many bytes each of its parameters has; `None` where the driver does not know
    /// (before CUDA 12.4).
    pub(crate) fn parameters(&self, function: Function) -> Result<Option<Vec<usize>>, Refused> {
        if !library::has("cuFuncGetParamInfo") {
            return Ok(None);
        }
        self.context.enter()?;
        let mut sizes = Vec::new();
        loop {
            let (mut offset, mut size) = (0, 0);
            // SAFETY: the function is of this module; two numbers are written.
            let result =
                unsafe { sys::cuFuncGetParamInfo(function.0, sizes.len(), &mut offset, &mut size) };
            // This is how it says that there are no more.
            if result == CUresult::CUDA_ERROR_INVALID_VALUE {
                return Ok(Some(sizes));
            }
            check("cuFuncGetParamInfo", result)?;
            sizes.push(size);
        }
    }

    /// Starts `grid.blocks` blocks of `grid.threads` threads each.
    ///
    /// # Safety
    /// The function is of this module and takes one parameter, of as many bytes as `args`
    /// has; its use of them is sound.
    pub(crate) unsafe fn launch(
        &self,
        function: Function,
        grid: Grid,
        args: &[u8],
    ) -> Result<(), Refused> {
        self.context.enter()?;
        let mut parameters = [args.as_ptr().cast_mut().cast::<c_void>()];
        // SAFETY: the driver copies the parameter, whose length the caller vouches for,
        // before the call returns, and writes nothing.
        check("cuLaunchKernel", unsafe {
            sys::cuLaunchKernel(
                function.0,
                grid.blocks,
                1,
                1,
                grid.threads,
                1,
                1,
                0,
                STREAM,
                parameters.as_mut_ptr(),
                std::ptr::null_mut(),
            )
        })
    }
}

impl Drop for Module {
    fn drop(&mut self) {
        // Launches may still be running or queued, and the driver does not promise to wait
        // for them. An error here is that of a device that runs nothing any more.
        let _ = self.done.record().and_then(|()| self.done.wait());
        if self.context.enter().is_ok() {
            // SAFETY: loaded once, unloaded once; all launches from it are done.
            let _ = unsafe { sys::cuModuleUnload(self.module) };
        }
    }
}
