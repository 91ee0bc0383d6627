//! Sums over priorities, so that one is found by its share of the whole.
//!
//! A tree of 16 children per node: a node fits into two cache lines, and a million leaves
//! are five levels. Nodes are recomputed from all their children, in order, so that they
//! depend on the leaves alone and not on the history of updates.

use ostler_sim::memory::{MemoryError, zeroed};

const WAYS: usize = 16;

/// Leaves with a value of 0 or more, and the smallest of those above 0.
#[derive(Debug, Clone, PartialEq)]
pub struct SumTree {
    /// From the leaves to the root; each a multiple of `WAYS` long.
    sums: Vec<Vec<f64>>,
    /// Smallest value above 0 below each node; infinite where there is none. Without leaves:
    /// they are in `sums`.
    least: Vec<Vec<f64>>,
    leaves: usize,
    /// Nodes whose children changed.
    touched: Vec<u32>,
}

impl SumTree {
    /// With so many leaves, all 0.
    ///
    /// # Errors
    /// No room.
    pub fn new(leaves: usize) -> Result<Self, MemoryError> {
        let (mut sums, mut least) = (Vec::new(), Vec::new());
        let mut n = leaves.max(1);
        loop {
            let padded = n.div_ceil(WAYS) * WAYS;
            sums.push(zeroed("priorities of the replay buffer", padded)?);
            n = padded / WAYS;
            let mut smallest = zeroed("priorities of the replay buffer", n)?;
            smallest.fill(f64::INFINITY);
            least.push(smallest);
            if n == 1 {
                break;
            }
        }
        Ok(Self { sums, least, leaves, touched: Vec::new() })
    }

    /// Sum of all leaves.
    pub fn total(&self) -> f64 {
        self.sums.last().map_or(0.0, |top| top.iter().sum())
    }

    /// The smallest leaf above 0, infinite where all are 0.
    pub fn least(&self) -> f64 {
        self.least.last().and_then(|l| l.first()).copied().unwrap_or(f64::INFINITY)
    }

    /// A leaf.
    pub fn get(&self, leaf: usize) -> f64 {
        self.sums[0][leaf]
    }

    /// Sets leaves; of several values for one the last counts. `old` sees each leaf with its
    /// value before. Values are finite and 0 or more.
    pub fn set(
        &mut self,
        values: impl Iterator<Item = (usize, f64)>,
        mut old: impl FnMut(usize, f64),
    ) {
        self.touched.clear();
        for (leaf, value) in values {
            if leaf >= self.leaves {
                continue;
            }
            old(leaf, self.sums[0][leaf]);
            self.sums[0][leaf] = value;
            let node = (leaf / WAYS) as u32;
            if self.touched.last() != Some(&node) {
                self.touched.push(node);
            }
        }
        for level in 0..self.least.len() {
            self.touched.sort_unstable();
            self.touched.dedup();
            for &node in &self.touched {
                let children = WAYS * node as usize..WAYS * (node as usize + 1);
                let sum = self.sums[level][children.clone()].iter().sum();
                let least = match level {
                    0 => smallest_above_0(&self.sums[0][children]),
                    _ => {
                        let below = &self.least[level - 1];
                        let end = children.end.min(below.len());
                        below[children.start..end].iter().copied().fold(f64::INFINITY, f64::min)
                    }
                };
                self.least[level][node as usize] = least;
                if let Some(above) = self.sums.get_mut(level + 1) {
                    above[node as usize] = sum;
                }
            }
            for node in &mut self.touched {
                *node /= WAYS as u32;
            }
        }
    }

    /// The leaf in whose share of the whole `at` (0 up to the total) lies; never one of 0
    /// unless all are.
    pub fn find(&self, at: f64) -> usize {
        let (mut at, mut node) = (at, 0);
        for level in self.sums.iter().rev() {
            let children = &level[WAYS * node..WAYS * (node + 1)];
            let mut chosen = None;
            for (i, &share) in children.iter().enumerate() {
                if share <= 0.0 {
                    continue;
                }
                chosen = Some(i);
                if at < share {
                    break;
                }
                at -= share;
            }
            // Rounding may leave something behind the last share: it is the last one's.
            node = WAYS * node + chosen.unwrap_or(0);
        }
        node.min(self.leaves.saturating_sub(1))
    }

    /// All leaves.
    pub fn leaves(&self) -> &[f64] {
        &self.sums[0][..self.leaves]
    }
}

fn smallest_above_0(values: &[f64]) -> f64 {
    values.iter().copied().filter(|&v| v > 0.0).fold(f64::INFINITY, f64::min)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn it_does_what_a_list_does(
            leaves in 1_usize..700,
            updates in prop::collection::vec(prop::collection::vec((0_usize..700, 0_u32..50), 1..40), 1..8),
            shares in prop::collection::vec(0.0_f64..1.0, 20),
        ) {
            let mut tree = SumTree::new(leaves).unwrap();
            let mut list = vec![0.0_f64; leaves];
            for update in &updates {
                let update: Vec<_> = update.iter().map(|&(i, v)| (i % leaves, f64::from(v))).collect();
                let mut undo = Vec::new();
                let (before, kept) = (tree.clone(), list.clone());
                tree.set(update.iter().copied(), |leaf, value| undo.push((leaf, value)));
                for &(i, v) in &update {
                    list[i] = v;
                }
                prop_assert_eq!(tree.leaves(), &list[..]);
                // Whole numbers: sums are exact in any order.
                prop_assert_eq!(tree.total(), list.iter().sum::<f64>());
                prop_assert_eq!(tree.least(), smallest_above_0(&list));
                for share in &shares {
                    let at = share * tree.total();
                    let mut rest = at;
                    let expected = list.iter().position(|&v| {
                        let here = rest < v;
                        rest -= v;
                        here
                    });
                    if let Some(expected) = expected {
                        prop_assert_eq!(tree.find(at), expected);
                    }
                }
                let mut back = tree.clone();
                back.set(undo.into_iter().rev(), |_, _| ());
                prop_assert_eq!(back.leaves(), &kept[..]);
                prop_assert_eq!(&back.sums, &before.sums, "the same bits");
                prop_assert_eq!(&back.least, &before.least);
            }
        }
    }

    #[test]
    fn what_rounding_leaves_behind_the_end_is_the_last_leafs() {
        let mut tree = SumTree::new(40).unwrap();
        tree.set([(3, 0.1), (17, 0.2)].into_iter(), |_, _| ());
        assert_eq!(tree.find(1.0), 17);
        assert_eq!(tree.find(0.0), 3);
        assert_eq!(SumTree::new(5).unwrap().find(0.0), 0, "nothing there");
    }
}
