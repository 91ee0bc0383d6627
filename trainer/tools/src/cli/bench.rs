//! `ostler bench`: environment steps per second, stage by stage.

use super::config::ConfigArgs;
use super::train;
use super::{bench_physics, bench_threads};
use clap::{Args, Subcommand};
use ostler_collector::peers::Group;
use ostler_collector::policy::{Hidden, Noise, Widths};
use ostler_collector::{Act, CollectError, Collector, Policy};
use ostler_learn::config::{Gpus, Override};
use ostler_learn::learner::Learner;
use ostler_machine::memory::Here;
use ostler_machine::memory::resident_mib;
use ostler_machine::torch::{cpu_allocations, with_threads};
use ostler_run::log::{errln, outln};
use ostler_run::run::{Options, Parts, Rows, RunError, build_env, one_env, plan, settle_kernel};
use ostler_sim::BatchEnv;
use ostler_sim::config::{SimDevice, Specialize};
use ostler_sim::env::ActionSpace;
use ostler_sim::memory::zeroed;
use ostler_sim::rng::{self, Purpose};
use serde_json::{Map, json};
use std::borrow::Cow;
use std::path::Path;
use std::time::{Duration, Instant};
use tch::{TchError, Tensor};

/// Steps after which the actions of the simulation's measurement repeat.
const DRAWS: usize = 32;

/// Flags of `ostler bench`.
#[derive(Debug, Args)]
#[command(args_conflicts_with_subcommands = true)]
pub(crate) struct BenchArgs {
    #[command(subcommand)]
    only: Option<Only>,
    #[command(flatten)]
    config: ConfigArgs,
    /// One JSON object on standard output
    #[arg(long)]
    json: bool,
    /// Time for each of the stages (s)
    #[arg(long, default_value_t = 2.0, value_name = "SECONDS")]
    seconds: f64,
    /// Measure with each of these numbers of threads (sim.threads and learner.threads), and print
    /// the speeds beside those of the first: 1,2,4
    #[arg(long, value_delimiter = ',', value_name = "N,...")]
    threads: Vec<usize>,
    /// Measure so many processes on this machine that train as one, as `ostler train --nproc`
    #[arg(long, value_name = "N", conflicts_with = "threads", value_parser = clap::value_parser!(u32).range(1..=1024))]
    nproc: Option<u32>,
}

/// Parts that are measured by themselves.
#[derive(Debug, Subcommand)]
enum Only {
    /// Measure an engine's physics steps per second with any MJCF file
    Physics(bench_physics::BenchPhysicsArgs),
}

/// Measures and prints.
pub(crate) fn run(args: &BenchArgs) -> Result<i32, RunError> {
    if let Some(Only::Physics(args)) = &args.only {
        return bench_physics::run(args);
    }
    let (file, overrides) = args.config.required()?;
    if !(args.seconds > 0.0 && args.seconds <= 3600.0) {
        return Err(RunError::Usage("--seconds takes a number above 0 and up to 3600".into()));
    }
    let time = Duration::from_secs_f64(args.seconds);
    if let Some(n) = args.nproc.filter(|n| *n > 1) {
        let mut options = Options { config: Some(file.clone()), overrides, ..Options::default() };
        train::divide_threads(&mut options, n as usize);
        let work = || match measure(&file, &options.overrides, time, args.json) {
            Ok(measured) => {
                measured.print(args.json);
                0
            }
            Err(e) => {
                errln!("error: {e}");
                e.exit_code()
            }
        };
        return Ok(train::forked(&options, n, work));
    }
    match args.threads.is_empty() {
        true => measure(&file, &overrides, time, args.json)?.print(args.json),
        false => {
            let measure = |overrides: &[Override]| measure(&file, overrides, time, true);
            bench_threads::run(&args.threads, &overrides, measure, args.json)?;
        }
    }
    Ok(0)
}

