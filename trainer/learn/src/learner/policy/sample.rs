//! Drawing actions in the host's memory.

use ostler_collector::{Act, memory::with_floats};
use ostler_sim::math::exp;
use tch::Tensor;

/// `mean + std * noise` from `mean [N,A]`, the standard deviation's logarithm (`[A]`, or for each
/// row `[N,A]`) and `noise [N,A]`, with mean and standard deviation beside it. `false`, and nothing
/// is done, where a tensor is not the host's.
pub(super) fn gaussian(mean: &Tensor, log_std: &Tensor, noise: &Tensor, out: &Act<'_>) -> bool {
    let read = [mean, log_std, noise];
    let written = [out.action, out.dist, out.std];
    let draw = |[mean, log_std, noise]: [&[f32]; 3], [action, dist, std]: [&mut [f32]; 3]| {
        let len = mean.len();
        let sizes = [noise.len(), action.len(), dist.len(), std.len()];
        if log_std.is_empty() || len % log_std.len() != 0 || sizes != [len; 4] {
            return false;
        }
        dist.copy_from_slice(mean);
        let mut rows = std.chunks_exact_mut(log_std.len());
        if let Some(first) = rows.next() {
            for (std, log) in first.iter_mut().zip(log_std) {
                *std = exp(*log);
            }
            rows.for_each(|row| row.copy_from_slice(first));
        }
        for (action, (mean, (std, noise))) in
            action.iter_mut().zip(mean.iter().zip(std.iter().zip(noise)))
        {
            *action = mean + noise * std;
        }
        true
    };
    // SAFETY: the inputs were written by the pass and by the collector, the outputs are a part
    // of its rollout; the closure works on plain numbers alone.
    let drawn = unsafe { with_floats(read, written, draw) };
    drawn == Some(true)
}
