//! Where the tests run, and shipped tasks there.

use crate::support::need::Need;
use ostler_collector::asynchronous::Shard;
use ostler_collector::device::{
    KernelEnvironments, NoiseSpec, Queue, Stream, TorchMemory, Transfers,
};
use ostler_collector::replay::ReplayConfig;
use ostler_collector::{AsyncCollector, AsyncOptions, CudaSync, DeviceCollector, Policy};
use ostler_sim::config::{EnvConfig, SimConfig, Specialize, TaskConfig};
use ostler_sim::device::cuda::Cuda;
use ostler_sim::device::host::Host;
use ostler_sim::device::{Address, Device, Memory};
use ostler_sim::env::{DeviceEnv, PolicyNoise, StepAddresses};
use ostler_sim::{BatchEnv, Groups, Model};
use ostler_trainer::config::load;
use ostler_trainer::learner::off_policy::{Algorithm, OffPolicyArgs};
use ostler_trainer::learner::{
    ActorConfig, ActorCritic, CriticConfig, OffPolicy, Ppo, PpoConfig, Remembers, SacConfig,
    Td3Config,
};
use ostler_trainer::memory::Here;
use ostler_trainer::torch::{CudaStream, DeviceClock};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Instant;
use tch::{Kind, Tensor};

pub const SEED: u64 = 5;

/// Which numbers of environments, rounds and steps a test takes.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Sizes {
    /// Those for a GPU.
    Full,
    /// Those of a pretend one: on a processor, `OSTLER_GPU_SIZES=small`.
    Small,
}

/// A device, as libtorch and as we know it.
pub struct TestDevice {
    pub torch: tch::Device,
    pub device: Arc<dyn Device>,
    /// `None` where the host stands in.
    pub cuda: Option<Arc<Cuda>>,
    pub sizes: Sizes,
}

pub fn place() -> TestDevice {
    let asked = std::env::var("OSTLER_GPU_TESTS").unwrap_or_else(|_| "cpu".into());
    if asked == "cpu" {
        return TestDevice {
            torch: tch::Device::Cpu,
            device: Arc::new(Host::default()),
            cuda: None,
            sizes: Sizes::Small,
        };
    }
    let index = asked.strip_prefix("cuda:").and_then(|n| n.parse().ok());
    let index: usize = index.unwrap_or_else(|| panic!("OSTLER_GPU_TESTS={asked}"));
    ostler_trainer::torch::cuda::find(index).unwrap_or_else(|e| panic!("{e}"));
    let cuda = Cuda::open(index).unwrap_or_else(|e| panic!("{e}"));
    TestDevice {
        torch: tch::Device::Cuda(index),
        device: cuda.clone(),
        cuda: Some(cuda),
        sizes: match std::env::var("OSTLER_GPU_SIZES").as_deref() {
            Ok("small") => Sizes::Small,
            _ => Sizes::Full,
        },
    }
}

/// The same where it is a GPU; `None` after saying that the calling test is skipped: one
/// that looks at nothing where the host stands in.
pub fn gpu() -> Option<TestDevice> {
    let place = place();
    let found = match place.cuda {
        Some(_) => Ok(place),
        None => Err("OSTLER_GPU_TESTS names no GPU (cuda:0), so the host stands in"),
    };
    Need::Gpu.or_skip(found)
}

impl TestDevice {
    /// One number for a GPU, another for a processor in its place.
    pub fn pick<T>(&self, gpu: T, host: T) -> T {
        match self.sizes {
            Sizes::Full => gpu,
            Sizes::Small => host,
        }
    }

    pub fn queue(&self) -> Queue {
        match self.torch {
            tch::Device::Cuda(index) => {
                let stream: Rc<dyn Stream> = Rc::new(CudaStream::new(index));
                let transfers = Transfers { pin_memory: true, non_blocking: true };
                Queue::new(stream, self.torch, transfers)
            }
            _ => Queue::host(),
        }
    }

    /// What `work` gives, and the seconds it took on the device, by events.
    pub fn timed<T>(&self, work: impl FnOnce() -> T) -> (T, f64) {
        let tch::Device::Cuda(index) = self.torch else {
            let start = Instant::now();
            return (work(), start.elapsed().as_secs_f64());
        };
        let clock = DeviceClock::start(index).unwrap();
        let done = work();
        (done, clock.seconds().unwrap())
    }

