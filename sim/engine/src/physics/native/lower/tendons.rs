//! Tendons: linear combinations of joint positions, and strings through space.

use super::context::{Context, MAX_ENTRIES};
use super::error::LowerError;
use super::spots::{FixedFrame, FixedFrames, movers, tree};
use crate::physics::native::tables::RobotTables;
use ostler_model::arms::winds;
use ostler_model::rest::Rest;
use ostler_model::rotation::dot;
use ostler_model::{JointKind, Tendon, TendonKind, Transmission};

/// The tendons that a kernel has to know, and the dofs that move them.
#[derive(Debug, Clone)]
pub(super) struct Tendons {
    list: Vec<Lowered>,
}

#[derive(Debug, Clone)]
struct Lowered {
    /// Joints of a fixed tendon and their coefficients, by joint.
    parts: Vec<(usize, f64)>,
    /// Pieces of a spatial one.
    pieces: Vec<Piece>,
    /// Degrees of freedom that may change its length, ascending, and by how much in
    /// the initial pose.
    row: Vec<(usize, f64)>,
}

/// A straight piece of a string, or one that may wind around a geom.
#[derive(Debug, Clone)]
struct Piece {
    ends: [FixedFrame; 2],
    geom: Option<(FixedFrame, bool)>,
    /// The model's bodies at both ends and of the geom; without one, that at the start.
    bodies: [usize; 3],
    side: Option<FixedFrame>,
    /// 0: outside of the geom, 1: inside, 2: as the side site lies.
    inside: i32,
    radius: f64,
    share: f64,
    movers: Vec<(usize, i32)>,
}

impl Tendons {
    /// Reads all of them.
    pub(crate) fn new(c: &Context) -> Result<Self, LowerError> {
        let rest = Rest::new(c.model, &c.model.qpos0);
        let mut entries = 0;
        let read = |(t, tendon): (usize, &Tendon)| {
            // An actuator's, too.
            let wound = || tendon.kind.pieces().iter().any(|p| p.around.is_some());
            if tendon.armature != 0.0 && wound() {
                return Err(LowerError::new(
                    format!("armature of tendon \"{}\", which winds around a geom", tendon.name),
                    "give its joints armature instead",
                ));
            }
            let parts = fixed(c, tendon)?;
            // A short element can name two sites that everything moves.
            let chain = |site: usize| {
                let body = c.model.sites[site].body;
                c.tree.chain(c.tree.carrier[body].body).len()
            };
            let strings = tendon.kind.pieces();
            let moved = strings.iter().map(|p| p.sites.map(chain).iter().sum::<usize>());
            entries += parts.len() + moved.sum::<usize>();
            if entries > MAX_ENTRIES {
                return Err(LowerError::new(
                    format!("tendons that more than {MAX_ENTRIES} degrees of freedom move in all"),
                    "use fewer sites, or shorter chains of bodies",
                ));
            }
            let pieces: Vec<Piece> = pieces(c, tendon);
            let mut dofs: Vec<usize> = parts
                .iter()
                .map(|(j, _)| c.model.joints[*j].dof_adr)
                .chain(pieces.iter().flat_map(|p| p.movers.iter().map(|m| m.0)))
                .collect();
            dofs.sort_unstable();
            dofs.dedup();
            let arms = rest.tendon_jacobian(t);
            Ok(Lowered { parts, pieces, row: dofs.into_iter().map(|d| (d, arms[d])).collect() })
        };
        let list = c.model.tendons.iter().enumerate();
        Ok(Self { list: list.map(read).collect::<Result<_, _>>()? })
    }

    /// Row of the tendon's length in the initial pose: (degree of freedom, moment arm),
    /// ascending, with all that are other than zero in any pose.
    pub(crate) fn row(&self, tendon: usize) -> &[(usize, f64)] {
        &self.list[tendon].row
    }

    /// Whether its moment arms change with the pose.
    pub(crate) fn spatial(&self, tendon: usize) -> bool {
        !self.list[tendon].pieces.is_empty()
    }

    /// Inverse weight of the tendon's length.
    pub(crate) fn weight(&self, c: &Context, tendon: usize) -> f64 {
        c.weights.inverse(self.row(tendon))
    }

    /// The model's bodies that each part pulls at, in the tables' order: at its start, at its end
    /// and of its geom, or again that at the start.
    pub(crate) fn strung(&self, c: &Context) -> Vec<[usize; 3]> {
        let laid = self.list.iter().enumerate().flat_map(|(t, lowered)| lowered.laid(c, t));
        laid.map(|piece| piece.bodies).collect()
    }

    /// Writes lengths, springs and dampers of all tendons.
    pub(crate) fn write(&self, c: &Context, spots: &mut FixedFrames, plan: &mut RobotTables) {
        plan.nten = self.list.len();
        plan.ten_adr.push(0);
        plan.ten_seg.push(0);
        plan.seg_path.push(0);
        for (t, (tendon, lowered)) in c.model.tendons.iter().zip(&self.list).enumerate() {
            for &(dof, arm) in &lowered.row {
                let joint = lowered
                    .parts
                    .iter()
                    .map(|(j, _)| &c.model.joints[*j])
                    .find(|j| j.dof_adr == dof);
                plan.ten_qpos.push(joint.map_or(-1, |j| j.qpos_adr as i32));
                plan.ten_dof.push(dof as i32);
                plan.ten_coef.push(joint.map_or(0.0, |_| arm));
            }
            plan.ten_adr.push(plan.ten_dof.len() as i32);
            let on = |flag: bool, x: f64| if flag { x } else { 0.0 };
            plan.ten_stiffness.push(on(c.flags.spring, tendon.stiffness));
            plan.ten_damping.push(on(c.flags.damper, tendon.damping));
            plan.ten_armature.push(tendon.armature);
            plan.ten_lo.push(tendon.springlength[0]);
            plan.ten_hi.push(tendon.springlength[1]);
            let pieces = lowered.laid(c, t);
            let all: Vec<FixedFrame> = pieces.iter().flat_map(Piece::spots).collect();
            plan.ten_tree.push(tree(plan, &all));
            for piece in pieces {
                piece.write(&lowered.row, spots, plan);
            }
            plan.ten_seg.push(plan.seg_kind.len() as i32);
        }
        plan.ntenj = plan.ten_dof.len();
    }
}

