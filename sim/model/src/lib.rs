//! A robot and its scene: immutable, neutral to the physics engine.
//!
//! [`Model`] is the meaning of an MJCF file after defaults, classes, angles and
//! inertias are resolved. Names, order and units follow MuJoCo: SI units,
//! radians, quaternions `(w, x, y, z)`, world z up; bodies are numbered so that
//! a parent comes before its children and body 0 is the world.

#![cfg_attr(not(test), warn(unreachable_pub))]

mod actuator;
pub mod arms;
mod constraint;
mod contact_sensor;
pub mod edit;
mod geom;
mod ignored;
mod kernels;
pub mod looks;
pub mod mirror;
pub mod mjcf;
pub mod motion;
mod motor;
pub mod rest;
pub mod rotation;
mod sensor;
mod shape;
pub mod simple;
pub mod summary;
pub mod terrain;
/// Helpers for the tests of all packages.
#[cfg(test)]
#[path = "../../../tests/support/mod.rs"]
mod test_support;
mod varied;
mod wrap;

pub use actuator::{Actuator, Dynamics, Given, Muscle, Transmission};
pub use constraint::Piece;
pub use constraint::{Equality, EqualityKind, PathPart, Tendon, TendonKind};
pub use contact_sensor::{ContactReading, ContactSensor};
pub use geom::{Geom, HField, Mesh, Pair};
pub use motor::{Activation, Delay, EffortLimit, Layer, Motor, MotorLaw, Network, NetworkKind};
pub use rotation::{Quat, Vec3};
pub use shape::GeomKind;
pub use shape::{ShapePair, WORDS, on_all_lanes};

pub use sensor::{FrameQuantity, Sensor, SensorFrame, SensorKind};
pub use varied::{Field, Varied};

use ostler_base::names::nearest;
use std::path::PathBuf;
use std::sync::Arc;

/// A robot and its scene, parsed and resolved.
#[derive(Debug, Clone, PartialEq)]
pub struct Model {
    /// The `model` attribute of `<mujoco>`, or the file's stem.
    pub name: String,
    /// `<option>` and the parts of `<compiler>` that reach run time.
    pub options: Options,
    /// All bodies; index 0 is the world.
    pub bodies: Vec<Body>,
    /// All joints in body order.
    pub joints: Vec<Joint>,
    /// All geoms in body order.
    pub geoms: Vec<Geom>,
    /// All sites in body order.
    pub sites: Vec<Site>,
    /// Meshes that geoms refer to.
    pub meshes: Vec<Mesh>,
    /// Height fields that geoms refer to.
    pub hfields: Vec<HField>,
    /// The ground of [`GeomKind::Terrain`].
    pub terrain: Option<Arc<terrain::Terrain>>,
    /// Tendons in file order.
    pub tendons: Vec<Tendon>,
    /// Equality constraints in file order.
    pub equalities: Vec<Equality>,
    /// All actuators in file order.
    pub actuators: Vec<Actuator>,
    /// Geoms whose contacts the task changes, in its order.
    pub changed_geoms: Vec<usize>,
    /// Networks of motors.
    pub networks: Vec<Network>,
    /// Contact sensors of the task's expressions.
    pub contact_sensors: Vec<ContactSensor>,
    /// Sensors in file order, for task expressions.
    pub sensors: Vec<Sensor>,
    /// Keyframes in file order.
    pub keyframes: Vec<Keyframe>,
    /// Pairs of bodies `(a, b)`, a < b, that never collide (`<exclude>`).
    pub excludes: Vec<(usize, usize)>,
    /// Pairs of geoms that collide by their own rules (`<pair>`), in file order.
    pub pairs: Vec<Pair>,
    /// Numbers that MuJoCo gives those geoms of the file that are only seen and that
    /// `geoms` lacks, ascending.
    pub skipped: Vec<usize>,
    /// Number of generalised positions.
    pub nq: usize,
    /// Number of generalised velocities.
    pub nv: usize,
    /// Number of activations: state variables of actuators.
    pub na: usize,
    /// Generalised positions of the initial pose `(nq)`.
    pub qpos0: Vec<f64>,
    /// Fields of which every environment has its own numbers.
    pub varied: Vec<Varied>,
    /// Numbers of an environment that follow from them: `physics::native::vary`
    /// counts them.
    pub nderived: usize,
    /// Elements and attributes that were read and have no effect here.
    pub ignored: Vec<Ignored>,
    /// What the task adds to the file, in words.
    pub added: Vec<String>,
    /// The same as it was asked for; heights are numbers.
    pub edits: edit::Edits,
    /// Every file that was read or is named and there, textures too, the main one first: a
    /// run keeps copies.
    pub sources: Vec<PathBuf>,
    /// How they are named.
    pub naming: Naming,
}

