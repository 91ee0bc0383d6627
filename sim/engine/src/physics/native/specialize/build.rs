//! One compilation.

use super::child::{self, Limits, Output};
use super::{Cache, Compiler, ContentHash, OnProgress, Progress, Source, SpecializeError};
use crate::physics::native::InstructionSet;
use ostler_base::files;
use std::io::ErrorKind;
use std::path::Path;
use std::time::Duration;

/// Changes when the same source means something else.
const FORMAT: &str = concat!("ostler kernel 1, engine ", env!("CARGO_PKG_VERSION"));

/// Worlds to try a kernel with.
const PROBE: &str =
    "template<class T> struct V { typedef T type __attribute__((vector_size(32))); };
inline constexpr int lanes = 8;
V<float>::type f(V<float>::type a, V<float>::type b) {
  if constexpr (lanes == 8) return a < b ? a : b;
}
";

/// The hash of everything that the code depends on.
pub(crate) fn key(source: &Source, instructions: InstructionSet, compiler: &Compiler) -> String {
    let mut hash = ContentHash::default();
    hash.add(FORMAT.as_bytes());
    hash.add(instructions.name().as_bytes());
    hash.add(compiler.path.as_os_str().as_encoded_bytes());
    hash.add(compiler.version.as_bytes());
    for argument in &compiler.arguments {
        hash.add(argument.as_encoded_bytes());
    }
    for (name, value) in &compiler.variables {
        hash.add(name.as_bytes());
        hash.add(value.as_encoded_bytes());
    }
    hash.add(compiler.flags(instructions).join(" ").as_bytes());
    hash.add(source.text.as_bytes());
    for (name, text) in &source.headers {
        hash.add(name.as_bytes());
        hash.add(text.as_bytes());
    }
    hash.finish()
}

/// All that a compilation needs.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub cache: Cache,
    pub compiler: Compiler,
    pub source: Source,
    pub instructions: InstructionSet,
    pub key: String,
    pub niceness: i32,
}

impl Job {
    /// Compiles into the cache, unless another process has just done so.
    ///
    /// # Errors
    /// The cache cannot be written, the compiler fails, `progress` gave up. Nothing
    /// is left behind.
    pub(crate) fn run(&self, progress: OnProgress<'_>) -> Result<(), SpecializeError> {
        let lock = self.cache.lock(&self.key, &mut |d| progress(Progress::Waiting(d)))?;
        if self.cache.find(&self.key).is_ok() {
            return Ok(());
        }
        let building = self.cache.building(lock)?;
        let folder = building.path();
        for (name, text) in &self.source.headers {
            write(folder, name, text)?;
        }
        write(folder, "kernel.cpp", &self.source.text)?;
        let flags = self.compiler.flags(self.instructions);
        let mut command = self.compiler.command(folder);
        command.args(&flags).args(["-I.", "-o"]).arg(building.code());
        command.arg("kernel.cpp");
        let output = self.call(command, progress)?;
        if !output.status.success() {
            self.probe(folder, progress)?;
            return Err(SpecializeError::Failed {
                version: self.compiler.version.clone(),
                status: output.status.to_string(),
                message: first_lines(&output.text),
            });
        }
        let about = format!(
            "{FORMAT}\n{}\n{} {}\n",
            self.compiler.version,
            self.compiler.path.display(),
            flags.join(" ")
        );
        building.publish(&about)
    }

    /// Whether the compiler can compile kernels at all.
    fn probe(&self, folder: &Path, progress: OnProgress<'_>) -> Result<(), SpecializeError> {
        write(folder, "probe.cpp", PROBE)?;
        let mut command = self.compiler.command(folder);
        command.args(self.compiler.flags(InstructionSet::Portable));
        command.args(["-o", "probe.so", "probe.cpp"]);
        let output = self.call(command, progress)?;
        if output.status.success() {
            return Ok(());
        }
        Err(SpecializeError::Unsuitable {
            version: self.compiler.version.clone(),
            message: first_lines(&output.text),
        })
    }

    fn call(
        &self,
        command: std::process::Command,
        progress: OnProgress<'_>,
    ) -> Result<Output, SpecializeError> {
        let limits = Limits { time: Some(Duration::from_secs(1800)), niceness: self.niceness };
        let mut tell = |elapsed| progress(Progress::Compiling(elapsed));
        child::output(command, limits, &mut tell).map_err(|error| match error.kind() {
            ErrorKind::Interrupted => SpecializeError::Stopped,
            _ => SpecializeError::CompilerDoesNotRun {
                command: self.compiler.path.display().to_string(),
                reason: error.to_string(),
            },
        })
    }
}

fn write(folder: &Path, name: &str, text: &str) -> Result<(), SpecializeError> {
    let path = folder.join(name);
    files::create_with(&path, text.as_bytes()).map_err(SpecializeError::cache("write", &path))
}

/// The first lines that speak of an error, else the first lines.
fn first_lines(text: &str) -> String {
    const LINES: usize = 8;
    let cut = |line: &str| line.chars().take(300).collect::<String>();
    let from = text.lines().position(|line| line.contains("error"));
    let lines: Vec<String> = text.lines().skip(from.unwrap_or(0)).take(LINES).map(cut).collect();
    if lines.is_empty() {
        return "(it printed nothing)".to_owned();
    }
    lines.join("\n")
}
