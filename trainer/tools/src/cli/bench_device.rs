//! `ostler bench physics --device`: an engine alone on a GPU, by the program that a
//! training would launch, with a task that asks for nothing.

use super::bench_physics::{DRAWS, Figures, SLICE, controls};
use ostler_learn::config::Device as Where;
use ostler_run::run::RunError;
use ostler_sim::config::{ConfigError, EnvConfig, SimConfig, TaskConfig};
use ostler_sim::device::cuda::Cuda;
use ostler_sim::device::{Address, Block, Device, DeviceError, Memory};
use ostler_sim::env::{DeviceEnv, EnvError, PolicyNoise, StepAddresses};
use ostler_sim::{EpisodeStats, Groups, Model};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Every actuator's control is an action; one number is seen, nothing ends.
const TASK: &str = r#"
action = [{ actuators = ["*"] }]
observation = [{ name = "first", expr = "qpos[0]" }]
reward = [{ name = "none", expr = "0" }]
"#;

/// The GPU that `--device` names, `cuda` or `cuda:N`.
///
/// # Errors
/// It is no GPU, or cannot be used.
pub(super) fn open(text: &str) -> Result<Arc<Cuda>, RunError> {
    let index = match Where::parse(text) {
        Ok(Where::Cuda(index)) => index,
        Ok(_) => {
            let why = "--device takes a GPU, cuda:N; without it the processor is measured";
            return Err(RunError::Usage(why.into()));
        }
        Err(why) => return Err(RunError::Usage(format!("--device: {why}"))),
    };
    Cuda::open(index).map_err(|why| RunError::GpuPhysics { device: text.into(), why })
}

/// Steps `num_envs` robots for this time, controls held for `substeps` time steps.
///
/// # Errors
/// The native engine cannot simulate the robot; no memory; the device refuses.
pub(super) fn measure(
    model: &Arc<Model>,
    (num_envs, substeps): (usize, usize),
    time: Duration,
    device: Arc<dyn Device>,
    memory: &dyn Memory,
) -> Result<(Figures, usize, String), EnvError> {
    let task: TaskConfig =
        toml::from_str(TASK).map_err(|e| ConfigError::new("task", e.to_string()))?;
    if model.nu() == 0 {
        let why = "a robot without actuators cannot be measured on a GPU";
        return Err(ConfigError::new("task.action", why).help("give it a motor").into());
    }
    let env = EnvConfig { num_envs, decimation: substeps, episode_length_s: 1e6 };
    let noise = PolicyNoise { seed: 0, width: 0, normal: true };
    let sim = SimConfig::default();
    let name = device.name();
    let mut env = DeviceEnv::new(
        model.clone(),
        &sim,
        &env,
        &task,
        0,
        0,
        device.clone(),
        memory,
        noise,
        false,
    )?;
    let rows = Rows::new(memory, num_envs)?;
    let draws = draws(model, num_envs, device.as_ref(), memory)?;
    let set = draws.bytes() / DRAWS;
    env.reset(false, rows.obs())?;
    env.begin_rollout(None)?;
    let mut next = 0;
    let mut slice = |env: &mut DeviceEnv| -> Result<f64, DeviceError> {
        let clock = Instant::now();
        for _ in 0..SLICE {
            env.step(draws.address() + (next * set) as Address, &rows.step)?;
            next = (next + 1) % DRAWS;
        }
        device.synchronize()?;
        Ok(clock.elapsed().as_secs_f64())
    };
    // To where contacts are.
    for _ in 0..10 {
        slice(&mut env)?;
    }
    let mut stats = EpisodeStats::with_room(env.spec())?;
    env.take_stats(&mut stats)?;
    let steps = (SLICE * substeps * num_envs) as f64;
    let (mut slices, mut total, mut best) = (0.0, 0.0, 0.0_f64);
    let clock = Instant::now();
    while slices == 0.0 || clock.elapsed() < time {
        let taken = slice(&mut env)?;
        slices += 1.0;
        total += taken;
        best = best.max(steps / taken);
    }
    env.take_stats(&mut stats)?;
    let (mean, broken, short) = (slices * steps / total, stats.broken(), stats.shortfalls);
    let figures = Figures { mean, best, broken, short };
    Ok((figures, env.bytes() / num_envs.max(1), name))
}

/// `[DRAWS][N][nu]`, uniform over the actuators' ranges.
fn draws(
    model: &Model,
    n: usize,
    device: &dyn Device,
    memory: &dyn Memory,
) -> Result<Block, EnvError> {
    let columns = controls(model, n)?;
    let nu = model.nu();
    // From [nu][N] to [N][nu].
    let mut rows = Vec::new();
    rows.try_reserve_exact(columns.len()).map_err(|_| ostler_sim::memory::MemoryError {
        what: "controls".into(),
        bytes: 4 * columns.len(),
    })?;
    for set in columns.chunks_exact(nu * n) {
        rows.extend((0..n * nu).map(|i| set[i % nu * n + i / nu]));
    }
    let bytes: &[u8] = bytemuck::cast_slice(&rows);
    let block = memory.zeroed("controls", bytes.len())?;
    // SAFETY: the block is as long, and lives.
    unsafe { device.upload(bytes, block.address()) }?;
    Ok(block)
}

/// Where steps write.
struct Rows {
    step: StepAddresses,
    _block: Block,
}

impl Rows {
    fn new(memory: &dyn Memory, n: usize) -> Result<Self, EnvError> {
        let block = memory.zeroed("rows", 4 * 7 * n)?;
        let row = |k: usize| block.address() + (4 * k * n) as Address;
        let one = |k: usize| Groups { policy: row(k), critic: None };
        let step = StepAddresses {
            obs: one(0),
            reward: row(1),
            terminated: row(2),
            truncated: row(3),
            valid: row(4),
            final_obs: one(5),
            final_slots: 1,
            final_slot: row(6),
            noise: None,
        };
        Ok(Self { step, _block: block })
    }

    fn obs(&self) -> Groups<Address> {
        self.step.obs
    }
}

#[cfg(test)]
mod tests {
    use super::measure;
    use ostler_sim::device::HostMemory;
    use ostler_sim::device::host::Host;
    use ostler_sim::model::mjcf;
    use std::path::Path;
    use std::sync::Arc;
    use std::time::Duration;

    #[test]
    fn the_hosts_stand_in_is_measured() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/robots/cartpole.xml");
        let model = Arc::new(mjcf::load(&path).unwrap());
        let (device, time) = (Arc::new(Host::default()), Duration::from_millis(20));
        let (figures, bytes, name) = measure(&model, (3, 2), time, device, &HostMemory).unwrap();
        assert!(figures.mean > 0.0 && figures.best >= figures.mean && figures.broken == 0);
        assert!(bytes > 100 && name.contains("in place of a GPU"), "{bytes} {name}");
    }
}
