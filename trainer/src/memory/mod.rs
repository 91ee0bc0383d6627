//! Memory: a run's need, the free memory, and a watch over both while it runs.
//!
//! Reading order: [`MemoryMonitor`] (a thread that looks twice a second) -> [`sample`] (samples
//! and pressure) -> one module a source: `cgroup`, `host`, `device` (NVML), `disk`; before the
//! run begins [`FreeMemory`] (free memory), `Need` (an estimate), `probe` (a measurement), `fit`
//! (what follows).

mod cgroup;
mod config;
mod device;
mod disk;
pub(crate) mod fit;
mod free;
mod host;
mod monitor;
mod need;
mod probe;
pub mod sample;

pub use cgroup::{Cgroups, Use};
pub use config::MemoryConfig;
pub use device::{Gpu, Throttle};
pub(crate) use device::{GpuWatch, gpu_names};
pub use disk::Disk;
#[cfg(test)]
pub(crate) use free::Told;
pub use free::{FreeMemory, Here};
pub use host::{Process, System, resident_mib};
pub use monitor::{Hook, MemoryMonitor, Snapshot};
pub(crate) use need::{Need, weights};
pub use sample::{Level, Pressure, Sample, Source, Sources, available};
