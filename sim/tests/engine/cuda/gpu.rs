//! On a real GPU, where there is one.

use super::work;
use crate::support::need::Need;
use ostler_sim::device::cuda::Cuda;
use std::sync::Arc;

/// The GPU; `None` after saying that the calling test is skipped.
fn gpu() -> Option<Arc<Cuda>> {
    Need::Gpu.or_skip(Cuda::open(0))
}

#[test]
fn a_gpu_keeps_the_order_of_launches_and_copies() {
    let Some(cuda) = gpu() else { return };
    work::launches_and_copies_keep_their_order(&cuda);
    work::uploads_are_independent_of_what_becomes_of_their_bytes(&cuda);
    work::arguments_of_another_length_are_refused(&cuda);
}

#[test]
fn a_gpu_goes_on_after_it_ran_out_of_memory() {
    use ostler_sim::device::Memory;
    let Some(cuda) = gpu() else { return };
    let error = cuda.memory().zeroed("far too much", 1 << 50).unwrap_err();
    assert_eq!((error.what.as_str(), error.bytes), ("far too much", 1 << 50));
    work::launches_and_copies_keep_their_order(&cuda);
}
