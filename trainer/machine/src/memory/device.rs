//! The GPU as its driver sees it, through NVML.
//!
//! The library is loaded when a run on a GPU begins, and only then: a run on the CPU
//! maps nothing of NVIDIA's. Without it the run goes on and says so once.

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError, TemperatureSensor};
use nvml_wrapper::error::NvmlError;
use ostler_sim::device::cuda::uuid;
use serde::Serialize;

/// A GPU at one moment. Values that it does not report are `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Gpu {
    /// In use by all programs (bytes).
    pub used: u64,
    /// All of its memory (bytes).
    pub total: u64,
    /// Share of the time in which it computed (%).
    pub utilisation: Option<u32>,
    /// Share of the time in which its memory was read or written (%).
    pub memory_utilisation: Option<u32>,
    /// Of the chip (degrees Celsius).
    pub temperature: Option<u32>,
    /// Drawn now (W).
    pub power: Option<f64>,
    /// Errors of its memory since the driver started that were mended (ECC).
    pub ecc_corrected: Option<u64>,
    /// Such that could not be mended: numbers were lost.
    pub ecc_uncorrected: Option<u64>,
    /// Why its clocks are lower than they could be: NVML's bits, without those of an
    /// idle GPU and of settings.
    pub throttled: Option<u64>,
}

/// Why a GPU computes slower than it could.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Throttle {
    /// It would draw more power than it may.
    Power,
    /// It would get too hot.
    Heat,
    /// Something else: the machine asked for it, or a GPU beside it.
    Other,
}

impl Throttle {
    const ALL: [Self; 3] = [Self::Power, Self::Heat, Self::Other];

    fn bits(self) -> ThrottleReasons {
        let power = ThrottleReasons::SW_POWER_CAP | ThrottleReasons::HW_POWER_BRAKE_SLOWDOWN;
        let heat = ThrottleReasons::SW_THERMAL_SLOWDOWN | ThrottleReasons::HW_THERMAL_SLOWDOWN;
        match self {
            Self::Power => power,
            Self::Heat => heat,
            Self::Other => ThrottleReasons::all() - power - heat,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Self::Power => "power",
            Self::Heat => "heat",
            Self::Other => "other reasons",
        }
    }
}

impl Gpu {
    /// Whether this is why it is slow now; `None` where it does not tell.
    pub fn throttled_by(&self, why: Throttle) -> Option<bool> {
        Some(self.throttled? & why.bits().bits() != 0)
    }

    /// All but its memory, as the end of a line: `, 45 degrees, 80 W, 12 % busy`.
    pub fn condition(&self) -> String {
        let mut text = String::new();
        let mut add = |part: Option<String>| text.extend(part.map(|p| format!(", {p}")));
        add(self.temperature.map(|t| format!("{t} degrees")));
        add(self.power.map(|w| format!("{w:.0} W")));
        add(self.utilisation.map(|u| format!("{u} % busy")));
        for why in Throttle::ALL {
            let slowed = self.throttled_by(why) == Some(true);
            add(slowed.then(|| format!("slowed by {}", why.name())));
        }
        let lost = self.ecc_uncorrected.filter(|n| *n > 0);
        add(lost.map(|n| format!("{n} memory errors that could not be mended")));
        text
    }

    /// Readings that have become worse since `before`, for the log.
    pub(crate) fn news(&self, before: &Self) -> Vec<String> {
        let mut news = Vec::new();
        let count = |gpu: &Self| gpu.ecc_uncorrected.unwrap_or(0);
        if count(self) > count(before) {
            news.push(format!(
                "the GPU's memory had {} errors that could not be mended: numbers may be wrong; if it happens again, the GPU has to be replaced",
                count(self) - count(before)
            ));
        }
        for why in Throttle::ALL {
            let slowed = |gpu: &Self| gpu.throttled_by(why) == Some(true);
            if slowed(self) && !slowed(before) {
                let condition = self.condition();
                news.push(format!("the GPU lowers its clocks{condition}"));
                break;
            }
        }
        news
    }
}

/// NVML and which of its devices the run computes on.
#[derive(Debug)]
pub struct GpuWatch {
    nvml: Nvml,
    which: Which,
}

