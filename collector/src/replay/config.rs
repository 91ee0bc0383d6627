//! `[replay]`, and whether there is room for what it asks for (F14).

use super::device::DEVICE;
use super::draw::SamplerKind;
use super::host::HOST;
use super::memmap::MEMMAP;
use super::storage::{About, OnFullDisk};
use super::tiered::TIERED;
use super::transform::{self, TransformConfig};
use super::transition::{Layout, TRAILER};
use crate::error::ReplayError;
use ostler_sim::config::ConfigError;
use ostler_sim::env::EnvSpec;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use std::fmt::Display;
use tch::Device;

/// `[replay]`: the replay buffer of off-policy learners, and how they draw from it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct ReplayConfig {
    /// Transitions that are remembered, 1 or more; the oldest make room for new ones.
    pub capacity: usize,
    /// Where they lie: `"device"` (the learner's), `"host"` (memory), `"memmap"` (a file,
    /// read through a memory map), `"tiered"` (the newest `recent` on the device, all of
    /// them in the file), or `"auto"`: the device where they fit into a quarter of its free
    /// memory, else tiered.
    pub storage: StorageKind,
    /// Device of the storage: `"auto"` follows from `storage`. A memory map and host
    /// memory are always on the `"cpu"`; batches are brought to the learner's device when
    /// they are drawn.
    pub storage_device: String,
    /// `"tiered"`: so many of the newest transitions lie on the device, 1..`capacity`.
    pub recent: usize,
    /// Folder of the file; empty: `replay` in the folder of the run.
    pub directory: String,
    /// `"uniform"`; `"without_replacement"`: each pass draws every present transition once;
    /// `"prioritized"`: in proportion to priority^`alpha` (Schaul et al. 2016).
    pub sampler: SamplerKind,
    /// Exponent of priorities, 0 (uniform) or more.
    pub alpha: f64,
    /// Exponent of the importance weights at the start of the run, 0..1.
    pub beta: f64,
    /// The same at its end; linear in between.
    pub beta_end: f64,
    /// Steps of the return that a transition is drawn with, 1 or more: their discounted
    /// rewards are summed when it is drawn, up to the end of the episode.
    pub n_step: usize,
    /// Batches that a thread draws ahead, 0 (none) to 64. The draws do not depend on it.
    /// Prioritised draws are never made ahead: they depend on the update before.
    pub prefetch: usize,
    /// Batches on their way to a GPU lie in pinned memory, from which it copies fastest, and
    /// every draw asks whether that is so; needs a GPU.
    pub pin_memory: bool,
    /// When the disk is full: `"stop"` with an error, or go on in `"host"` memory.
    pub on_full_disk: OnFullDisk,
    /// Keep the transitions for a resume of the run; otherwise it begins with none.
    pub save: bool,
    /// `[[replay.transform]]`: changes of batches after they were drawn, in order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub transform: Vec<TransformConfig>,
}

impl Default for ReplayConfig {
    fn default() -> Self {
        Self {
            capacity: 1_000_000,
            storage: StorageKind::Auto,
            storage_device: "auto".into(),
            recent: 100_000,
            directory: String::new(),
            sampler: SamplerKind::Uniform,
            alpha: 0.6,
            beta: 0.4,
            beta_end: 1.0,
            n_step: 1,
            prefetch: 2,
            pin_memory: false,
            on_full_disk: OnFullDisk::Stop,
            save: true,
            transform: Vec::new(),
        }
    }
}

/// `replay.storage`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum StorageKind {
    /// As memory allows: see [`ReplayConfig::resolve`].
    Auto,
    /// Memory of the learner's device.
    Device,
    /// Host memory.
    Host,
    /// A file.
    Memmap,
    /// The newest on the device, all in a file.
    Tiered,
}

/// `"auto"` until it is [resolved](ReplayConfig::resolve): the device.
const AUTO: About = About { name: "auto", ..DEVICE };

impl StorageKind {
    /// What there is to know of it.
    pub(super) fn about(self) -> &'static About {
        match self {
            Self::Auto => &AUTO,
            Self::Device => &DEVICE,
            Self::Host => &HOST,
            Self::Memmap => &MEMMAP,
            Self::Tiered => &TIERED,
        }
    }

    /// As it is written in a configuration.
    pub fn name(self) -> &'static str {
        self.about().name
    }

    /// Whether transitions lie in a file as they come.
    pub fn in_file(self) -> bool {
        self.about().in_file
    }

    /// Whether all transitions lie in memory of the learner's device.
    pub fn on_device(self) -> bool {
        self.about().near && !self.in_file()
    }
}

