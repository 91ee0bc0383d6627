//! `ostler play`: runs a policy, prints what it gets and draws what it does.

use super::engine::JudgeArg;
use super::instead::Instead;
use super::serve;
use super::target::{AgentKind, Events, Wish, open, robot};
use super::watch::{self, Shot};
use clap::Args;
use ostler_draw::{Aim, Clip, DrawError, Geoms, Poses, Unseen, gif, sheet};
use ostler_learn::config::Override;
use ostler_run::log::{errln, outln};
use ostler_run::run::stage::Stage;
use ostler_run::run::{RunError, error::OK};
use ostler_sim::Model;
use ostler_sim::model::looks::Looks;
use ostler_sim::names::nearest;
use ostler_sim::referee::worlds::Failure;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

/// Flags of `ostler play`.
#[derive(Debug, Args)]
pub(crate) struct PlayArgs {
    /// A run's folder, a checkpoint file, or (with --policy, or --agent zero|random) a
    /// configuration
    run: PathBuf,
    /// Who acts [default: policy]
    #[arg(long, value_enum, conflicts_with = "policy")]
    agent: Option<AgentKind>,
    /// Episodes to play
    #[arg(long, default_value_t = 5, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    episodes: u32,
    /// Stop after this much simulated time (s)
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<f64>,
    /// Draw moments side by side into this PNG
    #[arg(long, value_name = "FILE")]
    png: Option<PathBuf>,
    /// Draw an animation into this GIF (its first 20 s unless --seconds says more)
    #[arg(long, value_name = "FILE")]
    gif: Option<PathBuf>,
    /// Removed: refused with what replaces it
    #[arg(long, value_name = "FILE", hide = true)]
    webp: Option<PathBuf>,
    /// Write a page for a browser that shows the robot, its contacts and all its numbers under a
    /// slider of time: one file, which needs no network
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Show it live in browsers, which may pause, push the robot and give commands; on this
    /// machine alone unless an address is given [default: 127.0.0.1:8321]
    #[arg(long, value_name = "ADDRESS:PORT", num_args = 0..=1, default_missing_value = serve::ADDRESS,
          value_parser = serve::address, conflicts_with_all = ["html", "png", "gif", "seconds"])]
    serve: Option<SocketAddr>,
    /// Width and height of the animation
    #[arg(long, default_value = "480x360", value_name = "WxH", value_parser = size)]
    size: (usize, usize),
    /// Frames per second of the animation and of the page
    #[arg(long, default_value_t = 25, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=50))]
    fps: u32,
    /// The shapes that are drawn
    #[arg(long, value_enum, default_value_t = Geoms::Auto)]
    geoms: Geoms,
    /// The body in the middle of pictures [default: the robot as a whole]
    #[arg(long, value_name = "BODY")]
    look_at: Option<String>,
    /// How far from it pictures are taken (m) [default: so that the robot fills them]
    #[arg(long, value_name = "METRES", value_parser = distance)]
    distance: Option<f32>,
    /// Parallel environments
    #[arg(long, alias = "num_envs", default_value_t = 1, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    num_envs: u32,
    /// The environment that is drawn
    #[arg(long, default_value_t = 0, value_name = "K")]
    env: u32,
    /// Whether the task's events happen: other masses, pushes, ...
    #[arg(long, value_enum, default_value_t = Events::On)]
    events: Events,
    /// Seed of the episodes' starts [default: 1000 + the run's seed]
    #[arg(long, value_name = "N", allow_negative_numbers = true, value_parser = clap::value_parser!(u64).range(0..=i64::MAX as u64))]
    seed: Option<u64>,
    /// Physics engine [default: the run's]
    #[arg(long, value_enum)]
    backend: Option<JudgeArg>,
    /// Python that has mujoco and numpy, for --backend mujoco [default:
    /// OSTLER_REFEREE_PYTHON, then python3 and python]
    #[arg(long, value_name = "PATH")]
    python: Option<PathBuf>,
    /// Who acts for one of several agents: AGENT=zero, AGENT=random, AGENT=RUN or
    /// AGENT=FILE.onnx
    #[arg(long, value_name = "AGENT=WHO")]
    instead: Vec<Instead>,
    /// An exported policy, .onnx or .pt, in place of the run's own
    #[arg(long, value_name = "FILE")]
    policy: Option<PathBuf>,
    /// Replace a value of the configuration: --set env.episode_length_s=5
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
}

/// Simulated time that is drawn unless `--seconds` is given (s).
const DRAWN_S: f64 = 20.0;
/// The same of a page (s).
const PAGE_S: f64 = 120.0;

