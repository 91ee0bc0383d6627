//! `[[task.contact]]` and `[task.option]`: numbers of the robot's file that a task changes.

use super::OneOrMany;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// `[[task.contact]]`: attributes of some geoms, under MJCF's names and meaning, instead of the
/// file's. Of several terms that name a geom the last one counts, for each attribute that it has.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ContactTerm {
    /// Geoms, by name or pattern with `*`.
    pub geoms: Vec<String>,
    /// Dimension of contacts: 1 (no friction), 3, 4 (torsion) or 6 (rolling).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub condim: Option<u32>,
    /// Sliding friction; or sliding, torsional (m) and rolling (m) friction.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub friction: Option<OneOrMany>,
    /// Of two geoms the one of higher priority decides about friction and softness.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub priority: Option<i32>,
    /// Time constant (s) and damping ratio of the constraint; or stiffness and damping, negative.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solref: Option<[f64; 2]>,
    /// Impedance: d0, dwidth, width (m), midpoint, power; the last ones may be left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub solimp: Option<Vec<f64>>,
    /// Bits of the geom.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub contype: Option<u32>,
    /// Bits of the geoms that it meets.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub conaffinity: Option<u32>,
}

/// `[task.option]`: settings of MJCF's `<option>` instead of the file's. The time step is
/// `sim.dt`.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct OptionTable {
    /// How time is integrated.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub integrator: Option<IntegratorWord>,
    /// Shape of friction cones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cone: Option<ConeWord>,
    /// Ratio of friction's impedance to the normal one, for elliptic cones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub impratio: Option<f64>,
    /// Most iterations of the constraint solver, after which it stops as MuJoCo's Newton does, 1 or
    /// more; `"file"`: as many as the robot's file says, or MuJoCo's 100. Without it constraints
    /// are solved to the end.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(title = "a whole number, 1 or more, or \"file\"", extend("minimum" = 1))]
    pub iterations: Option<Iterations>,
    /// Most sweeps of the no-slip solver, 0: none. It keeps friction from creeping, and costs time
    /// in every step; a larger `impratio` with elliptic cones makes creep slower, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub noslip_iterations: Option<u32>,
    /// `true` finds contacts of convex shapes as MuJoCo does by default, where the file sets the
    /// flags `nativeccd` or `multiccd` to `disable`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub nativeccd: Option<bool>,
}

/// How many iterations a solver makes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged, expecting = "expected a whole number, 1 or more, or \"file\"")]
pub enum Iterations {
    /// `"file"`.
    File(FileWord),
    /// So many.
    N(u32),
}

/// The word `file`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum FileWord {
    /// `"file"`.
    File,
}

/// An integrator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum IntegratorWord {
    Euler,
    #[serde(rename = "RK4")]
    Rk4,
    Implicit,
    ImplicitFast,
}

/// A friction cone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum ConeWord {
    Pyramidal,
    Elliptic,
}
