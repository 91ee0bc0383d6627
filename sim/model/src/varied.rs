//! Numbers of a model that differ between environments.
//!
//! A model lists them ([`Model::varied`]). Engines then read them per environment, from rows
//! of one buffer in the order of the list, instead of from the model.

use super::Model;

/// A field of an element, under MuJoCo's meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Field {
    /// Acceleration of gravity (m/s^2), of the world: 3.
    Gravity,
    /// Mass of a body (kg): 1. The inertia stays.
    Mass,
    /// Centre of mass of a body in its frame (m), `body_ipos`: 3.
    Com,
    /// Principal moments of inertia of a body (kg m^2), `body_inertia`: 3.
    Moments,
    /// Inertia of a body about its centre of mass in its frame's axes (kg m^2),
    /// xx yy zz xy xz yz: 6.
    Tensor,
    /// Sliding, torsional (m) and rolling (m) friction of a geom: 3.
    Friction,
    /// Rotor inertia of a joint (kg or kg m^2): 1.
    Armature,
    /// Viscous damping of a joint (N s/m or N m s/rad): 1.
    Damping,
    /// Dry friction of a joint (N or N m): 1.
    Frictionloss,
    /// Spring of a joint (N/m or N m/rad): 1.
    Stiffness,
    /// Position of a hinge or slide joint (rad or m) in which its body is as modelled,
    /// `qpos0`: 1.
    Qpos0,
    /// Gain of a servo, `gainprm[0]` and `-biasprm[1]`: 1.
    Kp,
    /// Damping of a servo, `-biasprm[2]`: 1.
    Kd,
    /// Gain of an actuator that is no servo, `gainprm[0]`: 1. The bias stays.
    Gain,
    /// Most force of an actuator, either way (N or N m), `forcerange`: 1.
    Effort,
    /// Physics steps by which the controls of a motor arrive late: 1.
    Delay,
    /// Force (N) and torque (N m) from outside at a body's centre of mass, in the world's
    /// axes, `xfrc_applied`: 6.
    Wrench,
}

impl Field {
    /// All of them.
    pub const ALL: [Self; 17] = [
        Self::Gravity,
        Self::Mass,
        Self::Com,
        Self::Moments,
        Self::Tensor,
        Self::Friction,
        Self::Armature,
        Self::Damping,
        Self::Frictionloss,
        Self::Stiffness,
        Self::Qpos0,
        Self::Kp,
        Self::Kd,
        Self::Gain,
        Self::Effort,
        Self::Delay,
        Self::Wrench,
    ];

    /// Its name in `tests/referee/mujoco_varied.py`.
    pub fn name(self) -> &'static str {
        match self {
            Self::Gravity => "gravity",
            Self::Mass => "mass",
            Self::Com => "com",
            Self::Moments => "moments",
            Self::Tensor => "tensor",
            Self::Friction => "friction",
            Self::Armature => "armature",
            Self::Damping => "damping",
            Self::Frictionloss => "frictionloss",
            Self::Stiffness => "stiffness",
            Self::Qpos0 => "qpos0",
            Self::Kp => "kp",
            Self::Kd => "kd",
            Self::Gain => "gain",
            Self::Effort => "effort",
            Self::Delay => "delay",
            Self::Wrench => "wrench",
        }
    }

    /// Numbers of an element.
    pub fn width(self) -> usize {
        match self {
            Self::Gravity | Self::Com | Self::Moments | Self::Friction => 3,
            Self::Tensor | Self::Wrench => 6,
            _ => 1,
        }
    }

    /// Whether inertias follow from it.
    pub fn is_inertia(self) -> bool {
        matches!(self, Self::Mass | Self::Com | Self::Moments | Self::Tensor)
    }

    /// Whether inverse weights follow from it.
    pub fn weighs(self) -> bool {
        self.is_inertia() || matches!(self, Self::Armature | Self::Qpos0)
    }
}

/// A field of one element of the model.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Varied {
    /// Which field.
    pub field: Field,
    /// Number of the body, geom, joint or actuator; 0 for the world's.
    pub element: usize,
}

impl Model {
    /// Rows of the buffer of all that varies.
    pub fn nvaried(&self) -> usize {
        self.varied.iter().map(|v| v.field.width()).sum()
    }

    /// The first row of a field of an element, if it varies.
    pub fn varied_row(&self, field: Field, element: usize) -> Option<usize> {
        let mut row = 0;
        for varied in &self.varied {
            if *varied == (Varied { field, element }) {
                return Some(row);
            }
            row += varied.field.width();
        }
        None
    }

    /// The field that a row belongs to, and which of its numbers it is.
    pub fn varied_at(&self, row: usize) -> Option<(Varied, usize)> {
        let mut first = 0;
        for varied in &self.varied {
            let width = varied.field.width();
            if row < first + width {
                return Some((*varied, row - first));
            }
            first += width;
        }
        None
    }

    /// The model's own numbers of a field; empty where it has no such element.
    pub fn field(&self, of: Varied) -> Vec<f64> {
        let i = of.element;
        if let Some(number) = self.motor_field(of.field, i) {
            return vec![number];
        }
        let body = self.bodies.get(i);
        let joint = self.joints.get(i);
        let actuator = self.actuators.get(i);
        let numbers = match of.field {
            Field::Gravity => Some(self.options.gravity.to_vec()),
            Field::Mass => body.map(|b| vec![b.mass]),
            Field::Com => body.map(|b| b.ipos.to_vec()),
            Field::Moments => body.map(|b| b.inertia.to_vec()),
            Field::Tensor => body.map(|b| super::rotation::turned(b.inertia, b.iquat).to_vec()),
            Field::Friction => self.geoms.get(i).map(|g| g.friction.to_vec()),
            Field::Armature => joint.map(|j| vec![j.armature]),
            Field::Damping => joint.map(|j| vec![j.damping]),
            Field::Frictionloss => joint.map(|j| vec![j.frictionloss]),
            Field::Stiffness => joint.map(|j| vec![j.stiffness]),
            Field::Qpos0 => joint.map(|j| vec![self.qpos0[j.qpos_adr]]),
            Field::Kp | Field::Gain => actuator.map(|a| vec![a.gain[0]]),
            Field::Kd => actuator.map(|a| vec![-a.bias[2]]),
            Field::Effort => actuator.map(|a| vec![a.forcerange.map_or(f64::INFINITY, |r| r[1])]),
            // Without a motor there is none.
            Field::Delay => None,
            Field::Wrench => body.map(|_| vec![0.0; 6]),
        };
        numbers.unwrap_or_default()
    }

    /// Number of an element, or a geom's name, as a referee counts them: MuJoCo has geoms that
    /// are only seen, too.
    pub fn varied_name(&self, of: Varied) -> serde_json::Value {
        match of.field {
            Field::Friction => self.geoms.get(of.element).map(|g| g.name.as_str()).into(),
            _ => of.element.into(),
        }
    }

    /// The model's own numbers of all that varies, row by row.
    pub fn varied_numbers(&self) -> Vec<f64> {
        let each = self.varied.iter();
        each.flat_map(|v| self.field(*v)).collect()
    }
}