/// How a model names its files, for a copy of them in which the names mean the same.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Naming {
    /// The folder in which the files may lie, where one was named; else the main file's.
    pub within: Option<PathBuf>,
    /// Folders that were taken for the packages of addresses such as `package://NAME/...`, and
    /// NAME.
    pub packages: Vec<(PathBuf, String)>,
    /// Names that begin with `/`, and the files that they mean.
    pub absolute: Vec<(PathBuf, PathBuf)>,
}

/// Settings of `<option>`. Solver parameters are carried for the native engine.
#[derive(Debug, Clone, PartialEq)]
pub struct Options {
    /// Physics time step (s).
    pub timestep: f64,
    /// Gravity (m/s^2).
    pub gravity: Vec3,
    /// Density of the medium (kg/m^3); 0 is vacuum.
    pub density: f64,
    /// Viscosity of the medium (kg/(m s)).
    pub viscosity: f64,
    /// Wind (m/s).
    pub wind: Vec3,
    /// The magnetic field, for magnetometers.
    pub magnetic: Vec3,
    /// Ratio of friction to normal impedance.
    pub impratio: f64,
    /// How time is integrated.
    pub integrator: Integrator,
    /// Shape of the friction cone.
    pub cone: Cone,
    /// Which solver MuJoCo would use.
    pub solver: Solver,
    /// Solver iterations.
    pub iterations: u32,
    /// Whether the engine's solver stops after [`Self::iterations`], as MuJoCo's does; without it
    /// constraints are solved to the end.
    pub stops_early: bool,
    /// Solver tolerance.
    pub tolerance: f64,
    /// Iterations of the solver's line search.
    pub ls_iterations: u32,
    /// Tolerance of the solver's line search.
    pub ls_tolerance: f64,
    /// Iterations of collision detection between convex shapes.
    pub ccd_iterations: u32,
    /// Tolerance of collision detection between convex shapes (m).
    pub ccd_tolerance: f64,
    /// Iterations of the no-slip solver.
    pub noslip_iterations: u32,
    /// Tolerance of the no-slip solver.
    pub noslip_tolerance: f64,
    /// Groups of actuators that are switched off, one bit each.
    pub disabled_actuators: u32,
    /// `<flag>` entries that are set to other than their default, by name.
    pub flags: Vec<(String, bool)>,
}

/// `option/integrator`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Integrator {
    Euler,
    Rk4,
    Implicit,
    ImplicitFast,
}

/// `option/cone`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cone {
    Pyramidal,
    Elliptic,
}

/// `option/solver`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Solver {
    Pgs,
    Cg,
    Newton,
}

/// A rigid body. Pose is relative to the parent body.
#[derive(Debug, Clone, PartialEq)]
pub struct Body {
    /// Name; `bodyK` where the file gives none.
    pub name: String,
    /// Parent body; 0 for children of the world, and for the world itself.
    pub parent: usize,
    /// Position in the parent's frame (m).
    pub pos: Vec3,
    /// Orientation in the parent's frame.
    pub quat: Quat,
    /// Mass (kg).
    pub mass: f64,
    /// Centre of mass in the body's frame (m).
    pub ipos: Vec3,
    /// Orientation of the principal axes in the body's frame.
    pub iquat: Quat,
    /// Principal moments of inertia (kg m^2).
    pub inertia: Vec3,
    /// Its joints, as indices into [`Model::joints`].
    pub joints: std::ops::Range<usize>,
    /// Its geoms, as indices into [`Model::geoms`].
    pub geoms: std::ops::Range<usize>,
    /// Moved from outside in MuJoCo (`mocap`); here it stays where the file puts it.
    pub mocap: bool,
    /// How many times its weight is carried by forces that compensate gravity.
    pub gravcomp: f64,
    /// False where the file forbids MuJoCo's short cuts for bodies with a diagonal
    /// mass matrix.
    pub simple: bool,
    /// The ancestor (or itself) that it is welded to: bodies without joints move
    /// with their parent. 0 for static bodies.
    pub weld: usize,
    /// Shapes are fixed to it that are only seen and were not kept: rays meet them.
    pub more_seen: bool,
}

