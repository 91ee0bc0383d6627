//! `ostler eval`: how good a trained policy is, as numbers.

use super::contest::Contest;
use super::engine::JudgeArg;
use super::eval_clips::Clips;
use super::instead::Instead;
use super::target::{AgentKind, Events, Target, Wish, open};
use clap::{Args, ValueEnum};
use ostler_collector::env::Environments;
use ostler_run::log::{errln, outln};
use ostler_run::run::stage::{Stage, quotas};
use ostler_run::run::{RunError, error::OK};
use ostler_run::stats::Episodes;
use ostler_sim::env::EnvSpec;
use ostler_sim::referee::worlds::Failure;
use serde_json::json;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::time::Instant;

/// Most environments used unless `--num-envs` says otherwise.
const ENVS: usize = 256;

/// Flags of `ostler eval`.
#[derive(Debug, Args)]
pub(crate) struct EvalArgs {
    /// A run's folder, runs/NAME/latest, one checkpoint file, or (with --policy, or --agent
    /// zero|random) a configuration
    run: PathBuf,
    /// Episodes; every environment plays the same number of them
    #[arg(long, default_value_t = 1000, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=100_000_000))]
    episodes: u32,
    /// Parallel environments [default: 256, but at most --episodes]
    #[arg(long, alias = "num_envs", value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    num_envs: Option<u32>,
    /// Whether the task's events happen: other masses, pushes, ...
    #[arg(long, value_enum, default_value_t = Events::On)]
    events: Events,
    /// Whether observations have the noise and biases of training
    #[arg(long, value_enum, default_value_t = Noise::Off)]
    noise: Noise,
    /// Episodes follow reference motions from their first frames [default: as in training, but evenly
    /// where training begins at failures]
    #[arg(long)]
    begin: bool,
    /// Seed of the episodes' starts [default: 1000 + the run's seed]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Physics engine [default: the run's]; several are compared: native,mujoco
    #[arg(long, value_enum, value_delimiter = ',')]
    backend: Vec<JudgeArg>,
    /// Python that has mujoco and numpy, for --backend mujoco [default:
    /// OSTLER_REFEREE_PYTHON, then python3 and python]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Who acts instead of the run's policy: what it is to beat
    #[arg(long, value_enum, conflicts_with = "policy")]
    agent: Option<AgentKind>,
    /// Who acts for one of several agents: AGENT=zero, AGENT=random, AGENT=RUN or
    /// AGENT=FILE.onnx
    #[arg(long, value_name = "AGENT=WHO")]
    instead: Vec<Instead>,
    /// An exported policy, .onnx or .pt, in place of the run's own
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// One JSON object on standard output, everything else on standard error
    #[arg(long)]
    json: bool,
}

/// Noise of observations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Noise {
    /// As in training
    On,
    /// Exact numbers
    Off,
}

/// So many episodes MuJoCo plays without a word.
const FEW: u32 = 200;

/// Result of the policy on one engine.
#[derive(Debug)]
struct Outcome {
    name: String,
    checkpoint: Option<PathBuf>,
    /// Somebody else acted in the place of the checkpoint's policy.
    exported: bool,
    seed: u64,
    envs: usize,
    noise: bool,
    /// The task's observations have noise or biases.
    noisy: bool,
    backend: String,
    kernel: String,
    /// Of the episodes that count.
    returns: Vec<f64>,
    lengths: Vec<f64>,
    metrics: Metrics,
    ends: Ends,
    contest: Contest,
    clips: Clips,
    broken: u64,
    steps: u64,
    seconds: f64,
}

/// Evaluates and prints.
pub(crate) fn run(args: &EvalArgs) -> Result<i32, RunError> {
    let mut backends: Vec<Option<JudgeArg>> = Vec::new();
    for backend in &args.backend {
        if !backends.contains(&Some(*backend)) {
            backends.push(Some(*backend));
        }
    }
    if args.python.is_some() && !args.backend.contains(&JudgeArg::Mujoco) {
        let why = "--python names the Python of MuJoCo: it goes with --backend mujoco";
        return Err(RunError::Usage(why.into()));
    }
    if backends.is_empty() {
        backends.push(None);
    }
    let mut outcomes = Vec::new();
    let last = backends.len() - 1;
    for (k, backend) in backends.into_iter().enumerate() {
        if backend == Some(JudgeArg::Mujoco) && args.episodes > FEW {
            errln!(
                "mujoco: {} episodes may take minutes; --episodes 64 takes fewer",
                args.episodes
            );
        }
        let outcome = measure(args, backend)?;
        if outcome.returns.is_empty() {
            errln!("error: no episode was completed, so there is nothing to report");
            return Ok(ostler_run::run::error::FAILED);
        }
        // The next engine may take long, or fail.
        if k < last {
            let mean = outcome.returns.iter().sum::<f64>() / outcome.returns.len() as f64;
            errln!("{}: mean return {mean:.2}; the next engine follows", outcome.backend);
        }
        outcomes.push(outcome);
    }
    let text = match (outcomes.as_slice(), args.json) {
        ([one], true) => one.json().to_string(),
        ([one], false) => one.text(),
        (several, true) => {
            let all = several.iter().map(|o| (o.backend.clone(), o.json()));
            serde_json::Value::Object(all.collect()).to_string()
        }
        (several, false) => table(several),
    };
    outln!("{text}");
    Ok(OK)
}

