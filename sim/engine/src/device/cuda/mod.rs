//! NVIDIA GPUs.
//!
//! Nothing of CUDA is loaded before [`Cuda::open`], which says why where there is no GPU to work
//! on ([`Unavailable`]). Work goes to the legacy default stream of the device's primary context:
//! libtorch's, so that either sees the other's writes in the order in which it was started, and
//! nothing has to be waited for.
//!
//! Reading order: [`Unavailable`] -> `driver` (the driver's functions) -> [`nvrtc`]
//! (CUDA's compiler) -> [`compile`] (compiled programs and their cache) ->
//! [`CudaKernels`] -> `staging`.

pub mod compile;
mod driver;
mod kernels;
mod memory;
pub mod nvrtc;
mod staging;
mod unavailable;

pub use kernels::CudaKernels;
pub use memory::CudaMemory;
pub use unavailable::{CUDA_NEEDED, DRIVER_NEEDED, Unavailable};

use super::counts::Counts;
use super::transfer::Staging;
use super::{Address, Device, DeviceError, Kernels, Program, Traffic};
use compile::Compiler;
use cudarc::driver::sys::CUdevice_attribute as Attribute;
use driver::{Context, Event, Refused};
use kernels::Extent;
use nvrtc::Nvrtc;
use staging::{PinnedStaging, Ring};
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// An NVIDIA GPU.
pub struct Cuda {
    ring: Mutex<Option<Ring>>,
    fence: Mutex<Event>,
    context: Arc<Context>,
    ordinal: usize,
    name: String,
    driver: (u32, u32),
    capability: (u32, u32),
    extent: Extent,
    /// Threads that all multiprocessors together have at a time.
    resident_threads: u64,
    architecture: String,
    compiler: Compiler,
    counts: Arc<Counts>,
}

/// The name that NVML, too, has for CUDA's device number `ordinal`, whatever order it numbers them
/// in: `12345678-9abc-...` of `GPU-12345678-9abc-...`, or of `MIG-...`. None where there is none.
pub fn uuid(ordinal: usize) -> Option<String> {
    driver::uuid(ordinal)
}

/// How a GPU is used.
#[derive(Debug, Clone, Default)]
pub struct CudaOptions {
    /// Threads of a block; without it as many as spread a launch over the whole device.
    pub threads_per_block: Option<u32>,
}

impl fmt::Debug for Cuda {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cuda({})", self.name())
    }
}

impl Cuda {
    /// GPU number `ordinal`, from 0, of those that this process may see.
    ///
    /// # Errors
    /// Why not, with the remedy.
    pub fn open(ordinal: usize) -> Result<Arc<Self>, Unavailable> {
        Self::with(ordinal, &CudaOptions::default())
    }

