//! Drawing actions in the host's memory.

use super::actor::Explore;
use crate::learner::nn::activation::Activation;
use crate::learner::nn::host::Vectors;
use ostler_collector::{Act, memory::with_floats};
use ostler_sim::math::exp;
use tch::Tensor;

/// Actions within `-bound..bound [A]` from `mean [N,A]` and `noise [N,A]`. `spread` is the
/// logarithm of the standard deviation `[N,A]` or, for [`Explore::Added`], the standard
/// deviation in units of the bound `[N,1]`. `false`, and nothing is done, where a tensor is not
/// the host's.
pub(super) fn explore(
    explore: Explore,
    bound: &[f32],
    (mean, spread): (&Tensor, &Tensor),
    noise: &Tensor,
    out: &Act<'_>,
) -> bool {
    let vectors = Vectors::widest();
    let drawn = matches!(explore, Explore::Squashed { .. });
    let (read, written) = ([mean, spread, noise], [out.action, out.dist, out.std]);
    let draw = |[mean, spread, noise]: [&[f32]; 3], [action, dist, std]: [&mut [f32]; 3]| {
        let len = mean.len();
        let sizes = [noise.len(), action.len(), dist.len(), std.len()];
        let rows = len / bound.len().max(1);
        let fits = spread.len() == if drawn { len } else { rows };
        if !fits || len != rows * bound.len() || sizes != [len; 4] {
            return false;
        }
        dist.copy_from_slice(mean);
        match drawn {
            true => std.iter_mut().zip(spread).for_each(|(std, log)| *std = exp(*log)),
            false => {
                for (std, spread) in std.chunks_exact_mut(bound.len()).zip(spread) {
                    std.iter_mut().zip(bound).for_each(|(std, bound)| *std = spread * bound);
                }
            }
        }
        let bounds = bound.iter().cycle();
        let noise = noise.iter().zip(&*std);
        match explore {
            Explore::Squashed { .. } => {
                for (action, (mean, (noise, std))) in action.iter_mut().zip(mean.iter().zip(noise))
                {
                    *action = mean + noise * std;
                }
                vectors.activate(Activation::Tanh, action);
                action.iter_mut().zip(bounds).for_each(|(x, bound)| *x *= bound);
            }
            Explore::Added { .. } => {
                action.copy_from_slice(mean);
                vectors.activate(Activation::Tanh, action);
                for ((action, (noise, std)), &bound) in action.iter_mut().zip(noise).zip(bounds) {
                    *action = (*action * bound + noise * std).clamp(-bound, bound);
                }
            }
        }
        true
    };
    // SAFETY: the inputs were written by the pass and by the collector, the outputs are a part
    // of its rollout; the closure works on plain numbers alone.
    let done = unsafe { with_floats(read, written, draw) };
    done == Some(true)
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
        let (squashed, bound) = (Explore::Squashed { tanh_std: false }, [1.5, 0.5, 2.0]);
        let bounds = Tensor::from_slice(&bound);
        assert!(explore(squashed, &bound, parts, &noise, &out));
        near(&std, &log_std.exp());
        near(&action, &((&mean + &noise * log_std.exp()).tanh() * &bounds));
        assert_eq!(dist, mean);
        let scale = normal(4, 37, 1).abs();
        let added = Explore::Added { min: 0.0, max: 1.0 };
        assert!(explore(added, &bound, (&mean, &scale), &noise, &out));
        near(&std, &(&scale * &bounds));
        let expected = mean.tanh() + &noise * &scale;
        near(&action, &(expected.clamp(-1.0, 1.0) * &bounds));
        let gaps = normal(5, 37, 6).narrow(1, 0, 3);
        assert!(!explore(added, &bound, (&mean, &scale), &gaps, &out));
    }
}
