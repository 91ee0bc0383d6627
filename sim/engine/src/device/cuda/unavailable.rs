//! Why there is no GPU to work on, each reason with its remedy.

use crate::device::DeviceError;
use std::path::PathBuf;

/// Why a GPU cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unavailable {
    /// No `libcuda.so.1`.
    #[error(
        "no NVIDIA driver: {reason}; install NVIDIA's driver ({needed} or newer), or start the container with its GPUs (docker run --gpus all)",
        needed = DRIVER_NEEDED
    )]
    NoDriver {
        /// Message of the system's loader.
        reason: String,
    },
    /// A driver that is too old for the program.
    #[error(
        "the NVIDIA driver is too old: it is one for CUDA {}.{}, CUDA {}.{} (driver {needed}) is needed at least; install a newer driver",
        .version.0, .version.1, CUDA_NEEDED.0, CUDA_NEEDED.1, needed = DRIVER_NEEDED
    )]
    DriverTooOld {
        /// The newest CUDA that it knows: major, minor.
        version: (u32, u32),
    },
    /// `libcuda.so` is that of a toolkit, for linking only.
    #[error(
        "the libcuda.so found first is the stub that CUDA toolkits bring for linking; take the toolkit's lib64/stubs out of LD_LIBRARY_PATH"
    )]
    Stub,
    /// A library by the driver's name that lacks a function of every driver.
    #[error("the library libcuda.so has no function {function}; install NVIDIA's driver again")]
    Incomplete {
        /// The missing function.
        function: &'static str,
    },
    /// A driver without a device.
    #[error("no NVIDIA GPU: {}", no_device(.visible.as_deref()))]
    NoDevice {
        /// `CUDA_VISIBLE_DEVICES`, if it is set.
        visible: Option<String>,
    },
    /// Fewer devices than that.
    #[error(
        "there is no cuda:{ordinal}: the machine has {count} GPU{}, the last is cuda:{}{}",
        if *.count == 1 { "" } else { "s" }, .count.saturating_sub(1),
        .visible.as_ref().map(|v| format!(" (CUDA_VISIBLE_DEVICES={v} shows no others)")).unwrap_or_default()
    )]
    OrdinalOutOfRange {
        /// The wanted device, from 0.
        ordinal: usize,
        /// How many there are.
        count: usize,
        /// `CUDA_VISIBLE_DEVICES`, if it is set.
        visible: Option<String>,
    },
    /// The driver does not let this process use it.
    #[error("the NVIDIA driver refuses {what}: {name} ({code}): {message}{}", remedy(.name))]
    Refused {
        /// `to start`, `cuda:0`.
        what: String,
        /// `CUDA_ERROR_SYSTEM_DRIVER_MISMATCH`.
        name: String,
        /// Its number.
        code: i32,
        /// The driver's sentence.
        message: String,
    },
    /// No compiler for the device.
    #[error(
        "NVRTC, CUDA's compiler, is missing (looked in {tried}); install it with `pip install nvidia-cuda-nvrtc` or with NVIDIA's CUDA toolkit, and name its folder in OSTLER_NVRTC or LD_LIBRARY_PATH",
        tried = .tried.join(", ")
    )]
    NoNvrtc {
        /// Where it was looked for.
        tried: Vec<String>,
    },
    /// `OSTLER_NVRTC` names something else.
    #[error("OSTLER_NVRTC={} has no NVRTC: {reason}; name the folder of libnvrtc.so", .path.display())]
    NamedNvrtc {
        /// Its name.
        path: PathBuf,
        /// Why not.
        reason: String,
    },
    /// This driver cannot load NVRTC's programs.
    #[error(
        "NVRTC {}.{} ({}) is newer than the driver, which is one for CUDA {}.{}; install a newer driver, or NVRTC of CUDA {} and name its folder in OSTLER_NVRTC",
        .nvrtc.0, .nvrtc.1, .path.display(), .driver.0, .driver.1, .driver.0
    )]
    NvrtcTooNew {
        /// Its version.
        nvrtc: (u32, u32),
        /// Its file.
        path: PathBuf,
        /// The newest CUDA that the driver knows.
        driver: (u32, u32),
    },
    /// NVRTC does not know the device.
    #[error(
        "NVRTC {}.{} ({}) makes no code for {device} (sm_{}{}); install {} one and name its folder in OSTLER_NVRTC",
        .nvrtc.0, .nvrtc.1, .path.display(), .capability.0, .capability.1,
        if *.older { "a newer" } else { "an older" }
    )]
    Architecture {
        /// Its version.
        nvrtc: (u32, u32),
        /// Its file.
        path: PathBuf,
        /// The device's name.
        device: String,
        /// The device's compute capability.
        capability: (u32, u32),
        /// NVRTC is older than the device, rather than the other way round.
        older: bool,
    },
}

/// The oldest CUDA whose driver is good enough: the first of those that load what any
/// NVRTC of CUDA 12 makes.
pub const CUDA_NEEDED: (u32, u32) = (12, 0);
/// The first driver for it.
/// <https://docs.nvidia.com/cuda/cuda-toolkit-release-notes/>, table 3.
pub const DRIVER_NEEDED: &str = "525";

fn no_device(visible: Option<&str>) -> String {
    match visible.map(str::trim) {
        Some(hidden @ ("" | "-1" | "NoDevFiles")) => format!(
            "CUDA_VISIBLE_DEVICES=\"{hidden}\" hides all of them; unset it, or set it to the numbers of those to use"
        ),
        Some(visible) => format!(
            "the driver shows none with CUDA_VISIBLE_DEVICES=\"{visible}\"; unset it, or see what `nvidia-smi -L` lists"
        ),
        None => "the driver shows none; see what `nvidia-smi -L` lists, and in a container whether /dev/nvidia0 is there".into(),
    }
}

fn remedy(name: &str) -> &'static str {
    match name {
        "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH" => {
            "; the driver was updated while the old one is loaded: restart the machine"
        }
        "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE" => {
            "; this GPU needs the system's own driver: take CUDA's compat folder out of LD_LIBRARY_PATH"
        }
        "CUDA_ERROR_SYSTEM_NOT_READY" => {
            "; its services do not run: start nvidia-fabricmanager, see `systemctl status nvidia-fabricmanager`"
        }
        "CUDA_ERROR_OUT_OF_MEMORY" => {
            "; other processes fill the GPU's memory: see `nvidia-smi`, or choose another GPU"
        }
        "CUDA_ERROR_DEVICE_UNAVAILABLE" | "CUDA_ERROR_INVALID_DEVICE" => {
            "; another process may own it (compute mode): see `nvidia-smi -q -d COMPUTE`"
        }
        "CUDA_ERROR_ECC_UNCORRECTABLE" | "CUDA_ERROR_DEVICE_NOT_LICENSED" => {
            "; see `nvidia-smi -q`, or choose another GPU"
        }
        _ => "; see `nvidia-smi` and `dmesg`, a restart of the machine may help",
    }
}

impl From<Unavailable> for DeviceError {
    fn from(reason: Unavailable) -> Self {
        Self::Unavailable(reason.to_string())
    }
}