/// Plays, prints, draws.
pub(crate) fn run(args: &PlayArgs) -> Result<i32, RunError> {
    check(args)?;
    let overrides: Vec<Override> = args.set.iter().map(Override::set).collect();
    let envs = args.num_envs as usize;
    let wish = Wish {
        agent: args.agent,
        overrides: &overrides,
        envs: Some(envs),
        seed: args.seed,
        backend: args.backend,
        python: args.python.as_deref(),
        instead: &args.instead,
        policy: args.policy.as_deref(),
        calm: args.events == Events::Off,
        begin: false,
    };
    let mut target = open(&args.run, &wish)?;
    let pictures = [(&args.png, "sheet"), (&args.gif, "gif")];
    let draw = pictures.iter().any(|(path, _)| path.is_some());
    let looks = match draw || args.html.is_some() || args.serve.is_some() {
        true => watch::looks(&target)?,
        false => Looks::default(),
    };
    if let Some(address) = args.serve {
        let env = args.env as usize;
        return serve::run(target, &looks, args.geoms, env, address, &args.run);
    }
    let mut shot = args.html.as_ref().map(|_| Shot::new(&target, &looks, args.geoms));
    let mut stage = Stage::new(robot(target.env, "play")?)?;
    let watched = args.env as usize;
    if let Some(shot) = &mut shot {
        let seconds = args.seconds.unwrap_or(PAGE_S);
        shot.begin(&stage, watched, f64::from(args.fps), seconds);
    }
    let step_dt = stage.env().spec().step_dt;
    let limit = u64::from(stage.env().spec().max_episode_steps);
    let last_step = match args.seconds {
        Some(s) => (s / step_dt).ceil().max(1.0) as u64,
        None => u64::MAX,
    };
    let drawn = ((args.seconds.unwrap_or(DRAWN_S) / step_dt).ceil() as u64).saturating_add(1);
    let aim = aim(args, &target.model)?;
    let mut clip = Clip::of(stage.env(), &looks, args.geoms).aimed(aim);
    drop(looks);
    if let Some(missing) = clip.missing().filter(|_| draw || shot.is_some()) {
        errln!("{missing}");
    }
    let mut shown = Shown::default();
    if draw {
        shown.record(&mut clip, &stage, watched, &target.name, true);
    }
    let mut played: Vec<(f64, f64)> = Vec::new();
    let mut quotas = ostler_run::run::stage::quotas(args.episodes as usize, envs);
    let rounds = quotas.iter().max().copied().unwrap_or(0) as u64;
    let (mut steps, mut broken) = (0_u64, 0_u64);
    while steps < last_step
        && quotas.iter().any(|&q| q > 0)
        && steps < rounds.saturating_mul(2 * limit)
    {
        if let Some(shot) = &mut shot {
            shot.before(&stage);
        }
        let stats = stage.step(&mut target.agent)?;
        if let Some(error) = target.failure.as_ref().and_then(Failure::take) {
            return Err(error.into());
        }
        steps += 1;
        broken += stats.broken();
        let mut first = false;
        for episode in &stats.finished {
            first |= episode.env as usize == watched;
            let Some(quota) = quotas.get_mut(episode.env as usize).filter(|q| **q > 0) else {
                continue;
            };
            *quota -= 1;
            played.push((f64::from(episode.ret), f64::from(episode.length)));
            outln!(
                "episode {:4}  env {:4}  return {:10.3}  length {:5}",
                played.len(),
                episode.env,
                episode.ret,
                episode.length
            );
        }
        shown.step(&stage, watched, first);
        // After the last episode the state is already that of one nobody asked for.
        let more = quotas.iter().any(|&q| q > 0);
        if let Some(shot) = &mut shot {
            shot.after(&stage, more)?;
        }
        if draw && more && (clip.len() as u64) < drawn {
            shown.record(&mut clip, &stage, watched, &target.name, shown.steps == 0);
        }
    }
    summary(&played, broken, steps as f64 * step_dt);
    for (path, kind) in pictures {
        let Some(path) = path else { continue };
        let (w, h) = args.size;
        let written = match kind {
            "sheet" => sheet::write(&clip, path, 4, 3, 320, 240),
            _ => gif::write(&clip, path, w, h, f64::from(args.fps)),
        };
        let unseen = written.map_err(unwritten)?;
        if let Some(warning) = warning(&unseen, path) {
            errln!("{warning}");
        }
        outln!("{kind:11} {}", path.display());
    }
    if let (Some(path), Some(shot)) = (&args.html, shot) {
        outln!("{}", shot.write(path)?);
    }
    Ok(OK)
}

/// Warning about pictures without the robot.
fn warning(unseen: &Unseen, path: &Path) -> Option<String> {
    let Unseen { count, of, why } = unseen;
    let which = match (count, of) {
        (0, _) => return None,
        (_, 1) => "the picture".to_string(),
        (n, of) if n == of => format!("all {n} pictures"),
        (n, of) => format!("{n} of {of} pictures"),
    };
    let path = path.display();
    Some(format!("warning: nothing of the robot is seen in {which} of {path}: {why}"))
}

/// Caption of the episode that is drawn.
#[derive(Debug, Default)]
struct Shown {
    steps: u64,
    ret: f64,
}

