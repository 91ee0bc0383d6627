//! Requirements of a test that a machine may lack, and the one way to skip a test for want of
//! them. Shared by the tests of all packages and by `cargo xtask test` through `#[path]`.
//!
//! ```text
//! let Some(folder) = Need::Nvrtc.or_skip(find()) else { return };
//! ```
//!
//! A skipped test says so on standard error, past the harness's capture, and appends a
//! line to the file that `cargo xtask test` names in `OSTLER_SKIPS`, which is how it is
//! counted. Where `OSTLER_REQUIRE` names the need (`OSTLER_REQUIRE=all`,
//! `OSTLER_REQUIRE=referee,disk`) the test fails instead.

#![allow(dead_code, reason = "no program uses all of it")]

use std::fmt;

/// The variable with the needs whose tests must not be skipped.
pub const REQUIRE: &str = "OSTLER_REQUIRE";
/// The variable with the file that skipped tests are written to.
pub const RECORD: &str = "OSTLER_SKIPS";
/// The variable with the name of the test that a process was started for (`alone.rs`).
pub const ALONE: &str = "OSTLER_TEST_ALONE";

/// Something that not every machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    Referee,
    Peers,
    Nvrtc,
    Compiler,
    Python,
    Learners,
    Avx2,
    Bf16,
    Cgroup,
    Disk,
    Gpu,
    Valgrind,
    Browser,
}

impl Need {
    pub const ALL: [Self; 13] = [
        Self::Referee,
        Self::Peers,
        Self::Nvrtc,
        Self::Compiler,
        Self::Python,
        Self::Learners,
        Self::Avx2,
        Self::Bf16,
        Self::Cgroup,
        Self::Disk,
        Self::Gpu,
        Self::Valgrind,
        Self::Browser,
    ];

    /// As `OSTLER_REQUIRE` spells it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Referee => "referee",
            Self::Peers => "peers",
            Self::Nvrtc => "nvrtc",
            Self::Compiler => "compiler",
            Self::Python => "python",
            Self::Learners => "learners",
            Self::Avx2 => "avx2",
            Self::Bf16 => "avx512bf16",
            Self::Cgroup => "cgroup",
            Self::Disk => "disk",
            Self::Gpu => "gpu",
            Self::Valgrind => "valgrind",
            Self::Browser => "browser",
        }
    }

    /// How a machine gets it.
    pub fn remedy(self) -> &'static str {
        match self {
            Self::Referee => "run `cargo xtask test`, which sets the Python referees up",
            Self::Peers => "run `cargo xtask test`, which fetches the peers' own code",
            Self::Nvrtc => "run `cargo xtask test`, which fetches nvidia-cuda-nvrtc",
            Self::Compiler => "install g++",
            Self::Python => "install python3",
            Self::Learners => {
                "name a Python with stable-baselines3, rsl-rl-lib and torchrl in OSTLER_LEARNERS_PYTHON"
            }
            Self::Avx2 => "use an x86-64 processor with AVX2 and FMA",
            Self::Bf16 => {
                "use a processor with AVX512-BF16 (AMD since Zen 4, Intel since Sapphire Rapids)"
            }
            Self::Cgroup => "run as a user who may write to /sys/fs/cgroup",
            Self::Disk => {
                "run as a user for whom `unshare -m` or `unshare -rm` lets `mount -t tmpfs` work"
            }
            Self::Gpu => "run on a machine with an NVIDIA GPU (docs/gpu.md)",
            Self::Valgrind => "install valgrind",
            Self::Browser => "install chromium, or name it in OSTLER_BROWSER",
        }
    }

    /// The value that was found; where nothing was, `None` after saying that the calling test is
    /// skipped. The test returns then.
    ///
    /// # Panics
    /// Nothing was found and `OSTLER_REQUIRE` names this need; or it names something
    /// that is no need.
    pub fn or_skip<T>(self, found: Result<T, impl fmt::Display>) -> Option<T> {
        // Asked whatever was found, so that a typo never goes unseen.
        let required = required().unwrap_or_else(|e| panic!("{e}"));
        let why = match found {
            Ok(found) => return Some(found),
            Err(why) => why.to_string(),
        };
        let skip = Skip {
            need: self,
            program: program(),
            test: test(),
            why: why.split_whitespace().collect::<Vec<_>>().join(" "),
        };
        assert!(
            !required.contains(&self),
            "{REQUIRE} names {}: {skip}; {}",
            self.name(),
            self.remedy()
        );
        // Past the test harness's capture: whoever reads the log must see it.
        let line = format!("SKIPPED: {skip}; {}\n", self.remedy());
        let _ = std::io::Write::write_all(&mut std::io::stderr(), line.as_bytes());
        if let Some(file) = std::env::var_os(RECORD) {
            let mut open = std::fs::OpenOptions::new();
            let open = open.append(true).create(true).open(&file);
            // One write: tests of one program skip at the same time.
            let line = skip.record();
            let written = open.and_then(|mut f| std::io::Write::write_all(&mut f, line.as_bytes()));
            if let Err(e) = written {
                panic!("a skipped test is not counted: {RECORD}={file:?}: {e}");
            }
        }
        None
    }
}

