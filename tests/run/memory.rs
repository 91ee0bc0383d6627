//! The memory of a run, how many environments fit, and the effect of a limit of the operating
//! system's.

use crate::common::{Place, metrics, text};
use crate::support::need::Need;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

const MIB: u64 = 1 << 20;

/// `num_envs` in the run's own configuration.
fn num_envs(run: &Path) -> u64 {
    let text = std::fs::read_to_string(run.join("config.toml")).unwrap();
    let config: toml::Value = toml::from_str(&text).unwrap();
    config["env"]["num_envs"].as_integer().unwrap() as u64
}

#[test]
fn auto_takes_what_fits_below_a_limit_and_is_spelt_out() {
    let place = Place::new();
    let train = "train pole.toml --num-envs auto --out a runner.max_iterations=2 runner.num_steps_per_env=128";
    // The data segment: a shell can limit it without stopping libtorch from loading.
    let out = place.limited("-d 400000", train);
    let err = text(&out);
    assert_eq!(out.status.code(), Some(0), "{err}");
    assert!(err.contains("(measured)") && err.contains("may be taken"), "{err}");
    let run = place.path("a");
    let n = num_envs(&run);
    assert!(err.contains(&format!("\"auto\" is {n},")), "{n}: {err}");
    assert!((16..16_384).contains(&n), "{n}: {err}");
    assert!(n.is_power_of_two() || (n / 3).is_power_of_two(), "{n}");
    assert_eq!(metrics(&run).len(), 2);
    // Training the run's own configuration repeats it.
    place.ok(&["train", "a/config.toml", "--quiet", "--out", "b"]);
    assert_eq!(num_envs(&place.path("b")), n);
}

#[test]
fn check_estimates_and_takes_auto() {
    let place = Place::new();
    let said = place.ok(&["check", "pole.toml", "--quiet"]);
    assert!(said.contains("memory: about "), "{said}");
    assert!(said.contains("with 8 environments (estimated)"), "{said}");
    let said = place.ok(&["check", "pole.toml", "env.num_envs=auto"]);
    assert!(said.contains("note: env.num_envs \"auto\" is "), "{said}");
    assert!(!said.contains("num_envs = \"auto\""), "{said}");
}

