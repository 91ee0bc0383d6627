//! Time of one PPO update, alone: `cargo bench -p ostler-trainer --bench update`.
//!
//! Prints dotted, greppable keys. `small` and `medium` are the sizes that the peers were
//! measured at, `go1` has mjlab's networks of the Unitree Go1; medians. `--threads N` (1) learns
//! with so many; `--quick` runs each once. Where the processor has AVX512-BF16, updates with
//! products in bfloat16 take turns with those in float32.

use ostler_collector::{Act, Policy, Rollout, policy::Noise};
use ostler_sim::Groups;
use ostler_sim::env::{ActionSpace, EnvSpec};
use ostler_sim::rng::{Purpose, normal_pair, philox};
use ostler_trainer::learner::ppo::{Ppo, PpoConfig};
use ostler_trainer::learner::{ActorConfig, CriticConfig, Half, Learner};
use std::error::Error;
use std::time::Instant;
use tch::{Device, Kind, Tensor};

struct Size {
    name: &'static str,
    envs: usize,
    steps: usize,
    obs: usize,
    /// Where the critic sees others.
    critic: Option<usize>,
    action: usize,
    hidden: &'static [i64],
    epochs: usize,
    repeats: usize,
}

const SIZES: [Size; 3] = [
    Size {
        name: "small",
        envs: 64,
        steps: 32,
        obs: 4,
        critic: None,
        action: 1,
        hidden: &[64, 64],
        epochs: 4,
        repeats: 200,
    },
    Size {
        name: "medium",
        envs: 1024,
        steps: 24,
        obs: 48,
        critic: None,
        action: 12,
        hidden: &[256, 128, 64],
        epochs: 5,
        repeats: 7,
    },
    Size {
        name: "go1",
        envs: 1024,
        steps: 24,
        obs: 48,
        critic: Some(60),
        action: 12,
        hidden: &[512, 256, 128],
        epochs: 5,
        repeats: 7,
    },
];

fn main() -> Result<(), Box<dyn Error>> {
    let quick = std::env::args().any(|a| a == "--quick" || a == "--test");
    let args: Vec<String> = std::env::args().collect();
    let given = args.iter().position(|a| a == "--threads");
    let threads = match given.and_then(|i| args.get(i + 1)) {
        Some(threads) => threads.parse()?,
        None => 1,
    };
    ostler_trainer::torch::init(1)?;
    for size in &SIZES {
        measure(size, if quick { 1 } else { size.repeats }, threads)?;
    }
    Ok(())
}

fn measure(size: &Size, repeats: usize, threads: usize) -> Result<(), Box<dyn Error>> {
    let spec = EnvSpec::plain(
        size.envs,
        Groups { policy: size.obs, critic: size.critic },
        ActionSpace::Continuous(size.action),
        0.02,
        1000,
    );
    let config = PpoConfig {
        num_learning_epochs: size.epochs,
        num_mini_batches: 4,
        // All passes, whatever the divergence.
        kl_stop: 0.0,
        ..PpoConfig::default()
    };
    let actor = ActorConfig { hidden_dims: size.hidden.to_vec(), ..ActorConfig::default() };
    let critic = CriticConfig { hidden_dims: size.hidden.to_vec(), ..CriticConfig::default() };
    let learner = |half: Option<Half>| -> Result<Ppo, Box<dyn Error>> {
        let ppo = Ppo::new(&config, &actor, &critic, &spec, size.steps, 1, Device::Cpu)?;
        Ok(ppo.on_processor(threads, half)?)
    };
    let mut ppo = learner(None)?;
    let rollout = rollout(&mut ppo, &spec, size.steps as i64)?;
    let mut half = Half::find().ok().map(|half| learner(Some(half))).transpose()?;
    let mut times = [Times::default(), Times::default()];
    for i in 0..repeats.min(3) + repeats {
        let warm = i >= repeats.min(3);
        let learners = std::iter::once(&mut ppo).chain(&mut half);
        for (ppo, times) in learners.zip(&mut times) {
            let (start, cpu) = (Instant::now(), cpu_ms());
            let stats = ppo.update(&rollout)?;
            if warm {
                times.update.push(start.elapsed().as_secs_f64() * 1e3);
                times.gae.push(stats.gae_s * 1e3);
                times.cpu.extend(cpu.zip(cpu_ms()).map(|(before, after)| after - before));
            }
        }
    }
    for (mut times, precision) in times.into_iter().zip(["", ".bf16"]) {
        let name = format!("update.{}{precision}", size.name);
        if times.update.is_empty() {
            continue;
        }
        if !times.cpu.is_empty() {
            println!("{name}.cpu_ms {:.2}", median(&mut times.cpu));
        }
        println!("{name}.total_ms {:.2}", median(&mut times.update));
        println!("{name}.gae_ms {:.2}", median(&mut times.gae));
    }
    println!("update.{}.products_ms {:.2}", size.name, products(size, repeats)?);

    let noise = normals(1, &[spec.num_envs as i64, size.action as i64]);
    let row = |t: &Tensor| t.get(0);
    let (action, dist, std) = (row(&rollout.action), row(&rollout.dist), row(&rollout.std));
    let obs = row(&rollout.obs.policy);
    let out = Act { action: &action, dist: &dist, std: &std, hidden: None };
    let mut act = Vec::new();
    for _ in 0..repeats * 20 {
        let start = Instant::now();
        ppo.policy_mut().act(&obs, &noise, &out)?;
        act.push(start.elapsed().as_secs_f64() * 1e6);
    }
    println!("act.{}.us {:.1}", size.name, median(&mut act));
    Ok(())
}

