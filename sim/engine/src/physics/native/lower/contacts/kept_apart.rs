//! Pairs of geoms that the ranges of the joints between them keep apart.
//!
//! Limits are soft: a state may be beyond its joints' ranges. So a pair counts as kept apart
//! where it is so up to [`BEYOND`] outside of them, and the kernels look at all pairs where a
//! joint is beyond that (`kernels/collide/broad.cuh`).
//!
//! The proof goes by parts of the joints' ranges. A joint that turns by an angle moves a
//! geom's points by no more than the chord at their largest distance from the joint, in any
//! position of the others. So two geoms are apart in all of a part where their distance
//! in its middle is larger than the sum of what its half widths move. Where it is not, the
//! part is cut in two across the joint that moves most.

use super::super::context::Context;
use super::candidate::Candidate;
use super::held::{Held, Placed, from_to, held, norm};
use super::shape::bound;
use crate::physics::native::tables::RobotTables;
use ostler_model::rotation::{Pose, about};
use ostler_model::{Field, GeomKind, JointKind, Vec3};
use std::collections::{BTreeMap, BTreeSet};
use std::f64::consts::FRAC_PI_2;

/// How far joints may be outside of their ranges: (rad) of hinges, a share of the range of
/// slides.
const BEYOND: f64 = 0.15;
/// Most parts of the ranges that are looked at for a pair, in turns: pairs that few parts
/// prove come first. And for all of a model: some 30 ms.
const PARTS: [usize; 4] = [1, 16, 64, 256];
const ALL_PARTS: usize = 1 << 14;
/// Most joints between two geoms, and most that a proof goes by: more have too many parts.
const JOINTS: usize = 12;
const CUT: usize = 4;
/// What distances have to be beyond for rounding in single precision (share of the sizes).
const SLACK: f64 = 1e-3;

/// Which candidates are kept apart, and the joints that have to be within their ranges.
#[derive(Debug, Default)]
pub(super) struct KeptApart {
    /// Geoms of the candidates, in their order.
    pairs: BTreeSet<[usize; 2]>,
    joints: BTreeSet<usize>,
}

impl KeptApart {
    /// Looks at all candidates.
    pub(super) fn find(c: &Context, candidates: &[Candidate]) -> Self {
        let mut found = Self::default();
        let mut left = ALL_PARTS;
        // A file may name a pair twice: the larger reach counts.
        let mut reaches: BTreeMap<[usize; 2], f64> = BTreeMap::new();
        for candidate in candidates {
            let reach = reaches.entry(candidate.geoms).or_default();
            *reach = reach.max(candidate.rules.margin + candidate.rules.gap);
        }
        let open = reaches.into_iter().filter_map(|(geoms, reach)| {
            let whole = Linkage::new(c, geoms)?;
            Some((whole.cuts(), reach, geoms))
        });
        let mut open: Vec<_> = open.collect();
        for most in PARTS {
            open.retain_mut(|(cuts, reach, geoms)| {
                let mut whole_fails = false;
                let mut proof = None;
                cuts.retain(|cut| {
                    if proof.is_some() || whole_fails {
                        return false;
                    }
                    let apart = cut.apart(*reach, most, &mut left);
                    match apart {
                        Some(true) => proof = Some(cut.clone()),
                        Some(false) => whole_fails = cut.whole,
                        None => (),
                    }
                    apart.is_none() && cut.joints.len() <= CUT
                });
                if let Some(cut) = &proof {
                    found.pairs.insert(*geoms);
                    found.joints.extend(cut.joints.iter().map(|j| j.joint));
                }
                !whole_fails && !cuts.is_empty()
            });
        }
        found
    }

    pub(super) fn holds(&self, candidate: &Candidate) -> bool {
        self.pairs.contains(&candidate.geoms)
    }

    /// Writes where the joints have to be.
    pub(super) fn write(&self, c: &Context, plan: &mut RobotTables) {
        for &j in &self.joints {
            let joint = &c.model.joints[j];
            let [lo, hi] = widened(joint.kind, joint.range.unwrap_or_default());
            plan.watch_qpos.push(joint.qpos_adr as i32);
            plan.watch_lo.push(lo);
            plan.watch_hi.push(hi);
        }
        plan.nwatch = self.joints.len();
    }
}

fn widened(kind: JointKind, [lo, hi]: [f64; 2]) -> [f64; 2] {
    let more = match kind {
        JointKind::Hinge => BEYOND,
        _ => BEYOND * (hi - lo).max(0.0),
    };
    [lo - more, hi + more]
}

