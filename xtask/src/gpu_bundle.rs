//! All that a machine with a GPU needs to run the GPU's tests and benchmarks, without
//! Rust: programs, configurations, code compiled for the GPU, one script (`xtask/gpu/run.py`).

use crate::place::Place;
use crate::{SetupError, cargo, libtorch, python, referee};
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Bytes of the archive that one part has: with the rest of a part at most 48 MiB.
const PART: u64 = 44 << 20;
const RUN: &str = include_str!("../gpu/run.py");
const PACK: &str = include_str!("../gpu/pack.py");
const VERSUS: &str = include_str!("../gpu/versus.py");
const ITEMS: &str = include_str!("../gpu/bundle.json");
/// Targets whose programs are packed.
const PROGRAMS: [&str; 3] = ["ostler", "gpu", "engine"];

/// Examples that are packed, and their robots in mjlab's wheel.
const EXAMPLES: [&str; 3] = ["go1_flat.toml", "go1_flat_cpu.toml", "g1_flat.toml"];
const ROBOTS: [&str; 2] = [
    "mjlab/asset_zoo/robots/unitree_go1/xmls/go1.xml",
    "mjlab/asset_zoo/robots/unitree_g1/xmls/g1.xml",
];

/// What is packed, and how.
#[derive(Debug, Clone, Default)]
pub struct Options {
    /// Programs as `cargo test` builds them, not compressed: to try the bundle itself.
    pub dev: bool,
    /// Architectures whose code is compiled beforehand: `sm_90`.
    pub architectures: Vec<String>,
    /// Wheels of the engines that `versus.py` compares with are packed, too.
    pub peers: bool,
}

/// Builds the programs and packs them below `out`, in folders `part-1` and further ones;
/// returns the folders.
///
/// # Errors
/// Something does not build, or cannot be written.
pub fn bundle(place: &Place, out: &Path, options: &Options) -> Result<Vec<PathBuf>, SetupError> {
    libtorch::ensure(place)?;
    let mut args = vec!["test", "--no-run", "--workspace"];
    args.extend(["--test", "gpu", "--test", "engine"]);
    if !options.dev {
        args.push("--release");
    }
    let built = cargo::build_each(place, &args)?;
    let mut programs = Vec::new();
    for name in PROGRAMS {
        let found = built.iter().rev().find(|(target, _)| target == name);
        let (_, path) = found.ok_or(SetupError::NoProgram)?;
        programs.push((name, path.clone()));
    }
    let stage = Stage::new(out)?;
    stage.programs(&programs)?;
    copy(&place.root.join("configs"), &stage.0.join("configs"))?;
    if !options.dev {
        match humanoid(place) {
            Ok(model) => {
                let to = stage.0.join("configs/robots/humanoid.xml");
                fs::copy(&model, &to).map_err(SetupError::io("write", &to))?;
            }
            Err(why) => eprintln!("the humanoid is not packed and not measured: {why}"),
        }
        if let Err(why) = stage.examples(place) {
            eprintln!("mjlab's robots are not packed and not measured: {why}");
        }
    }
    for architecture in &options.architectures {
        stage.compile(place, architecture)?;
    }
    if options.peers {
        stage.wheels(place)?;
    }
    let preset = if options.dev { "-" } else { "6" };
    stage.pack(&commit(place), out, PART, preset)
}

/// The folder that becomes the archive.
#[derive(Debug)]
pub struct Stage(PathBuf);

