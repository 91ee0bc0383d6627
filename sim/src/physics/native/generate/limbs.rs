//! Which parts of a robot the threads of a team take: limbs, that is subtrees, one or
//! several to a rank, around a trunk that is everyone's.

use crate::physics::native::tables::Plan;
use crate::physics::native::tape::Program;

/// A robot divided among the ranks of a team.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Limbs {
    /// By moving body: its rank; none of the trunk.
    pub rank: Vec<Option<usize>>,
    /// Degrees of freedom of the trunk and of the rank that has most: what is done one
    /// after the other.
    pub depth: usize,
}

impl Limbs {
    /// Divides a robot among `size` ranks: from whole trees down, the heaviest part gives
    /// up its root to the trunk as long as that makes what is done one after the other
    /// shorter.
    pub fn divide(plan: &Plan, size: usize) -> Self {
        let children = |b: Option<usize>| {
            let parent = b.map_or(-1, |b| b as i32);
            (0..plan.nb).filter(move |&c| plan.body_parent[c] == parent)
        };
        let own = |b: usize| (plan.body_dof[b + 1] - plan.body_dof[b]) as usize;
        let mut weight: Vec<usize> = (0..plan.nb).map(own).collect();
        for b in (0..plan.nb).rev() {
            if let Ok(parent) = usize::try_from(plan.body_parent[b]) {
                weight[parent] += weight[b];
            }
        }
        let mut parts: Vec<usize> = children(None).collect();
        let mut trunk = 0;
        let (mut best, mut ranks) = (usize::MAX, Vec::new());
        while !parts.is_empty() {
            parts.sort_by_key(|&b| (std::cmp::Reverse(weight[b]), b));
            // The heaviest to the rank that has least.
            let mut load = vec![0; size];
            let mut of = Vec::new();
            for &b in &parts {
                let rank = (0..size).min_by_key(|&r| load[r]).unwrap_or(0);
                load[rank] += weight[b];
                of.push((b, rank));
            }
            let depth = trunk + load.iter().max().copied().unwrap_or(0);
            if depth < best {
                (best, ranks) = (depth, of);
            }
            let root = parts.remove(0);
            trunk += own(root);
            parts.extend(children(Some(root)));
        }
        let mut rank = vec![None; plan.nb];
        for (root, r) in ranks {
            rank[root] = Some(r);
            // Parents come before their children.
            for b in root + 1..plan.nb {
                let parent = usize::try_from(plan.body_parent[b]).ok();
                if let Some(r) = parent.filter(|&p| p >= root).and_then(|p| rank[p]) {
                    rank[b] = Some(r);
                }
            }
        }
        let depth = if best == usize::MAX { 0 } else { best };
        Self { rank, depth }
    }

    /// Whether a body is where a limb begins.
    pub fn is_root(&self, plan: &Plan, body: usize) -> bool {
        let parent = usize::try_from(plan.body_parent[body]).ok();
        self.rank[body].is_some() && parent.is_none_or(|p| self.rank[p].is_none())
    }
}

/// By element of the program's arrays: the rank that it is of.
pub(super) fn homes(plan: &Plan, program: &Program, limbs: &Limbs) -> Vec<Vec<Option<usize>>> {
    let body = |b: i32| usize::try_from(b).ok().and_then(|b| limbs.rank[b]);
    let dof = |d: usize| body(plan.dof_body[d]);
    let mut joint_of = vec![None; plan.nq];
    for j in 0..plan.nj {
        let first = plan.jnt_qpos[j] as usize;
        let end = plan.jnt_qpos.get(j + 1).map_or(plan.nq, |&q| q as usize);
        joint_of[first..end].fill(dof(plan.jnt_dof[j] as usize));
    }
    // Row of an entry of a packed lower triangle.
    let row = |i: usize| (0..plan.nv).rfind(|r| r * (r + 1) / 2 <= i).unwrap_or(0);
    let home = |name: &str, i: usize| match name {
        "w.qpos" => joint_of[i],
        "w.qvel" | "w.qacc" | "w.smooth" | "w.grad" | "w.step" | "w.mstep" => dof(i),
        "w.cdof" => dof(i / 6),
        "w.mass" | "w.hess" | "w.upper" => dof(row(i)),
        "w.xpos" => body((i / 3) as i32),
        "w.xquat" => body((i / 4) as i32),
        "w.xmat" => body((i / 9) as i32),
        "w.inertia" => body((i / 10) as i32),
        "w.vel" | "w.acc" | "w.frc" | "w.tmp" | "w.wrench" => body((i / 6) as i32),
        "w.stiff" => body((i / 21) as i32),
        "w.gpos" | "w.gaxis" => body(plan.cg_body[i / 3]),
        "w.lim_sign" | "w.lim_d" | "w.lim_aref" => dof(plan.lim_dof[i] as usize),
        "w.fric_aref" => dof(plan.fric_dof[i] as usize),
        _ => None,
    };
    let of_array = |array: &crate::physics::native::tape::Array| {
        (0..array.len()).map(|i| home(&array.name, i)).collect()
    };
    program.arrays.iter().map(of_array).collect()
}