impl Lowered {
    /// Its pieces in the tables: nothing asks for the length of a string that exerts no force.
    fn laid(&self, c: &Context, t: usize) -> &[Piece] {
        if acts(c, t) { &self.pieces } else { &[] }
    }
}

/// Whether a tendon does anything.
fn acts(c: &Context, t: usize) -> bool {
    use ostler_model::EqualityKind;
    let tendon = &c.model.tendons[t];
    let pulled = |a: &ostler_model::Actuator| a.transmission == Transmission::Tendon(t);
    let tied = |e: &ostler_model::Equality| matches!(e.kind, EqualityKind::Tendon { tendon1, tendon2, .. } if tendon1 == t || tendon2 == Some(t));
    tendon.stiffness != 0.0
        || tendon.damping != 0.0
        || tendon.frictionloss != 0.0
        || tendon.armature != 0.0
        || tendon.range.is_some()
        || c.model.actuators.iter().any(pulled)
        || c.model.equalities.iter().any(tied)
}

/// Joints of a fixed tendon, each once.
fn fixed(c: &Context, tendon: &Tendon) -> Result<Vec<(usize, f64)>, LowerError> {
    let TendonKind::Fixed(parts) = &tendon.kind else {
        return Ok(Vec::new());
    };
    let mut sums: Vec<(usize, f64)> = Vec::new();
    for &(joint, coefficient) in parts {
        let kind = c.model.joints[joint].kind;
        if !matches!(kind, JointKind::Hinge | JointKind::Slide) {
            return Err(LowerError::new(
                format!("tendon \"{}\" over a ball or free joint", tendon.name),
                "fixed tendons run over hinge and slide joints",
            ));
        }
        match sums.iter_mut().find(|(j, _)| *j == joint) {
            Some((_, sum)) => *sum += coefficient,
            None => sums.push((joint, coefficient)),
        }
    }
    sums.sort_unstable_by_key(|(joint, _)| *joint);
    Ok(sums)
}

fn pieces(c: &Context, tendon: &Tendon) -> Vec<Piece> {
    let lower = |piece: ostler_model::Piece| {
        let ends = piece.sites.map(|s| FixedFrame::site(c, s));
        let around = piece.around.and_then(|(geom, side)| {
            let cylinder = winds(&c.model.geoms[geom])?;
            Some((geom, side, cylinder))
        });
        let [start, end] = piece.sites.map(|s| c.model.sites[s].body);
        let mut bodies = [start, end, start];
        let (mut geom, mut side, mut inside, mut radius) = (None, None, 0, 0.0);
        if let Some((g, s, cylinder)) = around {
            let spot = FixedFrame::geom(c, g);
            radius = c.model.geoms[g].size[0];
            bodies[2] = c.model.geoms[g].body;
            geom = Some((spot, cylinder));
            side = s.map(|s| FixedFrame::site(c, s));
            if let Some(s) = side {
                // On the geom's own body it is inside or outside for good.
                let at = spot.pose.inverse().point(s.pose.pos);
                inside = match s.body == spot.body {
                    true => i32::from(dot(at, at).sqrt() < radius),
                    false => 2,
                };
            }
        }
        let mut all = ends.to_vec();
        all.extend(geom.map(|g| g.0));
        let mut movers = movers(c, &all);
        // A dof that moves the whole string does not change its length.
        let whole = if geom.is_some() { 7 } else { 3 };
        movers.retain(|m| m.1 != whole);
        let share = 1.0 / piece.divisor;
        Piece { ends, geom, bodies, side, inside, radius, share, movers }
    };
    tendon.kind.pieces().into_iter().map(lower).collect()
}

impl Piece {
    fn spots(&self) -> Vec<FixedFrame> {
        let mut all = self.ends.to_vec();
        all.extend(self.geom.map(|g| g.0));
        all
    }

    fn write(&self, row: &[(usize, f64)], spots: &mut FixedFrames, plan: &mut RobotTables) {
        let ends = self.ends.map(|s| spots.index(s));
        plan.seg_spot.extend(ends);
        let geom = self.geom.map_or(-1, |g| spots.index(g.0));
        plan.seg_spot.push(geom);
        plan.seg_spot.push(self.side.map_or(-1, |s| spots.index(s)));
        plan.seg_kind.push(self.geom.map_or(0, |(_, cylinder)| 1 + i32::from(cylinder)));
        plan.seg_inside.push(self.inside);
        plan.seg_radius.push(self.radius);
        plan.seg_share.push(self.share);
        for &(dof, moves) in &self.movers {
            let entry = row.partition_point(|(d, _)| *d < dof);
            plan.seg_entry.push(entry as i32);
            plan.seg_dof.push(dof as i32);
            plan.seg_moves.push(moves);
        }
        plan.seg_path.push(plan.seg_dof.len() as i32);
    }
}
