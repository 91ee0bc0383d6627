//! Where a run's environments, policy and learner compute, and the collector that
//! belongs there.

use crate::run::engine::{build_envs, explained};
use crate::run::error::RunError;
use ostler_collector::asynchronous::Shard;
use ostler_collector::device::{
    Bridge, CudaSync as Sync, KernelEnvironments, NoiseSpec, Queue, Stream, TorchMemory, Transfers,
};
use ostler_collector::env::Environments;
use ostler_collector::peers::Group;
use ostler_collector::{
    AsyncCollector, CollectError, Collector, DeviceCollector, Policy, Stepping, SyncCollector,
};
use ostler_learn::config::{Config, CudaSync, Loaded, Precision};
use ostler_machine::memory::{FreeMemory, Here, resident_mib};
use ostler_machine::torch::{CudaStream, MatmulPrecision, set_matmul_precision};
use ostler_sim::config::{ConfigError, EnvConfig, SimDevice};
use ostler_sim::device::Device;
use ostler_sim::device::cuda::Cuda;
use ostler_sim::env::on_device::program;
use ostler_sim::env::{DeviceEnv, Injection};
use ostler_sim::{BatchEnv, Model};
use std::rc::Rc;
use std::sync::Arc;

/// The devices of a run.
#[derive(Debug, Clone)]
pub struct Machine {
    /// libtorch's name of the policy's and the learner's device.
    pub torch: tch::Device,
    /// Its stream; none where it is the host.
    stream: Option<Rc<dyn Stream>>,
    /// The same device for environments, where they are on it.
    sim: Option<Arc<dyn Device>>,
    /// Room in its memory.
    pub free: Arc<dyn FreeMemory>,
}

impl Machine {
    /// All on the host.
    pub fn host() -> Self {
        Self { torch: tch::Device::Cpu, stream: None, sim: None, free: Arc::new(Here) }
    }

    /// As the configuration has it.
    ///
    /// # Errors
    /// The GPU cannot be used.
    pub fn of(config: &Config) -> Result<Self, RunError> {
        let Some(index) = config.gpu() else {
            if config.learner.precision == Precision::Tf32 {
                tracing::warn!(
                    "learner.precision = \"tf32\" is for a GPU: here products are in float32"
                );
            }
            return Ok(Self::host());
        };
        set_matmul_precision(match config.learner.precision {
            // `Half::of` refuses the second on a GPU, where a run is planned.
            Precision::Float32 | Precision::Bf16 => MatmulPrecision::Highest,
            Precision::Auto | Precision::Tf32 => MatmulPrecision::High,
        })?;
        Ok(Self {
            torch: tch::Device::Cuda(index),
            stream: Some(Rc::new(CudaStream::new(index))),
            sim: match config.sim.device {
                SimDevice::Cuda => Some(open(config, index)?),
                SimDevice::Auto | SimDevice::Cpu => None,
            },
            free: Arc::new(Here),
        })
    }

    /// Environments of a run that are built before their policy is known: not those on a
    /// device, nor those of threads, which build their own.
    ///
    /// # Errors
    /// The task has a mistake, or memory does not suffice.
    pub fn envs(
        &self,
        loaded: &Loaded,
        model: &Arc<Model>,
    ) -> Result<Option<Box<dyn Environments>>, RunError> {
        let config = &loaded.config;
        match self.sim.is_some() || config.is_async() {
            true => Ok(None),
            false => {
                let part = Group::current().shard(config.env.num_envs);
                build_envs(loaded, config, model, part, config.seed).map(Some)
            }
        }
    }

