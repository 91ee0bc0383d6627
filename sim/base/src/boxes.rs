//! Trees of boxes along the axes, by which what is near is found among much.

use std::ops::Range;

/// Least and greatest corner.
pub type Bounds = [[f64; 3]; 2];

/// The box that holds two.
fn both(a: Bounds, b: Bounds) -> Bounds {
    let least = [0, 1, 2].map(|k| a[0][k].min(b[0][k]));
    [least, [0, 1, 2].map(|k| a[1][k].max(b[1][k]))]
}

/// The box that holds points; none of none.
pub fn around(points: impl IntoIterator<Item = [f64; 3]>) -> Option<Bounds> {
    points.into_iter().map(|p| [p, p]).reduce(both)
}

/// A box of a [`Tree`].
#[derive(Debug, Clone, PartialEq)]
pub struct Node {
    pub bounds: Bounds,
    /// The node to go on with for who has no business in this one.
    pub next: usize,
    /// Places in [`Tree::order`]; none of one that has nodes of its own, which follow.
    pub items: Range<usize>,
}

/// Boxes in boxes, in the order in which they are walked.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Tree {
    pub nodes: Vec<Node>,
    /// The numbers of what the leaves hold.
    pub order: Vec<usize>,
}

impl Tree {
    /// A tree of `bounds`, with at most `most` (1 or more) of them in a leaf: cut in halves at the
    /// middle one along the longest side of the box around all centres.
    ///
    /// Source: Ericson, Real-Time Collision Detection, 2005, 6.2.1 and 6.6.2.
    pub fn new(bounds: &[Bounds], most: usize) -> Self {
        let mut tree = Self { nodes: Vec::new(), order: (0..bounds.len()).collect() };
        tree.grow(bounds, 0..bounds.len(), most.max(1));
        tree
    }

    fn grow(&mut self, bounds: &[Bounds], items: Range<usize>, most: usize) {
        let own = &mut self.order[items.clone()];
        let Some(all) = own.iter().map(|i| bounds[*i]).reduce(both) else { return };
        let node = self.nodes.len();
        if items.len() <= most {
            self.nodes.push(Node { bounds: all, next: node + 1, items });
            return;
        }
        let middle = |i: usize, k: usize| bounds[i][0][k] + bounds[i][1][k];
        let centres = own.iter().map(|i| [0, 1, 2].map(|k| middle(*i, k)));
        let [low, high] = around(centres).unwrap_or_default();
        let side = |k: usize| high[k] - low[k];
        let longest = (1..3).fold(0, |best, k| if side(k) > side(best) { k } else { best });
        let half = own.len() / 2;
        own.select_nth_unstable_by(half, |a, b| {
            // One order, also of equal ones.
            middle(*a, longest).total_cmp(&middle(*b, longest)).then(a.cmp(b))
        });
        let cut = items.start + half;
        self.nodes.push(Node { bounds: all, next: 0, items: 0..0 });
        self.grow(bounds, items.start..cut, most);
        self.grow(bounds, cut..items.end, most);
        self.nodes[node].next = self.nodes.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tree_holds_all_in_boxes_within_boxes() {
        let at = |k: usize| [(k * 37 % 101) as f64, (k * 53 % 89) as f64, (k % 7) as f64];
        let bounds: Vec<Bounds> = (0..500).map(|k| [at(k), at(k).map(|x| x + 0.5)]).collect();
        let tree = Tree::new(&bounds, 4);
        let mut held = 0;
        for (k, node) in tree.nodes.iter().enumerate() {
            assert!(node.next > k && node.next <= tree.nodes.len() && node.items.len() <= 4);
            let inner = tree.nodes[k..node.next].iter().map(|n| n.bounds);
            let leaves = tree.order[node.items.clone()].iter().map(|i| bounds[*i]);
            assert!(inner.chain(leaves).all(|b| both(node.bounds, b) == node.bounds));
            // A leaf has no nodes of its own, and the others two.
            assert_eq!(node.items.is_empty(), node.next > k + 1);
            held += node.items.len();
        }
        let mut order = tree.order.clone();
        order.sort_unstable();
        assert_eq!((held, order), (500, (0..500).collect()));
        assert_eq!(Tree::new(&[], 4), Tree::default());
    }
}
