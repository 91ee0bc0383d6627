//! The cost of collecting beside the environments: frames per second over environments that do
//! next to nothing. `cargo bench --workspace --bench collector [-- OPTIONS]`.
//!
//! Prints `collector.POLICY.ENVS.frames_per_s` for a random policy and one of [64,64], at
//! 64 and 1,024 environments, on one thread, per second of processor time, and `.first_batch_s`: from nothing to the
//! first rollout. `--policy random|mlp --envs N --seconds S` measures one case, for
//! `benches/versus_torchrl_collector.py`; `--quick` all of them, for a moment each.

use ostler_collector::env::Environments;
use ostler_collector::{CollectError, Collector, Stepping, SyncCollector};
use ostler_sim::env::{ActionSpace, EnvSpec};
use ostler_sim::physics::SnapshotError;
use ostler_sim::{EpisodeStats, Groups, StepOut};
use ostler_trainer::learner::{ActorConfig, ActorCritic, CriticConfig};
use std::error::Error;
use std::time::{Duration, Instant};
use tch::Device;

/// Widths of observations and actions, and steps of a rollout.
const OBS: usize = 8;
const ACTION: usize = 2;
const STEPS: usize = 32;

/// Counts.
struct Counting {
    spec: EnvSpec,
    count: f32,
}

impl Counting {
    fn new(num_envs: usize) -> Self {
        let spec = EnvSpec::plain(
            num_envs,
            Groups { policy: OBS, critic: None },
            ActionSpace::Continuous(ACTION),
            0.02,
            1 << 20,
        );
        Self { spec, count: 0.0 }
    }
}

impl Environments for Counting {
    fn spec(&self) -> &EnvSpec {
        &self.spec
    }
    fn reset(&mut self, _: bool, obs: &mut Groups<&mut [f32]>) -> Result<(), CollectError> {
        obs.policy.fill(self.count);
        Ok(())
    }
    fn begin_rollout(&mut self) {}
    fn step(&mut self, _: &[f32], out: &mut StepOut<'_>) -> Result<(), CollectError> {
        self.count += 1e-3;
        out.obs.policy.fill(self.count);
        out.reward.fill(1.0);
        out.terminated.fill(0.0);
        out.truncated.fill(0.0);
        out.valid.fill(1.0);
        out.final_slot.fill(-1);
        Ok(())
    }
    fn take_stats(&mut self, _: &mut EpisodeStats) {}
    fn capture(&self, _: &mut Vec<u8>) -> Result<(), SnapshotError> {
        Ok(())
    }
    fn restore(&mut self, _: &[u8]) -> Result<(), SnapshotError> {
        Ok(())
    }
    fn restore_range(
        &mut self,
        _: &[u8],
        _: bool,
        _: &mut Groups<&mut [f32]>,
    ) -> Result<usize, SnapshotError> {
        Ok(self.spec.num_envs)
    }
}

fn measure(random: bool, envs: usize, time: Duration) -> Result<(), Box<dyn Error>> {
    let start = Instant::now();
    let env = Counting::new(envs);
    let actor = ActorConfig { hidden_dims: vec![64, 64], ..ActorConfig::default() };
    let critic = CriticConfig { hidden_dims: vec![64, 64], ..CriticConfig::default() };
    let mut policy = ActorCritic::new(&actor, &critic, env.spec(), 1, Device::Cpu)?;
    let stepping =
        Stepping { init_random_steps: if random { u64::MAX } else { 0 }, ..Stepping::default() };
    let mut c = SyncCollector::stepping(Box::new(env), STEPS, &policy, 1, false, stepping)?;
    c.collect(&mut policy)?;
    let first = start.elapsed().as_secs_f64();
    let warm = Instant::now();
    while warm.elapsed() < time / 10 {
        c.collect(&mut policy)?;
    }
    let (clock, mut frames) = (processor_s(), 0);
    while processor_s() - clock < time.as_secs_f64() {
        c.collect(&mut policy)?;
        frames += STEPS * envs;
    }
    let rate = frames as f64 / (processor_s() - clock);
    let name = format!("collector.{}.{envs}", if random { "random" } else { "mlp" });
    println!("{name}.frames_per_s {rate:.0}");
    println!("{name}.first_batch_s {first:.4}");
    Ok(())
}

/// Processor time of this program (s).
fn processor_s() -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the structure lives across the call, which fills it in.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = std::env::args().collect();
    let after = |name: &str| {
        let at = args.iter().position(|a| a == name);
        at.and_then(|i| args.get(i + 1)).map(String::as_str)
    };
    let quick = args.iter().any(|a| a == "--quick" || a == "--test");
    let seconds = match after("--seconds") {
        Some(s) => s.parse()?,
        None if quick => 0.05,
        None => 2.0,
    };
    let time = Duration::from_secs_f64(seconds);
    ostler_trainer::torch::init(1)?;
    let policies = after("--policy").map_or(vec!["random", "mlp"], |p| vec![p]);
    let sizes = match after("--envs") {
        Some(n) => vec![n.parse()?],
        None => vec![64, 1024],
    };
    for policy in policies {
        for &envs in &sizes {
            measure(policy == "random", envs, time)?;
        }
    }
    Ok(())
}
