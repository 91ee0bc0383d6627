//! A GPU's memory without libtorch.

use super::driver::{Context, DeviceBlock};
use crate::device::{Block, Memory};
use ostler_base::memory::MemoryError;
use std::sync::Arc;

/// Blocks by the driver itself ([`super::Cuda::memory`]).
#[derive(Debug, Clone)]
pub struct CudaMemory(pub(super) Arc<Context>);

impl Memory for CudaMemory {
    fn zeroed(&self, what: &str, bytes: usize) -> Result<Block, MemoryError> {
        let block = DeviceBlock::zeroed(&self.0, bytes).map_err(|e| MemoryError {
            what: match e.asking(what, bytes).out_of_memory() {
                Some(_) => what.to_string(),
                // The kind of error has no place for another reason.
                None => format!("{what} ({}: {})", e.name(), e.message()),
            },
            bytes,
        })?;
        Ok(Block::new(block.address(), bytes, Box::new(block)))
    }
}
