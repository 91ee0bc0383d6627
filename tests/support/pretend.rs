//! Builds the libraries of `tests/pretend`, which stand in for a GPU, and says which variables
//! make a program use them. Needs a C++ compiler.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::Command;

/// libtorch's libraries that are not linked into the pretend one's folder.
const REPLACED: &str = "libtorch_cuda.so";
const TORCH: [&str; 4] = ["memory.cpp", "guard.cpp", "operators.cpp", "runtime.cpp"];
/// Counted in the key of a folder; a change of a flag changes it.
const SHARED: [&str; 5] = ["-std=c++17", "-O1", "-w", "-fPIC", "-shared"];

/// The libraries, in a folder of their own.
#[derive(Debug, Clone)]
pub struct Pretend {
    folder: PathBuf,
}

/// A library of `tests/pretend`: its sources, what it is called, what it needs.
struct Library<'a> {
    sources: Vec<PathBuf>,
    output: &'a Path,
    name: Option<&'a str>,
    more: Vec<OsString>,
}

impl Library<'_> {
    fn build(&self) -> Result<(), String> {
        let named = |name| std::env::var(name).ok().filter(|cxx| !cxx.trim().is_empty());
        let compiler = named("OSTLER_CXX").or_else(|| named("CXX"));
        // `ccache g++`
        let compiler = compiler.unwrap_or("c++".into());
        let mut words = compiler.split_whitespace();
        let mut command = Command::new(words.next().unwrap_or("c++"));
        command.args(words).args(SHARED);
        if let Some(name) = self.name {
            command.arg(format!("-Wl,-soname,{name}"));
        }
        // Whoever looks finds the whole library or none.
        let unfinished = self.output.with_extension(format!("{}", std::process::id()));
        command.arg("-o").arg(&unfinished).args(&self.sources);
        let out = command.args(&self.more).output();
        let out = out.map_err(|e| format!("{command:?}: {e}"))?;
        if !out.status.success() {
            return Err(String::from_utf8_lossy(&out.stderr).into_owned());
        }
        std::fs::rename(&unfinished, self.output).map_err(|e| e.to_string())
    }
}

fn link(from: &Path, to: &Path) -> Result<(), String> {
    match std::os::unix::fs::symlink(from, to) {
        Err(e) if e.kind() != std::io::ErrorKind::AlreadyExists => {
            Err(format!("{}: {e}", to.display()))
        }
        _ => Ok(()),
    }
}

impl Pretend {
    /// Driver, compiler, NVML and libtorch's CUDA part below `parent`, in a folder that is
    /// used again by all whose sources are the same. `sources` is `tests/pretend`, `libtorch`
    /// the folder with libtorch's `lib` and `include`.
    ///
    /// # Errors
    /// There is no C++ compiler, or something does not compile.
    pub fn build(parent: &Path, sources: &Path, libtorch: &Path) -> Result<Self, String> {
        let folder = parent.join(format!("pretend-gpu-{:016x}", key(sources, libtorch)?));
        let done = folder.join("done");
        let pretend = Self { folder };
        if !done.is_file() {
            pretend.make(sources, libtorch)?;
            std::fs::write(done, "").map_err(|e| e.to_string())?;
        }
        Ok(pretend)
    }

    fn make(&self, sources: &Path, libtorch: &Path) -> Result<(), String> {
        let (driver, lib) = (self.driver(), self.folder.join("torch/lib"));
        std::fs::create_dir_all(&driver).map_err(|e| e.to_string())?;
        self::driver(sources, &driver, &[])?;
        let source = |name: &str| sources.join(name);
        compiler(sources, &driver)?;
        nvml(sources, &driver)?;
        let real = libtorch.canonicalize().map_err(|e| e.to_string())?;
        without_cuda(&real, &self.folder)?;
        let include = real.join("include");
        let mut more = Vec::new();
        for folder in [include.clone(), include.join("torch/csrc/api/include")] {
            more.extend(["-I".into(), folder.into_os_string()]);
        }
        more.extend(["-L".into(), real.join("lib").into_os_string()]);
        // Its own functions by the runtime's names, not those that libtorch has loaded.
        more.push("-Wl,-Bsymbolic-functions".into());
        more.extend(["-Wl,--no-as-needed", "-ltorch_cpu", "-lc10"].map(OsString::from));
        more.extend(["-L".into(), driver.clone().into_os_string(), "-l:libcuda.so.1".into()]);
        // The real one says which operators have a kernel.
        let cuda = real.join("lib").join(REPLACED);
        more.push(format!("-DPRETEND_CUDA=\"{}\"", cuda.display()).into());
        let torch = Library {
            sources: TORCH.map(|name| source("torch").join(name)).to_vec(),
            output: &lib.join(REPLACED),
            name: None,
            more,
        };
        torch.build()
    }