impl Stage {
    /// An empty one below `out`, whose parts of before are removed.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn new(out: &Path) -> Result<Self, SetupError> {
        if out.join("stage").exists() || out.join("part-1").exists() {
            fs::remove_dir_all(out).map_err(SetupError::io("remove", out))?;
        }
        let stage = out.join("stage");
        for folder in ["bin", "configs"] {
            let folder = stage.join(folder);
            fs::create_dir_all(&folder).map_err(SetupError::io("make", &folder))?;
        }
        let versus = stage.join("versus.py");
        fs::write(&versus, VERSUS).map_err(SetupError::io("write", &versus))?;
        Ok(Self(stage))
    }

    /// Takes programs, by their names in the bundle.
    ///
    /// # Errors
    /// One cannot be written.
    pub fn programs(&self, programs: &[(&str, PathBuf)]) -> Result<(), SetupError> {
        for (name, from) in programs {
            strip(from, &self.0.join("bin").join(name))?;
        }
        Ok(())
    }

    /// Examples of laboratories' robots, which mjlab's wheel has: models without the meshes that
    /// are only seen.
    fn examples(&self, place: &Place) -> Result<(), SetupError> {
        let python = referee::ensure(place)?;
        let peers = referee::ensure_peers(place, &python)?;
        let peers = peers.ok_or(SetupError::Referee("there is no list of peers".into()))?;
        let to = self.0.join("examples");
        let mut files = Vec::new();
        for robot in ROBOTS {
            files.push((peers.join(robot), to.join(robot)));
        }
        for task in EXAMPLES {
            files.push((place.root.join("examples").join(task), to.join(task)));
        }
        for (from, to) in files {
            let folder = to.parent().unwrap_or(&to);
            fs::create_dir_all(folder).map_err(SetupError::io("make", folder))?;
            fs::copy(&from, &to).map_err(SetupError::io("copy", &from))?;
        }
        Ok(())
    }

    /// Code of every shipped program for a GPU, where the programs look for it. NVRTC is the
    /// referees', or the one that `OSTLER_NVRTC` names.
    fn compile(&self, place: &Place, architecture: &str) -> Result<(), SetupError> {
        let mut files = Vec::new();
        for folder in ["configs", "examples"].map(|f| self.0.join(f)) {
            if folder.is_dir() {
                let list = fs::read_dir(&folder).map_err(SetupError::io("read", &folder))?;
                files.extend(list.filter_map(|e| Some(e.ok()?.path())));
            }
        }
        files.retain(|path: &PathBuf| path.extension() == Some(OsStr::new("toml")));
        files.sort();
        let program = self.0.join("bin/ostler");
        let mut command = Command::new(&program);
        command
            .args(["doctor", "--arch", architecture, "--kernels"])
            .args(files)
            .env("OSTLER_CACHE", self.0.join("cache"))
            .env("LD_LIBRARY_PATH", place.root.join(".libtorch/torch/lib"));
        if std::env::var_os("OSTLER_NVRTC").is_none() {
            command.env("OSTLER_NVRTC", nvrtc(place)?);
        }
        let status = command.status();
        let status = status.map_err(SetupError::io("start", &program))?;
        match status.success() {
            true => Ok(()),
            false => Err(SetupError::Usage(format!(
                "the programs for {architecture} do not compile; --no-code leaves them out"
            ))),
        }
    }

    /// Wheels of other engines, for the Python of the machine with the GPU.
    fn wheels(&self, place: &Place) -> Result<(), SetupError> {
        let python = referee::ensure(place)?;
        let to = absolute(&self.0)?.join("wheels");
        let status = python::command(&python)
            .args(["-m", "pip", "download", "--quiet", "--only-binary=:all:"])
            .args(["--python-version", "3.12"])
            .args(["--platform", "manylinux_2_28_x86_64"])
            .args(["--platform", "manylinux2014_x86_64", "--dest"])
            .arg(&to)
            .args(["mujoco-warp", "warp-lang", "mujoco"])
            .status();
        match status.map_err(SetupError::io("start", &python))?.success() {
            true => Ok(()),
            false => {
                Err(SetupError::Referee("pip cannot fetch the wheels of other engines".into()))
            }
        }
    }

    /// Writes the parts; the stage is removed.
    ///
    /// # Errors
    /// There is no Python, or something cannot be written.
    pub fn pack(
        &self,
        commit: &str,
        out: &Path,
        limit: u64,
        preset: &str,
    ) -> Result<Vec<PathBuf>, SetupError> {
        let items = ITEMS.replace("$COMMIT", commit);
        let out = &absolute(out)?;
        let files = [("run.py", RUN), ("bundle.json", &items)];
        let mut paths = Vec::new();
        for (name, text) in files {
            let path = out.join(name);
            fs::write(&path, text).map_err(SetupError::io("write", &path))?;
            paths.push(path);
        }
        let status = python::command("python3")
            .args(["-c", PACK])
            .args([&absolute(&self.0)?, out])
            .arg(limit.to_string())
            .arg(preset)
            .args(&paths)
            .status();
        let status = status.map_err(SetupError::io("start", "python3"))?;
        if !status.success() {
            let out = out.display();
            let why = format!("the bundle cannot be written to {out}");
            return Err(SetupError::Usage(why));
        }
        for path in paths {
            fs::remove_file(&path).map_err(SetupError::io("remove", &path))?;
        }
        fs::remove_dir_all(&self.0).map_err(SetupError::io("remove", &self.0))?;
        let part = |k: usize| out.join(format!("part-{k}"));
        Ok((1..).map(part).take_while(|part| part.is_dir()).collect())
    }
}

