//! Blocks of a device's memory that live as long as a run.

use ostler_base::memory::{MemoryError, zeroed};
use std::any::Any;
use std::fmt;

/// An address in a device's memory.
pub type Address = u64;

/// Memory that is given back when this is dropped.
pub struct Block {
    address: Address,
    bytes: usize,
    _owner: Box<dyn Any + Send>,
}

impl fmt::Debug for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Block({} bytes at {:#x})", self.bytes, self.address)
    }
}

impl Block {
    /// `bytes` bytes at `address` that stay there until `owner` is dropped.
    pub fn new(address: Address, bytes: usize, owner: Box<dyn Any + Send>) -> Self {
        Self { address, bytes, _owner: owner }
    }

    /// Where it begins.
    pub fn address(&self) -> Address {
        self.address
    }

    /// How long it is.
    pub fn bytes(&self) -> usize {
        self.bytes
    }
}

/// Hands out blocks of one device's memory: libtorch's allocator where it shares the
/// device, so that one allocator knows all of it.
pub trait Memory: fmt::Debug + Send {
    /// Zeroed, aligned to 64 bytes.
    ///
    /// # Errors
    /// Not enough memory.
    fn zeroed(&self, what: &str, bytes: usize) -> Result<Block, MemoryError>;
}

/// The host's memory, for the host's stand-in for a device.
#[derive(Debug, Clone, Copy, Default)]
pub struct HostMemory;

/// 64 bytes, aligned.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Line([u64; 8]);

// SAFETY: plain numbers without padding.
unsafe impl bytemuck::Zeroable for Line {}

impl Memory for HostMemory {
    fn zeroed(&self, what: &str, bytes: usize) -> Result<Block, MemoryError> {
        let mut lines = zeroed::<Line>(what, bytes.div_ceil(size_of::<Line>()).max(1))?;
        let address = lines.as_mut_ptr() as Address;
        Ok(Block::new(address, bytes, Box::new(lines)))
    }
}
