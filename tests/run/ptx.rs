//! Whole runs whose kernels are what NVIDIA's compiler makes of them (`tests/pretend/ptx`): they
//! have the bits of the same text compiled for the processor, and what a GPU's warps would
//! execute is counted.

use crate::common::{Place, REPLAY, TASK, assert_same_bits, root, text};
use crate::support::nvrtc::nvrtc_folder;
use crate::support::page;
use crate::support::pretended::libraries;
use crate::support::referee::{peers, referee_python};
use crate::support::share;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A task whose program is executed: its configuration, in a folder of its own.
struct Executed {
    place: Place,
    config: String,
    variables: Vec<(&'static str, std::ffi::OsString)>,
}

impl Executed {
    /// A shipped task, an example with mjlab's robot, or `humanoid`: Gymnasium's, standing.
    /// `None` after saying what is missing.
    fn new(name: &str) -> Option<Self> {
        let mut variables = libraries()?.variables();
        variables.extend(libraries()?.as_ptx(&nvrtc_folder()?));
        let place = Place::with(&format!("{TASK}{REPLAY}"));
        let link = |from: &Path, to: &str| {
            std::os::unix::fs::symlink(from.canonicalize().unwrap(), place.path(to)).unwrap()
        };
        let config = match name {
            "pole" => "pole.toml".into(),
            "humanoid" => {
                let find = "import gymnasium, os; print(os.path.dirname(gymnasium.__file__))";
                let mut python = std::process::Command::new(referee_python()?);
                let said = python.args(["-c", find]).output().unwrap().stdout;
                let folder = String::from_utf8(said).unwrap();
                let file = "envs/mujoco/assets/humanoid.xml";
                link(&Path::new(folder.trim()).join(file), "robots/humanoid.xml");
                std::fs::write(place.path("humanoid.toml"), HUMANOID).unwrap();
                "humanoid.toml".into()
            }
            "go1_flat" | "g1_flat" => {
                link(&peers()?.join("mjlab"), "mjlab");
                link(&root().join(format!("examples/{name}.toml")), "example.toml");
                "example.toml".into()
            }
            _ => root().join(format!("configs/{name}.toml")).display().to_string(),
        };
        Some(Self { place, config, variables })
    }

    /// Trains on the pretend GPU; where it went. `ptx`: as NVIDIA's compiler has it.
    fn trained(&self, out: &str, ptx: bool, more: &[&str], set: &[(&str, &str)]) -> PathBuf {
        let args = ["train", &self.config, "--quiet", "--out", out, "--device", "cuda:0"];
        let mut command = self.place.ostler(&[&args[..], more].concat());
        let of_host = libraries().unwrap().variables();
        command.envs(if ptx { self.variables.clone() } else { of_host });
        // As an H100 has: stacks of a G1 take 17 GB.
        command.env("FAKE_MEMORY", "80000000000");
        let done = command.envs(set.iter().copied()).output().unwrap();
        assert!(done.status.success(), "{} {more:?}\n{}", self.config, text(&done));
        self.place.path(out)
    }

    fn has_the_hosts_bits(&self, more: &[&str]) {
        let runs =
            [("ptx", true), ("host", false)].map(|(to, ptx)| self.trained(to, ptx, more, &[]));
        assert_same_bits(&runs[0], &runs[1]);
        for run in runs {
            std::fs::remove_dir_all(run).unwrap();
        }
    }
}

const HUMANOID: &str = r#"
[sim]
dt = 0.003
[env]
episode_length_s = 3.0
[task]
robot = "robots/humanoid.xml"
[[task.action]]
actuators = ["*"]
[[task.observation]]
name = "joints"
expr = "qpos"
[[task.reward]]
name = "height"
expr = "height(torso)"
[[task.termination]]
name = "fallen"
expr = "height(torso) < 1.0"
"#;

#[test]
fn programs_as_ptx_have_the_hosts_bits() {
    let robots = ["pole", "quadruped", "ant", "go1_flat"];
    for name in &robots[..share::of(robots.len(), "robots", 1)] {
        let Some(robot) = Executed::new(name) else { continue };
        let short = ["env.num_envs=64", "runner.num_steps_per_env=24", "runner.max_iterations=2"];
        robot.has_the_hosts_bits(&short);
        if *name == "pole" {
            robot.has_the_hosts_bits(&[&short[..], &["--profile=sac"]].concat());
        }
    }
}

/// A launch of an entry, as the pretend GPU writes it; sums over its warps.
#[derive(Deserialize)]
struct Launch {
    entry: String,
    threads: f64,
    lanes: f64,
    warp: f64,
    doubles: f64,
    local_loads: f64,
    local_stores: f64,
    lines: f64,
    footprint: f64,
    functions: BTreeMap<String, (f64, f64)>,
}

/// Of one warp and control step.
#[derive(Debug, Clone, Serialize, Deserialize)]
struct Counts {
    robot: String,
    /// Share of a warp's lanes that work.
    lanes_in_use: f64,
    warp_instructions: f64,
    thread_instructions: f64,
    float64: f64,
    local_loads: f64,
    local_stores: f64,
    /// Lines of 128 bytes that are asked for, and those that differ.
    lines: f64,
    different_lines: f64,
}

impl Counts {
    fn of(robot: &str, launches: &[Launch]) -> Self {
        let sum = |of: fn(&Launch) -> f64| launches.iter().map(of).sum::<f64>();
        let warps = sum(|l| l.threads) / 32.0;
        let (lanes, warp) = (sum(|l| l.lanes), sum(|l| l.warp));
        let each = |all: f64| (all / warps).round();
        Self {
            robot: robot.into(),
            lanes_in_use: (lanes / warp / 32.0 * 1000.0).round() / 1000.0,
            warp_instructions: each(warp),
            thread_instructions: each(lanes / 32.0),
            float64: each(sum(|l| l.doubles)),
            local_loads: each(sum(|l| l.local_loads)),
            local_stores: each(sum(|l| l.local_stores)),
            lines: each(sum(|l| l.lines)),
            different_lines: each(sum(|l| l.footprint)),
        }
    }