/// A path for a program that starts elsewhere.
fn absolute(path: &Path) -> Result<PathBuf, SetupError> {
    std::path::absolute(path).map_err(SetupError::io("find", path))
}

/// What a referees' Python prints.
fn asked(place: &Place, text: &str, lack: &str) -> Result<PathBuf, SetupError> {
    let python = referee::ensure(place)?;
    let out = python::command(&python).args(["-c", text]).output();
    let out = out.map_err(SetupError::io("start", &python))?;
    let path = String::from_utf8_lossy(&out.stdout).trim().to_string();
    if !out.status.success() || path.is_empty() {
        let python = python.display();
        return Err(SetupError::Referee(format!("{python} has no {lack}")));
    }
    Ok(path.into())
}

/// The referees' NVRTC.
fn nvrtc(place: &Place) -> Result<PathBuf, SetupError> {
    const FIND: &str = "import glob, os, sys
for base in sys.path:
    for found in glob.glob(os.path.join(base, 'nvidia', '**', 'libnvrtc.so.*'), recursive=True):
        print(os.path.dirname(found)); sys.exit()";
    asked(place, FIND, "nvidia-cuda-nvrtc")
}

/// Gymnasium's, among the tests' referees: not ours to ship, but what others publish
/// figures of.
fn humanoid(place: &Place) -> Result<PathBuf, SetupError> {
    const FIND: &str = "import importlib.util, os
home = os.path.dirname(importlib.util.find_spec('gymnasium').origin)
print(os.path.join(home, 'envs', 'mujoco', 'assets', 'humanoid.xml'))";
    asked(place, FIND, "Gymnasium")
}

/// The commit that is packed, with a mark where files differ from it.
fn commit(place: &Place) -> String {
    let git = |args: &[&str]| {
        let out = Command::new("git").args(args).current_dir(&place.root).output();
        let out = out.ok().filter(|o| o.status.success());
        out.map(|o| String::from_utf8_lossy(&o.stdout).trim().to_string())
    };
    let commit = git(&["rev-parse", "--short=12", "HEAD"]);
    let changed = git(&["status", "--porcelain", "-uno"]).is_some_and(|s| !s.is_empty());
    let mark = if changed { "+changes" } else { "" };
    commit.map_or("unknown".into(), |c| format!("{c}{mark}"))
}

/// A folder with all that is in it.
fn copy(from: &Path, to: &Path) -> Result<(), SetupError> {
    fs::create_dir_all(to).map_err(SetupError::io("make", to))?;
    for entry in fs::read_dir(from).map_err(SetupError::io("read", from))? {
        let path = entry.map_err(SetupError::io("read", from))?.path();
        let Some(name) = path.file_name() else {
            continue;
        };
        let to = to.join(name);
        match path.is_dir() {
            true => copy(&path, &to)?,
            false => fs::copy(&path, &to).map(drop).map_err(SetupError::io("copy", &path))?,
        }
    }
    Ok(())
}

/// A program without symbols; as it is where there is no `strip`.
fn strip(from: &Path, to: &Path) -> Result<(), SetupError> {
    let done = Command::new("strip").arg("-o").arg(to).arg(from).stderr(Stdio::null()).status();
    if done.is_ok_and(|s| s.success()) {
        return Ok(());
    }
    fs::copy(from, to).map(drop).map_err(SetupError::io("copy", from))
}
