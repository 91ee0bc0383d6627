//! Replaces every "auto" of the configuration by its value.

use super::collector::ONE_STREAM;
use super::curriculum::NUM_ENVS;
use super::{Config, CudaSync, Precision};
use ostler_collector::replay::StorageKind;
use ostler_machine::torch::cuda::{self, Found, NoCuda};
use ostler_sim::config::{Auto, Backend, ConfigError, SimDevice};
use ostler_sim::device::cuda::Unavailable;
use ostler_sim::device::cuda::nvrtc::Nvrtc;
use ostler_sim::physics::pool::Pool;

/// Where a run computes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Device {
    /// Any device that is there.
    Auto,
    /// The processor.
    Cpu,
    /// An NVIDIA GPU by number.
    Cuda(usize),
}

impl Device {
    /// Reads `auto`, `cpu`, `cuda` or `cuda:N`.
    ///
    /// # Errors
    /// A sentence about the mistake.
    pub fn parse(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "cpu" => Ok(Self::Cpu),
            "cuda" => Ok(Self::Cuda(0)),
            _ => text
                .strip_prefix("cuda:")
                .and_then(|n| n.parse().ok())
                .map(Self::Cuda)
                .ok_or_else(|| format!("\"{text}\" is not a device")),
        }
    }

    /// As it is written in `device`.
    pub fn name(self) -> String {
        match self {
            Self::Auto => "auto".into(),
            Self::Cpu => "cpu".into(),
            Self::Cuda(index) => format!("cuda:{index}"),
        }
    }
}

/// Decisions while resolving, for the log.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Resolution {
    /// One line each.
    pub notes: Vec<String>,
}

/// Settings for a GPU that cannot be had.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NoGpu {
    /// `device` names one that cannot be used.
    #[error("device \"{device}\" cannot be used: {why}; or compute on the processor: --device cpu")]
    Device {
        /// As it was asked for.
        device: String,
        /// The missing thing.
        why: NoCuda,
    },
    /// The programs of learner and environments cannot be compiled for it.
    #[error("device \"{device}\" cannot be used: {why}; or compute on the processor: --device cpu")]
    Compiler {
        /// As it was asked for.
        device: String,
        /// The missing thing.
        why: Unavailable,
    },
    /// Threads are to collect, from environments on a GPU.
    #[error(
        "collector.kind = \"async\" cannot be used: {ONE_STREAM}; collect with --set collector.kind=sync, or compute the physics on the processor: --set sim.device=cpu"
    )]
    Async,
    /// `sim.device` asks for the GPU of a run that has none.
    #[error(
        "sim.device = \"cuda\", but device \"auto\" is cpu here: {why}; or let the physics follow: --set sim.device=auto"
    )]
    Physics {
        /// The missing thing.
        why: NotHere,
    },
}

/// Why `device = "auto"` is the processor.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum NotHere {
    /// No GPU that libtorch can use.
    #[error(transparent)]
    Gpu(#[from] NoCuda),
    /// Nothing to compile the programs of learner and environments with.
    #[error("{gpu} is here, but {why}")]
    Compiler {
        /// The GPU's name.
        gpu: String,
        /// The missing thing.
        why: Unavailable,
    },
}

/// A machine as far as GPUs are concerned: this one or, in a test, any.
pub trait Machine {
    /// Looks for a GPU by CUDA's number of it.
    ///
    /// # Errors
    /// The missing thing.
    fn gpu(&self, index: usize) -> Result<Found, NoCuda>;

    /// Whether programs for a GPU can be compiled.
    ///
    /// # Errors
    /// The missing thing.
    fn compiler(&self, gpu: &Found) -> Result<(), Unavailable>;
}

/// The one that the program runs on.
struct ThisMachine;

impl Machine for ThisMachine {
    fn gpu(&self, index: usize) -> Result<Found, NoCuda> {
        cuda::find(index)
    }

    fn compiler(&self, gpu: &Found) -> Result<(), Unavailable> {
        let nvrtc = Nvrtc::find(Some((gpu.driver.major, gpu.driver.minor)))?;
        nvrtc.architecture(&gpu.name, gpu.capability).map(|_| ())
    }
}

/// Who knows about this machine's GPUs.
#[derive(Clone, Copy)]
pub enum Gpus<'a> {
    /// The machine, which is asked where a GPU is wanted.
    Ask(&'a dyn Machine),
    /// Nobody is asked: the configuration is read, not run. A GPU that it names is taken
    /// on trust, and `device = "auto"` is the processor for the time being. A process
    /// that will fork has to: CUDA does not survive that.
    Trust,
}

impl Gpus<'_> {
    /// Those of this machine.
    pub const HERE: Gpus<'static> = Gpus::Ask(&ThisMachine);
}

/// More threads than this do not help matrices of a policy's size.
const MOST_LEARNER_THREADS: usize = 8;

