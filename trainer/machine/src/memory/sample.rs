//! Memory at one moment, and the pressure on it.

use super::cgroup::{Cgroups, Use};
use super::config::MemoryConfig;
use super::device::{Gpu, GpuWatch, Throttle};
use super::disk::Disk;
use super::host::{Process, System};
use crate::torch::{DeviceMemory, device_memory};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Origin of a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Source {
    /// The control group's `memory.max`, `memory.high` or `memory.limit_in_bytes`.
    Cgroup,
    /// `RLIMIT_AS`.
    AddressSpace,
    /// `RLIMIT_DATA`.
    Data,
    /// The system's memory, whoever uses it.
    #[default]
    System,
    /// The GPU's memory, whoever uses it.
    Gpu,
    /// The file system that the run writes to.
    Disk,
}

impl Source {
    /// All of them; a number is a place in this list.
    pub const ALL: [Self; 6] =
        [Self::Cgroup, Self::AddressSpace, Self::Data, Self::System, Self::Gpu, Self::Disk];

    /// In words.
    pub fn name(self) -> &'static str {
        match self {
            Self::Cgroup => "the control group",
            Self::AddressSpace => "the address space (ulimit -v)",
            Self::Data => "the data segment (ulimit -d)",
            Self::System => "the system",
            Self::Gpu => "the GPU",
            Self::Disk => "the disk",
        }
    }
}

/// How tight it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Level {
    /// Below `memory.warn`.
    #[default]
    Calm,
    /// Worth a warning.
    Warn,
    /// To be acted upon.
    Act,
}

impl Level {
    /// All of them, in order.
    pub const ALL: [Self; 3] = [Self::Calm, Self::Warn, Self::Act];

    /// As it is written in logs.
    pub fn name(self) -> &'static str {
        match self {
            Self::Calm => "calm",
            Self::Warn => "warn",
            Self::Act => "act",
        }
    }
}

/// The use of one limit (bytes).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Pressure {
    /// Owner of the limit.
    pub source: Source,
    /// In use.
    pub used: u64,
    /// The limit.
    pub limit: u64,
}

impl Pressure {
    /// Share of the limit in use.
    pub fn share(self) -> f64 {
        self.used as f64 / self.limit.max(1) as f64
    }

    /// Bytes that are left.
    pub fn left(self) -> u64 {
        self.limit.saturating_sub(self.used)
    }

    /// How tight this is. Once at a level, `before`, a share has to fall a little below
    /// it to leave it: a share that trembles around a level is not reported over and over.
    pub fn level(self, config: &MemoryConfig, before: Level) -> Level {
        let above = |level: Level| {
            let slack = if before >= level { 1.0 } else { 0.0 };
            if self.source == Source::Disk {
                let mib = match level {
                    Level::Act => config.disk_act_mib,
                    _ => config.disk_warn_mib,
                };
                let least = (mib << 20) as f64 * (1.0 + 0.1 * slack);
                return mib > 0 && (self.left() as f64) < least;
            }
            let share = match level {
                Level::Act => config.act,
                _ => config.warn,
            };
            self.share() >= share - 0.01 * slack
        };
        match () {
            () if above(Level::Act) => Level::Act,
            () if above(Level::Warn) => Level::Warn,
            () => Level::Calm,
        }
    }
}

impl std::fmt::Display for Pressure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let mib = |bytes: u64| bytes >> 20;
        write!(
            f,
            "{} of {} MiB of {} in use, {} MiB left",
            mib(self.used),
            mib(self.limit),
            self.source.name(),
            mib(self.left())
        )
    }
}

/// Everything at one moment. Values that the machine does not report are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Sample {
    /// Since the watch began (s).
    pub at_s: f64,
    /// This process.
    pub process: Option<Process>,
    /// The system.
    pub system: Option<System>,
    /// The control group with the tightest limit.
    pub cgroup: Option<Use>,
    /// Where the run writes.
    pub disk: Option<Disk>,
    /// The GPU.
    pub gpu: Option<Gpu>,
    /// libtorch's share of the GPU.
    pub torch: Option<DeviceMemory>,
}

impl Sample {
    /// The use of every limit of memory that is known.
    pub fn pressures(&self) -> impl Iterator<Item = Pressure> {
        let of = |source, used, limit| Pressure { source, used, limit };
        let process = |source, (used, limit): (u64, Option<u64>)| Some(of(source, used, limit?));
        [
            self.cgroup.map(|c| of(Source::Cgroup, c.used, c.limit)),
            self.process.and_then(|p| process(Source::AddressSpace, p.address_space)),
            self.process.and_then(|p| process(Source::Data, p.data)),
            self.system.map(|s| of(Source::System, s.total.saturating_sub(s.available), s.total)),
            self.gpu.map(|g| {
                // Memory that libtorch keeps without using it is available.
                let kept = self.torch.map_or(0, |t| t.reserved.saturating_sub(t.allocated));
                of(Source::Gpu, g.used.saturating_sub(kept), g.total)
            }),
        ]
        .into_iter()
        .flatten()
    }

