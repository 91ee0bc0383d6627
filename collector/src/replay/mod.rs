//! The replay buffer: transitions that off-policy learners draw from.
//!
//! A [`ReplayBuffer`] is a storage (where transitions lie), a sampler (which of them are
//! drawn), and transforms (changes of a batch). A transition is a record of 32-bit words, all
//! its fields side by side: a draw reads one run of memory per transition, not one per field.
//! The files, each of which uses only those below it:
//!
//! ```text
//! mod         ReplayBuffer: what a learner calls, extend and next first
//! resume      its state in a checkpoint
//! core        what threads share: writers, samplers, the thread that draws ahead
//! config      [replay], and whether there is room for what it asks for
//!   tiered    a kind of storage each: the newest in memory, all in a file;
//!   memmap    in a file; in host memory when the disk is full;
//!   device    in memory of a GPU;
//!   host      in memory of the host
//! storage     trait Storage: write, gather, go back, save
//! file        the file: its form, checksums, commits, damage
//! transform   changes of batches, [[replay.transform]]
//! batch       Batch, its memory, how transitions get there, n-step returns, pinning
//! draw        samplers: uniform, without replacement, prioritised
//! transition  a transition's fields; the window of those that are there
//! ```
//! A transition comes by [`ReplayBuffer::extend`], `Core::extend_rollout`, `Storage::extend`;
//! a batch by [`ReplayBuffer::next`], `Maker::make`, `Core::draw`, `Storage::gather`,
//! `Chain::run`. A new kind of storage is a file, and its name in `StorageKind`.

mod batch;
mod config;
mod core;
mod device;
mod draw;
mod file;
mod host;
mod memmap;
mod resume;
mod storage;
mod tiered;
pub mod transform;
mod transition;

pub use crate::error::ReplayError;
pub use batch::{Batch, Pinner};
pub use config::{Places, ReplayConfig, Room, StorageKind, places};
pub use core::{Sampler, Writer};
pub use draw::SamplerKind;
pub use resume::{Restored, Saved};
pub use storage::OnFullDisk;
pub use transform::{Transform, TransformConfig, TransformKind};
pub use transition::{Field, FieldKind, Layout, names};

use crate::Rollout;
use crate::transfer::read_into;
use batch::{GatherPlan, Shape, Slot};
use core::{Core, Inner, Maker, Prefetch};
use draw::{Priorities, PriorityMark, Progress};
use file::{Expect, FileRing, Found, taken};
use ostler_sim::device::{Counts, Traffic};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use storage::{FreeMemory, Site};
use tch::{Device, Kind, Tensor};
use transform::Chain;
use transition::{Position, Window};

/// Name of the folder in the folder of a run.
pub const FOLDER: &str = "replay";

/// Arguments of a [`ReplayBuffer`] beyond its configuration.
#[derive(Debug)]
pub struct Setup<'a> {
    /// Discount per step, for n-step returns.
    pub gamma: f64,
    /// Device of the batches.
    pub device: Device,
    /// Draws per batch, `B`.
    pub batch_size: usize,
    /// Key of all draws.
    pub seed: u64,
    /// Folder of the run; the file lies in its folder `replay` unless
    /// `replay.directory` says where.
    pub folder: Option<&'a Path>,
    /// So many transitions are kept that fell out of the buffer: those that come between
    /// two marks, or between two checkpoints where the storage is saved with them. With
    /// fewer, going back loses the oldest transitions.
    pub margin: usize,
    /// Free memory.
    pub room: Room,
    /// The same of host memory at any later time, for `replay.on_full_disk = "host"`.
    pub free_memory: FreeMemory,
    /// A buffer that is in the folder already is opened. Otherwise it is an error that there
    /// is one.
    pub reopen: bool,
    /// Transforms of batches after they were drawn, in order; `[[replay.transform]]` comes before
    /// them.
    pub transforms: Vec<Box<dyn Transform>>,
    /// Pins batches, where `replay.pin_memory` asks for it.
    pub pinner: Option<Box<dyn Pinner>>,
}

impl Setup<'_> {
    /// For batches of this size on a device, without a folder.
    pub fn new(batch_size: usize, device: Device, gamma: f64, seed: u64) -> Self {
        Self {
            gamma,
            device,
            batch_size,
            seed,
            folder: None,
            margin: 0,
            room: Room::default(),
            free_memory: || None,
            reopen: false,
            transforms: Vec::new(),
            pinner: None,
        }
    }
}

/// Where a replay buffer stood, to [rewind](ReplayBuffer::rewind) to.
#[derive(Debug, Clone, PartialEq)]
pub struct Mark {
    place: Position,
    progress: Progress,
    priorities: Option<PriorityMark>,
    version: i32,
}

