//! Arguments of kernels of environments: `EnvArgs` of `sim/kernels/env/args.cuh`, pointers as
//! addresses.

use super::stats::StatAddresses;
use crate::device::{Address, MAX_ARGUMENTS};
use crate::physics::StepArgs;
use crate::state::{EpisodeAddresses, SizeWords, StepBufferAddresses, TableAddresses};
use bytemuck::{Pod, Zeroable};

/// `EnvArgs`.
#[derive(Debug, Clone, Copy, Zeroable)]
#[repr(C)]
pub(crate) struct EnvArgs {
    pub physics: StepArgs,
    pub n: i32,
    pub first_env: u32,
    pub seed: u64,
    pub clock: u64,
    pub noisy: u32,
    pub spread: u32,
    pub events: u32,
    pub _reserved: u32,
    pub since: u32,
    pub only_new: u32,
    pub episode: EpisodeAddresses,
    pub buffers: StepBufferAddresses,
    pub tables: TableAddresses,
    pub size: SizeWords,
    pub number: Address,
    pub stats: StatAddresses,
    pub tally: Address,
    pub last_ret: Address,
    pub broken: Address,
    pub breaks: Address,
    pub actions: Address,
    pub obs: Address,
    pub critic_obs: Address,
    pub reward: Address,
    pub terminated: Address,
    pub truncated: Address,
    pub valid: Address,
    pub final_obs: Address,
    pub final_critic: Address,
    pub slots: i32,
    pub _padding: i32,
    pub final_slot: Address,
    pub noise: Address,
    pub noise_width: i32,
    pub noise_normal: u32,
    pub noise_seed: u64,
    pub noise_step: u64,
    pub partial: Address,
    pub chunks: i32,
    pub _padding_2: i32,
    pub total: Address,
    pub from: Address,
    pub to: Address,
    pub words: i64,
}

const _: () = assert!(size_of::<EnvArgs>() <= MAX_ARGUMENTS);

// SAFETY: four- and eight-byte numbers; where eight follow an odd number of four, the
// padding is a field of its own, so there are no bytes without a value (the size is
// held against the sum of the fields below).
unsafe impl Pod for EnvArgs {}

const _: () = assert!(
    size_of::<EnvArgs>()
        == size_of::<StepArgs>()
            + size_of::<EpisodeAddresses>()
            + size_of::<StepBufferAddresses>()
            + size_of::<TableAddresses>()
            + size_of::<SizeWords>()
            + size_of::<StatAddresses>()
            + (8 + 16 + 24 + 14 * 8 + 8 + 16 + 8 + 16 + 8 + 8 + 8 + 24)
);