/// Kind of a joint.
#[repr(u32)]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JointKind {
    /// 7 positions (x, y, z, quaternion), 6 velocities (linear in the world's
    /// frame, angular in the body's frame).
    Free = kernels::JOINT_FREE,
    /// 4 positions (quaternion), 3 velocities (in the body's frame).
    Ball = kernels::JOINT_BALL,
    /// 1 position (m).
    Slide = kernels::JOINT_SLIDE,
    /// 1 position (rad).
    Hinge = kernels::JOINT_HINGE,
}

impl JointKind {
    /// Number of generalised positions.
    pub fn nq(self) -> usize {
        match self {
            Self::Free => 7,
            Self::Ball => 4,
            Self::Slide | Self::Hinge => 1,
        }
    }

    /// Number of generalised velocities.
    pub fn nv(self) -> usize {
        match self {
            Self::Free => 6,
            Self::Ball => 3,
            Self::Slide | Self::Hinge => 1,
        }
    }
}

impl Joint {
    /// True for hinge and slide joints: one position, one velocity.
    pub fn is_scalar(&self) -> bool {
        matches!(self.kind, JointKind::Hinge | JointKind::Slide)
    }
}

/// A joint between a body and its parent.
#[derive(Debug, Clone, PartialEq)]
pub struct Joint {
    /// Name; `jointK` where the file gives none.
    pub name: String,
    /// Kind.
    pub kind: JointKind,
    /// The body that moves.
    pub body: usize,
    /// Anchor in the body's frame (m).
    pub pos: Vec3,
    /// Unit axis in the body's frame (slide, hinge).
    pub axis: Vec3,
    /// Position in the initial pose ((m) or (rad), MJCF `ref`).
    pub reference: f64,
    /// Limits ((m) or (rad); ball: 0 and the largest angle of rotation), if limited.
    pub range: Option<[f64; 2]>,
    /// Viscous damping (N s/m) or (N m s/rad).
    pub damping: f64,
    /// Spring stiffness (N/m) or (N m/rad).
    pub stiffness: f64,
    /// Position at which the spring is at rest.
    pub springref: f64,
    /// Rotor inertia added to the diagonal of the mass matrix (kg) or (kg m^2).
    pub armature: f64,
    /// Dry friction (N) or (N m).
    pub frictionloss: f64,
    /// Limits on the sum of actuator forces at this joint, if limited.
    pub actfrcrange: Option<[f64; 2]>,
    /// The actuators compensate weight, within `actfrcrange`; otherwise it is a passive
    /// force.
    pub actuator_gravcomp: bool,
    /// Limit margin (m) or (rad).
    pub margin: f64,
    /// Limit constraint's reference (`solreflimit`).
    pub solref_limit: [f64; 2],
    /// Limit constraint's impedance (`solimplimit`).
    pub solimp_limit: [f64; 5],
    /// Friction-loss constraint's reference.
    pub solref_friction: [f64; 2],
    /// Friction-loss constraint's impedance.
    pub solimp_friction: [f64; 5],
    /// First index in `qpos`.
    pub qpos_adr: usize,
    /// First index in `qvel`.
    pub dof_adr: usize,
}

