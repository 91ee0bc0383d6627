//! Actuators.

use super::Motor;

/// Target of an actuator; its length and moment arm follow from it. Source:
/// MuJoCo, Computation, "Transmission".
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Transmission {
    /// A joint, in its own coordinates: hinge and slide have length `gear[0] q`; ball
    /// and free joints feel `gear` as an axis (ball: the first three entries) in the
    /// child's frame.
    Joint(usize),
    /// As `Joint`, but the axis of a ball or free joint is given in the parent's frame.
    JointInParent(usize),
    /// A tendon: length is `gear[0]` times the tendon's.
    Tendon(usize),
    /// A force and torque `gear` in a site's frame; with `reference`, that site's
    /// frame, and the length is the pose relative to it.
    Site {
        /// The site that is driven.
        site: usize,
        /// `refsite`.
        reference: Option<usize>,
    },
    /// A rod of fixed length from `crank` to a pin that slides on the z axis of
    /// `slider`.
    SliderCrank {
        /// Site at the crank's pin.
        crank: usize,
        /// Site whose z axis is the slider's.
        slider: usize,
        /// Length of the rod (m).
        length: f64,
    },
    /// A body: the force pulls along the normals of its contacts, divided between them. Its
    /// length is 0.
    Body(usize),
}

/// How the activation `w` of an actuator follows its control `u`; `p` is
/// [`Actuator::dynprm`]. Source: MuJoCo, Computation, "Activation dynamics".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dynamics {
    /// No state: the force follows the control.
    None,
    /// dw/dt = u.
    Integrator,
    /// dw/dt = (u - w) / p0.
    Filter,
    /// As `Filter`, integrated exactly over a time step.
    FilterExact,
    /// Time constants p0 (activation) and p1 (deactivation), smoothing width p2.
    Muscle,
    /// A DC motor's current, by which the force is p1 w: it follows the force that gain and
    /// bias give, over p1, with time constant p0.
    Current,
}

/// An actuator: force = gain * input + bias, scaled by the gear.
///
/// The input is the control, or the activation of actuators with [`Dynamics`].
/// `gain = gain[0] + gain[1] l + gain[2] v` and likewise `bias`, where `l` is the
/// transmission's length and `v` its velocity (hinge and slide: `l = gear[0] q`,
/// `v = gear[0] dq/dt`); the joint feels
/// `gear[0] * clamp(gain input + bias, forcerange)`. Source: MuJoCo, Computation,
/// "Actuation model".
#[derive(Debug, Clone, PartialEq)]
pub struct Actuator {
    /// Name; `actuatorK` where the file gives none.
    pub name: String,
    /// The element's name in the file: motor, position, velocity, general, ...
    pub element: &'static str,
    /// Its transmission.
    pub transmission: Transmission,
    /// Transmission ratio (6 entries; hinge, slide and tendon use the first).
    pub gear: [f64; 6],
    /// Range controls are clamped to, if limited.
    pub ctrlrange: Option<[f64; 2]>,
    /// Range the force is clamped to, if limited.
    pub forcerange: Option<[f64; 2]>,
    /// Affine gain (1, length, velocity).
    pub gain: [f64; 3],
    /// Affine bias (1, length, velocity). Damping ratios are resolved into it.
    pub bias: [f64; 3],
    /// How the activation follows the control.
    pub dynamics: Dynamics,
    /// Parameters of the dynamics: time constants (s), see [`Dynamics`].
    pub dynprm: [f64; 3],
    /// Range the activation is clamped to, if limited.
    pub actrange: Option<[f64; 2]>,
    /// The force uses the next activation instead of the current one.
    pub actearly: bool,
    /// Curves that replace `gain` and `bias`, for muscles.
    pub muscle: Option<Muscle>,
    /// Its group is not among those that `actuatorgroupdisable` switches off. One that
    /// is off has no gain and no bias, and its activation rests.
    pub enabled: bool,
    /// A law of its own, by which its control becomes that of a MuJoCo motor.
    pub motor: Option<Motor>,
    /// Who gives it.
    pub given: Given,
    /// Index of its activation in `act`, if it has one.
    pub act_adr: Option<usize>,
}

/// Who gives an actuator.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Given {
    /// The robot's file.
    #[default]
    File,
    /// The file; the task gives its law.
    Law,
    /// The task: the file has none.
    Task,
}

/// A muscle's active force (gain) and passive force (bias) over its length and velocity.
/// Source: MuJoCo, Modeling, "Muscles".
///
/// Parameters are those of `gainprm` and `biasprm`: operating range (2, in optimal
/// lengths), peak force (N; negative: `scale / acc0`), scale, lmin, lmax, vmax, fpmax,
/// fvmax.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Muscle {
    /// Active force, if the gain is a muscle's.
    pub gain: Option<[f64; 9]>,
    /// Passive force, if the bias is a muscle's.
    pub bias: Option<[f64; 9]>,
    /// Lengths of the actuator at the ends of the operating range.
    pub lengthrange: [f64; 2],
    /// Norm of the acceleration that a unit force gives in the initial pose.
    pub acc0: f64,
}

impl Actuator {
    /// Whether the control is a position that it holds: `gain (u - length)`.
    pub fn is_servo(&self) -> bool {
        if self.motor.is_some() {
            return true;
        }
        let follows =
            matches!(self.dynamics, Dynamics::None | Dynamics::Filter | Dynamics::FilterExact);
        let [gain, bias] = [self.gain[0], self.bias[1]];
        follows && self.muscle.is_none() && gain != 0.0 && bias == -gain
    }

    /// Whether its force is a gain times its input: no servo, muscle or DC motor, and not switched
    /// off.
    pub fn is_motor(&self) -> bool {
        let plain = self.motor.is_none() && self.muscle.is_none() && self.element != "dcmotor";
        plain && self.enabled && self.bias[1..] == [0.0; 2]
    }

    /// The joint it drives, if it drives one.
    pub fn joint(&self) -> Option<usize> {
        match self.transmission {
            Transmission::Joint(j) | Transmission::JointInParent(j) => Some(j),
            _ => None,
        }
    }
}
