//! The mean over seeds and how well it is known.

use serde::Serialize;
use statrs::distribution::{ContinuousCDF, StudentsT};

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
/// sample's deviation `s` (divisor n - 1). `None` without values, or where one is not
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

/// What an interval says about a threshold from below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Against {
    /// All of it is at least the threshold.
    Above,
    /// The threshold is within it.
    Within,
    /// All of it is less.
    Below,
}

impl Interval {
    /// Compares with a threshold; one value is simply compared.
    pub fn against(&self, threshold: f64) -> Against {
        let (low, high) = (
            self.low.unwrap_or(self.mean),
            self.high.unwrap_or(self.mean),
        );
        if low >= threshold {
            Against::Above
        } else if high < threshold {
            Against::Below
        } else {
            Against::Within
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

    /// Half the width for values with deviation √n: the quantile itself.
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
        assert_eq!(i.against(7.5), Against::Above);
        assert_eq!(i.against(7.6), Against::Within);
        assert_eq!(i.against(12.4), Against::Within);
        assert_eq!(i.against(12.5), Against::Below);
    }

    #[test]
    fn one_value_is_compared_and_none_or_nan_says_nothing() {
        let i = interval(&[3.0], 0.95).unwrap();
        assert_eq!((i.low, i.high), (None, None));
        assert_eq!(i.against(3.0), Against::Above);
        assert_eq!(i.against(3.1), Against::Below);
        assert_eq!(interval(&[], 0.95), None);
        assert_eq!(interval(&[1.0, f64::NAN], 0.95), None);
        let same = interval(&[5.0, 5.0, 5.0], 0.95).unwrap();
        assert_eq!(same.against(5.0), Against::Above);
    }

    #[test]
    fn the_median_is_in_the_middle() {
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[3.0, 1.0, 9.0]), Some(3.0));
        assert_eq!(median(&[4.0, 1.0, 9.0, 3.0]), Some(3.5));
    }
}