/// Multiplications of one matrix product that are worth a thread, about 0.2 ms. With
/// less, threads wait for one another longer than they compute: 64-wide layers ran 20
/// times slower on two threads of a busy machine than on one.
const WORK_PER_THREAD: usize = 8 << 20;

impl Config {
    /// Replaces every "auto" but the kernel's, which takes the robot to decide. Where a run
    /// goes on, `earlier` is what it ran with: its bits depend on the device, the learner's
    /// threads and the kernel.
    ///
    /// # Errors
    /// A GPU was asked for that cannot be used.
    pub fn resolve(&mut self, earlier: Option<&Self>, gpus: Gpus<'_>) -> Result<Resolution, NoGpu> {
        let mut notes = Vec::new();
        self.resolve_device(earlier, gpus, &mut notes)?;
        if self.learner.precision == Precision::Auto {
            self.learner.precision = match self.gpu() {
                Some(_) => Precision::Tf32,
                None => Precision::Float32,
            };
        }
        if let Some(earlier) = earlier {
            if let Auto::Auto(_) = self.learner.threads {
                self.learner.threads = Auto::N(earlier.learner_threads());
            }
            if self.sim.kernel == "auto" {
                self.sim.kernel.clone_from(&earlier.sim.kernel);
            }
        }
        let useful = match self.runner.algorithm.useful_threads(self) {
            Some(threads) => threads,
            None => self.learner_work() / WORK_PER_THREAD,
        };
        let cores = Pool::available().max(1);
        // Workers are the threads: each has its environments for itself.
        let of_sim = if self.is_async() { 1 } else { usize::MAX };
        let most = [
            ("sim.threads", &mut self.sim.threads, of_sim),
            ("learner.threads", &mut self.learner.threads, useful.clamp(1, MOST_LEARNER_THREADS)),
        ];
        for (key, threads, most) in most {
            match *threads {
                Auto::Auto(_) => *threads = Auto::N(cores.min(most)),
                Auto::N(n) if n > cores => {
                    notes.push(format!("{key} = {n} is more than the {cores} cores at hand"));
                }
                Auto::N(_) => {}
            }
        }
        self.resolve_workers(cores, &mut notes);
        Ok(Resolution { notes })
    }

    /// `device` and `sim.device`.
    fn resolve_device(
        &mut self,
        earlier: Option<&Self>,
        gpus: Gpus<'_>,
        notes: &mut Vec<String>,
    ) -> Result<(), NoGpu> {
        if let (Ok(Device::Auto), Some(earlier)) = (Device::parse(&self.device), earlier) {
            self.device.clone_from(&earlier.device);
        }
        if self.gymnasium.is_some() && Device::parse(&self.device) == Ok(Device::Auto) {
            self.device = Device::Cpu.name();
        }
        match (Device::parse(&self.device), gpus) {
            (Ok(Device::Auto), Gpus::Ask(machine)) => match Self::usable(machine) {
                Ok(gpu) => {
                    self.device = Device::Cuda(0).name();
                    notes.push(format!("device \"auto\" is cuda:0, {}", gpu.name));
                }
                Err(why) if self.sim.device == SimDevice::Cuda => {
                    return Err(NoGpu::Physics { why });
                }
                Err(why) => {
                    self.device = Device::Cpu.name();
                    notes.push(match why {
                        // What most machines lack is no fault.
                        NotHere::Gpu(NoCuda::NoDriver { .. }) => {
                            "device \"auto\" is cpu: no NVIDIA driver (`ostler doctor` says more)"
                                .into()
                        }
                        why => format!("device \"auto\" is cpu: {why}"),
                    });
                }
            },
            (Ok(Device::Auto), Gpus::Trust) => self.device = Device::Cpu.name(),
            (Ok(device @ Device::Cuda(index)), gpus) => {
                if let Gpus::Ask(machine) = gpus {
                    let device = || self.device.clone();
                    let gpu = machine
                        .gpu(index)
                        .map_err(|why| NoGpu::Device { device: device(), why })?;
                    machine
                        .compiler(&gpu)
                        .map_err(|why| NoGpu::Compiler { device: device(), why })?;
                }
                self.device = device.name();
            }
            (Ok(Device::Cpu) | Err(_), _) => {}
        }
        if self.replay.storage_device == "auto" {
            self.replay.storage_device = match self.replay.storage.on_device() {
                true => self.device.clone(),
                false => "cpu".into(),
            };
        }
        if !self.runner.algorithm.off_policy() && self.replay.storage == StorageKind::Auto {
            // There is no replay buffer that could be anywhere.
            self.replay.storage = StorageKind::Device;
        }
        let gpu = self.gpu().is_some();
        if self.sim.device == SimDevice::Auto {
            self.sim.device = match self.sim.backend {
                Backend::Native if gpu && self.has_robot() && self.is_async() => {
                    return Err(NoGpu::Async);
                }
                Backend::Native if gpu && self.has_robot() => SimDevice::Cuda,
                Backend::Native | Backend::Rapier => SimDevice::Cpu,
            };
        }
        let sync = self.collector.cuda_sync;
        if gpu && matches!(gpus, Gpus::Ask(_)) {
            let meaning = match sync {
                CudaSync::Off => "the host waits for the GPU once per rollout",
                CudaSync::Event => "the host waits for an event in every control step",
                CudaSync::Device => "the host waits for the whole GPU in every control step",
            };
            notes.push(format!("collector.cuda_sync is \"{}\": {meaning}", sync.name()));
        } else if !gpu && sync != CudaSync::Off {
            notes.push(format!(
                "collector.cuda_sync = \"{}\" has no meaning with device \"cpu\": there is nothing to wait for",
                sync.name()
            ));
        }
        Ok(())
    }

