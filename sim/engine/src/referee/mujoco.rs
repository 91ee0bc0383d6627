//! MuJoCo in the user's own Python: found, started, asked.
//!
//! The script is part of the program; Python and MuJoCo never are.

use ostler_base::{files, python};
use ostler_model::mjcf;
use serde_json::{Value, json};
use std::ffi::OsStr;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

/// The script; its text lists the commands.
const SCRIPT: &str = include_str!("../../../../tests/referee/mujoco_states.py");

/// Script that times MuJoCo's own stepping.
const SPEED: &str = include_str!("../../../../tests/referee/mujoco_speed.py");

/// Fields that differ between environments; beside the script.
const VARIED: &str = include_str!("../../../../tests/referee/mujoco_varied.py");

/// Laws of motors that MuJoCo does not have; beside the script.
const MOTORS: &str = include_str!("../../../../tests/referee/mujoco_motors.py");
/// Worlds that MuJoCo steps; beside the script.
const WORLDS: &str = include_str!("../../../../tests/referee/mujoco_worlds.py");

/// The script and what lies beside it, by the files' names: all that answers depend on besides
/// MuJoCo.
pub const SCRIPTS: [(&str, &str); 5] = [
    ("mujoco_states.py", SCRIPT),
    ("mujoco_speed.py", SPEED),
    ("mujoco_varied.py", VARIED),
    ("mujoco_motors.py", MOTORS),
    ("mujoco_worlds.py", WORLDS),
];

/// Names the interpreter, for this module and for the tests.
pub const VARIABLE: &str = "OSTLER_REFEREE_PYTHON";

/// The most files that attach one another in a chain; MuJoCo's own readers stop earlier.
const MOST_NESTED: usize = 16;

/// Why MuJoCo gives no answer.
#[derive(Debug, thiserror::Error)]
pub enum RefereeError {
    /// No Python with MuJoCo.
    #[error(
        "no Python with mujoco and numpy: {tried}; install them with `python3 -m pip install mujoco numpy`, or name an interpreter that has them with --python or {VARIABLE}"
    )]
    NoPython {
        /// Attempts and their results.
        tried: String,
    },
    /// A request was refused.
    #[error("MuJoCo: {0}")]
    Refused(String),
    /// The process ended, or answers nonsense.
    #[error("the Python process of MuJoCo {why}{words}")]
    Broken {
        /// The event.
        why: String,
        /// The end of its standard error, on a line of its own.
        words: String,
    },
    /// The file system refuses.
    #[error("cannot prepare a folder for MuJoCo's Python: {0}")]
    Folder(#[source] std::io::Error),
}

/// A running MuJoCo.
pub struct MuJoCo {
    child: Child,
    input: Option<ChildStdin>,
    output: BufReader<ChildStdout>,
    errors: std::fs::File,
    /// For the script and its files, removed in the end.
    folder: tempfile::TempDir,
    /// The interpreter.
    pub python: PathBuf,
    /// Its version of MuJoCo.
    pub version: String,
}

impl From<mjcf::MjcfError> for RefereeError {
    fn from(e: mjcf::MjcfError) -> Self {
        Self::Refused(e.to_string())
    }
}

fn absolute(path: &Path) -> Result<PathBuf, RefereeError> {
    std::path::absolute(path).map_err(RefereeError::Folder)
}

impl MuJoCo {
    /// Starts MuJoCo in the interpreter that is named, or in the first of
    /// [`VARIABLE`], `python3` and `python` that has it.
    ///
    /// # Errors
    /// There is none; the message lists the attempts.
    pub fn start(named: Option<&Path>) -> Result<Self, RefereeError> {
        let variable = std::env::var_os(VARIABLE).filter(|v| !v.is_empty());
        let candidates: Vec<PathBuf> = match (named, variable) {
            (Some(path), _) => vec![path.to_path_buf()],
            (None, Some(path)) => vec![path.into()],
            (None, None) => vec!["python3".into(), "python".into()],
        };
        let mut tried = Vec::new();
        for python in candidates {
            match Self::open(&python) {
                Ok(running) => return Ok(running),
                Err(e @ RefereeError::Folder(_)) => return Err(e),
                Err(e) => tried.push(format!("{}: {}", python.display(), reason(&e))),
            }
        }
        Err(RefereeError::NoPython { tried: tried.join("; ") })
    }

