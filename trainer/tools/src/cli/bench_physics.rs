//! `ostler bench physics`: steps per second of an engine alone, with any model.

use super::bench_device;
use super::engine::EngineArg;
use clap::{Args, ValueEnum};
use ostler_machine::memory::resident_mib;
use ostler_run::log::{errln, outln};
use ostler_run::run::RunError;
use ostler_sim::Physics;
use ostler_sim::config::{SimConfig, Specialize};
use ostler_sim::memory::zeroed;
use ostler_sim::model::Model;
use ostler_sim::model::mjcf::Reading;
use ostler_sim::physics::native::InstructionSet;
use ostler_sim::physics::pool::Pool;
use ostler_sim::physics::{PhysicsError, Shortfalls, fault};
use ostler_sim::rng::{self, Purpose};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Sets of controls after which they repeat.
pub(super) const DRAWS: usize = 16;
/// Calls in a row between two looks at the clock.
pub(super) const SLICE: usize = 10;

/// Flags of `ostler bench physics`.
#[derive(Debug, Args)]
pub(crate) struct BenchPhysicsArgs {
    /// Any MJCF file
    #[arg(value_name = "MODEL.xml")]
    model: PathBuf,
    /// Folder that holds the model's files, if not its own
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
    /// Parallel environments
    #[arg(long, alias = "num_envs", default_value_t = 1024, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    num_envs: u32,
    /// Threads; 0: as many as there are cores
    #[arg(long, default_value_t = 0, value_name = "T")]
    threads: u16,
    /// Physics engine
    #[arg(long, value_enum, default_value_t = EngineArg::Native)]
    backend: EngineArg,
    /// Which kernel: the robot's own is waited for
    #[arg(long, value_enum, default_value_t = KernelArg::Wait)]
    specialize: KernelArg,
    /// Instructions of the kernel; the widest unless given
    #[arg(long, value_enum, value_name = "SET")]
    instructions: Option<InstructionsArg>,
    /// Physics steps with the same controls
    #[arg(long, default_value_t = 5, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    substeps: u32,
    /// Time to measure (s)
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
    seconds: f64,
    /// A GPU, cuda:N, in place of the processor; native engine only
    #[arg(long, value_name = "DEVICE", conflicts_with_all = ["threads", "instructions", "specialize"])]
    device: Option<String>,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// `--specialize`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum KernelArg {
    /// Compiled for the robot, before the measurement
    Wait,
    /// The generic kernel
    Off,
}

/// `--instructions`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum InstructionsArg {
    /// Any x86-64, 4 lanes; the generic kernel alone
    Portable,
    /// AVX2 and FMA, 8 lanes
    Avx2,
    /// AVX-512, 16 lanes
    Avx512,
}

impl InstructionsArg {
    /// The set.
    fn set(self) -> InstructionSet {
        match self {
            Self::Portable => InstructionSet::Portable,
            Self::Avx2 => InstructionSet::Avx2,
            Self::Avx512 => InstructionSet::Avx512,
        }
    }
}

/// Measurements.
pub(super) struct Figures {
    /// Over the whole time.
    pub mean: f64,
    /// In the best slice: the one that other programs disturbed least.
    pub best: f64,
    /// Environments that broke and were put back.
    pub broken: u64,
    /// Steps that were not as the model asks.
    pub short: Shortfalls,
}

/// Measures and prints.
pub(crate) fn run(args: &BenchPhysicsArgs) -> Result<i32, RunError> {
    if !(args.seconds > 0.0 && args.seconds <= 3600.0) {
        return Err(RunError::Usage("--seconds takes a number above 0 and up to 3600".into()));
    }
    let within = args.folder.as_deref();
    let reading = Reading { within, ..Reading::default() };
    let model = Arc::new(reading.read(&args.model)?.0);
    if let Some(device) = &args.device {
        return on_device(args, &model, device);
    }
    let threads = match args.threads {
        0 => Pool::available(),
        n => usize::from(n),
    };
    let config = SimConfig {
        specialize: match args.specialize {
            KernelArg::Wait => Specialize::Wait,
            KernelArg::Off => Specialize::Off,
        },
        kernel: match args.instructions {
            Some(set) => format!("auto-{}", set.set().name()),
            None => "auto".into(),
        },
        ..SimConfig::default()
    };
    let before = resident_mib();
    let (mut worlds, kernel) =
        args.backend.worlds(&model, args.num_envs as usize, threads, &config)?;
    let figures = measure(
        worlds.as_mut(),
        &model,
        args.substeps as usize,
        Duration::from_secs_f64(args.seconds),
    )?;
    let bytes = (resident_mib() - before).max(0.0) * 1_048_576.0 / f64::from(args.num_envs);
    let all = json!({
        "model": model.name,
        "backend": args.backend.name(),
        "kernel": kernel,
        "num_envs": args.num_envs,
        "threads": threads,
        "substeps": args.substeps,
        "timestep": worlds.timestep(),
        "physics_steps_per_s": figures.mean.round(),
        "physics_steps_per_s_best": figures.best.round(),
        "broken": figures.broken,
        "contact_overflow": figures.short.contact_overflow,
        "unsolved": figures.short.unsolved,
        "bytes_per_env": bytes.round(),
    });
    print(args, &all, figures.short);
    Ok(0)
}

