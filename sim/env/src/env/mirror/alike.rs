//! Which column of numbers is which other, up to the sign.

use std::ops::Range;

/// A larger difference, as a share of the spread, is no rounding and no robot's small asymmetry.
pub(super) const MOST: f64 = 0.2;

/// A column and its sign.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Entry {
    pub index: usize,
    pub sign: f32,
}

/// A column that is no other.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Unlike {
    /// Its place in the range.
    pub entry: usize,
    /// How far the nearest is.
    pub share: f64,
}

/// Rows of numbers of a batch and of its reflection.
#[derive(Debug, Clone, Default)]
pub(super) struct Columns {
    /// By column, then row.
    own: Vec<Vec<f32>>,
    reflected: Vec<Vec<f32>>,
}

impl Columns {
    pub(super) fn new(width: usize) -> Self {
        Self { own: vec![Vec::new(); width], reflected: vec![Vec::new(); width] }
    }

    pub(super) fn width(&self) -> usize {
        self.own.len()
    }

    pub(super) fn rows(&self) -> usize {
        self.own.first().map_or(0, Vec::len)
    }

    /// Adds a row of both.
    pub(super) fn push(&mut self, own: &[f32], reflected: &[f32]) {
        let columns = self.own.iter_mut().zip(&mut self.reflected);
        for ((a, b), (x, y)) in columns.zip(own.iter().zip(reflected)) {
            a.push(*x);
            b.push(*y);
        }
    }

    /// How far the reflected column `k` is from `entry`, in shares of their spread; columns of one
    /// number are the same or not.
    pub(super) fn apart(&self, k: usize, entry: Entry) -> f64 {
        let (a, b) = (&self.own[entry.index], &self.reflected[k]);
        let (spread, size) = (spread(a).max(spread(b)), size(a).max(size(b)));
        let gap = a.iter().zip(b).map(|(x, y)| f64::from((entry.sign * x - y).abs()));
        let gap = gap.sum::<f64>() / a.len().max(1) as f64;
        // Rounding of a number that stays.
        match gap <= 1e-5 * size {
            true => 0.0,
            false => gap / spread.max(1e-12),
        }
    }

    /// Whether a column is the same in all rows of both.
    pub(super) fn stays(&self, k: usize) -> bool {
        [&self.own[k], &self.reflected[k]].iter().all(|x| spread(x) <= 1e-6 * size(x))
    }

    /// What a reflected column is to rounding: itself first.
    pub(super) fn same_as(&self, k: usize) -> Option<Entry> {
        let order = std::iter::once(k).chain((0..self.width()).filter(|j| *j != k));
        let mut each = order.flat_map(|index| [1.0, -1.0].map(|sign| Entry { index, sign }));
        each.find(|entry| self.apart(k, *entry) == 0.0)
    }

    /// What each column of a range is in the reflection, and how far the worst one is from it; no
    /// farther than `most`. Columns that stay the same are what is `told` of them.
    pub(super) fn exchanged(
        &self,
        range: Range<usize>,
        most: f64,
        told: &[Option<Entry>],
    ) -> Result<(Vec<Entry>, f64), Unlike> {
        let mut found: Vec<Option<Entry>> = vec![None; range.len()];
        for (place, entry) in told.iter().enumerate() {
            let (k, Some(entry)) = (range.start + place, entry) else { continue };
            let there = Entry { index: range.start + entry.index, ..*entry };
            let back = Entry { index: place, ..*entry };
            let both = told.get(entry.index) == Some(&Some(back));
            if both && self.stays(k) && self.stays(there.index) && self.apart(k, there) == 0.0 {
                found[place] = Some(there);
            }
        }
        let mut worst = 0.0f64;
        for k in range.clone() {
            let place = k - range.start;
            if found[place].is_some() {
                continue;
            }
            // Itself first; then those that nobody is yet.
            let rest = range.clone().filter(|j| *j != k && found[*j - range.start].is_none());
            let order = std::iter::once(k).chain(rest);
            let each = order.flat_map(|index| [1.0, -1.0].map(|sign| Entry { index, sign }));
            let mut best: Option<(Entry, f64)> = None;
            for entry in each {
                let back = Entry { index: k, sign: entry.sign };
                let share = self.apart(k, entry).max(match entry.index == k {
                    true => 0.0,
                    false => self.apart(entry.index, back),
                });
                // Of columns that are equally near the first one.
                if best.is_none_or(|(_, least)| share < 0.5 * least && share < least - 1e-4) {
                    best = Some((entry, share));
                }
                if share == 0.0 {
                    break;
                }
            }
            let Some((entry, share)) = best.filter(|(_, share)| *share < most) else {
                let share = best.map_or(1.0, |(_, share)| share);
                return Err(Unlike { entry: place, share });
            };
            worst = worst.max(share);
            found[place] = Some(entry);
            found[entry.index - range.start] = Some(Entry { index: k, sign: entry.sign });
        }
        let found: Vec<Entry> = found.into_iter().flatten().collect();
        Ok((found, worst))
    }

    /// The mean of all columns' distances from themselves.
    pub(super) fn mean_apart(&self) -> f64 {
        let each = (0..self.width()).map(|k| self.apart(k, Entry { index: k, sign: 1.0 }).min(2.0));
        each.sum::<f64>() / self.width().max(1) as f64
    }
}

/// Mean distance from the mean.
fn spread(x: &[f32]) -> f64 {
    let n = x.len().max(1) as f64;
    let mean = x.iter().map(|x| f64::from(*x)).sum::<f64>() / n;
    x.iter().map(|x| (f64::from(*x) - mean).abs()).sum::<f64>() / n
}

/// Mean size.
fn size(x: &[f32]) -> f64 {
    x.iter().map(|x| f64::from(x.abs())).sum::<f64>() / x.len().max(1) as f64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_find_each_other() {
        let mut rows = Columns::new(5);
        for i in 0..50u32 {
            let [a, b, c] = [0.37, 0.71, 1.3].map(|k| (k * i as f32).sin());
            // A pair that is exchanged and turned over, a sign, a constant, nothing.
            rows.push(&[a, b, c, 0.25, 0.0], &[-b, -a, -c, 0.25, 0.0]);
        }
        let (found, worst) = rows.exchanged(0..5, MOST, &[]).unwrap();
        let found: Vec<_> = found.iter().map(|e| (e.index, e.sign)).collect();
        assert_eq!(found, [(1, -1.0), (0, -1.0), (2, -1.0), (3, 1.0), (4, 1.0)]);
        assert_eq!(worst, 0.0);
        assert!(rows.exchanged(1..5, MOST, &[]).is_err(), "its counterpart is not among them");
        // Of those that stay the same what is told holds, if both say so.
        let told = |a, b| [None, None, None, Some(Entry { index: a, sign: 1.0 }), b];
        let both = told(4, Some(Entry { index: 3, sign: 1.0 }));
        let other = rows.exchanged(0..5, MOST, &both).unwrap().0;
        assert_eq!(other[3].index, 3, "their numbers differ");
        let mut rows = Columns::new(5);
        (0..9u8)
            .map(f32::from)
            .for_each(|a| rows.push(&[a, -a, a, 0.0, 0.0], &[-a, a, a, 0.0, 0.0]));
        assert_eq!(rows.exchanged(0..5, MOST, &both).unwrap().0[3].index, 4);
        assert_eq!(rows.exchanged(0..5, MOST, &told(4, None)).unwrap().0[3].index, 3);
    }
}
