//! Tendons and equality constraints.

use super::{Quat, Vec3};

/// Length of a tendon.
#[derive(Debug, Clone, PartialEq)]
pub enum TendonKind {
    /// A linear combination of joint positions: (joint, coefficient), as in the file.
    Fixed(Vec<(usize, f64)>),
    /// A string through sites, over pulleys and around geoms, in the order of the file.
    Spatial(Vec<PathPart>),
}

/// One thing that a spatial tendon passes. Source: MuJoCo, XML reference, tendon/spatial.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PathPart {
    /// Through a site.
    Site(usize),
    /// Around a sphere or cylinder, where the straight way would go through it.
    Geom {
        /// The geom.
        geom: usize,
        /// `sidesite`: on which side; inside the geom, the string passes within.
        side: Option<usize>,
    },
    /// The following is a branch of its own and counts for 1 / divisor.
    Pulley(f64),
}

/// One piece of a spatial tendon.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Piece {
    /// The sites it goes from and to.
    pub sites: [usize; 2],
    /// The object between: geom and side site.
    pub around: Option<(usize, Option<usize>)>,
    /// It counts for 1 / divisor of its length.
    pub divisor: f64,
}

impl TendonKind {
    /// Pieces of a spatial tendon; none of a fixed one.
    pub fn pieces(&self) -> Vec<Piece> {
        let Self::Spatial(path) = self else {
            return Vec::new();
        };
        let (mut pieces, mut from, mut around, mut divisor) = (Vec::new(), None, None, 1.0);
        for part in path {
            match *part {
                PathPart::Pulley(by) => (from, around, divisor) = (None, None, by),
                PathPart::Geom { geom, side } => around = Some((geom, side)),
                PathPart::Site(to) => {
                    if let Some(from) = from {
                        pieces.push(Piece { sites: [from, to], around: around.take(), divisor });
                    }
                    from = Some(to);
                }
            }
        }
        pieces
    }
}

/// A length that springs, dampers, limits and actuators act on.
#[derive(Debug, Clone, PartialEq)]
pub struct Tendon {
    /// Name; `tendonK` where the file gives none.
    pub name: String,
    /// Its length.
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

/// Objects that an equality constraint holds together. Source: MuJoCo, Computation,
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
    /// Its two sides.
    pub kind: EqualityKind,
    /// It acts from the start.
    pub active: bool,
    /// Constraint's reference.
    pub solref: [f64; 2],
    /// Constraint's impedance.
    pub solimp: [f64; 5],
}
