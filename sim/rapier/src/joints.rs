//! From MuJoCo's bodies and joints to the links of rapier multibodies.
//!
//! MuJoCo lets a body have several joints in a row and lets bodies be welded to
//! their parent; a rapier link has one joint of up to three slides and one
//! rotation. So a body becomes a short chain of links, all but the last without
//! mass, and bodies without joints become part of the link they are welded to.

use nalgebra::{Isometry3, Matrix3, Quaternion, Rotation3, Translation3, UnitQuaternion, Vector3};
use ostler_engine::physics::PhysicsError;
use ostler_model::{JointKind, Model};

pub(super) type Pose = Isometry3<f64>;

/// An index into [`LinkPlan::links`], or a tree's fixed base.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Parent {
    /// The world: the link starts a tree on a fixed base.
    World,
    Link(usize),
}

/// A scalar joint: one coordinate of one link.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScalarAxis {
    /// Index into `Model::joints`.
    pub joint: usize,
    /// 0..3 slides, 3..6 turns, about the link's joint frame.
    pub axis: usize,
    /// rapier's coordinate is `sign * (q - reference)`.
    pub sign: f64,
}

/// How a link moves against its parent.
#[derive(Debug, Clone)]
pub(super) enum Motion {
    /// The root of a free tree; index of the free joint.
    Free(usize),
    /// Index of the ball joint.
    Ball(usize),
    Scalars(Vec<ScalarAxis>),
}

/// One link of a multibody.
#[derive(Debug, Clone)]
pub(super) struct Link {
    pub parent: Parent,
    pub motion: Motion,
    /// Joint frame in the parent link's frame.
    pub frame1: Pose,
    /// Joint frame in this link's frame.
    pub frame2: Pose,
    /// The body whose mass and shapes this link carries; `None` for intermediate
    /// links.
    pub body: Option<usize>,
    /// Frame of that body in the link's frame. Only free roots are shifted: their
    /// frame is put at the centre of mass, because rapier moves a free root's origin
    /// with the velocity of its centre of mass.
    pub body_in_link: Pose,
}

/// All links, parents first.
#[derive(Debug, Clone)]
pub(super) struct LinkPlan {
    pub links: Vec<Link>,
    /// Link that carries each body, `None` for static bodies.
    pub link_of_body: Vec<Option<usize>>,
    /// Frame of each body in its link's frame, or in the world for static bodies.
    pub body_in_link: Vec<Pose>,
    /// Mass properties of each link in its own frame.
    pub mass: Vec<Mass>,
}

/// Mass, centre of mass and inertia about it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Mass {
    pub mass: f64,
    pub com: Vector3<f64>,
    pub inertia: Matrix3<f64>,
}

pub(super) fn pose(pos: [f64; 3], quat: [f64; 4]) -> Pose {
    Isometry3::from_parts(
        Translation3::new(pos[0], pos[1], pos[2]),
        UnitQuaternion::from_quaternion(Quaternion::new(quat[0], quat[1], quat[2], quat[3])),
    )
}

fn unsupported(what: impl Into<String>) -> PhysicsError {
    PhysicsError::Unsupported { engine: "rapier", what: what.into() }
}

/// Splits the model into links.
pub(super) fn plan(model: &Model) -> Result<LinkPlan, PhysicsError> {
    let nbody = model.bodies.len();
    let mut plan = LinkPlan {
        links: Vec::new(),
        link_of_body: vec![None; nbody],
        body_in_link: vec![Pose::identity(); nbody],
        mass: Vec::new(),
    };
    for (b, body) in model.bodies.iter().enumerate().skip(1) {
        let local = pose(body.pos, body.quat);
        let parent_link = plan.link_of_body[body.parent];
        let in_parent_link = plan.body_in_link[body.parent] * local;
        if body.joints.is_empty() {
            plan.link_of_body[b] = parent_link;
            plan.body_in_link[b] = in_parent_link;
            continue;
        }
        let parent = parent_link.map_or(Parent::World, Parent::Link);
        add_chain(model, b, parent, in_parent_link, &mut plan)?;
    }
    plan.mass = link_masses(model, &mut plan)?;
    Ok(plan)
}

/// Adds the links of body `b`, whose frame is `at` in its parent link when its
/// joints are at their reference.
fn add_chain(
    model: &Model,
    b: usize,
    parent: Parent,
    at: Pose,
    plan: &mut LinkPlan,
) -> Result<(), PhysicsError> {
    let body = &model.bodies[b];
    let joints: Vec<usize> = body.joints.clone().collect();
    let (mut parent, mut at) = (parent, at);
    let mut rest = &joints[..];
    while let Some(first) = rest.first() {
        let joint = &model.joints[*first];
        let (motion, frame, used) = match joint.kind {
            JointKind::Free => {
                if joints.len() > 1 || parent != Parent::World {
                    return Err(unsupported(format!(
                        "free joint \"{}\" next to other joints or below the top level",
                        joint.name
                    )));
                }
                (Motion::Free(*first), Pose::identity(), 1)
            }
            JointKind::Ball => {
                if rest.len() > 1 {
                    return Err(unsupported(format!(
                        "joints after ball joint \"{}\" on the same body",
                        joint.name
                    )));
                }
                (Motion::Ball(*first), pose(joint.pos, IDENTITY), 1)
            }
            JointKind::Slide | JointKind::Hinge => group(model, rest),
        };
        rest = &rest[used..];
        plan.links.push(Link {
            parent,
            motion,
            frame1: at * frame,
            frame2: frame,
            body: rest.is_empty().then_some(b),
            body_in_link: Pose::identity(),
        });
        parent = Parent::Link(plan.links.len() - 1);
        at = Pose::identity();
    }
    plan.link_of_body[b] = Some(plan.links.len() - 1);
    Ok(())
}

