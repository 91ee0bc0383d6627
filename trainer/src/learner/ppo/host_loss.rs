//! [`loss`](super::loss::loss) on the host's memory: one pass over the samples instead
//! of fifty operations on columns of them. The formulae are the same, and so are their
//! sources.

use super::batch::{Columns, MiniBatch};
use super::config::{AdvantageNorm, PpoConfig, ValueLoss};
use super::loss::{CLIP_FRACTION, ENTROPY, HALF_LN_TAU, KL, STATS, SURROGATE, VALUE};
use crate::learner::LearnError;
use ostler_collector::memory::HostRows;
use ostler_sim::math::{exp, ln};
use tch::Tensor;

/// Views of a minibatch's tensors; good for as long as none of them is replaced.
#[derive(Debug)]
pub struct HostLoss {
    columns: Columns,
    packed: HostRows<f32>,
    dist: HostRows<f32>,
    value: HostRows<f32>,
    d_dist: HostRows<f32>,
    d_value: HostRows<f32>,
    /// Of a Gaussian policy.
    deviation: Option<Deviation>,
    stats: HostRows<f32>,
}

#[derive(Debug)]
struct Deviation {
    log_std: HostRows<f32>,
    /// `1 / std`, an entry for each of `log_std`.
    inv_std: Vec<f32>,
    d_log_std: HostRows<f32>,
    /// Entries from one sample's to the next one's: 0 if all have the same.
    stride: usize,
}

/// What the policy says about one sample.
struct Eval {
    log_prob: f32,
    entropy: f32,
    kl: f32,
}

impl HostLoss {
    /// Over a minibatch; the means go into `stats [STATS]`.
    pub fn new(mb: &MiniBatch, columns: Columns, stats: &Tensor) -> Result<Self, LearnError> {
        let space = &mb.space;
        // SAFETY: a minibatch's tensors and the statistics begin as zeros, the deviation as a
        // parameter; what is written overlaps nothing else of these. `run` alone borrows
        // slices, and calls nothing of libtorch's but for addresses.
        unsafe {
            let deviation = match &mb.std {
                None => None,
                Some(_) => Some(Deviation {
                    log_std: HostRows::new(&space.log_std)?,
                    inv_std: vec![0.0; space.log_std.numel()],
                    d_log_std: HostRows::new(&space.d_log_std)?,
                    stride: match space.log_std.dim() {
                        1 => 0,
                        _ => columns.action as usize,
                    },
                }),
            };
            Ok(Self {
                columns,
                packed: HostRows::new(&mb.packed)?,
                dist: HostRows::new(&space.dist)?,
                value: HostRows::new(&space.value)?,
                d_dist: HostRows::new(&space.d_dist)?,
                d_value: HostRows::new(&space.d_value)?,
                deviation,
                stats: HostRows::new(stats)?,
            })
        }
    }

    /// Writes gradients and means as [`loss`](super::loss::loss) does. Samples that are
    /// not valid have no gradient, whatever they hold. Without `policy` only what concerns
    /// values is worked out.
    pub fn run(
        &mut self,
        config: &PpoConfig,
        policy: bool,
        value_clip: f32,
    ) -> Result<(), LearnError> {
        let (actions, dists) = (self.columns.action as usize, self.columns.dist as usize);
        let stds = self.columns.std as usize;
        let width = self.columns.total() as usize;
        let packed = self.packed.all()?;
        let (dist, value) = (self.dist.all()?, self.value.all()?);
        let (d_dist, d_value) = (self.d_dist.all_mut()?, self.d_value.all_mut()?);
        let mut deviation = match &mut self.deviation {
            Some(d) => {
                let log_std = d.log_std.all()?;
                for (inv, log) in d.inv_std.iter_mut().zip(log_std) {
                    *inv = exp(-log);
                }
                Some(((log_std, &d.inv_std[..]), d.d_log_std.all_mut()?, d.stride))
            }
            None => None,
        };
        let tail =
            |row: &[f32]| -> [f32; 6] { std::array::from_fn(|i| row[actions + dists + stds + i]) };
        let (n, mean, scale) = advantages(config, packed.chunks_exact(width).map(tail));
        let coef = config.entropy_coef as f32;
        let (low, high) = (
            (1.0 - config.clip_param) as f32,
            (1.0 + config.clip_param) as f32,
        );
        let mut sums = [0.0_f64; STATS];
        for (b, row) in packed.chunks_exact(width).enumerate() {
            let [old_log_prob, advantage, returns, old_value, valid, share] = tail(row);
            let weight = valid / n;
            let d_dist = &mut d_dist[b * dists..(b + 1) * dists];
            let dist = &dist[b * dists..(b + 1) * dists];
            let old = &row[actions..actions + dists];
            if valid == 0.0 && n > 0.0 {
                d_dist.fill(0.0);
                d_value[b] = 0.0;
                if let Some((_, d_log_std, _)) = &mut deviation {
                    d_log_std[b * actions..(b + 1) * actions].fill(0.0);
                }
                continue;
            }
            let (value_loss, slope) =
                value_loss(config, value_clip, [value[b], old_value, returns]);
            d_value[b] = slope * config.value_loss_coef as f32 * weight;
            sums[VALUE] += f64::from(value_loss * weight);
            if !policy {
                // NaN without a valid sample.
                sums[CLIP_FRACTION] += f64::from(0.0 * weight);
                continue;
            }
            // Factors of the gradients are left in their places.
            let eval = match &mut deviation {
                Some(((log_std, inv_std), d_log_std, stride)) => gaussian(
                    &row[..actions],
                    (old, &row[actions + dists..][..stds]),
                    (
                        dist,
                        &log_std[b * *stride..][..actions],
                        &inv_std[b * *stride..][..actions],
                    ),
                    (d_dist, &mut d_log_std[b * actions..(b + 1) * actions]),
                ),
                None => categorical(row[0] as usize, old, dist, d_dist),
            };
            let advantage = (advantage - mean) * scale * share;
            let ratio = exp(eval.log_prob - old_log_prob);
            let clipped = ratio.clamp(low, high);
            let (free, bound) = (-advantage * ratio, -advantage * clipped);
            let (surrogate, d_log_prob) = match free >= bound {
                true => (free, free * weight),
                false => (bound, 0.0),
            };
            let d_entropy = -coef * weight;
            match &mut deviation {
                Some((_, d_log_std, _)) => {
                    d_dist.iter_mut().for_each(|d| *d *= d_log_prob);
                    for d in &mut d_log_std[b * actions..(b + 1) * actions] {
                        *d = *d * d_log_prob + d_entropy;
                    }
                }
                None => {
                    let choice = row[0] as usize;
                    for (k, d) in d_dist.iter_mut().enumerate() {
                        let (log_p, p) = (*d, exp(*d));
                        let chosen = f32::from(u8::from(k == choice));
                        *d = (chosen - p) * d_log_prob - p * (log_p + eval.entropy) * d_entropy;
                    }
                }
            }
            let outside = f32::from(u8::from(ratio != clipped));
            let mut add = |at: usize, x: f32| sums[at] += f64::from(x * weight);
            add(KL, eval.kl);
            add(CLIP_FRACTION, outside);
            add(SURROGATE, surrogate);
            add(ENTROPY, eval.entropy);
        }
        let stats = self.stats.all_mut()?.iter_mut();
        stats.zip(sums).for_each(|(to, x)| *to = x as f32);
        Ok(())
    }
}

