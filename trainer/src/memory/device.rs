//! The GPU as its driver sees it, through NVML.
//!
//! The library is loaded when a run on a GPU begins, and only then: a run on the CPU
//! maps nothing of NVIDIA's. Without it the run goes on and says so once.

use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::device::ThrottleReasons;
use nvml_wrapper::enum_wrappers::device::TemperatureSensor;
use nvml_wrapper::error::NvmlError;
use serde::Serialize;

/// A GPU at one moment. What it does not tell is `None`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Gpu {
    /// In use by all programs (bytes).
    pub used: u64,
    /// All of its memory (bytes).
    pub total: u64,
    /// Share of the time in which it computed (%).
    pub utilisation: Option<u32>,
    /// Of the chip (degrees Celsius).
    pub temperature: Option<u32>,
    /// Drawn now (W).
    pub power: Option<f64>,
    /// Why its clocks are lower than they could be: NVML's bits, without those of an
    /// idle GPU and of settings.
    pub throttled: u64,
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
    /// Loads NVML for CUDA's device `index`. `visible` is `CUDA_VISIBLE_DEVICES`, which
    /// renumbers devices; NVML does not follow it.
    ///
    /// # Errors
    /// There is no NVML, or no such device.
    pub fn new(index: usize, visible: Option<&str>) -> Result<Self, NvmlError> {
        let which = which(index, visible).ok_or(NvmlError::NotFound)?;
        let watch = Self {
            nvml: Nvml::init()?,
            which,
        };
        watch.now().map(|_| watch)
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
        let throttled = device.current_throttle_reasons().unwrap_or(ordinary) - ordinary;
        Ok(Gpu {
            used: memory.total.saturating_sub(memory.free),
            total: memory.total,
            utilisation: device.utilization_rates().ok().map(|u| u.gpu),
            temperature: device.temperature(TemperatureSensor::Gpu).ok(),
            power: device.power_usage().ok().map(|mw| f64::from(mw) / 1e3),
            throttled: throttled.bits(),
        })
    }
}

/// Names of the GPUs that CUDA may use here; none where there is no NVML. `visible` is
/// `CUDA_VISIBLE_DEVICES`.
pub(crate) fn gpu_names(visible: Option<&str>) -> Vec<String> {
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
