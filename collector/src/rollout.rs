//! T steps of N environments, allocated once.

use crate::CollectError;
use ostler_sim::Groups;
use ostler_sim::env::EnvSpec;
use tch::Tensor;

/// Buffers of one rollout. Float32 unless noted; allocated once, written in place.
///
/// A transition `t` is (`obs[t]`, `action[t]`) -> (`reward[t]`, flags, `obs[t+1]`),
/// where `obs[t+1]` is already that of the next episode if one ended.
#[derive(Debug)]
pub struct Rollout {
    /// Steps, `T`.
    pub steps: i64,
    /// Environments, `N`.
    pub envs: i64,
    /// Raw observations `[T+1,N,O]`.
    pub obs: Groups<Tensor>,
    /// Actions as the policy gave them `[T,N,A]`.
    pub action: Tensor,
    /// Mean or logits `[T,N,D]`.
    pub dist: Tensor,
    /// Standard deviation `[T,N,A]`.
    pub std: Tensor,
    /// Rewards `[T,N]`.
    pub reward: Tensor,
    /// 1 where the task ended `[T,N]`.
    pub terminated: Tensor,
    /// 1 where time ran out `[T,N]`.
    pub truncated: Tensor,
    /// 0 where the environment broke `[T,N]`.
    pub valid: Tensor,
    /// Last observations of truncated episodes `[K,N,O]`.
    pub final_obs: Groups<Tensor>,
    /// Row of `final_obs` of the truncation at `[T,N]`, -1 for none; int32.
    pub final_slot: Tensor,
}

impl Rollout {
    /// Allocates for `steps` steps.
    pub fn new(_spec: &EnvSpec, _steps: i64, _dist_width: i64) -> Result<Self, CollectError> {
        todo!()
    }
}