/// Transitions of the past, and batches of them.
#[derive(Debug)]
pub struct ReplayBuffer {
    core: Arc<Core>,
    maker: Arc<Maker>,
    storage: StorageKind,
    /// Where the file is, if there is one or is to be one.
    folder: Option<PathBuf>,
    /// Content of the file when this was made.
    found: Found,
    /// `replay.save`.
    save: bool,
    /// Before `slot`, so that its thread ends first.
    prefetch: Option<Prefetch>,
    slot: Slot,
    progress: Progress,
    version: i32,
    /// Priorities on their way, and how many of all were not finite.
    priorities: Vec<f32>,
    not_finite: u64,
    saves: u64,
}

impl ReplayBuffer {
    /// Allocates the storage and the batches. `config` is
    /// [resolved](ReplayConfig::resolve) and valid.
    ///
    /// # Errors
    /// The capacity does not fit, the system refuses the memory or the file, another run
    /// uses the file, or it is of another layout or capacity.
    pub fn new(
        config: &ReplayConfig,
        layout: Layout,
        mut setup: Setup<'_>,
    ) -> Result<Self, ReplayError> {
        let pinner = match (config.pin_memory, setup.pinner.take()) {
            (true, None) => return Err(ReplayError::NoPinner),
            (true, pinner) => pinner,
            (false, _) => None,
        };
        let (about, device) = (config.storage.about(), setup.device);
        let folder = match (config.directory.as_str(), setup.folder) {
            _ if !config.save && !about.in_file => None,
            ("", run) => run.map(|run| run.join(FOLDER)),
            (directory, _) => Some(PathBuf::from(directory)),
        };
        let there = folder.as_deref().map_or(0, taken);
        config::check(config, &layout, device, setup.margin, &setup.room, there)?;
        let powers = 0..=config.n_step as i32;
        let shape = Shape {
            batch: setup.batch_size,
            n_step: config.n_step,
            discounts: powers.map(|k| setup.gamma.powi(k) as f32).collect(),
        };
        let plan = GatherPlan::new(layout, shape)?;
        let layout = &plan.layout;
        let capacity = config.capacity as u64;
        let mut window = Window::new(capacity, capacity.saturating_add(setup.margin as u64));
        let (mut file, mut found) = (None, Found::default());
        if let Some(folder) = &folder {
            let expect = match setup.reopen {
                true => Expect::Any,
                false => Expect::New,
            };
            let (opened, content) = FileRing::open(folder, layout, &mut window, expect)?;
            (file, found) = (Some(opened), content);
        }
        let crossed = Arc::<Counts>::default();
        let storage = (about.open)(Site {
            layout,
            window: &window,
            recent: config.recent as u64,
            margin: window.physical() - window.capacity(),
            device,
            crossed: &crossed,
            on_full: config.on_full_disk,
            free: setup.free_memory,
            file,
        })?;
        let places = window.physical();
        let priorities = match config.sampler {
            SamplerKind::Prioritized => {
                let (alpha, beta) = (config.alpha, config.beta);
                let mut p = Priorities::new(places as usize, alpha, beta, config.beta_end)?;
                p.start_anew(window.range(), places);
                Some(p)
            }
            SamplerKind::Uniform | SamplerKind::WithoutReplacement => None,
        };
        let slot = || Slot::new(&plan, device, pinner.as_deref(), &crossed);
        // Prioritised draws depend on the update before.
        let ahead = match priorities {
            Some(_) => 0,
            None => config.prefetch,
        };
        let slots: Result<Vec<Slot>, ReplayError> = (0..ahead).map(|_| slot()).collect();
        let (slots, slot) = (slots?, slot()?);
        let inner = Inner { window, storage, priorities };
        let chain = chain(config, layout, setup.transforms, device)?;
        let core = Arc::new(Core::new(plan, config.sampler, crossed, inner));
        let maker = Maker { core: Arc::clone(&core), seed: setup.seed, chain, pinner };
        let maker = Arc::new(maker);
        let prefetch = match slots.is_empty() {
            true => None,
            false => Some(Prefetch::new(Arc::clone(&maker), slots)?),
        };
        Ok(Self {
            core,
            maker,
            storage: config.storage,
            folder,
            save: config.save,
            found,
            prefetch,
            slot,
            progress: Progress::default(),
            version: 0,
            priorities: Vec::new(),
            not_finite: 0,
            saves: 0,
        })
    }

