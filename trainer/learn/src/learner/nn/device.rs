//! The learner's kernels on a device: `trainer/kernels`, the text that hosts run in vectors,
//! with a thread for each number or sample.

use crate::learner::error::LearnError;
use bytemuck::Pod;
use ostler_sim::device::cuda::Cuda;
use ostler_sim::device::{Address, Device, DeviceError, Kernels, Program};
use std::sync::Arc;
use tch::Tensor;

/// The files, in the order in which they are needed.
const FILES: [&str; 8] = [
    include_str!("../../../../../sim/kernels/scalar.cuh"),
    include_str!("../../../../kernels/vector.cuh"),
    include_str!("../../../../kernels/adam.cuh"),
    include_str!("../../../../kernels/loss.cuh"),
    include_str!("../../../../kernels/finish.cuh"),
    include_str!("../../../../kernels/draw.cuh"),
    include_str!("../../../../kernels/order.cuh"),
    include_str!("../../../../kernels/device.cuh"),
];

/// Files that stand where these are included: in a namespace, or for a host alone.
const INNER: [(&str, &str); 3] = [
    ("#include \"lanes.cuh\"", include_str!("../../../../../sim/kernels/lanes.cuh")),
    ("#include \"env/math.cuh\"", include_str!("../../../../../sim/kernels/env/math.cuh")),
    ("#include \"env/rng.cuh\"", include_str!("../../../../../sim/kernels/env/rng.cuh")),
];

/// Entries of `device.cuh`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entry {
    /// PPO's loss of samples.
    Loss,
    /// The end of a minibatch of PPO: is a step taken, the numbers of Adam's step.
    PpoFinish,
    /// The same of a gradient step of one network.
    Finish,
    /// A step of Adam.
    Adam,
    /// Orders of samples.
    Order,
    /// Normal numbers.
    Noise,
}

impl Entry {
    /// All of them, in the order of their numbers.
    const ALL: [(Self, &str); 6] = [
        (Self::Loss, "ostler_learn_loss"),
        (Self::PpoFinish, "ostler_learn_ppo_finish"),
        (Self::Finish, "ostler_learn_finish"),
        (Self::Adam, "ostler_learn_adam"),
        (Self::Order, "ostler_learn_order"),
        (Self::Noise, "ostler_learn_noise"),
    ];
}

/// The learner's program for a device.
pub fn program() -> Program {
    let mut text = String::new();
    for line in FILES.iter().flat_map(|file| file.lines()) {
        let inner = INNER.iter().find(|(include, _)| *include == line);
        match (inner, line) {
            (Some((_, file)), _) => text.push_str(&file.replace("#pragma once", "")),
            (None, "#pragma once") => {}
            (None, line) if line.starts_with("#include \"") => {}
            (None, line) => text.push_str(line),
        }
        text.push('\n');
    }
    let include = "#ifndef __CUDACC__\n#include <immintrin.h>\n#endif\n";
    Program {
        text: format!("{include}{text}"),
        places: Vec::new(),
        entries: Entry::ALL.map(|(_, name)| name.into()).to_vec(),
    }
}

/// The kernels, loaded.
#[derive(Debug, Clone)]
pub struct LearnKernels(Arc<dyn Kernels>);

impl LearnKernels {
    /// Compiles them for a device, or takes them from a cache.
    ///
    /// # Errors
    /// They do not compile there.
    pub fn load(on: &dyn Device) -> Result<Self, LearnError> {
        Ok(Self(on.load(&program()).map_err(refused)?))
    }

    /// Those of libtorch's device; none where that is the host.
    ///
    /// # Errors
    /// The GPU or NVRTC cannot be used, or they do not compile.
    pub fn of(device: tch::Device) -> Result<Option<Self>, LearnError> {
        let tch::Device::Cuda(index) = device else {
            return Ok(None);
        };
        let gpu = Cuda::open(index).map_err(|e| LearnError::Kernel(e.to_string()))?;
        Self::load(&*gpu).map(Some)
    }

    /// Starts `threads` threads of an entry, after all that libtorch has started there.
    ///
    /// # Errors
    /// The device refuses.
    ///
    /// # Safety
    /// `args` is the entry's struct; its addresses are of this device, of tensors with as
    /// many numbers as `threads` threads touch. libtorch gives their memory back in the
    /// order of the same stream, so they need not outlive the call.
    pub unsafe fn launch<T: Pod>(
        &self,
        entry: Entry,
        threads: usize,
        args: &T,
    ) -> Result<(), LearnError> {
        // SAFETY: the caller's promise.
        let launched = unsafe { self.0.launch(entry as usize, threads, bytemuck::bytes_of(args)) };
        launched.map_err(refused)
    }
}

/// Want of memory stays what it is: the run goes on with fewer environments.
fn refused(e: DeviceError) -> LearnError {
    match e.out_of_memory() {
        Some(memory) => LearnError::Memory(memory.clone()),
        None => LearnError::Kernel(e.to_string()),
    }
}

/// A learner on a device was built without its kernels.
pub fn not_loaded() -> LearnError {
    LearnError::Kernel("they were not loaded".into())
}

/// Where a tensor's first number lies.
pub fn address(t: &Tensor) -> Address {
    t.data_ptr() as Address
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_have_their_places_as_numbers() {
        for (i, (entry, _)) in Entry::ALL.iter().enumerate() {
            assert_eq!(*entry as usize, i);
        }
    }
}
