//! Inverse weights at the initial pose: the acceleration by a unit force there.
//!
//! MuJoCo regularises its constraints with them (Computation, "Constraint model",
//! "Diagonal approximation"): `body_invweight0`, `dof_invweight0`,
//! `tendon_invweight0`, `meaninertia`. All are diagonals of `J M^-1 J^T`, averaged
//! over what may not depend on a choice of axes.

use super::error::LowerError;
use super::soft::MIN_VALUE;
use super::tree::Tree;
use nalgebra::{Cholesky, DMatrix, DVector, Dyn};
use ostler_model::Model;
use ostler_model::rest::Rest;
use ostler_model::simple::only_slides;
use std::ops::Range;

/// The inertia that forces meet in the initial pose.
#[derive(Debug, Clone)]
pub(super) struct Weights {
    /// Translation, rotation for each body of the model; 0 for static ones.
    pub body: Vec<[f64; 2]>,
    /// For each degree of freedom.
    pub dof: Vec<f64>,
    /// Mean of the mass matrix's diagonal.
    pub mean_inertia: f64,
    /// One block for each tree: nothing couples two of them.
    blocks: Vec<Block>,
    /// For each degree of freedom, the block that has it.
    block_of: Vec<usize>,
}

/// The degrees of freedom of one tree, and the factor of their mass matrix.
#[derive(Debug, Clone)]
struct Block {
    dofs: Range<usize>,
    factor: Cholesky<f64, Dyn>,
}

/// Most multiplications for the inverse weights of a model (some seconds).
const MAX_WORK: u64 = 2_000_000_000;

/// Refuses models that would take minutes: every body asks for the inverse of its tree.
pub(super) fn affordable(model: &Model, tree: &Tree) -> Result<(), LowerError> {
    let blocks = trees(tree);
    let square = |n: usize| (n as u64).pow(2);
    let largest = blocks.iter().map(|r| square(r.len())).max().unwrap_or(0);
    // For each degree of freedom, the square of its tree's number.
    let squares: Vec<u64> =
        blocks.iter().flat_map(|r| std::iter::repeat_n(square(r.len()), r.len())).collect();
    let of_bodies = tree.carrier.iter().filter_map(|c| tree.last_dof[c.body?]);
    let solves = 6 * of_bodies.map(|d| squares[d]).sum::<u64>() + squares.iter().sum::<u64>();
    // Tendons ask for theirs, and so do limits, friction and equalities of tendons.
    let others = (4 * model.tendons.len() + 2 * model.equalities.len()) as u64 * largest;
    if solves.saturating_add(others) > MAX_WORK {
        return Err(LowerError::new(
            format!(
                "{} bodies and {} tendons with {} degrees of freedom, {} of them in one tree: \
                 that takes too much time to prepare",
                model.bodies.len(),
                model.tendons.len(),
                model.nv,
                blocks.iter().map(Range::len).max().unwrap_or(0),
            ),
            "use shorter chains or fewer bodies on them (geoms of a body cost less)",
        ));
    }
    Ok(())
}

/// The degrees of freedom of each tree; they stand together.
fn trees(tree: &Tree) -> Vec<Range<usize>> {
    let nv = tree.dof_parent.len();
    let mut starts: Vec<usize> = (0..nv).filter(|d| tree.dof_parent[*d].is_none()).collect();
    starts.push(nv);
    starts.windows(2).map(|w| w[0]..w[1]).collect()
}

