//! What a file of a motion does not say of itself.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Numbers of a body in a frame: position (m), quaternion `(w, x, y, z)`, linear velocity of the
/// body frame's origin (m/s), angular velocity (rad/s), all in the world.
pub const BODY: usize = 13;

/// Most memory that a motion may take (bytes).
pub(super) const MOST: u64 = 2 << 30;

/// How files of motions are read, where they do not say it themselves.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct MotionFormat {
    /// Frames per second, for files that do not say it; those that do must agree.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fps: Option<f64>,
    /// Order of a quaternion's numbers. Without it `wxyz` in arrays of numpy, `xyzw` in tables
    /// of text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub quat: Option<QuatOrder>,
    /// Names of the joints in the order of the file's columns, for files without names. Without
    /// them the robot's own order.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub joints: Vec<String>,
}

/// Order of a quaternion's numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum QuatOrder {
    /// w first, as MuJoCo has them.
    Wxyz,
    /// w last, as ROS, Isaac Gym and Unitree's tables have them.
    Xyzw,
}

impl QuatOrder {
    /// The key's value.
    pub fn word(self) -> &'static str {
        match self {
            Self::Wxyz => "wxyz",
            Self::Xyzw => "xyzw",
        }
    }

    /// The order that it is not.
    pub(super) fn other(self) -> Self {
        match self {
            Self::Wxyz => Self::Xyzw,
            Self::Xyzw => Self::Wxyz,
        }
    }

    /// Four numbers of this order as `(w, x, y, z)`.
    pub(super) fn sorted(self, [a, b, c, d]: [f64; 4]) -> [f64; 4] {
        match self {
            Self::Wxyz => [a, b, c, d],
            Self::Xyzw => [d, a, b, c],
        }
    }

    /// The quaternion that its numbers would mean, had they been of the other order.
    pub(super) fn mistaken(self, [w, x, y, z]: [f64; 4]) -> [f64; 4] {
        match self {
            // Read as w x y z, meant as x y z w.
            Self::Wxyz => [z, w, x, y],
            Self::Xyzw => [x, y, z, w],
        }
    }
}
