//! What all parts of the lowering read: the model, its tree, weights and options.

use super::error::LowerError;
use super::flags::Flags;
use super::soft::Packer;
use super::tree::Tree;
use super::weights::{self, Weights};
use ostler_model::{Cone, Integrator, Model};

/// Most degrees of freedom; matrices are dense here, indices small in the kernels.
const MAX_DOFS: usize = 1024;
/// Most entries of the Jacobians of all contacts, and of all other constraints.
pub(super) const MAX_ENTRIES: usize = 1 << 22;

/// Options besides the model's file.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LowerOptions {
    /// Time step (s); the model's own without it.
    pub timestep: Option<f64>,
    /// The model's own without it.
    pub integrator: Option<Integrator>,
    /// The model's own without it.
    pub cone: Option<Cone>,
}

/// Inputs of all parts of the lowering.
pub(super) struct Context<'a> {
    pub model: &'a Model,
    pub flags: Flags,
    pub tree: Tree,
    pub weights: Weights,
    pub packer: Packer,
    pub cone: Cone,
}

impl<'a> Context<'a> {
    pub(super) fn new(model: &'a Model, options: &LowerOptions) -> Result<Self, LowerError> {
        let flags = Flags::new(&model.options.flags)?;
        if model.nv > MAX_DOFS {
            return Err(LowerError::new(
                format!("{} degrees of freedom", model.nv),
                format!("up to {MAX_DOFS} are supported"),
            ));
        }
        let tree = Tree::new(model)?;
        weights::affordable(model, &tree)?;
        let timestep = options.timestep.unwrap_or(model.options.timestep);
        if !(timestep > 0.0 && timestep.is_finite()) {
            return Err(LowerError::new(
                format!("a time step of {timestep} s"),
                "it must be positive, for example 0.002",
            ));
        }
        Ok(Self {
            model,
            flags,
            weights: Weights::new(model, &tree)?,
            tree,
            packer: Packer { timestep, refsafe: flags.refsafe },
            cone: options.cone.unwrap_or(model.options.cone),
        })
    }
}
