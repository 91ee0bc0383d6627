//! Runs a test in a process of its own whose CUDA driver is the one of `tests/pretend`.

use crate::support::need::Need;
use crate::support::{alone, pretend};
use ostler_sim::physics::native::specialize::Compiler;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

/// The machine that the process of a scenario sees.
pub struct Fake {
    folder: tempfile::TempDir,
    command: Command,
}

/// The folders of the whole and of the incomplete library, once built; `None` after
/// saying that the calling test is skipped for want of a C++ compiler.
fn libraries() -> Option<&'static [PathBuf; 2]> {
    static BUILT: OnceLock<(tempfile::TempDir, [PathBuf; 2])> = OnceLock::new();
    // Every test asks: each is skipped by its own name.
    let compiler = Compiler::find(&|name| std::env::var_os(name));
    Need::Compiler.or_skip(compiler)?;
    let (_, libraries) = BUILT.get_or_init(|| {
        let folder = tempfile::tempdir().unwrap();
        let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/pretend");
        let build = |name: &str, defines: &[&str]| {
            let into = folder.path().join(name);
            std::fs::create_dir(&into).unwrap();
            pretend::driver(&sources, &into, defines).unwrap();
            into
        };
        let both = [build("whole", &[]), build("incomplete", &["-DINCOMPLETE"])];
        (folder, both)
    });
    Some(libraries)
}

impl Fake {
    /// A process that runs the ignored test `driver::<scenario>`.
    pub fn new(scenario: &str) -> Option<Self> {
        Self::of(&format!("driver::{scenario}"))
    }

    /// A process that runs the ignored test `<test>` of this module.
    pub fn of(test: &str) -> Option<Self> {
        let [whole, _] = libraries()?;
        let folder = tempfile::tempdir().unwrap();
        let mut command = alone::command(&[], &format!("cuda::{test}"));
        command
            .env("LD_LIBRARY_PATH", whole)
            .env("OSTLER_CACHE", folder.path())
            .env("FAKE_LOG", folder.path().join("log"))
            .env_remove("CUDA_VISIBLE_DEVICES")
            .env_remove("OSTLER_NVRTC");
        Some(Self { folder, command })
    }

    pub fn incomplete(mut self) -> Self {
        let [_, incomplete] = libraries().unwrap();
        self.command.env("LD_LIBRARY_PATH", incomplete);
        self
    }

    /// A machine without a driver, whatever the real one has: the loader stops at a file
    /// that is no library.
    pub fn without_driver(mut self) -> Self {
        for name in ["libcuda.so.1", "libcuda.so"] {
            std::fs::write(self.folder.path().join(name), "none").unwrap();
        }
        self.command.env("LD_LIBRARY_PATH", self.folder.path());
        self
    }

    /// Its programs run as the PTX that NVIDIA's compiler in this folder makes of them.
    pub fn with_ptx(self, nvrtc: &Path) -> Self {
        static BUILT: OnceLock<PathBuf> = OnceLock::new();
        let folder = BUILT.get_or_init(|| {
            let [whole, _] = libraries().unwrap();
            let sources = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/pretend");
            pretend::compiler(&sources, whole).unwrap();
            whole.clone()
        });
        self.env("OSTLER_NVRTC", folder).env("FAKE_PTX", nvrtc)
    }

    pub fn env(mut self, name: &str, value: impl AsRef<std::ffi::OsStr>) -> Self {
        self.command.env(name, value);
        self
    }

    /// Runs it; its output, and the driver's calls.
    ///
    /// # Panics
    /// It failed.
    pub fn run(mut self) -> (String, Vec<String>) {
        let (succeeded, text) = self.end();
        assert!(succeeded, "{text}");
        assert!(text.contains("1 passed"), "no such scenario: {text}");
        let log = std::fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        (text, log.lines().map(str::to_owned).collect())
    }

    /// Runs it, however it ends; whether it ended well, and its output.
    pub fn end(&mut self) -> (bool, String) {
        let output = self.command.output().unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned()
            + &String::from_utf8_lossy(&output.stderr);
        (output.status.success(), text)
    }
}
