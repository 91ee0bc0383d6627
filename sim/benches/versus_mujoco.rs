//! The native engine beside MuJoCo's own C stepping: how many times as fast, with the
//! same model, states, controls, integrator (Euler) and tolerance.
//!
//! `cargo bench -p ostler-sim --bench versus_mujoco -- [--instructions avx2]
//! [--specialize off|both] [--threads 2] [MODEL.xml...]`; without models, Gymnasium's and
//! those of `tests/referee/robots`; the
//! widest instructions, the robot's specialised kernel and one thread unless said otherwise.
//! `both` measures the generic kernel beside the robot's own; several threads have one
//! beside them, of both engines.
//! Needs a Python with mujoco and numpy (and gymnasium), as `ostler compare` does:
//! OSTLER_REFEREE_PYTHON, python3, python.
//!
//! Slices of both engines alternate, so that both meet the same machine; the middle
//! slice counts. One thread: both on the same pinned core, processor time. Several:
//! nothing is pinned, MuJoCo has its own pool of as many threads, time by the clock, so
//! the machine has to be quiet.

use ostler_sim::Physics;
use ostler_sim::config::{SimConfig, Specialize};
use ostler_sim::model::{Integrator, mjcf};
use ostler_sim::npz::{Expected, Npz};
use ostler_sim::physics::native;
use ostler_sim::physics::pool::Pool;
use ostler_sim::referee::mujoco::MuJoCo;
use serde_json::json;
use std::error::Error;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

const ROBOTS: [&str; 5] = ["inverted_pendulum", "hopper", "half_cheetah", "ant", "humanoid"];
/// Below the repository.
const OWN: [&str; 3] = [
    "configs/robots/quadruped.xml",
    "tests/referee/robots/dog.xml",
    "tests/referee/robots/gripper.xml",
];
const WORLDS: usize = 256;
const STEPS: usize = 100;
const HOLD: usize = 5;
const TIME: Duration = Duration::from_secs(6);

fn main() {
    if let Err(error) = run() {
        eprintln!("error: {error}");
        std::process::exit(1);
    }
}

/// The settings of one measurement.
#[derive(Clone)]
struct Setting {
    /// `sim.kernel`.
    kernel: String,
    specialize: Specialize,
    threads: usize,
    /// The generic kernel beside the robot's own.
    generic: bool,
}

/// The settings and models on the command line.
fn arguments() -> Result<(Setting, Vec<PathBuf>), Box<dyn Error>> {
    let mut setting =
        Setting { kernel: "auto".into(), specialize: Specialize::Wait, threads: 1, generic: false };
    let mut models = Vec::new();
    let mut words = std::env::args().skip(1);
    while let Some(word) = words.next() {
        let mut value = || words.next().ok_or(format!("{word} takes a value"));
        match word.as_str() {
            "--instructions" => setting.kernel = format!("auto-{}", value()?),
            "--specialize" => {
                setting.specialize = match value()?.as_str() {
                    "wait" => Specialize::Wait,
                    "off" => Specialize::Off,
                    "both" => {
                        setting.generic = true;
                        Specialize::Wait
                    }
                    other => {
                        return Err(format!("--specialize wait, off or both, not {other}").into());
                    }
                }
            }
            "--threads" => setting.threads = value()?.parse::<usize>()?.max(1),
            // Cargo's own.
            "--bench" => {}
            flag if flag.starts_with('-') => return Err(format!("unknown flag {flag}").into()),
            model => models.push(model.into()),
        }
    }
    Ok((setting, models))
}

