use super::super::transform::{Chain, RewardScale, Transform};
use super::*;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::{Arc, Mutex};
use tch::Kind;

/// Remembers the pinned tensors, by address.
#[derive(Debug, Default)]
struct Fake {
    pinned: Mutex<Vec<usize>>,
    works: bool,
}

impl Pinner for Fake {
    fn pin(&self, tensor: &Tensor) -> Result<Tensor, TchError> {
        let copy = tensor.f_detach_copy()?;
        if self.works {
            self.pinned.lock().unwrap().push(copy.data_ptr() as usize);
        }
        Ok(copy)
    }

    fn is_pinned(&self, tensor: &Tensor) -> Result<bool, TchError> {
        let address = tensor.data_ptr() as usize;
        Ok(self.pinned.lock().unwrap().contains(&address))
    }
}

fn batch() -> Batch {
    let mut batch = Batch::new(Device::Cpu, 4);
    for (name, size) in [("obs", vec![4, 6]), ("action", vec![4, 2]), ("reward", vec![4])] {
        let ones = Tensor::ones(&size[..], (Kind::Float, Device::Cpu));
        batch.insert(name, ones).unwrap();
    }
    batch
}

/// One that makes new tensors.
#[derive(Debug)]
struct Own(fn(&mut Batch) -> Result<(), ReplayError>);

impl Transform for Own {
    fn apply(&self, mut batch: Batch) -> Result<Batch, ReplayError> {
        (self.0)(&mut batch).map(|()| batch)
    }
}

fn narrow(batch: &mut Batch) -> Result<(), ReplayError> {
    let some = batch.get("obs")?.f_narrow(-1, 1, 2)?.f_contiguous()?;
    batch.insert("obs", some)
}

fn stack(batch: &mut Batch) -> Result<(), ReplayError> {
    let both = Tensor::f_cat(&[batch.get("obs")?, batch.get("action")?], -1)?;
    batch.insert("input", both)
}

fn transforms(count: usize) -> Vec<Box<dyn Transform>> {
    let doubled = |batch: &mut Batch| {
        let x = batch.get("action")?.f_to_kind(Kind::Double)?;
        batch.insert("action", x)
    };
    let halved = |batch: &mut Batch| {
        let x = batch.get("input")?.f_to_kind(Kind::Half)?;
        batch.insert("input", x)
    };
    let all: [Box<dyn Transform>; 5] = [
        Box::new(RewardScale { scale: 2.0, clip: 1.0 }),
        Box::new(Own(narrow)),
        Box::new(Own(stack)),
        Box::new(Own(doubled)),
        Box::new(Own(halved)),
    ];
    all.into_iter().take(count).collect()
}

#[test]
fn f09_every_tensor_is_pinned_after_any_number_of_transforms() {
    for count in [0, 1, 5] {
        let fake = Fake { works: true, ..Fake::default() };
        let mut chain = Chain::new(Device::Cpu);
        transforms(count).into_iter().for_each(|t| chain.push(t));
        let made = chain.run(batch()).unwrap();
        let made = pin_batch(&fake, Device::Cpu, made).unwrap();
        assert_eq!(made.device(), Device::Cpu);
        assert_eq!(made.fields().count(), if count < 3 { 3 } else { 4 });
        for (name, tensor) in made.fields() {
            assert!(fake.is_pinned(tensor).unwrap(), "{name} with {count}");
        }
    }
}

#[test]
fn f09_a_tensor_that_is_not_pinned_is_an_error() {
    let broken = Fake::default();
    let e = pin_batch(&broken, Device::Cpu, batch()).unwrap_err();
    assert!(matches!(e, ReplayError::NotPinned { name } if name == "obs"));
}

#[test]
fn what_is_pinned_already_is_not_copied() {
    let fake = Fake { works: true, ..Fake::default() };
    let once = pin_batch(&fake, Device::Cpu, batch()).unwrap();
    let before = fake.pinned.lock().unwrap().len();
    let twice = pin_batch(&fake, Device::Cpu, once).unwrap();
    assert_eq!(fake.pinned.lock().unwrap().len(), before);
    assert_eq!(twice.fields().count(), 3);
}

/// Pins every tensor, until it is told to forget.
#[derive(Debug, Default, Clone)]
struct Forgetful {
    pinned: Arc<Mutex<Vec<Tensor>>>,
    forgets: Arc<AtomicBool>,
}

impl Pinner for Forgetful {
    fn pin(&self, tensor: &Tensor) -> Result<Tensor, TchError> {
        let copy = tensor.f_detach_copy()?;
        // Kept, so that its address is nobody else's.
        self.pinned.lock().unwrap().push(copy.shallow_clone());
        Ok(copy)
    }

    fn is_pinned(&self, tensor: &Tensor) -> Result<bool, TchError> {
        let forgets = self.forgets.load(Relaxed);
        let (address, bytes) = (tensor.data_ptr() as usize, tensor.numel().max(1) * 4);
        let holds = |t: &Tensor| {
            let first = t.data_ptr() as usize;
            (first..first + t.numel() * 4).contains(&(address + bytes - 1))
        };
        Ok(!forgets && self.pinned.lock().unwrap().iter().any(holds))
    }
}

/// F9, where a run draws: by this thread, by the one that draws ahead, by others; with
/// transforms that make new tensors and without.
#[test]
fn f09_every_sampled_batch_is_pinned_last_and_asked() {
    use super::super::{Layout, ReplayBuffer, Setup};
    use crate::replay::tests::{host, rollout, setup, spec};
    let spec = spec(3, None);
    for (prefetch, count) in [(0, 0), (0, 1), (2, 1), (2, 2)] {
        let (pinner, config) = (Forgetful::default(), host(100));
        let config = super::super::ReplayConfig { prefetch, ..config };
        let config = super::super::ReplayConfig { pin_memory: true, ..config };
        let setup = Setup {
            transforms: transforms(count),
            pinner: Some(Box::new(pinner.clone())),
            ..setup(20)
        };
        let mut buffer = ReplayBuffer::new(&config, Layout::of(&spec), setup).unwrap();
        buffer.extend(&rollout(&spec, 0, 10)).unwrap();
        let mut other = buffer.sampler(5).unwrap();
        buffer.begin_update(3);
        for _ in 0..3 {
            for batch in [buffer.next().unwrap(), other.next().unwrap()] {
                for (name, tensor) in batch.fields() {
                    assert!(pinner.is_pinned(tensor).unwrap(), "{name}, {count}");
                }
            }
        }
        pinner.forgets.store(true, Relaxed);
        let not = |e| matches!(e, Err(ReplayError::NotPinned { .. }));
        assert!(not(buffer.next().map(drop)) && not(other.next().map(drop)));
    }
}

#[test]
fn f09_a_batch_that_is_elsewhere_is_an_error() {
    let fake = Fake { works: true, ..Fake::default() };
    let e = pin_batch(&fake, Device::Cuda(0), batch()).unwrap_err();
    let elsewhere = (Device::Cuda(0), Device::Cpu);
    assert!(matches!(e, ReplayError::Device { expected, got, .. } if (expected, got) == elsewhere));
}