/// A joint between the two geoms of a pair.
#[derive(Debug, Clone)]
struct Between {
    joint: usize,
    /// Position as modelled.
    reference: f64,
    range: [f64; 2],
    hinge: bool,
    /// Largest distance of the geom's points from a hinge (m).
    lever: f64,
}

impl Between {
    /// How far the geom's points move at most where it moves by `x`: along a chord.
    fn moves(&self, x: f64) -> f64 {
        if self.hinge { 2.0 * self.lever * (0.5 * x).min(FRAC_PI_2).sin() } else { x }
    }
}

/// A moving body between: its frame in its parent's, its joints (kind, place, axis).
#[derive(Debug, Clone)]
struct Link {
    frame: Pose,
    joints: Vec<(JointKind, Vec3, Vec3)>,
}

/// Two geoms, and the joints between them; or balls in the place of what hangs on a joint.
#[derive(Debug, Clone)]
struct Linkage {
    /// No ball is in it.
    whole: bool,
    /// Of the first geom, then of the second; from the common carrier outwards.
    links: [Vec<Link>; 2],
    joints: Vec<Between>,
    poses: [Pose; 2],
    held: [Held; 2],
    sizes: f64,
}

impl Linkage {
    /// None: something between them is not bounded.
    fn new(c: &Context, geoms: [usize; 2]) -> Option<Self> {
        let model = c.model;
        if !c.flags.limit {
            return None;
        }
        let chains = geoms.map(|g| {
            let mut bodies = Vec::new();
            let mut body = c.tree.carrier[model.geoms[g].body].body;
            while let Some(b) = body {
                bodies.push(b);
                body = c.tree.parent[b];
            }
            bodies.reverse();
            bodies
        });
        let [first, second] = &chains;
        let common = first.iter().zip(second).take_while(|(a, b)| a == b);
        let common = common.count();
        let held = [held(c, geoms[0])?, held(c, geoms[1])?];
        let poses = geoms.map(|g| {
            let geom = &model.geoms[g];
            c.tree.fixed(geom.body, geom.pos, geom.quat)
        });
        let bounds = geoms.map(|g| match model.geoms[g].kind {
            GeomKind::Plane => 0.0,
            _ => bound(model, &model.geoms[g]),
        });
        let mut joints = Vec::new();
        let mut links = [Vec::new(), Vec::new()];
        for side in 0..2 {
            let bodies = &chains[side][common..];
            let mut levers = Vec::new();
            for &b in bodies {
                let body = &model.bodies[c.tree.moving[b]];
                let frame = c.tree.fixed(body.parent, body.pos, body.quat);
                let mut link = Link { frame, joints: Vec::new() };
                // Joints before it move its origin with the frame.
                for lever in &mut levers {
                    *lever += norm(frame.pos);
                }
                for j in body.joints.clone() {
                    let joint = &model.joints[j];
                    let range = joint.range?;
                    if !matches!(joint.kind, JointKind::Hinge | JointKind::Slide)
                        || c.varies(Field::Qpos0, j)
                        || joints.len() >= JOINTS
                    {
                        return None;
                    }
                    let range = widened(joint.kind, range);
                    let hinge = joint.kind == JointKind::Hinge;
                    let far = range.map(|x| (x - joint.reference).abs());
                    // It moves the body's origin by no more.
                    let moves = if hinge { 2.0 * norm(joint.pos) } else { far[0].max(far[1]) };
                    for lever in &mut levers {
                        *lever += moves;
                    }
                    levers.push(if hinge { norm(joint.pos) } else { 0.0 });
                    link.joints.push((joint.kind, joint.pos, joint.axis));
                    joints.push(Between {
                        joint: j,
                        reference: joint.reference,
                        range,
                        hinge,
                        lever: 0.0,
                    });
                }
                links[side].push(link);
            }
            let own = joints.len() - levers.len();
            for (joint, lever) in joints[own..].iter_mut().zip(levers) {
                joint.lever = lever + norm(poses[side].pos) + bounds[side];
            }
        }
        (!joints.is_empty()).then(|| Self {
            whole: true,
            sizes: bounds[0] + bounds[1],
            links,
            joints,
            poses,
            held,
        })
    }

