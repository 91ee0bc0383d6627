//! Tendons and equality constraints.

use super::{Quat, Vec3};

/// What a tendon's length is.
#[derive(Debug, Clone, PartialEq)]
pub enum TendonKind {
    /// A linear combination of joint positions: (joint, coefficient), as in the file.
    Fixed(Vec<(usize, f64)>),
}

/// A length that springs, dampers, limits and actuators act on.
#[derive(Debug, Clone, PartialEq)]
pub struct Tendon {
    /// Name; `tendonK` where the file gives none.
    pub name: String,
    /// What its length is.
    pub kind: TendonKind,
    /// Limits of the length, if limited.
    pub range: Option<[f64; 2]>,
    /// Limits on the sum of actuator forces at this tendon, if limited.
    pub actfrcrange: Option<[f64; 2]>,
    /// Limit margin.
    pub margin: f64,
    /// Spring stiffness.
    pub stiffness: f64,
    /// Viscous damping.
    pub damping: f64,
    /// Dry friction.
    pub frictionloss: f64,
    /// Inertia of the length's velocity.
    pub armature: f64,
    /// The spring is at rest between these lengths; where the file gives none both
    /// are the length in the springs' rest pose.
    pub springlength: [f64; 2],
    /// Length in the initial pose.
    pub length0: f64,
    /// Limit constraint's reference.
    pub solref_limit: [f64; 2],
    /// Limit constraint's impedance.
    pub solimp_limit: [f64; 5],
    /// Friction-loss constraint's reference.
    pub solref_friction: [f64; 2],
    /// Friction-loss constraint's impedance.
    pub solimp_friction: [f64; 5],
}

/// What an equality constraint holds together. Source: MuJoCo, Computation,
/// "Constraint model", "Equality".
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum EqualityKind {
    /// Two points stay together (3 rows). Constraints between sites are given by
    /// the sites' bodies and positions.
    Connect {
        /// First body.
        body1: usize,
        /// Second body, 0 for the world.
        body2: usize,
        /// The point in the first body's frame (m).
        anchor1: Vec3,
        /// The point in the second body's frame (m).
        anchor2: Vec3,
    },
    /// Two frames stay together (6 rows). Constraints between sites are given by the
    /// sites' bodies and poses: `anchor` is the second site's position, `relpos` the
    /// first's, and `relquat` = quat1 conj(quat2).
    Weld {
        /// First body.
        body1: usize,
        /// Second body, 0 for the world.
        body2: usize,
        /// The point that is welded, in the second body's frame (m).
        anchor: Vec3,
        /// The same point in the first body's frame (m).
        relpos: Vec3,
        /// The second body's orientation in the first body's frame.
        relquat: Quat,
        /// Weight of rotation against translation (m).
        torquescale: f64,
    },
    /// One joint's position is a polynomial of another's:
    /// `q1 - ref1 = c0 + c1 d + c2 d^2 + c3 d^3 + c4 d^4` with `d = q2 - ref2`, and
    /// `d = 0` without a second joint (1 row). Hinge and slide joints only.
    Joint {
        /// The joint that follows.
        joint1: usize,
        /// The joint that it follows.
        joint2: Option<usize>,
        /// c0..c4.
        polycoef: [f64; 5],
    },
    /// As `Joint`, for the lengths of tendons less those in the initial pose.
    Tendon {
        /// The tendon that follows.
        tendon1: usize,
        /// The tendon that it follows.
        tendon2: Option<usize>,
        /// c0..c4.
        polycoef: [f64; 5],
    },
}

/// An equality constraint.
#[derive(Debug, Clone, PartialEq)]
pub struct Equality {
    /// Name; `equalityK` where the file gives none.
    pub name: String,
    /// What it holds together.
    pub kind: EqualityKind,
    /// It acts from the start.
    pub active: bool,
    /// Constraint's reference.
    pub solref: [f64; 2],
    /// Constraint's impedance.
    pub solimp: [f64; 5],
}
