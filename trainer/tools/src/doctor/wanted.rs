//! Requirements of a configuration on a machine.

use super::finding::Finding;
use ostler_learn::config::{Device, Gpus, Override, load};
use ostler_machine::memory::available;
use ostler_run::forecast::Need;
use ostler_run::run::{RunError, one_env, physics_doubt, plan};
use ostler_sim::config::{Backend, SimDevice};

use ostler_sim::text::word;
use std::path::{Path, PathBuf};

/// Requirements on the machine.
#[derive(Debug)]
pub struct Wanted {
    /// There is a configuration.
    pub given: bool,
    /// Where it computes.
    pub device: Device,
    /// Whether physics compute there, too, where that is a GPU.
    pub gpu_physics: bool,
    /// Where runs go.
    pub runs: PathBuf,
    /// Findings about the configuration itself.
    pub(super) findings: Vec<Finding>,
}

impl Default for Wanted {
    /// A run somewhere.
    fn default() -> Self {
        Self {
            given: false,
            device: Device::Auto,
            gpu_physics: true,
            runs: PathBuf::from("runs"),
            findings: Vec::new(),
        }
    }
}

impl Wanted {
    /// A run somewhere on `device`.
    pub fn on(device: Device) -> Self {
        Self { device, ..Self::default() }
    }

    /// Requirements of a configuration with these overrides.
    pub fn of(path: &Path, overrides: &[Override]) -> Self {
        let mut wanted = Self { given: true, ..Self::default() };
        let name = path.display();
        let judged = wanted.read(path, overrides);
        wanted.findings.push(match judged {
            Ok(()) => Finding::ok("config", format!("{name} is sound and fits into memory")),
            Err(e) => {
                // The line that is meant is quoted by the other command.
                let text = e.to_string();
                let first = text.lines().next().unwrap_or_default();
                let remedy = format!("`ostler check {}` shows it in its place", word(path));
                Finding::lack("config", true, first, remedy)
            }
        });
        wanted
    }

    fn read(&mut self, path: &Path, overrides: &[Override]) -> Result<(), RunError> {
        let asked = load(path, overrides)?.config;
        self.device = Device::parse(&asked.device).unwrap_or(Device::Auto);
        self.gpu_physics =
            asked.sim.backend == Backend::Native && asked.sim.device != SimDevice::Cpu;
        self.runs = asked.log.dir.into();
        // GPUs are looked at with everything else.
        let (loaded, model, _) = plan(path, overrides, None, Gpus::Trust)?;
        if asked.sim.device == SimDevice::Auto
            && let Some(doubt) = physics_doubt(&loaded.config, &model)
        {
            let remedy = "measure both, and set sim.device (docs/gpu.md)";
            self.findings.push(Finding::lack("physics", false, doubt, remedy));
        }
        let env = one_env(&loaded, &model)?;
        Need::of(&loaded.config, env.spec()).check(available())
    }

    pub(super) fn findings(&self) -> impl Iterator<Item = Finding> {
        self.findings.clone().into_iter()
    }
}