    pub fn zeros(&self, size: &[i64], kind: Kind) -> Tensor {
        Tensor::zeros(size, (kind, self.torch))
    }
}

/// A shipped task with `n` environments.
pub struct Task {
    pub model: Arc<Model>,
    pub sim: SimConfig,
    pub env: EnvConfig,
    pub task: TaskConfig,
    pub policy: ActorCritic,
    /// The configurations of a learner: its own, the actor's and the critic's.
    learner: (PpoConfig, ActorConfig, CriticConfig),
}

/// Below the folder that this program was built in, or, in a bundle, where it runs.
pub fn configs() -> PathBuf {
    let built = Path::new(env!("CARGO_MANIFEST_DIR")).join("../configs");
    if built.is_dir() { built } else { PathBuf::from("configs") }
}

pub fn task(place: &TestDevice, name: &str, n: usize) -> Task {
    let mut loaded = load(&configs().join(format!("{name}.toml")), &[]).unwrap();
    loaded.config.env.num_envs = n;
    let model = Arc::new(loaded.model().unwrap());
    let mut c = loaded.config;
    // The text of the device's program.
    c.sim.specialize = Specialize::Wait;
    let small = EnvConfig { num_envs: 1, ..c.env.clone() };
    let one = BatchEnv::new(model.clone(), &c.sim, &small, &c.task, SEED).unwrap();
    let policy = ActorCritic::new(&c.actor, &c.critic, one.spec(), 3, place.torch).unwrap();
    Task {
        model,
        sim: c.sim,
        env: c.env,
        task: c.task,
        policy,
        learner: (c.ppo, c.actor, c.critic),
    }
}

impl Task {
    pub fn on_host(&self) -> BatchEnv {
        BatchEnv::new(self.model.clone(), &self.sim, &self.env, &self.task, SEED).unwrap()
    }

    pub fn on_device(&self, place: &TestDevice, memory: &dyn Memory) -> DeviceEnv {
        self.on_device_for(place, memory, &self.policy)
    }

    /// With noise for another policy.
    fn on_device_for(
        &self,
        place: &TestDevice,
        memory: &dyn Memory,
        policy: &dyn Policy,
    ) -> DeviceEnv {
        let noise: PolicyNoise = NoiseSpec::of(policy, SEED).into();
        let model = self.model.clone();
        let device = place.device.clone();
        DeviceEnv::new(
            model, &self.sim, &self.env, &self.task, SEED, 0, device, memory, noise, false,
        )
        .unwrap()
    }

    /// Threads that collect on the host.
    pub fn threads(
        &self,
        steps: usize,
        policy: &dyn Policy,
        options: AsyncOptions,
    ) -> AsyncCollector {
        let (model, sim, env, task) =
            (self.model.clone(), self.sim.clone(), self.env.clone(), self.task.clone());
        let envs = env.num_envs;
        let factory = Arc::new(move |shard: Shard| {
            let env = EnvConfig { num_envs: shard.len, ..env.clone() };
            BatchEnv::shard(model.clone(), &sim, &env, &task, SEED, shard.first as u32)
        });
        AsyncCollector::new(factory, envs, steps, policy, SEED, true, options).unwrap()
    }

    /// SAC and TD3 that learn from rollouts of `steps` steps, with batches of 64.
    pub fn off_policy(
        &self,
        place: &TestDevice,
        steps: usize,
        replay: &ReplayConfig,
    ) -> [(OffPolicy, tempfile::TempDir); 2] {
        let (sac, td3) = (
            SacConfig { batch_size: 64, learning_starts: 64, ..SacConfig::default() },
            Td3Config { batch_size: 64, learning_starts: 64, ..Td3Config::default() },
        );
        let env = self.on_host();
        let (mut actor, mut critic) = (ActorConfig::default(), CriticConfig::default());
        if place.sizes == Sizes::Small {
            (actor.hidden_dims, critic.hidden_dims) = (vec![16, 16], vec![16, 16]);
        }
        [Algorithm::Sac(&sac), Algorithm::Td3(&td3)].map(|algorithm| {
            let plan = OffPolicyArgs {
                algorithm,
                actor: &actor,
                critic: &critic,
                replay,
                steps,
                fresh_episodes: false,
                save_interval: 10,
                seed: 3,
                draws: 3,
            };
            let mut learner = OffPolicy::new(&plan, env.spec(), place.torch).unwrap();
            let folder = tempfile::tempdir().unwrap();
            learner.open(folder.path(), false, &Here).unwrap();
            (learner, folder)
        })
    }