/// The largest size of a training's memory, looked at while it runs: all that is resident, and
/// what of it is no file's (MiB). Pages of libtorch's files come and go as the system likes.
fn largest(mut command: Command) -> (f64, f64) {
    let mut child = command.stdin(Stdio::null()).spawn().unwrap();
    let status = format!("/proc/{}/status", child.id());
    let mut largest = (0.0_f64, 0.0_f64);
    while child.try_wait().unwrap().is_none() {
        // A process that has just ended has no sizes.
        let seen = std::fs::read_to_string(&status).unwrap_or_default();
        let mib = |name: &str| {
            let line = seen.lines().find_map(|line| line.strip_prefix(name)).unwrap_or("0 kB");
            line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() / 1024.0
        };
        largest = (largest.0.max(mib("VmHWM:")), largest.1.max(mib("RssAnon:")));
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
    assert!(child.wait().unwrap().success());
    largest
}

/// The estimate against the largest size of a real run.
#[test]
fn the_estimate_is_near_the_truth() {
    let place = Place::new();
    let of_both = [64, 4096].map(|n| {
        let envs = format!("env.num_envs={n}");
        let steps = "runner.num_steps_per_env=64";
        let said = place.ok(&["check", "pole.toml", "--quiet", &envs, steps]);
        let estimate: f64 = said
            .split("memory: about ")
            .nth(1)
            .and_then(|s| s.split(' ').next())
            .unwrap()
            .parse()
            .unwrap();
        let args = ["train", "pole.toml", "--quiet", "--out", &format!("r{n}"), &envs, steps];
        let more = ["runner.supervise=false", "runner.max_iterations=2"];
        let (real, own) = largest(place.ostler(&[&args[..], &more].concat()));
        // libtorch's own memory is the larger part, and the kernel and the loader decide it.
        assert!((0.8..1.1).contains(&(estimate / real)), "{n}: {estimate} for {real}");
        (estimate, own)
    });
    // The difference for more environments is ours; the estimate is given in whole MiB.
    let [(estimate, own), (more, more_own)] = of_both;
    let (grown, truth) = (more - estimate, more_own - own);
    assert!(truth > 20.0 && (grown - truth).abs() < 0.1 * truth + 1.0, "{grown} for {truth}");
}

/// A control group with a limit on memory.
struct Group {
    folders: Vec<PathBuf>,
    procs: PathBuf,
}

impl Group {
    /// Makes one below the root of either version; why not, where this machine does not
    /// let a test do so.
    fn new(limit: u64) -> Result<Self, String> {
        let name = format!("ostler-test-{}", std::process::id());
        let v1 = Path::new("/sys/fs/cgroup/memory");
        let (folder, file) = match v1.is_dir() {
            true => (v1, "memory.limit_in_bytes"),
            false => (Path::new("/sys/fs/cgroup"), "memory.max"),
        };
        let folder = folder.join(name);
        let why = |path: &Path| {
            let path = path.display().to_string();
            move |e: std::io::Error| format!("{path}: {e}")
        };
        std::fs::create_dir(&folder).map_err(why(&folder))?;
        let group = Self { procs: folder.join("cgroup.procs"), folders: vec![folder.clone()] };
        let limited = folder.join(file);
        std::fs::write(&limited, limit.to_string()).map_err(why(&limited))?;
        // Swap would only make it slow.
        let _ = std::fs::write(folder.join("memory.swap.max"), "0");
        let _ = std::fs::write(folder.join("memory.memsw.limit_in_bytes"), limit.to_string());
        // A process may still not be let in.
        let enter = format!("echo $$ > {}", group.procs.display());
        let entered = Command::new("sh").args(["-c", &enter]).output();
        match entered {
            Ok(out) if out.status.success() => Ok(group),
            Ok(out) => Err(text(&out)),
            Err(e) => Err(e.to_string()),
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        for folder in &self.folders {
            for _ in 0..100 {
                if std::fs::remove_dir(folder).is_ok() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(20));
            }
        }
    }
}

/// A process that ends with this value, and its whole group with it.
struct Ballast(std::process::Child);

impl Drop for Ballast {
    fn drop(&mut self) {
        // SAFETY: kill takes two numbers; the group is that of our own child.
        unsafe { libc::kill(-(self.0.id() as i32), libc::SIGKILL) };
        let _ = self.0.wait();
    }
}

#[test]
fn a_run_that_the_kernel_kills_for_memory_goes_on_with_fewer_environments() {
    use std::os::unix::process::CommandExt;
    let Some(group) = Need::Cgroup.or_skip(Group::new(600 * MIB)) else {
        return;
    };
    let place = Place::new();
    let enter = format!("echo $$ > {}", group.procs.display());
    let line = format!(
        "{enter}; exec {} train pole.toml --out a env.num_envs=32768 runner.num_steps_per_env=32 \
         runner.max_iterations=1000000 runner.save_interval=0 ppo.num_learning_epochs=1",
        env!("CARGO_BIN_EXE_ostler"),
    );
    let child = Command::new("sh")
        .args(["-c", &line])
        .current_dir(place.0.path())
        .process_group(0)
        .stdout(Stdio::null())
        .stderr(std::fs::File::create(place.path("said")).unwrap())
        .spawn()
        .unwrap();
    let mut child = Ballast(child);
    let said = || std::fs::read_to_string(place.path("said")).unwrap();
    let log = place.path("a/metrics.jsonl");
    let lines = || std::fs::read_to_string(&log).map_or(0, |t| t.lines().count());
    let wait = |what: &str, until: &dyn Fn() -> bool| {
        let clock = std::time::Instant::now();
        while !until() {
            assert!(clock.elapsed().as_secs() < 120, "no {what}:\n{}", said());
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
    };
    wait("iterations", &|| lines() >= 1);
    // Another program takes what is left: less than the run has, so that the kernel chooses the
    // run.
    let line = format!("{enter}; (head -c 300M /dev/zero; sleep 300) | tail");
    let ballast = Command::new("sh")
        .args(["-c", &line])
        .process_group(0)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let ballast = Ballast(ballast);
    wait("death", &|| said().contains("SIGKILL: the kernel had no memory left for it"));
    wait("fewer", &|| said().contains("with 16384 environments at the most"));
    // The first process's files are gone: these are new.
    wait("end of the first life", &|| lines() == 0 || said().matches("run a").count() == 2);
    wait("iterations", &|| lines() >= 1);
    // SAFETY: kill takes two numbers; the child is ours and not yet waited for.
    unsafe { libc::kill(child.0.id() as i32, libc::SIGTERM) };
    assert_eq!(child.0.wait().unwrap().code(), Some(130), "{}", said());
    drop(ballast);
}