    /// The limit with the largest share in use.
    pub fn tightest(&self) -> Option<Pressure> {
        let all = self.pressures();
        all.max_by(|a, b| a.share().total_cmp(&b.share()))
    }

    /// The file system that the run writes to. Without room for files there is no room.
    pub fn disk(&self) -> Option<Pressure> {
        let disk = self.disk.filter(|d| d.total > 0)?;
        let left = match disk.free_files {
            Some(0) => 0,
            _ => disk.free,
        };
        Some(Pressure {
            source: Source::Disk,
            used: disk.total.saturating_sub(left),
            limit: disk.total,
        })
    }

    /// Logged numbers by tag; unknown ones are left out.
    pub fn scalars(&self) -> impl Iterator<Item = (&'static str, f64)> {
        let mib = |bytes: u64| bytes as f64 / f64::from(1 << 20);
        let gpu = |of: fn(Gpu) -> Option<f64>| self.gpu.and_then(of);
        fn flag(on: Option<bool>) -> Option<f64> {
            on.map(|on| f64::from(u8::from(on)))
        }
        [
            ("Memory/anonymous_mib", self.process.map(|p| mib(p.anonymous))),
            ("Memory/peak_mib", self.process.map(|p| mib(p.peak))),
            ("Memory/share", self.tightest().map(Pressure::share)),
            ("Memory/free_mib", self.free().map(mib)),
            ("Memory/disk_free_mib", self.disk.map(|d| mib(d.free))),
            ("Memory/gpu_used_mib", self.gpu.map(|g| mib(g.used))),
            ("Memory/gpu_total_mib", self.gpu.map(|g| mib(g.total))),
            ("Memory/gpu_tensors_mib", self.torch.map(|t| mib(t.allocated))),
            ("Memory/gpu_reserved_mib", self.torch.map(|t| mib(t.reserved))),
            ("Gpu/utilisation", gpu(|g| g.utilisation.map(f64::from))),
            ("Gpu/memory_utilisation", gpu(|g| g.memory_utilisation.map(f64::from))),
            ("Gpu/temperature", gpu(|g| g.temperature.map(f64::from))),
            ("Gpu/power_w", gpu(|g| g.power)),
            ("Gpu/ecc_corrected", gpu(|g| Some(g.ecc_corrected? as f64))),
            ("Gpu/ecc_uncorrected", gpu(|g| Some(g.ecc_uncorrected? as f64))),
            ("Gpu/throttled_by_power", gpu(|g| flag(g.throttled_by(Throttle::Power)))),
            ("Gpu/throttled_by_heat", gpu(|g| flag(g.throttled_by(Throttle::Heat)))),
            ("Gpu/throttled_otherwise", gpu(|g| flag(g.throttled_by(Throttle::Other)))),
        ]
        .into_iter()
        .filter_map(|(tag, value)| Some((tag, value?)))
    }

    /// Bytes of the host's memory that this process may still take.
    pub fn free(&self) -> Option<u64> {
        let host = self.pressures().filter(|p| p.source != Source::Gpu);
        host.map(Pressure::left).min()
    }
}

/// Where samples come from.
#[derive(Debug)]
pub struct Sources {
    root: PathBuf,
    folder: Option<PathBuf>,
    cgroups: Cgroups,
    gpu: Option<(usize, GpuWatch)>,
}

impl Sources {
    /// This process, its system and the file system of `folder`.
    pub fn host(folder: Option<&Path>) -> Self {
        Self::below(Path::new("/"), folder)
    }

    /// The same with another root for `/proc` and `/sys`.
    pub fn below(root: &Path, folder: Option<&Path>) -> Self {
        Self {
            root: root.to_path_buf(),
            folder: folder.map(Path::to_path_buf),
            cgroups: Cgroups::find(root),
            gpu: None,
        }
    }

    /// CUDA's device `index` as well. Without NVML a line says so, once.
    pub fn with_gpu(mut self, index: usize) -> Self {
        let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
        match GpuWatch::new(index, visible.as_deref()) {
            Ok(watch) => self.gpu = Some((index, watch)),
            Err(e) => tracing::warn!(
                "the GPU's memory, load and temperature are not watched: NVML: {e}; it comes with the driver (libnvidia-ml.so.1), a container takes NVIDIA_DRIVER_CAPABILITIES=compute,utility"
            ),
        }
        self
    }

    /// A GPU that is watched already.
    #[cfg(test)]
    pub(super) fn with_watch(mut self, index: usize, watch: GpuWatch) -> Self {
        self.gpu = Some((index, watch));
        self
    }

    /// Looks at everything.
    pub fn sample(&mut self) -> Sample {
        let cgroup = self.cgroups.tightest().or_else(|| {
            // A process can be moved into another group.
            self.cgroups = Cgroups::find(&self.root);
            self.cgroups.tightest()
        });
        let gpu = self.gpu.as_ref();
        let mut process = Process::now(&self.root);
        if let Some(p) = &mut process
            && self.root == Path::new("/")
        {
            // Freed memory stays with the process and is available, but limits on address space
            // and data count it.
            let free = crate::torch::heap_free();
            for (used, _) in [&mut p.address_space, &mut p.data] {
                *used = used.saturating_sub(free);
            }
        }
        Sample {
            at_s: 0.0,
            process,
            system: System::now(&self.root),
            cgroup,
            disk: (self.folder.as_deref().and_then(Disk::of)).map(super::disk::seen),
            gpu: gpu.and_then(|g| g.1.now().ok()),
            torch: gpu.and_then(|g| device_memory(g.0).ok()),
        }
    }
}

