//! One pristine world, and where things are in it.

use super::actuate::Drives;
use super::filter::Filter;
use super::joints::{Link, LinkPlan, Mass, Motion, Parent, plan};
use super::sets::Sets;
use super::shapes::{collider, to_rapier};
use nalgebra::SymmetricEigen;
use ostler_engine::config::SimConfig;
use ostler_engine::physics::PhysicsError;
use ostler_model::{Joint, JointKind, Model};
use rapier3d::math;
use rapier3d::prelude::{
    GenericJoint, GenericJointBuilder, IntegrationParameters, JointAxesMask, JointAxis,
    MassProperties, Multibody, MultibodyIndex, RigidBodyBuilder, RigidBodyHandle,
    SpringCoefficients,
};

/// Where a coordinate lives in a world.
#[derive(Debug, Clone, Copy)]
pub(super) struct CoordinatePlace {
    pub tree: MultibodyIndex,
    /// Link in the multibody.
    pub link: usize,
    /// First generalised velocity of the link's joint.
    pub assembly: usize,
}

/// A slide or hinge.
#[derive(Debug, Clone, Copy)]
pub(super) struct Scalar {
    pub place: CoordinatePlace,
    /// rapier's axis, 0..6.
    pub axis: usize,
    /// Index of its velocity in the multibody.
    pub dof: usize,
    pub sign: f32,
    pub reference: f32,
    pub qpos: usize,
    pub qvel: usize,
}

/// A ball joint or a free root.
#[derive(Debug, Clone, Copy)]
pub(super) struct Spatial {
    pub place: CoordinatePlace,
    pub body: RigidBodyHandle,
    /// Free roots: centre of mass, rapier's origin, in MuJoCo's body frame.
    pub com: [f32; 3],
    pub qpos: usize,
    pub qvel: usize,
}

/// Everything about the worlds that never changes.
pub(super) struct Layout {
    pub scalars: Vec<Scalar>,
    pub balls: Vec<Spatial>,
    pub frees: Vec<Spatial>,
    /// Every multibody, with its number of velocities.
    pub trees: Vec<MultibodyIndex>,
    pub drives: Drives,
    pub filter: Filter,
    pub gravity: math::Vector,
    pub params: IntegrationParameters,
}

/// Builds the pristine world of `model`.
pub(super) fn build(
    model: &Model,
    config: &SimConfig,
    dt: f64,
) -> Result<(Layout, Sets), PhysicsError> {
    super::support::check(model)?;
    let plan = plan(model)?;
    let filter = Filter::new(model)?;
    let mut sets = Sets::default();
    let handles = add_links(model, &plan, dt, &mut sets)?;
    add_colliders(model, &plan, &filter, &handles, &mut sets)?;

    // Roots get their final kind (fixed or free) here; before, every root counts as
    // free and velocities are not yet where they will be.
    for handle in &handles {
        let id = sets.multibody_joints.rigid_body_link(*handle).copied();
        if let Some(id) = id
            && let Some(multibody) = sets.multibody_joints.get_multibody_mut_internal(id.multibody)
        {
            multibody.forward_kinematics(&sets.bodies, true);
            // rapier gives every angular velocity a damping of 0.1.
            multibody.damping_mut().fill(0.0);
        }
    }
    let mut layout = Layout {
        scalars: Vec::new(),
        balls: Vec::new(),
        frees: Vec::new(),
        trees: Vec::new(),
        drives: Drives::default(),
        filter,
        gravity: math::Vector::from_array(model.options.gravity.map(|x| x as f32)),
        params: parameters(config, dt),
    };
    for (link, handle) in plan.links.iter().zip(&handles) {
        place(model, link, *handle, &mut sets, &mut layout);
    }
    layout.scalars.sort_by_key(|s| s.qvel);
    layout.drives = Drives::new(model, &layout);
    Ok((layout, sets))
}

fn parameters(config: &SimConfig, dt: f64) -> IntegrationParameters {
    IntegrationParameters {
        dt: dt as f32,
        num_solver_iterations: config.rapier.solver_iterations.max(1),
        // The robots here are slow against their size; a world that is not is broken
        // and reported, not clamped.
        max_ccd_substeps: 0,
        normalized_max_linear_velocity: f32::MAX,
        // All shapes are convex: nothing to merge.
        contact_clustering: false,
        // Reuse of contact points moves a foot's contact by up to 5 cm.
        contact_recycling: false,
        ..IntegrationParameters::default()
    }
}