impl ReplayConfig {
    /// Values that cannot be used, with paths such as `replay.capacity`.
    pub fn validate(&self) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        let mut check = |ok: bool, key: &str, value: &dyn Display, allowed: &str| {
            if !ok {
                let what = format!("{value} cannot be used");
                let help = format!("allowed: {allowed}");
                errors.push(ConfigError::new(format!("replay.{key}"), what).help(help));
            }
        };
        // Row numbers of a batch are 32-bit on a device.
        let most = 1 << 31;
        let c = self;
        check(
            (1..most).contains(&c.capacity),
            "capacity",
            &c.capacity,
            "a whole number from 1 to 2^31 - 1",
        );
        check(
            c.storage.about().key != "replay.recent" || (1..=c.capacity).contains(&c.recent),
            "recent",
            &c.recent,
            "a whole number from 1 to replay.capacity",
        );
        let alpha = c.alpha.is_finite() && c.alpha >= 0.0;
        check(alpha, "alpha", &c.alpha, "a number of 0 or more");
        for (key, x) in [("beta", c.beta), ("beta_end", c.beta_end)] {
            let ok = (0.0..=1.0).contains(&x);
            check(ok, key, &x, "a number from 0 to 1");
        }
        check((1..=1000).contains(&c.n_step), "n_step", &c.n_step, "a whole number from 1 to 1000");
        check(c.prefetch <= 64, "prefetch", &c.prefetch, "a whole number from 0 to 64");
        errors.extend(transform::validate(&self.transform));
        errors.extend(self.validate_place());
        errors
    }

    /// F11: a file is mapped into the host's memory, whatever device is asked for.
    fn validate_place(&self) -> Option<ConfigError> {
        let asked = self.storage_device.as_str();
        let known = matches!(asked, "auto" | "cpu") || is_cuda(asked);
        let (what, help) = match self.storage {
            _ if !known => (
                format!("no device is called {asked:?}"),
                "allowed: \"auto\", \"cpu\", \"cuda\", \"cuda:0\", ...".to_string(),
            ),
            kind if kind.in_file() && is_cuda(asked) => (
                format!("a memory map cannot live on {asked:?}: it is a file in host memory"),
                "either replay.storage = \"device\", which keeps the transitions on the GPU, or \
                 replay.storage = \"memmap\" with replay.storage_device = \"auto\", which brings \
                 each batch to the GPU when it is drawn"
                    .to_string(),
            ),
            kind if !kind.on_device() && is_cuda(asked) => (
                format!("host memory is not on {asked:?}"),
                "either replay.storage = \"device\", or replay.storage_device = \"auto\", which \
                 brings each batch to the GPU when it is drawn"
                    .to_string(),
            ),
            _ => return None,
        };
        Some(ConfigError::new("replay.storage_device", what).help(help))
    }

    /// Errors of keys where batches are wanted on `device`; `cuda` says whether this
    /// machine has a GPU that works.
    pub fn validate_device(&self, device: Device, cuda: bool) -> Vec<ConfigError> {
        let mut errors = Vec::new();
        if self.pin_memory && !cuda {
            // F9: silence would be worse.
            let what = "memory can be pinned only for a GPU, and there is none";
            let help = "leave it false, or choose a device with a GPU";
            errors.push(ConfigError::new("replay.pin_memory", what).help(help));
        }
        let asked = self.storage_device.as_str();
        let matches = match device {
            Device::Cuda(0) => matches!(asked, "auto" | "cuda" | "cuda:0"),
            Device::Cuda(i) => asked == "auto" || asked == format!("cuda:{i}"),
            _ => matches!(asked, "auto" | "cpu"),
        };
        if self.storage != StorageKind::Auto && self.storage.on_device() && !matches {
            let what = format!("{asked:?} is not the learner's device");
            let help = "leave it \"auto\", or choose another replay.storage";
            errors.push(ConfigError::new("replay.storage_device", what).help(help));
        }
        errors
    }

    /// Replaces `storage = "auto"` by what it becomes on a device with this much room,
    /// where `spare` further transitions are kept for [marks](super::Setup::margin).
    #[must_use]
    pub fn resolve(mut self, layout: &Layout, device: Device, room: &Room, spare: usize) -> Self {
        if self.storage == StorageKind::Auto {
            let rows = self.capacity.saturating_add(spare) as u64;
            let bytes = rows.saturating_mul(layout.bytes_per_transition() as u64);
            self.storage = match room.on(device) {
                Some(free) if bytes > free / 4 => StorageKind::Tiered,
                _ => StorageKind::Device,
            };
        }
        self.recent = self.recent.min(self.capacity);
        self
    }

    /// Becomes that of one of several policies or processes: what `directory` names, they
    /// divide.
    pub fn part(&mut self, name: &str) {
        if !self.directory.is_empty() {
            let own = std::path::Path::new(&self.directory).join(name);
            self.directory = own.to_string_lossy().into_owned();
        }
    }

    /// How the transitions of these environments are kept.
    ///
    /// # Errors
    /// A transform is about an observation that they do not have, or is none of this program's.
    pub fn layout(&self, spec: &EnvSpec) -> Result<Layout, ConfigError> {
        let layout = Layout::of(spec);
        for (i, transform) in self.transform.iter().enumerate() {
            transform.maker(&format!("replay.transform[{i}]"))?;
            for (k, field) in transform.fields.iter().enumerate() {
                if layout.find(field).is_none() {
                    let path = format!("replay.transform[{i}].fields[{k}]");
                    let what = format!("the task's transitions have no {field:?}");
                    return Err(ConfigError::new(path, what).help(
                        "a critic has observations of its own where terms have group = \"critic\"",
                    ));
                }
            }
        }
        Ok(layout)
    }
}