/// Plays the episodes on one engine: the run's own unless one is given.
fn measure(args: &EvalArgs, backend: Option<JudgeArg>) -> Result<Outcome, RunError> {
    let episodes = args.episodes as usize;
    let envs = args.num_envs.map_or(ENVS, |n| n as usize).min(episodes);
    let wish = Wish {
        envs: Some(envs),
        seed: args.seed,
        backend,
        agent: args.agent,
        instead: &args.instead,
        policy: args.policy.as_deref(),
        calm: args.events == Events::Off,
        begin: args.begin,
        python: args.python.as_deref().filter(|_| backend == Some(JudgeArg::Mujoco)),
        ..Wish::default()
    };
    let Target { name, env, mut agent, seed, checkpoint, backend, failure, loaded, .. } =
        open(&args.run, &wish)?;
    let mut stage = Stage::noisy(env, args.noise == Noise::On)?;
    let limit = u64::from(stage.env().spec().max_episode_steps);
    let mut left = quotas(episodes, envs);
    let rounds = left.iter().max().copied().unwrap_or(0) as u64;
    let mut outcome = Outcome {
        name,
        checkpoint,
        exported: args.policy.is_some() || args.agent.is_some_and(|a| a != AgentKind::Policy),
        seed,
        envs,
        noise: args.noise == Noise::On,
        noisy: loaded.config.has_noise(),
        backend: backend.into(),
        kernel: stage.env().kernel().unwrap_or("-").into(),
        returns: Vec::new(),
        lengths: Vec::new(),
        metrics: Metrics::new(stage.env().spec()),
        ends: Ends::new(stage.env()),
        contest: Contest::new(stage.env().spec()),
        clips: Clips::new(stage.env().robot(), stage.env().spec()),
        broken: 0,
        steps: 0,
        seconds: 0.0,
    };
    let clock = Instant::now();
    // Broken episodes do not count and start anew: a policy that breaks the physics
    // every time would never be done.
    while left.iter().any(|&l| l > 0) && outcome.steps < 2 * limit * rounds {
        outcome.clips.before(stage.env().robot());
        stage.step(&mut agent)?;
        if let Some(error) = failure.as_ref().and_then(Failure::take) {
            return Err(error.into());
        }
        outcome.steps += 1;
        outcome.contest.add(stage.rewards());
        let stats = stage.stats();
        if stats.broken() > 0 {
            let broke = (0..envs).filter(|&e| stage.broke(e));
            broke.for_each(|e| outcome.contest.end(e, false));
        }
        outcome.broken += stats.broken();
        let metrics = stats.metric_sums.len();
        for (i, episode) in stats.finished.iter().enumerate() {
            let quota = left.get_mut(episode.env as usize).filter(|q| **q > 0);
            outcome.contest.end(episode.env as usize, quota.is_some());
            if let Some(quota) = quota {
                *quota -= 1;
                outcome.returns.push(f64::from(episode.ret));
                outcome.lengths.push(f64::from(episode.length));
                let own = stats.finished_metrics.get(i * metrics..(i + 1) * metrics);
                outcome.metrics.add(own.unwrap_or_default());
                let e = episode.env as usize;
                outcome.ends.add(stage.env().robot().and_then(|robot| robot.ended_by(e)));
                outcome.clips.end(stage.env().robot(), e, own.unwrap_or_default());
            }
        }
    }
    outcome.seconds = clock.elapsed().as_secs_f64();
    if outcome.returns.len() < episodes {
        errln!(
            "warning: only {} of {episodes} episodes were completed; {} broke off: a number was not finite, or beyond its limit",
            outcome.returns.len(),
            outcome.broken
        );
    }
    Ok(outcome)
}