    /// Variables beside [`Self::variables`] with which programs run as the PTX that NVIDIA's
    /// compiler in this folder makes of them.
    pub fn as_ptx(&self, nvrtc: &Path) -> Vec<(&'static str, OsString)> {
        let cache = self.folder.join("cache-ptx");
        vec![("FAKE_PTX", nvrtc.into()), ("OSTLER_CACHE", cache.into())]
    }

    /// The folder of driver, compiler and NVML.
    pub fn driver(&self) -> PathBuf {
        self.folder.join("driver")
    }

    /// Variables of a process that is to see the pretend GPU, one device of it.
    pub fn variables(&self) -> Vec<(&'static str, OsString)> {
        let driver = self.driver().into_os_string();
        vec![
            ("LD_LIBRARY_PATH", driver.clone()),
            ("LD_PRELOAD", self.folder.join("torch/lib/libtorch_cpu.so").into()),
            ("OSTLER_NVRTC", driver),
            ("OSTLER_CACHE", self.folder.join("cache").into()),
            ("OSTLER_GPU_RUNTIME", REPLACED.into()),
            ("FAKE_DEVICES", "1".into()),
            ("CUDA_VISIBLE_DEVICES", "0".into()),
        ]
    }
}

/// In `folder`, as pip lays it out: `torch/lib` with all of libtorch but its CUDA part, for which
/// there is room, and what it needs beside it.
///
/// # Errors
/// libtorch cannot be read, or the folder not be written.
pub fn without_cuda(libtorch: &Path, folder: &Path) -> Result<(), String> {
    let io = |e: std::io::Error| e.to_string();
    let (real, lib) = (libtorch.canonicalize().map_err(io)?, folder.join("torch/lib"));
    std::fs::create_dir_all(&lib).map_err(io)?;
    for entry in std::fs::read_dir(real.join("lib")).map_err(io)? {
        let entry = entry.map_err(io)?;
        if entry.file_name() != REPLACED {
            link(&entry.path(), &lib.join(entry.file_name()))?;
        }
    }
    // The wheels' libraries find one another by relative paths.
    let wheels = real.with_file_name("nvidia");
    if wheels.is_dir() {
        link(&wheels, &folder.join("nvidia"))?;
    }
    std::fs::write(folder.join("torch/version.py"), "cuda = '13.0'\n").map_err(io)
}

/// The driver, in a folder; `defines` change it (`-DINCOMPLETE`).
///
/// # Errors
/// It does not compile.
pub fn driver(sources: &Path, folder: &Path, defines: &[&str]) -> Result<(), String> {
    let output = folder.join("libcuda.so.1");
    // The name by which cudarc asks first.
    link(&output, &folder.join("libcuda.so"))?;
    Library {
        sources: vec![sources.join("driver.cpp")],
        output: &output,
        name: Some("libcuda.so.1"),
        more: defines.iter().chain(&["-ldl"]).map(OsString::from).collect(),
    }
    .build()
}

/// The compiler, in a folder.
///
/// # Errors
/// It does not compile.
pub fn compiler(sources: &Path, folder: &Path) -> Result<(), String> {
    Library {
        sources: vec![sources.join("compiler.cpp")],
        output: &folder.join("libnvrtc.so.13"),
        name: None,
        // What it translates includes a file from there.
        more: vec![
            format!("-DPRETEND_PTX=\"{}\"", sources.join("ptx").display()).into(),
            "-ldl".into(),
        ],
    }
    .build()
}

/// NVML with one GPU that is warm and busy, in a folder.
///
/// # Errors
/// It does not compile.
pub fn nvml(sources: &Path, folder: &Path) -> Result<(), String> {
    // As C++, so that one compiler does.
    Library {
        sources: vec![sources.join("nvml.cpp")],
        output: &folder.join("libnvidia-ml.so.1"),
        name: None,
        more: Vec::new(),
    }
    .build()
}

/// Changes with any source and with libtorch.
fn key(sources: &Path, libtorch: &Path) -> Result<u64, String> {
    use std::hash::{DefaultHasher, Hash, Hasher};
    let mut hasher = DefaultHasher::new();
    (SHARED, libtorch, include_str!("pretend.rs")).hash(&mut hasher);
    for folder in [sources.to_path_buf(), sources.join("ptx"), sources.join("torch")] {
        let entries = std::fs::read_dir(&folder);
        let entries = entries.map_err(|e| format!("{}: {e}", folder.display()))?;
        let mut files: Vec<PathBuf> = entries.filter_map(|e| Some(e.ok()?.path())).collect();
        files.retain(|path| path.is_file());
        files.sort();
        for file in files {
            std::fs::read(&file).map_err(|e| e.to_string())?.hash(&mut hasher);
        }
    }
    Ok(hasher.finish())
}