const IDENTITY: [f64; 4] = [1.0, 0.0, 0.0, 0.0];
/// Axes closer than this to perpendicular or parallel share a link.
const ALIGNED: f64 = 1e-9;

/// Takes as many joints as one link can have: slides that are perpendicular to each
/// other, then one hinge along or across them. Returns the joint frame in the body.
fn group(model: &Model, joints: &[usize]) -> (Motion, Pose, usize) {
    let axis = |j: usize| Vector3::from(model.joints[j].axis).normalize();
    let mut basis: Vec<Vector3<f64>> = Vec::new();
    let mut scalars = Vec::new();
    let mut anchor = [0.0; 3];
    for &j in joints {
        let a = axis(j);
        match model.joints[j].kind {
            JointKind::Slide
                if basis.len() < 3 && basis.iter().all(|b| b.dot(&a).abs() < ALIGNED) =>
            {
                basis.push(a);
                scalars.push((j, false, a));
            }
            JointKind::Hinge
                if basis.iter().all(|b| {
                    let along = b.dot(&a).abs();
                    !(ALIGNED..=1.0 - ALIGNED).contains(&along)
                }) =>
            {
                if basis.iter().all(|b| b.dot(&a).abs() < ALIGNED) {
                    basis.push(a);
                }
                anchor = model.joints[j].pos;
                scalars.push((j, true, a));
                break;
            }
            _ => break,
        }
    }
    let frame_axes = complete(&basis);
    let scalars: Vec<ScalarAxis> = scalars
        .into_iter()
        .map(|(joint, turns, a)| {
            // The axis of the frame that is parallel to this joint's.
            let dots = frame_axes.tr_mul(&a);
            let k = dots.iamax();
            ScalarAxis { joint, axis: if turns { 3 + k } else { k }, sign: dots[k].signum() }
        })
        .collect();
    let frame = Isometry3::from_parts(
        Translation3::from(Vector3::from(anchor)),
        UnitQuaternion::from_rotation_matrix(&Rotation3::from_matrix_unchecked(frame_axes)),
    );
    let used = scalars.len();
    (Motion::Scalars(scalars), frame, used)
}

/// A right-handed frame with axes along (or against) the given ones. Axes of the
/// world are kept exactly, so that usual robots get no rounding from the frame.
fn complete(basis: &[Vector3<f64>]) -> Matrix3<f64> {
    let world = Matrix3::identity();
    let is_world = |b: &Vector3<f64>| b.iter().filter(|x| x.abs() > 0.0).count() == 1;
    if basis.iter().all(is_world) {
        return world;
    }
    let x = basis[0];
    let y = basis.get(1).copied().unwrap_or_else(|| {
        // The world axis that is farthest from x, made perpendicular.
        let k = x.iamin();
        let e = world.column(k).into_owned();
        (e - x * x.dot(&e)).normalize()
    });
    Matrix3::from_columns(&[x, y, x.cross(&y)])
}

/// Masses of the links, each the sum of the bodies that are welded to it; moves the
/// frames of free roots to their centre of mass.
fn link_masses(model: &Model, plan: &mut LinkPlan) -> Result<Vec<Mass>, PhysicsError> {
    let mut masses = Vec::with_capacity(plan.links.len());
    for l in 0..plan.links.len() {
        let members: Vec<usize> = (1..model.bodies.len())
            .filter(|b| plan.links[l].body.is_some() && plan.link_of_body[*b] == Some(l))
            .collect();
        let mut mass = combine(model, plan, &members);
        if let Motion::Free(joint) = plan.links[l].motion {
            if mass.mass <= 0.0 {
                return Err(unsupported(format!(
                    "free joint \"{}\" on a body without mass",
                    model.joints[joint].name
                )));
            }
            let shift = Translation3::from(-mass.com) * Pose::identity();
            plan.links[l].body_in_link = shift;
            for b in members {
                plan.body_in_link[b] = shift * plan.body_in_link[b];
            }
            for link in &mut plan.links {
                if link.parent == Parent::Link(l) {
                    link.frame1 = shift * link.frame1;
                }
            }
            mass.com = Vector3::zeros();
        }
        masses.push(mass);
    }
    Ok(masses)
}

fn combine(model: &Model, plan: &LinkPlan, members: &[usize]) -> Mass {
    let parts: Vec<Mass> = members
        .iter()
        .map(|&b| {
            let body = &model.bodies[b];
            let p = plan.body_in_link[b] * pose(body.ipos, body.iquat);
            let r = p.rotation.to_rotation_matrix();
            Mass {
                mass: body.mass,
                com: p.translation.vector,
                inertia: r.matrix()
                    * Matrix3::from_diagonal(&Vector3::from(body.inertia))
                    * r.matrix().transpose(),
            }
        })
        .collect();
    let mass: f64 = parts.iter().map(|p| p.mass).sum();
    let com = if mass > 0.0 {
        parts.iter().map(|p| p.com * p.mass).sum::<Vector3<f64>>() / mass
    } else {
        Vector3::zeros()
    };
    // Parallel axes: I + m (d^2 E - d d^T).
    let inertia = parts
        .iter()
        .map(|p| {
            let d = p.com - com;
            p.inertia + (Matrix3::identity() * d.norm_squared() - d * d.transpose()) * p.mass
        })
        .sum();
    Mass { mass, com, inertia }
}
