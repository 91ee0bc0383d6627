//! How a replay buffer begins.

use super::buffer::{ReplayBuffer, Setup};
use super::core::{Core, Inner};
use super::device::DeviceRing;
use super::disk::Disk;
use super::draw::Progress;
use super::file::{Expect, FileRing, Found, taken};
use super::fit;
use super::gather::{GatherPlan, Shape};
use super::host::HostRing;
use super::prefetch::{Maker, Prefetch};
use super::priority::Priorities;
use super::saved::FileCopy;
use super::slot::Slot;
use super::store::{Recent, Store};
use super::transform::Chain;
use super::window::Window;
use super::{Layout, ReplayConfig, ReplayError, SamplerKind, StorageKind};
use ostler_sim::device::Counts;
use std::path::PathBuf;
use std::sync::Arc;
use tch::Device;

/// Name of the folder in the folder of a run.
pub const FOLDER: &str = "replay";

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
        let device = setup.device;
        let folder = folder_of(config, &setup)?;
        let there = folder.as_deref().map_or(0, taken);
        fit::check(config, &layout, device, setup.margin, &setup.room, there)?;
        let powers = 0..=config.n_step as i32;
        let shape = Shape {
            batch: setup.batch_size,
            n_step: config.n_step,
            discounts: powers.map(|k| setup.gamma.powi(k) as f32).collect(),
        };
        let plan = GatherPlan::new(&layout, shape)?;
        let capacity = config.capacity as u64;
        let mut window = Window::new(capacity, capacity.saturating_add(setup.margin as u64));
        let crossed = Arc::<Counts>::default();
        let (mut store, file) =
            open(config, &layout, &setup, folder.as_ref(), &mut window, &crossed)?;
        let mut keeper = None;
        let mut found = Found::default();
        if let Some((file, there)) = file {
            found = there;
            let kept = FileCopy::new(file, window.end());
            let oldest = window.end().saturating_sub(window.physical()).max(window.floor());
            store.copy_in(kept.rows()?, oldest..window.end())?;
            keeper = Some(kept);
        } else if let Some(disk) = store.disk() {
            found = disk.found;
        }
        store.reload(&window)?;
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
        let slot = || Slot::new(&layout, &plan, device, pinner.as_deref(), &crossed);
        // Prioritised draws depend on the update before.
        let ahead = match priorities {
            Some(_) => 0,
            None => config.prefetch,
        };
        let slots: Result<Vec<Slot>, ReplayError> = (0..ahead).map(|_| slot()).collect();
        let (slots, slot) = (slots?, slot()?);
        let inner = Inner { window, store, priorities };
        let chain = chain(config, &layout, setup.transforms, device);
        let core = Core::new(layout, plan, config.sampler, crossed, inner);
        let maker = Arc::new(Maker { core: Arc::new(core), seed: setup.seed, chain, pinner });
        let prefetch = match slots.is_empty() {
            true => None,
            false => Some(Prefetch::new(Arc::clone(&maker), slots)?),
        };
        Ok(Self {
            core: Arc::clone(&maker.core),
            maker,
            storage: config.storage,
            folder,
            save: config.save,
            found,
            keeper,
            prefetch,
            slot,
            progress: Progress::default(),
            version: 0,
            priorities: Vec::new(),
            not_finite: 0,
            saves: 0,
        })
    }

    /// A line for the start of a run.
    pub fn describe(&self) -> String {
        let inner = self.core.read();
        let each = self.bytes_per_transition();
        let (capacity, places) = (inner.window.capacity(), inner.window.physical());
        let file = match (&self.folder, inner.store.in_file(), &self.keeper) {
            (Some(folder), true, _) => format!(" in {}", folder.display()),
            (Some(folder), false, Some(_)) => format!(", saved in {}", folder.display()),
            _ => String::new(),
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

/// Where the file is to be, if there is to be one.
fn folder_of(config: &ReplayConfig, setup: &Setup<'_>) -> Result<Option<PathBuf>, ReplayError> {
    if !config.save && !config.storage.in_file() {
        return Ok(None);
    }
    match (config.directory.as_str(), setup.folder) {
        ("", Some(run)) => Ok(Some(run.join(FOLDER))),
        ("", None) if config.storage.in_file() => Err(ReplayError::shape(
            "folder of the replay buffer's file",
            "replay.directory, or a run with a folder",
            "neither",
        )),
        ("", None) => Ok(None),
        (directory, _) => Ok(Some(PathBuf::from(directory))),
    }
}

/// The storage; and beside one in memory the file that it is saved in.
#[allow(clippy::type_complexity)]
fn open(
    config: &ReplayConfig,
    layout: &Layout,
    setup: &Setup<'_>,
    folder: Option<&PathBuf>,
    window: &mut Window,
    crossed: &Arc<Counts>,
) -> Result<(Store, Option<(FileRing, Found)>), ReplayError> {
    let expect = match setup.reopen {
        true => Expect::Any,
        false => Expect::New,
    };
    let file = match folder {
        Some(folder) => Some(FileRing::open(folder, layout, window, expect)?),
        None => None,
    };
    let (words, places, device) = (layout.words(), window.physical(), setup.device);
    let kind = match (config.storage, device) {
        (StorageKind::Device | StorageKind::Auto, Device::Cpu) => StorageKind::Host,
        (kind, _) => kind,
    };
    let ring = |places| DeviceRing::new(places, words, device, crossed);
    let disk = |(file, found)| {
        let mut disk = Disk::new(file, words, config.on_full_disk, setup.free_memory);
        disk.found = found;
        disk
    };
    Ok(match (kind, file) {
        (StorageKind::Host, file) => (Store::Host(HostRing::new(places, words)?), file),
        (StorageKind::Memmap, Some(file)) => (Store::File(disk(file)), None),
        (StorageKind::Tiered, Some(file)) => {
            let span = config.recent as u64;
            let places = span.saturating_add(setup.margin as u64).min(places);
            let recent = match device {
                Device::Cpu => Recent::Host(HostRing::new(places, words)?),
                _ => Recent::Device(ring(places)?),
            };
            let disk = disk(file);
            (Store::Tiered { disk, recent, span }, None)
        }
        (_, file) => (Store::Device(ring(places)?), file),
    })
}

fn chain(
    config: &ReplayConfig,
    layout: &Layout,
    transforms: Vec<Box<dyn super::Transform>>,
    device: Device,
) -> Chain {
    let mut chain = Chain::new(device);
    let own = config.transform.iter().enumerate();
    let own = own.map(|(i, t)| t.stage(i, layout));
    own.chain(transforms).for_each(|t| chain.push(t));
    chain
}