/// How NVML is asked for a device. Its numbers are those of the PCI bus.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Which {
    Index(u32),
    Uuid(String),
}

impl GpuWatch {
    /// Loads NVML for CUDA's device `index`: by the name that both have for it, since CUDA numbers
    /// by speed and NVML by bus. Where the driver has none, by its number and `visible`
    /// (`CUDA_VISIBLE_DEVICES`), which renumbers devices; NVML does not follow it.
    ///
    /// # Errors
    /// There is no NVML, or no such device.
    pub fn new(index: usize, visible: Option<&str>) -> Result<Self, NvmlError> {
        let nvml = Nvml::init()?;
        let names = uuid(index).map(|id| ["GPU", "MIG"].map(|kind| format!("{kind}-{id}")));
        let named = names.into_iter().flatten().find(|n| nvml.device_by_uuid(n.as_str()).is_ok());
        let which = match named {
            Some(name) => Which::Uuid(name),
            None => which(index, visible).ok_or(NvmlError::NotFound)?,
        };
        Self::of(nvml, which)
    }

    fn of(nvml: Nvml, which: Which) -> Result<Self, NvmlError> {
        let watch = Self { nvml, which };
        watch.now().map(|_| watch)
    }

    /// Device 0 of the NVML in this file.
    #[cfg(test)]
    pub(super) fn from_library(path: &std::path::Path) -> Result<Self, NvmlError> {
        let nvml = Nvml::builder().lib_path(path.as_os_str()).init()?;
        Self::of(nvml, Which::Index(0))
    }

    /// The GPU as it is now.
    ///
    /// # Errors
    /// It has fallen off the bus, or does not tell its memory.
    pub fn now(&self) -> Result<Gpu, NvmlError> {
        let device = match &self.which {
            Which::Index(i) => self.nvml.device_by_index(*i)?,
            Which::Uuid(id) => self.nvml.device_by_uuid(id.as_str())?,
        };
        let memory = device.memory_info()?;
        let ordinary = ThrottleReasons::GPU_IDLE
            | ThrottleReasons::APPLICATIONS_CLOCKS_SETTING
            | ThrottleReasons::DISPLAY_CLOCK_SETTING;
        let throttled = device.current_throttle_reasons().ok();
        let utilisation = device.utilization_rates().ok();
        let errors = |kind| device.total_ecc_errors(kind, EccCounter::Volatile).ok();
        Ok(Gpu {
            used: memory.total.saturating_sub(memory.free),
            total: memory.total,
            utilisation: utilisation.as_ref().map(|u| u.gpu),
            memory_utilisation: utilisation.as_ref().map(|u| u.memory),
            temperature: device.temperature(TemperatureSensor::Gpu).ok(),
            power: device.power_usage().ok().map(|mw| f64::from(mw) / 1e3),
            ecc_corrected: errors(MemoryError::Corrected),
            ecc_uncorrected: errors(MemoryError::Uncorrected),
            throttled: throttled.map(|t| (t - ordinary).bits()),
        })
    }
}

/// Names of the GPUs that CUDA may use here; none where there is no NVML. `visible` is
/// `CUDA_VISIBLE_DEVICES`.
pub fn gpu_names(visible: Option<&str>) -> Vec<String> {
    let Ok(nvml) = Nvml::init() else {
        return Vec::new();
    };
    let count = match visible {
        None => nvml.device_count().unwrap_or(0) as usize,
        Some(list) => list.split(',').count(),
    };
    let name = |index: usize| {
        let device = match which(index, visible)? {
            Which::Index(i) => nvml.device_by_index(i),
            Which::Uuid(id) => nvml.device_by_uuid(id.as_str()),
        };
        device.and_then(|d| d.name()).ok()
    };
    // CUDA sees no device after the first that is not there.
    (0..count).map_while(name).collect()
}

