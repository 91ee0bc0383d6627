//! Means, quantiles and their confidence intervals: over the episodes of one policy, and
//! over the seeds of one task.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};
use statrs::statistics::{Data, OrderStatistics};

/// Resamples of a bootstrap; rliable's default for point estimates.
const RESAMPLES: usize = 2000;
/// Seed of the resamples, so that the same values have the same interval.
const BOOTSTRAP_SEED: u64 = 2021;

/// A mean and its interval.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Interval {
    /// Number of values.
    pub n: usize,
    /// Their mean.
    pub mean: f64,
    /// Lower bound; none with one value.
    pub low: Option<f64>,
    /// Upper bound; none with one value.
    pub high: Option<f64>,
    /// How sure: 0.95 for a 95 % interval.
    pub confidence: f64,
}

/// The two-sided interval of the mean by Student's t distribution: `mean ± t s / √n`
/// with the `(1 + confidence) / 2` quantile of `n - 1` degrees of freedom and the
/// sample's standard deviation `s` (divisor n - 1). `None` without values, or where one is not
/// finite.
pub fn interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let n = values.len();
    if n == 0 || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let mean = values.iter().sum::<f64>() / n as f64;
    let half = match n {
        1 => None,
        _ => {
            let free = (n - 1) as f64;
            let squares: f64 = values.iter().map(|v| (v - mean).powi(2)).sum();
            let t = StudentsT::new(0.0, 1.0, free).ok()?;
            Some(t.inverse_cdf(0.5 + confidence / 2.0) * (squares / free / n as f64).sqrt())
        }
    };
    Some(Interval {
        n,
        mean,
        low: half.map(|h| mean - h),
        high: half.map(|h| mean + h),
        confidence,
    })
}

/// Mean, spread and worst part of the returns of one policy's episodes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Episodes {
    /// Number of episodes.
    pub n: usize,
    /// Mean return.
    pub mean: f64,
    /// Standard deviation of the returns (divisor n).
    pub std: f64,
    /// Half the width of the 95 % confidence interval of the mean, by Student's t
    /// distribution; 0 with one episode, of which no interval is known.
    pub ci95: f64,
    /// Return below which the worst 5 % of the episodes are.
    pub quantile_5: f64,
}

impl Episodes {
    /// Summarises returns; all numbers are NaN without any.
    pub fn of(returns: &[f64]) -> Self {
        let n = returns.len() as f64;
        let mean = returns.iter().sum::<f64>() / n;
        let variance = returns.iter().map(|r| (r - mean).powi(2)).sum::<f64>() / n;
        let half = interval(returns, 0.95).and_then(|i| Some(i.high? - i.mean));
        Self {
            n: returns.len(),
            mean,
            std: variance.sqrt(),
            ci95: half.unwrap_or(if returns.len() == 1 { 0.0 } else { f64::NAN }),
            quantile_5: quantile(returns, 0.05),
        }
    }

    /// Standard error of the mean: the sample's standard deviation (divisor n - 1) over
    /// the root of n.
    pub fn standard_error(&self) -> f64 {
        self.std / ((self.n as f64) - 1.0).max(1.0).sqrt()
    }
}

/// The `share` quantile, 0..1, between neighbouring values in proportion (type 8 of
/// Hyndman and Fan 1996); NaN without values.
pub fn quantile(values: &[f64], share: f64) -> f64 {
    match values.is_empty() {
        true => f64::NAN,
        false => Data::new(values.to_vec()).quantile(share),
    }
}

/// The interquartile mean: the mean of the rest when a quarter of the values, rounded
/// down, is taken away at either end. One seed that failed or excelled does not move it,
/// and it uses more values than a median (Agarwal et al. 2021, "Deep Reinforcement
/// Learning at the Edge of the Statistical Precipice"; `trim_mean(x, 0.25)` there). NaN
/// without values; the plain mean of three and fewer.
pub fn interquartile_mean(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let cut = sorted.len() / 4;
    let kept = &sorted[cut..sorted.len() - cut];
    kept.iter().sum::<f64>() / kept.len() as f64
}

