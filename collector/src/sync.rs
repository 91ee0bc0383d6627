//! Collects in the caller's thread: policy and environments take turns.
//!
//! ```text
//! SyncCollector::new(env: BatchEnv, steps: i64, policy: &dyn Policy, seed: u64) -> Result<Self, CollectError>
//! ```

/// The synchronous collector.
#[derive(Debug)]
pub struct SyncCollector;