/// Adds a rigid body for every link and joins it to its parent.
fn add_links(
    model: &Model,
    plan: &LinkPlan,
    dt: f64,
    sets: &mut Sets,
) -> Result<Vec<RigidBodyHandle>, PhysicsError> {
    let mut handles = Vec::with_capacity(plan.links.len());
    for (link, mass) in plan.links.iter().zip(&plan.mass) {
        let body = RigidBodyBuilder::dynamic()
            .additional_mass_properties(mass_properties(mass))
            .can_sleep(false);
        let handle = sets.bodies.insert(body);
        handles.push(handle);
        let (parent, child, joint) = match (&link.motion, link.parent) {
            (Motion::Free(_), _) => {
                // A multibody begins with its first joint: a weightless companion
                // makes one out of a lone free body.
                let companion = sets.bodies.insert(RigidBodyBuilder::dynamic().can_sleep(false));
                let welded = GenericJoint::new(JointAxesMask::LOCKED_FIXED_AXES);
                (handle, companion, welded)
            }
            (_, Parent::World) => {
                let base = sets.bodies.insert(RigidBodyBuilder::fixed());
                (base, handle, joint(model, link, dt))
            }
            (_, Parent::Link(p)) => (handles[p], handle, joint(model, link, dt)),
        };
        sets.multibody_joints.insert(parent, child, joint, false).ok_or_else(|| {
            PhysicsError::Unsupported { engine: "rapier", what: "a loop of joints".to_string() }
        })?;
    }
    Ok(handles)
}

fn mass_properties(m: &Mass) -> MassProperties {
    let com = math::Vector::new(m.com.x as f32, m.com.y as f32, m.com.z as f32);
    let eigen = SymmetricEigen::new(m.inertia);
    let mut axes = eigen.eigenvectors;
    if axes.determinant() < 0.0 {
        axes.column_mut(0).neg_mut();
    }
    let frame = nalgebra::UnitQuaternion::from_rotation_matrix(
        &nalgebra::Rotation3::from_matrix_unchecked(axes),
    );
    let q = frame.quaternion();
    MassProperties::with_principal_inertia_frame(
        com,
        m.mass as f32,
        math::Vector::new(
            eigen.eigenvalues[0] as f32,
            eigen.eigenvalues[1] as f32,
            eigen.eigenvalues[2] as f32,
        ),
        math::Rotation::from_xyzw(q.i as f32, q.j as f32, q.k as f32, q.w as f32).normalize(),
    )
}

const AXES: [JointAxis; 6] = [
    JointAxis::LinX,
    JointAxis::LinY,
    JointAxis::LinZ,
    JointAxis::AngX,
    JointAxis::AngY,
    JointAxis::AngZ,
];

fn joint(model: &Model, link: &Link, dt: f64) -> GenericJoint {
    let mut locked = JointAxesMask::LOCKED_FIXED_AXES;
    match &link.motion {
        Motion::Free(_) => locked = JointAxesMask::empty(),
        Motion::Ball(_) => locked.remove(JointAxesMask::ANG_AXES),
        Motion::Scalars(scalars) => {
            for s in scalars {
                locked.remove(AXES[s.axis].into());
            }
        }
    }
    let mut built = GenericJointBuilder::new(locked)
        .local_frame1(to_rapier(&link.frame1))
        .local_frame2(to_rapier(&link.frame2))
        .contacts_enabled(true)
        .build();
    if let Motion::Scalars(scalars) = &link.motion {
        for s in scalars {
            let j = &model.joints[s.joint];
            if let Some([lo, hi]) = j.range {
                let ends = [lo, hi].map(|q| s.sign * (q - j.reference));
                built.set_limits(
                    AXES[s.axis],
                    [ends[0].min(ends[1]) as f32, ends[0].max(ends[1]) as f32],
                );
                let _ = built.set_softness(softness(j, dt));
            }
        }
    }
    built
}

