//! Pinned memory, from which a GPU copies by itself.
//!
//! F9: pinning is the last thing that happens to a batch, whatever transforms made of it,
//! and every tensor is asked whether it is pinned.

use super::{Batch, ReplayError};
use std::fmt::Debug;
use tch::{Device, TchError, Tensor};

/// Pins tensors; CUDA's is [`CudaPinner`].
pub trait Pinner: Debug + Send + Sync {
    /// The tensor in pinned memory.
    ///
    /// # Errors
    /// There is none.
    fn pin(&self, tensor: &Tensor) -> Result<Tensor, TchError>;

    /// Whether it is.
    ///
    /// # Errors
    /// Nobody knows.
    fn is_pinned(&self, tensor: &Tensor) -> Result<bool, TchError>;
}

/// By CUDA's driver.
#[derive(Debug, Clone, Copy)]
pub struct CudaPinner;

impl Pinner for CudaPinner {
    fn pin(&self, tensor: &Tensor) -> Result<Tensor, TchError> {
        tensor.f_pin_memory(Device::Cuda(0))
    }

    fn is_pinned(&self, tensor: &Tensor) -> Result<bool, TchError> {
        tensor.f_is_pinned(Device::Cuda(0))
    }
}

/// A host tensor in pinned memory.
///
/// # Errors
/// There is no GPU, or no memory that can be pinned.
pub fn pinned(tensor: &Tensor) -> Result<Tensor, ReplayError> {
    Ok(CudaPinner.pin(tensor)?)
}

/// Pins all tensors of a batch on the host that are not pinned yet, and asks each.
///
/// # Errors
/// One is not in pinned memory afterwards.
pub fn pin_batch(pinner: &dyn Pinner, mut batch: Batch) -> Result<Batch, ReplayError> {
    if batch.device() != Device::Cpu {
        // What is on a GPU is where pinned memory would have been copied to.
        return Ok(batch);
    }
    let mut moved = Vec::new();
    for (name, tensor) in batch.fields() {
        let pinned = match pinner.is_pinned(tensor)? {
            true => None,
            false => Some(pinner.pin(tensor)?),
        };
        if !pinner.is_pinned(pinned.as_ref().unwrap_or(tensor))? {
            return Err(ReplayError::NotPinned { name: name.into() });
        }
        moved.extend(pinned.map(|tensor| (name.to_owned(), tensor)));
    }
    for (name, tensor) in moved {
        batch.insert(&name, tensor)?;
    }
    Ok(batch)
}

#[cfg(test)]
mod tests {
    use super::super::transform::{Cast, Chain, Crop, RewardScale, Stack, Transform};
    use super::*;
    use std::sync::Mutex;
    use tch::Kind;

    /// Remembers what it pinned, by address.
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
        for (name, size) in [
            ("obs", vec![4, 6]),
            ("action", vec![4, 2]),
            ("reward", vec![4]),
        ] {
            let ones = Tensor::ones(&size[..], (Kind::Float, Device::Cpu));
            batch.insert(name, ones).unwrap();
        }
        batch
    }

    fn transforms(count: usize) -> Chain {
        let all: [Box<dyn Transform>; 5] = [
            Box::new(RewardScale {
                scale: 2.0,
                clip: 1.0,
            }),
            Box::new(Crop {
                field: "obs".into(),
                first: 1,
                len: 3,
            }),
            Box::new(Stack {
                fields: vec!["obs".into(), "action".into()],
                to: "input".into(),
            }),
            Box::new(Cast {
                fields: vec!["action".into()],
                kind: Kind::Double,
            }),
            Box::new(Cast {
                fields: vec!["input".into()],
                kind: Kind::Half,
            }),
        ];
        let mut chain = Chain::new(Device::Cpu);
        all.into_iter().take(count).for_each(|t| chain.push(t));
        chain
    }

    #[test]
    fn f09_every_tensor_is_pinned_after_any_number_of_transforms() {
        for count in [0, 1, 5] {
            let fake = Fake {
                works: true,
                ..Fake::default()
            };
            let made = transforms(count).run(batch()).unwrap();
            let made = pin_batch(&fake, made).unwrap();
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
        let e = pin_batch(&broken, batch()).unwrap_err();
        assert!(matches!(e, ReplayError::NotPinned { name } if name == "obs"));
    }

    #[test]
    fn what_is_pinned_already_is_not_copied() {
        let fake = Fake {
            works: true,
            ..Fake::default()
        };
        let once = pin_batch(&fake, batch()).unwrap();
        let before = fake.pinned.lock().unwrap().len();
        let twice = pin_batch(&fake, once).unwrap();
        assert_eq!(fake.pinned.lock().unwrap().len(), before);
        assert_eq!(twice.fields().count(), 3);
    }
}
