//! General constraint rows: equality constraints, limits and dry friction of
//! tendons, limits of ball joints.
//!
//! An ITEM makes one row (connect: 3, weld: 6) from the state. Its Jacobian entries
//! are stored: row r has entries `row_adr[r] .. row_adr[r+1]`, for the degrees of
//! freedom `row_dof`, ascending and without repetition; all rows of an item have
//! the same ones. Two lists of (`ipath_entry`, `ipath_dof`) say which entries
//! belong to what the item joins: list 1 is `item_path[2i] .. item_path[2i+1]`,
//! list 2 goes on to `item_path[2i+2]`; `ipath_entry` counts within the row. An
//! entry that is in both lists gets the sum.
//!
//! | kind | list 1, list 2 | `item_int` (4) | `item_real` (16) |
//! |---|---|---|---|
//! | 0 joint equality | dof of joint 1; of joint 2 | qpos 1, qpos 2 (-1 none) | c0..c4, then the joints' references |
//! | 1 tendon equality | dofs of tendon 1; 2, in the order of `ten_adr` | tendon 1, tendon 2 (-1 none) | c0..c4, then the lengths in the initial pose |
//! | 2 connect | dofs that move body 1; body 2 | moving body 1, 2 (-1 static) | 0: anchor on body 1, 3: anchor on body 2 |
//! | 3 weld | as connect | as connect | 0: anchor on body 1, 3: on body 2, 6: quaternion A, 10: quaternion B, 14: torquescale |
//! | 4 tendon limit | dofs of the tendon; none | tendon | least and greatest length (+-1e30 none) |
//! | 5 tendon friction | as 4 | tendon | (`row_loss`) |
//! | 6 ball limit | its three dofs; none | first qpos, first dof | greatest angle |
//!
//! Positions r and Jacobians J (MuJoCo, Computation, "Constraint model"):
//! - 0, 1: `r = p1 - ref1 - (c0 + c1 d + .. + c4 d^4)`, `d = p2 - ref2`;
//!   `J = dp1 - (c1 + 2 c2 d + .. + 4 c4 d^3) dp2`; without a second, `r = p1 - ref1 - c0`.
//! - 2: `r = x1 - x2` for the anchors in the world, `J = dx1 - dx2`.
//! - 3: the first three rows as 2; with `e = conj(q2 B) (q1 A)`, q1 and q2 the moving
//!   bodies' orientations (one for the world), the others are `torquescale * vec(e)`
//!   and `J = torquescale / 2 vec(conj(q2 B) (w1 - w2) (q1 A))` for angular
//!   velocities w.
//! - 2, 3: the impedance is that of the norm of all the item's positions, and the
//!   reference acceleration is less by `dJ/dt v`.
//! - 4: as the limit of a joint: `r = length - least`, `J = dlength` below,
//!   `r = greatest - length`, `J = -dlength` above.
//! - 5: `J = dlength`.
//! - 6: `r = greatest - angle`, `J = -axis` of the rotation away from the joint's
//!   initial orientation.

use super::context::{Context, MAX_ENTRIES};
use super::error::LowerError;
use super::soft::{Soft, Spec};
use super::tendons::Tendons;
use super::vary::Weigh;
use crate::kernels;
use crate::physics::native::tables::RobotTables;
use ostler_model::rotation::mul;
use ostler_model::{Equality, EqualityKind, JointKind, Quat, Vec3};

/// Numbers of an item.
const INTS: usize = 4;
const REALS: usize = 16;

/// One item before it is written.
struct Item {
    kind: i32,
    /// Degrees of freedom of the two things it joins.
    lists: [Vec<usize>; 2],
    ints: [i32; 2],
    reals: Vec<f64>,
    row_kind: i32,
    loss: f64,
    /// One per row.
    soft: Vec<Soft>,
    /// Inverse weights that each row's softness is made of, one per row.
    weigh: Vec<[Option<Weigh>; 2]>,
}

