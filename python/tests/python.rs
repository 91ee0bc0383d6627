//! The extension in the Python of the referees: Gymnasium judges it, and BatchEnv's own bits.

#![allow(clippy::unwrap_used, reason = "a test says what failed by panicking")]

#[path = "../../tests/support/mod.rs"]
mod support;

use ostler_sim::physics::native::specialize::Compiler;
use std::path::{Path, PathBuf};
use std::process::Command;
use support::need::Need;
use support::pretend;
use support::referee::referee_python;

mod same_bits;

/// A folder that Python imports `ostler` from: the sources, this build's extension, and the
/// configurations.
struct Package(tempfile::TempDir);

impl Package {
    fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let package = folder.path().join("ostler");
        std::fs::create_dir(&package).unwrap();
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        for file in std::fs::read_dir(root.join("ostler")).unwrap() {
            let file = file.unwrap().path();
            if file.is_file() {
                std::fs::copy(&file, package.join(file.file_name().unwrap())).unwrap();
            }
        }
        // Cargo builds the library beside the tests of its package.
        let exe = std::env::current_exe().unwrap();
        let library = exe.with_file_name("lib_ostler.so");
        assert!(library.is_file(), "{} was not built", library.display());
        std::os::unix::fs::symlink(library, package.join("_ostler.abi3.so")).unwrap();
        std::os::unix::fs::symlink(root.join("../configs"), package.join("configs")).unwrap();
        Self(folder)
    }

    fn command(&self, python: &Path) -> Command {
        let mut command = Command::new(python);
        command
            .env("PYTHONPATH", self.0.path())
            .env("PYTHONDONTWRITEBYTECODE", "1")
            .env_remove("OSTLER_CONFIGS")
            .env("OSTLER_PROGRAM", program())
            .current_dir(self.0.path());
        command
    }
}

fn script(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests").join(name)
}

/// A Python with the libraries of other learners; none after saying so.
fn learners_python() -> Option<PathBuf> {
    let named = std::env::var_os("OSTLER_LEARNERS_PYTHON").map(PathBuf::from);
    Need::Learners.or_skip(named.ok_or("OSTLER_LEARNERS_PYTHON is not set"))
}

/// Runs the tests of a Python file that need them.
fn passes_with_learners(name: &str) {
    if let Some(python) = learners_python() {
        passes_in(&python, name);
    }
}

/// Runs the tests of a Python file, each a function whose name begins with `test_`.
fn passes(name: &str) {
    if let Some(python) = referee_python() {
        passes_in(&python, name);
    }
}

fn passes_in(python: &Path, name: &str) {
    passes_with(python, name, &[]);
}

fn passes_with(python: &Path, name: &str, variables: &[(&str, &Path)]) {
    let package = Package::new();
    let out = package
        .command(python)
        .envs(variables.iter().copied())
        .arg(script("run.py"))
        .arg(script(name))
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&out.stdout);
    let errors = String::from_utf8_lossy(&out.stderr);
    assert!(out.status.success(), "{said}\n{errors}");
    assert!(said.contains(" passed"), "{said}\n{errors}");
    println!("{said}");
}

#[test]
fn gymnasium_takes_it_for_one_of_its_own() {
    passes("test_vector.py");
}

#[test]
fn gymnasiums_checks_and_wrappers_find_nothing() {
    passes("test_gymnasium.py");
}

#[test]
fn several_agents_are_dictionaries() {
    passes("test_marl.py");
}

/// Runs the tests of a Python file on the pretend GPU.
fn passes_on_a_gpu(python: &Path, name: &str) {
    let compiler = Compiler::find(&|name| std::env::var_os(name));
    if Need::Compiler.or_skip(compiler).is_none() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/pretend");
    pretend::driver(&sources, folder.path(), &[]).unwrap();
    pretend::compiler(&sources, folder.path()).unwrap();
    let log = folder.path().join("log");
    // Kept: robots' kernels take the longest.
    let cache = Path::new(env!("CARGO_TARGET_TMPDIR")).join("python-on-a-gpu");
    let variables: [(&str, &Path); 4] = [
        ("LD_LIBRARY_PATH", folder.path()),
        ("OSTLER_NVRTC", folder.path()),
        ("OSTLER_CACHE", &cache),
        ("FAKE_LOG", &log),
    ];
    passes_with(python, name, &variables);
}