/// The same on a GPU.
fn on_device(args: &BenchPhysicsArgs, model: &Arc<Model>, device: &str) -> Result<i32, RunError> {
    if args.backend != EngineArg::Native {
        let why = "only the native engine runs on a GPU: leave --backend or --device out";
        return Err(RunError::Usage(why.into()));
    }
    let gpu = bench_device::open(device)?;
    let memory = gpu.memory();
    let time = Duration::from_secs_f64(args.seconds);
    let sizes = (args.num_envs as usize, args.substeps as usize);
    let (figures, bytes, name) =
        bench_device::measure(model, sizes, time, gpu, &memory).map_err(RunError::Env)?;
    let all = json!({
        "model": model.name,
        "backend": args.backend.name(),
        "device": name,
        "num_envs": args.num_envs,
        "substeps": args.substeps,
        "physics_steps_per_s": figures.mean.round(),
        "physics_steps_per_s_best": figures.best.round(),
        "broken": figures.broken,
        "contact_overflow": figures.short.contact_overflow,
        "unsolved": figures.short.unsolved,
        "bytes_per_env": bytes,
    });
    print(args, &all, figures.short);
    Ok(0)
}

fn print(args: &BenchPhysicsArgs, all: &serde_json::Value, short: Shortfalls) {
    if let Some(text) = short.left_out() {
        errln!("note: {text}");
    }
    if args.json {
        outln!("{all}");
    } else if let Some(map) = all.as_object() {
        for (key, value) in map {
            match value.as_str() {
                Some(text) => outln!("{key} {text}"),
                None => outln!("{key} {value}"),
            }
        }
    }
}

/// Steps all worlds under changing controls; what breaks starts again.
fn measure(
    worlds: &mut dyn Physics,
    model: &Model,
    substeps: usize,
    time: Duration,
) -> Result<Figures, PhysicsError> {
    let n = worlds.state().num_envs;
    let start = worlds.state().qpos.clone();
    let still = vec![0.0; model.nv * n];
    let ctrl = controls(model, n)?;
    let width = model.nu() * n;
    let mut next = 0;
    let mut broken = 0;
    let mut best = 0.0_f64;
    let mut slice = |worlds: &mut dyn Physics| {
        let clock = Instant::now();
        for _ in 0..SLICE {
            let draw = ctrl.get(next * width..(next + 1) * width);
            worlds.step(draw.unwrap_or_default(), substeps);
            next = (next + 1) % DRAWS;
        }
        let taken = clock.elapsed().as_secs_f64();
        let mask: Vec<u32> =
            (worlds.state().fault.iter()).map(|f| u32::from(f & !fault::CONTROL != 0)).collect();
        let count: u64 = mask.iter().map(|m| u64::from(*m)).sum();
        if count > 0 {
            worlds.reset(&mask, &start, &still);
        }
        (taken, count)
    };
    // To where contacts are.
    for _ in 0..10 {
        slice(worlds);
    }
    let steps = (SLICE * substeps * n) as f64;
    let (mut slices, mut total) = (0.0, 0.0);
    let earlier = worlds.shortfalls();
    let clock = Instant::now();
    while slices == 0.0 || clock.elapsed() < time {
        let (taken, count) = slice(worlds);
        slices += 1.0;
        total += taken;
        broken += count;
        best = best.max(steps / taken);
    }
    let short = worlds.shortfalls().since(earlier);
    Ok(Figures { mean: slices * steps / total, best, broken, short })
}

/// Uniform over the actuators' ranges: `[DRAWS][nu][N]`.
pub(super) fn controls(model: &Model, n: usize) -> Result<Vec<f32>, PhysicsError> {
    let nu = model.nu();
    let mut draws: Vec<f32> = zeroed("controls", (DRAWS * nu).saturating_mul(n))?;
    for (i, chunk) in draws.chunks_exact_mut((nu * n).max(1)).enumerate() {
        // Which number goes where does not matter: all are independent.
        rng::fill_uniform(0, 0..n as u32, Purpose::Replay, i as u64, nu, chunk);
        for (a, row) in model.actuators.iter().zip(chunk.chunks_exact_mut(n)) {
            let [low, high] = a.ctrlrange.unwrap_or([-1.0, 1.0]).map(|x| x as f32);
            for u in row {
                *u = low + (high - low) * *u;
            }
        }
    }
    Ok(draws)
}
