//! Drawing actions in the host's memory.

use super::actor::Explore;
use crate::learner::nn::activation::Activation;
use crate::learner::nn::host::Vectors;
use ostler_collector::{Act, memory::with_floats};
use ostler_sim::math::exp;
use tch::Tensor;

/// Actions within `-bound..bound` from `mean [N,A]` and `noise [N,A]`. `spread` is the
/// logarithm of the standard deviation `[N,A]` or, for [`Explore::Added`], the standard
/// deviation in units of the bound `[N,1]`. `false`, and nothing is done, where a tensor is not
/// the host's.
pub(super) fn explore(
    explore: Explore,
    bound: f64,
    (mean, spread): (&Tensor, &Tensor),
    noise: &Tensor,
    out: &Act<'_>,
) -> bool {
    let vectors = Vectors::widest();
    let bound = bound as f32;
    let (read, written) = ([mean, spread, noise], [out.action, out.dist, out.std]);
    let draw = |[mean, spread, noise]: [&[f32]; 3], [action, dist, std]: [&mut [f32]; 3]| {
        let len = mean.len();
        let sizes = [noise.len(), action.len(), dist.len(), std.len()];
        if spread.is_empty() || len % spread.len() != 0 || sizes != [len; 4] {
            return false;
        }
        dist.copy_from_slice(mean);
        let each = len / spread.len();
        for (std, spread) in std.chunks_exact_mut(each).zip(spread) {
            std.fill(match explore {
                Explore::Squashed => exp(*spread),
                Explore::Added { .. } => spread * bound,
            });
        }
        let noise = noise.iter().zip(&*std);
        match explore {
            Explore::Squashed => {
                for (action, (mean, (noise, std))) in action.iter_mut().zip(mean.iter().zip(noise))
                {
                    *action = mean + noise * std;
                }
                vectors.activate(Activation::Tanh, action);
                action.iter_mut().for_each(|x| *x *= bound);
            }
            Explore::Added { .. } => {
                action.copy_from_slice(mean);
                vectors.activate(Activation::Tanh, action);
                for (action, (noise, std)) in action.iter_mut().zip(noise) {
                    *action = (*action * bound + noise * std).clamp(-bound, bound);
                }
            }
        }
        true
    };
    // SAFETY: the inputs were written by the pass and by the collector, the outputs are a part
    // of its rollout; the closure works on plain numbers alone.
    let drawn = unsafe { with_floats(read, written, draw) };
    drawn == Some(true)
}

#[cfg(test)]
mod tests {
    use super::*;
    use ostler_sim::rng::{Purpose, fill_normal};
    use tch::{Device, Kind};

    #[test]
    fn actions_are_those_of_libtorchs_operations() {
        let normal = |stream: u64, n: i64, width: i64| {
            let mut x = vec![0.0; (n * width) as usize];
            fill_normal(stream, 0..n as u32, Purpose::Replay, 0, width as usize, &mut x);
            Tensor::from_slice(&x).view([n, width])
        };
        let (mean, noise) = (normal(1, 37, 3), normal(2, 37, 3));
        let [action, dist, std] =
            [0; 3].map(|_| Tensor::zeros([37, 3], (Kind::Float, Device::Cpu)));
        let out = Act { action: &action, dist: &dist, std: &std, hidden: None };
        let near = |a: &Tensor, b: &Tensor| {
            let error = (a - b).abs().max().double_value(&[]);
            assert!(error < 2e-6, "{error}");
        };
        let log_std = normal(3, 37, 3);
        let parts = (&mean, &log_std);
        assert!(explore(Explore::Squashed, 1.5, parts, &noise, &out));
        near(&std, &log_std.exp());
        near(&action, &((&mean + &noise * log_std.exp()).tanh() * 1.5));
        assert_eq!(dist, mean);
        let scale = normal(4, 37, 1).abs();
        let added = Explore::Added { min: 0.0, max: 1.0 };
        assert!(explore(added, 1.5, (&mean, &scale), &noise, &out));
        near(&std, &(&scale * 1.5).expand([37, 3], false));
        let expected = mean.tanh() * 1.5 + &noise * &scale * 1.5;
        near(&action, &expected.clamp(-1.5, 1.5));
        let gaps = normal(5, 37, 6).narrow(1, 0, 3);
        assert!(!explore(added, 1.5, (&mean, &scale), &gaps, &out));
    }
}
