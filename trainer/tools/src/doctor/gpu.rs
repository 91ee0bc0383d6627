//! Driver, GPUs, NVML, CUDA's compiler, libtorch's part for GPUs.

use super::finding::Finding;
use super::wanted::Wanted;
use ostler_learn::config::Device;
pub(crate) use ostler_machine::memory::GpuWatch;
use ostler_machine::torch::cuda::driver::Driver;
use ostler_machine::torch::cuda::libtorch::LibtorchFolder;
use ostler_machine::torch::cuda::{self, NoCuda};
use ostler_run::log::progress::bytes;
use ostler_sim::device::cuda::nvrtc::Nvrtc;

pub(crate) fn findings(wanted: &Wanted) -> Vec<Finding> {
    if wanted.device == Device::Cpu {
        // Looking would load the driver.
        return vec![Finding::ok("GPU", "not looked for: device = \"cpu\"")];
    }
    let needed = matches!(wanted.device, Device::Cuda(_));
    let lack = |subject, why: &NoCuda| Finding::lack(subject, needed, why.cause(), why.remedy());
    let driver = match Driver::load() {
        Ok(driver) => driver,
        Err(why) => return vec![lack("driver", &why)],
    };
    let mut found = Vec::new();
    found.push(match driver.serves(LibtorchFolder::of_this_process().built_for()) {
        Ok(()) => Finding::ok("driver", format!("CUDA {}", driver.version)),
        Err(why) => lack("driver", &why),
    });
    let count = match driver.count() {
        Ok(count) => count,
        Err(why) => {
            found.push(lack("GPU", &why));
            return found;
        }
    };
    let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
    let mut no_nvml = None;
    for index in 0..count {
        let mut facts = match driver.gpu(index) {
            Ok(gpu) => {
                let (major, minor) = gpu.capability;
                format!("cuda:{index} {}, capability {major}.{minor}", gpu.name)
            }
            Err(why) => {
                found.push(lack("GPU", &why));
                continue;
            }
        };
        match GpuWatch::new(index, visible.as_deref()).and_then(|w| w.now()) {
            Ok(now) => {
                let free = now.total.saturating_sub(now.used);
                facts += &format!(", {} free of {}", bytes(free), bytes(now.total));
                facts += &now.condition();
            }
            Err(e) => no_nvml = Some(e.to_string()),
        }
        found.push(Finding::ok("GPU", facts));
    }
    found.push(match no_nvml {
        None => Finding::ok("NVML", "memory, load and temperature are logged"),
        Some(e) => Finding::lack(
            "NVML",
            false,
            format!("a GPU's memory, load and temperature are not logged ({e})"),
            "libnvidia-ml.so.1 comes with the driver; a container takes NVIDIA_DRIVER_CAPABILITIES=compute,utility",
        ),
    });
    found.push(nvrtc(&driver, needed && wanted.gpu_physics));
    let index = match wanted.device {
        Device::Cuda(index) => index,
        Device::Auto | Device::Cpu => 0,
    };
    found.push(match cuda::find(index) {
        Ok(_) => Finding::ok("CUDA", format!("libtorch can compute on cuda:{index}")),
        Err(why) => lack("CUDA", &why),
    });
    found
}

/// The compiler of programs for the GPU, one that the driver serves.
fn nvrtc(driver: &Driver, needed: bool) -> Finding {
    let cuda = (driver.version.major, driver.version.minor);
    match Nvrtc::find(Some(cuda)) {
        Ok(nvrtc) => {
            let (major, minor) = nvrtc.version();
            Finding::ok("NVRTC", format!("{major}.{minor}, {}", nvrtc.path().display()))
        }
        Err(e) => {
            let text = e.to_string();
            let (cause, remedy) = text.split_once("; ").unwrap_or((&text, "see docs/gpu.md"));
            Finding::lack("NVRTC", needed, cause, remedy)
        }
    }
}