    /// Takes in a rollout: transitions in the order of its steps, then of its
    /// environments. The next observation is the true one: of a truncated episode the
    /// last before the reset. Where an episode terminated it is that of the next episode,
    /// whose value does not count.
    ///
    /// # Errors
    /// The rollout is of another layout, its device fails, or the storage is full.
    pub fn extend(&mut self, rollout: &Rollout) -> Result<(), ReplayError> {
        self.settle();
        self.core.extend_rollout(rollout, self.version)
    }

    /// Takes in transitions by field, in the order of the layout: `[T*N,width]` as 32-bit
    /// words (`bytemuck::cast_slice` of floats), step by step of `envs` environments.
    ///
    /// # Errors
    /// The fields are not those of the layout, or the storage is full.
    pub fn extend_rows(&mut self, fields: &[&[u32]], envs: usize) -> Result<(), ReplayError> {
        self.settle();
        self.core.extend_fields(fields, envs)
    }

    /// The version of the policy that transitions are marked with from now on, of rollouts
    /// that do not know it.
    pub fn set_version(&mut self, version: i32) {
        self.version = version;
    }

    /// The next rollout does not go on from the last: the environments were reset,
    /// or are others. No n-step return goes across.
    pub fn cut(&mut self) {
        self.core.write().window.cut();
    }

    /// How far the run is, 0..1: where `beta` is on its way to `beta_end`.
    pub fn set_progress(&mut self, progress: f64) {
        self.settle();
        if let Some(priorities) = &mut self.core.write().priorities {
            priorities.set_progress(progress);
        }
    }

    /// The next batch. It depends only on the seed, the
    /// number of earlier draws, and the buffer's content.
    ///
    /// # Errors
    /// Nothing is there; the storage or the device fails.
    #[allow(clippy::should_implement_trait, reason = "the next draw, without end")]
    pub fn next(&mut self) -> Result<&Batch, ReplayError> {
        let ready = self.prefetch.as_mut().and_then(|p| p.take(&mut self.slot));
        match ready {
            Some(made) => {
                made?;
                self.progress = self.slot.after;
            }
            None => self.maker.make(self.maker.seed, &mut self.progress, &mut self.slot)?,
        }
        Ok(self.slot.batch())
    }

    /// Says that `count` batches will be drawn before the next transitions come, so that
    /// they can be drawn ahead. A number too large costs draws in vain, one too small draws
    /// that are not made ahead; the batches are the same.
    pub fn begin_update(&mut self, count: usize) {
        if let Some(prefetch) = &mut self.prefetch {
            prefetch.announce(count, self.progress);
        }
    }

    /// Draws made ahead are thrown away: the buffer is about to change.
    fn settle(&mut self) {
        if let Some(prefetch) = &mut self.prefetch {
            prefetch.settle();
        }
    }

    /// Sets the priorities of the transitions drawn last, `[B]`, 0 or more. Values that are
    /// not finite change nothing; they are [counted](Self::not_finite). Without prioritised
    /// draws nothing happens.
    ///
    /// # Errors
    /// They are not as many, or their device fails.
    pub fn update_priorities(&mut self, priorities: &Tensor) -> Result<(), ReplayError> {
        let expected = self.slot.rows.len();
        if priorities.numel() != expected {
            let got = format!("{:?}", priorities.size());
            return Err(ReplayError::shape("priorities of a batch", expected, got));
        }
        let inner = &mut *self.core.write();
        if let Some(tree) = &mut inner.priorities {
            self.priorities.resize(expected, 0.0);
            let floats = priorities.f_detach()?.f_to_kind(Kind::Float)?.f_reshape([-1])?;
            self.core.crossed.fetched();
            read_into(&floats, &mut self.priorities)?;
            let wrong = tree.update(&inner.window, &self.slot.rows, &self.priorities);
            self.not_finite += wrong as u64;
        }
        Ok(())
    }

    /// Traffic between host and device, and how often the host waited, since it was
    /// made: by this thread, or by the one that draws ahead. With batches on the host, only
    /// what would cross if they were not.
    pub fn traffic(&self) -> Traffic {
        self.core.crossed.traffic()
    }

    /// Priorities that were not finite or below 0, and were left out.
    pub fn not_finite(&self) -> u64 {
        self.not_finite
    }

    /// Where it stands now.
    pub fn mark(&mut self) -> Mark {
        let (place, priorities) = self.core.mark();
        Mark { place, progress: self.progress, priorities, version: self.version }
    }