    /// As [`Self::open`], used in another way.
    ///
    /// # Errors
    /// As there.
    pub fn with(ordinal: usize, options: &CudaOptions) -> Result<Arc<Self>, Unavailable> {
        let driver = driver::library::start()?;
        let context = Context::open(ordinal)?;
        let refused = |e: Refused| e.unavailable(format!("cuda:{ordinal}"));
        let ask = |attribute| context.attribute(attribute).map_err(refused);
        let capability = (
            ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            ask(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let extent = Extent {
            multiprocessors: ask(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?,
            threads_per_block: options.threads_per_block,
        };
        let of_one = Attribute::CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR;
        let resident_threads = u64::from(extent.multiprocessors) * u64::from(ask(of_one)?);
        let name = context.name().map_err(refused)?;
        let nvrtc = Nvrtc::find(Some(driver))?;
        let architecture = nvrtc.architecture(&name, capability)?;
        Ok(Arc::new(Self {
            ring: Mutex::new(None),
            fence: Mutex::new(Event::new(&context).map_err(refused)?),
            context,
            ordinal,
            name,
            driver,
            capability,
            extent,
            resident_threads,
            architecture,
            compiler: Compiler::from_environment(nvrtc),
            counts: Arc::default(),
        }))
    }

    /// Compiles a program, or takes it from the cache, and loads it.
    ///
    /// # Errors
    /// As for [`Device::load`].
    pub fn kernels(&self, program: &Program) -> Result<Arc<CudaKernels>, DeviceError> {
        let compiled = self.compiler.compile(program, &self.architecture)?;
        let kernels =
            CudaKernels::load(&self.context, &self.counts, program, compiled, self.extent)?;
        Ok(Arc::new(kernels))
    }

    /// The device's memory by the driver itself, for where libtorch does not share it.
    pub fn memory(&self) -> CudaMemory {
        CudaMemory(Arc::clone(&self.context))
    }

    /// Free and total memory of the device (bytes).
    ///
    /// # Errors
    /// The driver refuses.
    pub fn free_memory(&self) -> Result<(usize, usize), DeviceError> {
        Ok(self.context.memory()?)
    }

    /// Lets another stream of this device, given by its handle, wait for the work started here
    /// so far. The host waits for nothing.
    ///
    /// # Errors
    /// The driver refuses.
    pub fn precede(&self, stream: u64) -> Result<(), DeviceError> {
        let mut event = locked(&self.fence);
        event.record()?;
        Ok(event.precede(stream)?)
    }

    /// The newest CUDA that the driver knows: major, minor.
    pub fn driver_version(&self) -> (u32, u32) {
        self.driver
    }

    /// Compute capability: major, minor.
    pub fn capability(&self) -> (u32, u32) {
        self.capability
    }

    /// How many multiprocessors it has.
    pub fn multiprocessors(&self) -> u32 {
        self.extent.multiprocessors
    }

    /// Architecture of programs: `sm_90`.
    pub fn architecture(&self) -> &str {
        &self.architecture
    }

    /// The compiler.
    pub fn compiler(&self) -> &Compiler {
        &self.compiler
    }
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data behind these locks is whole after every step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Device for Cuda {
    fn name(&self) -> String {
        let Self { name, ordinal, .. } = self;
        format!("{name} (cuda:{ordinal}, {})", self.architecture)
    }

    fn load(&self, program: &Program) -> Result<Arc<dyn Kernels>, DeviceError> {
        Ok(self.kernels(program)?)
    }

    fn staging(&self, what: &str, bytes: usize) -> Result<Box<dyn Staging>, DeviceError> {
        let staging = PinnedStaging::new(&self.context, &self.counts, bytes)
            .map_err(|e| e.asking(&format!("pinned host memory of {what}"), bytes))?;
        Ok(Box::new(staging))
    }

    unsafe fn upload(&self, from: &[u8], to: Address) -> Result<(), DeviceError> {
        let mut ring = locked(&self.ring);
        let ring = match &mut *ring {
            Some(ring) => ring,
            none => none.insert(
                Ring::new(&self.context, &self.counts)
                    .map_err(|e| e.asking("pinned host memory of uploads", Ring::BYTES))?,
            ),
        };
        // SAFETY: the caller's promise.
        Ok(unsafe { ring.send(from, to) }?)
    }

    unsafe fn copy(&self, from: Address, to: Address, bytes: usize) -> Result<(), DeviceError> {
        // SAFETY: the caller's promise.
        Ok(unsafe { self.context.copy(from, to, bytes) }?)
    }

    fn fence(&self) -> Result<(), DeviceError> {
        let mut event = locked(&self.fence);
        event.record()?;
        self.counts.wait();
        Ok(event.wait()?)
    }

    /// The driver keeps the largest stack of a program's entries for every thread that the
    /// device can have at a time, however few are launched.
    fn local_memory(&self, program: &Program) -> Result<u64, DeviceError> {
        let compiled = self.compiler.compile(program, &self.architecture)?;
        let stacks = compiled.needs.iter().map(|entry| entry.needs.stack);
        Ok(u64::from(stacks.max().unwrap_or(0)) * self.resident_threads)
    }

    fn synchronize(&self) -> Result<(), DeviceError> {
        self.counts.wait();
        Ok(self.context.synchronize()?)
    }

    fn traffic(&self) -> Traffic {
        self.counts.traffic()
    }
}