fn is_cuda(name: &str) -> bool {
    let index = name.strip_prefix("cuda:").map(str::parse::<u16>);
    name == "cuda" || matches!(index, Some(Ok(_)))
}

/// Free bytes; `None` where nobody knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Room {
    /// Host memory that this process may still take.
    pub host: Option<u64>,
    /// Memory of the learner's device, where that is not the host.
    pub device: Option<u64>,
    /// Disk, in the folder of the file.
    pub disk: Option<u64>,
}

impl Room {
    /// On a device.
    pub fn on(&self, device: Device) -> Option<u64> {
        match device {
            Device::Cpu => self.host,
            _ => self.device,
        }
    }
}

/// Transitions by place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Places {
    /// In host memory.
    pub host: u64,
    /// On the device.
    pub device: u64,
    /// In a file.
    pub disk: u64,
}

/// Where a configuration keeps its transitions, and `margin` more; `"auto"`: on the device.
pub fn places(config: &ReplayConfig, device: Device, margin: usize) -> Places {
    let rows = (config.capacity as u64).saturating_add(margin as u64);
    let about = config.storage.about();
    let recent = (config.recent as u64).saturating_add(margin as u64).min(rows);
    let in_memory = (about.in_memory)(rows, recent);
    let (host, device) = match (about.near, device) {
        (true, device) if device != Device::Cpu => (0, in_memory),
        _ => (in_memory, 0),
    };
    let file = about.in_file || config.save;
    Places { host, device, disk: if file { rows } else { 0 } }
}

/// Refuses a capacity that does not fit, with the largest that would. `margin` transitions
/// more than `config.capacity` are kept, see [`Setup::margin`](super::Setup::margin);
/// `config.storage` is resolved. `there` is the file's present size (bytes).
///
/// # Errors
/// [`ReplayError::TooLarge`].
pub(crate) fn check(
    config: &ReplayConfig,
    layout: &Layout,
    device: Device,
    margin: usize,
    room: &Room,
    there: u64,
) -> Result<(), ReplayError> {
    let need = places(config, device, margin);
    let each = layout.bytes_per_transition() as u64;
    let in_file = each + 4 * TRAILER as u64;
    let about = config.storage.about();
    let elsewhere = match about.in_file {
        true => "; or choose another replay.directory",
        false => "; without replay.save nothing is written",
    };
    let disk = room.disk.map(|d| d.saturating_add(there));
    let places = [
        (need.host, each, room.host, "in host memory", about.key, about.instead),
        (need.device, each, room.device, "on the device", about.key, about.instead),
        (need.disk, in_file, disk, "on the disk", "replay.capacity", elsewhere),
    ];
    for (rows, each, free, place, key, also) in places {
        let bytes = rows.saturating_mul(each);
        let Some(free) = free.filter(|&free| bytes > free) else {
            continue;
        };
        let most = (free / each).saturating_sub(margin as u64);
        let fits = match most {
            0 => format!("not even {key} = 1 would fit"),
            n => format!("{key} = {n} would fit"),
        };
        return Err(ReplayError::TooLarge {
            what: format!("{rows} transitions"),
            place: place.into(),
            needs: bytes,
            each,
            free,
            remedy: format!("{fits}{also}"),
        });
    }
    Ok(())
}

#[cfg(test)]
#[path = "tests/config.rs"]
mod tests;

#[cfg(test)]
#[path = "tests/stages.rs"]
mod transform_tests;

#[cfg(test)]
#[path = "tests/fit.rs"]
mod fit_tests;