fn run() -> Result<(), Box<dyn Error>> {
    let (setting, mut models) = arguments()?;
    if setting.threads == 1 {
        // The Python process inherits it.
        pin();
    }
    let mut mujoco = MuJoCo::start(None)?;
    if models.is_empty() {
        let about = mujoco.ask(&json!({"op": "version"}))?;
        let folder = about["gymnasium"]
            .as_str()
            .ok_or("no gymnasium in that Python: install it, or name MJCF files")?;
        let theirs = ROBOTS.map(|name| Path::new(folder).join(format!("{name}.xml")));
        let own = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
        models.extend(theirs);
        models.extend(OWN.map(|name| own.join(name)));
    }
    for model in models {
        if let Err(error) = compare(&mut mujoco, &model, &setting) {
            eprintln!("{}: {error}", model.display());
        }
    }
    Ok(())
}

fn compare(mujoco: &mut MuJoCo, path: &Path, setting: &Setting) -> Result<(), Box<dyn Error>> {
    let path = std::path::absolute(path)?;
    let name = path.file_stem().unwrap_or_default().to_string_lossy();
    let file = mujoco.scratch("speed.npz");
    let request = |threads: usize| {
        json!({
            "op": "speed", "model": &path, "out": &file, "worlds": WORLDS, "steps": STEPS,
            "hold": HOLD, "threads": threads, "by_clock": setting.threads > 1,
        })
    };
    mujoco.ask(&request(setting.threads))?;
    let mut natives = vec![("native", Native::new(&path, &file, setting)?)];
    let mut beside = |name, setting: Setting| -> Result<(), Box<dyn Error>> {
        natives.push((name, Native::new(&path, &file, &setting)?));
        Ok(())
    };
    if setting.generic {
        let specialize = Specialize::Off;
        beside("generic", Setting { specialize, ..setting.clone() })?;
    }
    // By the clock, as several threads are measured.
    if setting.threads > 1 {
        beside("one_thread", Setting { threads: 1, ..setting.clone() })?;
    }
    let mut mujocos = vec![("mujoco", setting.threads)];
    if setting.threads > 1 {
        mujocos.push(("mujoco_one_thread", 1));
    }
    let mut theirs = vec![Vec::new(); mujocos.len()];
    let mut ours = vec![Vec::new(); natives.len()];
    for (_, native) in &mut natives {
        native.clock = setting.threads > 1;
        native.slice();
    }
    let end = Instant::now() + TIME * (natives.len() + mujocos.len()) as u32 / 2;
    while Instant::now() < end || ours[0].len() < 3 {
        for ((_, threads), slices) in mujocos.iter().zip(&mut theirs) {
            let seconds = &mujoco.ask(&request(*threads))?["seconds"];
            slices.push(seconds.as_f64().unwrap_or(f64::NAN));
        }
        for ((_, native), slices) in natives.iter_mut().zip(&mut ours) {
            slices.push(native.slice());
        }
    }
    let steps = (WORLDS * STEPS) as f64;
    let rate = |seconds: &mut Vec<f64>| {
        seconds.sort_unstable_by(f64::total_cmp);
        steps / seconds[seconds.len() / 2]
    };
    let names = natives.iter().map(|n| n.0).chain(mujocos.iter().map(|m| m.0));
    let rates: Vec<(&str, f64)> = names.zip(ours.iter_mut().chain(&mut theirs).map(rate)).collect();
    println!("versus_mujoco.{name}.kernel {}", natives[0].1.kernel);
    for (who, rate) in &rates {
        println!("versus_mujoco.{name}.{who}_steps_per_s {rate:.0}");
    }
    let over = |a: &str, b: &str| {
        let of = |who: &str| rates.iter().find(|r| r.0 == who).map(|r| r.1);
        of(a).zip(of(b)).map(|(a, b)| a / b)
    };
    for (what, a, b) in [
        ("ratio", "native", "mujoco"),
        ("generic_ratio", "generic", "mujoco"),
        ("generic_over_own", "generic", "native"),
        ("threads_over_one", "native", "one_thread"),
        ("mujoco_threads_over_one", "mujoco", "mujoco_one_thread"),
    ] {
        if let Some(ratio) = over(a, b) {
            println!("versus_mujoco.{name}.{what} {ratio:.2}");
        }
    }
    let broken: usize = natives.iter().map(|n| n.1.broken()).sum();
    println!("versus_mujoco.{name}.broken {broken}");
    Ok(())
}