/// Facts about the items that other parts of the lowering need.
#[derive(Default)]
pub(super) struct Written {
    /// The bodies of the model that each item holds together; none for other items.
    pub held: Vec<Option<[usize; 2]>>,
    /// The inverse weights that the softness of each row is made of.
    pub weigh: Vec<[Option<Weigh>; 2]>,
}

/// Writes all items, in MuJoCo's order: equality, dry friction, limits.
pub(super) fn write(
    c: &Context,
    tendons: &Tendons,
    plan: &mut RobotTables,
) -> Result<Written, LowerError> {
    plan.row_adr.push(0);
    plan.item_path.push(0);
    let mut out = Written::default();
    if c.flags.equality {
        for equality in c.model.equalities.iter().filter(|e| e.active) {
            if let Some(item) = equality_item(c, tendons, equality)? {
                out.weigh.extend(item.write(plan));
                bounded(plan)?;
                out.held.push(match equality.kind {
                    EqualityKind::Connect { body1, body2, .. }
                    | EqualityKind::Weld { body1, body2, .. } => Some([body1, body2]),
                    _ => None,
                });
            }
        }
    }
    if c.flags.frictionloss {
        tendon_friction(c, tendons, plan, &mut out);
    }
    if c.flags.limit {
        ball_limits(c, plan, &mut out)?;
        tendon_limits(c, tendons, plan, &mut out)?;
    }
    plan.nrow = plan.row_kind.len();
    plan.nitem = plan.item_kind.len();
    plan.nrowj = plan.row_dof.len();
    out.held.resize(plan.nitem, None);
    Ok(out)
}

/// Constraints can be many and each can hold all that moves.
fn bounded(plan: &RobotTables) -> Result<(), LowerError> {
    match plan.row_dof.len() > MAX_ENTRIES {
        true => Err(LowerError::new(
            format!("more than {MAX_ENTRIES} degrees of freedom in all constraints together"),
            "use fewer equality constraints and tendons, or shorter chains",
        )),
        false => Ok(()),
    }
}

impl Item {
    /// Writes it; returns the inverse weights of its rows.
    fn write(self, plan: &mut RobotTables) -> Vec<[Option<Weigh>; 2]> {
        let mut dofs = self.lists.concat();
        dofs.sort_unstable();
        dofs.dedup();
        plan.item_kind.push(self.kind);
        plan.item_row.push(plan.row_kind.len() as i32);
        plan.item_int.extend(self.ints);
        plan.item_int.extend([0; INTS - 2]);
        plan.item_real.extend(&self.reals);
        plan.item_real.extend(vec![0.0; REALS.saturating_sub(self.reals.len())]);
        for list in &self.lists {
            for dof in list {
                let entry = dofs.partition_point(|d| d < dof);
                plan.ipath_entry.push(entry as i32);
                plan.ipath_dof.push(*dof as i32);
            }
            plan.item_path.push(plan.ipath_dof.len() as i32);
        }
        for soft in self.soft {
            plan.row_kind.push(self.row_kind);
            plan.row_loss.push(self.loss);
            plan.row_soft.extend(soft);
            plan.row_dof.extend(dofs.iter().map(|d| *d as i32));
            plan.row_adr.push(plan.row_dof.len() as i32);
        }
        self.weigh
    }
}

