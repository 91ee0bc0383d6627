//! Memory: what is free, and a watch over it while a run goes on.
//!
//! Reading order: [`MemoryMonitor`] (a thread that looks twice a second) -> [`sample`] (samples
//! and pressure) -> one module a source: `cgroup`, `host`, `device` (NVML), `disk`; before the
//! run begins [`FreeMemory`].

mod cgroup;
mod config;
mod device;
mod disk;
mod free;
mod host;
mod monitor;
pub mod sample;

pub use cgroup::{Cgroups, Use};
pub use config::MemoryConfig;
pub use device::{Gpu, Throttle};
pub use device::{GpuWatch, gpu_names};
pub use disk::{Disk, limit_free_space};
pub use free::{FreeMemory, Here, Told};
pub use host::{Process, System, lacks_stack, resident_mib};
pub use monitor::{Hook, MemoryMonitor, Snapshot};
pub use sample::{Level, Pressure, Sample, Source, Sources, available};