    /// PPO that learns from rollouts of `steps` steps.
    pub fn learner(&self, place: &TestDevice, steps: usize) -> Ppo {
        let (ppo, actor, critic) = &self.learner;
        let env = self.on_host();
        Ppo::new(ppo, actor, critic, env.spec(), steps, 3, place.torch).unwrap()
    }

    /// The same with other sections.
    pub fn learns_by(
        mut self,
        change: impl FnOnce(&mut PpoConfig, &mut ActorConfig, &mut CriticConfig),
    ) -> Self {
        let (ppo, actor, critic) = &mut self.learner;
        change(ppo, actor, critic);
        self
    }

    pub fn collector(
        &self,
        place: &TestDevice,
        steps: usize,
        sync: CudaSync,
    ) -> DeviceCollector<KernelEnvironments> {
        self.collector_for(place, steps, sync, &self.policy)
    }

    /// For another policy.
    pub fn collector_for(
        &self,
        place: &TestDevice,
        steps: usize,
        sync: CudaSync,
        policy: &dyn Policy,
    ) -> DeviceCollector<KernelEnvironments> {
        let env = self.on_device_for(place, &TorchMemory(place.torch), policy);
        let env = KernelEnvironments::new(env, steps, policy, place.torch).unwrap();
        DeviceCollector::new(env, place.queue(), sync, true).unwrap()
    }
}

/// Tensors for what one step writes.
pub struct Rows {
    pub obs: Groups<Tensor>,
    pub action: Tensor,
    pub reward: Tensor,
    pub flags: [Tensor; 3],
    final_obs: Groups<Tensor>,
    final_slot: Tensor,
}

impl Rows {
    pub fn new(place: &TestDevice, env: &DeviceEnv) -> Self {
        let spec = env.spec();
        let n = spec.num_envs as i64;
        let float = |k: usize| place.zeros(&[n, k as i64], Kind::Float);
        let groups =
            || Groups { policy: float(spec.obs.policy), critic: spec.obs.critic.map(float) };
        Self {
            obs: groups(),
            action: float(spec.action.width()),
            reward: float(1),
            flags: [float(1), float(1), float(1)],
            final_obs: groups(),
            final_slot: place.zeros(&[n], Kind::Int),
        }
    }

    pub fn obs(&self) -> Groups<Address> {
        addresses(&self.obs)
    }

    pub fn addresses(&self) -> StepAddresses {
        let at = |t: &Tensor| t.data_ptr() as Address;
        StepAddresses {
            obs: self.obs(),
            reward: at(&self.reward),
            terminated: at(&self.flags[0]),
            truncated: at(&self.flags[1]),
            valid: at(&self.flags[2]),
            final_obs: addresses(&self.final_obs),
            final_slots: 1,
            final_slot: at(&self.final_slot),
            noise: None,
        }
    }

    /// One step with the actions that are in place.
    pub fn step(&self, env: &mut DeviceEnv) {
        let action = self.action.data_ptr() as Address;
        env.step(action, &self.addresses()).unwrap();
    }
}

fn addresses(groups: &Groups<Tensor>) -> Groups<Address> {
    Groups {
        policy: groups.policy.data_ptr() as Address,
        critic: groups.critic.as_ref().map(|t| t.data_ptr() as Address),
    }
}

/// The numbers of a tensor, on the host.
pub fn numbers(t: &Tensor) -> Vec<f32> {
    Vec::try_from(t.to_device(tch::Device::Cpu).contiguous().view([-1])).unwrap()
}

/// Prints what `run.py` gathers.
pub fn figure(name: &str, value: f64) {
    println!("FIGURE {{\"{name}\": {value}}}");
}
