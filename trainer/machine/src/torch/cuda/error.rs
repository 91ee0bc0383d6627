//! Why there is no CUDA, and the remedy.

use super::driver::Version;
use std::path::PathBuf;

/// Why a run cannot use a GPU. Shown in one line: cause, then remedy.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}: {}", self.cause(), self.remedy())]
pub enum NoCuda {
    /// The driver's library cannot be loaded.
    NoDriver {
        /// The loader's words.
        said: String,
    },
    /// The driver is too old for libtorch's CUDA.
    DriverTooOld {
        /// The newest CUDA that the driver can do.
        driver: Version,
        /// Version that libtorch was built for.
        libtorch: Version,
    },
    /// There is a driver, and no GPU for this process.
    NoneVisible {
        /// `CUDA_VISIBLE_DEVICES`, if it is set.
        hidden: Option<String>,
    },
    /// There are GPUs, but not this one.
    OutOfRange {
        /// The one that was asked for.
        index: usize,
        /// How many there are.
        count: usize,
        /// `CUDA_VISIBLE_DEVICES`, if it is set.
        visible: Option<String>,
    },
    /// libtorch was built without CUDA.
    ProcessorOnly {
        /// Where libtorch lies.
        folder: PathBuf,
    },
    /// A library that libtorch's CUDA part needs is not there.
    Missing {
        /// The file's name.
        library: String,
    },
    /// libtorch's CUDA part cannot be loaded for another reason.
    Unloadable {
        /// The loader's words.
        said: String,
    },
    /// The driver refuses to start.
    Start {
        /// The driver's function.
        call: &'static str,
        /// CUDA's number of the error.
        code: i32,
        /// CUDA's words for it.
        said: String,
    },
    /// The driver has GPUs, libtorch finds fewer.
    Libtorch {
        /// GPUs that the driver counts.
        driver: usize,
        /// GPUs that libtorch counts.
        libtorch: i64,
    },
}

impl NoCuda {
    /// The cause.
    pub fn cause(&self) -> String {
        match self {
            Self::NoDriver { said } => format!("no NVIDIA driver ({said})"),
            Self::DriverTooOld { driver, libtorch } => format!(
                "the NVIDIA driver is too old, it does CUDA {driver} and this libtorch is built for CUDA {libtorch}"
            ),
            Self::NoneVisible { hidden: Some(list) } => {
                format!("no GPU is visible, CUDA_VISIBLE_DEVICES=\"{list}\" hides every one")
            }
            Self::NoneVisible { hidden: None } => "no GPU is visible, the driver finds none".into(),
            Self::OutOfRange { index, count: 1, .. } => {
                format!("there is no GPU {index}, 1 is visible")
            }
            Self::OutOfRange { index, count, .. } => {
                format!("there is no GPU {index}, {count} are visible")
            }
            Self::ProcessorOnly { folder } => format!(
                "libtorch in {} computes on the processor only (it has no libtorch_cuda.so)",
                folder.display()
            ),
            Self::Missing { library } => {
                format!("libtorch's CUDA part needs {library}, which is not there")
            }
            Self::Unloadable { said } => {
                format!("libtorch's CUDA part cannot be loaded ({said})")
            }
            Self::Start { call, code, said } => {
                format!("CUDA does not start, {call} says {said} ({code})")
            }
            Self::Libtorch { driver, libtorch } => format!(
                "CUDA does not start in libtorch, it finds {libtorch} GPUs where the driver has {driver}"
            ),
        }
    }

