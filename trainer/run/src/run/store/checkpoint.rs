//! Checkpoints: one safetensors file whose metadata is a small JSON.
//!
//! Tensors, JSON and checksum in one file, so that one rename makes all of it
//! appear at once. Nothing in it can run code.

pub use super::error::CheckpointError;
pub use super::write::write_atomically;

use super::write::write_atomically_with;
use ostler_collector::Snapshot;
use ostler_collector::memory::out_of_memory;
use ostler_collector::transfer::bytes_into;
use ostler_learn::config::curriculum::Stage;
use ostler_machine::memory::available;
use ostler_sim::files;
use ostler_sim::memory::{MemoryError, zeroed};
use safetensors::tensor::{Dtype, Metadata, SafeTensors, TensorInfo};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::HashMap;
use std::fs::File;
use std::io::{BufWriter, ErrorKind, Read, Write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use tch::{Kind, Tensor};

/// Head of the file.
const FORMAT: &str = "ostler-checkpoint";
/// Raised whenever a program of the previous version could not read the file.
const VERSION: u32 = 1;
/// Key of the JSON in the file's metadata.
const META: &str = "ostler";
/// Key of the hash over the JSON and all tensors.
const CHECKSUM: &str = "checksum";
/// Prefix of the learner's tensors.
const LEARNER: &str = "learner/";
/// Prefix of the weights that a roll-back goes to.
const GOOD: &str = "good/";
/// Prefix of those that are to become them.
const CANDIDATE: &str = "candidate/";
/// Prefix of those of the best evaluation.
const BEST: &str = "best/";
/// Name of the collector's bytes.
const COLLECTOR: &str = "collector";
/// Name of the last episodes `[n, 2]`: return, length.
const EPISODES: &str = "episodes";
/// Of a file that is not whole.
const REMEDY: &str = "it is cut short or damaged";
/// A run counts to no more than this.
const MOST: u64 = 1 << 53;

/// The small JSON.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// Kind of the file.
    pub format: String,
    /// Version of the layout.
    pub version: u32,
    /// The program's version.
    pub program: String,
    /// Iterations done.
    pub iteration: u64,
    /// Environment steps done, warm-up included.
    pub env_steps: u64,
    /// Training time so far (s).
    pub wall_s: f64,
    /// How much of the run was done, 0..1, where time counts.
    pub progress: f64,
    /// Best mean return so far, if any episodes ended.
    pub best: Option<f64>,
    /// The task of the weights.
    pub task: TaskMark,
    /// Whether the policy was trusted.
    pub health: crate::run::guards::health::Record,
    /// Results of the evaluations.
    pub evaluations: crate::run::evaluate::history::Record,
    /// The evaluation after this iteration was cut short: whoever goes on makes it first.
    pub evaluation_owed: bool,
    /// The last iteration with pressure on memory.
    pub last_pressure: u64,
    /// How far the schedules of the curriculum have come.
    pub schedules: Vec<Option<f64>>,
    /// The curriculum's numbers in the iteration that was trained last.
    #[serde(default)]
    pub stage: Stage,
    /// The run's `config.toml`.
    pub config: String,
    /// Hash of the robot's files, see `store::hash`.
    pub sources: String,
    /// How many processes trained together.
    #[serde(default = "one")]
    pub processes: usize,
    /// Where the replay memory and its draws stood, where there is one and it was kept.
    pub replay: Option<ostler_collector::replay::Saved>,
    /// The same of other processes that learnt with this one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub replay_of_others: Vec<ostler_collector::replay::Saved>,
}

fn one() -> usize {
    1
}