/// An equality constraint, unless it joins bodies that cannot move apart.
fn equality_item(
    c: &Context,
    tendons: &Tendons,
    equality: &Equality,
) -> Result<Option<Item>, LowerError> {
    let of = format!("equality constraint \"{}\"", equality.name);
    let spec = Spec { of: &of, solref: equality.solref, solimp: equality.solimp };
    let soft = |diag: f64| c.packer.position(spec, 0.0, diag);
    let item = |kind, lists, ints, reals, soft, weigh| {
        Ok(Some(Item {
            kind,
            lists,
            ints,
            reals,
            row_kind: kernels::ROW_EQUALITY,
            loss: 0.0,
            soft,
            weigh,
        }))
    };
    match equality.kind {
        EqualityKind::Joint { joint1, joint2, polycoef } => {
            let joint = |j: usize| &c.model.joints[j];
            let scalar = |j: usize| matches!(joint(j).kind, JointKind::Hinge | JointKind::Slide);
            if !scalar(joint1) || !joint2.is_none_or(scalar) {
                return Err(LowerError::new(
                    format!("{of} of a ball or free joint"),
                    "couple hinge and slide joints, or weld bodies",
                ));
            }
            let dof = |j: usize| joint(j).dof_adr;
            let qpos = |j: usize| joint(j).qpos_adr as i32;
            let reference = |j: usize| c.model.qpos0[joint(j).qpos_adr];
            let weight = |j: usize| c.weights.dof[dof(j)];
            let mut reals = polycoef.to_vec();
            reals.extend([reference(joint1), joint2.map_or(0.0, reference)]);
            item(
                kernels::ITEM_JOINT,
                [vec![dof(joint1)], joint2.map(dof).into_iter().collect()],
                [qpos(joint1), joint2.map_or(-1, qpos)],
                reals,
                vec![soft(weight(joint1) + joint2.map_or(0.0, weight))?],
                vec![[Some(Weigh::Dof(dof(joint1))), joint2.map(dof).map(Weigh::Dof)]],
            )
        }
        EqualityKind::Tendon { tendon1, tendon2, polycoef } => {
            let length0 = |t: usize| c.model.tendons[t].length0;
            let weight = |t: usize| tendons.weight(c, t);
            let dofs = |t: usize| tendon_dofs(tendons, t);
            let mut reals = polycoef.to_vec();
            reals.extend([length0(tendon1), tendon2.map_or(0.0, length0)]);
            item(
                kernels::ITEM_TENDON,
                [dofs(tendon1), tendon2.map_or(Vec::new(), dofs)],
                [tendon1 as i32, tendon2.map_or(-1, |t| t as i32)],
                reals,
                vec![soft(weight(tendon1) + tendon2.map_or(0.0, weight))?],
                vec![[Some(Weigh::Tendon(tendon1)), tendon2.map(Weigh::Tendon)]],
            )
        }
        EqualityKind::Connect { body1, body2, anchor1, anchor2 } => {
            let Some(joined) = Joined::new(c, [body1, body2], [anchor1, anchor2]) else {
                return Ok(None);
            };
            let packed = soft(joined.weight[0])?;
            item(
                kernels::ITEM_CONNECT,
                joined.lists,
                joined.ints,
                joined.anchors.concat(),
                vec![packed; 3],
                vec![[body1, body2].map(|b| Some(Weigh::Shift(b))); 3],
            )
        }
        EqualityKind::Weld { body1, body2, anchor, relpos, relquat, torquescale } => {
            let Some(joined) = Joined::new(c, [body1, body2], [relpos, anchor]) else {
                return Ok(None);
            };
            let [shift, turn] = [soft(joined.weight[0])?, soft(joined.weight[1])?];
            let both = [body1, body2];
            let mut reals = joined.anchors.concat();
            reals.extend(mul(joined.quats[0], relquat));
            reals.extend(joined.quats[1]);
            reals.push(torquescale);
            item(
                kernels::ITEM_WELD,
                joined.lists,
                joined.ints,
                reals,
                vec![shift, shift, shift, turn, turn, turn],
                [
                    vec![both.map(|b| Some(Weigh::Shift(b))); 3],
                    vec![both.map(|b| Some(Weigh::Turn(b))); 3],
                ]
                .concat(),
            )
        }
    }
}

/// Two bodies held together, in the frames of the bodies that carry them.
struct Joined {
    lists: [Vec<usize>; 2],
    ints: [i32; 2],
    anchors: [Vec3; 2],
    /// The bodies' orientations in their carriers.
    quats: [Quat; 2],
    /// Inverse weights of translation and rotation.
    weight: [f64; 2],
}

