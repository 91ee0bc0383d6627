//! A machine as a program sees it: with a driver that answers as it is told, without
//! one, with a libtorch that has a CUDA part of some kind or none.

use crate::common::{Place, root};
use crate::support::pretend;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The CUDA part of a fake libtorch.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum CudaPart {
    /// Not there, as in a libtorch for processors.
    None,
    /// There, without a library that it needs.
    Incomplete,
    /// There, and it loads; it knows nothing of CUDA.
    Hollow,
}

/// The sources of the pretend GPU.
fn sources() -> PathBuf {
    root().join("tests/pretend")
}

/// A folder of fake libraries beside a small task.
pub struct Machine {
    pub place: Place,
    variables: Vec<(&'static str, String)>,
}

impl Machine {
    /// One without a driver, whatever the real one has.
    pub fn without_driver() -> Self {
        let place = Place::new();
        std::fs::create_dir(place.path("driver")).unwrap();
        // The loader stops at a file that is no library.
        std::fs::write(place.path("driver/libcuda.so.1"), "none").unwrap();
        let folder = place.path("driver").display().to_string();
        Self { place, variables: vec![("LD_LIBRARY_PATH", folder)] }
    }

    /// One with a driver of CUDA 13 and one GPU; `variables` change its answers.
    pub fn with_driver(variables: &[(&'static str, &str)]) -> Self {
        let mut machine = Self::without_driver();
        pretend::driver(&sources(), &machine.place.path("driver"), &[]).unwrap();
        machine.variables.push(("FAKE_DEVICES", "1".into()));
        let own = variables.iter().map(|(k, v)| (*k, v.to_string()));
        machine.variables.extend(own);
        machine
    }

    /// The same with an NVML for its GPU.
    pub fn nvml(self) -> Self {
        pretend::nvml(&sources(), &self.place.path("driver")).unwrap();
        self
    }

    /// The same program with another libtorch: all of the real one but its CUDA part.
    pub fn libtorch(mut self, part: CudaPart) -> Self {
        let real = std::env::var_os("LIBTORCH")
            .map_or_else(|| root().join(".libtorch/torch"), PathBuf::from);
        let fetched = self.place.path("fetched");
        pretend::without_cuda(&real, &fetched).unwrap();
        let lib = fetched.join("torch/lib");
        let nothing = self.place.path("nothing.c");
        std::fs::write(&nothing, "int nothing;").unwrap();
        let cuda = lib.join("libtorch_cuda.so");
        match part {
            CudaPart::None => {}
            CudaPart::Hollow => compile(&[&nothing], &cuda, &[]),
            CudaPart::Incomplete => {
                let needed = self.place.path("libneeded.so.9");
                compile(&[&nothing], &needed, &["-Wl,-soname,libneeded.so.9"]);
                let flags = ["-Wl,--no-as-needed"];
                compile(&[&nothing, &needed], &cuda, &flags);
                std::fs::remove_file(needed).unwrap();
            }
        }
        let preload = lib.join("libtorch_cpu.so").display().to_string();
        self.variables.push(("LD_PRELOAD", preload));
        self
    }

    /// `ostler ARGS` on this machine.
    pub fn ostler(&self, args: &[&str]) -> Command {
        let mut command = self.place.ostler(args);
        command.env_remove("CUDA_VISIBLE_DEVICES");
        command.envs(self.variables.iter().cloned());
        command
    }
}

/// Compiles C into a shared library.
fn compile(inputs: &[&Path], output: &Path, flags: &[&str]) {
    let mut command = Command::new(std::env::var_os("CC").unwrap_or("cc".into()));
    command.args(["-shared", "-fPIC", "-o"]).arg(output);
    let out = command.args(flags).args(inputs).output().unwrap();
    assert!(out.status.success(), "{out:?}");
}