/// A named frame on a body.
#[derive(Debug, Clone, PartialEq)]
pub struct Site {
    /// Name; `siteK` where the file gives none.
    pub name: String,
    /// The body it is fixed to.
    pub body: usize,
    /// Position in the body's frame (m).
    pub pos: Vec3,
    /// Orientation in the body's frame.
    pub quat: Quat,
    /// The volume of touch sensors: a sphere, capsule, ellipsoid, cylinder or box.
    pub kind: GeomKind,
    /// Its size, as a geom's.
    pub size: Vec3,
}

/// A named configuration.
#[derive(Debug, Clone, PartialEq)]
pub struct Keyframe {
    /// Name.
    pub name: String,
    /// Generalised positions `(nq)`.
    pub qpos: Vec<f64>,
    /// Generalised velocities `(nv)`.
    pub qvel: Vec<f64>,
    /// Activations `(na)`.
    pub act: Vec<f64>,
    /// Controls `(nu)`.
    pub ctrl: Vec<f64>,
    /// It moves mocap bodies, which stay here where the file has them: nothing can begin there.
    pub moves_mocap: bool,
}

/// Something in the file that has no effect in Ostler.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ignored {
    /// The feature: `<visual>`, `option/solver="Newton"`, ...
    pub what: String,
    /// File, line and column, `ant.xml:12:5`.
    pub place: String,
    /// Why that does no harm, or what it changes.
    pub why: String,
}

/// A name that the model does not have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("no {kind} called \"{name}\"{}", .nearest.as_ref().map(|n| format!("; did you mean \"{n}\"?")).unwrap_or_default())]
pub struct UnknownName {
    /// "body", "joint", ...
    pub kind: &'static str,
    /// The name that was asked for.
    pub name: String,
    /// The nearest that exists.
    pub nearest: Option<String>,
}

macro_rules! find {
    ($(#[$doc:meta])* $fn:ident, $field:ident, $kind:literal) => {
        $(#[$doc])*
        pub fn $fn(&self, name: &str) -> Result<usize, UnknownName> {
            self.$field.iter().position(|x| x.name == name).ok_or_else(|| UnknownName {
                kind: $kind,
                name: name.to_string(),
                nearest: nearest(name, self.$field.iter().map(|x| x.name.as_str())).map(str::to_string),
            })
        }
    };
}

impl Model {
    find!(/// Index of the body with this name.
        body, bodies, "body");
    find!(/// Index of the joint with this name.
        joint, joints, "joint");
    find!(/// Index of the geom with this name.
        geom, geoms, "geom");
    find!(/// Index of the site with this name.
        site, sites, "site");
    find!(/// Index of the actuator with this name.
        actuator, actuators, "actuator");
    find!(/// Index of the tendon with this name.
        tendon, tendons, "tendon");
    find!(/// Index of the sensor with this name.
        sensor, sensors, "sensor");
    find!(/// Index of the keyframe with this name.
        keyframe, keyframes, "keyframe");

    /// Number of actuators, the length of `ctrl`.
    pub fn nu(&self) -> usize {
        self.actuators.len()
    }

    /// The body that carries a measured frame, and the frame's pose in the body's.
    pub fn carried(&self, frame: SensorFrame) -> (usize, rotation::Pose) {
        let (body, pos, quat) = match frame {
            SensorFrame::Body(b) => (b, [0.0; 3], rotation::IDENTITY),
            SensorFrame::Inertia(b) => (b, self.bodies[b].ipos, self.bodies[b].iquat),
            SensorFrame::Geom(g) => {
                let geom = &self.geoms[g];
                (geom.body, geom.pos, geom.quat)
            }
            SensorFrame::Site(s) => {
                let site = &self.sites[s];
                (site.body, site.pos, site.quat)
            }
        };
        (body, rotation::Pose { pos, quat })
    }

    /// Numbers of all sensors that are measured while the worlds step
    /// ([`SensorKind::measured`]), one sensor after the other.
    pub fn nmeasured(&self) -> usize {
        self.measured_before(self.sensors.len())
    }

    /// Of these, the numbers of sensors before `sensor`.
    pub fn measured_before(&self, sensor: usize) -> usize {
        let before = self.sensors.iter().take(sensor);
        before.map(|s| s.kind.measured()).sum()
    }
}
