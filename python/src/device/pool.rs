//! Memory of a GPU that is used again and again.
//!
//! All work on it goes to one stream, the device's default: memory that its last user has let go
//! may be written at once, as that is after all that was started on it before. So nothing is
//! waited for, and after a few steps nothing is allocated.

use ostler_sim::device::cuda::CudaMemory;
use ostler_sim::device::{Address, Block, Memory};
use ostler_sim::memory::MemoryError;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Blocks by their sizes.
#[derive(Debug)]
pub struct Pool {
    memory: CudaMemory,
    /// `None` once nothing is kept any more.
    free: Mutex<Option<HashMap<usize, Vec<Block>>>>,
    process: u32,
}

/// A block until the last who has it lets it go.
#[derive(Debug)]
pub struct Lease {
    address: Address,
    bytes: usize,
    block: Mutex<Option<Block>>,
    pool: Arc<Pool>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    // The data behind these locks is whole after every step.
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Pool {
    /// Over a device's memory.
    pub fn new(memory: CudaMemory) -> Arc<Self> {
        Arc::new(Self {
            memory,
            free: Mutex::new(Some(HashMap::new())),
            process: std::process::id(),
        })
    }

    /// Memory of `bytes` bytes: of zeros, or what an earlier one has left there.
    ///
    /// # Errors
    /// The device has no more.
    pub fn lease(self: &Arc<Self>, what: &str, bytes: usize) -> Result<Arc<Lease>, MemoryError> {
        let mut free = locked(&self.free);
        let kept = free.as_mut().and_then(|all| all.get_mut(&bytes)?.pop());
        drop(free);
        let block = match kept {
            Some(block) => block,
            None => self.memory.zeroed(what, bytes)?,
        };
        Ok(Arc::new(Lease {
            address: block.address(),
            bytes,
            block: Mutex::new(Some(block)),
            pool: Arc::clone(self),
        }))
    }

    /// Gives free memory back to the device, now and from now on.
    pub fn close(&self) {
        let kept = locked(&self.free).take();
        if self.is_foreign() {
            std::mem::forget(kept);
        }
    }

    /// The process was forked off the one that has the memory: the driver does not work here.
    fn is_foreign(&self) -> bool {
        std::process::id() != self.process
    }
}

impl Lease {
    /// Where it begins.
    pub fn address(&self) -> Address {
        self.address
    }

    /// How long it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Whose it is.
    pub fn is_of(&self, pool: &Arc<Pool>) -> bool {
        Arc::ptr_eq(&self.pool, pool)
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        let block = locked(&self.block).take();
        if self.pool.is_foreign() {
            std::mem::forget(block);
            return;
        }
        if let (Some(block), Some(free)) = (block, locked(&self.pool.free).as_mut()) {
            free.entry(self.bytes).or_default().push(block);
        }
    }
}