/// Times of updates [ms].
#[derive(Default)]
struct Times {
    update: Vec<f64>,
    gae: Vec<f64>,
    cpu: Vec<f64>,
}

/// Time of an update's matrix products alone [ms], by libtorch, on whole minibatches: two
/// networks' layers forward, and backward to parameters and (but for the first) to inputs.
fn products(size: &Size, repeats: usize) -> Result<f64, Box<dyn Error>> {
    let rows = (size.envs * size.steps / 4) as i64;
    let zeros = |a: i64, b: i64| Tensor::f_zeros([a, b], (Kind::Float, Device::Cpu));
    let mut layers = Vec::new();
    let critic = size.critic.unwrap_or(size.obs);
    for (inputs, outputs) in [(size.obs, size.action), (critic, 1)] {
        let (inputs, outputs) = (inputs as i64, outputs as i64);
        let widths = [&[inputs], size.hidden, &[outputs]].concat();
        for (i, pair) in widths.windows(2).enumerate() {
            let [x, y] = [zeros(rows, pair[0])?, zeros(rows, pair[1])?];
            let weight = zeros(pair[1], pair[0])?;
            let d_weight = zeros(pair[1], pair[0])?;
            layers.push((i == 0, x, y, weight, d_weight));
        }
    }
    let _no_grad = tch::no_grad_guard();
    let mut times = Vec::new();
    for _ in 0..repeats {
        let start = Instant::now();
        for _ in 0..size.epochs * 4 {
            for (first, x, y, weight, d_weight) in &layers {
                let _ = x.f_mm_out(y, &weight.f_transpose(0, 1)?)?;
                let _ = y.f_transpose(0, 1)?.f_mm_out(d_weight, x)?;
                if !first {
                    let _ = y.f_mm_out(x, weight)?;
                }
            }
        }
        times.push(start.elapsed().as_secs_f64() * 1e3);
    }
    Ok(median(&mut times))
}

/// Random numbers in every place, acted on by the policy itself.
fn rollout(ppo: &mut Ppo, spec: &EnvSpec, steps: i64) -> Result<Rollout, Box<dyn Error>> {
    let policy = ppo.policy_mut();
    assert_eq!(policy.noise().1, Noise::Normal);
    let r = Rollout::new(spec, steps, policy.widths(), tch::Device::Cpu)?;
    let mut obs = r.obs.policy.shallow_clone();
    obs.f_copy_(&normals(2, &obs.size()))?;
    if let Some(obs) = &r.obs.critic {
        obs.shallow_clone().f_copy_(&normals(4, &obs.size()))?;
    }
    let mut reward = r.reward.shallow_clone();
    reward.f_copy_(&normals(3, &reward.size()))?;
    let _ = r.valid.shallow_clone().f_fill_(1.0)?;
    for t in 0..steps {
        let out = Act {
            action: &r.action.f_get(t)?,
            dist: &r.dist.f_get(t)?,
            std: &r.std.f_get(t)?,
            hidden: None,
        };
        let noise = normals(10 + t as u32, &[r.envs, policy.dist_width()]);
        policy.act(&r.obs.policy.f_get(t)?, &noise, &out)?;
    }
    Ok(r)
}

fn normals(stream: u32, size: &[i64]) -> Tensor {
    let numbers: Vec<f32> = (0..size.iter().product::<i64>() as u32)
        .map(|i| {
            let w = philox(1, stream, Purpose::Replay, 0, i);
            normal_pair(w[0], w[1]).0
        })
        .collect();
    Tensor::from_slice(&numbers).view(size)
}

/// Time that this thread has been running [ms]: steadier than the clock on a machine
/// that others use too.
fn cpu_ms() -> Option<f64> {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let ns: f64 = stat.split_whitespace().next()?.parse().ok()?;
    Some(ns * 1e-6)
}

fn median(x: &mut [f64]) -> f64 {
    x.sort_by(f64::total_cmp);
    x[x.len() / 2]
}