/// The spring and damper that MuJoCo's `solreflimit` asks for: stiffness
/// `1 / (timeconst dampratio)^2`, damping `2 / timeconst` per unit of inertia.
/// Source: MuJoCo, Modeling, "Solver parameters", reference. rapier's default would
/// put a joint that is outside its range back inside within one step.
fn softness(j: &Joint, dt: f64) -> SpringCoefficients<f32> {
    let [a, b] = j.solref_limit;
    let (omega, ratio) = if a > 0.0 {
        // MuJoCo does not let the time constant fall below two steps.
        (1.0 / (a.max(2.0 * dt) * b.max(1e-3)), b.max(1e-3))
    } else {
        let omega = (-a).max(1e-6).sqrt();
        (omega, -b / (2.0 * omega))
    };
    SpringCoefficients::new((omega / std::f64::consts::TAU) as f32, ratio as f32)
}

fn add_colliders(
    model: &Model,
    plan: &LinkPlan,
    filter: &Filter,
    handles: &[RigidBodyHandle],
    sets: &mut Sets,
) -> Result<(), PhysicsError> {
    for (g, geom) in model.geoms.iter().enumerate() {
        let Some(shape) = collider(model, filter, g, &plan.body_in_link[geom.body])? else {
            continue;
        };
        match plan.link_of_body[geom.body] {
            Some(link) => sets.colliders.insert_with_parent(shape, handles[link], &mut sets.bodies),
            None => sets.colliders.insert(shape),
        };
    }
    Ok(())
}

/// Notes where a link's coordinates are and sets their passive properties.
fn place(
    model: &Model,
    link: &Link,
    handle: RigidBodyHandle,
    sets: &mut Sets,
    layout: &mut Layout,
) {
    // Every link was inserted into a multibody by `add_links`.
    let Some(id) = sets.multibody_joints.rigid_body_link(handle).copied() else {
        return;
    };
    let Some(multibody) = sets.multibody_joints.get_multibody_mut_internal(id.multibody) else {
        return;
    };
    let Some(assembly) = multibody.link(id.id).map(|l| l.assembly_id()) else {
        return;
    };
    if !layout.trees.contains(&id.multibody) {
        layout.trees.push(id.multibody);
    }
    let place = CoordinatePlace { tree: id.multibody, link: id.id, assembly };
    let spatial = |j: usize| Spatial {
        place,
        body: handle,
        com: {
            let t = -link.body_in_link.translation.vector;
            [t.x as f32, t.y as f32, t.z as f32]
        },
        qpos: model.joints[j].qpos_adr,
        qvel: model.joints[j].dof_adr,
    };
    match &link.motion {
        Motion::Free(j) => {
            passive(multibody, assembly..assembly + 6, &model.joints[*j]);
            layout.frees.push(spatial(*j));
        }
        Motion::Ball(j) => {
            passive(multibody, assembly..assembly + 3, &model.joints[*j]);
            layout.balls.push(spatial(*j));
        }
        Motion::Scalars(scalars) => {
            let free = |axis: usize| scalars.iter().any(|s| s.axis == axis);
            for s in scalars {
                let j = &model.joints[s.joint];
                // rapier orders a link's velocities by axis.
                let dof = assembly + (0..s.axis).filter(|a| free(*a)).count();
                passive(multibody, dof..dof + 1, j);
                let scalar = Scalar {
                    place,
                    axis: s.axis,
                    dof,
                    sign: s.sign as f32,
                    reference: j.reference as f32,
                    qpos: j.qpos_adr,
                    qvel: j.dof_adr,
                };
                if j.stiffness > 0.0 {
                    let rest = s.sign * (j.springref - j.reference);
                    if let Some(l) = multibody.link_mut(id.id) {
                        l.joint.set_spring(s.axis, j.stiffness as f32, rest as f32);
                    }
                }
                layout.scalars.push(scalar);
            }
        }
    }
}

fn passive(multibody: &mut Multibody, dofs: std::ops::Range<usize>, j: &Joint) {
    debug_assert!(j.kind.nv() == dofs.len() || j.kind == JointKind::Free);
    for dof in dofs {
        multibody.damping_mut()[dof] = j.damping as f32;
        multibody.armature_mut()[dof] = j.armature as f32;
        multibody.frictions_mut()[dof] = j.frictionloss as f32;
    }
}