/// The interquartile mean over seeds, with its interval.
///
/// The bounds are quantiles of the interquartile means of 2,000 resamples of the seeds,
/// drawn with replacement: the percentile bootstrap of Agarwal et al. 2021. Their strata
/// are tasks; these are the seeds of one task, which is one stratum. Of fewer than some
/// ten seeds the interval is too narrow, as resamples hold no seed that was not seen.
///
/// `None` without values, or where one is not finite; without bounds for one value.
pub fn interquartile(values: &[f64], confidence: f64) -> Option<Interval> {
    let n = values.len();
    if n == 0 || values.iter().any(|v| !v.is_finite()) {
        return None;
    }
    let bounds = (n > 1).then(|| {
        let mut rng = fastrand::Rng::with_seed(BOOTSTRAP_SEED);
        let resampled = (0..RESAMPLES).map(|_| {
            let drawn: Vec<f64> = (0..n).map(|_| values[rng.usize(..n)]).collect();
            interquartile_mean(&drawn)
        });
        let mut means = Data::new(resampled.collect::<Vec<f64>>());
        let outside = (1.0 - confidence) / 2.0;
        (means.quantile(outside), means.quantile(1.0 - outside))
    });
    Some(Interval {
        n,
        mean: interquartile_mean(values),
        low: bounds.map(|b| b.0),
        high: bounds.map(|b| b.1),
        confidence,
    })
}

/// Where an interval lies beside a threshold from below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AgainstThreshold {
    /// All of it is at least the threshold.
    Above,
    /// The threshold is within it.
    Within,
    /// All of it is less.
    Below,
}

impl Interval {
    /// Compares with a threshold; one value is simply compared.
    pub fn against(&self, threshold: f64) -> AgainstThreshold {
        let (low, high) = (self.low.unwrap_or(self.mean), self.high.unwrap_or(self.mean));
        if low >= threshold {
            AgainstThreshold::Above
        } else if high < threshold {
            AgainstThreshold::Below
        } else {
            AgainstThreshold::Within
        }
    }
}