/// The native engine with the work that MuJoCo has.
struct Native {
    worlds: Box<dyn Physics>,
    kernel: String,
    qpos: Vec<f32>,
    qvel: Vec<f32>,
    /// `[S][nu][N]`.
    ctrl: Vec<f32>,
    width: usize,
    /// Time by the clock instead of processor time.
    clock: bool,
}

impl Native {
    fn new(path: &Path, file: &Path, setting: &Setting) -> Result<Self, Box<dyn Error>> {
        let mut model = mjcf::load(path)?;
        model.options.integrator = Integrator::Euler;
        let model = Arc::new(model);
        let config = SimConfig {
            specialize: setting.specialize,
            kernel: setting.kernel.clone(),
            ..SimConfig::default()
        };
        let pool = Arc::new(Pool::new(setting.threads)?);
        let worlds = native::new(&model, &config, WORLDS, &pool)?;
        let kernel = worlds.kernel().to_string();
        let mut npz = Npz::open(file)?;
        let mut columns = |name: &str, width: usize| -> Result<Vec<f32>, Box<dyn Error>> {
            let expected = Expected { rows: None, columns: Some(width), label: "n" };
            let (rows, count) = npz.finite(name, expected)?;
            let at = |i: usize| {
                let (block, rest) = (i / (WORLDS * width), i % (WORLDS * width));
                rows[(block * WORLDS + rest % WORLDS) * width + rest / WORLDS] as f32
            };
            Ok((0..count * width).map(at).collect())
        };
        Ok(Self {
            qpos: columns("qpos", model.nq)?,
            qvel: columns("qvel", model.nv)?,
            ctrl: columns("ctrl", model.nu())?,
            width: model.nu() * WORLDS,
            clock: false,
            worlds: Box::new(worlds),
            kernel,
        })
    }

    /// All steps of all worlds, again until they have taken a while: threads that had no
    /// work before take their time to wake. Seconds of one round.
    fn slice(&mut self) -> f64 {
        // As for MuJoCo; other programs' turns do not count in processor time.
        let clock = match self.clock {
            true => libc::CLOCK_MONOTONIC,
            false => libc::CLOCK_PROCESS_CPUTIME_ID,
        };
        let (mut seconds, mut rounds) = (0.0, 0);
        while seconds < 0.05 {
            self.worlds.reset(&[1; WORLDS], &self.qpos, &self.qvel);
            let begin = time_of(clock);
            for s in 0..STEPS / HOLD {
                let ctrl = &self.ctrl[s * self.width..(s + 1) * self.width];
                self.worlds.step(ctrl, HOLD);
            }
            seconds += time_of(clock) - begin;
            rounds += 1;
        }
        seconds / f64::from(rounds)
    }

    fn broken(&self) -> usize {
        self.worlds.state().fault.iter().filter(|f| **f != 0).count()
    }
}

/// The time that a clock shows (s).
fn time_of(clock: libc::clockid_t) -> f64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: the time is plain data and lives through the call.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as f64 + 1e-9 * time.tv_nsec as f64
}

/// Ties this thread, and threads that it starts, to the first core it may use.
fn pin() {
    // SAFETY: the sets are plain data and live through the calls.
    unsafe {
        let mut set = std::mem::zeroed::<libc::cpu_set_t>();
        libc::sched_getaffinity(0, std::mem::size_of_val(&set), &mut set);
        let first = (0..libc::CPU_SETSIZE as usize).find(|c| libc::CPU_ISSET(*c, &set));
        let mut one = std::mem::zeroed::<libc::cpu_set_t>();
        if let Some(core) = first {
            libc::CPU_SET(core, &mut one);
            libc::sched_setaffinity(0, std::mem::size_of_val(&one), &one);
        }
    }
}