impl Joined {
    /// `None` for bodies that are welded together already, at one point: nothing can act. Two
    /// points of one moving body that are apart turn with it, and its rows hold that back.
    fn new(c: &Context, bodies: [usize; 2], anchors: [Vec3; 2]) -> Option<Self> {
        let [first, second] = bodies.map(|b| c.tree.carrier[b]);
        let points = [first.pose.point(anchors[0]), second.pose.point(anchors[1])];
        let apart = (0..3).any(|k| (points[0][k] - points[1][k]).abs() > 1e-10);
        if first.body == second.body && (first.body.is_none() || !apart) {
            return None;
        }
        let [w1, w2] = bodies.map(|b| c.weights.body[b]);
        Some(Self {
            lists: [c.tree.chain(first.body), c.tree.chain(second.body)],
            ints: [first.index(), second.index()],
            anchors: points,
            quats: [first.pose.quat, second.pose.quat],
            weight: [w1[0] + w2[0], w1[1] + w2[1]],
        })
    }
}

fn tendon_dofs(tendons: &Tendons, tendon: usize) -> Vec<usize> {
    tendons.row(tendon).iter().map(|(dof, _)| *dof).collect()
}

fn tendon_friction(c: &Context, tendons: &Tendons, plan: &mut RobotTables, out: &mut Written) {
    for (t, tendon) in c.model.tendons.iter().enumerate() {
        if tendon.frictionloss <= 0.0 {
            continue;
        }
        let of = format!("the friction of tendon \"{}\"", tendon.name);
        let spec = Spec { of: &of, solref: tendon.solref_friction, solimp: tendon.solimp_friction };
        let item = Item {
            kind: kernels::ITEM_TENDON_FRICTION,
            lists: [tendon_dofs(tendons, t), Vec::new()],
            ints: [t as i32, 0],
            reals: Vec::new(),
            row_kind: kernels::ROW_FRICTION,
            loss: tendon.frictionloss,
            soft: vec![c.packer.friction(spec, tendons.weight(c, t))],
            weigh: vec![[Some(Weigh::Tendon(t)), None]],
        };
        out.weigh.extend(item.write(plan));
    }
}

fn ball_limits(c: &Context, plan: &mut RobotTables, out: &mut Written) -> Result<(), LowerError> {
    for joint in &c.model.joints {
        let (JointKind::Ball, Some([lo, hi])) = (joint.kind, joint.range) else {
            continue;
        };
        let first = joint.dof_adr;
        let soft = super::limits::packed(c, joint)?;
        let item = Item {
            kind: kernels::ITEM_BALL_LIMIT,
            lists: [(first..first + 3).collect(), Vec::new()],
            ints: [joint.qpos_adr as i32, first as i32],
            reals: vec![lo.max(hi)],
            row_kind: kernels::ROW_LIMIT,
            loss: 0.0,
            soft: vec![soft],
            weigh: vec![[Some(Weigh::Dof(first)), None]],
        };
        out.weigh.extend(item.write(plan));
    }
    Ok(())
}

fn tendon_limits(
    c: &Context,
    tendons: &Tendons,
    plan: &mut RobotTables,
    out: &mut Written,
) -> Result<(), LowerError> {
    for (t, tendon) in c.model.tendons.iter().enumerate() {
        let Some([lo, hi]) = tendon.range else {
            continue;
        };
        let of = format!("the limit of tendon \"{}\"", tendon.name);
        let spec = Spec { of: &of, solref: tendon.solref_limit, solimp: tendon.solimp_limit };
        let soft = c.packer.position(spec, tendon.margin, tendons.weight(c, t))?;
        for [lo, hi] in super::limits::sides([lo, hi], tendon.margin) {
            let item = Item {
                kind: kernels::ITEM_TENDON_LIMIT,
                lists: [tendon_dofs(tendons, t), Vec::new()],
                ints: [t as i32, 0],
                reals: vec![lo, hi],
                row_kind: kernels::ROW_LIMIT,
                loss: 0.0,
                soft: vec![soft],
                weigh: vec![[Some(Weigh::Tendon(t)), None]],
            };
            out.weigh.extend(item.write(plan));
        }
    }
    Ok(())
}
