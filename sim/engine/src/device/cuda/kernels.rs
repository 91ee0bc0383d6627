//! A compiled program on its GPU.

use super::compile::{Compiled, EntryNeeds};
use super::driver::{Context, Function, Grid, Module};
use crate::device::counts::Counts;
use crate::device::{DeviceError, Kernels, Program};
use std::sync::Arc;

/// The most threads of a block, unless it was set: four warps, one for each of a
/// multiprocessor's schedulers.
const MOST_THREADS: u32 = 128;
const WARP: u32 = 32;

/// A compiled program on its GPU.
#[derive(Debug)]
pub struct CudaKernels {
    module: Module,
    entries: Vec<Entry>,
    hash: String,
    needs: Vec<EntryNeeds>,
    extent: Extent,
    counts: Arc<Counts>,
}

/// Grid and blocks of a launch.
#[derive(Debug, Clone, Copy)]
pub(super) struct Extent {
    pub multiprocessors: u32,
    /// Threads of a block, where they were set.
    pub threads_per_block: Option<u32>,
}

#[derive(Debug)]
struct Entry {
    name: String,
    function: Function,
    max_threads: u32,
    /// Bytes of its struct, where the driver knows.
    args: Option<usize>,
}

impl CudaKernels {
    pub(super) fn load(
        context: &Arc<Context>,
        counts: &Arc<Counts>,
        program: &Program,
        compiled: Compiled,
        extent: Extent,
    ) -> Result<Self, DeviceError> {
        let module = Module::load(context, &compiled.cubin)
            .map_err(|e| e.asking("the environments' program", compiled.cubin.len()))?;
        let mut entries = Vec::new();
        for name in &program.entries {
            let Some(function) = module.function(name)? else {
                return Err(DeviceError::Defect(format!(
                    "the environments' program has no entry `{name}`"
                )));
            };
            let args = match module.parameters(function)?.as_deref() {
                None => None,
                Some(&[size]) => Some(size),
                Some(sizes) => {
                    return Err(DeviceError::Defect(format!(
                        "the entry `{name}` takes {} parameters, not one",
                        sizes.len()
                    )));
                }
            };
            let max_threads = module.max_threads(function)?;
            entries.push(Entry { name: name.clone(), function, max_threads, args });
        }
        Ok(Self {
            module,
            entries,
            hash: compiled.hash,
            needs: compiled.needs,
            extent,
            counts: Arc::clone(counts),
        })
    }

    /// Needs of each entry, in the order of the program's entries.
    pub fn needs(&self) -> &[EntryNeeds] {
        &self.needs
    }

    /// Threads of a block of entry number `entry` when it is launched with `threads`
    /// threads in all; `None` if there is no such entry.
    pub fn threads_per_block(&self, entry: usize, threads: usize) -> Option<u32> {
        Some(self.grid(self.entries.get(entry)?, threads).threads)
    }

    fn grid(&self, entry: &Entry, items: usize) -> Grid {
        let threads = match self.extent.threads_per_block {
            Some(set) => set.clamp(1, entry.max_threads.max(1)),
            None => spread(items, self.extent.multiprocessors, entry.max_threads),
        };
        Grid { blocks: blocks(items, threads), threads }
    }
}

/// `u32::MAX` if there are more than that.
fn blocks(items: usize, of_block: u32) -> u32 {
    u32::try_from(items.div_ceil(of_block.max(1) as usize)).unwrap_or(u32::MAX)
}

/// Threads of a block: as many as may be, up to four warps, as long as every
/// multiprocessor gets a block. Each has caches of its own, which the stacks of
/// simulations fill.
fn spread(threads: usize, multiprocessors: u32, most: u32) -> u32 {
    let multiprocessors = multiprocessors.max(1) as usize;
    let mut block = MOST_THREADS;
    while block > WARP && threads.div_ceil(block as usize) < multiprocessors {
        block /= 2;
    }
    block.min(most.max(1))
}

impl Kernels for CudaKernels {
    unsafe fn launch(&self, entry: usize, threads: usize, args: &[u8]) -> Result<(), DeviceError> {
        let Some(e) = self.entries.get(entry) else {
            return Err(DeviceError::Defect(format!(
                "entry {entry} of {} was launched",
                self.entries.len()
            )));
        };
        if e.args.is_some_and(|size| size != args.len()) {
            return Err(DeviceError::Defect(format!(
                "`{}` takes {} bytes of arguments and got {}",
                e.name,
                e.args.unwrap_or_default(),
                args.len()
            )));
        }
        if threads == 0 {
            return Ok(());
        }
        let grid = self.grid(e, threads);
        // The device's limit is 2^31 - 1 blocks.
        if i32::try_from(grid.blocks).is_err() {
            return Err(DeviceError::Defect(format!("{threads} threads in one launch")));
        }
        // SAFETY: the function is of the module, and the length was compared with the
        // driver's where it knows it; the rest is the caller's promise.
        unsafe { self.module.launch(e.function, grid, args) }
            .map_err(|e2| e2.asking(&format!("the threads' stacks of `{}`", e.name), 0))?;
        self.counts.launch();
        Ok(())
    }

    fn hash(&self) -> &str {
        &self.hash
    }
}

#[cfg(test)]
mod tests {
    use super::spread;

    #[test]
    fn every_multiprocessor_gets_a_block_before_blocks_grow() {
        assert_eq!(spread(1, 132, 1024), 32);
        assert_eq!(spread(4096, 132, 1024), 32);
        assert_eq!(spread(131 * 64 + 1, 132, 1024), 64);
        assert_eq!(spread(131 * 64, 132, 1024), 32);
        assert_eq!(spread(131 * 128, 132, 1024), 64);
        assert_eq!(spread(131 * 128 + 1, 132, 1024), 128);
        assert_eq!(spread(1 << 20, 132, 1024), 128);
        assert_eq!(spread(1 << 20, 132, 64), 64);
        assert_eq!(spread(0, 0, 0), 1);
    }
}
