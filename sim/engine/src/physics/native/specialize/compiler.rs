//! The host's C++ compiler.

use super::SpecializeError;
use super::child::{self, Limits};
use crate::physics::native::InstructionSet;
use std::ffi::{OsStr, OsString};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// A C++ compiler that has said its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compiler {
    /// The program.
    pub path: PathBuf,
    /// Arguments before all others: `ccache`'s compiler, a target.
    pub arguments: Vec<OsString>,
    /// First line of the output of `--version`.
    pub version: String,
    /// Variables that lead it to other files, and their values.
    pub variables: Vec<(&'static str, OsString)>,
    /// How much it optimises.
    pub optimise: Optimise,
}

/// How much a compiler optimises. Results have the same bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Optimise {
    /// For code that runs for long.
    Fully,
    /// For code that runs for seconds: half as fast, and compiled in less than half the time.
    Quickly,
}

impl Optimise {
    /// `OSTLER_OPTIMISE`: `full`, which it is unless it is set, or `little`.
    fn find(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, SpecializeError> {
        let value = variable("OSTLER_OPTIMISE").unwrap_or_default();
        match value.to_str() {
            Some("" | "full") => Ok(Self::Fully),
            Some("little") => Ok(Self::Quickly),
            _ => Err(SpecializeError::Optimise { value: value.to_string_lossy().into_owned() }),
        }
    }
}

/// Variables by which gcc and clang are led to other headers, libraries and programs
/// (gcc's manual, "Environment Variables Affecting GCC"; clang(1), "ENVIRONMENT").
/// `LD_LIBRARY_PATH` leads to the libraries that the compiler itself consists of, and cargo
/// sets it for what it starts: the compiler is named by its path and version.
const VARIABLES: [&str; 12] = [
    "CPATH",
    "CPLUS_INCLUDE_PATH",
    "C_INCLUDE_PATH",
    "COMPILER_PATH",
    "GCC_EXEC_PREFIX",
    "GCC_COMPARE_DEBUG",
    "LIBRARY_PATH",
    "LD_RUN_PATH",
    "SYSROOT",
    "SDKROOT",
    "CCC_OVERRIDE_OPTIONS",
    "CLANG_CONFIG_FILE_USER_DIR",
];

/// Language, floating point and linking. Nothing here lets the compiler change a
/// result: no contraction but where the source says so, no assumption about numbers
/// that are not finite.
const FLAGS: [&str; 12] = [
    "-std=c++17",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-ffp-contract=off",
    "-fno-exceptions",
    "-fno-rtti",
    "-Wno-psabi",
    "-fmax-errors=5",
    "-Wl,--as-needed",
];

impl Compiler {
    /// `OSTLER_CXX`, else `CXX`, else the first of c++, g++ and clang++ in `PATH`.
    ///
    /// # Errors
    /// None found; the one that was named does not run; `OSTLER_OPTIMISE` has an unknown value.
    pub fn find(variable: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, SpecializeError> {
        let folders = variable("PATH").unwrap_or_default();
        let optimise = Optimise::find(variable)?;
        let named =
            ["OSTLER_CXX", "CXX"].iter().find_map(|name| variable(name).filter(|v| !v.is_empty()));
        let found = match named {
            Some(command) => Self::named(&command, &folders)?,
            None => {
                let usual = ["c++", "g++", "clang++"];
                usual
                    .iter()
                    .filter_map(|name| in_path(OsStr::new(name), &folders))
                    .find_map(|path| Self::ask(path, Vec::new()).ok())
                    .ok_or_else(|| SpecializeError::NoCompiler { tried: usual.join(", ") })?
            }
        };
        let set = VARIABLES.into_iter().filter_map(|name| Some((name, variable(name)?)));
        Ok(Self { variables: set.collect(), optimise, ..found })
    }

    /// A command with its arguments, separated by spaces.
    fn named(command: &OsStr, folders: &OsStr) -> Result<Self, SpecializeError> {
        let text = command.to_string_lossy();
        let mut words = text.split_whitespace().map(OsString::from);
        let failed = |reason: String| SpecializeError::CompilerDoesNotRun {
            command: text.clone().into_owned(),
            reason,
        };
        let program = words.next().unwrap_or_default();
        let path = in_path(&program, folders).ok_or_else(|| failed("not found".into()))?;
        Self::ask(path, words.collect()).map_err(failed)
    }

    fn ask(path: PathBuf, arguments: Vec<OsString>) -> Result<Self, String> {
        let mut command = Command::new(&path);
        command.args(&arguments).arg("--version").env("LC_ALL", "C");
        let limits = Limits { time: Some(Duration::from_secs(20)), niceness: 0 };
        let output = child::output(command, limits, &mut |_| ControlFlow::Continue(()))
            .map_err(|error| error.to_string())?;
        if !output.status.success() {
            return Err(format!("--version ends with {}", output.status));
        }
        let version = output.text.lines().next().unwrap_or_default().trim();
        if version.is_empty() {
            return Err("--version prints nothing".to_owned());
        }
        let (variables, optimise) = (Vec::new(), Optimise::Fully);
        Ok(Self { path, arguments, version: version.to_owned(), variables, optimise })
    }

    /// All flags.
    pub fn flags(&self, instructions: InstructionSet) -> Vec<&'static str> {
        let mut flags = match self.optimise {
            Optimise::Fully => vec!["-O3"],
            // Small functions are not called in place (`scalar.cuh`).
            Optimise::Quickly => vec!["-Og", "-DOSTLER_SMALL"],
        };
        flags.splice(0..0, FLAGS);
        if !self.version.contains("clang") {
            // clang never emits such symbols. Without this flag, two kernels in one process
            // would share the symbols that both define.
            flags.push("-fno-gnu-unique");
            // Otherwise loops that clear a few hundred bytes become `rep stos`, at a
            // tenth of the half-cheetah's time.
            flags.push("-fno-tree-loop-distribute-patterns");
        }
        flags.extend(match instructions {
            InstructionSet::Portable => &[][..],
            InstructionSet::Avx2 => &["-mavx2", "-mfma"],
            InstructionSet::Avx512 => &["-mavx2", "-mfma", "-mavx512f", "-mavx512vl", "-mavx512dq"],
        });
        flags
    }

    /// A call of the compiler, in its own folder for temporary files.
    pub(super) fn command(&self, folder: &Path) -> Command {
        let mut command = Command::new(&self.path);
        command.args(&self.arguments).current_dir(folder).env("TMPDIR", folder).env("LC_ALL", "C");
        command
    }
}

/// The program's file: as it is if it names a folder, else from `PATH`.
fn in_path(program: &OsStr, folders: &OsStr) -> Option<PathBuf> {
    if Path::new(program).components().count() > 1 {
        return std::path::absolute(program).ok().filter(|p| p.is_file());
    }
    std::env::split_paths(folders)
        .filter(|folder| folder.is_absolute())
        .map(|folder| folder.join(program))
        .find(|path| is_executable(path))
}

fn is_executable(path: &Path) -> bool {
    use std::os::unix::fs::PermissionsExt;
    path.metadata().is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}