/// The middle value, or the mean of the two in the middle; `None` without values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let n = sorted.len();
    let at = |i: usize| sorted.get(i).copied();
    match n % 2 {
        0 => Some((at((n / 2).checked_sub(1)?)? + at(n / 2)?) / 2.0),
        _ => at(n / 2),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half the width for values with standard deviation √n: the quantile itself.
    fn quantile(n: usize, confidence: f64) -> f64 {
        let free = (n - 1) as f64;
        // One value apart from all others: squares sum to free * n.
        let a = (n as f64 * free * n as f64 / free).sqrt();
        let mut values = vec![0.0; n];
        values[0] = a;
        let i = interval(&values, confidence).unwrap();
        i.high.unwrap() - i.mean
    }

    #[test]
    fn intervals_have_the_quantiles_of_the_printed_tables() {
        // Abramowitz and Stegun, Handbook of Mathematical Functions, table 26.10.
        for (n, confidence, t) in [
            (2, 0.95, 12.706),
            (3, 0.95, 4.303),
            (5, 0.95, 2.776),
            (6, 0.90, 2.015),
            (11, 0.99, 3.169),
            (31, 0.95, 2.042),
        ] {
            let got = quantile(n, confidence);
            assert!((got - t).abs() < 6e-4, "n {n}: {got} instead of {t}");
        }
    }

    #[test]
    fn an_interval_is_above_below_or_within() {
        let i = interval(&[9.0, 10.0, 11.0], 0.95).unwrap();
        assert!((i.mean - 10.0).abs() < 1e-12);
        // 4.303 / √3
        assert!((i.low.unwrap() - 7.516).abs() < 1e-3, "{i:?}");
        assert_eq!(i.against(7.5), AgainstThreshold::Above);
        assert_eq!(i.against(7.6), AgainstThreshold::Within);
        assert_eq!(i.against(12.4), AgainstThreshold::Within);
        assert_eq!(i.against(12.5), AgainstThreshold::Below);
    }

    #[test]
    fn one_value_is_compared_and_none_or_nan_says_nothing() {
        let i = interval(&[3.0], 0.95).unwrap();
        assert_eq!((i.low, i.high), (None, None));
        assert_eq!(i.against(3.0), AgainstThreshold::Above);
        assert_eq!(i.against(3.1), AgainstThreshold::Below);
        assert_eq!(interval(&[], 0.95), None);
        assert_eq!(interval(&[1.0, f64::NAN], 0.95), None);
        let same = interval(&[5.0, 5.0, 5.0], 0.95).unwrap();
        assert_eq!(same.against(5.0), AgainstThreshold::Above);
    }

    #[test]
    fn the_worst_episodes_are_seen_beside_mean_and_deviation() {
        // 95 good episodes and 5 that failed: the mean hardly tells.
        let mut returns = vec![100.0; 95];
        returns.extend([0.0; 5]);
        let e = Episodes::of(&returns);
        assert_eq!((e.n, e.mean), (100, 95.0));
        // sqrt(0.05 * 95^2 + 0.95 * 5^2)
        assert!((e.std - 475_f64.sqrt()).abs() < 1e-9, "{e:?}");
        assert!((e.standard_error() - (475_f64 / 99.0).sqrt()).abs() < 1e-9);
        // t of 99 degrees of freedom is 1.984.
        let half = 1.984 * e.standard_error();
        assert!((e.ci95 - half).abs() < 1e-3 * half, "{e:?}");
        // R: quantile(c(rep(100, 95), rep(0, 5)), 0.05, type = 8) is 35.
        assert!((e.quantile_5 - 35.0).abs() < 1e-9, "{e:?}");
        let one = Episodes::of(&[3.0]);
        assert_eq!((one.mean, one.ci95, one.quantile_5), (3.0, 0.0, 3.0));
        assert!(Episodes::of(&[]).mean.is_nan());
    }

    #[test]
    fn the_interquartile_mean_leaves_a_quarter_out_at_either_end() {
        // scipy.stats.trim_mean(x, 0.25)
        assert_eq!(interquartile_mean(&[9.0, 1.0, 2.0, 3.0, -50.0]), 2.0);
        assert_eq!(interquartile_mean(&[8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 100.0]), 5.5);
        assert_eq!(interquartile_mean(&[1.0, 2.0, 6.0]), 3.0);
        assert!(interquartile_mean(&[]).is_nan());
    }

    #[test]
    fn resampled_seeds_bound_the_interquartile_mean() {
        let values: Vec<f64> = (0..100).map(f64::from).collect();
        let i = interquartile(&values, 0.95).unwrap();
        assert_eq!((i.n, i.mean), (100, 49.5));
        // For a large uniform sample of width w the 25 % trimmed mean has the standard
        // error w * sqrt((1/96 + 1/32) / (1/4) / n) = 0.0408 w: 1.96 of them are 8.0.
        let half = (i.high.unwrap() - i.low.unwrap()) / 2.0;
        assert!((half - 8.0).abs() < 0.8, "{i:?}");
        assert_eq!(interquartile(&values, 0.95).unwrap(), i);
        // One seed that failed moves neither much.
        let mut failed = values.clone();
        failed[99] = -1e6;
        let j = interquartile(&failed, 0.95).unwrap();
        assert!((j.mean - i.mean).abs() < 2.0 && j.low.unwrap() > 30.0, "{j:?}");
        let one = interquartile(&[4.0], 0.95).unwrap();
        assert_eq!((one.mean, one.low, one.high), (4.0, None, None));
        assert_eq!(interquartile(&[1.0, f64::NAN], 0.95), None);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 9.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 9.0, 3.0]), Some(3.5));
    }
}
