//! `[[task.reference]]`: motions that episodes follow, and their files.

use super::{ConfigError, TaskConfig};
use ostler_base::files;
use ostler_base::names::matches;
use ostler_model::motion::{Motion, MotionFormat, QuatOrder};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

/// Most bytes of all files of motions: 4 GiB.
const MOST: u64 = 4 << 30;
/// Most files of all patterns.
const MOST_FILES: usize = 1 << 14;

/// A file of a motion: its name as it is shown, and what it holds.
#[derive(Debug, Clone)]
pub struct MotionFile {
    pub name: String,
    pub bytes: Arc<Vec<u8>>,
    /// What was last read of it, and for what.
    read: Arc<Mutex<Option<Read>>>,
}

type Read = ([u8; 32], Arc<Motion>);

impl PartialEq for MotionFile {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name && self.bytes == other.bytes
    }
}

impl MotionFile {
    /// A file that nobody has read yet.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { name: name.into(), bytes: Arc::new(bytes), read: Arc::default() }
    }

    /// What `read` makes of it for `purpose`, which clones share: a curriculum compiles a task anew
    /// again and again, and so do evaluations and workers.
    ///
    /// # Errors
    /// Those of `read`.
    pub fn once<E>(
        &self,
        purpose: [u8; 32],
        read: impl FnOnce() -> Result<Motion, E>,
    ) -> Result<Arc<Motion>, E> {
        let mut kept = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, motion)) = &*kept
            && *known == purpose
        {
            return Ok(Arc::clone(motion));
        }
        let motion = Arc::new(read()?);
        *kept = Some((purpose, Arc::clone(&motion)));
        Ok(motion)
    }
}

/// Where in its clip an episode begins.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum FollowFrom {
    /// In any frame.
    #[default]
    Uniform,
    /// In a second of a clip in which other episodes failed.
    Adaptive,
    /// In the first frame.
    Begin,
}

/// `[[task.reference]]`: motions that episodes follow, one clip each. Expressions read them as
/// `motion.joint_pos`, `motion.pos(BODY)` and so on.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ReferenceTerm {
    /// Files, or patterns with `*` in a file's name, relative to the configuration's folder:
    /// `.npz` as mjlab, holosoma and `ostler motion` write them, or `.csv`.
    pub files: Vec<String>,
    /// How often an episode follows one of these clips, beside those of other terms.
    #[serde(default = "one")]
    pub weight: f64,
    /// Frames per second, where the files do not say it: those of `.csv`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fps: Option<f64>,
    /// Order of the numbers of a quaternion: `"wxyz"` (of `.npz` without it) or `"xyzw"` (of
    /// `.csv` without it).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub quat: Option<QuatOrder>,
    /// Names of the joints, column by column, where the files do not say them; without it in the
    /// robot's order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub joints: Vec<String>,
    /// Where in a clip episodes begin: `"uniform"` (the default), `"adaptive"` (mostly where
    /// others failed) or `"begin"`. The same in all terms.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub start: Option<FollowFrom>,
    /// The clip goes round: its last frame is the first of the next round, which goes on from
    /// where this one has led. Otherwise an episode's time is out where its clip ends.
    #[serde(default, rename = "loop", skip_serializing_if = "std::ops::Not::not")]
    pub loops: bool,
}

fn one() -> f64 {
    1.0
}

impl ReferenceTerm {
    /// How its files are read.
    pub fn format(&self) -> MotionFormat {
        MotionFormat { fps: self.fps, quat: self.quat, joints: self.joints.clone() }
    }
}

impl TaskConfig {
    /// Becomes the task as a policy is judged in it: where training begins at others' failures,
    /// episodes begin anywhere; with `begin` all follow their motions from the first frame.
    pub fn begin_evenly(&mut self, begin: bool) {
        for term in &mut self.reference {
            if begin {
                term.start = Some(FollowFrom::Begin);
            } else if term.start == Some(FollowFrom::Adaptive) {
                term.start = Some(FollowFrom::Uniform);
            }
        }
    }
}

/// The files that a pattern means, in the order of their names.
fn found(folder: &Path, pattern: &str) -> std::io::Result<Vec<PathBuf>> {
    let path = folder.join(pattern);
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    if !name.contains('*') {
        return Ok(vec![path]);
    }
    let mut all = Vec::new();
    // The folder that has no name is this one.
    let around = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    for entry in std::fs::read_dir(around)? {
        let entry = entry?;
        if matches(&name, &entry.file_name().to_string_lossy()) && entry.path().is_file() {
            all.push(entry.path());
        }
    }
    all.sort();
    Ok(all)
}

/// Reads the files of `[[task.reference]]` into `task.motion_files`. Paths count from `folder`,
/// that of the configuration.
///
/// # Errors
/// One is missing or cannot be read, no file fits a pattern, or all are too large. Nothing has
/// changed then.
pub fn read_motions(task: &mut TaskConfig, folder: &Path) -> Result<(), ConfigError> {
    let (mut all, mut left, mut count) = (Vec::new(), MOST, 0);
    for (t, term) in task.reference.iter().enumerate() {
        let mut own = Vec::new();
        for (f, pattern) in term.files.iter().enumerate() {
            let refuse = |why: String, help: &str| {
                ConfigError::new(format!("task.reference[{t}].files[{f}]"), why).help(help)
            };
            let beside = "the path is relative to the configuration's folder";
            let paths =
                found(folder, pattern).map_err(|e| refuse(format!("{pattern}: {e}"), beside))?;
            if paths.is_empty() {
                return Err(refuse(format!("no file fits \"{pattern}\""), beside));
            }
            count += paths.len();
            if count > MOST_FILES {
                let why = format!("these are more than {MOST_FILES} files");
                return Err(refuse(why, "several clips can be joined in one file"));
            }
            for path in paths {
                let shown = path.display();
                let bytes = files::read(&path, left).map_err(|e| match e.kind() {
                    ErrorKind::NotFound => refuse(format!("there is no file {shown}"), beside),
                    ErrorKind::FileTooLarge => refuse(
                        format!(
                            "{shown} is too large: all files of motions have {MOST} bytes at most"
                        ),
                        "leave files out, or bodies that are not read: `ostler motion --out` \
                         writes joints alone",
                    ),
                    _ => refuse(format!("cannot read {shown}: {e}"), "files = [\"walk.npz\"]"),
                })?;
                left -= bytes.len() as u64;
                let name = path.strip_prefix(folder).unwrap_or(&path).display().to_string();
                own.push(MotionFile::new(name, bytes));
            }
        }
        if own.is_empty() {
            let why = "a reference needs files".to_owned();
            return Err(ConfigError::new(format!("task.reference[{t}].files"), why)
                .help("files = [\"walk.npz\"], or [\"motions/*.npz\"]"));
        }
        all.push(own);
    }
    task.motion_files = all;
    Ok(())
}