impl Shown {
    /// After a step; `ended`: the state is already that of the next episode.
    fn step(&mut self, stage: &Stage, env: usize, ended: bool) {
        if ended || stage.broke(env) {
            *self = Self::default();
        } else {
            self.steps += 1;
            self.ret += f64::from(stage.reward(env));
        }
    }

    fn record(&self, clip: &mut Clip, stage: &Stage, env: usize, name: &str, first: bool) {
        let poses = Poses::of_env(stage.env(), env);
        let time = self.steps as f64 * clip.step_dt();
        let caption = format!("{name}   {time:5.2} s   return {:.1}", self.ret);
        clip.push(poses, caption, first);
    }
}

fn summary(played: &[(f64, f64)], broken: u64, time: f64) {
    let n = played.len() as f64;
    if played.is_empty() {
        outln!("no episode ended within {time:.2} s of simulated time");
    } else {
        let mean = |f: fn(&(f64, f64)) -> f64| played.iter().map(f).sum::<f64>() / n;
        outln!(
            "mean of {:4} episodes   return {:10.3}  length {:7.1}",
            played.len(),
            mean(|p| p.0),
            mean(|p| p.1)
        );
    }
    if broken > 0 {
        outln!(
            "{broken} episodes broke off (a number that is not finite, or beyond its limit) and are not counted"
        );
    }
}

/// Mistakes that show before anything runs.
fn check(args: &PlayArgs) -> Result<(), RunError> {
    if args.env >= args.num_envs {
        return Err(RunError::Usage(format!(
            "--env {} is not among the {} environments, 0 to {}: give a larger --num-envs",
            args.env,
            args.num_envs,
            args.num_envs - 1
        )));
    }
    if let Some(s) = args.seconds
        && !(s > 0.0 && s <= 1e6)
    {
        return Err(RunError::Usage("--seconds takes more than 0 and up to 1000000".into()));
    }
    if args.webp.is_some() {
        return Err(RunError::Usage(
            "--webp is gone: --gif FILE writes the same film, --html FILE a page in full colour"
                .into(),
        ));
    }
    let files: Vec<&PathBuf> = [&args.png, &args.gif, &args.html].into_iter().flatten().collect();
    for (k, path) in files.iter().enumerate() {
        if files[..k].contains(path) {
            return Err(RunError::Usage(format!(
                "{} is asked for twice: --png, --gif and --html need files of their own",
                path.display()
            )));
        }
        let folder = path.parent().filter(|p| !p.as_os_str().is_empty());
        if !folder.unwrap_or(Path::new(".")).is_dir() {
            return Err(RunError::Usage(format!(
                "cannot write {}: there is no such folder",
                path.display()
            )));
        }
    }
    Ok(())
}

fn unwritten(e: DrawError) -> RunError {
    RunError::Usage(e.to_string())
}

/// What the camera of pictures is to look at.
fn aim(args: &PlayArgs, model: &Model) -> Result<Aim, RunError> {
    let usage = |why: String| Err(RunError::Usage(why));
    let given = args.look_at.is_some() || args.distance.is_some();
    if given && args.png.is_none() && args.gif.is_none() {
        let why =
            "--look-at and --distance are of --png and --gif: pages have a camera of their own";
        return usage(why.into());
    }
    let Some(name) = &args.look_at else {
        return Ok(Aim { body: None, distance: args.distance });
    };
    let names = || model.bodies.iter().map(|b| b.name.as_str());
    match names().position(|n| n == name) {
        Some(body) => Ok(Aim { body: Some(body), distance: args.distance }),
        None => usage(match nearest(name, names()) {
            Some(near) => format!("--look-at: no body called \"{name}\"; did you mean \"{near}\"?"),
            None => format!(
                "--look-at: no body called \"{name}\"; the robot has: {}",
                names().skip(1).collect::<Vec<_>>().join(", ")
            ),
        }),
    }
}

/// Reads metres.
fn distance(text: &str) -> Result<f32, String> {
    let metres = text.parse().ok().filter(|m| (0.01..=1e4).contains(m));
    metres.ok_or_else(|| "give a distance in metres, 0.01 to 10000".into())
}

/// Reads `480x360`.
fn size(text: &str) -> Result<(usize, usize), String> {
    let parse = || {
        let (w, h) = text.split_once('x')?;
        let (w, h) = (w.parse().ok()?, h.parse().ok()?);
        let range = 16..=4096;
        (range.contains(&w) && range.contains(&h)).then_some((w, h))
    };
    parse().ok_or_else(|| "give width x height in pixels, 16 to 4096 each: 480x360".to_string())
}

#[cfg(test)]
mod tests {
    use super::size;

    #[test]
    fn sizes_are_read_or_refused() {
        assert_eq!(size("480x360"), Ok((480, 360)));
        for bad in ["", "480", "x", "0x10", "480x-1", "99999x10", "480X360"] {
            assert!(size(bad).is_err(), "{bad}");
        }
    }
}
