//! The state of one rapier world.

use super::build::Layout;
use rapier3d::prelude::{
    BroadPhaseBvh, CCDSolver, ColliderSet, ImpulseJointSet, IntegrationParameters, IslandManager,
    MultibodyJointSet, NarrowPhase, PhysicsPipeline, RigidBodySet, SoftBodySet,
};
use serde::{Deserialize, Serialize};

/// All that a step changes and the next step depends on, contact caches included.
#[derive(Clone, Default, Serialize, Deserialize)]
pub(super) struct Sets {
    pub islands: IslandManager,
    pub broad_phase: BroadPhaseBvh,
    pub narrow_phase: NarrowPhase,
    pub bodies: RigidBodySet,
    pub colliders: ColliderSet,
    pub impulse_joints: ImpulseJointSet,
    pub multibody_joints: MultibodyJointSet,
    pub soft_bodies: SoftBodySet,
}

/// Working memory of a step. Its content never reaches the result.
#[derive(Default)]
pub(super) struct Workspace {
    pub pipeline: PhysicsPipeline,
    pub ccd: CCDSolver,
}

impl Sets {
    /// Whether bodies, shapes and joints are the same ones, and only such are awake: by
    /// their numbers rapier sizes its memory.
    pub(super) fn has_the_parts_of(&self, other: &Self) -> bool {
        // Not collected: how many there are is what may be wrong.
        let (a, b) = (self, other);
        a.bodies.len() == b.bodies.len()
            && a.bodies.iter().map(|x| x.0).eq(b.bodies.iter().map(|x| x.0))
            && a.colliders.len() == b.colliders.len()
            && (a.colliders.iter().map(|x| x.0)).eq(b.colliders.iter().map(|x| x.0))
            && (a.impulse_joints.iter().map(|x| x.0)).eq(b.impulse_joints.iter().map(|x| x.0))
            && (a.multibody_joints.iter().map(|x| x.0)).eq(b.multibody_joints.iter().map(|x| x.0))
            && a.islands.active_bodies().all(|x| a.bodies.contains(x))
    }

    /// One time step.
    pub(super) fn step(&mut self, layout: &Layout, work: &mut Workspace) {
        self.step_with(layout, &layout.params, work);
    }

    /// One step with other parameters than the layout's.
    pub(super) fn step_with(
        &mut self,
        layout: &Layout,
        params: &IntegrationParameters,
        work: &mut Workspace,
    ) {
        work.pipeline.step(
            layout.gravity,
            params,
            &mut self.islands,
            &mut self.broad_phase,
            &mut self.narrow_phase,
            &mut self.bodies,
            &mut self.colliders,
            &mut self.impulse_joints,
            &mut self.multibody_joints,
            &mut self.soft_bodies,
            &mut work.ccd,
            &layout.filter,
            &(),
        );
    }
}
