//! Static geoms that are too many to be looked at one by one: each body goes down a tree of boxes
//! around them (`kernels/collide/broad.cuh`).

use super::super::context::Context;
use super::candidate::Candidate;
use super::groups::{self, Side};
use super::shape::half_sizes;
use crate::physics::native::tables::RobotTables;
use ostler_base::boxes::{Bounds, Tree};
use ostler_model::Geom;
use ostler_model::rotation::matrix;
use std::collections::BTreeMap;

/// Fewer pairs are no crowd.
const MANY: usize = 512;
/// What boxes are larger by (share of their places in the world), for rounding in single
/// precision.
const SLACK: f64 = 1e-5;

/// Static geoms with an end, and boxes in the world that hold them; none where they are few.
pub(super) struct Crowd(BTreeMap<usize, Bounds>);

/// A group of pairs: of a static geom and of the body with this sphere.
pub(super) struct Leaf {
    pub ball: i32,
    pub still: usize,
    pub group: i32,
    /// As `knot_near`.
    pub near: f64,
}

/// The crowd of the pairs with static geoms.
pub(super) fn find(c: &Context, world: &[&Candidate]) -> Crowd {
    let sides = world.iter().map(|pair| groups::key(c, pair));
    // As `place_geoms` of the kernels has it.
    let has_end = |g: usize| !c.model.geoms[g].kind.is_ground();
    let still: Vec<usize> = sides
        .filter_map(|[first, _]| match first {
            Side::Static(g) if has_end(g) => Some(g),
            _ => None,
        })
        .collect();
    let many = still.len() >= MANY;
    let held = still.into_iter().filter(|_| many);
    Crowd(held.map(|g| (g, around(c, &c.model.geoms[g]))).collect())
}

/// A box in the world that holds a static geom.
fn around(c: &Context, geom: &Geom) -> Bounds {
    let pose = c.tree.fixed(geom.body, geom.pos, geom.quat);
    let (axes, half) = (matrix(pose.quat), half_sizes(c.model, geom));
    let reach = |k: usize| (0..3).map(|i| (axes[k][i] * half[i]).abs()).sum::<f64>();
    [-1.0, 1.0].map(|sign| {
        [0, 1, 2].map(|k| {
            let slack = SLACK * (pose.pos[k].abs() + reach(k));
            pose.pos[k] + sign * (reach(k) + slack)
        })
    })
}

impl Crowd {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(super) fn holds(&self, sides: [Side; 2]) -> bool {
        matches!(sides[0], Side::Static(g) if self.0.contains_key(&g))
    }

    /// Writes a tree for each body, one behind the other.
    pub(super) fn write(&self, leaves: &mut [Leaf], plan: &mut RobotTables) {
        leaves.sort_by_key(|leaf| leaf.ball);
        for own in leaves.chunk_by(|a, b| a.ball == b.ball) {
            let bounds: Vec<Bounds> = own.iter().map(|leaf| self.0[&leaf.still]).collect();
            let near = own.iter().map(|leaf| leaf.near).fold(0.0, f64::max);
            let (tree, first) = (Tree::new(&bounds, 1), plan.knot_ball.len());
            for node in &tree.nodes {
                let item = node.items.clone().next();
                plan.knot_ball.push(own[0].ball);
                plan.knot_group.push(item.map_or(-1, |i| own[tree.order[i]].group));
                plan.knot_end.push((first + node.next) as i32);
                plan.knot_box.extend(node.bounds.concat());
                plan.knot_near.push(near);
            }
        }
        plan.nknot = plan.knot_ball.len();
    }
}

#[cfg(test)]
mod tests {
    use crate::physics::native::lower::tests::plan;
    use crate::physics::native::tables::RobotTables;
    use std::fmt::Write;

    fn arena(statics: usize) -> RobotTables {
        let mut boxes = String::new();
        for k in 0..statics {
            let (x, y) = (k % 31, k / 31);
            let _ = write!(
                boxes,
                "<geom type=\"box\" size=\"0.2 0.3 0.1\" pos=\"{x} {y} 0\" euler=\"0 0 {k}\"/>"
            );
        }
        let text = format!(
            "<worldbody><geom type=\"plane\" size=\"0 0 1\"/>{boxes}<body><freejoint/>\
             <geom size=\"0.1\"/><body><joint/><geom size=\"0.1\" pos=\"1 0 0\"/></body></body>\
             </worldbody>"
        );
        plan(&text)
    }

    #[test]
    fn each_body_has_a_tree_of_all_groups_of_its_crowd() {
        let plan = arena(500);
        assert_eq!((plan.npair, plan.ncrowd, plan.nknot), (1002, 1000, 2 * 999));
        let mut groups: Vec<i32> = plan.knot_group.iter().copied().filter(|g| *g >= 0).collect();
        groups.sort_unstable();
        assert_eq!(groups, (0..1000).collect::<Vec<_>>());
        for k in 0..plan.nknot {
            let end = plan.knot_end[k] as usize;
            assert!(end > k && end <= plan.nknot);
            let same = (k..end).all(|inner| plan.knot_ball[inner] == plan.knot_ball[k]);
            assert!(same, "one body's tree ends in another's");
        }
        let few = arena(200);
        assert_eq!((few.npair, few.ncrowd, few.nknot), (402, 0, 0));
    }
}
