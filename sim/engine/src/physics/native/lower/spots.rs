//! Frames that tendons and actuators use: sites, and geoms that strings wind around.

use super::context::Context;
use crate::physics::native::tables::RobotTables;
use ostler_model::rotation::Pose;
use std::collections::{BTreeMap, HashMap};

/// A frame fixed to a moving body or to the world.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct FixedFrame {
    /// The moving body; `None` for the world.
    pub body: Option<usize>,
    /// Its pose there.
    pub pose: Pose,
}

impl FixedFrame {
    pub(crate) fn site(c: &Context, site: usize) -> Self {
        let site = &c.model.sites[site];
        Self {
            body: c.tree.carrier[site.body].body,
            pose: c.tree.fixed(site.body, site.pos, site.quat),
        }
    }

    pub(crate) fn geom(c: &Context, geom: usize) -> Self {
        let geom = &c.model.geoms[geom];
        Self {
            body: c.tree.carrier[geom.body].body,
            pose: c.tree.fixed(geom.body, geom.pos, geom.quat),
        }
    }

    /// Degrees of freedom that move it.
    pub(crate) fn chain(&self, c: &Context) -> Vec<usize> {
        c.tree.chain(self.body)
    }
}

/// The spots of a plan, each once.
#[derive(Debug, Clone, Default)]
pub(super) struct FixedFrames {
    list: Vec<FixedFrame>,
    /// Where they are in the list.
    known: HashMap<Key, usize>,
}

/// A spot's body, and the bits of its position and quaternion.
type Key = (Option<usize>, [u64; 7]);

fn key(spot: &FixedFrame) -> Key {
    let [x, y, z] = spot.pose.pos;
    let [w, a, b, c] = spot.pose.quat;
    // Minus zero is zero.
    (spot.body, [x, y, z, w, a, b, c].map(|n| (n + 0.0).to_bits()))
}

impl FixedFrames {
    /// Index of a spot in the tables.
    pub(crate) fn index(&mut self, spot: FixedFrame) -> i32 {
        let next = self.list.len();
        let at = *self.known.entry(key(&spot)).or_insert(next);
        if at == next {
            self.list.push(spot);
        }
        at as i32
    }

    pub(crate) fn write(&self, plan: &mut RobotTables) {
        for spot in &self.list {
            plan.spot_body.push(spot.body.map_or(-1, |b| b as i32));
            plan.spot_pos.extend(spot.pose.pos);
            plan.spot_quat.extend(spot.pose.quat);
        }
    }
}

/// The tree about whose reference points are computed: that of the first spot that
/// moves; -1 where none does.
pub(super) fn tree(plan: &RobotTables, spots: &[FixedFrame]) -> i32 {
    let body = spots.iter().find_map(|s| s.body);
    body.map_or(-1, |b| plan.body_tree[b])
}

/// Degrees of freedom that move any of `spots`, ascending, each with the sum of
/// 1, 2, 4, .. for the first, second, third, .. of them.
pub(super) fn movers(c: &Context, spots: &[FixedFrame]) -> Vec<(usize, i32)> {
    let mut movers: BTreeMap<usize, i32> = BTreeMap::new();
    for (k, spot) in spots.iter().enumerate() {
        for dof in spot.chain(c) {
            *movers.entry(dof).or_default() |= 1 << k;
        }
    }
    movers.into_iter().collect()
}