impl Outcome {
    fn min(&self) -> f64 {
        self.returns.iter().copied().fold(f64::INFINITY, f64::min)
    }

    fn max(&self) -> f64 {
        let start = f64::NEG_INFINITY;
        self.returns.iter().copied().fold(start, f64::max)
    }

    fn summary(&self) -> Episodes {
        Episodes::of(&self.returns)
    }

    fn steps_per_s(&self) -> f64 {
        self.steps as f64 * self.envs as f64 / self.seconds
    }

    fn json(&self) -> serde_json::Value {
        let r = self.summary();
        json!({
            "config": self.name,
            "checkpoint": self.checkpoint,
            "backend": self.backend,
            "kernel": self.kernel,
            "seed": self.seed,
            "num_envs": self.envs,
            "noise": self.noise,
            "episodes": r.n,
            "mean_return": r.mean,
            "ci95_return": r.ci95,
            "std_return": r.std,
            "quantile_5_return": r.quantile_5,
            "min_return": self.min(),
            "max_return": self.max(),
            "mean_length": self.mean_length(),
            "broken_episodes": self.broken,
            "env_steps": self.steps * self.envs as u64,
            "env_steps_per_s": self.steps_per_s(),
            "metrics": self.metrics.json(),
            "ended_by": self.ends.json(),
            "motions": self.clips.json(),
            "agents": self.contest.standings().iter().map(|s| {
                json!({ "name": s.name, "mean_return": s.mean, "best": s.best })
            }).collect::<Vec<_>>(),
        })
    }

    fn mean_length(&self) -> f64 {
        self.lengths.iter().sum::<f64>() / self.lengths.len() as f64
    }

    fn text(&self) -> String {
        let r = self.summary();
        let mut text = format!(
            "{}: {} of {:.1} steps on average, {:.0} environment steps/s{}\n",
            self.name,
            match r.n {
                1 => "1 episode".into(),
                n => format!("{n} episodes"),
            },
            self.mean_length(),
            self.steps_per_s(),
            self.contest.lines()
        );
        let mut row = |name: &str, value: String| {
            let _ = writeln!(text, "  {name:20}{value}");
        };
        if let Some(file) = self.checkpoint.as_ref().filter(|_| !self.exported) {
            let best = file.with_file_name("best.safetensors");
            let note = match best != *file && best.is_file() {
                true => "; best.safetensors beside it had the best evaluation",
                false => "",
            };
            let name = file.file_name().unwrap_or_default().to_string_lossy();
            row("checkpoint", format!("{name}{note}"));
        }
        match (self.noisy, self.noise) {
            (true, true) => row("observations", "with the noise of training".into()),
            (true, false) => row("observations", "without noise; --noise on has training's".into()),
            (false, _) => (),
        }
        for (name, m) in self.metrics.summaries() {
            row(name, format!("{:.3}{}", m.mean, known_to(&m, 3)));
        }
        if let Some(ends) = self.ends.text() {
            row("ended by", ends);
        }
        row("mean return", format!("{:.2}{}", r.mean, known(&r)));
        row("standard deviation", format!("{:.2}", r.std));
        row(
            "worst episodes",
            format!(
                "5 % are below {:.2}, the worst is {:.2} (the best {:.2})",
                r.quantile_5,
                self.min(),
                self.max()
            ),
        );
        text += &self.clips.text();
        text + ONE_POLICY
    }
}

/// Said of every result, as intervals over episodes were taken for intervals over seeds.
const ONE_POLICY: &str = "These are the episodes of one policy. Policies of other seeds differ by more: train several\nand compare them by `ostler plot` or `ostler regress`.";

/// How well a mean is known.
fn known(r: &Episodes) -> String {
    known_to(r, 2)
}

/// The same with so many digits.
fn known_to(r: &Episodes, digits: usize) -> String {
    match r.n {
        1 => ", of one episode".into(),
        _ => format!(
            ", 95 % confidence interval {:.digits$} to {:.digits$}",
            r.mean - r.ci95,
            r.mean + r.ci95
        ),
    }
}

/// Metrics of the episodes that count.
#[derive(Debug)]
struct Metrics {
    /// Names and values, `success` first.
    all: Vec<(String, Vec<f64>)>,
    /// The place of each of the task's among them.
    places: Vec<usize>,
}

impl Metrics {
    fn new(spec: &EnvSpec) -> Self {
        let first = |name: &str| name == "success" || name.ends_with("/success");
        let mut order: Vec<usize> = (0..spec.metrics.len()).collect();
        order.sort_by_key(|&i| !first(&spec.metrics[i].name));
        let mut places = vec![0; order.len()];
        for (place, &i) in order.iter().enumerate() {
            places[i] = place;
        }
        let named = |&i: &usize| (spec.metrics[i].name.clone(), Vec::new());
        Self { all: order.iter().map(named).collect(), places }
    }