/// What was measured of a configuration.
pub(super) struct Measured {
    pub name: String,
    backend: &'static str,
    kernel: String,
    /// By name, in the order in which they are printed.
    pub numbers: Vec<(Cow<'static, str>, f64)>,
}

impl Measured {
    fn print(&self, json: bool) {
        let name = &self.name;
        if json {
            let numbers = self.numbers.iter();
            let mut map: Map<String, serde_json::Value> =
                numbers.map(|(key, value)| (format!("{name}.{key}"), json!(value))).collect();
            map.insert(format!("{name}.backend"), json!(self.backend));
            map.insert(format!("{name}.kernel"), json!(self.kernel));
            outln!("{}", serde_json::Value::Object(map));
            return;
        }
        outln!("{name}.backend {}", self.backend);
        outln!("{name}.kernel {}", self.kernel);
        for (key, value) in &self.numbers {
            let digits = if value.abs() < 100.0 && value.fract() != 0.0 { 3 } else { 0 };
            outln!("{name}.{key} {value:.digits$}");
        }
    }
}

/// Measures the stages, each for `time`; `quiet` prints nothing on the way.
fn measure(
    file: &Path,
    overrides: &[Override],
    time: Duration,
    quiet: bool,
) -> Result<Measured, RunError> {
    let (mut loaded, model, _) = plan(file, overrides, None, Gpus::HERE)?;
    // Nothing compiles beside what is measured.
    if loaded.config.sim.specialize == Specialize::Auto {
        loaded.config.sim.specialize = Specialize::Wait;
    }
    settle_kernel(&mut loaded, &model, quiet, None)?;
    let config = &loaded.config;
    let torch = ostler_machine::torch::init(config.learner_threads())?;
    let n = config.env.num_envs;

    let on_device = config.sim.device == SimDevice::Cuda;
    let group = Group::current();
    let ((mut simulation, loops), mut kernel, spec) = match on_device || !group.is_alone() {
        true => ((f64::NAN, 0.0), String::new(), one_env(&loaded, &model)?.spec().clone()),
        false => {
            let mut env = build_env(&loaded, config, &model, n, config.seed)?;
            let simulation = simulate(&mut env, time)?;
            let kernel = env.physics().kernel().unwrap_or("-").to_string();
            (simulation, kernel, env.spec().clone())
        }
    };

    let Parts { mut collector, mut learner, .. } = Parts::build(&loaded, &model, &spec)?;
    let scratch = ostler_sim::files::scratch("bench")
        .map_err(|e| RunError::file("make a folder in", &std::env::temp_dir())(e))?;
    if let Some(memory) = learner.memory() {
        memory.open(scratch.path(), false, &Here)?;
    }
    let samples = config.samples() as f64;
    if on_device {
        kernel = collector.device_kernel().unwrap_or_default();
        simulation = simulate_on_device(&mut *collector, learner.as_ref(), time)?;
    }
    // Warm-up: first touches of buffers, libtorch's caches.
    collector.collect(learner.policy_mut())?;
    if learner.wants_warm_up() {
        learner.warm_up(collector.rollout())?;
    }
    with_threads(torch.threads, || learner.update(collector.rollout()))?;

    let (mut collect_s, mut env_s, mut policy_s, mut update_s) = (0.0, 0.0, 0.0, 0.0);
    let mut iterations = 0.0;
    let (_, waited) = (group.take_work(), group.waited());
    let clock = Instant::now();
    while clock.elapsed() < 2 * time {
        collector.collect(learner.policy_mut())?;
        let times = collector.times();
        collect_s += times.total;
        env_s += times.env;
        policy_s += times.policy;
        let update = with_threads(torch.threads, || learner.update(collector.rollout()))?;
        update_s += update.update_s;
        iterations += 1.0;
    }
    let whole_s = clock.elapsed().as_secs_f64();
    let (work, waited) = (group.take_work(), group.waited() - waited);
    let (per_step, per_update) = allocations(&mut *collector, learner.as_mut(), torch.threads)?;
    let steps = samples * iterations;
    let counts = collector.counts();
    let numbers = [
        ("simulation.steps_per_s", simulation),
        ("simulation.fork_joins_per_step", loops),
        ("collection.steps_per_s", steps / collect_s),
        ("learning.steps_per_s", steps / update_s),
        ("whole.steps_per_s", steps / whole_s),
        ("share.simulation", env_s / whole_s),
        ("share.policy", policy_s / whole_s),
        ("share.collection", collect_s / whole_s),
        ("share.learning", update_s / whole_s),
        ("iteration.ms", whole_s / iterations * 1e3),
        ("num_envs", n as f64),
        ("num_steps_per_env", config.runner.num_steps_per_env as f64),
        ("threads.simulation", config.sim_threads() as f64),
        ("threads.learning", torch.threads as f64),
        ("memory.rss_mib", resident_mib()),
        ("collection.libtorch_allocations_per_step", per_step),
        ("learning.libtorch_allocations_per_update", per_update),
        ("collection.waits_in_loop", counts.in_loop.waits as f64),
        ("collection.copies_in_loop", counts.in_loop.copies() as f64),
        ("collection.waits", counts.all.waits as f64),
        ("collection.copies", counts.all.copies() as f64),
    ];
    let mut numbers: Vec<(Cow<'static, str>, f64)> =
        numbers.into_iter().map(|(key, value)| (key.into(), value)).collect();
    if !group.is_alone() {
        kernel.clone_from(&config.sim.kernel);
        // They are measured by what process 0 does alone.
        numbers.retain(|(key, _)| !key.starts_with("simulation."));
        numbers.push(("processes".into(), group.size() as f64));
        numbers.push(("share.waiting".into(), waited / whole_s));
        let each = work.iter().enumerate();
        let each = each.map(|(rank, s)| (format!("share.work.{rank}").into(), s / whole_s));
        numbers.extend(each);
    }
    Ok(Measured { name: config.name.clone(), backend: config.sim.backend.name(), kernel, numbers })
}

/// A policy that leaves the actions as they are.
struct Idle {
    widths: Widths,
    noise: (i64, Noise),
}

impl Policy for Idle {
    fn dist_width(&self) -> i64 {
        self.widths.dist
    }
    fn hidden_width(&self) -> i64 {
        self.widths.hidden
    }
    fn noise(&self) -> (i64, Noise) {
        self.noise
    }
    fn act(&mut self, _: &Tensor, _: &Tensor, _: &Act<'_>) -> Result<(), TchError> {
        Ok(())
    }
    fn act_mean(&mut self, _: &Tensor, _: Option<Hidden<'_>>, _: &Tensor) -> Result<(), TchError> {
        Ok(())
    }
}

/// Steps per second of physics and task alone on a device, with actions as in
/// [`simulate`]: a collection whose policy does nothing.
fn simulate_on_device(
    collector: &mut dyn Collector,
    learner: &dyn Learner,
    time: Duration,
) -> Result<f64, RunError> {
    let policy = learner.policy();
    let mut idle = Idle { widths: policy.widths(), noise: policy.noise() };
    let rollout = collector.rollout();
    let samples = (rollout.steps * rollout.envs) as f64;
    let mut actions = rollout.action.shallow_clone();
    let (rows, width) = (samples as u32, actions.numel() / (samples as usize).max(1));
    let mut draws = zeroed::<f32>("actions", actions.numel()).map_err(CollectError::from)?;
    rng::fill_uniform(0, 0..rows, Purpose::Replay, 0, width, &mut draws);
    let choices = match learner.policy().noise().1 {
        Noise::Normal => None,
        Noise::Uniform => Some(learner.policy().dist_width() as f32),
    };
    for a in &mut draws {
        *a = choices.map_or(2.0 * *a - 1.0, |choices| (*a * choices).floor());
    }
    actions.f_copy_(&Tensor::f_from_slice(&draws)?.f_view(actions.size().as_slice())?)?;
    collector.collect(&mut idle)?;
    let clock = Instant::now();
    let mut steps = 0.0;
    while clock.elapsed() < time {
        collector.collect(&mut idle)?;
        steps += samples;
    }
    Ok(steps / clock.elapsed().as_secs_f64())
}

/// How often libtorch allocates for a tensor in a control step and in an update.
fn allocations(
    collector: &mut dyn Collector,
    learner: &mut dyn Learner,
    threads: usize,
) -> Result<(f64, f64), RunError> {
    let before = cpu_allocations()?;
    let steps = collector.collect(learner.policy_mut())?.steps;
    let between = cpu_allocations()?;
    with_threads(threads, || learner.update(collector.rollout()))?;
    let after = cpu_allocations()?;
    let per_step = (between - before).calls as f64 / steps as f64;
    Ok((per_step, (after - between).calls as f64))
}

/// Steps per second of physics and task alone, with actions drawn uniformly (from
/// -1 to 1, or over the choices) before the clock starts, and how often the threads meet in a
/// control step of all environments.
fn simulate(env: &mut BatchEnv, time: Duration) -> Result<(f64, f64), CollectError> {
    let spec = env.spec();
    let (n, width) = (spec.rows(), spec.action.width());
    let mut rows = Rows::new(spec)?;
    let mut actions = zeroed::<f32>("actions", (DRAWS * width).saturating_mul(n))?;
    rng::fill_uniform(0, 0..(DRAWS * n) as u32, Purpose::Replay, 0, width, &mut actions);
    for a in &mut actions {
        *a = match spec.action {
            ActionSpace::Continuous(_) => 2.0 * *a - 1.0,
            ActionSpace::Discrete(choices) => (*a * choices as f32).floor(),
        };
    }
    let mut draws = actions.chunks_exact((n * width).max(1)).cycle();
    rows.reset(env, true)?;
    let mut step = |env: &mut BatchEnv| {
        env.begin_rollout();
        rows.step(env, draws.next().unwrap_or_default())
    };
    step(env)?;
    let before = env.loops();
    let clock = Instant::now();
    let mut steps = 0_u32;
    while clock.elapsed() < time {
        step(env)?;
        steps += 1;
    }
    let elapsed = clock.elapsed().as_secs_f64();
    let steps = f64::from(steps);
    Ok((steps * n as f64 / elapsed, (env.loops() - before) as f64 / steps))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_learn::config::{Gpus, Override};
    use ostler_run::run::Machine;
    use ostler_sim::device::host::Host;
    use std::path::Path;
    use std::sync::Arc;

    /// A cart-pole whose every part is on the host's stand-in for a device.
    fn on_device() -> Parts {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../configs/cartpole.toml");
        let overrides = [
            ("env.num_envs", "12"),
            ("sim.specialize", "wait"),
            ("sim.threads", "1"),
            ("learner.threads", "1"),
            ("runner.num_steps_per_env", "16"),
        ]
        .map(|(key, value)| Override::flag("--set", key, value));
        let (loaded, model, _) = plan(&path, &overrides, None, Gpus::Trust).unwrap();
        let spec = one_env(&loaded, &model).unwrap().spec().clone();
        let machine = Machine::stand_in(Some(Arc::new(Host::default())));
        Parts::build_on(&machine, &loaded, &model, &spec).unwrap()
    }

    #[test]
    fn on_a_device_environments_step_with_the_actions_that_lie_there() {
        let Parts { mut collector, learner, .. } = on_device();
        let speed = simulate_on_device(&mut *collector, learner.as_ref(), Duration::from_millis(1))
            .unwrap();
        assert!(speed.is_finite() && speed > 0.0);
        let rollout = collector.rollout();
        let (actions, obs) = (&rollout.action, &rollout.obs.policy);
        assert!(actions.abs().max().double_value(&[]) <= 1.0);
        // 192 numbers drawn evenly from -1 to 1; five deviations of their own deviation.
        assert!((actions.std(true).double_value(&[]) - 0.577).abs() < 0.1);
        assert!(obs.get(1).ne_tensor(&obs.get(2)).any().int64_value(&[]) == 1);
    }
}