    /// Goes back to a mark: the same transitions are there, and where the same come again,
    /// the same batches follow. Returns how many of the oldest were overwritten since: none
    /// where no more than [`Setup::margin`] came. Priorities go back to the last mark only.
    ///
    /// # Errors
    /// The mark is not of the past of this buffer, and nothing has changed; or the storage
    /// fails.
    pub fn rewind(&mut self, mark: &Mark) -> Result<u64, ReplayError> {
        self.settle();
        let lost = self.core.rewind(&mark.place, mark.priorities.as_ref())?;
        (self.progress, self.version) = (mark.progress, mark.version);
        Ok(lost)
    }

    /// A checkpoint's part, to go on from here in another process. All transitions are on
    /// the disk when this returns, unless `replay.save` is off.
    ///
    /// # Errors
    /// The disk is full, or fails.
    pub fn save(&mut self) -> Result<Saved, ReplayError> {
        self.settle();
        let folder = self.folder.as_deref().filter(|_| self.save);
        self.saves += u64::from(folder.is_some());
        resume::save(&self.core, folder, self.saves, self.progress, self.version)
    }

    /// Bytes that [`save`](Self::save) would write at the most: transitions that are not in
    /// the file yet, and priorities. Those of a storage in a file are there already.
    pub fn unsaved_bytes(&self) -> u64 {
        resume::unsaved_bytes(&self.core, self.save)
    }

    /// Goes back to the saved state, in a buffer that was [reopened](Setup::reopen), as
    /// far as its file holds that. Without `replay.save` it is empty, and only its draws go on.
    ///
    /// # Errors
    /// The saved state cannot be; the device fails.
    pub fn restore(&mut self, saved: &Saved) -> Result<Restored, ReplayError> {
        self.settle();
        let restored = resume::restore(&self.core, self.folder.as_deref(), saved)?;
        (self.progress, self.version) = (saved.progress, saved.version);
        Ok(restored)
    }

    /// For a thread that writes.
    pub fn writer(&self) -> Writer {
        Writer { core: Arc::clone(&self.core) }
    }

    /// For a thread that draws, with draws of its own for each `seed`.
    ///
    /// # Errors
    /// No room for a batch.
    pub fn sampler(&self, seed: u64) -> Result<Sampler, ReplayError> {
        let (device, pinner) = (self.slot.base.device(), self.maker.pinner.as_deref());
        Ok(Sampler {
            slot: Slot::new(&self.core.plan, device, pinner, &self.core.crossed)?,
            maker: Arc::clone(&self.maker),
            seed,
            progress: Progress::default(),
        })
    }

    /// Transitions that can be drawn.
    pub fn len(&self) -> usize {
        self.core.read().window.len() as usize
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The most that can be.
    pub fn capacity(&self) -> usize {
        self.core.read().window.capacity() as usize
    }

    /// Bytes of a transition.
    pub fn bytes_per_transition(&self) -> usize {
        self.core.plan.layout.bytes_per_transition()
    }

    /// Fields of a transition.
    pub fn layout(&self) -> &Layout {
        &self.core.plan.layout
    }

    /// Device of the batches that come out of the transforms.
    pub fn device(&self) -> Device {
        self.maker.chain.device()
    }

    /// A line for the start of a run.
    pub fn describe(&self) -> String {
        let inner = self.core.read();
        let each = self.bytes_per_transition();
        let (capacity, places) = (inner.window.capacity(), inner.window.physical());
        let file = match (&self.folder, self.storage.in_file()) {
            (Some(folder), true) => format!(" in {}", folder.display()),
            (Some(folder), false) => format!(", saved in {}", folder.display()),
            (None, _) => String::new(),
        };
        let found = match self.found {
            Found { rows: 0, dropped: 0 } => String::new(),
            Found { rows, dropped: 0 } => format!("; {rows} were there"),
            Found { rows, dropped } => {
                format!("; {rows} were there, {dropped} more were damaged")
            }
        };
        format!(
            "replay buffer: {each} bytes per transition, {capacity} transitions ({} MiB) and {} to \
             go back, storage {:?}{file}, batches of {} on {:?}{found}",
            (each as u64 * capacity).div_ceil(1 << 20),
            places - capacity,
            self.storage.name(),
            self.core.plan.shape.batch,
            self.device(),
        )
    }
}

fn chain(
    config: &ReplayConfig,
    layout: &Layout,
    transforms: Vec<Box<dyn Transform>>,
    device: Device,
) -> Result<Chain, ReplayError> {
    let mut chain = Chain::new(device);
    for (i, own) in config.transform.iter().enumerate() {
        chain.push(own.stage(i, layout)?);
    }
    transforms.into_iter().for_each(|t| chain.push(t));
    Ok(chain)
}

#[cfg(test)]
#[path = "tests/buffer.rs"]
mod tests;
