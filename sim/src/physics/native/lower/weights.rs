//! Inverse weights at the initial pose: what a unit force does there.
//!
//! MuJoCo regularises its constraints with them (Computation, "Constraint model",
//! "Diagonal approximation"): `body_invweight0`, `dof_invweight0`,
//! `tendon_invweight0`, `meaninertia`. All are diagonals of `J M^-1 J^T`, averaged
//! over what may not depend on a choice of axes.

use super::LowerError;
use super::soft::MIN_VALUE;
use super::tree::Tree;
use crate::model::Model;
use crate::model::rest::Rest;
use crate::model::simple::only_slides;
use nalgebra::{Cholesky, DMatrix, DVector, Dyn};

/// What the initial pose says about the inertia that forces meet.
#[derive(Debug, Clone)]
pub(super) struct Weights {
    /// Translation, rotation for each body of the model; 0 for static ones.
    pub body: Vec<[f64; 2]>,
    /// For each degree of freedom.
    pub dof: Vec<f64>,
    /// Mean of the mass matrix's diagonal.
    pub mean_inertia: f64,
    factor: Option<Cholesky<f64, Dyn>>,
}

impl Weights {
    /// Computes all of them.
    pub fn new(model: &Model, tree: &Tree) -> Result<Self, LowerError> {
        let rest = Rest::new(model, &model.qpos0);
        let mass = rest.mass_matrix();
        let mean_inertia = match model.nv {
            0 => 1.0,
            nv => mass.diagonal().sum() / nv as f64,
        };
        let factor = match model.nv {
            0 => None,
            _ => Some(factor(model, tree, mass)?),
        };
        let mut weights = Self {
            body: vec![[0.0; 2]; model.bodies.len()],
            dof: vec![0.0; model.nv],
            mean_inertia,
            factor,
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
            let diagonal: Vec<f64> = (first..first + joint.kind.nv())
                .map(|d| weights.inverse(&[(d, 1.0)]))
                .collect();
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
    pub fn inverse(&self, row: &[(usize, f64)]) -> f64 {
        let Some(factor) = &self.factor else {
            return 0.0;
        };
        let mut force = DVector::zeros(self.dof.len());
        for &(dof, entry) in row {
            force[dof] += entry;
        }
        force.dot(&factor.solve(&force))
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

/// Factorises, or names the first degree of freedom that nothing resists.
fn factor(
    model: &Model,
    tree: &Tree,
    mass: DMatrix<f64>,
) -> Result<Cholesky<f64, Dyn>, LowerError> {
    if let Some(factor) = mass.clone().cholesky() {
        return Ok(factor);
    }
    let singular = |n: &usize| {
        mass.view((0, 0), (*n, *n))
            .clone_owned()
            .cholesky()
            .is_none()
    };
    let first = (1..=model.nv).find(singular).unwrap_or(1) - 1;
    let joint = &model.joints[tree.dof_joint[first]];
    Err(LowerError::new(
        format!(
            "joint \"{}\" of body \"{}\" without inertia (the mass matrix is singular)",
            joint.name, model.bodies[joint.body].name
        ),
        "give the body mass and inertia, or the joint armature",
    ))
}