impl Meta {
    /// Whether a run can have come so far; what cannot be otherwise. A checksum does not
    /// tell: whoever writes a file writes that, too.
    fn plausible(&self) -> Result<(), &'static str> {
        let counts = |n: u32| n <= u32::MAX / 2;
        let health = &self.health;
        let all = [
            ("its iteration", self.iteration <= MOST),
            ("its number of steps", self.env_steps <= MOST),
            ("its time", (0.0..1e15).contains(&self.wall_s)),
            ("its progress", (0.0..=1.0).contains(&self.progress)),
            ("its environments", self.task.num_envs > 0),
            ("its last trouble", self.last_pressure <= MOST),
            (
                "its counts of troubles",
                [health.bad_updates, health.healthy, health.roll_backs].into_iter().all(counts)
                    && health.roll_backs_in_all <= MOST,
            ),
            ("its evaluations", self.evaluations.plausible(self.iteration)),
        ];
        match all.iter().find(|(_, holds)| !holds) {
            Some((what, _)) => Err(what),
            None => Ok(()),
        }
    }
}

/// Task, robot and learner of a checkpoint.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskMark {
    /// The robot's name.
    pub robot: String,
    /// Width of the policy's observation.
    pub obs: usize,
    /// Width of the critic's observation, if it differs.
    pub critic_obs: Option<usize>,
    /// Floats per action.
    pub action: usize,
    /// Names of the outputs, in order; none in older files.
    #[serde(default)]
    pub outputs: Vec<String>,
    /// They are in an order that the task writes, and not in the robot's.
    #[serde(skip)]
    pub by_name: bool,
    /// Environments.
    pub num_envs: usize,
}

/// All of a run's state.
#[derive(Debug)]
pub struct Checkpoint {
    /// The small JSON.
    pub meta: Meta,
    /// Weights, normalisers, optimiser.
    pub learner: Vec<(String, Tensor)>,
    /// Weights and normalisers that a roll-back goes to; none in older files.
    pub good: Vec<(String, Tensor)>,
    /// Those that are to become them.
    pub candidate: Vec<(String, Tensor)>,
    /// Those of the best evaluation, where the policy may go back to them.
    pub best: Vec<(String, Tensor)>,
    /// The collector's state.
    pub collector: Snapshot,
    /// Returns and lengths of the last episodes, oldest first.
    pub episodes: Vec<[f32; 2]>,
}

/// A tensor as it lies in the file; what is large is borrowed.
struct Bytes<'a> {
    dtype: Dtype,
    shape: Vec<usize>,
    data: Cow<'a, [u8]>,
}

/// Kinds of tensors that a learner may keep.
const KINDS: [(Kind, Dtype); 6] = [
    (Kind::Float, Dtype::F32),
    (Kind::Double, Dtype::F64),
    (Kind::Int64, Dtype::I64),
    (Kind::Int, Dtype::I32),
    (Kind::Uint8, Dtype::U8),
    (Kind::Bool, Dtype::BOOL),
];

fn bytes_of(tensor: &Tensor) -> Result<Bytes<'static>, CheckpointError> {
    let kind = tensor.f_kind()?;
    let dtype =
        KINDS.iter().find(|k| k.0 == kind).map(|k| k.1).ok_or_else(|| {
            tch::TchError::Kind(format!("{kind:?} cannot be kept in a checkpoint"))
        })?;
    let shape: Vec<usize> = tensor.size().iter().map(|&d| d as usize).collect();
    let mut data = zeroed("a checkpoint", tensor.numel() * kind.elt_size_in_bytes())?;
    bytes_into(tensor, &mut data)?;
    let data = Cow::Owned(data);
    Ok(Bytes { dtype, shape, data })
}

fn checksum<'a>(
    json: &str,
    tensors: impl Iterator<Item = (&'a str, Dtype, &'a [usize], &'a [u8])>,
) -> String {
    let mut hash = blake3::Hasher::new();
    hash.update(json.as_bytes());
    for (name, dtype, shape, data) in tensors {
        hash.update(name.as_bytes());
        hash.update(&[0]);
        hash.update(dtype.to_string().as_bytes());
        hash.update(&[0]);
        for d in shape {
            hash.update(&(*d as u64).to_le_bytes());
        }
        hash.update(&(data.len() as u64).to_le_bytes());
        hash.update(data);
    }
    hash.finalize().to_hex().to_string()
}