    /// Those that are no more than they were.
    fn bounded(&self) -> [(&'static str, f64); 7] {
        [
            ("idle lanes", 1.0 - self.lanes_in_use),
            ("warp instructions", self.warp_instructions),
            ("float64 instructions", self.float64),
            ("loads of local memory", self.local_loads),
            ("stores to local memory", self.local_stores),
            ("lines", self.lines),
            ("different lines", self.different_lines),
        ]
    }
}

/// 128 environments under an untrained policy, every 16th of 64 control steps.
fn counted(name: &str) -> Option<Counts> {
    let robot = Executed::new(name)?;
    let file = robot.place.path("counts");
    let cache = robot.place.path("cache");
    let set = [
        ("FAKE_COUNTS", file.to_str().unwrap()),
        ("FAKE_COUNTS_EVERY", "16"),
        ("OSTLER_CACHE", cache.to_str().unwrap()),
    ];
    let short = ["env.num_envs=128", "runner.num_steps_per_env=64", "runner.max_iterations=1"];
    let run = robot.trained("counted", true, &short, &set);
    if name == ROBOTS[0] {
        // To be counted changes nothing.
        assert_same_bits(&run, &robot.trained("plain", true, &short, &[]));
    }
    let text = std::fs::read_to_string(&file).unwrap();
    let launches = text.lines().map(|l| serde_json::from_str(l).unwrap());
    let steps = launches.filter(|l: &Launch| l.entry == "ostler_env_step");
    // Those of the rollout: an evaluation follows.
    let launches: Vec<Launch> = steps.take(4).collect();
    assert_eq!(launches.len(), 4, "{name}");
    let counts = Counts::of(name, &launches);
    println!("{counts:?}");
    let mut functions = BTreeMap::new();
    for (function, (lanes, warp)) in launches.iter().flat_map(|l| &l.functions) {
        let of = functions.entry(function).or_insert((0.0, 0.0));
        *of = (of.0 + lanes, of.1 + warp);
    }
    let mut functions: Vec<_> = functions.into_iter().collect();
    functions.sort_by(|a, b| b.1.1.total_cmp(&a.1.1));
    let all: f64 = functions.iter().map(|f| f.1.1).sum();
    for (function, (lanes, warp)) in functions.iter().take(8) {
        println!("{:5.1} % of {:.2} lanes {function}", 100.0 * warp / all, lanes / warp / 32.0);
    }
    Some(counts)
}

const ROBOTS: [&str; 6] = ["cartpole", "ant", "quadruped", "humanoid", "go1_flat", "g1_flat"];
/// What else than the program changes them: another processor's policy takes other steps.
const SLACK: f64 = 1.08;

#[test]
fn warps_execute_no_more_than_is_recorded() {
    let path = root().join("tests/run/ptx_counts.json");
    let read = std::fs::read_to_string(&path).unwrap_or_else(|_| "[]".into());
    let recorded: Vec<Counts> = serde_json::from_str(&read).unwrap();
    let write = std::env::var_os("OSTLER_WRITE_NEEDS").is_some();
    let mut found = Vec::new();
    for name in &ROBOTS[..share::of(ROBOTS.len(), "robots", 1)] {
        found.extend(counted(name));
    }
    if write {
        std::fs::write(&path, serde_json::to_string_pretty(&found).unwrap() + "\n").unwrap();
        return;
    }
    for counts in found {
        let was = recorded.iter().find(|r| r.robot == counts.robot).unwrap();
        for ((what, now), (_, then)) in counts.bounded().into_iter().zip(was.bounded()) {
            assert!(now <= then * SLACK + 1.0, "{}: {what} {now}, recorded {then}", counts.robot);
        }
    }
}

/// The table of docs/gpu.md is the recorded one (`OSTLER_WRITE_DOCS=1` writes it).
#[test]
fn the_page_has_the_recorded_counts() {
    let table: Vec<Counts> = serde_json::from_str(include_str!("ptx_counts.json")).unwrap();
    let mut lines = String::from(
        "| | lanes in use | warp instructions | instructions of a thread | float64 | loads and stores of local memory | memory touched |\n|---|---|---|---|---|---|---|\n",
    );
    for row in table {
        let (lanes, kilobytes) = (100.0 * row.lanes_in_use, row.different_lines * 128.0 / 1024.0);
        let local = row.local_loads + row.local_stores;
        lines += &format!(
            "| `{}` | {lanes:.0} % | {} | {} | {} | {local} | {kilobytes:.0} KB |\n",
            row.robot, row.warp_instructions, row.thread_instructions, row.float64
        );
    }
    page::section("docs/gpu.md", "counts", &lines);
}