#[test]
fn environments_on_a_gpu_hand_their_arrays_on() {
    if let Some(python) = referee_python() {
        passes_on_a_gpu(&python, "test_device.py");
    }
}

#[test]
fn an_adapter_takes_the_arrays_of_a_gpu() {
    if let Some(python) = learners_python() {
        passes_on_a_gpu(&python, "test_device_learners.py");
    }
}

#[test]
fn without_a_driver_a_gpu_is_an_exception() {
    if let Some(python) = referee_python() {
        // The loader stops at a file that is no library, whatever this machine has.
        let folder = tempfile::tempdir().unwrap();
        for name in ["libcuda.so.1", "libcuda.so"] {
            std::fs::write(folder.path().join(name), "none").unwrap();
        }
        let variables = [("LD_LIBRARY_PATH", folder.path())];
        passes_with(&python, "test_no_device.py", &variables);
    }
}

#[test]
fn mistakes_are_exceptions_with_the_programs_words() {
    passes("test_errors.py");
}

#[test]
fn it_loads_fast_leaks_nothing_and_can_be_interrupted() {
    passes("test_process.py");
}

/// The program that the workspace's other tests have built.
fn program() -> PathBuf {
    let exe = std::env::current_exe().unwrap();
    let program = exe.parent().unwrap().with_file_name("ostler");
    let remedy = "cargo build --bin ostler";
    assert!(program.is_file(), "no {}: {remedy}", program.display());
    program
}

#[test]
fn trainings_and_policies_are_the_programs() {
    if let Some(python) = referee_python() {
        passes_in(&python, "test_train.py");
    }
}

/// `docs/first-hour.ipynb`, cell by cell, with this build in the wheel's place.
#[test]
fn the_notebook_of_the_first_hour_runs() {
    if let Some(python) = referee_python() {
        let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs");
        passes_with(&python, "test_notebook.py", &[("OSTLER_DOCS", &docs)]);
    }
}

#[test]
fn learners_of_other_libraries_train_in_it() {
    passes_with_learners("test_learners.py");
}

#[test]
fn learners_of_several_agents_train_in_it() {
    passes_with_learners("test_marl_learners.py");
}

#[test]
fn a_step_in_python_has_the_bits_of_a_step_in_rust() {
    let Some(python) = referee_python() else {
        return;
    };
    let package = Package::new();
    let one = [("cartpole", 70), ("hopper", 3), ("quadruped", 65)];
    let several = [("spread", 70), ("ant_sumo", 3), ("half_cheetah_legs", 65)];
    let one = one.map(|task| (task, None));
    for ((name, envs), agents) in one.into_iter().chain(several.map(|t| (t, Some("agents")))) {
        let file = package.0.path().join("bits");
        let run = package
            .command(&python)
            .arg(script("bits.py"))
            .arg(name)
            .arg(envs.to_string())
            .arg(&file)
            .args(agents)
            .output()
            .unwrap();
        let errors = String::from_utf8_lossy(&run.stderr);
        assert!(run.status.success(), "{errors}");
        let theirs = std::fs::read(&file).unwrap();
        let ours = same_bits::run(name, envs);
        assert!(theirs.len() > 1000);
        let first = theirs.iter().zip(&ours).position(|(a, b)| a != b);
        assert_eq!((theirs.len(), first), (ours.len(), None), "{name}");
    }
}

/// What Python costs: prints environment steps per second of processor time of both, in turns.
#[test]
#[ignore = "a measurement"]
fn speed() {
    let Some(python) = referee_python() else {
        return;
    };
    let package = Package::new();
    for name in ["half_cheetah", "ant"] {
        let (mut best, seconds) = ([0.0_f64; 2], 3.0);
        for _ in 0..3 {
            let run = package
                .command(&python)
                .arg(script("speed.py"))
                .args([name, "1024", "3"])
                .output()
                .unwrap();
            let said = String::from_utf8_lossy(&run.stdout);
            let theirs: f64 = said.trim().parse().unwrap_or_else(|_| panic!("{run:?}"));
            let ours = same_bits::speed(name, 1024, seconds);
            best = [best[0].max(theirs), best[1].max(ours)];
        }
        let [python, rust] = best;
        let share = 100.0 * python / rust;
        println!("{name}: Python {python:.0}, Rust {rust:.0} steps/s, {share:.1} %");
    }
}
