//! F9, F11, F12: pinned batches, and the replay buffer's storages on a GPU.

use crate::place::{gpu, place};
use ostler_collector::replay::transform::RewardScale;
use ostler_collector::replay::{
    Batch, Field, Layout, Pinner, ReplayBuffer, ReplayConfig, ReplayError, Setup, StorageKind,
    Transform, names,
};
use ostler_collector::transfer::host_numbers;
use ostler_trainer::torch::CudaPinner;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use tch::{Kind, TchError, Tensor};

fn layout() -> Layout {
    let single = [names::REWARD, names::TERMINATED, names::TRUNCATED, names::VALID];
    let mut fields = vec![Field::float(names::OBS, 5), Field::float(names::ACTION, 2)];
    fields.extend(single.map(|name| Field::float(name, 1)));
    fields.push(Field::integer(names::VERSION));
    fields.push(Field::float(names::NEXT_OBS, 5));
    Layout::new(fields).unwrap()
}

fn config(storage: StorageKind, n_step: usize) -> ReplayConfig {
    ReplayConfig {
        capacity: 400,
        recent: 100,
        storage,
        n_step,
        save: false,
        ..ReplayConfig::default()
    }
}

/// 8 environments; episodes end at every ninth step.
fn extend(buffer: &mut ReplayBuffer, first: usize) {
    let rows = first..first + 80;
    let column = |f: &Field| -> Vec<u32> {
        let number = |row: usize, k: usize| match f.name.as_str() {
            names::TERMINATED => f32::from(u8::from(row / 8 % 9 == 8)).to_bits(),
            names::TRUNCATED => 0,
            names::VALID => f32::from(u8::from(!row.is_multiple_of(31))).to_bits(),
            names::VERSION => row as u32,
            _ => ((row * 10 + k) as f32).to_bits(),
        };
        rows.clone().flat_map(|row| (0..f.width).map(move |k| number(row, k))).collect()
    };
    let columns: Vec<Vec<u32>> = layout().fields().iter().map(column).collect();
    let fields: Vec<&[u32]> = columns.iter().map(Vec::as_slice).collect();
    buffer.extend_rows(&fields, 8).unwrap();
}

/// One that makes a new tensor of a field.
#[derive(Debug)]
struct Own(&'static str, fn(&Tensor) -> Result<Tensor, TchError>);

impl Transform for Own {
    fn apply(&self, mut batch: Batch) -> Result<Batch, ReplayError> {
        let made = (self.1)(batch.get(self.0)?)?;
        batch.insert(self.0, made)?;
        Ok(batch)
    }
}

fn transforms(count: usize) -> Vec<Box<dyn Transform>> {
    let all: [Box<dyn Transform>; 5] = [
        Box::new(RewardScale { scale: 2.0, clip: 1.0 }),
        Box::new(Own(names::OBS, |x| x.f_narrow(-1, 1, 3)?.f_contiguous())),
        Box::new(Own(names::OBS, |x| Tensor::f_cat(&[x, x], -1))),
        Box::new(Own(names::ACTION, |x| x.f_to_kind(Kind::Double))),
        Box::new(Own(names::OBS, |x| x.f_to_kind(Kind::Half))),
    ];
    all.into_iter().take(count).collect()
}

/// A GPU's pinned memory, and how often it was asked for it.
#[derive(Debug, Default, Clone)]
struct Counting(Arc<AtomicUsize>);

impl Pinner for Counting {
    fn pin(&self, tensor: &Tensor) -> Result<Tensor, TchError> {
        CudaPinner.pin(tensor)
    }

    fn is_pinned(&self, tensor: &Tensor) -> Result<bool, TchError> {
        let pinned = CudaPinner.is_pinned(tensor)?;
        self.0.fetch_add(usize::from(pinned), Relaxed);
        Ok(pinned)
    }
}

#[test]
fn f09_batches_come_from_pinned_memory_and_transforms_run_on_the_gpu() {
    // Without one pinning is refused, which replay's own tests look at.
    let Some(_gpu) = gpu() else { return };
    let device = place().torch;
    for count in [0, 1, 5] {
        for prefetch in [0, 2] {
            let config =
                ReplayConfig { pin_memory: true, prefetch, ..config(StorageKind::Host, 1) };
            assert!(config.validate_device(device, true).is_empty());
            let pinner = Counting::default();
            let setup = Setup {
                transforms: transforms(count),
                pinner: Some(Box::new(pinner.clone())),
                ..Setup::new(64, device, 0.99, 1)
            };
            let mut buffer = ReplayBuffer::new(&config, layout(), setup).unwrap();
            extend(&mut buffer, 0);
            buffer.begin_update(4);
            for _ in 0..4 {
                let batch = buffer.next().unwrap();
                assert!(batch.fields().count() >= 10);
                assert!(batch.fields().all(|(_, t)| t.device() == device), "{count}");
            }
            assert!(pinner.0.load(Relaxed) >= 4, "{count} transforms");
        }
    }
}

/// Numbers by field.
type Numbers = Vec<(String, Vec<f32>)>;

fn numbers(batch: &Batch) -> Numbers {
    let numbers = |(name, t): (&str, &tch::Tensor)| (name.to_owned(), host_numbers(t).unwrap());
    batch.fields().map(numbers).collect()
}

#[test]
fn f12_every_storage_draws_the_same_batches_onto_the_device() {
    let place = place();
    for n_step in [1, 3] {
        let mut expected: Option<Vec<Numbers>> = None;
        for storage in
            [StorageKind::Host, StorageKind::Device, StorageKind::Memmap, StorageKind::Tiered]
        {
            let dir = tempfile::tempdir().unwrap();
            let config =
                ReplayConfig { pin_memory: place.cuda.is_some(), ..config(storage, n_step) };
            assert!(config.validate().is_empty());
            let setup = Setup {
                folder: Some(dir.path()),
                pinner: Some(Box::new(CudaPinner)),
                ..Setup::new(64, place.torch, 0.5, 1)
            };
            let mut buffer = ReplayBuffer::new(&config, layout(), setup).unwrap();
            let mut drawn = Vec::new();
            for i in 0..8 {
                extend(&mut buffer, 80 * i);
                buffer.begin_update(3);
                for _ in 0..3 {
                    let batch = buffer.next().unwrap();
                    assert_eq!(batch.device(), place.torch);
                    assert!(batch.fields().all(|(_, t)| t.device() == place.torch));
                    drawn.push(numbers(batch));
                }
            }
            let expected = expected.get_or_insert_with(|| drawn.clone());
            assert_eq!(&drawn, expected, "{storage:?} {n_step}");
        }
    }
}