/// A test that did not run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Skip {
    pub need: Need,
    pub program: String,
    pub test: String,
    pub why: String,
}

impl fmt::Display for Skip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (need, program) = (self.need.name(), &self.program);
        write!(f, "{need}: {program} {}: {}", self.test, self.why)
    }
}

impl Skip {
    fn record(&self) -> String {
        let (need, program) = (self.need.name(), &self.program);
        format!("{need}\t{program}\t{}\t{}\n", self.test, self.why)
    }

    /// One line of the file that `OSTLER_SKIPS` names.
    pub fn read(line: &str) -> Option<Self> {
        let mut parts = line.splitn(4, '\t');
        let mut next = || parts.next().map(str::to_owned);
        let (need, program, test, why) = (next()?, next()?, next()?, next()?);
        let need = Need::ALL.into_iter().find(|n| n.name() == need)?;
        Some(Self { need, program, test, why })
    }
}

/// Whether a program starts at all.
///
/// # Errors
/// Why it does not.
pub fn runs(program: &str) -> Result<(), String> {
    let out = std::process::Command::new(program).arg("--version").output();
    match out {
        Ok(out) if out.status.success() => Ok(()),
        Ok(out) => Err(format!("{program} --version ends with {}", out.status)),
        Err(e) => Err(format!("{program}: {e}")),
    }
}

/// The calling test's name: that of its thread, or of the process.
pub fn test() -> String {
    let of_thread = || std::thread::current().name().unwrap_or("?").to_owned();
    std::env::var(ALONE).unwrap_or_else(|_| of_thread())
}

/// `run` of `target/debug/deps/run-0123456789abcdef`.
pub fn program() -> String {
    let path = std::env::current_exe().unwrap_or_default();
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let of_cargo = |hash: &str| hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit());
    match stem.rsplit_once('-') {
        Some((name, hash)) if of_cargo(hash) => name.to_owned(),
        _ => stem.into_owned(),
    }
}

/// `OSTLER_REQUIRE` names something that no test needs.
#[derive(Debug, PartialEq, Eq)]
pub struct Unknown(String);

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = Need::ALL.into_iter().map(Need::name).collect();
        let names = names.join(", ");
        let wrong = &self.0;
        write!(f, "{REQUIRE}: there is no {wrong:?}; it takes all, or {names}")
    }
}

/// The requirements that `OSTLER_REQUIRE` names.
///
/// # Errors
/// A name that is none.
pub fn required() -> Result<Vec<Need>, Unknown> {
    let text = std::env::var_os(REQUIRE).unwrap_or_default();
    parse(&text.to_string_lossy())
}

/// A list of needs, with commas; `all` for every one.
///
/// # Errors
/// A name that is none.
pub fn parse(text: &str) -> Result<Vec<Need>, Unknown> {
    let names = text.split(',').map(str::trim).filter(|n| !n.is_empty());
    let mut needs = Vec::new();
    for name in names {
        match Need::ALL.into_iter().find(|n| n.name() == name) {
            _ if name == "all" => needs.extend(Need::ALL),
            Some(need) => needs.push(need),
            None => return Err(Unknown(name.to_owned())),
        }
    }
    Ok(needs)
}
