//! Class of this machine: throughput compares only within a class.

use super::file::Requirement;
use ostler_machine::memory::gpu_names;
use ostler_sim::physics::native::InstructionSet;
use serde::Serialize;

/// The machine and other conditions of a run's speed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Machine {
    /// The key in the file of baselines.
    pub class: String,
    /// Its processor's model.
    pub processor: String,
    /// The instructions that kernels are chosen by: `avx512`.
    pub instructions: &'static str,
    /// Cores that this process may use.
    pub cores: usize,
    /// Names of the GPUs that may be used.
    pub gpus: Vec<String>,
    /// `debug` or `release`.
    pub profile: &'static str,
    /// Runs at the same time.
    pub jobs: usize,
}

impl Machine {
    /// This one.
    pub fn here(jobs: usize) -> Self {
        let visible = std::env::var("CUDA_VISIBLE_DEVICES").ok();
        let mut machine = Self {
            class: String::new(),
            processor: processor(),
            instructions: InstructionSet::detect().name(),
            cores: ostler_sim::physics::pool::Pool::available(),
            gpus: gpu_names(visible.as_deref()),
            profile: match cfg!(debug_assertions) {
                true => "debug",
                false => "release",
            },
            jobs,
        };
        machine.class = machine.classify();
        machine
    }

    fn classify(&self) -> String {
        let gpu = match self.gpus.as_slice() {
            [] => "no GPU".to_string(),
            [one] => one.clone(),
            several => format!("{} x {}", several.len(), several[0]),
        };
        let jobs = match self.jobs {
            1 => String::new(),
            n => format!(", {n} jobs"),
        };
        format!(
            "{}, {}, {} cores, {gpu}, {}{jobs}",
            self.processor, self.instructions, self.cores, self.profile
        )
    }

    /// Why a case that requires this cannot run here.
    pub fn lacks(&self, requires: Requirement) -> Option<&'static str> {
        match requires {
            Requirement::Cuda if self.gpus.is_empty() => Some(
                "the case requires an NVIDIA GPU, and none is visible: no driver (NVML), no device, or CUDA_VISIBLE_DEVICES hides it",
            ),
            Requirement::Cuda => None,
        }
    }
}

/// The processor's model.
pub(crate) fn processor() -> String {
    let text = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = text.lines().find(|l| l.starts_with("model name"));
    let model = model.and_then(|l| l.split_once(':'));
    model.map_or("unknown processor", |l| l.1.trim()).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_names_what_decides_the_speed() {
        let mut machine = Machine {
            class: String::new(),
            processor: "EPYC".into(),
            instructions: "avx2",
            cores: 2,
            gpus: Vec::new(),
            profile: "release",
            jobs: 1,
        };
        assert_eq!(machine.classify(), "EPYC, avx2, 2 cores, no GPU, release");
        assert!(machine.lacks(Requirement::Cuda).is_some());
        machine.gpus = vec!["H200".into(); 2];
        machine.jobs = 3;
        assert_eq!(machine.classify(), "EPYC, avx2, 2 cores, 2 x H200, release, 3 jobs");
        assert_eq!(machine.lacks(Requirement::Cuda), None);
    }
}
