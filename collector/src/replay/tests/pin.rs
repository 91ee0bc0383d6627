use super::super::transform::{RewardScale, Transform};
use super::super::{Layout, ReplayBuffer, ReplayConfig, Setup};
use super::*;
use crate::replay::tests::{host, rollout, setup, spec};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Mutex};

/// One that makes a new tensor.
#[derive(Debug)]
struct Narrow;

impl Transform for Narrow {
    fn apply(&self, mut batch: Batch) -> Result<Batch, ReplayError> {
        let some = batch.get("obs")?.f_narrow(-1, 1, 2)?.f_contiguous()?;
        batch.insert("obs", some)?;
        Ok(batch)
    }
}

/// Pins what it is given, until it is told to forget; counts what it is asked.
#[derive(Debug, Default, Clone)]
struct Forgetful {
    pinned: Arc<Mutex<Vec<Tensor>>>,
    forgets: Arc<AtomicBool>,
    asked: Arc<AtomicUsize>,
}

impl Pinner for Forgetful {
    fn pin(&self, tensor: &Tensor) -> Result<Tensor, TchError> {
        let copy = tensor.f_detach_copy()?;
        // Kept, so that its address is nobody else's.
        self.pinned.lock().unwrap().push(copy.shallow_clone());
        Ok(copy)
    }

    fn is_pinned(&self, tensor: &Tensor) -> Result<bool, TchError> {
        self.asked.fetch_add(1, Relaxed);
        let known = |t: &Tensor| t.data_ptr() == tensor.data_ptr();
        let pinned = self.pinned.lock().unwrap().iter().any(known);
        Ok(pinned && !self.forgets.load(Relaxed))
    }
}

/// F9, where a run draws: by this thread, by the one that draws ahead, by others; with
/// transforms that make new tensors and without. The memory that a GPU copies from is pinned,
/// and every draw asks.
#[test]
fn f09_every_draw_asks_whether_its_memory_is_pinned() {
    let spec = spec(3, None);
    for (prefetch, count) in [(0, 0), (0, 1), (2, 1), (2, 5)] {
        let pinner = Forgetful::default();
        let config = ReplayConfig { prefetch, pin_memory: true, ..host(100) };
        let own = (0..count).map(|k| -> Box<dyn Transform> {
            match k {
                0 => Box::new(Narrow),
                _ => Box::new(RewardScale { scale: 2.0, clip: 0.0 }),
            }
        });
        let setup = Setup {
            transforms: own.collect(),
            pinner: Some(Box::new(pinner.clone())),
            ..setup(20)
        };
        let mut buffer = ReplayBuffer::new(&config, Layout::of(&spec), setup).unwrap();
        buffer.extend(&rollout(&spec, 0, 10)).unwrap();
        let mut other = buffer.sampler(5).unwrap();
        buffer.begin_update(3);
        for _ in 0..3 {
            let width = |batch: &Batch| batch.get("obs").unwrap().size()[1];
            let expected = if count > 0 { 2 } else { 3 };
            assert_eq!(width(buffer.next().unwrap()), expected);
            assert_eq!(width(other.next().unwrap()), expected);
        }
        assert!(pinner.asked.load(Relaxed) >= 6);
        pinner.forgets.store(true, Relaxed);
        let not = |e| matches!(e, Err(ReplayError::NotPinned { .. }));
        assert!(not(buffer.next().map(drop)) && not(other.next().map(drop)));
    }
}