/// The device that CUDA calls `index`, as NVML is asked for it. CUDA numbers only the
/// visible ones, by bus where `CUDA_DEVICE_ORDER=PCI_BUS_ID` is set; without it, GPUs
/// of different speed in one machine may be numbered otherwise.
fn which(index: usize, visible: Option<&str>) -> Option<Which> {
    let Some(list) = visible else {
        return Some(Which::Index(u32::try_from(index).ok()?));
    };
    let entry = list.split(',').map(str::trim).nth(index)?;
    match entry.parse() {
        Ok(n) => Some(Which::Index(n)),
        Err(_) if entry.starts_with("GPU-") || entry.starts_with("MIG-") => {
            Some(Which::Uuid(entry.into()))
        }
        Err(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visible_devices_are_renumbered() {
        let index = |n| Some(Which::Index(n));
        assert_eq!(which(1, None), index(1));
        assert_eq!(which(1, Some("3, 2")), index(2));
        let uuid = Some(Which::Uuid("GPU-8932".into()));
        assert_eq!(which(0, Some("GPU-8932,1")), uuid);
        for (i, list) in [(0, ""), (2, "0,1"), (0, "-1"), (0, "all")] {
            assert_eq!(which(i, Some(list)), None, "{list}");
        }
    }

    /// NVML with one GPU that answers as it is told.
    fn fake() -> (tempfile::TempDir, GpuWatch) {
        let dir = tempfile::tempdir().unwrap();
        let library = dir.path().join("libnvidia-ml.so.1");
        let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/pretend/nvml.cpp");
        let status = std::process::Command::new("c++")
            .args(["-shared", "-fPIC", "-o"])
            .arg(&library)
            .arg(source)
            .status();
        assert!(status.unwrap().success());
        let watch = GpuWatch::from_library(&library).unwrap();
        (dir, watch)
    }

    #[test]
    fn what_nvml_tells_of_a_gpu_is_logged_with_the_metrics() {
        use crate::memory::{Sample, Sources};
        let (_dir, watch) = fake();
        let mut sources = Sources::host(None).with_watch(0, watch);
        let sample: Sample = sources.sample();
        let scalars: Vec<_> = sample.scalars().collect();
        for (tag, value) in [
            ("Memory/gpu_used_mib", 20.0 * 1024.0),
            ("Memory/gpu_total_mib", 80.0 * 1024.0),
            ("Gpu/utilisation", 71.0),
            ("Gpu/memory_utilisation", 23.0),
            ("Gpu/temperature", 57.0),
            ("Gpu/power_w", 312.5),
            ("Gpu/ecc_corrected", 3.0),
            ("Gpu/ecc_uncorrected", 0.0),
            ("Gpu/throttled_by_power", 0.0),
            ("Gpu/throttled_by_heat", 0.0),
            ("Gpu/throttled_otherwise", 0.0),
        ] {
            assert!(scalars.contains(&(tag, value)), "{tag} in {scalars:?}");
        }
        let gpu = sample.gpu.unwrap();
        assert_eq!(gpu.condition(), ", 57 degrees, 312 W, 71 % busy");
    }

    #[test]
    fn only_what_becomes_worse_is_news() {
        let (_dir, watch) = fake();
        let well = watch.now().unwrap();
        let hot = Gpu {
            throttled: Some(ThrottleReasons::HW_THERMAL_SLOWDOWN.bits()),
            ecc_uncorrected: Some(2),
            temperature: Some(94),
            ..well
        };
        assert_eq!(hot.throttled_by(Throttle::Heat), Some(true));
        assert_eq!(hot.throttled_by(Throttle::Power), Some(false));
        let news = hot.news(&well);
        assert_eq!(news.len(), 2, "{news:?}");
        assert!(news[0].contains("2 errors"), "{news:?}");
        assert!(news[1].contains("94 degrees") && news[1].contains("slowed by heat"), "{news:?}");
        assert!(hot.news(&hot).is_empty() && well.news(&hot).is_empty());
    }

    #[test]
    fn a_machine_without_nvml_is_an_error_and_no_panic() {
        // With a GPU the numbers have to make sense instead.
        if let Ok(watch) = GpuWatch::new(0, None) {
            let gpu = watch.now().unwrap();
            assert!(gpu.total > 1 << 28 && gpu.used <= gpu.total, "{gpu:?}");
        }
        assert!(GpuWatch::new(4096, None).is_err());
    }
}
