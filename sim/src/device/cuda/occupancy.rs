//! How full a program fills a device.
//!
//! Limits: CUDA Programming Guide, table "Technical Specifications per Compute Capability"
//! (resident blocks and warps, registers, shared memory), which also says that the system
//! takes 1 KiB of each block's shared memory. How registers and shared memory are handed
//! out: as NVIDIA's `cuda_occupancy.h` computes it.
//! <https://docs.nvidia.com/cuda/cuda-programming-guide/05-appendices/compute-capabilities.html>

use super::nvrtc::log::Needs;

const WARP: u32 = 32;
/// Registers come to a warp in such steps.
const REGISTER_STEP: u32 = 256;
/// Shared memory comes to a block in such steps (bytes).
const SHARED_STEP: u32 = 128;
/// The system's part of each block's shared memory (bytes).
const SHARED_SYSTEM: u32 = 1024;
/// A multiprocessor's warps are divided among so many schedulers, each with a share of the
/// registers.
const SCHEDULERS: u32 = 4;

/// Resources of a multiprocessor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Resident warps.
    pub warps: u32,
    /// Resident blocks.
    pub blocks: u32,
    /// Registers of 32 bits.
    pub registers: u32,
    /// Shared memory (bytes).
    pub shared: u32,
}

/// How full a multiprocessor is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Occupancy {
    /// Resident blocks of a multiprocessor.
    pub blocks: u32,
    /// Resident warps of a multiprocessor.
    pub warps: u32,
    /// Part of the warps that it could have, 0 to 1.
    pub occupancy: f64,
    /// The resource that limits them.
    pub limit: Limit,
}

/// The bound of the number of resident blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Limit {
    /// No more warps.
    Warps,
    /// No more blocks.
    Blocks,
    /// No more registers.
    Registers,
    /// No more shared memory.
    Shared,
}

impl Limits {
    /// Of `sm_90` and the like; `None` where it is not known.
    pub fn of(architecture: &str) -> Option<Self> {
        let of = |warps, blocks, shared: u32| Self {
            warps,
            blocks,
            registers: 65536,
            shared: shared << 10,
        };
        Some(match architecture {
            "sm_80" => of(64, 32, 164),
            "sm_86" => of(48, 16, 100),
            "sm_87" => of(48, 16, 164),
            "sm_89" => of(48, 24, 100),
            "sm_90" | "sm_100" | "sm_103" => of(64, 32, 228),
            "sm_110" => of(48, 24, 228),
            "sm_120" | "sm_121" => of(48, 24, 100),
            _ => return None,
        })
    }
}

/// How many blocks of so many threads a multiprocessor holds at a time; none if even one
/// does not fit.
pub fn occupancy(needs: &Needs, threads_per_block: u32, limits: Limits) -> Occupancy {
    let warps = threads_per_block.div_ceil(WARP).max(1);
    let by_registers = match needs.registers * WARP {
        0 => u32::MAX,
        // A warp's registers are of one scheduler.
        n => limits.registers / SCHEDULERS / n.next_multiple_of(REGISTER_STEP) * SCHEDULERS / warps,
    };
    let shared = (needs.shared + SHARED_SYSTEM).next_multiple_of(SHARED_STEP);
    let (blocks, limit) = [
        (limits.warps / warps, Limit::Warps),
        (limits.blocks, Limit::Blocks),
        (by_registers, Limit::Registers),
        (limits.shared / shared, Limit::Shared),
    ]
    .into_iter()
    .min_by_key(|&(blocks, _)| blocks)
    .unwrap_or((0, Limit::Blocks));
    Occupancy {
        blocks,
        warps: blocks * warps,
        occupancy: f64::from(blocks * warps) / f64::from(limits.warps),
        limit,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(architecture: &str, registers: u32, shared: u32, threads: u32) -> Occupancy {
        let needs = Needs { registers, shared, ..Needs::default() };
        occupancy(&needs, threads, Limits::of(architecture).unwrap())
    }

    /// Values of NVIDIA's occupancy calculator.
    #[test]
    fn known_occupancies() {
        for (architecture, registers, shared, threads, blocks, warps, limit) in [
            ("sm_80", 32, 0, 256, 8, 64, Limit::Warps),
            ("sm_80", 32, 0, 32, 32, 32, Limit::Blocks),
            ("sm_80", 64, 0, 256, 4, 32, Limit::Registers),
            ("sm_80", 72, 0, 128, 7, 28, Limit::Registers),
            ("sm_90", 168, 0, 128, 3, 12, Limit::Registers),
            ("sm_90", 255, 0, 128, 2, 8, Limit::Registers),
            ("sm_90", 255, 0, 32, 8, 8, Limit::Registers),
            ("sm_90", 16, 48 << 10, 128, 4, 16, Limit::Shared),
            ("sm_86", 16, 0, 96, 16, 48, Limit::Warps),
            ("sm_86", 16, 0, 64, 16, 32, Limit::Blocks),
            ("sm_89", 16, 0, 64, 24, 48, Limit::Warps),
            ("sm_89", 40, 0, 1024, 1, 32, Limit::Warps),
            ("sm_100", 128, 0, 128, 4, 16, Limit::Registers),
            ("sm_120", 16, 50 << 10, 128, 1, 4, Limit::Shared),
            ("sm_120", 255, 0, 512, 0, 0, Limit::Registers),
        ] {
            let found = of(architecture, registers, shared, threads);
            let all = Limits::of(architecture).unwrap().warps;
            assert_eq!(
                (found.blocks, found.warps, found.limit),
                (blocks, warps, limit),
                "{architecture}, {registers} registers, {shared} bytes, {threads} threads"
            );
            assert_eq!(found.occupancy, f64::from(warps) / f64::from(all));
        }
        assert_eq!(Limits::of("sm_999"), None);
    }
}