impl Weights {
    /// Computes all of them.
    pub(crate) fn new(model: &Model, tree: &Tree) -> Result<Self, LowerError> {
        let rest = Rest::new(model, &model.qpos0);
        let mass = rest.mass_matrix();
        let mean_inertia = match model.nv {
            0 => 1.0,
            nv => mass.diagonal().sum() / nv as f64,
        };
        let (mut blocks, mut block_of) = (Vec::new(), Vec::new());
        for dofs in trees(tree) {
            block_of.extend(dofs.clone().map(|_| blocks.len()));
            let factor = factor(model, tree, &mass, &dofs)?;
            blocks.push(Block { dofs, factor });
        }
        let mut weights = Self {
            body: vec![[0.0; 2]; model.bodies.len()],
            dof: vec![0.0; model.nv],
            mean_inertia,
            blocks,
            block_of,
        };
        for (b, carrier) in tree.carrier.iter().enumerate() {
            if carrier.body.is_none() {
                continue;
            }
            weights.body[b] = if only_slides(model, b) {
                [1.0 / model.bodies[b].mass.max(MIN_VALUE), 0.0]
            } else {
                weights.of_body(&rest, model, b)
            };
        }
        for joint in &model.joints {
            let first = joint.dof_adr;
            if only_slides(model, joint.body) {
                let mass = model.bodies[joint.body].mass;
                weights.dof[first] = 1.0 / mass.max(MIN_VALUE);
                continue;
            }
            let diagonal: Vec<f64> =
                (first..first + joint.kind.nv()).map(|d| weights.inverse(&[(d, 1.0)])).collect();
            // The axes of ball and free joints are a choice.
            for (group, values) in diagonal.chunks(3).enumerate() {
                let mean = values.iter().sum::<f64>() / values.len() as f64;
                let start = first + 3 * group;
                weights.dof[start..start + values.len()].fill(mean);
            }
        }
        Ok(weights)
    }

    /// `J M^-1 J^T` of one row, given as (degree of freedom, entry).
    pub(crate) fn inverse(&self, row: &[(usize, f64)]) -> f64 {
        // Entries of one tree stand together, as the row is ascending.
        let tree = |(dof, _): &(usize, f64)| self.block_of[*dof];
        row.chunk_by(|a, b| tree(a) == tree(b))
            .filter_map(|part| Some((&self.blocks[tree(part.first()?)], part)))
            .map(|(block, part)| {
                let mut force = DVector::zeros(block.dofs.len());
                for &(dof, entry) in part {
                    force[dof - block.dofs.start] += entry;
                }
                force.dot(&block.factor.solve(&force))
            })
            .sum()
    }

    /// Means over three axes of a body's centre of mass and of its rotation.
    fn of_body(&self, rest: &Rest, model: &Model, body: usize) -> [f64; 2] {
        let com = rest.bodies[body].point(model.bodies[body].ipos);
        let columns: Vec<_> = rest.jacobian(body, com).collect();
        let mut mean = [0.0; 2];
        for k in 0..3 {
            let shift: Vec<_> = columns.iter().map(|(d, v, _)| (*d, v[k])).collect();
            let turn: Vec<_> = columns.iter().map(|(d, _, w)| (*d, w[k])).collect();
            mean[0] += self.inverse(&shift) / 3.0;
            mean[1] += self.inverse(&turn) / 3.0;
        }
        mean
    }
}

/// Factorises a tree's part, or names the first degree of freedom that nothing resists.
fn factor(
    model: &Model,
    tree: &Tree,
    mass: &DMatrix<f64>,
    dofs: &Range<usize>,
) -> Result<Cholesky<f64, Dyn>, LowerError> {
    let part = |n: usize| {
        let part = mass.view((dofs.start, dofs.start), (n, n));
        part.clone_owned().cholesky()
    };
    if let Some(factor) = part(dofs.len()) {
        return Ok(factor);
    }
    // A singular set stays singular with more rows: try half of the rest at a time.
    let (mut good, mut bad) = (0, dofs.len());
    while bad - good > 1 {
        let middle = good + (bad - good) / 2;
        match part(middle) {
            Some(_) => good = middle,
            None => bad = middle,
        }
    }
    let joint = &model.joints[tree.dof_joint[dofs.start + bad - 1]];
    Err(LowerError::new(
        format!(
            "joint \"{}\" of body \"{}\" without inertia (the mass matrix is singular)",
            joint.name, model.bodies[joint.body].name
        ),
        "give the body mass and inertia, or the joint armature",
    ))
}
