//! Random numbers for actions.

use crate::policy::Noise;
use ostler_sim::rng::{Purpose, fill_normal, fill_uniform};

/// Fills `out` `[N][width]` with the noise of one step, keyed by (seed, environment,
/// step): the same whatever the other environments do. `first` is the global id of the
/// first of them.
pub(crate) fn fill(out: &mut [f32], width: usize, kind: Noise, seed: u64, first: u32, step: u64) {
    let count = out.len() / width.max(1);
    let ids = first..first.wrapping_add(count as u32);
    match kind {
        Noise::Uniform => fill_uniform(seed, ids, Purpose::ActionNoise, step, width, out),
        Noise::Normal => fill_normal(seed, ids, Purpose::ActionNoise, step, width, out),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_environments_noise_does_not_depend_on_how_many_there_are() {
        let (mut few, mut many) = ([0.0; 10], [0.0; 35]);
        fill(&mut few, 5, Noise::Normal, 3, 0, 9);
        fill(&mut many, 5, Noise::Normal, 3, 0, 9);
        assert_eq!(few, many[..10]);
        let mut part = [0.0; 10];
        fill(&mut part, 5, Noise::Normal, 3, 4, 9);
        assert_eq!(part, many[20..30], "keyed by the global id");
        let mut later = [0.0; 10];
        fill(&mut later, 5, Noise::Normal, 3, 0, 10);
        assert!(few.iter().zip(&later).all(|(a, b)| a != b));
    }

    #[test]
    fn moments_are_those_of_the_distribution() {
        let n = 40_000;
        for (kind, mean, var) in [(Noise::Normal, 0.0, 1.0), (Noise::Uniform, 0.5, 1.0 / 12.0)] {
            let mut x = vec![0.0f32; n];
            fill(&mut x, 5, kind, 1, 0, 2);
            let m = x.iter().map(|&x| f64::from(x)).sum::<f64>() / n as f64;
            let v = x.iter().map(|&x| (f64::from(x) - m).powi(2)).sum::<f64>() / n as f64;
            // Five standard errors of the mean; of the variance (kurtosis 3 or 1.8).
            assert!((m - mean).abs() < 5.0 * (var / n as f64).sqrt(), "{kind:?} {m}");
            assert!((v - var).abs() < 5.0 * var * (2.0 / n as f64).sqrt(), "{kind:?} {v}");
        }
    }
}
