//! Needs of robots' and tasks' programs on a GPU: registers, spills, stack. No GPU is needed to
//! tell.

use ostler_learn::config::{Gpus, Override};
use ostler_machine::torch::cuda::driver::Driver;
use ostler_run::run::{RunError, explained, plan};
use ostler_sim::device::DeviceError;
use ostler_sim::device::cuda::compile::{Compiler, EntryNeeds};
use ostler_sim::device::cuda::nvrtc::Nvrtc;
use ostler_sim::env::on_device::program;
use serde::Serialize;
use std::path::Path;

/// Without a GPU: data centres' (Ampere, Hopper), workstations' (Ada, Blackwell).
const USUAL: [&str; 4] = ["sm_80", "sm_89", "sm_90", "sm_120"];

/// One entry of a program on one kind of GPU.
#[derive(Debug, Clone, Serialize)]
pub struct Row {
    /// The configuration's name.
    pub config: String,
    /// `sm_90` and the like.
    pub architecture: String,
    /// The entry's name.
    pub entry: String,
    /// Registers of a thread.
    pub registers: u32,
    /// Local memory of a thread (bytes).
    pub stack: u32,
    /// Bytes that a thread writes and reads for want of registers.
    pub spills: (u32, u32),
    /// How long the compiler took, whenever that was (s).
    pub compiled_s: f64,
    /// It came from the cache.
    pub cached: bool,
}

impl Row {
    /// Whether every control step runs it.
    pub fn is_step(&self) -> bool {
        self.entry.ends_with("_step")
    }
}

/// Compiles for the GPUs here, or for the usual ones, or for those that are named.
#[derive(Debug)]
pub struct Kernels {
    compiler: Compiler,
    /// Compiled for these.
    pub architectures: Vec<String>,
}

impl Kernels {
    /// With the NVRTC that is found.
    ///
    /// # Errors
    /// There is none, or it does not know an architecture that is named.
    pub fn new(named: &[String]) -> Result<Self, RunError> {
        let usage = |e: &dyn std::fmt::Display| RunError::Usage(e.to_string());
        // Nothing is run: code that is too new for the driver can be looked at.
        let nvrtc = Nvrtc::find(None).map_err(|e| usage(&e))?;
        let mut architectures = named.to_vec();
        if architectures.is_empty() {
            architectures = here(&nvrtc);
        }
        if architectures.is_empty() {
            let usual = USUAL.iter().filter(|a| nvrtc.knows(a));
            architectures = usual.map(|a| a.to_string()).collect();
        }
        if let Some(unknown) = architectures.iter().find(|a| !nvrtc.knows(a)) {
            let (major, minor) = nvrtc.version();
            let why = format!(
                "NVRTC {major}.{minor} makes no code for \"{unknown}\": sm_90 and the like are meant"
            );
            return Err(RunError::Usage(why));
        }
        Ok(Self { compiler: Compiler::from_environment(nvrtc), architectures })
    }

    /// Every entry of a configuration's program on `architecture`. The learner's program is
    /// compiled into the cache, too.
    ///
    /// # Errors
    /// The configuration cannot be used, or has no program; it does not compile.
    pub fn rows(
        &self,
        path: &Path,
        overrides: &[Override],
        architecture: &str,
    ) -> Result<Vec<Row>, RunError> {
        let (loaded, model, _) = plan(path, overrides, None, Gpus::Trust)?;
        let c = &loaded.config;
        let changing = !c.curriculum.is_empty();
        let program = program(&model, &c.sim, &c.env, &c.task, changing)
            .map_err(|e| explained(&loaded, e))?;
        let compile = |program| {
            let compiled = self.compiler.compile(program, architecture);
            compiled.map_err(|e: DeviceError| RunError::Env(e.into()))
        };
        let compiled = compile(&program)?;
        // So that a run finds all its code.
        compile(&ostler_learn::learner::device_program())?;
        let row = |entry: &EntryNeeds| Row {
            config: c.name.clone(),
            architecture: architecture.to_string(),
            entry: entry.entry.clone(),
            registers: entry.needs.registers,
            stack: entry.needs.stack,
            spills: (entry.needs.spill_stores, entry.needs.spill_loads),
            compiled_s: compiled.seconds,
            cached: !compiled.fresh,
        };
        Ok(compiled.needs.iter().map(row).collect())
    }
}

/// Architectures of this machine's GPUs; none without a driver.
fn here(nvrtc: &Nvrtc) -> Vec<String> {
    let Ok(driver) = Driver::load() else {
        return Vec::new();
    };
    let gpus = (0..driver.count().unwrap_or(0)).filter_map(|i| driver.gpu(i).ok());
    let mut all: Vec<String> =
        gpus.filter_map(|gpu| nvrtc.architecture(&gpu.name, gpu.capability).ok()).collect();
    all.sort();
    all.dedup();
    all
}
