//! Sensors: `<sensor>` defines them, and task expressions read them as `sensor(NAME)`.

/// A frame that a sensor measures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SensorFrame {
    /// A body's frame (`xbody`).
    Body(usize),
    /// A body's principal axes at its centre of mass (`body`).
    Inertia(usize),
    /// A geom.
    Geom(usize),
    /// A site.
    Site(usize),
}

/// Measured quantity of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FrameQuantity {
    /// Position (m).
    Pos,
    /// Orientation, (w, x, y, z).
    Quat,
    /// Its x (0), y (1) or z (2) axis.
    Axis(usize),
    /// Linear velocity (m/s).
    LinVel,
    /// Angular velocity (rad/s).
    AngVel,
    /// Linear acceleration, gravity's reaction included (m/s^2).
    LinAcc,
    /// Angular acceleration (rad/s^2).
    AngAcc,
}

/// Quantity of a sensor. Source: MuJoCo, XML reference, "sensor".
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SensorKind {
    /// Position of a hinge or slide joint.
    JointPos(usize),
    /// Its velocity.
    JointVel(usize),
    /// Quaternion of a ball joint.
    BallQuat(usize),
    /// Angular velocity of a ball joint (rad/s), child's frame.
    BallAngVel(usize),
    /// Length of a tendon.
    TendonPos(usize),
    /// Its velocity.
    TendonVel(usize),
    /// Length of an actuator.
    ActuatorPos(usize),
    /// Its velocity.
    ActuatorVel(usize),
    /// Force of an actuator, before the gear.
    ActuatorFrc(usize),
    /// A frame, in the world or in `relative`.
    Frame {
        /// Its quantity.
        quantity: FrameQuantity,
        /// The frame.
        frame: SensorFrame,
        /// The frame that it is measured in; `None` for the world.
        relative: Option<SensorFrame>,
    },
    /// Linear velocity of a site in its own frame (m/s).
    Velocimeter(usize),
    /// Angular velocity of a site in its own frame (rad/s).
    Gyro(usize),
    /// Distance from a site along its z axis (m), -1 where nothing is met.
    Rangefinder(usize),
    /// The magnetic field at a site, in its own frame.
    Magnetometer(usize),
    /// Linear acceleration of a site in its own frame, gravity's reaction included (m/s^2).
    Accelerometer(usize),
    /// Force between a site's body and its parent, in the site's frame (N).
    Force(usize),
    /// Moment between a site's body and its parent about the site, in its frame (N m).
    Torque(usize),
    /// Sum of the normal forces of the contacts of a site's body in the site's volume (N).
    Touch(usize),
    /// Centre of mass of a body and all below it (m).
    SubtreeCom(usize),
    /// Velocity of that centre (m/s).
    SubtreeLinVel(usize),
    /// Angular momentum about that centre (kg m^2/s).
    SubtreeAngMom(usize),
    /// Time since the episode began (s).
    Clock,
    /// Sensors that tasks cannot read, with the reason.
    Unsupported(String),
}

impl SensorKind {
    /// Numbers that are measured while the worlds step, because no state holds what they
    /// are of: accelerations and forces between bodies. 0 for sensors that are computed
    /// from the state.
    pub fn measured(&self) -> usize {
        match self {
            Self::Accelerometer(_)
            | Self::Force(_)
            | Self::Torque(_)
            | Self::Frame { quantity: FrameQuantity::LinAcc | FrameQuantity::AngAcc, .. } => 3,
            Self::Touch(_) => 1,
            _ => 0,
        }
    }
}

/// A sensor.
#[derive(Debug, Clone, PartialEq)]
pub struct Sensor {
    /// Name; `sensorK` where the file gives none.
    pub name: String,
    /// Its quantity.
    pub kind: SensorKind,
    /// Components beyond this size are clipped; 0 none.
    pub cutoff: f64,
}