    /// Itself, first, and all ways to put balls around hinges that hold all that hangs on
    /// them: nothing depends on the positions of these hinges and of those behind them.
    fn cuts(self) -> Vec<Self> {
        let counts = [0, 1].map(|side| self.links[side].iter().map(|l| l.joints.len()).sum());
        let [first, second]: [usize; 2] = counts;
        let cuts = (0..=first).flat_map(|a| (0..=second).map(move |b| [a, b]));
        let mut cuts: Vec<Self> = cuts
            .filter(|keep| *keep != counts && keep[0] + keep[1] <= CUT)
            .filter_map(|keep| self.cut(keep))
            .collect();
        cuts.sort_by_key(|cut| cut.joints.len());
        cuts.insert(0, self);
        cuts
    }

    /// With balls around the first hinges of each side that are not kept.
    fn cut(&self, keep: [usize; 2]) -> Option<Self> {
        let mut cut = Self {
            whole: false,
            links: [Vec::new(), Vec::new()],
            joints: Vec::new(),
            ..self.clone()
        };
        let mut begin = 0;
        for (side, kept) in keep.into_iter().enumerate() {
            let count: usize = self.links[side].iter().map(|l| l.joints.len()).sum();
            let own = &self.joints[begin..begin + count];
            begin += count;
            let ball = own.get(kept);
            if ball.is_some_and(|joint| !joint.hinge) {
                return None;
            }
            // A ball turns in place: only its centre's distance from other joints counts.
            let radius = ball.map_or(0.0, |joint| joint.lever);
            for joint in &own[..kept] {
                let lever = joint.lever - radius;
                cut.joints.push(Between { lever, ..joint.clone() });
            }
            let mut left = kept;
            for link in &self.links[side] {
                let mut link = link.clone();
                if ball.is_some() && left < link.joints.len() {
                    cut.poses[side] = Pose { pos: link.joints[left].1, ..Pose::IDENTITY };
                    cut.held[side] = Held::Rod(0.0, radius);
                    link.joints.truncate(left);
                    cut.links[side].push(link);
                    break;
                }
                left -= link.joints.len();
                cut.links[side].push(link);
            }
        }
        Some(cut)
    }

    /// Whether no positions within the ranges bring the geoms nearer than `reach`; false where
    /// some do or may do, `None` where `most` parts, or those that are left, do not tell.
    fn apart(&self, reach: f64, most: usize, left: &mut usize) -> Option<bool> {
        let need = reach + SLACK * self.sizes;
        let mut parts = vec![self.joints.iter().map(|j| j.range).collect::<Vec<_>>()];
        let mut looks = 0;
        while let Some(part) = parts.pop() {
            looks += 1;
            if looks > most || *left == 0 {
                return None;
            }
            *left -= 1;
            let middle: Vec<f64> = part.iter().map(|[lo, hi]| 0.5 * (lo + hi)).collect();
            let gap = self.gap(&middle) - need;
            if gap.is_nan() || gap <= 0.0 {
                return Some(false);
            }
            let moves = part.iter().zip(&self.joints).map(|([lo, hi], j)| j.moves(0.5 * (hi - lo)));
            let moves: Vec<f64> = moves.collect();
            if gap > moves.iter().sum::<f64>() {
                continue;
            }
            let across = (0..moves.len()).max_by(|a, b| moves[*a].total_cmp(&moves[*b]))?;
            for half in [[part[across][0], middle[across]], [middle[across], part[across][1]]] {
                let mut part = part.clone();
                part[across] = half;
                parts.push(part);
            }
        }
        Some(true)
    }

    /// A lower bound of the geoms' distance, with the joints in these positions.
    fn gap(&self, positions: &[f64]) -> f64 {
        let mut next = positions.iter().zip(&self.joints);
        let mut place = |side: usize| {
            let mut pose = Pose::IDENTITY;
            for link in &self.links[side] {
                pose = pose.then(link.frame);
                for (kind, at, axis) in &link.joints {
                    let Some((position, joint)) = next.next() else {
                        continue;
                    };
                    let x = position - joint.reference;
                    let moved = if *kind == JointKind::Hinge {
                        let quat = about(*axis, x);
                        let turned = Pose { pos: [0.0; 3], quat }.point(*at);
                        Pose { pos: from_to(turned, *at), quat }
                    } else {
                        Pose { pos: axis.map(|a| a * x), quat: Pose::IDENTITY.quat }
                    };
                    pose = pose.then(moved);
                }
            }
            Placed::new(&self.held[side], pose.then(self.poses[side]))
        };
        let first = place(0);
        let second = place(1);
        first.gap(&second)
    }
}