/// Valid samples, and what an advantage is shifted and multiplied by.
fn advantages(config: &PpoConfig, rows: impl Iterator<Item = [f32; 6]> + Clone) -> (f32, f32, f32) {
    let mut n = 0.0_f64;
    let mut sum = 0.0_f64;
    for [_, advantage, _, _, valid, _] in rows.clone() {
        n += f64::from(valid);
        sum += f64::from(advantage * valid);
    }
    if config.normalize_advantage != AdvantageNorm::MiniBatch {
        return (n as f32, 0.0, 1.0);
    }
    let mean = (sum / n) as f32;
    let squares: f64 = rows
        .map(|[_, advantage, _, _, valid, _]| f64::from((advantage - mean).powi(2) * valid))
        .sum();
    let deviation = (squares / (n - 1.0).max(1.0)).sqrt();
    (n as f32, mean, (1.0 / (deviation + 1e-8)) as f32)
}

/// `old`: mean and deviation; `new`: mean, logarithm and inverse of the deviation.
/// Leaves `z / std` in `d_dist` and `z^2 - 1` in `d_log_std`.
fn gaussian(
    action: &[f32],
    old: (&[f32], &[f32]),
    new: (&[f32], &[f32], &[f32]),
    gradient: (&mut [f32], &mut [f32]),
) -> Eval {
    let half_ln_tau = HALF_LN_TAU as f32;
    let mut eval = Eval {
        log_prob: 0.0,
        entropy: 0.0,
        kl: 0.0,
    };
    for (k, &action) in action.iter().enumerate() {
        let (mean, log_std, inv_std) = (new.0[k], new.1[k], new.2[k]);
        let z = (action - mean) * inv_std;
        eval.log_prob += -0.5 * z * z - log_std - half_ln_tau;
        eval.entropy += log_std + 0.5 + half_ln_tau;
        let (shift, shrink) = ((old.0[k] - mean) * inv_std, old.1[k] * inv_std);
        eval.kl += 0.5 * (shift * shift + shrink * shrink) - ln(shrink) - 0.5;
        gradient.0[k] = z * inv_std;
        gradient.1[k] = z * z - 1.0;
    }
    eval
}

/// Leaves the log-probabilities in `d_dist`.
fn categorical(choice: usize, old: &[f32], new: &[f32], d_dist: &mut [f32]) -> Eval {
    let (log_norm, old_norm) = (log_sum_exp(new), log_sum_exp(old));
    let mut eval = Eval {
        log_prob: f32::NAN,
        entropy: 0.0,
        kl: 0.0,
    };
    for (k, d) in d_dist.iter_mut().enumerate() {
        let (log_p, old_log_p) = (new[k] - log_norm, old[k] - old_norm);
        eval.entropy -= exp(log_p) * log_p;
        eval.kl += (old_log_p - log_p) * exp(old_log_p);
        if k == choice {
            eval.log_prob = log_p;
        }
        *d = log_p;
    }
    eval
}

fn log_sum_exp(x: &[f32]) -> f32 {
    let most = x.iter().copied().fold(f32::NEG_INFINITY, f32::max);
    most + ln(x.iter().map(|x| exp(x - most)).sum::<f32>())
}

/// Loss and its slope.
fn value_loss(config: &PpoConfig, clip: f32, [new, old, returns]: [f32; 3]) -> (f32, f32) {
    let point = |error: f32| match config.value_loss {
        ValueLoss::Mse => (error * error, 2.0 * error),
        ValueLoss::Huber => {
            let slope = error.clamp(-1.0, 1.0);
            ((error - 0.5 * slope) * slope, slope)
        }
    };
    let (loss, slope) = point(new - returns);
    if !config.use_clipped_value_loss {
        return (loss, slope);
    }
    let moved = new - old;
    let held = moved.clamp(-clip, clip);
    let (held_loss, _) = point(old + held - returns);
    let slope = match loss >= held_loss || moved == held {
        true => slope,
        false => 0.0,
    };
    (if loss >= held_loss { loss } else { held_loss }, slope)
}