    /// The first GPU, if programs can be compiled for it.
    fn usable(machine: &dyn Machine) -> Result<Found, NotHere> {
        let gpu = machine.gpu(0)?;
        match machine.compiler(&gpu) {
            Ok(()) => Ok(gpu),
            Err(why) => Err(NotHere::Compiler { gpu: gpu.name, why }),
        }
    }

    /// The GPU that the run computes on, by CUDA's number; known after
    /// [`resolve`](Self::resolve).
    pub fn gpu(&self) -> Option<usize> {
        match Device::parse(&self.device) {
            Ok(Device::Cuda(index)) => Some(index),
            _ => None,
        }
    }

    /// Multiplications of the largest matrix product of an update.
    fn learner_work(&self) -> usize {
        let widest = |dims: &[i64]| {
            let product = |w: &[i64]| w.iter().fold(1_usize, |a, &d| a.saturating_mul(d as usize));
            dims.windows(2).map(product).max().unwrap_or(1)
        };
        let layer = widest(&self.actor.hidden_dims).max(widest(&self.critic.hidden_dims));
        self.batch_rows().saturating_mul(layer)
    }

    /// Samples that a gradient step looks at.
    pub fn batch_rows(&self) -> usize {
        self.runner.algorithm.batch_rows(self)
    }

    /// Errors of learning from rollouts of `samples` transitions.
    pub fn validate_batch(&self, samples: usize) -> Vec<ConfigError> {
        self.runner.algorithm.fits(self, samples)
    }

    /// Threads for libtorch; 1 before [`resolve`](Self::resolve).
    pub fn learner_threads(&self) -> usize {
        match self.learner.threads {
            Auto::N(n) => n,
            Auto::Auto(_) => 1,
        }
    }

    /// Threads for physics and tasks; 1 before [`resolve`](Self::resolve).
    pub fn sim_threads(&self) -> usize {
        match self.sim.threads {
            Auto::N(n) => n,
            Auto::Auto(_) => 1,
        }
    }

    /// The most environments that a run ever has: as many as it was asked for, or as its
    /// schedule asks for.
    pub fn most_envs(&self) -> usize {
        let scheduled = self.curriculum.iter().filter(|s| s.key == NUM_ENVS);
        let planned = scheduled.flat_map(|s| s.points.iter().map(|p| p[1] as usize));
        planned.fold(self.env.num_envs, usize::max)
    }

    /// The number of environments one step of back-off below `num_envs`; `None` where
    /// that is switched off, below the least, or leaves a minibatch without a sample.
    pub fn fewer_envs(&self, num_envs: usize) -> Option<usize> {
        let fewer = self.back_off.below(num_envs)?;
        let samples = self.least_samples(fewer);
        let enough = self.validate_batch(samples).is_empty();
        enough.then_some(fewer)
    }

    /// Steps of environments per iteration; of transitions there are as many for each
    /// [agent](Self::agents).
    pub fn samples(&self) -> u64 {
        self.env.num_envs as u64 * self.runner.num_steps_per_env as u64
    }

    /// Agents of an environment; 1 without `[agents]`.
    pub fn agents(&self) -> usize {
        self.agents.as_ref().map_or(1, |a| a.names.len().max(1))
    }

    /// Rows that a policy learns from in each step of so many environments: the fewest and the
    /// most. Agents that earlier versions move are not among them.
    pub fn rows_of_a_policy(&self, num_envs: usize) -> (usize, usize) {
        let Some(agents) = &self.agents else {
            return (num_envs, num_envs);
        };
        let with_past = self.self_play.envs_with_past(num_envs);
        let of = agents.policy_of();
        let rows = |agents: usize| {
            let past = (agents * with_past).div_ceil(of.len().max(1));
            agents.saturating_mul(num_envs).saturating_sub(past)
        };
        let counts = of.iter().map(|p| of.iter().filter(|q| *q == p).count());
        let most = counts.clone().max().unwrap_or(1);
        (rows(counts.min().unwrap_or(1)), rows(most))
    }

    /// Transitions that the policy with the fewest agents learns from in an iteration of
    /// so many environments.
    pub fn least_samples(&self, num_envs: usize) -> usize {
        let rows = self.rows_of_a_policy(num_envs).0;
        rows.saturating_mul(self.runner.num_steps_per_env)
    }
}