    fn open(python: &Path) -> Result<Self, RefereeError> {
        let folder = files::scratch("referee").map_err(RefereeError::Folder)?;
        let script = folder.path().join("mujoco_states.py");
        for (name, text) in SCRIPTS {
            files::create_with(&folder.path().join(name), text.as_bytes())
                .map_err(RefereeError::Folder)?;
        }
        let errors = files::append(&folder.path().join("stderr")).map_err(RefereeError::Folder)?;
        // MuJoCo writes its log where it runs.
        let mut child = python::script(python, &script)
            .arg("serve")
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(errors.try_clone().map_err(RefereeError::Folder)?)
            .spawn()
            .map_err(|e| broken(format!("does not start: {e}"), String::new()))?;
        let (Some(input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(broken("has no pipes".into(), String::new()));
        };
        let mut running = Self {
            child,
            input: Some(input),
            output: BufReader::new(output),
            errors,
            folder,
            python: python.to_path_buf(),
            version: String::new(),
        };
        let version = running.ask(&json!({"op": "version"}))?;
        running.version = version["mujoco"].as_str().unwrap_or("?").to_string();
        Ok(running)
    }

    /// A path in a folder that lives as long as this.
    pub fn scratch(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The file that MuJoCo is to read for the robot in `path`, whose files lie in its folder or
    /// `within`: of a URDF, and of those that an MJCF file attaches, directly or through others, a
    /// copy with plain names of meshes, which its reader takes for those that are meant.
    ///
    /// # Errors
    /// The file cannot be read, or the copy cannot be written.
    pub fn robot(&self, path: &Path, within: Option<&Path>) -> Result<PathBuf, RefereeError> {
        // Copies are made below names without `..`, if these lead to the file.
        let plain = files::plain(path);
        let path = if plain.is_file() { plain } else { absolute(path)? };
        let within = within.map(files::plain);
        Ok(self.copy(&path, within.as_deref(), MOST_NESTED)?.unwrap_or(path))
    }

    /// The copy that stands for the file `path`, if MuJoCo cannot read that itself.
    fn copy(
        &self,
        path: &Path,
        within: Option<&Path>,
        nested: usize,
    ) -> Result<Option<PathBuf>, RefereeError> {
        if let Some(copy) = self.urdf(path, within)? {
            return Ok(Some(copy));
        }
        let reach = within.or(path.parent());
        let attached = mjcf::attached_copies(path, reach, |file| match nested {
            // Files that attach each other, which MuJoCo refuses.
            0 => Ok(None),
            _ => self.copy(&files::plain(file), reach, nested - 1),
        })?;
        // UTF-8 is all that MuJoCo reads.
        let text = match attached {
            Some(text) => Some(text),
            None => mjcf::recoded(path)?,
        };
        text.map(|text| self.beside(path, reach, &text)).transpose()
    }

    /// The copy of a URDF; nothing of another file.
    fn urdf(&self, path: &Path, within: Option<&Path>) -> Result<Option<PathBuf>, RefereeError> {
        let Some((text, meshes)) = mjcf::plain_urdf(path, within)? else {
            return Ok(None);
        };
        let folder = self.room()?;
        for (name, file) in meshes {
            let link = folder.join(name);
            std::os::unix::fs::symlink(absolute(&file)?, link).map_err(RefereeError::Folder)?;
        }
        let copy = folder.join("robot.urdf");
        files::create_with(&copy, text.as_bytes()).map_err(RefereeError::Folder)?;
        Ok(Some(copy))
    }

    /// A file with this text in the place of `path`, beside links to what lies beside that, and
    /// beside the folders around it as far as `reach`, so that `../` leads to the same files.
    fn beside(
        &self,
        path: &Path,
        reach: Option<&Path>,
        text: &str,
    ) -> Result<PathBuf, RefereeError> {
        let (Some(around), Some(name)) = (path.parent(), path.file_name()) else {
            return Ok(path.to_path_buf());
        };
        let above = reach.filter(|top| around.starts_with(top)).unwrap_or(around);
        let inner = around.strip_prefix(above).unwrap_or(Path::new(""));
        let (mut from, mut folder) = (above.to_path_buf(), self.room()?);
        for next in inner {
            link_all_but(next, &from, &folder)?;
            (from, folder) = (from.join(next), folder.join(next));
            files::own_folder(&folder).map_err(RefereeError::Folder)?;
        }
        link_all_but(name, &from, &folder)?;
        let copy = folder.join(name);
        files::create_with(&copy, text.as_bytes()).map_err(RefereeError::Folder)?;
        Ok(copy)
    }

    /// A folder that goes with this one's.
    fn room(&self) -> Result<PathBuf, RefereeError> {
        let folder = tempfile::tempdir_in(self.folder.path()).map_err(RefereeError::Folder)?;
        Ok(folder.keep())
    }

    /// Sends a request and waits for the answer.
    ///
    /// # Errors
    /// The script refuses, with its reason, or the process has ended.
    pub fn ask(&mut self, request: &Value) -> Result<Value, RefereeError> {
        let mut line = request.to_string();
        line.push('\n');
        let sent = match &mut self.input {
            Some(input) => input.write_all(line.as_bytes()).and_then(|()| input.flush()),
            None => Ok(()),
        };
        let mut answer = String::new();
        if sent.is_err() || self.output.read_line(&mut answer).is_ok_and(|n| n == 0) {
            let status = self.child.wait().map(|s| s.to_string());
            let why = format!("ended ({})", status.unwrap_or_else(|e| e.to_string()));
            return Err(broken(why, self.words()));
        }
        let mut answer: Value = serde_json::from_str(&answer)
            .map_err(|_| broken(format!("answers {answer:?}"), String::new()))?;
        if let Some(error) = answer["error"].as_str() {
            return Err(RefereeError::Refused(error.to_string()));
        }
        Ok(answer["ok"].take())
    }

    /// Samples states of a model, whose files lie in its folder or `within`, and lets MuJoCo
    /// evaluate them into a file: to the optimum, or by the solver as it is `written` in the file.
    ///
    /// # Errors
    /// As [`robot`](Self::robot) and [`ask`](Self::ask).
    pub fn states(
        &mut self,
        model: &Path,
        within: Option<&Path>,
        out: &Path,
        states: usize,
        seed: u64,
        written: bool,
    ) -> Result<Value, RefereeError> {
        let absolute = |p: &Path| std::path::absolute(p).unwrap_or_else(|_| p.to_path_buf());
        self.ask(&json!({
            "op": if written { "written" } else { "states" }, "model": self.robot(model, within)?, "out": absolute(out),
            "states": states, "seed": seed,
        }))
    }

    /// The last words on standard error.
    fn words(&mut self) -> String {
        let mut text = Vec::new();
        let _ = self.errors.rewind();
        let _ = (&mut self.errors).take(1 << 16).read_to_end(&mut text);
        let text = String::from_utf8_lossy(&text);
        match text.trim_end().lines().next_back() {
            Some(last) => format!("\n{last}"),
            None => String::new(),
        }
    }
}

impl Drop for MuJoCo {
    fn drop(&mut self) {
        // The end of its input ends it; one that hangs is ended.
        drop(self.input.take());
        for _ in 0..100 {
            if !matches!(self.child.try_wait(), Ok(None)) {
                return;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Links in `folder` to all that lies in `from`, one name apart.
fn link_all_but(name: &OsStr, from: &Path, folder: &Path) -> Result<(), RefereeError> {
    for entry in from.read_dir().map_err(RefereeError::Folder)? {
        let entry = entry.map_err(RefereeError::Folder)?;
        if entry.file_name() != name {
            let link = folder.join(entry.file_name());
            std::os::unix::fs::symlink(entry.path(), link).map_err(RefereeError::Folder)?;
        }
    }
    Ok(())
}

fn broken(why: String, words: String) -> RefereeError {
    RefereeError::Broken { why, words }
}

/// The shortest that explains a failed attempt.
fn reason(error: &RefereeError) -> String {
    match error {
        RefereeError::Broken { words, .. } if !words.is_empty() => words.trim().to_string(),
        RefereeError::Broken { why, .. } => why.clone(),
        other => other.to_string(),
    }
}