    /// The remedy.
    pub fn remedy(&self) -> String {
        let version = crate::torch::version();
        match self {
            Self::NoDriver { .. } => "install one (for libtorch from PyPI 580 or newer), or start the container with its GPUs (docker run --gpus all)".into(),
            Self::DriverTooOld { driver, libtorch } => format!(
                "update the driver{}, or set LIBTORCH to a libtorch {version} for CUDA {} and build again",
                branch(*libtorch),
                driver.major
            ),
            Self::NoneVisible { hidden: Some(_) } => {
                "unset it, or name one that `nvidia-smi -L` lists".into()
            }
            Self::NoneVisible { hidden: None } => "`nvidia-smi` shows what it sees; a container has to be started with its GPUs (docker run --gpus all)".into(),
            Self::OutOfRange { count, visible, .. } => {
                let range = match count {
                    1 => "\"cuda:0\" is it".to_string(),
                    n => format!("take one of \"cuda:0\" to \"cuda:{}\"", n - 1),
                };
                match visible {
                    Some(list) => format!(
                        "{range} (CUDA_VISIBLE_DEVICES=\"{list}\" chooses and renumbers them)"
                    ),
                    None => range,
                }
            }
            Self::ProcessorOnly { .. } => {
                format!("set LIBTORCH to a libtorch {version} for CUDA and build again")
            }
            Self::Missing { .. } => format!(
                "`cargo run --bin train -- --fetch-only` on a machine with an NVIDIA driver fetches it, or use a torch {version} that Python's pip installed with its dependencies"
            ),
            Self::Unloadable { .. } => "its libraries are damaged or of another version, remove the folder of libtorch and fetch it again".into(),
            Self::Start { code, .. } => start_remedy(*code).into(),
            Self::Libtorch { .. } => "libtorch_cuda.so has to be of the same build as libtorch_cpu.so, and the driver to serve it; fetch or install libtorch again".into(),
        }
    }
}

/// The driver that a CUDA needs at least, where that is known:
/// <https://docs.nvidia.com/deploy/cuda-compatibility/>, "Minor version compatibility".
fn branch(cuda: Version) -> &'static str {
    match cuda.major {
        13 => " to 580 or newer",
        12 => " to 525 or newer",
        11 => " to 450 or newer",
        _ => "",
    }
}

/// The usual remedy for an error of `cuInit`; numbers as in `cuda.h`.
fn start_remedy(code: i32) -> &'static str {
    match code {
        2 => "the GPU or the machine has no memory left: `nvidia-smi` shows who has it",
        34 => {
            "libcuda.so.1 is the toolkit's stub: take its folder out of LD_LIBRARY_PATH, or install the driver"
        }
        46 => "the GPU is in use by another program, which has it alone (compute mode)",
        802 => "start the fabric manager (systemctl start nvidia-fabricmanager)",
        803 => {
            "kernel module and library are of different drivers: restart the machine, or the container with its own machine's driver"
        }
        804 => "this GPU cannot run a newer CUDA than its driver: update the driver",
        _ => {
            "`nvidia-smi` and `dmesg` tell more; `modprobe nvidia_uvm` or a restart of the machine often mends it"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_reason_is_one_line_with_a_remedy() {
        let old = Version { major: 12, minor: 4 };
        let new = Version { major: 13, minor: 0 };
        let start = |code| NoCuda::Start { call: "cuInit", code, said: "CUDA_ERROR_X".into() };
        let none = |hidden: Option<&str>| NoCuda::NoneVisible { hidden: hidden.map(Into::into) };
        let range = |count, visible: Option<&str>| NoCuda::OutOfRange {
            index: 7,
            count,
            visible: visible.map(Into::into),
        };
        for (reason, words) in [
            (NoCuda::NoDriver { said: "x".into() }, &["install one", "--gpus all"][..]),
            (
                NoCuda::DriverTooOld { driver: old, libtorch: new },
                &["CUDA 12.4", "CUDA 13.0", "580", "LIBTORCH", "for CUDA 12"],
            ),
            (none(Some("")), &["CUDA_VISIBLE_DEVICES=\"\" hides", "unset"]),
            (none(None), &["nvidia-smi"]),
            (range(1, None), &["no GPU 7", "1 is visible", "\"cuda:0\" is it"]),
            (range(3, Some("2,4,5")), &["3 are visible", "\"cuda:0\" to \"cuda:2\"", "\"2,4,5\""]),
            (
                NoCuda::ProcessorOnly { folder: "/opt/torch/lib".into() },
                &["/opt/torch/lib", "LIBTORCH"],
            ),
            (
                NoCuda::Missing { library: "libcudnn.so.9".into() },
                &["libcudnn.so.9", "--fetch-only", "pip"],
            ),
            (NoCuda::Unloadable { said: "bad ELF".into() }, &["bad ELF", "fetch"]),
            (start(802), &["CUDA_ERROR_X (802)", "fabricmanager"]),
            (start(803), &["restart"]),
            (start(999), &["dmesg"]),
            (NoCuda::Libtorch { driver: 2, libtorch: 0 }, &["finds 0 GPUs where the driver has 2"]),
        ] {
            let text = reason.to_string();
            assert!(!text.contains('\n'), "{text}");
            for word in words {
                assert!(text.contains(word), "{word:?} not in {text}");
            }
        }
    }
}