/// Bytes of the host's memory that this process may still take: the least that any
/// limit leaves; `None` where nothing is known.
pub fn available() -> Option<u64> {
    Sources::host(None).sample().free()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MIB: u64 = 1 << 20;

    fn sample(used: u64, limit: u64) -> Sample {
        Sample {
            process: Some(Process { data: (10 * MIB, Some(1000 * MIB)), ..Process::default() }),
            system: Some(System { total: 1000 * MIB, available: 500 * MIB }),
            cgroup: Some(Use { used, limit }),
            ..Sample::default()
        }
    }

    /// No machine has as many GPUs.
    #[test]
    fn a_machine_without_nvml_says_so_once_and_all_else_is_watched() {
        let log = Log::default();
        let writer = log.clone();
        let subscriber =
            tracing_subscriber::fmt().with_writer(move || writer.clone()).with_ansi(false).finish();
        let samples = tracing::subscriber::with_default(subscriber, || {
            let mut sources = Sources::host(None).with_gpu(4096);
            [sources.sample(), sources.sample(), sources.sample()]
        });
        for sample in samples {
            assert_eq!((sample.gpu, sample.torch), (None, None));
            assert!(sample.process.is_some() && sample.system.is_some());
        }
        let text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
        assert_eq!(text.lines().count(), 1, "{text}");
        for part in ["WARN", "are not watched: NVML: ", "libnvidia-ml.so.1"] {
            assert!(text.contains(part), "{part:?} in {text}");
        }
    }

    #[derive(Clone, Default)]
    struct Log(std::sync::Arc<std::sync::Mutex<Vec<u8>>>);

    impl std::io::Write for Log {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn the_limit_with_the_largest_share_counts() {
        let tightest = |s: Sample| s.tightest().unwrap();
        assert_eq!(tightest(sample(40 * MIB, 100 * MIB)).source, Source::System);
        let tight = tightest(sample(90 * MIB, 100 * MIB));
        assert_eq!(tight.source, Source::Cgroup);
        assert_eq!(tight.to_string(), "90 of 100 MiB of the control group in use, 10 MiB left");
        assert_eq!(sample(90 * MIB, 100 * MIB).free(), Some(10 * MIB));
        assert_eq!(Sample::default().tightest(), None);
        assert_eq!(Sample::default().free(), None);
    }

    #[test]
    fn levels_follow_the_configured_shares_and_do_not_tremble() {
        let config = MemoryConfig::default();
        let level = |used, before| {
            let p = Pressure { source: Source::Cgroup, used, limit: 1000 };
            p.level(&config, before)
        };
        assert_eq!(level(849, Level::Calm), Level::Calm);
        assert_eq!(level(850, Level::Calm), Level::Warn);
        assert_eq!(level(849, Level::Warn), Level::Warn);
        assert_eq!(level(839, Level::Warn), Level::Calm);
        assert_eq!(level(950, Level::Calm), Level::Act);
        assert_eq!(level(945, Level::Act), Level::Act);
        assert_eq!(level(945, Level::Warn), Level::Warn);
    }

    #[test]
    fn a_disk_is_judged_by_what_is_left() {
        let config =
            MemoryConfig { disk_warn_mib: 100, disk_act_mib: 10, ..MemoryConfig::default() };
        let disk = |free, free_files| Sample {
            disk: Some(Disk { free: free * MIB, total: 1_000_000 * MIB, free_files }),
            ..Sample::default()
        };
        let level = |s: Sample| s.disk().unwrap().level(&config, Level::Calm);
        assert_eq!(level(disk(100, None)), Level::Calm);
        assert_eq!(level(disk(99, Some(5))), Level::Warn);
        assert_eq!(level(disk(9, None)), Level::Act);
        assert_eq!(level(disk(5000, Some(0))), Level::Act);
        let never = MemoryConfig { disk_warn_mib: 0, disk_act_mib: 0, ..config };
        let full = disk(0, None).disk().unwrap();
        assert_eq!(full.level(&never, Level::Calm), Level::Calm);
        // A file system that counts nothing has no level.
        assert!(Sample { disk: Some(Disk::default()), ..Sample::default() }.disk().is_none());
    }

    #[test]
    fn what_libtorch_keeps_unused_is_no_pressure() {
        let s = Sample {
            gpu: Some(Gpu { used: 900, total: 1000, ..Gpu::default() }),
            torch: Some(DeviceMemory { allocated: 100, reserved: 700 }),
            ..Sample::default()
        };
        assert_eq!(s.tightest().unwrap().used, 300);
        assert_eq!(s.free(), None, "the host's memory is another matter");
    }

    #[test]
    fn this_machine_has_free_memory() {
        assert!(available().unwrap() > 1 << 20);
    }
}