    /// An episode more.
    fn add(&mut self, metrics: &[f32]) {
        for (&place, &metric) in self.places.iter().zip(metrics) {
            self.all[place].1.push(f64::from(metric));
        }
    }

    fn summaries(&self) -> impl Iterator<Item = (&str, Episodes)> {
        let all = self.all.iter();
        all.map(|(name, values)| (name.as_str(), Episodes::of(values)))
    }

    fn json(&self) -> serde_json::Value {
        let one = |(name, m): (&str, Episodes)| {
            let numbers = json!({ "mean": m.mean, "ci95": m.ci95, "std": m.std });
            (name.to_string(), numbers)
        };
        serde_json::Value::Object(self.summaries().map(one).collect())
    }
}

/// Why the episodes that count ended; nothing of environments that do not tell.
#[derive(Debug)]
struct Ends {
    /// Of the terminations, the time-out among them.
    names: Vec<String>,
    counts: Vec<u64>,
}

impl Ends {
    fn new(env: &dyn Environments) -> Self {
        let names = match env.robot() {
            Some(_) => env.spec().termination_names.clone(),
            None => Vec::new(),
        };
        Self { counts: vec![0; names.len()], names }
    }

    /// An episode more.
    fn add(&mut self, by: Option<usize>) {
        if let Some(count) = by.and_then(|by| self.counts.get_mut(by)) {
            *count += 1;
        }
    }

    /// The share of all episodes that one of the names has.
    fn share(&self, i: usize) -> f64 {
        self.counts[i] as f64 / self.counts.iter().sum::<u64>().max(1) as f64
    }

    /// Names with their shares in per cent, the most frequent first, without those that ended none.
    fn text(&self) -> Option<String> {
        let mut all: Vec<usize> = (0..self.names.len()).filter(|&i| self.counts[i] > 0).collect();
        all.sort_by_key(|&i| std::cmp::Reverse(self.counts[i]));
        let one = |&i: &usize| format!("{} {:.1} %", self.names[i], 100.0 * self.share(i));
        (!all.is_empty()).then(|| all.iter().map(one).collect::<Vec<_>>().join(", "))
    }

    fn json(&self) -> serde_json::Value {
        let one = |(i, name): (usize, &String)| (name.clone(), json!(self.share(i)));
        serde_json::Value::Object(self.names.iter().enumerate().map(one).collect())
    }
}

/// Engines side by side.
fn table(outcomes: &[Outcome]) -> String {
    let name = outcomes.first().map_or("", |o| o.name.as_str());
    let mut text = String::new();
    let mut row = |label: &str, cell: &dyn Fn(&Outcome) -> String| {
        let _ = write!(text, "{label:22}");
        for outcome in outcomes {
            let _ = write!(text, "{:>14}", cell(outcome));
        }
        text.push('\n');
    };
    row(name, &|o| o.backend.clone());
    let metrics = outcomes.first().map_or(&[][..], |o| &o.metrics.all);
    for (i, (metric, _)) in metrics.iter().enumerate() {
        row(metric, &|o| format!("{:.3}", Episodes::of(&o.metrics.all[i].1).mean));
    }
    for (i, name) in outcomes.first().map_or(&[][..], |o| &o.ends.names).iter().enumerate() {
        row(&format!("ended by {name}"), &|o| format!("{:.3}", o.ends.share(i)));
    }
    row("mean return", &|o| format!("{:.2}", o.summary().mean));
    row("95 % confidence from", &|o| {
        let r = o.summary();
        format!("{:.2}", r.mean - r.ci95)
    });
    row("                  to", &|o| {
        let r = o.summary();
        format!("{:.2}", r.mean + r.ci95)
    });
    row("standard deviation", &|o| format!("{:.2}", o.summary().std));
    row("5 % are below", &|o| format!("{:.2}", o.summary().quantile_5));
    row("lowest return", &|o| format!("{:.2}", o.min()));
    row("highest return", &|o| format!("{:.2}", o.max()));
    row("mean length", &|o| format!("{:.1}", o.mean_length()));
    row("episodes", &|o| o.returns.len().to_string());
    row("broken episodes", &|o| o.broken.to_string());
    row("environment steps/s", &|o| format!("{:.0}", o.steps_per_s()));
    text + ONE_POLICY
}