/// The header of a safetensors file with these tensors in this order, filled up to
/// whole words.
fn header(
    tensors: &[(String, Bytes<'_>)],
    metadata: HashMap<String, String>,
) -> Result<String, String> {
    let mut end = 0;
    let infos = tensors.iter().map(|(name, tensor)| {
        let begin = end;
        end += tensor.data.len();
        let info = TensorInfo {
            dtype: tensor.dtype,
            shape: tensor.shape.clone(),
            data_offsets: (begin, end),
        };
        (name.clone(), info)
    });
    let whole = Metadata::new(Some(metadata), infos.collect()).map_err(|e| e.to_string())?;
    let mut text = serde_json::to_string(&whole).map_err(|e| e.to_string())?;
    text.extend(std::iter::repeat_n(' ', text.len().next_multiple_of(8) - text.len()));
    Ok(text)
}

impl Checkpoint {
    /// A JSON with the fixed parts filled in.
    pub fn meta(task: TaskMark) -> Meta {
        Meta {
            format: FORMAT.into(),
            version: VERSION,
            program: env!("CARGO_PKG_VERSION").into(),
            iteration: 0,
            env_steps: 0,
            wall_s: 0.0,
            progress: 0.0,
            best: None,
            task,
            health: crate::run::guards::health::Record::default(),
            evaluations: crate::run::evaluate::history::Record::default(),
            evaluation_owed: false,
            last_pressure: 0,
            schedules: Vec::new(),
            stage: Stage::new(),
            config: String::new(),
            sources: String::new(),
            processes: 1,
            replay: None,
            replay_of_others: Vec::new(),
        }
    }

    /// Writes to a temporary name, syncs, renames, syncs the folder.
    ///
    /// # Errors
    /// The file system or libtorch refuses; an older file of that name is untouched.
    pub fn write(&self, path: &Path) -> Result<(), CheckpointError> {
        let mut tensors = std::collections::BTreeMap::new();
        for (prefix, group) in [
            (LEARNER, &self.learner),
            (GOOD, &self.good),
            (CANDIDATE, &self.candidate),
            (BEST, &self.best),
        ] {
            for (name, tensor) in group {
                tensors.insert(format!("{prefix}{name}"), bytes_of(tensor)?);
            }
        }
        tensors.insert(
            COLLECTOR.into(),
            Bytes {
                dtype: Dtype::U8,
                shape: vec![self.collector.bytes().len()],
                data: Cow::Borrowed(self.collector.bytes()),
            },
        );
        tensors.insert(
            EPISODES.into(),
            Bytes {
                dtype: Dtype::F32,
                shape: vec![self.episodes.len(), 2],
                data: Cow::Borrowed(bytemuck::cast_slice(&self.episodes)),
            },
        );
        let content = |why: String| CheckpointError::Content { path: path.to_path_buf(), why };
        let json = serde_json::to_string(&self.meta).map_err(|e| content(e.to_string()))?;
        let sum = checksum(
            &json,
            tensors.iter().map(|(n, b)| (n.as_str(), b.dtype, b.shape.as_slice(), &*b.data)),
        );
        let metadata = HashMap::from([(META.to_string(), json), (CHECKSUM.to_string(), sum)]);
        // The widest numbers first, so that all are aligned.
        let mut order: Vec<(String, Bytes<'_>)> = tensors.into_iter().collect();
        order.sort_by_key(|t| std::cmp::Reverse(t.1.dtype));
        let header = header(&order, metadata).map_err(content)?;
        // One after the other: the file as a whole is never in memory.
        let put = |file: &mut File| {
            let mut out = BufWriter::new(file);
            out.write_all(&(header.len() as u64).to_le_bytes())?;
            out.write_all(header.as_bytes())?;
            for (_, tensor) in &order {
                out.write_all(&tensor.data)?;
            }
            out.flush()
        };
        write_atomically_with(path, put).map_err(|source| CheckpointError::File {
            action: "write",
            path: path.to_path_buf(),
            source,
        })
    }

    /// Reads a file and checks all of it before anything is believed.
    ///
    /// # Errors
    /// Not readable, cut short, damaged, or not a checkpoint of this program.
    pub fn read(path: &Path) -> Result<Self, CheckpointError> {
        let file_error =
            |source| CheckpointError::File { action: "read", path: path.to_path_buf(), source };
        let content = |why: String| CheckpointError::Content { path: path.to_path_buf(), why };
        let file = files::open(path).map_err(file_error)?;
        let length = file.metadata().map_err(file_error)?.len();
        let mut head = [0; 8];
        file.read_exact_at(&mut head, 0).map_err(|e| match e.kind() {
            ErrorKind::UnexpectedEof => content(format!("{REMEDY} ({length} bytes)")),
            _ => file_error(e),
        })?;
        if !head_fits(u64::from_le_bytes(head), length) {
            return Err(content(format!("{REMEDY} (safetensors: its head)")));
        }
        // The file's own length bounds every allocation here, but a hole in a file is of
        // any length: the file and the copies of its tensors have to fit into memory.
        let too_large = || MemoryError {
            what: format!("the checkpoint {}", path.display()),
            bytes: usize::try_from(length).unwrap_or(usize::MAX),
        };
        if !memory_holds(length, available()) {
            return Err(too_large().into());
        }
        let mut bytes: Vec<u8> = Vec::new();
        bytes
            .try_reserve_exact(usize::try_from(length).unwrap_or(usize::MAX))
            .map_err(|_| too_large())?;
        file.take(length).read_to_end(&mut bytes).map_err(file_error)?;
        parse(&bytes).map_err(|e| match e {
            Refusal::Content(why) => content(why),
            Refusal::Memory(e) => e.into(),
        })
    }
}

/// What a checkpoint of this version says of its run, without a look at its tensors: no checksum
/// is proved. `None` where that cannot be read.
pub fn meta_of(path: &Path) -> Option<Meta> {
    let file = files::open(path).ok()?;
    let mut head = [0; 8];
    file.read_exact_at(&mut head, 0).ok()?;
    let head = u64::from_le_bytes(head);
    if !head_fits(head, file.metadata().ok()?.len()) {
        return None;
    }
    let mut header = zeroed("the head of a checkpoint", usize::try_from(head).ok()?).ok()?;
    file.read_exact_at(&mut header, 8).ok()?;
    let header: serde_json::Value = serde_json::from_slice(&header).ok()?;
    let json = header.get("__metadata__")?.get(META)?.as_str()?;
    meta_in(json).ok()
}

/// Whether memory, `free` bytes where that is known, holds a file of `length` bytes and the
/// copies of its tensors.
fn memory_holds(length: u64, free: Option<u64>) -> bool {
    free.is_none_or(|free| length.saturating_mul(2) <= free)
}

/// Whether a file of `length` bytes has room for a head of `head`, and for one that is read.
fn head_fits(head: u64, length: u64) -> bool {
    // The most that safetensors reads.
    const MOST: u64 = 100_000_000;
    head <= MOST && head <= length.saturating_sub(8)
}

/// Why bytes were not taken apart.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Refusal {
    /// A sentence about what is wrong with them.
    #[error("{0}")]
    Content(String),
    /// They may be whole, but memory does not suffice.
    #[error(transparent)]
    Memory(#[from] MemoryError),
}

impl From<String> for Refusal {
    fn from(why: String) -> Self {
        Self::Content(why)
    }
}

/// A copy that memory may not suffice for.
fn copied(bytes: &[u8]) -> Result<Vec<u8>, MemoryError> {
    let mut copy = zeroed("a checkpoint", bytes.len())?;
    copy.copy_from_slice(bytes);
    Ok(copy)
}

/// Reads the metadata of a checkpoint of this version.
fn meta_in(json: &str) -> Result<Meta, String> {
    #[derive(Deserialize)]
    struct Mark {
        format: String,
        version: u32,
    }
    let mark: Mark = serde_json::from_str(json).map_err(|e| format!("{REMEDY} (JSON: {e})"))?;
    if mark.format != FORMAT {
        return Err(format!("its format is \"{}\", not {FORMAT}", mark.format));
    }
    if mark.version != VERSION {
        return Err(format!(
            "its layout is version {}, this program reads version {VERSION}",
            mark.version
        ));
    }
    serde_json::from_str(json).map_err(|e| format!("{REMEDY} (JSON: {e})"))
}

/// Takes a checkpoint's bytes apart.
pub(crate) fn parse(bytes: &[u8]) -> Result<Checkpoint, Refusal> {
    let (_, header) =
        SafeTensors::read_metadata(bytes).map_err(|e| format!("{REMEDY} (safetensors: {e})"))?;
    let entry = |key| header.metadata().as_ref().and_then(|m| m.get(key));
    let json = entry(META).ok_or_else(|| {
        "it is a safetensors file, but not a checkpoint of Ostler (no metadata \"ostler\")"
            .to_string()
    })?;
    let meta = meta_in(json)?;
    let file = SafeTensors::deserialize(bytes).map_err(|e| format!("{REMEDY} ({e})"))?;
    let mut tensors = file.tensors();
    tensors.sort_by(|a, b| a.0.cmp(&b.0));
    let found =
        checksum(json, tensors.iter().map(|(n, t)| (n.as_str(), t.dtype(), t.shape(), t.data())));
    if Some(&found) != entry(CHECKSUM) {
        return Err(format!("{REMEDY} (checksum)").into());
    }
    meta.plausible().map_err(|what| format!("{REMEDY} ({what} cannot be)"))?;
    let mut out = Checkpoint {
        meta,
        learner: Vec::new(),
        good: Vec::new(),
        candidate: Vec::new(),
        best: Vec::new(),
        collector: Snapshot::default(),
        episodes: Vec::new(),
    };
    for (name, view) in tensors {
        match name.as_str() {
            COLLECTOR => out.collector = copied(view.data())?.into(),
            EPISODES => {
                let words = view.data().chunks_exact(4);
                let floats: Vec<f32> =
                    words.map(|w| f32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect();
                out.episodes = floats.chunks_exact(2).map(|p| [p[0], p[1]]).collect();
            }
            _ => {
                let groups = [
                    (LEARNER, &mut out.learner),
                    (GOOD, &mut out.good),
                    (CANDIDATE, &mut out.candidate),
                    (BEST, &mut out.best),
                ];
                let group = groups
                    .into_iter()
                    .find_map(|(prefix, group)| Some((name.strip_prefix(prefix)?, group)));
                let Some((short, group)) = group else {
                    continue;
                };
                let kind = KINDS
                    .iter()
                    .find(|k| k.1 == view.dtype())
                    .map(|k| k.0)
                    .ok_or_else(|| format!("tensor {name} is of kind {:?}", view.dtype()))?;
                let shape: Vec<i64> = view.shape().iter().map(|&d| d as i64).collect();
                let tensor = Tensor::f_from_data_size(view.data(), &shape, kind).map_err(|e| {
                    match out_of_memory(&e) {
                        Some(e) => Refusal::Memory(e),
                        None => Refusal::Content(format!("tensor {name}: {e}")),
                    }
                })?;
                group.push((short.to_string(), tensor));
            }
        }
    }
    Ok(out)
}

#[cfg(test)]
#[path = "checkpoint_tests.rs"]
mod tests;