    /// Gives [environments](Self::envs) their faults.
    ///
    /// # Errors
    /// A sentence about one that they cannot have.
    pub fn inject(
        &self,
        envs: Option<&mut (dyn Environments + 'static)>,
        faults: Vec<Injection>,
    ) -> Result<(), String> {
        match envs {
            Some(envs) => envs.inject(faults),
            None if faults.is_empty() => Ok(()),
            None if self.sim.is_some() => Err(
                "environments on a GPU cannot be given faults: try them with --set sim.device=cpu"
                    .into(),
            ),
            None => Err(
                "environments of other threads cannot be given faults: try them with --set collector.kind=sync"
                    .into(),
            ),
        }
    }

    /// A collector of [environments](Self::envs), and a line about its workers, if it has some.
    ///
    /// # Errors
    /// The task has a mistake, memory does not suffice, or a device refuses.
    pub fn collector(
        &self,
        envs: Option<Box<dyn Environments>>,
        loaded: &Loaded,
        model: &Arc<Model>,
        policy: &dyn Policy,
    ) -> Result<(Box<dyn Collector>, Option<String>), RunError> {
        let config = &loaded.config;
        let (steps, seed) = (config.runner.num_steps_per_env, config.seed);
        let spread = config.spreads_ages();
        let sync = match config.collector.cuda_sync {
            CudaSync::Off => Sync::Off,
            CudaSync::Event => Sync::Event,
            CudaSync::Device => Sync::Device,
        };
        let stepping = config.stepping();
        let plain = stepping == Stepping::default();
        Ok(match (envs, &self.sim, self.queue(config)) {
            (None, None, _) => asynchronous(self, loaded, model, policy)?,
            (Some(env), _, None) => {
                let env = SyncCollector::stepping(env, steps, policy, seed, spread, stepping)?;
                (Box::new(env), None)
            }
            (_, _, Some(_)) if !plain => return Err(on_host(loaded)),
            (Some(env), _, Some(queue)) => {
                let env = Bridge::new(env, steps, policy, seed, queue.clone())?;
                (Box::new(DeviceCollector::new(env, queue, sync, spread)?), None)
            }
            (None, Some(device), queue) => {
                let (queue, size) =
                    (queue.unwrap_or_else(Queue::host), (config.env.num_envs, steps, seed));
                let env = kernel(self, loaded, model, policy, device.clone(), size)?;
                (Box::new(DeviceCollector::new(env, queue, sync, spread)?), None)
            }
        })
    }

    /// Whether rollouts, policy and learner are on a GPU.
    pub fn has_gpu(&self) -> bool {
        self.stream.is_some()
    }

    /// Its stream with the configured copies; none where it is the host.
    fn queue(&self, config: &Config) -> Option<Queue> {
        let transfers = Transfers {
            pin_memory: config.collector.pin_memory,
            non_blocking: config.collector.non_blocking,
        };
        let stream = self.stream.clone()?;
        Some(Queue::new(stream, self.torch, transfers))
    }

    /// Bytes that a GPU's driver sets aside for the threads of the environments, beside
    /// what libtorch asks it for; 0 where environments are on the host. Compiles their
    /// programs, or takes them from the cache.
    ///
    /// # Errors
    /// The task has a mistake, or a program does not compile.
    pub fn local_memory(&self, loaded: &Loaded, model: &Arc<Model>) -> Result<u64, RunError> {
        let Some(device) = &self.sim else {
            return Ok(0);
        };
        let config = &loaded.config;
        let changing = !config.curriculum.is_empty();
        program(model, &config.sim, &config.env, &config.task, changing)
            .and_then(|program| Ok(device.local_memory(&program)?))
            .map_err(|e| explained(loaded, e))
    }

    /// The host in place of a GPU, for tests: environments run on `sim`, where that is given.
    pub fn stand_in(sim: Option<Arc<dyn Device>>) -> Self {
        Self {
            torch: tch::Device::Cpu,
            stream: Some(Rc::new(ostler_collector::device::HostStream)),
            sim,
            free: Arc::new(Here),
        }
    }

    /// The same with other memory.
    #[cfg(test)]
    pub fn with(self, told: ostler_machine::memory::Told) -> Self {
        let free = Arc::new(told);
        Self { free, ..self }
    }
}

/// Gives what was freed back to the system and to the GPU, if there is one: after a
/// back-off.
pub(crate) fn release(config: &Config) {
    ostler_machine::torch::release_free_memory();
    if config.gpu().is_some()
        && let Err(e) = ostler_machine::torch::release_device_memory()
    {
        tracing::info!("{e}");
    }
}

/// The GPU for kernels of ours: the one that libtorch has, with libtorch's context and
/// stream.
fn open(config: &Config, index: usize) -> Result<Arc<dyn Device>, RunError> {
    match Cuda::open(index) {
        Ok(gpu) => Ok(gpu),
        Err(why) => Err(RunError::GpuPhysics { device: config.device.clone(), why }),
    }
}

/// So many environments on a device, with a rollout of so many steps; the seed keys them.
fn kernel(
    machine: &Machine,
    loaded: &Loaded,
    model: &Arc<Model>,
    policy: &dyn Policy,
    device: Arc<dyn Device>,
    (num_envs, steps, seed): (usize, usize, u64),
) -> Result<KernelEnvironments, RunError> {
    let config = &loaded.config;
    let env = EnvConfig { num_envs, ..config.env.clone() };
    let env = DeviceEnv::new(
        model.clone(),
        &config.sim,
        &env,
        &config.task,
        seed,
        0,
        device,
        &TorchMemory(machine.torch),
        NoiseSpec::of(policy, seed).into(),
        !config.curriculum.is_empty(),
    )
    .map_err(|e| explained(loaded, e))?;
    Ok(KernelEnvironments::new(env, steps, policy, machine.torch)?)
}

/// Environments on a device for evaluation: `num_envs` of them, begun, with rollouts of `steps`
/// steps. None where the run's own are on the host.
///
/// # Errors
/// Memory does not suffice, or the device refuses.
pub(crate) fn to_evaluate(
    machine: &Machine,
    loaded: &Loaded,
    model: &Arc<Model>,
    policy: &dyn Policy,
    (num_envs, steps, seed): (usize, usize, u64),
) -> Result<Option<DeviceCollector<KernelEnvironments>>, RunError> {
    let Some(device) = machine.sim.clone() else {
        return Ok(None);
    };
    let queue = machine.queue(&loaded.config).unwrap_or_else(Queue::host);
    let env = kernel(machine, loaded, model, policy, device, (num_envs, steps, seed))?;
    Ok(Some(DeviceCollector::new(env, queue, Sync::Off, false)?))
}

/// Threads that collect, each with its part of the environments.
///
/// # Errors
/// The task has a mistake, memory does not suffice, or threads cannot be started.
fn asynchronous(
    machine: &Machine,
    loaded: &Loaded,
    model: &Arc<Model>,
    policy: &dyn Policy,
) -> Result<(Box<dyn Collector>, Option<String>), RunError> {
    let config = &loaded.config;
    let (sim, env, task) = (config.sim.clone(), config.env.clone(), config.task.clone());
    let (model, seed) = (model.clone(), config.seed);
    let factory = Arc::new(move |shard: Shard| {
        let env = EnvConfig { num_envs: shard.len, ..env.clone() };
        BatchEnv::shard(model.clone(), &sim, &env, &task, seed, shard.first as u32)
    });
    let before = resident_mib();
    let collector = AsyncCollector::new(
        factory,
        config.env.num_envs,
        config.runner.num_steps_per_env,
        policy,
        seed,
        config.spreads_ages(),
        config.async_options(machine.torch),
    );
    let collector = collector.map_err(|e| match e {
        CollectError::Env(e) => explained(loaded, *e),
        e => e.into(),
    })?;
    let workers = collector.worker_stats().map_or(1, |c| c.workers).max(1);
    // As far as it was touched.
    let mib = (resident_mib() - before).max(0.0) / workers as f64;
    let line = format!(
        "{workers} workers collect, {mib:.1} MiB of memory each, with {} environments",
        config.env.num_envs.div_ceil(workers)
    );
    Ok((Box::new(collector), Some(line)))
}

/// Methods of collectors on the host alone.
fn on_host(loaded: &Loaded) -> RunError {
    let key = match loaded.config.collector.init_random_steps {
        0 => "collector.reset_at_each_iter",
        _ => "collector.init_random_steps",
    };
    let e = ConfigError::new(key, "cannot be had where rollouts lie on a GPU")
        .help("collector.kind = \"async\", or device = \"cpu\"");
    loaded.places.explain(&e).into()
}
